//! How many samples stand behind the values of a pprof file.
//!
//! CPU profiles say it. Go's allocations are sampled one in this many bytes and scaled up when they
//! are written (`scaleHeapSample` of runtime/pprof/protomem.go); what was sampled follows from the
//! scaled numbers. Others, such as Go's contentions, count in periods.

use flame_profile::{Profile, ValueType};

use crate::run::Samples;

/// The bytes of Go's smallest objects. The objects of a stack may have many sizes, of which only
/// the sum is known, and one sampled small object stands for more than all sampled large ones: so
/// where objects are weighed, all are taken to be as small as they can be.
const SMALLEST: f64 = 8.0;

/// What says how many samples a stack has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Behind {
    /// The value at that position counts them.
    Counted(usize),
    /// Each sample adds that period to the value at that position.
    Periods {
        /// The position.
        at: usize,
        /// What each adds.
        period: f64,
    },
    /// Objects at one position have the bytes at the other, of which one in `rate` was sampled.
    Space {
        /// The position of the objects.
        objects: usize,
        /// That of their bytes.
        space: usize,
        /// The bytes a sample.
        rate: f64,
    },
    /// The same, and the objects are what is weighed.
    Objects {
        /// The position of the objects.
        objects: usize,
        /// The bytes a sample.
        rate: f64,
    },
    /// Nothing: each stack was seen at least once.
    Nothing,
}

impl Behind {
    /// What says it for the value at that position.
    pub(crate) fn of(profile: &Profile, value: usize) -> Behind {
        let values = profile.value_types();
        let at = |name: &str, unit: &str| {
            values.iter().position(|value| value.name == name && value.unit == unit)
        };
        let own = values.get(value).map(|value| ValueType::samples_of(&value.name));
        let own = own.and_then(|own| values.iter().position(|value| *value == own));
        if let Some(samples) = own.or_else(|| samples_of(profile)) {
            return Behind::Counted(samples);
        }
        let meta = &profile.meta;
        let Some((event, period)) = meta.event.as_deref().zip(meta.period) else {
            return Behind::Nothing;
        };
        let period = period as f64;
        let kind = values.get(value).and_then(|value| value.name.split_once('_'));
        if let Some((kind, _)) = kind.filter(|_| event == "space") {
            let objects = at(&format!("{kind}_objects"), "count");
            let space = at(&format!("{kind}_space"), "bytes");
            match objects.zip(space) {
                Some((objects, _)) if objects == value => {
                    return Behind::Objects { objects, rate: period };
                }
                Some((objects, space)) => return Behind::Space { objects, space, rate: period },
                None => {}
            }
        }
        let of_event = values.iter().position(|value| value.name == event);
        of_event.map_or(Behind::Nothing, |at| Behind::Periods { at, period })
    }

    /// How many samples weigh so much of the value at that position, where all weigh the same.
    pub(crate) fn per_unit(self, value: usize) -> Option<Samples> {
        match self {
            Behind::Counted(at) if at == value => Some(Samples::PerUnit(1.0)),
            Behind::Periods { at, period } if at == value => Some(Samples::PerUnit(period.recip())),
            _ => None,
        }
    }

    /// The samples behind the values of one stack; at least one.
    pub(crate) fn count(self, values: &[u64]) -> u64 {
        let value = |at: usize| values.get(at).copied().unwrap_or(0);
        let count = match self {
            Behind::Counted(at) => value(at),
            Behind::Periods { at, period } => (value(at) as f64 / period).round() as u64,
            Behind::Objects { objects, rate } => {
                (value(objects) as f64 * SMALLEST / rate.max(SMALLEST)).round() as u64
            }
            Behind::Space { objects, space, rate } => {
                let (objects, space) = (value(objects) as f64, value(space) as f64);
                // An object is sampled with this chance: the larger, the surer.
                let chance = -(-space / objects.max(1.0) / rate).exp_m1();
                (objects * chance).round() as u64
            }
            Behind::Nothing => 1,
        };
        count.max(1)
    }
}

/// Which value counts samples.
pub fn samples_of(profile: &Profile) -> Option<usize> {
    profile.value_types().iter().position(|value| *value == ValueType::samples())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(values: &[(&str, &str)], event: &str, period: u64) -> Profile {
        let values = values.iter().map(|(name, unit)| ValueType::new(*name, *unit)).collect();
        let mut profile = Profile::new(values);
        profile.meta.event = Some(event.to_owned());
        profile.meta.period = Some(period);
        profile
    }

    #[test]
    fn values_of_cpu_profiles_have_their_samples() {
        let cpu = profile(&[("samples", "count"), ("cpu", "nanoseconds")], "cpu", 10_000_000);
        let behind = Behind::of(&cpu, 1);
        assert_eq!((behind, behind.per_unit(1)), (Behind::Counted(0), None));
        assert_eq!(behind.per_unit(0), Some(Samples::PerUnit(1.0)));
        assert_eq!(behind.count(&[7, 70_000_000]), 7);
        let two = [
            ("samples", "count"),
            ("cycles", "count"),
            ("instructions_samples", "count"),
            ("instructions", "count"),
        ];
        let two = profile(&two, "cycles", 1000);
        assert_eq!([1, 3].map(|value| Behind::of(&two, value)), [0, 2].map(Behind::Counted));
        let alone = profile(&[("cpu", "nanoseconds")], "cpu", 10_000_000);
        let behind = Behind::of(&alone, 0);
        assert_eq!(behind.per_unit(0), Some(Samples::PerUnit(1e-7)));
    }

    #[test]
    fn contentions_are_counted_in_periods() {
        let values = [("contentions", "count"), ("delay", "nanoseconds")];
        let mutex = profile(&values, "contentions", 5);
        let behind = Behind::of(&mutex, 1);
        assert_eq!(behind, Behind::Periods { at: 0, period: 5.0 });
        assert_eq!([behind.count(&[50, 900]), behind.count(&[0, 900])], [10, 1]);
        assert_eq!(behind.per_unit(1), None);
    }

    #[test]
    fn allocations_were_sampled_by_their_bytes() {
        let values = [
            ("alloc_objects", "count"),
            ("alloc_space", "bytes"),
            ("inuse_objects", "count"),
            ("inuse_space", "bytes"),
        ];
        let heap = profile(&values, "space", 524_288);
        let behind = Behind::of(&heap, 1);
        assert_eq!(behind, Behind::Space { objects: 0, space: 1, rate: 524_288.0 });
        // 100 samples of objects of 16 bytes were scaled up to 32,768 times as many; objects of 8
        // MiB are all sampled; half of those of 363 KiB.
        assert_eq!(behind.count(&[3_276_850, 16 * 3_276_850, 0, 0]), 100);
        assert_eq!(behind.count(&[40, 40 << 23, 0, 0]), 40);
        assert_eq!(behind.count(&[1000, 363_409 * 1000, 0, 0]), 500);
        assert_eq!(behind.count(&[0, 0, 0, 0]), 1);
        let of_objects = Behind::of(&heap, 2);
        assert_eq!(of_objects, Behind::Objects { objects: 2, rate: 524_288.0 });
        assert_eq!(of_objects.count(&[0, 0, 3_276_800, 16 * 3_276_800]), 50);
    }

    #[test]
    fn nothing_is_known_of_others() {
        let other = profile(&[("goroutine", "count")], "heap", 1);
        let behind = Behind::of(&other, 0);
        assert_eq!((behind, behind.count(&[9])), (Behind::Nothing, 1));
    }
}
