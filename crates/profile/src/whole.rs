//! Whole parts of numbers that were computed in fractions.

/// The whole part of a number: 0 of what is below or none, the largest of what is beyond.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "that is what is meant"
)]
pub fn whole(number: f64) -> u64 {
    number as u64
}
