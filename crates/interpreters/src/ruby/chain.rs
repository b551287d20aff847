//! The control frames of the execution context that a native stack leads to.

use std::ops::Range;

use super::define::{Frame, define};
use super::layout::{
    BODY, BODY_LEN, CODE, CODE_LEN, CONTEXT, ENVIRONMENT, FIBER, INNERMOST, INSTRUCTIONS,
    METHOD_LEN, NEXT, RubyLayout, STACK, STACK_LEN, THREAD, WORDS,
};
use super::objects::{self, Objects, is_internal};
use crate::catch::{Catcher, Thread};
use crate::caught::{Entries, Entry, Outcome};
use crate::lua::chain::FIRST;
use crate::lua::recall::{Reader, Recall};
use crate::memory::{Memory, Part, Window, word};
use crate::met::Number;

/// The most control frames.
const MOST_FRAMES: usize = 2048;

/// How much of the stack of values is read at once.
const VALUES: usize = 64 * 1024;

/// How much of a native stack there is at most before a stack of values in it.
const MOST_BEFORE: u64 = 1 << 20;

/// The most words of a stack of values.
const MOST_WORDS: u64 = 1 << 27;

/// How many blocks a block is in, at most, until its method is found.
const MOST_LEVELS: usize = 16;

/// Bytes of an environment that are looked at: the method or what else names a class, the one outside, flags.
const ENVIRONMENT_LEN: usize = 24;

/// Of the flags of an environment: what its frame is, and kinds.
const KINDS: u64 = 0x7fff_0001;
const METHOD: u64 = 0x1111_0001;
const BLOCK: u64 = 0x2222_0001;
const CLASS: u64 = 0x3333_0001;
const TOP: u64 = 0x4444_0001;
const IN_C: u64 = 0x5555_0001;
const BLOCK_IN_C: u64 = 0x6666_0001;
const EVAL: u64 = 0x7777_0001;
const RESCUE: u64 = 0x7888_0001;
const DUMMY: u64 = 0x7999_0001;

const KNOWN: [u64; 9] = [METHOD, BLOCK, CLASS, TOP, IN_C, BLOCK_IN_C, EVAL, RESCUE, DUMMY];

/// That it has no environment outside, that who runs it returns to C behind it, that it is the block of a method, that
/// it is of C.
const IS_OUTERMOST: u64 = 0x2;
const RETURNS_TO_C: u64 = 0x20;
const IS_METHOD: u64 = 0x40;
const IS_OF_C: u64 = 0x80;

/// What is kept from one sample to the next.
#[derive(Debug)]
pub(crate) struct Kept {
    frames: Vec<u8>,
    values: Vec<u8>,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept { frames: vec![1; MOST_FRAMES * 64], values: vec![1; VALUES] }
    }
}

/// Writes the frames of an execution context to `entries`, and functions that are new to `catcher`. They are written
/// down as those of a state of Lua are.
pub(crate) fn catch(
    catcher: &mut Catcher,
    (layout, runtime): (&RubyLayout, u64),
    thread: Thread,
    memory: &dyn Memory,
    entries: &mut Entries<'_>,
) -> Outcome {
    // Taken out, so that the catcher can be used meanwhile; both were there from the start.
    let shared = catcher.take_kept(Reader::Ruby);
    let (Some(mut shared), Some(mut kept)) = (shared, catcher.ruby.take()) else {
        return Outcome::NoThread;
    };
    shared.recall.begin(thread, memory);
    let is_context = |bytes: &[u8]| is_context(layout, bytes);
    let mut count = shared.words.look(is_context, thread, memory, &mut catcher.scratch);
    if count == 0 {
        // Fibers come and go, and their addresses come back.
        shared.words.forget();
        count = shared.words.look(is_context, thread, memory, &mut catcher.scratch);
    }
    let found = shared.words.found();
    let mut walk = Walk {
        objects: Objects { layout, runtime, memory },
        thread,
        recall: &mut shared.recall,
        catcher,
        entries,
    };
    let outcome = walk.contexts(found.get(..count).unwrap_or_default(), &mut kept);
    (catcher.lua, catcher.ruby) = (Some(shared), Some(kept));
    outcome
}

/// The stack of values of a thread's context, if that lies within the native stack: the threads of a program, but for
/// its first, have it there.
pub(crate) fn inner_stack(
    catcher: &mut Catcher,
    thread: Thread,
    memory: &dyn Memory,
) -> Option<Range<u64>> {
    let context = catcher.met.in_passing(thread.pid, Number::Ours(thread.tid))?;
    let mut head = [0; 16];
    if !memory.fill(context, &mut head) {
        return None;
    }
    let [start, words] = [STACK, STACK_LEN].map(|at| word(&head, at).unwrap_or(0));
    let is_behind = start.checked_sub(thread.stack_pointer).is_some_and(|len| len <= MOST_BEFORE);
    let end = start.checked_add(words.checked_mul(8).filter(|_| words <= MOST_WORDS)?)?;
    is_behind.then_some(start..end)
}

/// Whether that is how an execution context begins: its frames lie at the end of its stack.
fn is_context(layout: &RubyLayout, bytes: &[u8]) -> bool {
    let at = |at| word(bytes, at).unwrap_or(0);
    let leads = |at: u64| at & 7 == 0 && at > 0xffff && at >> 47 == 0;
    leads(at(FIBER)) && leads(at(THREAD)) && frames_of(layout, bytes).is_some()
}

/// Where the innermost frame of a context is, and how many bytes all take.
fn frames_of(layout: &RubyLayout, context: &[u8]) -> Option<Part> {
    let [stack, words, innermost] =
        [STACK, STACK_LEN, INNERMOST].map(|at| word(context, at).unwrap_or(0));
    let is_stack = stack & 7 == 0 && stack > 0xffff && stack >> 47 == 0;
    let end = stack.checked_add(words.checked_mul(8).filter(|_| words <= MOST_WORDS)?)?;
    let len = usize::try_from(end.checked_sub(innermost)?).ok()?;
    let is_frame = is_stack && innermost >= stack && len > 0;
    (is_frame && len.is_multiple_of(layout.frame_len)).then_some(Part { address: innermost, len })
}

/// A walk outwards.
struct Walk<'w, 'o> {
    objects: Objects<'w>,
    thread: Thread,
    recall: &'w mut Recall,
    catcher: &'w mut Catcher,
    entries: &'w mut Entries<'o>,
}

impl Walk<'_, '_> {
    /// Those of all contexts: a stack may have the addresses of other fibers' on it.
    fn contexts(&mut self, contexts: &[u64], kept: &mut Kept) -> Outcome {
        let mut outcome = Outcome::NoThread;
        for context in contexts {
            let before = self.entries.len();
            match self.context(*context, kept) {
                Outcome::TooDeep => return Outcome::TooDeep,
                Outcome::Read if self.entries.len() > before + 1 => {
                    if outcome != Outcome::Read {
                        let number = Number::Ours(self.thread.tid);
                        self.catcher.met.pass(self.thread.pid, number, *context);
                    }
                    outcome = Outcome::Read;
                }
                found => {
                    self.entries.truncate(before);
                    let is_first = outcome == Outcome::NoThread && found != Outcome::Read;
                    outcome = if is_first { found } else { outcome };
                }
            }
        }
        match outcome {
            Outcome::Read if !self.entries.push(Entry::of_frames()) => Outcome::TooDeep,
            outcome => outcome,
        }
    }

    fn context(&mut self, context: u64, kept: &mut Kept) -> Outcome {
        let (layout, memory) = (self.objects.layout, self.objects.memory);
        let Some(head) = self.recall.get(context, CONTEXT, memory) else {
            return Outcome::Unreadable;
        };
        let stack = word(head, STACK).unwrap_or(0);
        let Some(part) = frames_of(layout, head) else { return Outcome::Torn };
        if part.len > MOST_FRAMES * layout.frame_len {
            return Outcome::TooDeep;
        }
        let Some(frames) = kept.frames.get_mut(..part.len) else { return Outcome::TooDeep };
        if !memory.fill(part.address, frames) {
            return Outcome::Unreadable;
        }
        // The values of frames lie between the start of the stack and the innermost frame.
        let used = used_values(layout, frames, stack);
        let values = kept.values.get_mut(..used).unwrap_or_default();
        let is_read = memory.fill(stack, values);
        let inside = part.address - layout.frame_len as u64;
        let state = Entry { address: context, code: 0, position: inside, function: FIRST };
        if !self.entries.push(state) {
            return Outcome::TooDeep;
        }
        let values =
            Window { start: stack, bytes: if is_read { &kept.values[..used] } else { &[] } };
        let frames = kept.frames.get(..part.len).unwrap_or_default();
        self.all((part.address, frames), values)
    }

    fn all(&mut self, (start, frames): (u64, &[u8]), values: Window<'_>) -> Outcome {
        // What stands behind the last frame that returns to C is of nobody.
        let mut whole = self.entries.len();
        let len = self.objects.layout.frame_len;
        for (address, frame) in (start..).step_by(len).zip(frames.chunks_exact(len)) {
            match self.frame((address, frame), values) {
                Some(Step::Next) => {}
                Some(Step::ReturnsToC) => whole = self.entries.len(),
                Some(Step::Full) => return Outcome::TooDeep,
                None if self.recall.is_exhausted() => return Outcome::TooDeep,
                None => return Outcome::Unreadable,
            }
        }
        self.entries.truncate(whole);
        Outcome::Read
    }

    /// One frame; `None` if it is none.
    fn frame(&mut self, (address, frame): (u64, &[u8]), values: Window<'_>) -> Option<Step> {
        let [next, code, environment] = [NEXT, CODE, ENVIRONMENT].map(|at| word(frame, at));
        let (next, code, environment) = (next?, code?, environment?);
        let [_, _, flags] = self.environment(environment, values)?;
        let kind = flags & KINDS;
        if !KNOWN.contains(&kind) {
            return None;
        }
        if code == 0 || flags & IS_OF_C != 0 || kind == DUMMY {
            let method = self.method(environment, values).filter(|_| kind == IN_C);
            let Some((method, bytes)) = method else { return Some(Step::Next) };
            let frame = Frame::OfC { method: &bytes };
            let function = define(self.catcher, (self.thread.pid, &self.objects), frame);
            let entry = Entry { address: 0, code: method, position: 0, function };
            return Some(self.push(entry, Step::Next));
        }
        let head = self.recall.get(code, CODE_LEN, self.objects.memory)?;
        let (code_flags, body_at) = (word(head, 0)?, word(head, BODY)?);
        let mut body = [0; BODY_LEN];
        body.copy_from_slice(self.recall.get(body_at, BODY_LEN, self.objects.memory)?);
        let instructions = word(&body, INSTRUCTIONS)?;
        let words = crate::memory::half(&body, WORDS)?;
        let behind = next.wrapping_sub(instructions);
        let is_code = is_internal(code_flags, objects::CODE) && instructions != 0;
        if !is_code || !behind.is_multiple_of(8) || behind / 8 > u64::from(words) {
            return None;
        }
        let method = self.method(environment, values);
        let method = method.as_ref().map(|(_, bytes)| &bytes[..]);
        let is_method = kind == BLOCK && flags & IS_METHOD != 0;
        let frame = Frame::Of { code, body: &body, method, is_method };
        let function = define(self.catcher, (self.thread.pid, &self.objects), frame);
        let entry = Entry { address, code: instructions, position: behind / 8, function };
        let returns_to_c = flags & RETURNS_TO_C != 0;
        match self.push(entry, Step::Next) {
            Step::Next if returns_to_c => Some(self.push(Entry::default(), Step::ReturnsToC)),
            step => Some(step),
        }
    }

    fn push(&mut self, entry: Entry, step: Step) -> Step {
        if self.entries.push(entry) { step } else { Step::Full }
    }

    /// What an environment has besides its values: the method, the environment outside, the flags.
    fn environment(&mut self, address: u64, values: Window<'_>) -> Option<[u64; 3]> {
        let start = address.checked_sub(16).filter(|_| address.is_multiple_of(8))?;
        let bytes = match values.get(start, ENVIRONMENT_LEN) {
            Some(bytes) => bytes,
            None => self.recall.get(start, ENVIRONMENT_LEN, self.objects.memory)?,
        };
        Some([word(bytes, 0)?, word(bytes, 8)?, word(bytes, 16)?])
    }

    /// The method that an environment is of, and its bytes; nothing of what is in none.
    fn method(&mut self, environment: u64, values: Window<'_>) -> Option<(u64, [u8; METHOD_LEN])> {
        let memory = self.objects.memory;
        let mut environment = environment;
        for _ in 0..MOST_LEVELS {
            let [mut method, outside, flags] = self.environment(environment, values)?;
            for _ in 0..2 {
                let Some(bytes) = self.recall.get(method, METHOD_LEN, memory) else { break };
                let kind = word(bytes, 0)?;
                if is_internal(kind, objects::METHOD) {
                    return Some((method, bytes.try_into().ok()?));
                }
                // Special variables of the method stand between.
                if !is_internal(kind, objects::VARIABLE) {
                    break;
                }
                method = word(bytes, 8)?;
            }
            if flags & IS_OUTERMOST != 0 {
                return None;
            }
            // The lowest bits say what it is.
            environment = outside & !3;
        }
        None
    }
}

/// What becomes of a walk behind a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Next,
    ReturnsToC,
    Full,
}

/// How much of a stack its frames use: up to the environment of the innermost that lies there.
fn used_values(layout: &RubyLayout, frames: &[u8], stack: u64) -> usize {
    let ends = frames.chunks_exact(layout.frame_len).filter_map(|frame| word(frame, ENVIRONMENT));
    let behind = ends.filter_map(|end| end.checked_sub(stack)?.checked_add(8));
    behind
        .filter_map(|len| usize::try_from(len).ok())
        .filter(|len| *len <= VALUES)
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
