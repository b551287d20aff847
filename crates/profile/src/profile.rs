//! The profile: distinct stacks of named locations, with one or more values each.

use std::collections::BTreeMap;
use std::ops::Range;

use indexmap::IndexMap;
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use crate::call_tree::Run;
use crate::completion::Evidence;
use crate::frame::{Frame, FrameKind, Location};
use crate::health::Health;
use crate::ids::{FrameId, ImageId, LocationId, Pid, StackId, StrId, ThreadId, Tid};
use crate::image::Image;
use crate::interner::StringTable;
use crate::meta::Meta;
use crate::stack::StackTable;
use crate::timeline::Timeline;
use crate::units::{Nanos, ValueType, Weight};

/// A thread that samples were taken of. Threads that rename themselves appear once a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    /// The thread's name (comm) at the time of the sample.
    pub name: StrId,
    /// The name (comm) of its process, which is that of the main thread.
    pub process: Option<StrId>,
    /// Its process id; `None` where the source did not say.
    pub pid: Option<Pid>,
    /// The thread itself; `None` where the source did not say.
    pub tid: Option<Tid>,
}

/// One distinct (thread, stack, evidence) triple with its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample<'p> {
    /// The thread that was sampled.
    pub thread: ThreadId,
    /// Its stack.
    pub stack: StackId,
    /// What the stack rests on.
    pub evidence: Evidence,
    /// One sum per value type of the profile, in their order.
    pub values: &'p [u64],
}

/// Samples merged by thread and stack, with everything needed to name and draw them.
#[derive(Clone, Debug)]
pub struct Profile {
    /// How the profile was taken.
    pub meta: Meta,
    /// What was lost or is uncertain.
    pub health: Health,
    /// Index of the value that outputs with room for one show when none is asked for.
    pub default_value: usize,
    value_types: Vec<ValueType>,
    strings: StringTable,
    images: Vec<Image>,
    frames: IndexSet<Frame, FxBuildHasher>,
    locations: IndexSet<Location, FxBuildHasher>,
    stacks: StackTable<LocationId>,
    threads: IndexSet<Thread, FxBuildHasher>,
    titles: BTreeMap<Pid, StrId>,
    rows: IndexMap<(ThreadId, StackId, Evidence), (), FxBuildHasher>,
    values: Vec<u64>,
    /// All samples in order of time, where they were kept; rows are positions in [`Profile::samples`].
    pub timeline: Option<Timeline>,
    /// When threads had a CPU, where all switches were recorded.
    pub runs: Option<Vec<Run>>,
}

impl Profile {
    /// An empty profile of those value types.
    ///
    /// # Panics
    /// When there is no value type: a sample must count something.
    pub fn new(value_types: Vec<ValueType>) -> Profile {
        assert!(!value_types.is_empty(), "a profile has at least one value type");
        Profile {
            meta: Meta::default(),
            health: Health::default(),
            default_value: 0,
            value_types,
            strings: StringTable::default(),
            images: Vec::new(),
            frames: IndexSet::default(),
            locations: IndexSet::default(),
            stacks: StackTable::default(),
            threads: IndexSet::default(),
            titles: BTreeMap::new(),
            rows: IndexMap::default(),
            values: Vec::new(),
            timeline: None,
            runs: None,
        }
    }

    /// What each value of a sample means.
    pub fn value_types(&self) -> &[ValueType] {
        &self.value_types
    }

    /// The position of the value type of that name.
    pub fn value_named(&self, name: &str) -> Option<usize> {
        self.value_types.iter().position(|value| value.name == name)
    }

    /// Gives the value type at a position another name; nothing where there is none.
    pub fn rename_value(&mut self, position: usize, name: &str) {
        if let Some(value) = self.value_types.get_mut(position) {
            name.clone_into(&mut value.name);
        }
    }

    /// All strings of the profile.
    pub fn strings(&self) -> &StringTable {
        &self.strings
    }

    /// The string of an id of this profile.
    pub fn text(&self, id: StrId) -> &str {
        self.strings.text(id)
    }

    /// Stores a string.
    pub fn intern(&mut self, text: &str) -> StrId {
        self.strings.intern(text)
    }

    /// Adds an image; images are not merged, the caller has one id per image.
    pub fn add_image(&mut self, image: Image) -> ImageId {
        self.images.push(image);
        ImageId::from_index(self.images.len() - 1)
    }

    /// The images, in the order of their ids.
    pub fn images(&self) -> &[Image] {
        &self.images
    }

    /// A frame that is a name and a kind, without a source line.
    pub fn add_frame(&mut self, name: &str, kind: FrameKind) -> FrameId {
        let name = self.strings.intern(name);
        self.add_whole_frame(Frame { name, kind, file: None, line: None })
    }

    /// A frame with all its fields; equal frames share an id.
    pub fn add_whole_frame(&mut self, frame: Frame) -> FrameId {
        FrameId::from_index(self.frames.insert_full(frame).0)
    }

    /// The frame of an id of this profile.
    ///
    /// # Panics
    /// When the id is of another profile.
    pub fn frame(&self, id: FrameId) -> Frame {
        *self.frames.get_index(id.index()).expect("frame ids are only made by add_frame")
    }

    /// A location; equal locations share an id.
    ///
    /// # Panics
    /// When it has no frame.
    pub fn add_location(&mut self, location: Location) -> LocationId {
        assert!(!location.frames.is_empty(), "a location has at least one frame");
        LocationId::from_index(self.locations.insert_full(location).0)
    }

    /// The locations, in the order of their ids.
    pub fn locations(&self) -> impl ExactSizeIterator<Item = &Location> {
        self.locations.iter()
    }

    /// The location of an id of this profile.
    ///
    /// # Panics
    /// When the id is of another profile.
    pub fn location(&self, id: LocationId) -> &Location {
        self.locations.get_index(id.index()).expect("location ids are only made by add_location")
    }

    /// The stack that is `parent` with `location` called from its innermost entry.
    pub fn push_stack(&mut self, parent: StackId, location: LocationId) -> StackId {
        self.stacks.push(parent, location)
    }

    /// Makes room for that many more stacks, their callers included.
    pub fn reserve_stacks(&mut self, count: usize) {
        self.stacks.reserve(count);
    }

    /// Makes room for samples of that many more threads with their stacks.
    pub fn reserve_samples(&mut self, count: usize) {
        self.rows.reserve(count);
        self.values.reserve(count * self.value_types.len());
    }

    /// The stacks.
    pub fn stacks(&self) -> &StackTable<LocationId> {
        &self.stacks
    }

    /// A thread with its ids; equal threads share an id.
    pub fn add_thread(&mut self, name: &str, pid: Pid, tid: Tid) -> ThreadId {
        let name = self.strings.intern(name);
        self.add_whole_thread(Thread { name, process: None, pid: Some(pid), tid: Some(tid) })
    }

    /// A thread of which perhaps not all is known.
    pub fn add_whole_thread(&mut self, thread: Thread) -> ThreadId {
        ThreadId::from_index(self.threads.insert_full(thread).0)
    }

    /// The thread of an id of this profile.
    ///
    /// # Panics
    /// When the id is of another profile.
    pub fn thread(&self, id: ThreadId) -> Thread {
        *self.threads.get_index(id.index()).expect("thread ids are only made by add_thread")
    }

    /// Notes the title that a process has set itself: `nginx: worker process`.
    pub fn set_title(&mut self, pid: Pid, title: &str) {
        let title = self.strings.intern(title);
        self.titles.insert(pid, title);
    }

    /// The title that a process has set itself, where one is known.
    pub fn title(&self, pid: Pid) -> Option<&str> {
        self.titles.get(&pid).map(|title| self.strings.text(*title))
    }

    /// Adds `values` to the row of that thread and stack, of whose evidence nothing is known.
    ///
    /// # Panics
    /// When there are not exactly as many values as value types.
    pub fn add_sample(&mut self, thread: ThreadId, stack: StackId, values: &[u64]) {
        self.add_sample_of(thread, stack, Evidence::default(), values);
    }

    /// Adds `values` to the row of that thread, stack and evidence, whose position it returns.
    ///
    /// # Panics
    /// When there are not exactly as many values as value types.
    pub fn add_sample_of(
        &mut self,
        thread: ThreadId,
        stack: StackId,
        evidence: Evidence,
        values: &[u64],
    ) -> usize {
        assert_eq!(values.len(), self.value_types.len(), "one value for each value type");
        let row = self.rows.insert_full((thread, stack, evidence), ()).0;
        let start = row * values.len();
        if start == self.values.len() {
            self.values.extend_from_slice(values);
        } else {
            for (sum, value) in self.values[start..].iter_mut().zip(values) {
                *sum = sum.saturating_add(*value);
            }
        }
        row
    }

    /// The distinct samples, in order of first appearance.
    pub fn samples(&self) -> impl ExactSizeIterator<Item = Sample<'_>> {
        let rows = self.rows.keys().zip(self.values.chunks_exact(self.value_types.len()));
        rows.map(|((thread, stack, evidence), values)| Sample {
            thread: *thread,
            stack: *stack,
            evidence: *evidence,
            values,
        })
    }

    /// Leaves of all samples those of a time and of some threads, where their times were kept; without,
    /// nothing is done and `false` returned. What samples stand for now they stand for then, too.
    pub fn keep(&mut self, times: Range<Nanos>, threads: impl Fn(ThreadId) -> bool) -> bool {
        let Some(timeline) = self.timeline.take() else { return false };
        let width = self.value_types.len();
        // By event, what samples stood for when they were taken, and what they stand for now.
        let events = (width / 2).max(1);
        let mut then = vec![0_u128; events];
        let now: Vec<u64> = (0..events).map(|event| self.total(2 * event + 1).0).collect();
        let mut kept = vec![0_u128; events];
        self.values.iter_mut().for_each(|value| *value = 0);
        let mut left = Timeline::default();
        for sample in timeline.iter() {
            let event = sample.event.min(events - 1);
            then[event] += u128::from(sample.weight);
            let Some(((thread, ..), ())) = self.rows.get_index(sample.row) else { continue };
            let values = self.values.get_mut(sample.row * width..).unwrap_or_default();
            let values = values.get_mut(..width).unwrap_or_default();
            if times.contains(&sample.time) && threads(*thread) && !values.is_empty() {
                kept[event] += u128::from(sample.weight);
                values[2 * event] = values[2 * event].saturating_add(1);
                if let Some(value) = values.get_mut(2 * event + 1) {
                    *value = value.saturating_add(sample.weight);
                }
                left.push(sample);
            }
        }
        for (event, now) in now.into_iter().enumerate() {
            // Products of two numbers of 64 bits have 128.
            let then = then[event].clamp(1, u128::from(u64::MAX));
            let part = kept[event].min(then) * u128::from(now) / then;
            self.scale(2 * event + 1, u64::try_from(part).unwrap_or(u64::MAX));
        }
        self.health.samples = left.len() as u64;
        // Neither is known of a part.
        (self.health.coverage, self.health.occurrences) = (None, None);
        let of = |duration: Nanos| times.end.min(duration).saturating_since(times.start);
        self.meta.duration = self.meta.duration.map(of);
        self.timeline = Some(left);
        true
    }

    /// Leaves the samples of some threads.
    pub fn keep_threads(&mut self, threads: impl Fn(ThreadId) -> bool) {
        let width = self.value_types.len();
        let is_kept: Vec<bool> = self.rows.keys().map(|(thread, ..)| threads(*thread)).collect();
        for (row, _) in
            self.values.chunks_exact_mut(width).zip(&is_kept).filter(|(_, kept)| !**kept)
        {
            row.fill(0);
        }
        let positions: Vec<Option<usize>> =
            is_kept.iter().enumerate().map(|(row, kept)| kept.then_some(row)).collect();
        self.timeline = self.timeline.take().map(|timeline| timeline.with_rows(&positions));
        let samples = self.rows.keys().zip(self.values.chunks_exact(width));
        let count = |sum: u64, values: &[u64]| sum.saturating_add(values[0]);
        self.health.samples = samples.fold(0, |sum, (_, values)| count(sum, values));
    }

    /// Multiplies one value of all samples so that their sum becomes `total`, to the unit. Nothing
    /// happens to a value whose sum is 0.
    pub fn scale(&mut self, value: usize, total: u64) {
        let sum = u128::from(self.total(value).0);
        if sum == 0 {
            return;
        }
        // What rounding takes from one sample the next ones get.
        let (mut seen, mut given) = (0_u128, 0_u64);
        for row in self.values.chunks_exact_mut(self.value_types.len()) {
            let Some(weight) = row.get_mut(value) else { continue };
            // A sum beyond 64 bits counts as the largest.
            seen = sum.min(seen + u128::from(*weight));
            let until = u64::try_from(seen * u128::from(total) / sum).unwrap_or(u64::MAX);
            (*weight, given) = (until - given, until);
        }
    }

    /// Adds all further pairs of values, each a number of samples and what they stand for, to the first,
    /// which alone is left.
    pub fn add_up_pairs(&mut self) {
        let rows = self.values.chunks_exact(self.value_types.len());
        let sum = |row: &[u64], at: usize| {
            row.iter().skip(at).step_by(2).fold(0, |sum: u64, value| sum.saturating_add(*value))
        };
        self.values = rows.flat_map(|row| [sum(row, 0), sum(row, 1)]).collect();
        self.value_types.truncate(2);
    }

    /// The sum of one value over all samples.
    pub fn total(&self, value: usize) -> Weight {
        self.samples().filter_map(|sample| sample.values.get(value)).map(|v| Weight(*v)).sum()
    }
}

#[cfg(test)]
mod tests;
