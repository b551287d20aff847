//! Events in, distinct stacks with their weights out.
//!
//! What a sample copied is unwound at once and thrown away: only addresses stay, and of those each
//! distinct stack once. Names are looked up when the recording is over.
use std::sync::Arc;

use flame_events::{Event, EventKind, Found, Processes, RecordLayout, SampleEvent};
use flame_profile::{
    ByteLen, Meta, Nanos, Pid, ProcessAddress, Profile, StackEnd, StackId, Tid, ValueType,
};
use flame_sampler::{Privilege, Session};
use flame_unwind::{
    Architecture, CfiUnwinder, Code, FrameAddress, Registers, StackCopy, StackLimit, Unwinder,
};

use super::completion::{Chains, Growth, KnownFrame, LiveMemory};
use super::debug_places::DebugPlaces;
use super::images::{Copied, Images, OpenImage};
use super::jit::{Deferred, DeferredSample, JitCode, JitTarget};
use super::location::CodeLocation;
use super::mapped_files::Seen;
use super::naming;
use super::short_tasks::ShortTasks;
use crate::config::Complete;
use crate::proc;
use crate::target_files::TargetFiles;
pub use collected::{Collected, value_names};
use collected::{ThreadKey, kernel_locations, mark_of, push, value_types};
use complete::Walked;

mod collected;
mod complete;

/// The position of the number of samples among the values.
pub const SAMPLES_VALUE: usize = 0;
/// The position of the event's own value: nanoseconds for clocks, else occurrences.
pub const EVENT_VALUE: usize = 1;

/// From here on addresses are the kernel's, on both architectures.
const KERNEL_START: ProcessAddress = ProcessAddress(1 << 63);

/// Takes events one by one.
#[derive(Debug)]
pub struct Collector {
    value_types: Vec<ValueType>,
    default_value: usize,
    register_mask: u64,
    wants_user: bool,
    processes: Processes,
    files: TargetFiles,
    unwinder: CfiUnwinder,
    max_depth: usize,
    stack_asked: ByteLen,
    /// The user frames of the sample that is being taken in, innermost first.
    frames: Vec<FrameAddress>,
    /// The same as locations.
    locations: Vec<CodeLocation>,
    /// Which of them are code without a file.
    jit_frames: Vec<(usize, ProcessAddress)>,
    known: Vec<KnownFrame>,
    live: LiveMemory,
    growth: Growth,
    now: Nanos,
    chains: Chains,
    collected: Collected,
    deferred: Deferred,
    unknown_name: Arc<str>,
    short_tasks: ShortTasks,
}

impl Collector {
    /// Of stacks deeper than `max_depth` frames the outer ones are left out.
    pub fn new(
        session: &Session,
        max_depth: usize,
        complete: Complete,
        files: TargetFiles,
    ) -> Collector {
        let default = if session.event().is_clock() { SAMPLES_VALUE } else { EVENT_VALUE };
        let wants_user = session.privilege() != Privilege::Kernel;
        let layout = session.layout();
        let types = value_types(session);
        let mut collector = Collector::of_layout(layout, types, default, wants_user, max_depth);
        collector.collected.images = Images::new(files.clone());
        collector.collected.jit = JitCode::new(files.clone());
        collector.files = files;
        collector.set_stack_asked(session.stack_copy());
        collector.growth = Growth::new(session.stack_copy());
        collector.chains = Chains::new(complete);
        collector
    }

    fn of_layout(
        layout: &RecordLayout,
        value_types: Vec<ValueType>,
        default_value: usize,
        wants_user: bool,
        max_depth: usize,
    ) -> Collector {
        Collector {
            value_types,
            default_value,
            register_mask: layout.fields().user_registers,
            wants_user,
            processes: Processes::default(),
            files: TargetFiles::default(),
            unwinder: CfiUnwinder::new(Architecture::NATIVE),
            max_depth,
            stack_asked: ByteLen(layout.fields().user_stack.into()),
            frames: Vec::new(),
            locations: Vec::new(),
            jit_frames: Vec::new(),
            known: Vec::new(),
            live: LiveMemory::default(),
            growth: Growth::new(ByteLen(layout.fields().user_stack.into())),
            now: Nanos(0),
            chains: Chains::default(),
            collected: Collected::default(),
            deferred: Deferred::default(),
            unknown_name: "[unknown]".into(),
            short_tasks: ShortTasks::default(),
        }
    }

    /// The processes, to enter those that ran before.
    pub fn processes(&mut self) -> &mut Processes {
        &mut self.processes
    }

    /// What was taken in, before it has names, and the processes that it is of.
    pub fn collected(&self) -> (&Collected, &Processes) {
        (&self.collected, &self.processes)
    }

    /// Has debug files looked for there; from now on.
    pub fn look_for_debug_files(&mut self, places: DebugPlaces) {
        self.collected.images.look_for_debug_files(places);
    }

    /// Tasks that have ended so far.
    pub fn ended_tasks(&self) -> u64 {
        self.short_tasks.ended()
    }

    /// Samples taken in so far.
    pub fn samples(&self) -> u64 {
        self.collected.health.samples
    }

    /// Takes in one event.
    pub fn take(&mut self, event: Event<'_>) {
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
            kind => {
                self.short_tasks.apply(&kind);
                self.chains.apply(&kind);
                self.processes.apply(event.time, &kind);
                self.collected.jit.apply(&kind, &self.processes);
            }
        }
    }

    /// Samples copy so many bytes of stack from now on.
    pub fn set_stack_asked(&mut self, bytes: ByteLen) {
        self.stack_asked = bytes;
    }

    /// To be called after each drain: what comes next is younger than what was read of processes.
    /// Gives the bytes of stack to copy from now on, if they are to be more.
    pub fn end_batch(&mut self) -> Option<ByteLen> {
        self.live.start_batch();
        self.growth.due(self.now, &self.chains)
    }

    /// Looks at what runtimes have written about their code. Call it before events are taken in.
    pub fn look_at_jit_code(&mut self) {
        self.collected.jit.look();
        self.intern_settled(false);
    }

    /// Looks up the names of code without a file, when all events were taken in, and sees which of
    /// the others can still be had.
    pub fn name_jit_code(&mut self) {
        self.collected.images.give_up_rewritten();
        if self.collected.jit_names.is_none() {
            self.collected.jit.finish();
            self.intern_settled(true);
            self.collected.finish_cuts(&self.chains);
            self.collected.locate_late_jit(self.now, &self.processes);
            self.collected.jit_names = Some(self.collected.jit.names());
            self.collected.health.notes.extend(self.collected.jit.note());
        }
    }

    /// The processes that ran code without a file.
    pub fn jit_targets(&self) -> Vec<JitTarget> {
        self.collected.jit.targets()
    }

    fn take_sample(&mut self, time: Nanos, sample: &SampleEvent<'_>) {
        // A process that no event told of: its records were lost, or it began to exist between
        // the opening of events and the reading of /proc.
        if !self.processes.knows(sample.pid) {
            proc::enter(&mut self.processes, sample.pid, &self.files);
        }
        self.short_tasks.saw(sample.tid);
        let walked = self.walk(sample);
        self.locate_frames(sample.pid);
        if matches!(self.locations.first(), Some(CodeLocation::Unmapped(_))) {
            self.collected.health.outside_mappings += 1;
        }
        if sample.user_stack.is_some() {
            let cut = match walked {
                Walked::Ended(..) => None,
                Walked::Cut(cut) => Some(cut),
            };
            self.growth.note(self.now, sample.tid, cut);
        }
        let thread = self.thread(sample);
        let values = [1, sample.period];
        self.collected.health.samples += 1;
        let (end, evidence) = match walked {
            Walked::Ended(end, evidence) => (end, evidence),
            Walked::Cut(cut) => {
                let stacks = &mut self.collected.cuts.stacks;
                let stack = push(stacks, StackId::EMPTY, &self.locations, &sample.kernel_chain);
                self.collected.cuts.add(thread, stack, cut, values);
                return;
            }
        };
        *self.collected.health.stack_ends.entry(end).or_default() += 1;
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
        self.take_in(DeferredSample {
            time,
            pid: sample.pid,
            thread,
            path,
            jit,
            evidence,
            period: sample.period,
        });
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
            let Some(sample) = self.deferred.pop_if(settled) else { return };
            self.intern(sample);
        }
    }

    fn intern(&mut self, mut sample: DeferredSample) {
        for (position, address) in &sample.jit {
            let id = self.collected.jit.locate(sample.pid, *address, sample.time, &self.processes);
            sample.path[*position] = CodeLocation::Jit(id);
        }
        let stacks = &mut self.collected.stacks;
        let push = |stack, location: &CodeLocation| stacks.push(stack, *location);
        let stack = sample.path.iter().fold(StackId::EMPTY, push);
        self.collected.add(sample.thread, stack, sample.evidence, [1, sample.period]);
    }

    /// Fills `self.frames` with the user frames, innermost first.
    fn walk(&mut self, sample: &SampleEvent<'_>) -> Walked {
        self.frames.clear();
        if !self.wants_user {
            return Walked::copied(StackEnd::NotRecorded);
        }
        if let Some(values) = &sample.user_registers {
            return self.walk_copy(sample, values.iter().copied());
        }
        if self.register_mask != 0 {
            // Registers were asked for and there are none: a task without user memory, a kernel
            // thread or one that is exiting. Its stack is the kernel's alone.
            return Walked::copied(StackEnd::Root);
        }
        let chain = sample.user_chain.iter().enumerate();
        self.frames.extend(chain.map(|(index, address)| match index {
            0 => FrameAddress::Instruction(*address),
            _ => FrameAddress::Return(*address),
        }));
        if self.frames.len() > self.max_depth {
            self.frames.truncate(self.max_depth);
            return Walked::copied(StackEnd::FrameLimit);
        }
        if !self.frames.is_empty() {
            return Walked::copied(StackEnd::ChainEnd);
        }
        if sample.kernel_chain.is_empty() && sample.ip < KERNEL_START {
            self.frames.push(FrameAddress::Instruction(sample.ip));
        }
        Walked::copied(StackEnd::NotRecorded)
    }

    fn walk_copy(
        &mut self,
        sample: &SampleEvent<'_>,
        values: impl IntoIterator<Item = u64>,
    ) -> Walked {
        let registers = Registers::from_perf(Architecture::NATIVE, self.register_mask, values);
        let bytes = sample.user_stack.unwrap_or_default();
        let copied = ByteLen((bytes.head.len() + bytes.tail.len()) as u64);
        self.collected.health.stack_copies.add(self.stack_asked, copied);
        let start = registers.stack_pointer(Architecture::NATIVE).unwrap_or_default();
        // A copy that stops short need not have come to the end of the stack: the kernel skips
        // pages that are not in memory, such as those of a large array nobody has written to yet.
        let copy = StackCopy::new(start, bytes.head, bytes.tail, StackLimit::CopyFull);
        match self.unwind(sample.pid, &registers, &copy) {
            StackEnd::CopyTooShort if bytes.reached_limit => {
                self.read_on(sample, &registers, copy, StackEnd::CopyTooShort)
            }
            StackEnd::CopyTooShort => self.read_on(sample, &registers, copy, StackEnd::BadValue),
            // Nothing was copied. In the middle of an exec the registers are those of the old
            // program, whose memory is gone already: there is no user stack.
            StackEnd::NotRecorded if !sample.kernel_chain.is_empty() => {
                self.frames.clear();
                Walked::copied(StackEnd::NotRecorded)
            }
            // Code of the program itself ran, so there is a stack: where the stack pointer leads
            // may be nothing to be read.
            StackEnd::NotRecorded if !self.frames.is_empty() => {
                self.read_on(sample, &registers, copy, StackEnd::BadValue)
            }
            end @ (StackEnd::Root | StackEnd::Guessed) => {
                self.locate_frames(sample.pid);
                self.learn_copied(sample);
                Walked::copied(end)
            }
            end => Walked::copied(end),
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

    fn open_image(&mut self, pid: Pid, found: &Found) {
        if let Some(old) = self.processes.behind(pid, found.address) {
            return self.settle(pid, &old);
        }
        if let Some(key) = self.processes.image(found.mapping.image) {
            let seen = Seen { pid, found, time: Some(self.now) };
            self.collected.images.open(key, seen, &mut self.unwinder);
        }
    }

    /// Finds out whether anonymous memory has a copy of the file that was mapped there before.
    fn settle(&mut self, pid: Pid, old: &Found) {
        let image = old.mapping.image;
        let Some(key) = self.processes.image(image) else { return };
        if self.collected.images.get(image).is_none() {
            let seen = Seen { pid, found: old, time: Some(self.now) };
            self.collected.images.open(key, seen, &mut self.unwinder);
        }
        let copy = self.collected.images.copy_in_memory(pid, old);
        let path = key.display_path();
        let note = match copy {
            Copied::No => None,
            Copied::Yes => Some(format!(
                "code of {path} ran from a copy in anonymous memory; its names are the file's"
            )),
            Copied::Unreadable => Some(format!(
                "anonymous memory took the place of code of {path}; the names there are the \
                 file's, which may be wrong: the memory could not be compared with it"
            )),
        };
        self.processes.settle_behind(pid, old.address, copy != Copied::No);
        let notes = &mut self.collected.health.notes;
        notes.extend(note.filter(|note| !notes.contains(note)));
    }

    /// Fills `self.locations` from `self.frames`.
    fn locate_frames(&mut self, pid: Pid) {
        self.jit_frames.clear();
        let mut locations = std::mem::take(&mut self.locations);
        locations.clear();
        for index in 0..self.frames.len() {
            let address = self.frames[index].lookup_address();
            let location = self.locate(pid, address).unwrap_or_else(|| {
                self.jit_frames.push((index, address));
                CodeLocation::Anonymous(pid, address)
            });
            locations.push(location);
        }
        self.locations = locations;
        if !self.jit_frames.is_empty() {
            self.collected.jit.meet(pid, &self.processes);
        }
    }

    /// Where an address is; `None` in code without a file, of which time decides what it is.
    fn locate(&mut self, pid: Pid, address: ProcessAddress) -> Option<CodeLocation> {
        if address >= KERNEL_START {
            // The vsyscall page: mapped by the kernel into user space.
            return Some(CodeLocation::Kernel(address));
        }
        if let Some(old) = self.processes.behind(pid, address) {
            self.settle(pid, &old);
        }
        let Some(found) = self.processes.find(pid, address) else {
            return Some(CodeLocation::Unmapped(address));
        };
        let image = found.mapping.image;
        if self.collected.images.get(image).is_none() {
            self.open_image(pid, &found);
        }
        match self.collected.images.get(image) {
            Some(OpenImage::Anonymous) | None => None,
            Some(_) => Some(CodeLocation::Image(image, found.mapping.to_file_offset(address))),
        }
    }

    /// Notes in which image a walk ended that had no information to go on with.
    fn count_cut(&mut self, pid: Pid, end: StackEnd) {
        let last = self.frames.last().map(|frame| frame.lookup_address());
        let found = last.and_then(|address| self.processes.find(pid, address));
        let key = found.and_then(|found| self.processes.image(found.mapping.image));
        if end != StackEnd::CopyTooShort && key.is_some_and(|key| key.is_anonymous()) {
            self.collected.jit.count_cut(pid, &self.processes);
        }
        if end != StackEnd::NoUnwindInfo {
            return;
        }
        let path = key.map_or_else(|| "[unmapped]".to_owned(), naming::image_name);
        *self.collected.health.no_unwind_info.entry(path).or_default() += 1;
    }

    fn thread(&mut self, sample: &SampleEvent<'_>) -> usize {
        let name = |tid| self.processes.thread_name(tid).unwrap_or(&self.unknown_name).clone();
        let (pid, tid) = (sample.pid, sample.tid);
        let key = ThreadKey { name: name(tid), process: name(Tid(pid.0)), pid, tid };
        self.collected.threads.insert_full(key).0
    }

    /// Names everything, and gives the profile.
    pub fn into_profile(mut self, meta: Meta, sources: naming::Sources<'_>) -> Profile {
        self.collected.health.short_tasks = self.short_tasks.unseen();
        self.name_jit_code();
        let mut profile = Profile::new(self.value_types);
        profile.default_value = self.default_value;
        profile.meta = meta;
        naming::name_all(self.collected, &self.processes, sources, &mut profile);
        profile
    }
}

#[cfg(test)]
mod tests;
