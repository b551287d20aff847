//! Times of Chrome's traces: microseconds, perhaps with a fraction.

use crate::json::{Value, number, text, whole};

/// A time. Since 1970 there are more nanoseconds than a number with a fraction holds, so the digits are taken
/// as they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MicroTime {
    nanoseconds: u64,
    /// Less than 1,000.
    picoseconds: u64,
}

impl MicroTime {
    /// None of what is negative or no number.
    pub(super) fn of(value: &Value<'_>) -> Option<MicroTime> {
        let digits = if let Value::Number(digits) = value { digits } else { text(value) };
        let (micros, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let parts = micros.parse::<u64>().ok().zip(millionths(fraction));
        let Some((micros, millionths)) = parts else {
            let time = number(value).filter(|time| *time >= 0.0)?;
            return Some(MicroTime { nanoseconds: whole(time, 1000.0), picoseconds: 0 });
        };
        let nanoseconds = micros.checked_mul(1000)?.checked_add(millionths / 1000)?;
        Some(MicroTime { nanoseconds, picoseconds: millionths % 1000 })
    }

    /// So much later. What lies within something else still does once it is rounded.
    pub(super) fn plus(self, length: MicroTime) -> MicroTime {
        let picoseconds = self.picoseconds + length.picoseconds;
        let nanoseconds = self.nanoseconds.saturating_add(length.nanoseconds);
        MicroTime {
            nanoseconds: nanoseconds.saturating_add(picoseconds / 1000),
            picoseconds: picoseconds % 1000,
        }
    }

    /// The nearest whole number of nanoseconds.
    pub(super) fn nanoseconds(self) -> u64 {
        self.nanoseconds.saturating_add(u64::from(self.picoseconds >= 500))
    }
}

/// The time of a value in nanoseconds.
pub(super) fn nanoseconds(value: &Value<'_>) -> Option<u64> {
    MicroTime::of(value).map(MicroTime::nanoseconds)
}

/// The first six digits behind a point, as millionths.
fn millionths(fraction: &str) -> Option<u64> {
    let digits = fraction.bytes().map(|byte| byte.is_ascii_digit().then(|| u64::from(byte - b'0')));
    let digits = digits.enumerate().filter(|(at, digit)| *at < 6 || digit.is_none());
    let scale = |at: usize| [100_000, 10_000, 1_000, 100, 10, 1].get(at).copied();
    digits.map(|(at, digit)| Some(digit? * scale(at)?)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(digits: &str, expect: Option<u64>) {
        assert_eq!(nanoseconds(&Value::Number(digits)), expect, "{digits}");
    }

    #[test]
    fn times_keep_their_nanoseconds() {
        check("12", Some(12_000));
        check("12.5", Some(12_500));
        check("0.0004999999999999", Some(0));
        check("0.0005", Some(1));
        check("1764194386123456.789", Some(1_764_194_386_123_456_789));
        check("1.5e3", Some(1_500_000));
        check("1.5x", None);
        check("-1", None);
        check("", None);
        check("18446744073709552", None);
    }

    #[test]
    fn ends_are_rounded_once() {
        let time = |digits| MicroTime::of(&Value::Number(digits)).unwrap();
        assert_eq!(time("0.0004").plus(time("10.0004")).nanoseconds(), 10_001);
        assert_eq!(time("0.0009").plus(time("0.9999")).nanoseconds(), 1_001);
    }
}
