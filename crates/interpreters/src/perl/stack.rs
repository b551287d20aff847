//! The contexts that an interpreter is in, and which of them begin a loop over operations.
//!
//! A frame has for its position the statement where it is, until that is known to be which line.

use super::layout::{
    CONTEXTS, INNERMOST, MAX_CONTEXT, OUTSIDE, PerlLayout, RETURNS_TO, STACK, STATEMENT_OUTSIDE,
    TYPE,
};
use super::subs;
use crate::catch::{Catcher, Thread};
use crate::caught::{Entries, Entry, Outcome};
use crate::memory::{Memory, Part, half, word};

/// The most stacks one outside of the other: each callback of perl's own takes one.
const MOST_STACKS: usize = 256;

/// The most contexts, most of which are of loops and blocks.
const MOST_CONTEXTS: usize = 1 << 14;

/// What frames are that are of no sub, in place of its address.
pub(crate) const SCRIPT: u64 = 1;
pub(crate) const EVAL_BLOCK: u64 = 2;
pub(crate) const EVAL_TEXT: u64 = 3;
pub(crate) const REQUIRE: u64 = 4;
pub(crate) const DO: u64 = 5;

/// What a context is of, by its lowest bits, and what other bits say of subs and evals.
const TYPES: u8 = 0xf;
const SORT_BLOCK: u8 = 0;
const SUB: u8 = 9;
const FORMAT: u8 = 10;
const EVAL: u8 = 11;
const DEFER: u8 = 13;
const OF_REGEX: u8 = 0x40;
const OF_REGEX_IN_PLACE: u8 = 0x80;
const IS_TEXT: u8 = 0x20;
const IS_BLOCK: u8 = 0x40;

/// Behind which bits of the first word of a context the number of an eval's operation is.
const EVAL_OPERATION: u32 = 16 + 7;

/// A walk outwards.
#[derive(Debug)]
struct Walk<'w, 'o> {
    layout: &'w PerlLayout,
    entries: &'w mut Entries<'o>,
    /// The statement where the context further out is.
    statement: u64,
    /// How many contexts may follow.
    left: usize,
    /// Whether there were contexts since the last loop that one has to run.
    is_run: bool,
    /// Whether the last one is of a sub that nothing follows: who called it has a loop for it, or it is
    /// the last of a block that is run as a whole, which has one already.
    is_last: bool,
}

/// Writes the chain of an interpreter to `entries`, and subs that are new to `catcher`; the last entry is
/// the interpreter.
pub(crate) fn catch(
    catcher: &mut Catcher,
    (layout, runtime): (&PerlLayout, u64),
    thread: Thread,
    memory: &dyn Memory,
    entries: &mut Entries<'_>,
) -> Outcome {
    let Some(interpreter) = interpreter(layout, runtime, memory) else {
        return Outcome::NoThread;
    };
    let field = |at: u64| Part { address: interpreter.wrapping_add(at), len: 8 };
    let mut state = [0; 16];
    if memory.read(&[field(layout.statement), field(layout.stack)], &mut state) < state.len() {
        return Outcome::Unreadable;
    }
    let [statement, stack] = [0, 8].map(|at| word(&state, at).unwrap_or(0));
    let mut scratch = std::mem::take(&mut catcher.scratch);
    let mut walk =
        Walk { layout, entries, statement, left: MOST_CONTEXTS, is_run: false, is_last: false };
    let outcome = walk.stacks(stack, memory, &mut scratch);
    catcher.scratch = scratch;
    subs::describe(catcher, layout, thread, memory, entries);
    let state = if layout.is_threaded { interpreter } else { 0 };
    match outcome {
        Outcome::Read if !entries.push(Entry::of_interpreter(state)) => Outcome::TooDeep,
        outcome => outcome,
    }
}

fn interpreter(layout: &PerlLayout, runtime: u64, memory: &dyn Memory) -> Option<u64> {
    let mut bytes = [0; 8];
    match layout.is_threaded {
        false => Some(runtime),
        true if memory.fill(runtime, &mut bytes) => {
            Some(u64::from_le_bytes(bytes)).filter(|address| *address != 0)
        }
        true => None,
    }
}

impl Walk<'_, '_> {
    /// All stacks, innermost first. The outermost is the script's.
    fn stacks(&mut self, mut stack: u64, memory: &dyn Memory, scratch: &mut [u8]) -> Outcome {
        for _ in 0..MOST_STACKS {
            let mut bytes = [0; STACK];
            if !memory.fill(stack, &mut bytes) {
                return Outcome::Unreadable;
            }
            match self.stack(&bytes, memory, scratch) {
                Outcome::Read => {}
                outcome => return outcome,
            }
            stack = word(&bytes, OUTSIDE).unwrap_or(0);
            let ends = self.is_last || self.is_run && stack != 0;
            if ends && !self.end() {
                return Outcome::TooDeep;
            }
            if stack == 0 {
                let has_room = self.entries.push(self.frame(SCRIPT, 0, 0)) && self.end();
                return if has_room { Outcome::Read } else { Outcome::TooDeep };
            }
        }
        Outcome::TooDeep
    }

    /// One of them.
    fn stack(&mut self, stack: &[u8], memory: &dyn Memory, scratch: &mut [u8]) -> Outcome {
        let at = word(stack, CONTEXTS).unwrap_or(0);
        let innermost = half(stack, INNERMOST).unwrap_or(0);
        // -1 = none.
        let mut count = usize::try_from(innermost.wrapping_add(1)).unwrap_or(usize::MAX);
        if count > self.left {
            return Outcome::TooDeep;
        }
        self.left -= count;
        let sub = self.layout.innermost_sub.and_then(|at| half(stack, at));
        let size = self.layout.context as usize;
        let most = scratch.len() / MAX_CONTEXT;
        while count > 0 {
            let some = count.min(most);
            let Some(bytes) = scratch.get_mut(..some * size) else { return Outcome::Unreadable };
            if !memory.fill(at.wrapping_add(((count - some) * size) as u64), bytes) {
                return Outcome::Unreadable;
            }
            for (index, context) in bytes.chunks_exact(size).enumerate().rev() {
                let Ok(number) = u32::try_from(count - some + index) else { return Outcome::Torn };
                // The innermost is known to be a sub's before which sub's it is.
                let has_begun = number != innermost || sub.is_none_or(|sub| sub == number);
                if !self.context(context, has_begun) {
                    return Outcome::TooDeep;
                }
            }
            count -= some;
        }
        Outcome::Read
    }

    /// One context; whether there is room for more.
    fn context(&mut self, context: &[u8], has_begun: bool) -> bool {
        let at = |at: u32| word(context, at).unwrap_or(0);
        let (outside, returns_to) = (at(STATEMENT_OUTSIDE), at(RETURNS_TO));
        let flags = context.get(TYPE as usize).copied().unwrap_or(0);
        let kind = flags & TYPES;
        let is_in_place = kind == SUB && flags & OF_REGEX_IN_PLACE != 0;
        if matches!(kind, SUB | FORMAT | EVAL) && !has_begun {
            self.statement = outside;
            return true;
        }
        let is_block = matches!(kind, SORT_BLOCK | DEFER) || kind == SUB && flags & OF_REGEX != 0;
        if std::mem::take(&mut self.is_last) && !is_block && !self.end() {
            return false;
        }
        // That of who calls back from C has nowhere to go on.
        let is_of_c = kind == EVAL && flags & IS_BLOCK != 0 && returns_to == 0;
        let frame = match kind {
            EVAL if !is_of_c => Some(self.eval(context, flags, outside)),
            // It is over when there is no sub.
            SUB | FORMAT if !is_in_place => Some(at(self.layout.sub))
                .filter(|sub| *sub != 0)
                .map(|sub| self.frame(sub, 0, outside)),
            _ => None,
        };
        let is_call = matches!(kind, SUB | FORMAT | EVAL) && !is_in_place;
        if is_call {
            self.statement = outside;
        }
        self.is_run |= !is_of_c;
        if frame.is_some_and(|frame| !self.entries.push(frame)) {
            return false;
        }
        self.is_last = is_call && kind != EVAL && returns_to == 0;
        !(is_in_place || kind == DEFER) || self.end()
    }

    fn eval(&self, context: &[u8], flags: u8, outside: u64) -> Entry {
        let (is_text, is_block) = (flags & IS_TEXT != 0, flags & IS_BLOCK != 0);
        let at = |at: u32| word(context, at).unwrap_or(0);
        let (name, catcher) = (at(self.layout.name), at(self.layout.catcher));
        let operation = half(context, TYPE).unwrap_or(0) >> EVAL_OPERATION;
        let require = self.layout.require();
        match operation {
            _ if is_text => self.frame(EVAL_TEXT, catcher, outside),
            // That of a block has what was there before in place of a name.
            _ if is_block || name == 0 => self.frame(EVAL_BLOCK, catcher, outside),
            _ if operation == require => self.frame(REQUIRE, catcher, name),
            _ => self.frame(DO, catcher, name),
        }
    }

    /// A frame at the statement where the context further in was begun.
    fn frame(&self, code: u64, catcher: u64, other: u64) -> Entry {
        Entry { address: catcher, code, position: self.statement, function: other }
    }

    /// The end of what a loop runs; whether there is room for more.
    fn end(&mut self) -> bool {
        (self.is_run, self.is_last) = (false, false);
        self.entries.push(Entry::default())
    }
}

#[cfg(test)]
mod tests;
