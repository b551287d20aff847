//! The numbers at the end of a folded line: `17`, `0.25`, `1e3`, kept exactly.

/// Weights have at most this many decimal places; what has more is rounded.
pub(super) const MAX_DECIMALS: u32 = 9;

/// A number that is not negative: `digits / 10^decimals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) digits: u64,
    pub(super) decimals: u32,
}

impl Count {
    pub(super) const ZERO: Count = Count { digits: 0, decimals: 0 };
    /// What is more than nothing, and becomes nothing by rounding.
    pub(super) const TOO_SMALL: Count = Count { digits: 0, decimals: MAX_DECIMALS };

    /// Reads digits with an optional fraction and exponent; `None` for anything else, and for
    /// what does not fit into 64 bits.
    pub(super) fn parse(text: &[u8]) -> Option<Count> {
        // Nineteen digits always fit; nearly every count of every file is read here.
        if text.len() <= 19 && !text.is_empty() && text.iter().all(u8::is_ascii_digit) {
            let digits = text.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
            return Some(Count { digits, decimals: 0 });
        }
        Count::parse_any(text)
    }

    fn parse_any(text: &[u8]) -> Option<Count> {
        if !text.first()?.is_ascii_digit() {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        let (number, exponent) = match text.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let fraction = fraction.trim_end_matches('0');
        let mut digits: u128 = 0;
        let mut kept = 0;
        for (at, digit) in whole.bytes().chain(fraction.bytes()).enumerate() {
            let value = digit.is_ascii_digit().then(|| u128::from(digit - b'0'))?;
            // More than can matter: the sums have 64 bits.
            if at >= whole.len() && digits >= 10_u128.pow(25) {
                continue;
            }
            digits = digits.checked_mul(10)?.checked_add(value)?;
            kept += i32::from(at >= whole.len());
        }
        scaled(digits, kept.saturating_sub(exponent))
    }

    /// How many decimal places a weight needs to hold it.
    pub(super) fn places(self) -> u32 {
        if self.digits == 0 { 0 } else { self.decimals }
    }

    /// The same number with that many decimal places; `None` when it does not fit.
    pub(super) fn at(self, decimals: u32) -> Option<u64> {
        if self.digits == 0 {
            return Some(0);
        }
        let more = decimals.checked_sub(self.decimals)?;
        self.digits.checked_mul(10_u64.checked_pow(more)?)
    }
}

/// `digits / 10^decimals`, with as few places as say the same and at most [`MAX_DECIMALS`].
fn scaled(mut digits: u128, mut decimals: i32) -> Option<Count> {
    if digits == 0 {
        return Some(Count { digits: 0, decimals: 0 });
    }
    while decimals < 0 {
        digits = digits.checked_mul(10)?;
        decimals += 1;
    }
    while decimals > 0 && digits.is_multiple_of(10) {
        digits /= 10;
        decimals -= 1;
    }
    let most = MAX_DECIMALS.cast_signed();
    if decimals > most {
        let divisor =
            u32::try_from(decimals - most).ok().and_then(|places| 10_u128.checked_pow(places));
        digits = divisor.map_or(0, |divisor| (digits + divisor / 2) / divisor);
        return if digits == 0 { Some(Count::TOO_SMALL) } else { scaled(digits, most) };
    }
    Some(Count { digits: u64::try_from(digits).ok()?, decimals: decimals.unsigned_abs() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<(u64, u32)>) {
        let found = Count::parse(text.as_bytes()).map(|count| (count.digits, count.decimals));
        assert_eq!(found, expect, "{text}");
    }

    #[test]
    fn numbers_are_kept_to_the_last_digit() {
        check("0", Some((0, 0)));
        check("0017", Some((17, 0)));
        check("18446744073709551615", Some((u64::MAX, 0)));
        check("0.25", Some((25, 2)));
        check("2.", Some((2, 0)));
        check("1.50", Some((15, 1)));
        check("100.0", Some((100, 0)));
        check("1e3", Some((1000, 0)));
        check("1.5E+3", Some((1500, 0)));
        check("15e-4", Some((15, 4)));
        check("1500e-4", Some((15, 2)));
        check("1500e-2", Some((15, 0)));
        check("9007199254740993.1", Some((90_071_992_547_409_931, 1)));
    }

    #[test]
    fn what_has_too_many_places_is_rounded() {
        check("0.12345678851", Some((123_456_789, 9)));
        check("1e-30", Some((0, 9)));
        check("0.0000000005", Some((1, 9)));
        check("0.3333333333333333333333333333333333333333333", Some((333_333_333, 9)));
        check("1e-2147483648", Some((0, 9)));
    }

    #[test]
    fn what_is_no_count_is_refused() {
        for text in ["", "-5", "+5", ".5", "1e", "1e3x", "nan", "inf", "0x10", "1_000", "1,000"] {
            check(text, None);
        }
        check("18446744073709551616", None);
        check("1e30", None);
        check("1e2147483647", None);
        check("1e99999999999", None);
        check("1.2.3", None);
    }

    #[test]
    fn places_can_be_added() {
        assert_eq!(Count { digits: 15, decimals: 1 }.at(3), Some(1500));
        assert_eq!(Count { digits: 15, decimals: 1 }.at(0), None);
        assert_eq!(Count { digits: u64::MAX, decimals: 0 }.at(1), None);
    }
}
