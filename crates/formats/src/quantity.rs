//! Numbers with a unit, as tools write them for people, as whole numbers of the smallest unit.

use std::borrow::Cow;

use flame_profile::ValueType;

/// What a quantity counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// In nanoseconds.
    Time,
    /// In bytes.
    Bytes,
    /// In cycles.
    Cycles,
    /// Without a unit.
    Count,
}

impl Measure {
    /// The value type of weights in it.
    pub(crate) fn value_type(self, name: &str) -> ValueType {
        let unit = match self {
            Measure::Time => "nanoseconds",
            Measure::Bytes => "bytes",
            Measure::Cycles | Measure::Count => "count",
        };
        ValueType::new(name, unit)
    }
}

/// What weights count that are in a unit of that name, which a format has none for: samples where it is none.
pub(crate) fn named_unit(unit: &str) -> ValueType {
    match unit {
        "" | "none" | "count" | "samples" => ValueType::samples(),
        _ => ValueType::new(unit, unit),
    }
}

/// `96.08 Gc`, `4273.0ms`, `1.2 min`, `429.93 MB`, `17`, `1,234`: the whole number of the smallest
/// unit and what it counts. Where commas cannot part thousands, they are decimal ones: `4,93 s`.
pub(crate) fn quantity(text: &[u8]) -> Option<(u64, Measure)> {
    let text = str::from_utf8(text).ok()?.trim();
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ',')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (scale, measure) = unit_scale(unit.trim())?;
    let decimal = match number.split_once(',') {
        Some((_, digits))
            if !number.contains('.') && !digits.contains(',') && digits.len() != 3 =>
        {
            Some(number.replace(',', "."))
        }
        _ => None,
    };
    Some((scaled(decimal.as_deref().unwrap_or(number), scale)?, measure))
}

fn unit_scale(unit: &str) -> Option<(u64, Measure)> {
    let (scale, measure) = match unit {
        "" => (1, Measure::Count),
        "ns" | "nanoseconds" => (1, Measure::Time),
        "us" | "µs" | "μs" | "microseconds" => (1_000, Measure::Time),
        "ms" | "milliseconds" => (1_000_000, Measure::Time),
        "s" | "sec" | "seconds" => (1_000_000_000, Measure::Time),
        "min" => (60_000_000_000, Measure::Time),
        "h" | "hr" => (3_600_000_000_000, Measure::Time),
        "B" | "Bytes" | "bytes" => (1, Measure::Bytes),
        "KB" | "KiB" => (1 << 10, Measure::Bytes),
        "MB" | "MiB" => (1 << 20, Measure::Bytes),
        "GB" | "GiB" => (1 << 30, Measure::Bytes),
        "c" | "cycles" => (1, Measure::Cycles),
        "Kc" | "kc" => (1_000, Measure::Cycles),
        "Mc" => (1_000_000, Measure::Cycles),
        "Gc" => (1_000_000_000, Measure::Cycles),
        _ => return None,
    };
    Some((scale, measure))
}

/// A decimal number times `scale`, rounded down; commas part thousands.
pub(crate) fn scaled(number: &str, scale: u64) -> Option<u64> {
    let plain = match number.contains(',') {
        true => Cow::Owned(number.replace(',', "")),
        false => Cow::Borrowed(number),
    };
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // Digits beyond the eighteenth weigh nothing in any unit.
    let fraction = &fraction[..fraction.len().min(18)];
    let part = match fraction {
        "" => 0,
        digits => {
            let parts: u128 = digits.parse().ok()?;
            parts * u128::from(scale) / 10_u128.pow(u32::try_from(digits.len()).ok()?)
        }
    };
    whole.checked_mul(scale)?.checked_add(u64::try_from(part).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_whole_numbers_of_the_smallest_unit() {
        for (text, expect) in [
            ("6.45 s", Some((6_450_000_000, Measure::Time))),
            ("4273.0ms", Some((4_273_000_000, Measure::Time))),
            ("1.50 min", Some((90_000_000_000, Measure::Time))),
            ("797.00 µs", Some((797_000, Measure::Time))),
            ("96.08 Gc", Some((96_080_000_000, Measure::Cycles))),
            ("429.5 MB", Some((450_363_392, Measure::Bytes))),
            ("1,234", Some((1234, Measure::Count))),
            ("4,93 s", Some((4_930_000_000, Measure::Time))),
            ("1,234.5 ms", Some((1_234_500_000, Measure::Time))),
            (".5 s", Some((500_000_000, Measure::Time))),
            ("-", None),
            ("", None),
            ("12 parsecs", None),
            ("1.2.3", None),
            ("99999999999999999999 s", None),
        ] {
            assert_eq!(quantity(text.as_bytes()), expect, "{text}");
        }
    }
}
