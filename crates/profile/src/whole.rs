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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_is_the_nearest_number() {
        let cases = [(2.9, 2), (-1.0, 0), (f64::NAN, 0), (1e30, u64::MAX)];
        assert_eq!(cases.map(|(number, _)| whole(number)), cases.map(|(_, expect)| expect));
    }
}
