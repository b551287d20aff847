//! Catches a thread's chain of frames while the thread stands still.
//!
//! It takes no memory once it exists, so that it may run where nothing may wait.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::caught::{ENTRY, Entries, HEAD};
use crate::known::Layout;
use crate::lua::recall::Reader;
use crate::memory::Memory;
use crate::met::AllMet;
use crate::perl::{stack, subs};
use crate::python::chain;
use crate::python::hints::Hints;
use crate::{lua, luajit, php, ruby};

/// The most entries of a chain.
pub(crate) const MOST_ENTRIES: usize = 4096;

/// Bytes of functions that one sample defines at most; the others follow with later samples.
const DEFINITIONS: usize = 128 * 1024;

/// How many functions one sample defines at most: each takes two readings.
const NEW_FUNCTIONS: u32 = 96;

/// How many functions are remembered as defined.
const DEFINED: usize = 1 << 14;

/// Bytes for what is read at once.
pub(crate) const SCRATCH: usize = 128 * 1024;

/// A thread that was sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Its number, as the kernel's own namespace has it.
    pub tid: u32,
    /// Where its stack ended when it was sampled.
    pub stack_pointer: u64,
    /// Registers that it had then.
    pub registers: SampledRegisters,
}

/// Registers in which an interpreter in assembler has what it runs; 0 where one is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampledRegisters {
    /// The instruction pointer.
    pub instruction: u64,
    /// That which LuaJIT has the next instruction of the program in: rbx.
    pub next: u64,
    /// And the frame that runs: rdx.
    pub base: u64,
    /// That which PHP has the frame that runs in: r14.
    pub frame: u64,
}

/// What is kept from one thread to the next.
#[derive(Debug)]
pub struct Catcher {
    pub(crate) stack: Vec<u8>,
    pub(crate) scratch: Vec<u8>,
    /// Functions as they are written down.
    pub(crate) definitions: Vec<u8>,
    pub(crate) defined_now: u32,
    /// What was said already which function is which.
    defined: FxHashSet<u64>,
    /// Of a chain, what its functions are told by.
    pub(crate) functions: FxHashMap<u64, u64>,
    /// Where frames were that are objects.
    pub(crate) hints: Hints,
    /// What of a perl was looked at last.
    pub(crate) looked: Option<Box<subs::Looked>>,
    /// What of Lua was met, or of PHP.
    pub(crate) lua: Option<Box<lua::chain::Kept>>,
    /// Frames of Ruby, and values of its stack.
    pub(crate) ruby: Option<Box<ruby::chain::Kept>>,
    /// Where interpreters have their threads.
    pub(crate) met: AllMet,
    forgotten: u32,
}

impl Default for Catcher {
    fn default() -> Catcher {
        let room =
            |capacity| FxHashSet::with_capacity_and_hasher(capacity, rustc_hash::FxBuildHasher);
        Catcher {
            stack: vec![1; 16 * 1024],
            scratch: vec![1; SCRATCH],
            definitions: Vec::with_capacity(DEFINITIONS),
            defined_now: 0,
            defined: room(DEFINED),
            functions: FxHashMap::with_capacity_and_hasher(MOST_ENTRIES, rustc_hash::FxBuildHasher),
            hints: Hints::default(),
            looked: Some(Box::default()),
            lua: Some(Box::default()),
            ruby: Some(Box::default()),
            met: AllMet::default(),
            forgotten: 0,
        }
    }
}

impl Catcher {
    /// The most bytes that [`Catcher::catch`] writes.
    pub const MOST: usize = HEAD + MOST_ENTRIES * ENTRY + DEFINITIONS;

    /// The same as [`Catcher::catch`] for each of several interpreters, with where their global states are.
    pub fn catch_all<'l>(
        &mut self,
        interpreters: impl Iterator<Item = (&'l Layout, u64)>,
        thread: Thread,
        memory: &dyn Memory,
        out: &mut [u8],
    ) -> usize {
        interpreters.fold(0, |len, (layout, runtime)| {
            let room = out.get_mut(len..).unwrap_or_default();
            len + self.catch(layout, runtime, thread, memory, room)
        })
    }

    /// Writes to `out`, which should have room for [`Catcher::MOST`] bytes, what [`crate::Caught`] reads:
    /// how many bytes that is. `runtime` is where the interpreter's global state is.
    pub fn catch(
        &mut self,
        layout: &Layout,
        runtime: u64,
        thread: Thread,
        memory: &dyn Memory,
        out: &mut [u8],
    ) -> usize {
        self.definitions.clear();
        self.functions.clear();
        self.defined_now = 0;
        let mut entries = Entries::new(out, MOST_ENTRIES);
        let outcome = match layout {
            Layout::Python(layout) => {
                chain::catch(self, (layout, runtime), thread, memory, &mut entries)
            }
            Layout::Perl(layout) => {
                stack::catch(self, (layout, runtime), thread, memory, &mut entries)
            }
            Layout::Lua(layout) => lua::chain::catch(self, layout, thread, memory, &mut entries),
            Layout::LuaJit(layout) => {
                luajit::chain::catch(self, (layout, runtime), thread, memory, &mut entries)
            }
            Layout::Ruby(layout) => {
                ruby::chain::catch(self, (layout, runtime), thread, memory, &mut entries)
            }
            Layout::Php(layout) => {
                php::chain::catch(self, (layout, runtime), thread, memory, &mut entries)
            }
        };
        entries.finish((layout.language(), outcome), &self.definitions, self.defined_now)
    }

    /// Where an interpreter keeps a stack of its own within the native stack of a thread, in which there is no
    /// native frame; as far as it was seen before.
    pub fn inner_stack(
        &mut self,
        layout: &Layout,
        thread: Thread,
        memory: &dyn Memory,
    ) -> Option<Range<u64>> {
        match layout {
            Layout::Ruby(_) => ruby::chain::inner_stack(self, thread, memory),
            _ => None,
        }
    }

    /// One for threads that nobody keeps standing still: it takes the time to find each of thousands.
    #[must_use]
    pub fn patient(mut self) -> Catcher {
        self.met.be_patient();
        self
    }

    /// What was defined was not heard, or is to be said again to whoever counts so many times: all
    /// functions are new.
    pub fn define_again(&mut self, forgotten: u32) {
        if self.forgotten != forgotten {
            self.forgotten = forgotten;
            self.defined.clear();
        }
    }

    /// What was caught last got lost on its way.
    pub fn was_lost(&mut self) {
        self.defined.clear();
    }

    /// What is kept for one of the languages that are read alike. It is to be put back.
    pub(crate) fn take_kept(&mut self, reader: Reader) -> Option<Box<lua::chain::Kept>> {
        let mut kept = self.lua.take()?;
        (kept.recall.reader, kept.words.reader) = (reader, reader);
        Some(kept)
    }

    /// Whether nobody was told of a function, and somebody is to be now.
    pub(crate) fn is_new(&self, function: u64) -> bool {
        self.defined_now < NEW_FUNCTIONS && !self.defined.contains(&function)
    }

    /// Somebody was.
    pub(crate) fn note_defined(&mut self, function: u64) {
        self.note(function);
        self.defined_now += 1;
    }

    /// The same of what is no function.
    pub(crate) fn note(&mut self, key: u64) {
        if self.defined.len() >= DEFINED / 2 {
            self.defined.clear();
        }
        self.defined.insert(key);
    }
}
