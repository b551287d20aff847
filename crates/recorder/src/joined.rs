//! Which native frames of a sample run which frames of an interpreted program.

use flame_events::{Rest, SampleEvent};
use flame_interpreters::{
    Caught, Entry, Mismatch, NativeFrame, Outcome, Placed, join, join_innermost,
};
use flame_profile::{ProcessAddress, ScriptEnd, StackEnd};
use flame_unwind::{Architecture, Registers, StackCopy, StackLimit};

use crate::interpreter::Interpreter;

/// How much of the stack of a native frame is looked through.
const LARGEST_FRAME: u64 = 4096;

/// That in which LuaJIT's interpreter has the next instruction, by DWARF number: rbx.
const NEXT_INSTRUCTION: u8 = 3;

/// The general registers, by DWARF number.
pub(crate) const REGISTERS: u8 = 32;

/// A sample's native frames, as far as they were unwound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Natives<'w> {
    /// The registers of each.
    pub(crate) registers: &'w [Registers],
    pub(crate) end: StackEnd,
}

/// A sample, its native frames, and which of those run frames of programs, or a script as a whole.
pub(crate) struct Stack<'s, 'e> {
    pub(crate) sample: &'s SampleEvent<'e>,
    pub(crate) natives: Natives<'s>,
    pub(crate) runs: &'s [bool],
    pub(crate) runs_script: &'s dyn Fn(usize) -> bool,
}

/// Frames of a program in their native frames.
#[derive(Debug)]
pub(crate) struct Joined {
    /// Innermost first.
    pub(crate) placed: Vec<Placed>,
    pub(crate) entries: Vec<Entry>,
    /// Whether functions may have been compiled into the one that runs.
    pub(crate) is_in_trace: bool,
    /// Why callers further out are missing; `None` where they are there.
    pub(crate) lacks: Option<ScriptEnd>,
}

/// Joins what was caught with a sample with its native frames, or says why there is nothing. Frames beyond
/// `max_depth` are left out.
pub(crate) fn joined(
    stack: &Stack<'_, '_>,
    image: &Interpreter,
    max_depth: usize,
) -> Result<Joined, ScriptEnd> {
    let caught = caught(stack.sample, image)?;
    let mut entries = caught.entries();
    let lacks = match caught.outcome() {
        Outcome::Read if caught.frame_count() <= max_depth => None,
        Outcome::Read | Outcome::TooDeep => Some(ScriptEnd::TooDeep),
        Outcome::Unreadable => Some(ScriptEnd::Unreadable),
        Outcome::NoThread => return Err(ScriptEnd::NoThread),
        Outcome::Torn => return Err(ScriptEnd::Disagrees),
        Outcome::Late => return Err(ScriptEnd::NotRead),
    };
    let frames = entries.iter().filter(|entry| !entry.is_boundary());
    let is_circle = image.proves_parts() && repeats(frames.take(max_depth));
    let placed = match lacks {
        _ if is_circle => return Err(lacks.unwrap_or(ScriptEnd::Disagrees)),
        None => place(stack, &entries, None)?,
        // The chains of others are proven as a whole.
        Some(lacks) if !image.proves_parts() => return Err(lacks),
        Some(lacks) => {
            let mut depth = 0;
            let is_beyond = |entry: &Entry| {
                depth += usize::from(!entry.is_boundary());
                depth > max_depth
            };
            let beyond = entries.iter().position(is_beyond);
            entries.truncate(beyond.unwrap_or(entries.len()));
            let placed = place(stack, &entries, Some(lacks))?;
            if placed.is_empty() {
                return Err(lacks);
            }
            placed
        }
    };
    let is_in_trace =
        image.language() == "luajit" && caught.trace().is_some_and(|trace| trace.is_trace());
    Ok(Joined { placed, entries, is_in_trace, lacks })
}

/// Whether a frame is there twice: then they are no chain of callers.
fn repeats<'e>(frames: impl Iterator<Item = &'e Entry>) -> bool {
    let mut addresses: Vec<u64> = frames.map(|frame| frame.address).collect();
    addresses.sort_unstable();
    addresses.windows(2).any(|pair| pair[0] == pair[1])
}

/// What was caught with a sample, or why there is nothing.
fn caught<'e>(sample: &SampleEvent<'e>, image: &Interpreter) -> Result<Caught<'e>, ScriptEnd> {
    if image.layout().is_none() {
        return Err(ScriptEnd::UnknownVersion);
    }
    let Rest::Read { script, .. } = sample.user_stack.unwrap_or_default().rest else {
        return Err(ScriptEnd::NotRead);
    };
    let is_of = |caught: &Caught<'_>| caught.language() == image.language();
    Caught::all(script).find(is_of).ok_or(ScriptEnd::Early)
}

/// Places frames in native ones: all of them, or the innermost where it is said why the others are missing.
fn place(
    Stack { sample, natives, runs, runs_script }: &Stack<'_, '_>,
    entries: &[Entry],
    lacks: Option<ScriptEnd>,
) -> Result<Vec<Placed>, ScriptEnd> {
    let pointer = |registers: &Registers| {
        registers.stack_pointer(Architecture::NATIVE).map_or(u64::MAX, |pointer| pointer.0)
    };
    let frame = |(index, (registers, runs)): (usize, (&Registers, &bool))| NativeFrame {
        stack_pointer: pointer(registers),
        runs_frames: *runs,
        runs_script: runs_script(index),
        next: registers.get(NEXT_INSTRUCTION).unwrap_or(0),
    };
    let frames = natives.registers.iter().zip(*runs).enumerate();
    let frames: Vec<NativeFrame> = frames.map(frame).collect();
    let stack = sample.user_stack.unwrap_or_default();
    let start = ProcessAddress(natives.registers.first().map_or(0, pointer));
    let copy = StackCopy::new(start, stack.head, stack.tail, StackLimit::CopyFull);
    let copy = match stack.rest {
        Rest::Read { bytes, .. } => copy.with_rest(bytes),
        Rest::NotRead(_) => copy,
    };
    let word = |address| copy.read_u64(address).ok();
    let holds = |index: usize, value: u64| {
        let registers = natives.registers.get(index);
        if registers
            .is_some_and(|registers| (0..REGISTERS).any(|n| registers.get(n) == Some(value)))
        {
            return true;
        }
        let start = frames.get(index).map_or(u64::MAX, |frame| frame.stack_pointer);
        let end = frames.get(index + 1).map_or(start, |frame| frame.stack_pointer);
        let end = end.min(start.saturating_add(LARGEST_FRAME));
        (start..end).step_by(8).any(|address| word(address) == Some(value))
    };
    if let Some(lacks) = lacks {
        let is_cut = lacks == ScriptEnd::TooDeep;
        return Ok(join_innermost(entries, &frames, is_cut, &word, &holds));
    }
    let is_whole = natives.end == StackEnd::Root;
    join(entries, &frames, is_whole, &word, &holds).map_err(|mismatch| {
        tracing::trace!(?mismatch, ?frames, ?entries, "frames of a script disagree");
        match mismatch {
            Mismatch::OtherInterpreter => ScriptEnd::OtherInterpreter,
            _ => ScriptEnd::Disagrees,
        }
    })
}
