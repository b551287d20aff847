//! Where readers put what they read: stacks with weights, summed up as they come.
//!
//! A reader gives each frame a number once it meets it ([`Sink::frame`]) and hands over stacks of
//! such numbers ([`Sink::add`]). Memory grows with the distinct stacks, not with the samples.

use std::hash::{Hash, Hasher};

use flame_profile::{FrameKind, Nanos, SiblingOrder, ValueType, narrow};
use indexmap::{Equivalent, IndexSet};
use rustc_hash::{FxBuildHasher, FxHasher};

use crate::ReadError;
use crate::nested::NestedIndex;
use crate::options::{NamesOf, ReadOptions, SampleOptions, Selection};
use crate::skipped::{Place, Skipped};
use crate::stacks::{Frame, Stacks, Task};

/// A frame of a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FrameIndex(pub(crate) u32);

/// A thread of a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TaskIndex(pub(crate) u32);

/// A thread as an input has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskName<'n> {
    /// Its name, which becomes the outermost frame.
    pub(crate) name: &'n [u8],
    /// The name of its process, where that is known besides.
    pub(crate) process: Option<&'n [u8]>,
    pub(crate) pid: Option<u32>,
    pub(crate) tid: Option<u32>,
}

/// A stack that was seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample<'s> {
    /// Outermost first.
    pub(crate) stack: &'s [FrameIndex],
    /// One for each value type of the sink.
    pub(crate) weights: &'s [u64],
    /// The thread, where the format tells threads apart: its name becomes the outermost frame.
    pub(crate) task: Option<TaskIndex>,
    /// When it was seen, by the input's clock.
    pub(crate) time: Option<Nanos>,
    pub(crate) cpu: Option<u32>,
}

impl<'s> Sample<'s> {
    /// A stack of which nothing else is known.
    pub(crate) fn new(stack: &'s [FrameIndex], weights: &'s [u64]) -> Sample<'s> {
        Sample { stack, weights, task: None, time: None, cpu: None }
    }
}

/// Sums stacks up.
#[derive(Debug)]
pub(crate) struct Sink {
    options: SampleOptions,
    names: NamesOf,
    is_strict: bool,
    keeps: Keeps,
    frames: IndexSet<Frame, FxBuildHasher>,
    tasks: IndexSet<SelectedTask, FxBuildHasher>,
    stacks: Stacks,
    /// The rows of `stacks`, found by what they hold.
    rows: hashbrown::HashTable<u32>,
    /// The time of the first sample that has one.
    start: Option<Nanos>,
    /// How long after it the last one was taken.
    span: Option<Nanos>,
    skipped: Skipped,
    notes: Vec<String>,
    not_selected: u64,
}

/// What has to be kept apart.
#[derive(Clone, Copy, Debug)]
struct Keeps {
    process: bool,
    pid: bool,
    tid: bool,
    /// Whether samples stay in their order: only neighbours are summed up.
    order: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SelectedTask {
    task: Task,
    is_selected: bool,
}

/// A frame that is looked up without making one.
#[derive(Hash)]
struct FrameKey<'n> {
    name: &'n [u8],
    kind: FrameKind,
}

impl Equivalent<Frame> for FrameKey<'_> {
    fn equivalent(&self, frame: &Frame) -> bool {
        self.kind == frame.kind && self.name == &*frame.name
    }
}

impl Sink {
    /// A sink for stacks of `samples`, until [`Sink::set_values`] says what else they count.
    pub(crate) fn new(options: &ReadOptions) -> Sink {
        let root = options.tree.root;
        let keeps = Keeps {
            process: root.process,
            pid: root.pid,
            tid: root.tid,
            order: options.tree.order != SiblingOrder::Name
                && options.tree.order != SiblingOrder::Weight,
        };
        Sink {
            options: options.samples.clone(),
            names: options.names.clone(),
            is_strict: options.strict,
            keeps,
            frames: IndexSet::default(),
            tasks: IndexSet::default(),
            stacks: Stacks::new(vec![ValueType::samples()]),
            rows: hashbrown::HashTable::new(),
            start: None,
            span: None,
            skipped: Skipped::default(),
            notes: Vec::new(),
            not_selected: 0,
        }
    }

    /// What is asked of readers.
    pub(crate) fn options(&self) -> &SampleOptions {
        &self.options
    }

    /// Where names are looked for.
    pub(crate) fn names(&self) -> &NamesOf {
        &self.names
    }

    /// Whether samples stay in their order, so that they have to come in it.
    pub(crate) fn keeps_order(&self) -> bool {
        self.keeps.order
    }

    /// Whether a frame has one of these names.
    pub(crate) fn is_called(&self, frame: FrameIndex, names: &[String]) -> bool {
        let frame = self.frames.get_index(frame.0 as usize);
        frame.is_some_and(|frame| names.iter().any(|name| name.as_bytes() == &*frame.name))
    }

    /// Says what the weights of all samples mean, before the first of them. The first is the one
    /// that is shown when none is asked for.
    pub(crate) fn set_values(&mut self, values: Vec<ValueType>) {
        debug_assert!(self.stacks.is_empty() && !values.is_empty());
        self.stacks = Stacks::new(values);
    }

    /// The number of a frame. `name` has no annotation; bytes that are not UTF-8 become `\xNN`.
    pub(crate) fn frame(&mut self, name: &[u8], kind: FrameKind) -> FrameIndex {
        let kind = match kind {
            FrameKind::User if flame_profile::is_mark_name(name) => FrameKind::Mark,
            kind => kind,
        };
        let index = match self.frames.get_index_of(&FrameKey { name, kind }) {
            Some(index) => index,
            None => self.frames.insert_full(Frame { name: name.into(), kind }).0,
        };
        FrameIndex(narrow(index))
    }

    /// The same frame as another kind of code.
    pub(crate) fn frame_of_kind(&mut self, frame: FrameIndex, kind: FrameKind) -> FrameIndex {
        match self.frames.get_index(frame.0 as usize).map(|frame| frame.name.clone()) {
            Some(name) => self.frame(&name, kind),
            None => frame,
        }
    }

    /// The same frame with its place in the source behind its name.
    pub(crate) fn frame_at(&mut self, frame: FrameIndex, place: &[u8]) -> FrameIndex {
        let found = self.frames.get_index(frame.0 as usize);
        let Some((name, kind)) = found.map(|frame| (&frame.name, frame.kind)) else { return frame };
        let name = [name, &b":"[..], place].concat();
        self.frame(&name, kind)
    }

    /// Whether no stack was added yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// The number of a thread.
    pub(crate) fn task(&mut self, task: TaskName<'_>) -> TaskIndex {
        let Keeps { process, pid, tid, .. } = self.keeps;
        let is_selected = self.selects(&task);
        let task = Task {
            name: task.name.into(),
            process: task.process.filter(|_| process).map(Into::into),
            pid: task.pid.filter(|_| pid),
            tid: task.tid.filter(|_| tid),
            // Scripts write `?` for a process whose number is not known, where there is a thread's.
            has_tid: task.tid.is_some(),
        };
        TaskIndex(narrow(self.tasks.insert_full(SelectedTask { task, is_selected }).0))
    }

    fn selects(&self, task: &TaskName<'_>) -> bool {
        let selection = &self.options.selection;
        let is_name = |asked: &String| {
            let names = [Some(task.name), task.process];
            names.into_iter().flatten().any(|name| Selection::is_name(asked, name))
        };
        let is_thread = |asked: &String| {
            Selection::is_name(asked, task.name)
                || task.tid.is_some_and(|tid| asked.parse() == Ok(tid))
        };
        let has_pid = task.pid.is_some_and(|pid| selection.pids.contains(&pid));
        (selection.pids.is_empty() || has_pid)
            && (selection.comms.is_empty() || selection.comms.iter().any(is_name))
            && (selection.threads.is_empty() || selection.threads.iter().any(is_thread))
    }

    /// Whether a sample is one of those that are asked for.
    fn takes(&mut self, sample: &Sample<'_>) -> bool {
        let selection = &self.options.selection;
        let task = sample.task.and_then(|task| self.tasks.get_index(task.0 as usize));
        let of_tasks = match task {
            Some(task) => task.is_selected,
            None => {
                selection.pids.is_empty()
                    && selection.comms.is_empty()
                    && selection.threads.is_empty()
            }
        };
        let on_cpu = selection.cpus.is_empty()
            || sample.cpu.is_some_and(|cpu| selection.cpus.contains(&cpu));
        if selection.from.is_none() && selection.to.is_none() {
            return of_tasks && on_cpu;
        }
        let Some(time) = sample.time else { return false };
        let since = time.saturating_since(*self.start.get_or_insert(time));
        self.span = self.span.max(Some(since));
        let in_time = selection.from.is_none_or(|from| since >= from)
            && selection.to.is_none_or(|to| since < to);
        of_tasks && on_cpu && in_time
    }

    /// Adds a sample; one that weighs nothing leaves nothing.
    pub(crate) fn add(&mut self, sample: &Sample<'_>) {
        if !self.takes(sample) {
            self.not_selected += 1;
            return;
        }
        if sample.weights.iter().all(|weight| *weight == 0) {
            return;
        }
        let task = sample.task.map_or(Stacks::NO_TASK, |task| task.0);
        self.add_row(task, sample.stack, sample.weights);
    }

    /// The stack of a frame below another stack of a thread, or as its outermost one. Where samples stay in
    /// their order it is another one unless nothing stands between.
    pub(crate) fn nested(
        &mut self,
        above: Option<NestedIndex>,
        task: Option<TaskIndex>,
        frame: FrameIndex,
    ) -> NestedIndex {
        let task = task.map_or(Stacks::NO_TASK, |task| task.0);
        let values = self.stacks.value_types().len();
        self.stacks.nested.node(above, (task, frame), self.keeps.order, values)
    }

    /// Adds a sample of such a stack, in place of its own.
    pub(crate) fn add_nested(&mut self, stack: NestedIndex, sample: &Sample<'_>) {
        if self.takes(sample) {
            self.stacks.nested.add(stack, sample.weights);
        } else {
            self.not_selected += 1;
        }
    }

    /// Adds a stack that was collected from its innermost frame on, if there is one, and empties it.
    pub(crate) fn end_stack(
        &mut self,
        stack: &mut Vec<FrameIndex>,
        task: Option<TaskIndex>,
        weight: u64,
    ) {
        if !stack.is_empty() {
            stack.reverse();
            self.add(&Sample { task, ..Sample::new(stack, &[weight]) });
            stack.clear();
        }
    }

    fn add_row(&mut self, task: u32, stack: &[FrameIndex], weights: &[u64]) {
        if self.keeps.order {
            let last = self.stacks.len().checked_sub(1);
            match last.filter(|last| self.stacks.is_row(*last, task, stack)) {
                Some(last) => self.stacks.add_to(last, weights),
                None => drop(self.stacks.push(task, stack, weights)),
            }
            return;
        }
        let hash = hash_row(task, stack);
        let stacks = &self.stacks;
        match self.rows.find(hash, |row| stacks.is_row(*row as usize, task, stack)) {
            Some(row) => self.stacks.add_to(*row as usize, weights),
            None => {
                let row = narrow(self.stacks.push(task, stack, weights));
                let stacks = &self.stacks;
                let hash_of = |row: &u32| {
                    let (task, stack) = stacks.row(*row as usize);
                    hash_row(task, stack)
                };
                self.rows.insert_unique(hash, row, hash_of);
            }
        }
    }

    /// Counts a part that cannot be read, and keeps the first few: `reason` goes on after the
    /// place, `the count is negative`.
    ///
    /// # Errors
    /// Where nothing may be skipped.
    pub(crate) fn skip(
        &mut self,
        place: Place,
        reason: &str,
        text: &[u8],
    ) -> Result<(), ReadError> {
        if self.is_strict {
            return Err(ReadError::Strict { place, reason: reason.to_owned() });
        }
        self.skipped.add(place, reason, text);
        Ok(())
    }

    /// Says that the input breaks off at that place, where `what` is wrong.
    ///
    /// # Errors
    /// Where nothing may be skipped.
    pub(crate) fn cut_short(&mut self, place: Place, what: &str) -> Result<(), ReadError> {
        match self.is_strict {
            true => self.complain(place, what),
            false => self.complain(place, &format!("{what}; everything before that was read")),
        }
    }

    /// Says that the input is not read as it is from that place on.
    ///
    /// # Errors
    /// Where that is to be an error.
    pub(crate) fn complain(&mut self, place: Place, what: &str) -> Result<(), ReadError> {
        if self.is_strict {
            return Err(ReadError::Strict { place, reason: what.to_owned() });
        }
        self.note(what);
        Ok(())
    }

    /// Says something about the input, once.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// An empty sink for another part of the same input, read by another thread.
    pub(crate) fn fork(&self) -> Sink {
        Sink {
            options: self.options.clone(),
            names: self.names.clone(),
            is_strict: self.is_strict,
            keeps: self.keeps,
            frames: IndexSet::default(),
            tasks: IndexSet::default(),
            stacks: Stacks::new(self.stacks.value_types().to_vec()),
            rows: hashbrown::HashTable::new(),
            start: self.start,
            span: None,
            skipped: Skipped::default(),
            notes: Vec::new(),
            not_selected: 0,
        }
    }

    /// Sets the time that selections count from, where parts of an input are read side by side.
    pub(crate) fn start_at(&mut self, time: Nanos) {
        self.start.get_or_insert(time);
    }

    /// Adds what another part of the input has.
    pub(crate) fn merge(&mut self, other: Sink) {
        let frames: Vec<FrameIndex> = other
            .frames
            .into_iter()
            .map(|frame| FrameIndex(narrow(self.frames.insert_full(frame).0)))
            .collect();
        let tasks: Vec<u32> =
            other.tasks.into_iter().map(|task| narrow(self.tasks.insert_full(task).0)).collect();
        let mut stack = Vec::new();
        debug_assert!(other.stacks.nested.is_empty(), "who nests stacks reads alone");
        for row in 0..other.stacks.len() {
            let (task, of_other) = other.stacks.row(row);
            stack.clear();
            stack.extend(of_other.iter().map(|frame| frames[frame.0 as usize]));
            let task = tasks.get(task as usize).copied().unwrap_or(Stacks::NO_TASK);
            self.add_row(task, &stack, other.stacks.weights(row));
        }
        self.skipped.merge(other.skipped);
        other.notes.into_iter().for_each(|note| self.note(note));
        self.not_selected += other.not_selected;
        self.span = self.span.max(other.span);
    }

    /// All frames so far.
    pub(crate) fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter()
    }

    /// Puts others in the place of all frames, for each its own, outermost first.
    pub(crate) fn replace_frames(&mut self, by: Vec<Vec<Frame>>) {
        self.frames.clear();
        let mut number = |frame| FrameIndex(narrow(self.frames.insert_full(frame).0));
        let by: Vec<Vec<FrameIndex>> =
            by.into_iter().map(|frames| frames.into_iter().map(&mut number).collect()).collect();
        let empty = Stacks::new(self.stacks.value_types().to_vec());
        let before = std::mem::replace(&mut self.stacks, empty);
        self.rows.clear();
        let mut stack = Vec::new();
        for row in 0..before.len() {
            let (task, frames) = before.row(row);
            stack.clear();
            stack.extend(frames.iter().flat_map(|frame| &by[frame.0 as usize]));
            self.add_row(task, &stack, before.weights(row));
        }
    }

    /// Everything that was put in.
    pub(crate) fn finish(mut self) -> (Stacks, Skipped, Vec<String>) {
        if self.not_selected > 0 {
            let count = self.not_selected;
            self.note(match self.stacks.is_empty() {
                true => self.options.selection.leaves_nothing(self.span),
                false => format!("{count} samples did not match the options and were left out"),
            });
        }
        self.stacks.frames = self.frames.into_iter().collect();
        self.stacks.tasks = self.tasks.into_iter().map(|task| task.task).collect();
        (self.stacks, self.skipped, self.notes)
    }
}

fn hash_row(task: u32, stack: &[FrameIndex]) -> u64 {
    let mut hasher = FxHasher::default();
    task.hash(&mut hasher);
    let (pairs, rest) = stack.as_chunks::<2>();
    for [a, b] in pairs {
        hasher.write_u64(u64::from(a.0) << 32 | u64::from(b.0));
    }
    rest.iter().for_each(|frame| hasher.write_u32(frame.0));
    hasher.finish()
}
