//! Java VMs among the processes: their code is left, and its methods named, by what is in their memory.

use flame_events::{Found, Processes};
use flame_hotspot::{EXPORTS, Layout, Memory, Names, Shown, Tables, Thread, Unknown, Vm};
use flame_profile::{Nanos, Pid, ProcessAddress, StackEnd};
use flame_symbolize::ImageFile;
use flame_unwind::{Left, Registers, RuntimeCaller, RuntimeFrame, StackCopy};
use rustc_hash::FxHashMap;

use crate::SharedMemory;
use crate::runtimes::Runtime;

/// How often a process is looked at again that is no Java VM, or not one yet.
const LOOK_INTERVAL: Nanos = Nanos(50_000_000);
const SELDOM: Nanos = Nanos(2_000_000_000);

/// What is known of a process that has code without a file.
#[derive(Debug)]
enum Seen {
    /// A VM.
    Vm(Box<Vm>),
    /// None that could be read, until it is looked at again.
    Not(Nanos),
    /// One that cannot be read, and why.
    Unknown,
}

/// All Java VMs.
#[derive(Debug)]
pub(crate) struct JavaVms {
    memory: SharedMemory,
    seen: FxHashMap<Pid, Seen>,
    names: Names,
    /// The frames of the last stack that were left, by position, with what they are called.
    met: Vec<(usize, Option<u32>)>,
}

/// Memory of a process.
struct Of<'m>(&'m SharedMemory, Pid);

impl Memory for Of<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        self.0.read(self.1, ProcessAddress(address), into).is_ok()
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
        let (seen, names, met) = (FxHashMap::default(), Names::default(), Vec::new());
        JavaVms { memory, seen, names, met }
    }

    /// A process is another program now, or gone.
    pub(crate) fn forget(&mut self, pid: Pid) {
        self.seen.remove(&pid);
    }

    /// Another stack is walked from here on.
    pub(crate) fn begin_walk(&mut self) {
        self.met.clear();
    }

    /// Whether an address is code of a Java VM; `None` where the process is to be looked at first.
    pub(crate) fn covers(&mut self, pid: Pid, address: ProcessAddress, now: Nanos) -> Option<bool> {
        match self.seen.get_mut(&pid) {
            None => None,
            Some(Seen::Not(until)) => (now < *until).then_some(false),
            Some(Seen::Unknown) => Some(false),
            Some(Seen::Vm(vm)) => Some(vm.covers(address.0, now.0, &Of(&self.memory, pid))),
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
        let seen = match library {
            None => Seen::Not(Nanos(now.0.saturating_add(SELDOM.0))),
            Some((file, found)) => match open(&Of(&self.memory, pid), file, found) {
                Ok(Some(vm)) => Seen::Vm(Box::new(vm)),
                Ok(None) => Seen::Not(Nanos(now.0.saturating_add(LOOK_INTERVAL.0))),
                Err(why) => {
                    tracing::info!(?pid, %why, "Java VM cannot be read");
                    Seen::Unknown
                }
            },
        };
        tracing::debug!(?pid, is_vm = matches!(seen, Seen::Vm(_)), "looked for a Java VM");
        self.seen.insert(pid, seen);
    }

    /// Leaves a frame in code of a VM.
    pub(crate) fn leave(&mut self, pid: Pid, frame: RuntimeFrame<'_>, now: Nanos) -> Left {
        let thread = Sampled(Some((frame.registers, frame.stack)));
        let (address, is_exact) = (frame.address.address().0, frame.address.is_exact());
        let memory = Of(&self.memory, pid);
        let Some(Seen::Vm(vm)) = self.seen.get_mut(&pid) else { return Left::Unknown };
        let asked = flame_hotspot::Frame { pc: address, is_exact, thread: &thread };
        let (left, name) = vm.leave(&asked, now.0, &memory, &mut self.names);
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

    /// What the frame of a number is called.
    pub(crate) fn get(&self, number: u32) -> Option<&Shown> {
        self.names.get(number)
    }
}

/// The VM of a process; `None` where it has not got so far as to have code.
fn open(memory: &Of<'_>, file: &ImageFile, found: &Found) -> Result<Option<Vm>, Unknown> {
    let exports = file.exported(EXPORTS);
    let start = file.to_image_address(found.mapping.offset).ok_or(Unknown::NoTables)?;
    let bias = found.mapping.start.0.wrapping_sub(start.0);
    let mut addresses = [0; EXPORTS.len()];
    for (address, export) in addresses.iter_mut().zip(exports) {
        *address = export.ok_or(Unknown::NoTables)?.address.0.wrapping_add(bias);
    }
    // It may not have been linked so far.
    let Some(tables) = Tables::read(memory, &addresses) else { return Ok(None) };
    let layout = Layout::of(&tables, memory)?;
    Ok(Vm::open(layout, memory))
}
