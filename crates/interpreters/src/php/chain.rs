//! The frames of a program, from the innermost on.

use super::define::{Function, define};
use super::layout::{
    BEGINS, EVAL, FLAGS, FRAME, FUNCTION, GENERATOR_FRAME, GIVER, INSTRUCTION, INTERNAL,
    INTERNAL_LEN, MAX_FUNCTION, OBJECT, OUTSIDE, PhpLayout, STRIDE, USER,
};
use crate::catch::{Catcher, Thread};
use crate::caught::{Entries, Entry, Outcome};
use crate::lua::recall::{Reader, Recall};
use crate::memory::{Memory, byte, half, word};

/// The most frames; more than that lead in a circle, or are deeper than what is read.
const MOST_FRAMES: usize = 1 << 12;

/// The most generators that have their values from one another.
const MOST_GIVERS: usize = 64;

/// What the boundary outside of a fiber has for a function: the frames beyond are on another native stack.
pub(super) const FIBER: u64 = 1;

/// What of a frame is needed.
#[derive(Clone, Copy, Debug)]
struct Frame {
    instruction: u64,
    function: u64,
    object: u64,
    begins: bool,
    outside: u64,
}

/// Writes the chain to `entries`, and functions that are new to `catcher`.
pub(crate) fn catch(
    catcher: &mut Catcher,
    (layout, globals): (&PhpLayout, u64),
    thread: Thread,
    memory: &dyn Memory,
    entries: &mut Entries<'_>,
) -> Outcome {
    // Taken out, so that the catcher can be used meanwhile; it was there from the start.
    let Some(mut kept) = catcher.take_kept(Reader::Php) else { return Outcome::NoThread };
    kept.recall.begin(thread, memory);
    let pid = thread.pid;
    let mut walk = Walk { layout, pid, recall: &mut kept.recall, memory, catcher, entries };
    let current = globals.checked_add(layout.current.into());
    let outcome = match current.and_then(|at| walk.recall.word(at, memory)) {
        Some(current) => walk.frames(current, thread.registers.frame),
        None => Outcome::Unreadable,
    };
    catcher.lua = Some(kept);
    outcome
}

/// A walk outwards.
struct Walk<'w, 'o> {
    layout: &'w PhpLayout,
    pid: u32,
    recall: &'w mut Recall,
    memory: &'w dyn Memory,
    catcher: &'w mut Catcher,
    entries: &'w mut Entries<'o>,
}

impl Walk<'_, '_> {
    /// `register` is the frame that runs, where a register has it.
    fn frames(&mut self, current: u64, register: u64) -> Outcome {
        let (mut next, mut has_room, mut left) = (current, true, MOST_FRAMES);
        let (mut is_in_chain, mut inner) = (register == 0, 0);
        while next != 0 && has_room {
            let Some(frame) = self.frame(next) else { return self.missing() };
            let Some(rest) = left.checked_sub(1) else { return Outcome::TooDeep };
            left = rest;
            is_in_chain |= next == register;
            has_room = match frame.function {
                0 => match self.givers((next, frame), inner) {
                    Some(has_room) => has_room,
                    None => return Outcome::Torn,
                },
                _ => match self.push(next, frame) {
                    Some(has_room) => has_room,
                    None => return self.missing(),
                },
            };
            (inner, next) = (next, frame.outside);
        }
        // It is called, or has returned.
        let inside = (!is_in_chain).then(|| self.frame(register)).flatten();
        let is_inside = inside.is_some_and(|frame| frame.outside == current && current != 0);
        let address = if is_inside { register } else { 0 };
        match has_room && self.entries.push(Entry::of_php(address)) {
            true => Outcome::Read,
            false => Outcome::TooDeep,
        }
    }

    fn missing(&self) -> Outcome {
        if self.recall.is_exhausted() { Outcome::TooDeep } else { Outcome::Unreadable }
    }

    fn frame(&mut self, address: u64) -> Option<Frame> {
        let bytes = self.recall.get(address, FRAME, self.memory)?;
        Some(Frame {
            instruction: word(bytes, INSTRUCTION)?,
            function: word(bytes, FUNCTION)?,
            object: word(bytes, OBJECT)?,
            begins: half(bytes, FLAGS)? & BEGINS != 0,
            outside: word(bytes, OUTSIDE)?,
        })
    }

    /// Adds a frame; whether there was room. `None` if it is none.
    fn push(&mut self, address: u64, frame: Frame) -> Option<bool> {
        let (bytes, len) = self.function(frame.function)?;
        let function = Function { layout: self.layout, bytes: bytes.get(..len)? };
        if function.is_internal() && function.name() == 0 {
            // What a fiber begins with.
            let fiber = Entry { address, code: 0, position: 0, function: FIBER };
            return Some(self.entries.push(fiber));
        }
        let told_by = function.told_by(self.pid, self.recall, self.memory);
        define(self.catcher, told_by, function, self.memory);
        if function.is_internal() {
            return Some(self.entries.push(Entry {
                address: 0,
                code: 1,
                position: 0,
                function: told_by,
            }));
        }
        let (code, count) = function.code();
        let position = frame.instruction.wrapping_sub(code) / STRIDE as u64;
        // That of the definition, where it is at none of its own.
        let position = if position < count.into() { position } else { u64::MAX };
        let code = code.max(1);
        let pushed = self.entries.push(Entry { address, code, position, function: told_by });
        Some(pushed && (!frame.begins || self.entries.push(Entry::default())))
    }

    /// A function, and how much of it was read.
    fn function(&mut self, address: u64) -> Option<([u8; MAX_FUNCTION], usize)> {
        let mut function = [0; MAX_FUNCTION];
        let len = self.layout.function_len();
        let (found, len) = match self.recall.get(address, len, self.memory) {
            Some(found) => (found, len),
            // One in C is shorter.
            None => (self.recall.get(address, INTERNAL_LEN, self.memory)?, INTERNAL_LEN),
        };
        function.get_mut(..len)?.copy_from_slice(found.get(..len)?);
        match byte(&function, 0)? {
            INTERNAL => Some((function, INTERNAL_LEN)),
            USER | EVAL if len > INTERNAL_LEN => Some((function, len)),
            _ => None,
        }
    }

    /// Adds the generators that wait for values of the one that runs: what stands for them is in the one that
    /// was asked, and each leads to the one that it has its values from. Whether there was room; `None` if that is
    /// not the one that runs, whose frame is `inner`.
    fn givers(&mut self, (address, frame): (u64, Frame), inner: u64) -> Option<bool> {
        let behind = address.wrapping_sub(frame.object);
        // Frames of no function stand elsewhere, too.
        if frame.object == 0 || behind >= 512 {
            return Some(true);
        }
        let (mut frames, mut count) = ([0; MOST_GIVERS], 0);
        let mut generator = frame.object;
        loop {
            let own = generator.wrapping_add(GENERATOR_FRAME);
            let own = self.recall.word(own, self.memory)?;
            // It is there already.
            if own == inner {
                break;
            }
            *frames.get_mut(count)? = own;
            let giver = generator.wrapping_add(behind).wrapping_sub(GIVER);
            (count, generator) = (count + 1, self.recall.word(giver, self.memory)?);
        }
        for frame in frames.iter().take(count).rev() {
            let found = self.frame(*frame).filter(|found| found.function != 0)?;
            let at = self.entries.len();
            // No loop runs it.
            let pushed = self.push(*frame, Frame { begins: false, ..found })?;
            if let Some(entry) = self.entries.get(at).filter(|entry| !entry.is_boundary()) {
                self.entries.set(at, Entry { address: 0, ..entry });
            }
            if !pushed {
                return Some(false);
            }
        }
        Some(true)
    }
}

#[cfg(test)]
mod tests;
