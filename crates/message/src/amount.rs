//! Weights and shares as a reader wants them: `1,234 samples`, `12.35 s`, `5.67%`.
//!
//! The viewer script formats the same numbers with the same steps of the same floating-point
//! operations, so that a box says the same whether it was written here or drawn there.

use flame_profile::{CallTree, ValueType, Weight, whole};

const TIME: &[(u64, &str)] = &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns")];
const MICROS: &[(u64, &str)] = &[(1_000_000, "s"), (1_000, "ms"), (1, "µs")];
const BYTES: &[(u64, &str)] =
    &[(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")];

/// How weights of one value type are written.
///
/// With steps, a weight is written in the first one that it reaches, or in the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueScale {
    /// Steps of the unit, largest first; empty for plain counts. The last has size 1 unless the
    /// weights have decimal places.
    pub steps: Vec<(u64, &'static str)>,
    /// What plain counts count, for example `samples`.
    pub noun: String,
}

impl ValueScale {
    /// The scale of a value type: time and bytes get prefixes, anything else is counted.
    pub fn of(value_type: &ValueType) -> ValueScale {
        let (steps, noun) = match value_type.unit.as_str() {
            "nanoseconds" => (TIME, ""),
            "microseconds" => (MICROS, ""),
            "bytes" => (BYTES, ""),
            "count" => (&[][..], value_type.name.as_str()),
            unit => (&[][..], unit),
        };
        ValueScale { steps: steps.to_vec(), noun: crate::clean_name(noun).into_owned() }
    }

    /// The scale of a tree's weights; `count_name` says what they count where that is known better.
    pub fn of_tree(tree: &CallTree, count_name: Option<&str>) -> ValueScale {
        ValueScale::with(tree.value_type(), tree.decimals(), count_name)
    }

    /// The same for weights of that value with that many decimal places.
    pub fn with(value: &ValueType, decimals: u32, count_name: Option<&str>) -> ValueScale {
        let mut scale = ValueScale::of(value);
        if let Some(name) = count_name {
            scale = ValueScale { steps: Vec::new(), noun: crate::clean_name(name).into_owned() };
        }
        scale.with_decimals(decimals)
    }

    /// The same scale for weights with decimal places.
    #[must_use]
    pub fn with_decimals(mut self, decimals: u32) -> ValueScale {
        let unit = 10_u64.saturating_pow(decimals);
        if unit > 1 && self.steps.is_empty() {
            self.steps.push((unit, ""));
        } else {
            self.steps.iter_mut().for_each(|(size, _)| *size = size.saturating_mul(unit));
        }
        self
    }

    /// With what is counted: `1,234 samples`, `12.35 s`.
    pub fn amount(&self, weight: Weight) -> String {
        let mut text = String::new();
        self.push_amount(weight, &mut text);
        text
    }

    /// Without what is counted: `1,234`; a prefixed unit stays: `12.35 s`.
    pub fn number(&self, weight: Weight) -> String {
        let mut text = String::new();
        self.push_number(weight, &mut text);
        text
    }

    /// Appends what [`ValueScale::amount`] gives.
    pub fn push_amount(&self, weight: Weight, out: &mut String) {
        self.push_number(weight, out);
        if !self.noun.is_empty() {
            out.push(' ');
            out.push_str(&self.noun);
        }
    }

    fn push_number(&self, weight: Weight, out: &mut String) {
        let reached = self.steps.iter().find(|(size, _)| weight.0 >= *size);
        let Some((size, unit)) = reached.or(self.steps.last()) else {
            return push_grouped(weight.0, out);
        };
        if *size > 1 {
            let (whole, hundredths) = divided(weight.0, *size);
            push_grouped(whole, out);
            push_hundredths(hundredths, out);
        } else {
            push_grouped(weight.0, out);
        }
        if !unit.is_empty() {
            out.push(' ');
            out.push_str(unit);
        }
    }
}

/// The quotient and its hundredths, rounded; exact however large they are.
fn divided(number: u64, by: u64) -> (u64, u64) {
    let (whole, rest) = (number / by, number % by);
    let hundredths = match by < 1 << 55 {
        true => (rest * 200 + by) / (2 * by),
        // At most a hundred.
        false => {
            let hundredths = (u128::from(rest) * 200 + u128::from(by)) / (2 * u128::from(by));
            u64::try_from(hundredths).unwrap_or(100)
        }
    };
    if hundredths < 100 { (whole, hundredths) } else { (whole + 1, 0) }
}

/// A share of `total` as a percentage with two decimals.
///
/// `100%` means all of it and nothing less; what is there but rounds to nothing is `<0.01%`.
pub fn format_share(weight: Weight, total: Weight) -> String {
    let mut text = String::new();
    push_share(weight, total, &mut text);
    text
}

/// Appends what [`format_share`] gives.
pub fn push_share(weight: Weight, total: Weight, out: &mut String) {
    let hundredths = whole(weight.share_of(total) * 10_000.0 + 0.5);
    if weight == total && weight.0 > 0 {
        return out.push_str("100%");
    }
    if weight.0 > 0 && hundredths == 0 {
        return out.push_str("<0.01%");
    }
    let hundredths = hundredths.min(9_999);
    push_digits(hundredths / 100, out);
    push_hundredths(hundredths, out);
    out.push('%');
}

/// Appends a number in decimal digits. Pictures are mostly numbers: `write!` would take most of
/// the time of the whole file.
pub fn push_digits(number: u64, out: &mut String) {
    out.push_str(itoa::Buffer::new().format(number));
}

/// Appends a point and the last two digits.
fn push_hundredths(number: u64, out: &mut String) {
    out.push('.');
    out.push(char::from(b'0' + (number / 10 % 10) as u8));
    out.push(char::from(b'0' + (number % 10) as u8));
}

/// What follows the share in the tooltip of a box that weighed something else before: how much
/// that is of the whole. Nothing where nothing changed; `negate` asks the other way round.
pub fn format_change(before: Weight, after: Weight, total: Weight, negate: bool) -> String {
    let (larger, smaller) = (before.max(after), before.min(after));
    if larger == smaller {
        return String::new();
    }
    let sign = if (after > before) != negate { '+' } else { '-' };
    let hundredths = whole((larger - smaller).share_of(total) * 10_000.0 + 0.5);
    format!("; {sign}{}.{:02}%", group_thousands(hundredths / 100), hundredths % 100)
}

/// A number with commas: `1,234,567`.
pub fn group_thousands(number: u64) -> String {
    let mut text = String::new();
    push_grouped(number, &mut text);
    text
}

/// This many of something, of which there may be one.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", group_thousands(number), if number == 1 { one } else { many })
}

/// Appends what [`group_thousands`] gives.
pub fn push_grouped(number: u64, out: &mut String) {
    if number < 1000 {
        return push_digits(number, out);
    }
    push_grouped(number / 1000, out);
    let rest = number % 1000;
    out.push(',');
    for place in [100, 10, 1] {
        out.push(char::from(b'0' + (rest / place % 10) as u8));
    }
}

#[cfg(test)]
mod tests {
    use flame_profile::{Columns, FoldedReader, SiblingOrder};

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
    fn weights_of_any_size_are_exact() {
        let scale = ValueScale::of(&ValueType::samples()).with_decimals(3);
        assert_eq!(scale.number(Weight(u64::MAX)), "18,446,744,073,709,551.62");
        assert_eq!(scale.number(Weight(u64::MAX - 610)), "18,446,744,073,709,551.01");
        assert_eq!(scale.number(Weight(9_007_199_254_740_995)), "9,007,199,254,741.00");
        assert_eq!(scale.number(Weight(1_005)), "1.01");
        assert_eq!(scale.number(Weight(1_004)), "1.00");
        check_amount("cpu", "nanoseconds", u64::MAX, "18,446,744,073.71 s");
    }

    #[test]
    fn changes_have_a_sign() {
        let change = |before, after, negate| {
            format_change(Weight(before), Weight(after), Weight(800), negate)
        };
        assert_eq!(change(4, 4, false), "");
        assert_eq!(change(4, 8, false), "; +0.50%");
        assert_eq!(change(8, 4, false), "; -0.50%");
        assert_eq!(change(8, 4, true), "; +0.50%");
        assert_eq!(change(9000, 0, false), "; -1,125.00%");
    }

    #[test]
    fn fractions_have_two_places() {
        let mut reader = FoldedReader::new(Columns::One, SiblingOrder::Name);
        reader.read(&mut &b"a 1234.125\nb 0.5\n"[..]).unwrap();
        let tree = reader.finish(ValueType::samples());
        let scale = ValueScale::of_tree(&tree, None);
        assert_eq!(scale.amount(tree.total()), "1,234.63 samples");
        assert_eq!(scale.amount(Weight(500)), "0.50 samples");
        assert_eq!(ValueScale::of_tree(&tree, Some("ms")).amount(Weight(4)), "0.00 ms");
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
