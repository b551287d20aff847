//! Java VMs among the processes: their code is left, and its methods named, by what is in their memory.

use std::cell::Cell;

use flame_events::{Found, Processes};
use flame_hotspot::{EXPORTS, Layout, Memory, Names, Shown, Tables, Thread, Unknown, Vm};
use flame_image::ImageFile;
use flame_profile::{Bias, Nanos, Pid, ProcessAddress, StackEnd};
use flame_unwind::{Left, Registers, RuntimeCaller, RuntimeFrame, StackCopy};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::mapped_files::open_file;
use crate::runtimes::Runtime;
use crate::{SharedFiles, SharedMemory};

/// How often a process is looked at again that is not a Java VM.
const SELDOM: Nanos = Nanos(2_000_000_000);

/// The same of one that is not one yet: each time twice as late, and so often.
const SOON: Nanos = Nanos(20_000_000);
const MOST_LOOKS: u32 = 10;

/// How often memory is read a second at most, of all VMs, and how many bytes.
const MOST_READS: u32 = 20_000;
const MOST_BYTES: u64 = 64 << 20;

/// How many processes are looked at a second at most, of those that have a VM's file.
const MOST_LOOKED_AT: u32 = 50;

/// How many bytes are kept of what was read of all VMs; beyond that all is read anew.
const MOST_KEPT: usize = 128 << 20;

/// What is known of a process that has code without a file.
#[derive(Debug)]
enum Seen {
    /// A VM.
    Vm(Box<Vm>),
    /// None until then, when it is looked at again, and how often it was.
    Not(Nanos, u32),
    /// One that cannot be read, and why.
    Unknown,
}

impl Seen {
    fn shrink(&mut self) {
        if let Seen::Vm(vm) = self {
            vm.shrink();
        }
    }
}

/// All Java VMs.
#[derive(Debug)]
pub(crate) struct JavaVms {
    memory: SharedMemory,
    seen: FxHashMap<Pid, Seen>,
    /// Those that were read, also when they have ended.
    read: FxHashSet<Pid>,
    names: Names,
    /// The frames of the last stack that were left, by position, with what they are called.
    met: Vec<(usize, Option<u32>)>,
    budget: Budget,
    /// What the VMs take of memory, in bytes.
    kept: usize,
}

/// What may be read within a second: a process can lead to as much of its memory as it likes.
#[derive(Debug, Default)]
struct Budget {
    from: Cell<u64>,
    reads: Cell<u32>,
    bytes: Cell<u64>,
    looks: Cell<u32>,
    was_short: Cell<bool>,
}

/// Memory of a process.
struct Of<'m>(&'m SharedMemory, Pid, &'m Budget);

impl Memory for Of<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let Of(memory, pid, budget) = self;
        budget.allows(into.len() as u64) && memory.read(*pid, ProcessAddress(address), into).is_ok()
    }
}

impl Budget {
    /// It is that late.
    fn advance_to(&self, now: Nanos) {
        if now.0.saturating_sub(self.from.get()) >= 1_000_000_000 {
            self.from.set(now.0);
            self.reads.set(0);
            self.bytes.set(0);
            self.looks.set(0);
        }
    }

    fn allows_look(&self) -> bool {
        self.looks.set(self.looks.get() + 1);
        self.looks.get() <= MOST_LOOKED_AT
    }

    fn allows(&self, bytes: u64) -> bool {
        let (reads, bytes) = (self.reads.get() + 1, self.bytes.get().saturating_add(bytes));
        let is_enough = reads <= MOST_READS && bytes <= MOST_BYTES;
        if is_enough {
            self.reads.set(reads);
            self.bytes.set(bytes);
        } else {
            self.was_short.set(true);
        }
        is_enough
    }
}

/// What of a thread is known at one of its frames.
struct Sampled<'s>(Option<(&'s Registers, &'s StackCopy<'s>)>);

impl Thread for Sampled<'_> {
    fn register(&self, number: u8) -> Option<u64> {
        self.0?.0.get(number)
    }

    fn word(&self, address: u64) -> Option<u64> {
        self.0?.1.read_u64(address).ok()
    }
}

impl JavaVms {
    pub(crate) fn new(memory: SharedMemory) -> JavaVms {
        JavaVms {
            memory,
            seen: FxHashMap::default(),
            read: FxHashSet::default(),
            names: Names::default(),
            met: Vec::new(),
            budget: Budget::default(),
            kept: 0,
        }
    }

    /// A process is another program now, or gone.
    pub(crate) fn forget(&mut self, pid: Pid) {
        if let Some(Seen::Vm(vm)) = self.seen.remove(&pid) {
            self.kept = self.kept.saturating_sub(vm.size());
        }
    }

    /// A VM that took `before` bytes of memory has been asked something.
    fn grow(&mut self, pid: Pid, before: usize) {
        let Some(Seen::Vm(vm)) = self.seen.get(&pid) else { return };
        self.kept = (self.kept + vm.size()).saturating_sub(before);
        if self.kept > MOST_KEPT {
            self.kept = 0;
            self.seen.values_mut().for_each(Seen::shrink);
        }
    }

    /// Another stack is walked from here on.
    pub(crate) fn begin_walk(&mut self) {
        self.met.clear();
    }

    /// Whether an address is code of a Java VM; `None` where the process is to be looked at first.
    pub(crate) fn covers(&mut self, pid: Pid, address: ProcessAddress, now: Nanos) -> Option<bool> {
        self.budget.advance_to(now);
        match self.seen.get_mut(&pid) {
            None => None,
            Some(Seen::Not(until, _)) => (now < *until).then_some(false),
            Some(Seen::Unknown) => Some(false),
            Some(Seen::Vm(vm)) => {
                let before = vm.size();
                let covers = vm.covers(address.0, now.0, &Of(&self.memory, pid, &self.budget));
                self.grow(pid, before);
                Some(covers)
            }
        }
    }

    /// Where a process has the file of a VM.
    pub(crate) fn library(pid: Pid, processes: &Processes) -> Option<Found> {
        let space = processes.space(pid)?;
        let is_vm = |id| {
            let image = processes.image(id);
            image.is_some_and(|image| Runtime::of_image(&image.path) == Some(Runtime::Java))
        };
        let mapping = space.iter().find(|mapping| is_vm(mapping.image))?;
        processes.find(pid, mapping.start)
    }

    /// Looks at a process: `library` is the file of its VM, and where it is mapped.
    pub(crate) fn look(&mut self, pid: Pid, library: Option<(&ImageFile, &Found)>, now: Nanos) {
        let looks = match self.seen.get(&pid) {
            Some(Seen::Not(_, looks)) => *looks,
            _ => 0,
        };
        let soon = Nanos(now.0.saturating_add(SOON.0 << looks.min(MOST_LOOKS)));
        let seen = match library {
            None => Seen::Not(Nanos(now.0.saturating_add(SELDOM.0)), 0),
            Some(_) if !self.budget.allows_look() => Seen::Not(soon, looks),
            Some((file, found)) => match open(&Of(&self.memory, pid, &self.budget), file, found) {
                Ok(Some(vm)) => Seen::Vm(Box::new(vm)),
                Ok(None) if looks < MOST_LOOKS => Seen::Not(soon, looks + 1),
                Ok(None) => Seen::Unknown,
                Err(why) => {
                    tracing::info!(?pid, %why, "Java VM cannot be read");
                    Seen::Unknown
                }
            },
        };
        tracing::debug!(?pid, is_vm = matches!(seen, Seen::Vm(_)), "looked for a Java VM");
        match &seen {
            Seen::Vm(_) => self.read.insert(pid),
            // The number may have been that of another process.
            Seen::Not(..) | Seen::Unknown => self.read.remove(&pid),
        };
        self.forget(pid);
        self.seen.insert(pid, seen);
    }

    /// Whether the code of a process was read.
    pub(crate) fn reads(&self, pid: Pid) -> bool {
        self.read.contains(&pid)
    }

    /// Leaves a frame in code of a VM.
    pub(crate) fn leave(&mut self, pid: Pid, frame: RuntimeFrame<'_>, now: Nanos) -> Left {
        let thread = Sampled(Some((frame.registers, frame.stack)));
        let (address, is_exact) = (frame.address.address().0, frame.address.is_exact());
        let memory = Of(&self.memory, pid, &self.budget);
        let Some(Seen::Vm(vm)) = self.seen.get_mut(&pid) else { return Left::Unknown };
        let asked = flame_hotspot::Frame { pc: address, is_exact, thread: &thread };
        let before = vm.size();
        let (left, name) = vm.leave(&asked, now.0, &memory, &mut self.names);
        self.grow(pid, before);
        self.met.push((frame.position, name));
        match left {
            flame_hotspot::Left::Caller { pc, sp, fp } => Left::Caller(RuntimeCaller {
                address: ProcessAddress(pc),
                stack_pointer: ProcessAddress(sp),
                frame_pointer: fp,
            }),
            flame_hotspot::Left::Needs(address) => {
                let end = frame.stack.read_u64(address).err().map(|error| error.stack_end());
                Left::End(end.unwrap_or(StackEnd::BadValue))
            }
            flame_hotspot::Left::NotProven => Left::Unknown,
        }
    }

    /// The number of what a frame of the last stack is called, if it was left and is known.
    pub(crate) fn met(&self, position: usize) -> Option<u32> {
        let found = self.met.iter().rev().find(|(at, _)| *at == position);
        found.and_then(|(_, name)| *name)
    }

    /// What has to be said of what was read.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let short =
            "the limit for reading memory of Java VMs was reached: some frames have no names";
        let full = "the limit for names of Java VMs was reached: some frames have none";
        let notes = [(self.budget.was_short.get(), short), (self.names.were_too_many(), full)];
        notes.into_iter().filter(|(is_so, _)| *is_so).map(|(_, note)| note.to_owned())
    }

    /// What the frame of a number is called.
    pub(crate) fn get(&self, number: u32) -> Option<&Shown> {
        self.names.get(number)
    }
}

/// Whether the code of a process's Java VM can be read, and its version; `None` where it has no VM, or one
/// that has not begun to work. `files` and `memory` are those of the process.
///
/// # Errors
/// Why it cannot be read.
pub fn look_at_java(
    pid: Pid,
    processes: &Processes,
    files: &SharedFiles,
    memory: &SharedMemory,
) -> Option<Result<u32, Unknown>> {
    let found = JavaVms::library(pid, processes)?;
    let Ok(file) = open_file(processes.image(found.mapping.image)?, pid, &found, files) else {
        return Some(Err(Unknown::NoTables));
    };
    let vm = open(&Of(memory, pid, &Budget::default()), &file, &found);
    vm.map(|vm| vm.map(|vm| vm.version())).transpose()
}

/// The VM of a process; `None` where it has not got so far as to have code.
fn open(memory: &Of<'_>, file: &ImageFile, found: &Found) -> Result<Option<Vm>, Unknown> {
    let exports = file.exported(EXPORTS);
    let start = file.to_image_address(found.mapping.offset).ok_or(Unknown::NoTables)?;
    let bias = Bias::between(found.mapping.start, start);
    let mut addresses = [0; EXPORTS.len()];
    for (address, export) in addresses.iter_mut().zip(exports) {
        *address = bias.to_process_address(export.ok_or(Unknown::NoTables)?.address).0;
    }
    // It may not have been linked so far.
    let Some(tables) = Tables::read(memory, &addresses)? else { return Ok(None) };
    let layout = Layout::of(&tables, memory)?;
    Ok(Vm::open(layout, memory))
}
