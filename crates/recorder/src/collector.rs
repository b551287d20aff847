//! Events in, distinct stacks with their weights out.
//!
//! What a sample copied is unwound at once and thrown away: only addresses stay, and of those each
//! distinct stack once. Names are looked up when the recording is over.
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use flame_events::{Event, EventKind, ImageKey, KernelSymbolEvent, Processes, Rest, SampleEvent};
use flame_profile::{
    ByteLen, Evidence, Health, ImageId, Nanos, NotRead, Pid, ProcessAddress, StackEnd, Tid,
};
use flame_symbolize::ImageFile;
use flame_unwind::{
    Architecture, CfiUnwinder, Code, FrameAddress, Registers, StackCopy, StackLimit, Unwinder,
};
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use crate::SharedFiles;
use crate::aggregator::{Aggregator, Rows, SeenStack, ThreadKey, Wait, kernel_locations};
use crate::config::{Options, SAMPLES_VALUE, Stream};
use crate::images::{Images, OpenImage};
use crate::jit::{Deferred, DeferredSample, JitCode, JitNames, JitTarget};
use crate::location::CodeLocation;
use crate::off_cpu::OffCpu;
use crate::proc;
use crate::short_tasks::ShortTasks;

mod locate;
mod waits;

/// From here on addresses are the kernel's, on both architectures.
const KERNEL_START: ProcessAddress = ProcessAddress(1 << 63);

/// What the kernel writes for the numbers of a task that has given them up and still runs, in the
/// kernel, to its end.
const GIVEN_UP: u32 = u32::MAX;

/// Where code was found, and what became known of it meanwhile.
#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) images: Images,
    /// What the kernel said it made while running, in order; by each event that heard of it.
    pub(crate) kernel_code: IndexSet<KernelSymbolEvent, FxBuildHasher>,
    pub(crate) jit: JitCode,
    pub(crate) jit_names: JitNames,
    pub(crate) health: Health,
}

/// An image that samples have hit.
#[derive(Clone, Copy, Debug)]
pub struct SeenImage<'r> {
    /// What the kernel says of it.
    pub key: &'r ImageKey,
    /// How many samples' user stacks it is in.
    pub samples: u64,
    /// Its file, if it could be opened.
    pub file: Option<&'r ImageFile>,
}

/// Takes events one by one.
#[derive(Debug)]
pub(crate) struct Collector {
    register_mask: u64,
    wants_user: bool,
    processes: Processes,
    files: SharedFiles,
    unwinder: CfiUnwinder,
    max_depth: usize,
    stack_asked: ByteLen,
    /// The user frames of the sample that is being taken in, innermost first.
    frames: Vec<FrameAddress>,
    /// The same as locations.
    locations: Vec<CodeLocation>,
    /// Which of them are code without a file.
    jit_frames: Vec<(usize, ProcessAddress)>,
    now: Nanos,
    collected: Collected,
    aggregator: Aggregator,
    deferred: Deferred,
    unknown_name: Arc<str>,
    /// The name of a thread that is so far gone that it has no number any more.
    exiting_name: Arc<str>,
    short_tasks: ShortTasks,
    /// Where samples stand for time off CPU.
    off_cpu: Option<OffCpu<Wait>>,
    /// Waits that are over, of samples that are not settled.
    unsettled: Vec<(Wait, bool, Nanos)>,
    samples: u64,
}

impl Collector {
    pub(crate) fn new(stream: &Stream, options: &Options) -> Collector {
        let files = &options.files;
        let mut images = Images::new(files.clone(), options.memory.clone());
        images.look_for_debug_files(options.debug_places.clone());
        let jit = JitCode::new(files.clone());
        Collector {
            register_mask: stream.user_registers,
            wants_user: stream.has_user,
            processes: Processes::default(),
            files: files.clone(),
            unwinder: CfiUnwinder::new(Architecture::NATIVE),
            max_depth: options.max_depth,
            stack_asked: stream.stack_copy,
            frames: Vec::new(),
            locations: Vec::new(),
            jit_frames: Vec::new(),
            now: Nanos(0),
            collected: Collected {
                images,
                kernel_code: IndexSet::default(),
                jit,
                jit_names: JitNames::default(),
                health: Health::default(),
            },
            aggregator: Aggregator::default(),
            deferred: Deferred::default(),
            unknown_name: "[unknown]".into(),
            exiting_name: "[exiting]".into(),
            short_tasks: ShortTasks::default(),
            off_cpu: options.waits.map(OffCpu::new),
            unsettled: Vec::new(),
            samples: 0,
        }
    }

    /// Enters a process that ran before.
    pub(crate) fn enter(&mut self, pid: Pid) {
        proc::enter(&mut self.processes, pid, &*self.files);
    }

    /// What was found, and the processes that it is of.
    pub(crate) fn collected(&self) -> (&Collected, &Processes) {
        (&self.collected, &self.processes)
    }

    /// Tasks that have ended so far.
    pub(crate) fn ended_tasks(&self) -> u64 {
        self.short_tasks.ended()
    }

    /// Samples taken in so far.
    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }

    /// Takes in one event.
    pub(crate) fn take(&mut self, event: Event<'_>) {
        self.now = event.time;
        match event.kind {
            EventKind::Sample(sample) => self.take_sample(event.time, &sample),
            EventKind::Throttle => self.collected.health.throttled += 1,
            EventKind::KernelSymbol(symbol) if !symbol.is_removed => {
                self.collected.kernel_code.insert(symbol);
            }
            EventKind::Undecodable(error) => {
                tracing::debug!(%error, "record left out");
                self.collected.health.undecodable_records += 1;
            }
            EventKind::Switch { pid, tid, to } => self.take_switch(pid, tid, to),
            kind => {
                self.follow_waits(&kind);
                self.short_tasks.apply(&kind);
                self.processes.apply(event.time, &kind);
                self.collected.jit.apply(&kind, &self.processes);
            }
        }
    }

    /// Looks at what runtimes have written about their code. Call it before events are taken in.
    pub(crate) fn look_at_jit_code(&mut self) {
        self.collected.jit.look();
        self.intern_settled(false);
    }

    /// What there is so far, and with which health; samples that wait for their runtime's log are
    /// not among it.
    pub(crate) fn rows_so_far(&mut self) -> (Rows, Health) {
        self.rows_of(self.aggregator.clone())
    }

    /// All rows, when all events were taken in.
    pub(crate) fn last_rows(&mut self) -> (Rows, Health) {
        self.collected.jit.finish();
        self.intern_settled(true);
        let aggregator = mem::take(&mut self.aggregator);
        self.rows_of(aggregator)
    }

    fn rows_of(&mut self, aggregator: Aggregator) -> (Rows, Health) {
        self.collected.images.give_up_rewritten();
        let mut health = self.collected.health.clone();
        let rows = aggregator.into_rows(&mut health);
        self.collected.jit_names = self.collected.jit.names();
        health.notes.extend(self.collected.jit.note());
        health.short_tasks = self.short_tasks.unseen();
        (rows, health)
    }

    /// The images that rows have, by number.
    pub(crate) fn images<'r>(&'r self, rows: &Rows) -> Vec<SeenImage<'r>> {
        let samples = samples_by_image(rows).into_iter();
        let seen = |(id, samples)| {
            let key = self.processes.image(id)?;
            let file = match self.collected.images.get(id) {
                Some(OpenImage::File(file, _)) => Some(file),
                _ => None,
            };
            Some(SeenImage { key, samples, file })
        };
        samples.filter_map(seen).collect()
    }

    /// The processes that ran code without a file.
    pub(crate) fn jit_targets(&self) -> Vec<JitTarget> {
        self.collected.jit.targets()
    }

    fn take_sample(&mut self, time: Nanos, sample: &SampleEvent<'_>) {
        // A process that no event told of: its records were lost, or it began to exist between
        // the opening of events and the reading of /proc.
        if !self.processes.knows(sample.pid) {
            proc::enter(&mut self.processes, sample.pid, &*self.files);
        }
        self.short_tasks.saw(sample.tid);
        let (end, evidence) = self.walk(sample);
        self.locate_frames(sample.pid);
        if matches!(self.locations.first(), Some(CodeLocation::Unmapped(_))) {
            self.collected.health.outside_mappings += 1;
        }
        let thread = self.thread_of(sample.pid, sample.tid);
        self.samples += 1;
        let mut path = Vec::with_capacity(1 + self.locations.len() + sample.kernel_chain.len());
        if end.is_truncated() {
            path.push(mark_of(end));
            self.count_cut(sample.pid, end);
        }
        let last = path.len() + self.locations.len();
        let place = |(index, address): &(usize, ProcessAddress)| (last - 1 - index, *address);
        let jit = self.jit_frames.iter().map(place).collect();
        path.extend(self.locations.iter().rev());
        path.extend(kernel_locations(&sample.kernel_chain));
        let (pid, period, end) = (sample.pid, sample.period, (end, evidence));
        let waits = self.wait(pid, sample.tid);
        self.take_in(DeferredSample { time, pid, thread, path, jit, end, period, waits });
    }

    /// Samples of code that may be known better soon wait; the others need not.
    fn take_in(&mut self, sample: DeferredSample) {
        if !sample.jit.is_empty() && self.collected.jit.is_open(sample.pid, sample.time) {
            self.deferred.push(sample);
        } else {
            self.intern(sample);
        }
    }

    /// Takes in the samples of which nothing more will become known, or all of them.
    fn intern_settled(&mut self, all: bool) {
        loop {
            let jit = &self.collected.jit;
            let settled = |sample: &DeferredSample| all || !jit.is_open(sample.pid, sample.time);
            let Some(sample) = self.deferred.pop_if(settled) else { break };
            self.intern(sample);
        }
        self.add_settled_waits();
    }

    fn intern(&mut self, mut sample: DeferredSample) {
        for (position, address) in &sample.jit {
            let id = self.collected.jit.locate(sample.pid, *address, sample.time, &self.processes);
            sample.path[*position] = CodeLocation::Jit(id);
        }
        let stack = self.aggregator.stack(&sample.path);
        let seen = SeenStack { thread: sample.thread, stack, end: sample.end };
        match sample.waits {
            Some(wait) => _ = wait.set(seen),
            None => self.aggregator.add(seen, sample.period),
        }
    }

    /// Fills `self.frames` with the user frames, innermost first; how that ended, and what it rests
    /// on.
    fn walk(&mut self, sample: &SampleEvent<'_>) -> (StackEnd, Evidence) {
        self.frames.clear();
        if !self.wants_user {
            return (StackEnd::NotRecorded, Evidence::Copied);
        }
        if let Some(values) = &sample.user_registers {
            return self.walk_copy(sample, values.iter().copied());
        }
        if self.register_mask != 0 {
            // Registers were asked for and there are none: a task without user memory, a kernel
            // thread or one that is exiting. Its stack is the kernel's alone.
            return (StackEnd::Root, Evidence::Copied);
        }
        let chain = sample.user_chain.iter().enumerate();
        self.frames.extend(chain.map(|(index, address)| match index {
            0 => FrameAddress::Instruction(*address),
            _ => FrameAddress::Return(*address),
        }));
        if self.frames.len() > self.max_depth {
            self.frames.truncate(self.max_depth);
            return (StackEnd::FrameLimit, Evidence::Copied);
        }
        if !self.frames.is_empty() {
            return (StackEnd::ChainEnd, Evidence::Copied);
        }
        if sample.kernel_chain.is_empty() && sample.ip < KERNEL_START {
            self.frames.push(FrameAddress::Instruction(sample.ip));
        }
        (StackEnd::NotRecorded, Evidence::Copied)
    }

    fn walk_copy(
        &mut self,
        sample: &SampleEvent<'_>,
        values: impl IntoIterator<Item = u64>,
    ) -> (StackEnd, Evidence) {
        let registers = Registers::from_perf(Architecture::NATIVE, self.register_mask, values);
        let bytes = sample.user_stack.unwrap_or_default();
        let copied = ByteLen((bytes.head.len() + bytes.tail.len()) as u64);
        self.collected.health.stack_copies.add(self.stack_asked, copied);
        let start = registers.stack_pointer(Architecture::NATIVE).unwrap_or_default();
        // A copy that stops short need not have come to the end of the stack: the kernel skips
        // pages that are not in memory, such as those of a large array nobody has written to yet.
        let copy = StackCopy::new(start, bytes.head, bytes.tail, StackLimit::CopyFull);
        let end = match self.unwind(sample.pid, &registers, &copy) {
            StackEnd::CopyTooShort => return self.walk_on(sample, &registers, &copy),
            // Nothing was copied. In the middle of an exec the registers are those of the old
            // program, whose memory is gone already: there is no user stack.
            StackEnd::NotRecorded if !sample.kernel_chain.is_empty() => {
                self.frames.clear();
                StackEnd::NotRecorded
            }
            // Code of the program itself ran, so there is a stack.
            StackEnd::NotRecorded if !self.frames.is_empty() => {
                return self.walk_on(sample, &registers, &copy);
            }
            end => end,
        };
        let evidence = match end {
            StackEnd::Guessed => Evidence::GuessedFrames,
            _ => Evidence::Copied,
        };
        (end, evidence)
    }

    /// Walks a stack that goes on beyond its copy, in what was read of it.
    fn walk_on(
        &mut self,
        sample: &SampleEvent<'_>,
        registers: &Registers,
        copy: &StackCopy<'_>,
    ) -> (StackEnd, Evidence) {
        let bytes = sample.user_stack.unwrap_or_default();
        // Where the stack pointer leads may be nothing to be read.
        let cut = if bytes.reached_limit { StackEnd::CopyTooShort } else { StackEnd::BadValue };
        let health = &mut self.collected.health;
        let whole = match bytes.rest {
            Rest::Read { bytes: &[], interrupted: None } => Err(NotRead::Unreadable),
            Rest::Read { bytes, interrupted: None } => Ok(copy.with_rest(bytes)),
            Rest::Read { bytes, interrupted: Some(other) } => {
                Ok(copy.with_rest(bytes).with_interrupted(other.start, other.bytes))
            }
            Rest::NotRead(why) => Err(why),
        };
        let whole = match whole {
            Ok(whole) => whole,
            Err(why) => {
                *health.not_read.entry(why).or_default() += 1;
                return (cut, Evidence::Copied);
            }
        };
        match self.unwind(sample.pid, registers, &whole) {
            StackEnd::CopyTooShort | StackEnd::NotRecorded => {
                *self.collected.health.not_read.entry(NotRead::TooDeep).or_default() += 1;
                (cut, Evidence::ReadFromProcess)
            }
            StackEnd::Guessed => (StackEnd::Guessed, Evidence::GuessedFrames),
            end => {
                self.collected.health.read_on += u64::from(end == StackEnd::Root);
                (end, Evidence::ReadFromProcess)
            }
        }
    }

    /// Walks one stack into `self.frames`.
    fn unwind(&mut self, pid: Pid, registers: &Registers, stack: &StackCopy<'_>) -> StackEnd {
        loop {
            // An image that is met for the first time is opened, and the walk begun anew.
            let mut unopened = None;
            let mut find = |address: ProcessAddress| {
                let Some(found) = self.processes.find(pid, address) else {
                    return Code::NotCode;
                };
                if self.processes.behind(pid, address).is_some() {
                    unopened.get_or_insert(found);
                    return Code::NotCode;
                }
                self.collected.images.code(&found).unwrap_or_else(|| {
                    unopened.get_or_insert(found);
                    Code::NotCode
                })
            };
            let (limit, frames) = (self.max_depth, &mut self.frames);
            let end = self.unwinder.unwind(&mut find, registers, stack, limit, frames);
            let Some(found) = unopened else { return end };
            self.open_image(pid, &found);
        }
    }

    fn thread_of(&mut self, pid: Pid, tid: Tid) -> usize {
        let name = |tid| match self.processes.thread_name(tid) {
            Some(name) => name.clone(),
            None if tid == Tid(GIVEN_UP) => self.exiting_name.clone(),
            None => self.unknown_name.clone(),
        };
        let (name, process) = (name(tid), name(Tid(pid.0)));
        let pid = Some(pid).filter(|pid| pid.0 != GIVEN_UP);
        let tid = Some(tid).filter(|tid| tid.0 != GIVEN_UP);
        self.aggregator.thread(ThreadKey { name, process, pid, tid })
    }
}

/// In how many samples' user stacks each image is.
pub(crate) fn samples_by_image(rows: &Rows) -> BTreeMap<ImageId, u64> {
    let mut samples = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for ((_, stack, _), values) in &rows.rows {
        seen.extend(rows.stacks.entries(*stack).filter_map(|entry| match entry {
            CodeLocation::Image(image, _) => Some(image),
            _ => None,
        }));
        while let Some(image) = seen.pop_first() {
            *samples.entry(image).or_default() += values[SAMPLES_VALUE];
        }
    }
    samples
}

/// What stands in place of the frames that are missing.
fn mark_of(end: StackEnd) -> CodeLocation {
    match end {
        StackEnd::FrameLimit => CodeLocation::BeyondMaxDepth,
        _ => CodeLocation::Truncated,
    }
}
