//! Whole parts of numbers that were computed in fractions.

/// The whole part of a number: 0 of what is below or none, the largest of what is beyond.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "that is what is meant"
)]
pub(crate) fn whole(number: f64) -> u64 {
    number as u64
}

/// The same as a position.
pub(crate) fn position(number: f64) -> usize {
    usize::try_from(whole(number)).unwrap_or(usize::MAX)
}

/// The same of a channel of a colour, or a step of a scale.
pub(crate) fn channel(number: f64) -> u8 {
    u8::try_from(whole(number)).unwrap_or(u8::MAX)
}
