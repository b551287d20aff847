//! How much of a recording is what interpreted programs do, by what is known of their stacks.
//!
//! Where a picture shows samples, these are counted. Where it shows what they stand for, such as time or bytes, that is added
//! up, so that a share is one of what is shown: most calls are short, and most of their time is that of long ones.

use std::collections::BTreeMap;

use flame_profile::{Health, ScriptEnd, ValueType};

use crate::scripted::EndOfScript;

/// What is known of samples' scripts, for each event.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScriptSums {
    events: Vec<BTreeMap<EndOfScript, Sum>>,
}

/// How many samples, and what they stand for.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    samples: u64,
    weight: u64,
}

impl ScriptSums {
    /// Adds a sample of the event at that position, which stands for so much.
    pub(crate) fn add(&mut self, event: usize, end: EndOfScript, weight: u64) {
        if self.events.len() <= event {
            self.events.resize(event + 1, BTreeMap::new());
        }
        let sum = self.events[event].entry(end).or_default();
        sum.samples += 1;
        sum.weight = sum.weight.saturating_add(weight);
    }

    /// What all samples of an event stand for was `before`, and is `after`.
    pub(crate) fn scale(&mut self, event: usize, (before, after): (u64, u64)) {
        for sum in self.events.get_mut(event).into_iter().flat_map(BTreeMap::values_mut) {
            let scaled = u128::from(sum.weight) * u128::from(after) / u128::from(before).max(1);
            sum.weight = u64::try_from(scaled).unwrap_or(u64::MAX);
        }
    }

    /// Says in `health` how many samples there are, or what they stand for, if that is a `value` that is shown.
    pub(crate) fn tell(&self, value: Option<&ValueType>, health: &mut Health) {
        let mut all: BTreeMap<(String, ScriptEnd), u64> = BTreeMap::new();
        for ((language, end), sum) in self.events.iter().flatten() {
            let all = all.entry(((*language).to_owned(), *end)).or_default();
            *all = all.saturating_add(if value.is_some() { sum.weight } else { sum.samples });
        }
        health.script_value = value.filter(|_| !all.is_empty()).cloned();
        health.scripts = all;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_samples_stand_for_is_told_where_that_is_shown() {
        let (whole, not_read) = (("perl", ScriptEnd::Whole), ("perl", ScriptEnd::NotRead));
        let mut sums = ScriptSums::default();
        for (event, end, weight) in [(0, whole, 1), (0, whole, 2), (1, whole, 5), (1, not_read, 90)]
        {
            sums.add(event, end, weight);
        }
        sums.scale(1, (95, 190));
        sums.scale(2, (0, 7));
        let told = |value: Option<ValueType>| {
            let mut health = Health::default();
            sums.tell(value.as_ref(), &mut health);
            assert_eq!(health.script_value, value);
            let of = |end| health.scripts[&("perl".to_owned(), end)];
            [ScriptEnd::Whole, ScriptEnd::NotRead].map(of)
        };
        assert_eq!(told(None), [3, 1]);
        assert_eq!(told(Some(ValueType::new("io", "bytes"))), [13, 180]);
    }

    #[test]
    fn of_no_script_nothing_is_told() {
        let mut health = Health::default();
        ScriptSums::default().tell(Some(&ValueType::new("io", "bytes")), &mut health);
        assert_eq!(health, Health::default());
    }
}
