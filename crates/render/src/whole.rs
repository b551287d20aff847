//! Positions and colours that were computed in fractions.

use flame_profile::whole;

/// The whole part of a number as a position.
pub(crate) fn position(number: f64) -> usize {
    usize::try_from(whole(number)).unwrap_or(usize::MAX)
}

/// The same of a channel of a colour, or a step of a scale.
pub(crate) fn channel(number: f64) -> u8 {
    u8::try_from(whole(number)).unwrap_or(u8::MAX)
}
