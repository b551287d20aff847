//! Events in, distinct stacks with their weights out.
//!
//! What a sample copied is unwound at once and thrown away: only addresses stay, and of those each
//! distinct stack once. Names are looked up when the recording is over.

use std::sync::Arc;

use flame_events::{Event, EventKind, Processes, RecordLayout, SampleEvent};
use flame_profile::{
    Health, Meta, Pid, ProcessAddress, Profile, StackEnd, StackId, StackTable, Tid, ValueType,
};
use flame_sampler::{Privilege, Session};
use flame_symbolize::SymbolizeConfig;
use flame_unwind::{
    Architecture, CfiUnwinder, Code, FrameAddress, Registers, StackCopy, StackLimit, Unwinder,
};
use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxBuildHasher;

use super::images::{Images, OpenImage};
use super::location::CodeLocation;
use super::naming;
use super::perf_maps::Owners;
use crate::proc;

/// The position of the number of samples among the values.
pub(super) const SAMPLES_VALUE: usize = 0;
/// The position of the event's own value: nanoseconds for clocks, else occurrences.
pub(super) const EVENT_VALUE: usize = 1;

/// More frames than this are cut off at the outer end.
const FRAME_LIMIT: usize = 1024;

/// From here on addresses are the kernel's, on both architectures.
const KERNEL_START: ProcessAddress = ProcessAddress(1 << 63);

/// A thread as samples saw it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ThreadKey {
    pub(super) name: Arc<str>,
    pub(super) process: Arc<str>,
    pub(super) pid: Pid,
    pub(super) tid: Tid,
}

/// What a recording has become before anything has a name.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) stacks: StackTable<CodeLocation>,
    pub(super) threads: IndexSet<ThreadKey, FxBuildHasher>,
    /// (position in `threads`, stack) and the two values.
    pub(super) samples: IndexMap<(usize, StackId), [u64; 2], FxBuildHasher>,
    pub(super) images: Images,
    pub(super) owners: Owners,
    pub(super) health: Health,
}

/// Takes events one by one.
#[derive(Debug)]
pub(super) struct Collector {
    value_types: Vec<ValueType>,
    default_value: usize,
    register_mask: u64,
    wants_user: bool,
    processes: Processes,
    unwinder: CfiUnwinder,
    frames: Vec<FrameAddress>,
    collected: Collected,
    unknown_name: Arc<str>,
}

/// The values that samples of a session have: how many they are, and what they stand for.
fn value_types(session: &Session) -> Vec<ValueType> {
    let event = session.event();
    let own = match event.is_clock() {
        true => ValueType::new("cpu", "nanoseconds"),
        false => ValueType::new(event.name.clone(), "count"),
    };
    vec![ValueType::samples(), own]
}

/// The names of those values, for `--value`.
pub(super) fn value_names(session: &Session) -> Vec<String> {
    value_types(session).into_iter().map(|value| value.name).collect()
}

impl Collector {
    pub(super) fn new(session: &Session) -> Collector {
        let default = if session.event().is_clock() { SAMPLES_VALUE } else { EVENT_VALUE };
        let wants_user = session.privilege() != Privilege::Kernel;
        Collector::of_layout(session.layout(), value_types(session), default, wants_user)
    }

    fn of_layout(
        layout: &RecordLayout,
        value_types: Vec<ValueType>,
        default_value: usize,
        wants_user: bool,
    ) -> Collector {
        Collector {
            value_types,
            default_value,
            register_mask: layout.fields().user_registers,
            wants_user,
            processes: Processes::default(),
            unwinder: CfiUnwinder::new(Architecture::NATIVE),
            frames: Vec::new(),
            collected: Collected::default(),
            unknown_name: "[unknown]".into(),
        }
    }

    /// The processes, to enter those that ran before.
    pub(super) fn processes(&mut self) -> &mut Processes {
        &mut self.processes
    }

    /// Samples taken in so far.
    pub(super) fn samples(&self) -> u64 {
        self.collected.health.samples
    }

    /// Sets how many records were lost in all.
    pub(super) fn set_losses(&mut self, lost: u64) {
        self.collected.health.lost_records = lost;
    }

    /// Takes in one event.
    pub(super) fn take(&mut self, event: Event<'_>) {
        match event.kind {
            EventKind::Sample(sample) => self.take_sample(&sample),
            EventKind::Throttle => self.collected.health.throttled += 1,
            EventKind::Undecodable(error) => {
                tracing::debug!(%error, "record left out");
                self.collected.health.undecodable_records += 1;
            }
            kind => self.processes.apply(event.time, &kind),
        }
    }

    fn take_sample(&mut self, sample: &SampleEvent<'_>) {
        // A process that no event told of: its records were lost, or it began to exist between
        // the opening of events and the reading of /proc.
        if !self.processes.knows(sample.pid) {
            proc::enter(&mut self.processes, sample.pid);
        }
        let end = self.walk(sample);
        *self.collected.health.stack_ends.entry(end).or_default() += 1;
        let mut stack = StackId::EMPTY;
        if end.is_truncated() {
            stack = self.collected.stacks.push(stack, CodeLocation::Truncated);
            self.count_cut(sample.pid, end);
        }
        for index in (0..self.frames.len()).rev() {
            let address = self.frames[index].lookup_address();
            let location = self.locate(sample.pid, address);
            stack = self.collected.stacks.push(stack, location);
        }
        for index in (0..sample.kernel_chain.len()).rev() {
            // All but the innermost are return addresses.
            let address = sample.kernel_chain[index].0.saturating_sub(u64::from(index > 0));
            let location = CodeLocation::Kernel(ProcessAddress(address));
            stack = self.collected.stacks.push(stack, location);
        }
        let thread = self.thread(sample);
        let values = self.collected.samples.entry((thread, stack)).or_default();
        values[SAMPLES_VALUE] += 1;
        values[EVENT_VALUE] = values[EVENT_VALUE].saturating_add(sample.period);
        self.collected.health.samples += 1;
    }

    /// Fills `self.frames` with the user frames, innermost first.
    fn walk(&mut self, sample: &SampleEvent<'_>) -> StackEnd {
        self.frames.clear();
        if !self.wants_user {
            return StackEnd::NotRecorded;
        }
        if let Some(values) = &sample.user_registers {
            return self.unwind(sample, values.iter().copied());
        }
        if self.register_mask != 0 {
            // Registers were asked for and there are none: a task without user memory, a kernel
            // thread or one that is exiting. Its stack is the kernel's alone.
            return StackEnd::Root;
        }
        let chain = sample.user_chain.iter().enumerate();
        self.frames.extend(chain.map(|(index, address)| match index {
            0 => FrameAddress::Instruction(*address),
            _ => FrameAddress::Return(*address),
        }));
        if !self.frames.is_empty() {
            return StackEnd::ChainEnd;
        }
        if sample.kernel_chain.is_empty() && sample.ip < KERNEL_START {
            self.frames.push(FrameAddress::Instruction(sample.ip));
        }
        StackEnd::NotRecorded
    }

    fn unwind(
        &mut self,
        sample: &SampleEvent<'_>,
        values: impl IntoIterator<Item = u64>,
    ) -> StackEnd {
        let registers = Registers::from_perf(Architecture::NATIVE, self.register_mask, values);
        let bytes = sample.user_stack.unwrap_or_default();
        let limit = match bytes.reached_limit {
            true => StackLimit::CopyFull,
            false => StackLimit::StackEnded,
        };
        let start = registers.stack_pointer(Architecture::NATIVE).unwrap_or(ProcessAddress(0));
        let stack = StackCopy::new(start, bytes.head, bytes.tail, limit);
        loop {
            // An image that is met for the first time is opened, and the walk begun anew.
            let mut unopened = None;
            let mut find = |address: ProcessAddress| {
                let Some(found) = self.processes.find(sample.pid, address) else {
                    return Code::NotCode;
                };
                self.collected.images.code(&found).unwrap_or_else(|| {
                    unopened.get_or_insert(found);
                    Code::NotCode
                })
            };
            let end =
                self.unwinder.unwind(&mut find, &registers, &stack, FRAME_LIMIT, &mut self.frames);
            let Some(found) = unopened else {
                if end == StackEnd::NotRecorded && !sample.kernel_chain.is_empty() {
                    // In the middle of an exec the registers are those of the old program, whose
                    // memory is gone already: there is no user stack.
                    self.frames.clear();
                }
                return end;
            };
            self.open_image(sample.pid, &found);
        }
    }

    fn open_image(&mut self, pid: Pid, found: &flame_events::Found) {
        if let Some(key) = self.processes.image(found.mapping.image) {
            self.collected.images.open(key, pid, found, &mut self.unwinder);
        }
    }

    fn locate(&mut self, pid: Pid, address: ProcessAddress) -> CodeLocation {
        if address >= KERNEL_START {
            // The vsyscall page: mapped by the kernel into user space.
            return CodeLocation::Kernel(address);
        }
        let Some(found) = self.processes.find(pid, address) else {
            return CodeLocation::Unmapped(address);
        };
        let image = found.mapping.image;
        if self.collected.images.get(image).is_none() {
            self.open_image(pid, &found);
        }
        match self.collected.images.get(image) {
            Some(OpenImage::Anonymous) | None => {
                self.collected.owners.note(pid);
                CodeLocation::Anonymous(pid, address)
            }
            Some(_) => CodeLocation::Image(image, found.mapping.to_file_offset(address)),
        }
    }

    /// Notes in which image a walk ended that had no information to go on with.
    fn count_cut(&mut self, pid: Pid, end: StackEnd) {
        if end != StackEnd::NoUnwindInfo {
            return;
        }
        let last = self.frames.last().map(|frame| frame.lookup_address());
        let found = last.and_then(|address| self.processes.find(pid, address));
        let key = found.and_then(|found| self.processes.image(found.mapping.image));
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
    pub(super) fn into_profile(self, meta: Meta, symbols: &SymbolizeConfig) -> Profile {
        let mut profile = Profile::new(self.value_types);
        profile.default_value = self.default_value;
        profile.meta = meta;
        naming::name_all(self.collected, &self.processes, symbols, &mut profile);
        profile
    }
}

#[cfg(test)]
mod tests;
