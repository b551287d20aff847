//! Numbers that were drawn, as the kernel wants them.

/// The whole part of a number: 0 of what is below or none, the largest of what is beyond.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "that is what is meant"
)]
pub(crate) fn whole(number: f64) -> u64 {
    number as u64
}
