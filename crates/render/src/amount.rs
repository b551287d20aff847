//! Weights and shares as a reader wants them: `1,234 samples`, `12.35 s`, `5.67%`.
//!
//! The viewer script formats the same numbers with the same steps of the same floating-point
//! operations, so that a box says the same whether it was written here or drawn there.

use flame_profile::{ValueType, Weight};

const TIME: &[(u64, &str)] = &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns")];
const BYTES: &[(u64, &str)] =
    &[(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")];

/// How weights of one value type are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueScale {
    /// Steps of the unit, largest first, the last of size 1; empty for plain counts.
    pub(crate) steps: &'static [(u64, &'static str)],
    /// What plain counts count, for example `samples`.
    pub(crate) noun: String,
}

impl ValueScale {
    /// The scale of a value type: time and bytes get prefixes, anything else is counted.
    pub fn of(value_type: &ValueType) -> ValueScale {
        let (steps, noun) = match value_type.unit.as_str() {
            "nanoseconds" => (TIME, ""),
            "bytes" => (BYTES, ""),
            "count" => (&[][..], value_type.name.as_str()),
            unit => (&[][..], unit),
        };
        ValueScale { steps, noun: crate::clean_name(noun).into_owned() }
    }

    /// With what is counted: `1,234 samples`, `12.35 s`.
    pub fn amount(&self, weight: Weight) -> String {
        let number = self.number(weight);
        if self.noun.is_empty() { number } else { format!("{number} {}", self.noun) }
    }

    /// Without what is counted: `1,234`; a prefixed unit stays: `12.35 s`.
    pub fn number(&self, weight: Weight) -> String {
        let step = self.steps.iter().find(|(size, _)| weight.0 >= *size || *size == 1);
        match step {
            None => group_thousands(weight.0),
            Some((1, unit)) => format!("{} {unit}", group_thousands(weight.0)),
            Some((size, unit)) => {
                let hundredths = (weight.0 as f64 / *size as f64 * 100.0 + 0.5).floor() as u64;
                let whole = group_thousands(hundredths / 100);
                format!("{whole}.{:02} {unit}", hundredths % 100)
            }
        }
    }
}

/// A share of `total` as a percentage with two decimals.
///
/// `100%` means all of it and nothing less; what is there but rounds to nothing is `<0.01%`.
pub fn format_share(weight: Weight, total: Weight) -> String {
    let hundredths = (weight.share_of(total) * 10_000.0 + 0.5).floor() as u64;
    if weight == total && weight.0 > 0 {
        return "100%".to_owned();
    }
    if weight.0 > 0 && hundredths == 0 {
        return "<0.01%".to_owned();
    }
    let hundredths = hundredths.min(9_999);
    format!("{}.{:02}%", hundredths / 100, hundredths % 100)
}

/// A number with commas: `1,234,567`.
pub fn group_thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_amount(name: &str, unit: &str, weight: u64, expect: &str) {
        let scale = ValueScale::of(&ValueType::new(name, unit));
        assert_eq!(scale.amount(Weight(weight)), expect);
    }

    #[test]
    fn counts_say_what_they_count() {
        check_amount("samples", "count", 1_234_567, "1,234,567 samples");
        check_amount("page-faults", "count", 999, "999 page-faults");
        check_amount("heap", "objects", 1_000, "1,000 objects");
    }

    #[test]
    fn time_and_bytes_take_the_largest_unit_that_fits() {
        check_amount("cpu", "nanoseconds", 12_345_000_000, "12.35 s");
        check_amount("cpu", "nanoseconds", 4_321_000_000_000, "4,321.00 s");
        check_amount("cpu", "nanoseconds", 1_500_000, "1.50 ms");
        check_amount("cpu", "nanoseconds", 999, "999 ns");
        check_amount("cpu", "nanoseconds", 0, "0 ns");
        check_amount("heap", "bytes", 1_536, "1.50 KiB");
    }

    #[test]
    fn a_share_is_100_percent_only_when_it_is_all() {
        let cases = [
            (5, 5, "100%"),
            (99_999, 100_000, "99.99%"),
            (1, 100_000, "<0.01%"),
            (97, 800, "12.13%"),
            (1, 3, "33.33%"),
            (0, 3, "0.00%"),
            (0, 0, "0.00%"),
        ];
        for (weight, total, expect) in cases {
            assert_eq!(format_share(Weight(weight), Weight(total)), expect, "{weight}/{total}");
        }
    }
}
