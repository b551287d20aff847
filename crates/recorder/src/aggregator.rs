//! Samples become rows: one for each thread, stack and what the stack rests on, with the sums of
//! the values. Memory grows with distinct stacks, not with time.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use flame_profile::{
    Cpu, Evidence, Health, ImageId, Nanos, Pid, ProcessAddress, StackEnd, StackId, Tid,
    TimedSample, Timeline,
};
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::config::EVENT_VALUE;
use crate::located_stacks::LocatedStacks;
use crate::location::CodeLocation;
use crate::script_sums::ScriptSums;
use crate::scripted::EndOfScript;
use crate::sets::Sets;

/// How many frames all stacks have at most, counting once what they have in common from the root on: some
/// 40 bytes each while recording, and as many more when they have names.
const MOST_FRAMES: usize = 4 << 20;

/// A thread that runs for fewer intervals of samples than this may well have none.
const BRIEF: u64 = 3;

/// A thread as samples saw it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ThreadKey {
    pub(crate) name: Arc<str>,
    pub(crate) process: Arc<str>,
    /// Nothing where it was given up before the sample; the same below.
    pub(crate) pid: Option<Pid>,
    pub(crate) tid: Option<Tid>,
}

/// What a row is told from others by: the position of its thread, its stack, and what that rests on.
pub(crate) type RowKey = (usize, StackId, Evidence);

/// Where a sample was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenStack {
    /// The position of its thread.
    pub(crate) thread: usize,
    pub(crate) stack: StackId,
    /// How the stack ends, and what it rests on.
    pub(crate) end: (StackEnd, Evidence),
    /// The same of the script that it runs.
    pub(crate) script: Option<EndOfScript>,
}

/// Where a thread waits, once it is known which code that was.
pub(crate) type Wait = Arc<OnceLock<SeenStack>>;

/// Takes in samples.
#[derive(Clone, Debug)]
pub(crate) struct Aggregator {
    rows: Rows,
    /// Of each kind that there is, how many samples end so.
    ends: Vec<(StackEnd, u64)>,
    most_frames: usize,
    /// How many samples have lost frames to that limit.
    shortened: u64,
}

/// All samples of a recording, before anything has a name.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    pub(crate) threads: IndexSet<ThreadKey, FxBuildHasher>,
    pub(crate) stacks: LocatedStacks,
    pub(crate) scripts: ScriptSums,
    keys: IndexSet<RowKey, FxBuildHasher>,
    /// For each key two numbers an event: how many samples, and what they stand for.
    values: Vec<u64>,
    events: usize,
    /// Where times are kept.
    pub(crate) timeline: Option<Timeline>,
}

/// When and where a sample was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// Since the first sample.
    pub(crate) time: Nanos,
    pub(crate) cpu: Option<Cpu>,
}

impl Rows {
    /// None yet, of samples of this many events.
    pub(crate) fn new(events: usize, keeps_times: bool) -> Rows {
        Rows {
            timeline: keeps_times.then(Timeline::default),
            threads: IndexSet::default(),
            stacks: LocatedStacks::default(),
            scripts: ScriptSums::default(),
            keys: IndexSet::default(),
            values: Vec::new(),
            events: events.max(1),
        }
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The rows, each with its values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&RowKey, &[u64])> {
        self.keys.iter().zip(self.values.chunks_exact(2 * self.events))
    }

    /// The same, with values that can be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&RowKey, &mut [u64])> {
        self.keys.iter().zip(self.values.chunks_exact_mut(2 * self.events))
    }

    /// The position of a thread.
    pub(crate) fn thread(&mut self, key: ThreadKey) -> usize {
        self.threads.insert_full(key).0
    }

    /// The position of a row, new or known.
    fn row(&mut self, key: RowKey) -> usize {
        self.keys.insert_full(key).0
    }

    /// Adds a sample of the event at that position, which stands for so much.
    fn add(&mut self, row: usize, event: usize, period: u64, moment: Moment) {
        let width = 2 * self.events;
        let start = row * width;
        if let Some(timeline) = &mut self.timeline {
            let Moment { time, cpu } = moment;
            timeline.push(TimedSample { time, row, cpu, event, weight: period });
        }
        if self.values.len() == start {
            self.values.resize(start + width, 0);
        }
        let of_event = start + 2 * event.min(self.events - 1);
        for (sum, value) in self.values[of_event..].iter_mut().zip([1, period]) {
            *sum = sum.saturating_add(value);
        }
    }
}

/// How many samples of any event the values of a row stand for.
pub(crate) fn samples_of(values: &[u64]) -> u64 {
    values.iter().step_by(2).sum()
}

impl Aggregator {
    /// Of samples of this many events.
    pub(crate) fn new(events: usize, keeps_times: bool) -> Aggregator {
        Aggregator {
            rows: Rows::new(events, keeps_times),
            ends: Vec::new(),
            most_frames: MOST_FRAMES,
            shortened: 0,
        }
    }

    /// The position of a thread.
    pub(crate) fn thread(&mut self, key: ThreadKey) -> usize {
        self.rows.thread(key)
    }

    /// The stack of a path, outermost frame first.
    pub(crate) fn stack(&mut self, path: impl IntoIterator<Item = CodeLocation>) -> StackId {
        path.into_iter().fold(StackId::EMPTY, |stack, location| self.inside(stack, location))
    }

    /// A stack with one more frame inside; where there is no room for new ones, a mark stands for it and
    /// for those further in.
    pub(crate) fn inside(&mut self, stack: StackId, location: CodeLocation) -> StackId {
        let is_full = self.is_full();
        let stacks = &mut self.rows.stacks;
        if !is_full {
            return stacks.push(stack, location);
        }
        match stacks.find(stack, location) {
            Some(known) => known,
            None if stacks.entry(stack) == Some(CodeLocation::NotKept) => stack,
            None => stacks.push(stack, CodeLocation::NotKept),
        }
    }

    /// A stack with another one inside.
    pub(crate) fn on_top(&mut self, below: StackId, above: StackId) -> StackId {
        let mut path: Vec<CodeLocation> = self.rows.stacks.entries(above).collect();
        path.reverse();
        path.into_iter().fold(below, |stack, location| self.inside(stack, location))
    }

    /// Adds a sample of the event at that position; the position of its row.
    pub(crate) fn add(
        &mut self,
        seen: SeenStack,
        event: usize,
        period: u64,
        moment: Moment,
    ) -> usize {
        let SeenStack { thread, stack, end: (mut end, evidence), script } = seen;
        script.into_iter().for_each(|script| self.rows.scripts.add(event, script, period));
        if self.is_full() && self.rows.stacks.entry(stack) == Some(CodeLocation::NotKept) {
            self.shortened += 1;
            end = StackEnd::FrameLimit;
        }
        let row = self.rows.row((thread, stack, evidence));
        self.add_to_row(row, end, (event, period, moment));
        row
    }

    /// The same where its row is known.
    pub(crate) fn add_to_row(
        &mut self,
        row: usize,
        end: StackEnd,
        (event, period, moment): (usize, u64, Moment),
    ) {
        match self.ends.iter_mut().find(|(known, _)| *known == end) {
            Some((_, count)) => *count += 1,
            None => self.ends.push((end, 1)),
        }
        self.rows.add(row, event, period, moment);
    }

    /// Whether there is no room for more frames.
    pub(crate) fn is_full(&self) -> bool {
        self.rows.stacks.len() >= self.most_frames
    }

    /// Gives the samples of the first event as much weight as is known of each thread, by position; what
    /// is left of threads without such samples. Threads that ran too briefly to be sampled for sure stand for each other,
    /// if they are called alike.
    pub(crate) fn share_out(&mut self, known: BTreeMap<usize, u64>) -> BTreeMap<usize, u64> {
        let alike = self.brief_alike(&known);
        let like = |thread: usize| alike.get(&thread).copied().unwrap_or(thread);
        let mut sampled: BTreeMap<usize, u64> = BTreeMap::new();
        for ((thread, ..), values) in self.rows.iter() {
            *sampled.entry(like(*thread)).or_default() += values[EVENT_VALUE];
        }
        let mut ran: BTreeMap<usize, u64> = BTreeMap::new();
        for (thread, time) in &known {
            *ran.entry(like(*thread)).or_default() += time;
        }
        // What rounding takes from one row the next ones get.
        let mut passed: BTreeMap<usize, (u128, u64)> = BTreeMap::new();
        for ((thread, ..), values) in self.rows.iter_mut() {
            let thread = like(*thread);
            let (Some(ran), Some(sampled)) = (ran.get(&thread), sampled.get(&thread)) else {
                continue;
            };
            let (seen, given) = passed.entry(thread).or_default();
            *seen += u128::from(values[EVENT_VALUE]);
            let until = *seen * u128::from(*ran) / u128::from(*sampled).max(1);
            let until = u64::try_from(until).unwrap_or(u64::MAX);
            (values[EVENT_VALUE], *given) = (until - *given, until);
        }
        let after = self.rows.iter().map(|(_, values)| values[EVENT_VALUE]).sum();
        self.rows.scripts.scale(0, (sampled.values().sum(), after));
        let is_unseen = |thread| sampled.get(&like(thread)).is_none_or(|sampled| *sampled == 0);
        known.into_iter().filter(|(thread, time)| is_unseen(*thread) && *time > 0).collect()
    }

    /// For threads that ran for less than some intervals of samples, the first that is called like them.
    fn brief_alike(&self, known: &BTreeMap<usize, u64>) -> FxHashMap<usize, usize> {
        let (samples, value) = self.rows.iter().fold((0, 0), |(samples, value), (_, values)| {
            (samples + values[0], value + values[EVENT_VALUE])
        });
        let brief = BRIEF * (value / samples.max(1));
        let mut first = FxHashMap::default();
        let threads = known.iter().filter(|(_, time)| **time < brief);
        let alike = threads.filter_map(|(thread, _)| {
            let ThreadKey { name, process, .. } = self.rows.threads.get_index(*thread)?;
            Some((*thread, *first.entry((name, process)).or_insert(*thread)))
        });
        alike.collect()
    }

    /// Adds what samples of other events stand for to the values of the first: both are time.
    pub(crate) fn add_up(&mut self) {
        for (_, values) in self.rows.iter_mut() {
            let (first, others) = values.split_at_mut(2);
            for other in others.chunks_exact(2) {
                first.iter_mut().zip(other).for_each(|(sum, value)| *sum += value);
            }
        }
    }

    /// All rows; how their stacks ended is counted in `health`.
    pub(crate) fn into_rows(self, health: &mut Health) -> Rows {
        for (end, count) in self.ends {
            *health.stack_ends.entry(end).or_default() += count;
        }
        if self.shortened > 0 {
            health.notes.push(format!(
                "{} samples lack their inner functions: stacks had more than {} different frames \
                 in all (--max-depth, -F)",
                self.shortened, self.most_frames
            ));
        }
        health.samples = self.rows.iter().map(|(_, values)| samples_of(values)).sum();
        self.rows
    }
}

/// In how many samples' user stacks each image is.
pub(crate) fn samples_by_image(rows: &Rows) -> BTreeMap<ImageId, u64> {
    let mut sets = Sets::new();
    for (stack, caller, number) in rows.stacks.nodes() {
        let image = match rows.stacks.location(number) {
            CodeLocation::Image(image, _) => u32::try_from(image.index()).ok(),
            _ => None,
        };
        sets.add(stack, caller, image);
    }
    let samples = rows.iter().map(|((_, stack, _), values)| (*stack, samples_of(values)));
    let image = |(image, samples)| (ImageId::from_index(image as usize), samples);
    sets.sums(samples).into_iter().map(image).collect()
}

/// Where the kernel's frames are, given innermost first, outermost first.
pub(crate) fn kernel_addresses(
    kernel: impl DoubleEndedIterator<Item = ProcessAddress> + ExactSizeIterator,
) -> impl Iterator<Item = ProcessAddress> {
    kernel.enumerate().rev().map(|(index, address)| {
        // All but the innermost are return addresses.
        ProcessAddress(address.0.saturating_sub(u64::from(index > 0)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_that_there_is_no_room_for_keep_their_outer_frames_and_are_counted() {
        let mut aggregator = Aggregator::new(1, false);
        // The empty stack is one of them.
        aggregator.most_frames = 4;
        let at = |address| CodeLocation::Kernel(ProcessAddress(address));
        let mut add = |path: &[u64]| {
            let path: Vec<CodeLocation> = path.iter().copied().map(at).collect();
            let stack = aggregator.stack(path);
            let end = (StackEnd::Root, Evidence::default());
            let seen = SeenStack { thread: 0, stack, end, script: None };
            aggregator.add(seen, 0, 1, Moment { time: Nanos(0), cpu: None });
            let mut kept: Vec<CodeLocation> = aggregator.rows.stacks.entries(stack).collect();
            kept.reverse();
            kept
        };
        assert_eq!(add(&[1, 2, 3]), [1, 2, 3].map(at));
        for other in [&[1, 2, 4][..], &[1, 2, 5, 6, 7]] {
            assert_eq!(add(other), [at(1), at(2), CodeLocation::NotKept]);
        }
        assert_eq!(add(&[1, 2, 3]), [1, 2, 3].map(at));
        let mut health = Health::default();
        aggregator.into_rows(&mut health);
        assert_eq!(health.samples, 4);
        assert_eq!(health.stack_ends[&StackEnd::FrameLimit], 2);
        assert!(health.notes[0].starts_with("2 samples lack their inner"), "{:?}", health.notes);
    }

    #[test]
    fn brief_threads_that_are_called_alike_stand_for_each_other() {
        let mut all = Aggregator::new(1, false);
        let mut thread = |name: &str, tid| {
            let (name, pid, tid) = (Arc::<str>::from(name), Some(Pid(1)), Some(Tid(tid)));
            all.thread(ThreadKey { process: name.clone(), name, pid, tid })
        };
        let threads = [("child", 2), ("child", 3), ("child", 4), ("child", 5), ("other", 6)];
        let [long, seen, unseen, also, alone] = threads.map(|(name, tid)| thread(name, tid));
        for (thread, samples) in [(long, 9), (seen, 1)] {
            let stack = all.stack([CodeLocation::Kernel(ProcessAddress(thread as u64 + 1))]);
            let end = (StackEnd::Root, Evidence::default());
            for _ in 0..samples {
                let seen = SeenStack { thread, stack, end, script: None };
                all.add(seen, 0, 10, Moment { time: Nanos(0), cpu: None });
            }
        }
        let ran = [(long, 95), (seen, 5), (unseen, 4), (also, 3), (alone, 2)].into();
        assert_eq!(all.share_out(ran), [(alone, 2)].into());
        let values = all.rows.iter().map(|((thread, ..), values)| (*thread, values[EVENT_VALUE]));
        assert_eq!(values.collect::<Vec<_>>(), [(long, 95), (seen, 12)]);
    }
}
