//! Quantities with their units in the type.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

/// A sampling frequency in samples per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hz(pub u64);

impl fmt::Display for Hz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Hz", self.0)
    }
}

/// A time or a duration in nanoseconds; which clock it is of is said where it is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The same span as a floating point number of seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self - earlier`, or zero when `earlier` is later.
    pub fn saturating_since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(duration: std::time::Duration) -> Nanos {
        Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

/// A length in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteLen(pub u64);

/// What a sample, a node or a profile weighs, in the unit of its [`ValueType`].
///
/// Sums saturate: a profile that overflows 64 bits is wrong in no useful way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(pub u64);

impl Weight {
    /// The share of `total` as a fraction from 0 to 1; 0 when `total` is 0.
    pub fn share_of(self, total: Weight) -> f64 {
        if total.0 == 0 { 0.0 } else { self.0 as f64 / total.0 as f64 }
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Add for Weight {
    type Output = Weight;
    fn add(self, other: Weight) -> Weight {
        Weight(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Weight {
    fn add_assign(&mut self, other: Weight) {
        *self = *self + other;
    }
}

impl Sub for Weight {
    type Output = Weight;
    fn sub(self, other: Weight) -> Weight {
        Weight(self.0.saturating_sub(other.0))
    }
}

impl Sum for Weight {
    fn sum<I: Iterator<Item = Weight>>(weights: I) -> Weight {
        weights.fold(Weight(0), Add::add)
    }
}

/// What a number attached to every sample means: a name and a unit, as pprof has them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ValueType {
    /// What is counted, for example `samples`, `cpu` or `page-faults`.
    pub name: String,
    /// The unit, for example `count`, `nanoseconds` or `bytes`.
    pub unit: String,
}

impl ValueType {
    /// A value type of that name and unit.
    pub fn new(name: impl Into<String>, unit: impl Into<String>) -> ValueType {
        ValueType { name: name.into(), unit: unit.into() }
    }

    /// `samples` in `count`: how many samples were taken; what statistics need.
    pub fn samples() -> ValueType {
        ValueType::new("samples", "count")
    }

    /// How many samples stand behind one value among several of a profile that have their own.
    pub fn samples_of(value: &str) -> ValueType {
        ValueType::new(format!("{value}_samples"), "count")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_add_up_and_stay_at_the_largest_one() {
        use std::time::Duration;
        assert_eq!(Nanos::from(Duration::from_micros(3)) + Nanos(5), Nanos(3005));
        assert_eq!(Nanos(u64::MAX - 1) + Nanos(2), Nanos(u64::MAX));
        assert_eq!(Nanos::from(Duration::MAX), Nanos(u64::MAX));
    }

    #[test]
    fn frequencies_have_their_unit() {
        assert_eq!(Hz(999).to_string(), "999 Hz");
    }
}
