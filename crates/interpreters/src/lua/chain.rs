//! The calls of the states that a native stack leads to.

use std::hash::Hasher;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHasher};

use super::define::{MOST_LOOKS, Source, define, define_children, told_by};
use super::layout::{
    Array, Begins, FUNCTION, INSIDE, KIND, LuaLayout, MAX_CALL, OUTSIDE, PROTOTYPE, STATE, TOP,
    VALUE,
};
use super::names::{Caller, EVENTS, GC, Name};
use super::recall::{Reader, Recall};
use super::states::{Words, is_state};
use crate::catch::{Catcher, Thread};
use crate::caught::{Entries, Entry, Outcome};
use crate::memory::{Memory, byte, half, word};

/// How much of a state's stack of values is read at once, and in which steps.
const VALUES: u64 = 64 * 1024;
const VALUES_STEP: u64 = 1024;

/// How far behind its start a state has its first call, at most.
const FIRST_CALL: u64 = 256;

/// The most calls of all states; more than that lead in a circle, or are deeper than what is read.
const MOST_CALLS: usize = 1 << 13;

/// How many names of calls are remembered.
const NAMES: usize = 1 << 13;

/// Kinds of values: functions in Lua, in C with values of their own, in C; 5.1 has one for all.
const LUA: u8 = 70;
const C_WITH_VALUES: u8 = 102;
const C: u8 = 22;
const FUNCTION_OF_5_1: u8 = 6;

/// Of a function of 5.1: whether it is one in C.
const IS_C: u32 = 10;

/// What stands in place of the code of frames that are of no function.
const TAILS: u64 = 1;

/// What the boundary before the calls of a state has for a function.
pub(crate) const FIRST: u64 = 1;
pub(super) const COROUTINE: u64 = 2;

/// What is kept from one sample to the next.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) recall: Recall,
    pub(crate) words: Words,
    /// What a function calls another one, by what it is told by and the instruction.
    names: FxHashMap<(u64, u64), Name>,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept {
            recall: Recall::default(),
            words: Words::default(),
            names: FxHashMap::with_capacity_and_hasher(2 * NAMES, FxBuildHasher),
        }
    }
}

/// What a call is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// A function in Lua: its prototype.
    Lua(u64),
    /// In C.
    C(u64),
    /// It begins, or is over.
    Nothing,
}

/// A call as it stands in memory.
#[derive(Clone, Copy, Debug)]
struct Call {
    /// What a native frame that runs it has of it.
    held: u64,
    what: What,
    /// The instruction that runs, by its number.
    position: u64,
    /// Whether there is one: who has called another has.
    has_position: bool,
    /// Whether it begins a loop over instructions, as far as it says so itself.
    begins: bool,
    is_tail: bool,
    is_finalizer: bool,
    prototype: [u8; PROTOTYPE],
    /// What its function is told by.
    function: u64,
}

/// Writes the calls of all states to `entries`, and functions that are new to `catcher`.
pub(crate) fn catch(
    catcher: &mut Catcher,
    layout: &LuaLayout,
    thread: Thread,
    memory: &dyn Memory,
    entries: &mut Entries<'_>,
) -> Outcome {
    // Taken out, so that the catcher can be used meanwhile; it was there from the start.
    let Some(mut kept) = catcher.take_kept(Reader::Lua) else { return Outcome::NoThread };
    let Kept { recall, words, names } = &mut *kept;
    recall.begin(thread, memory);
    if names.len() >= NAMES {
        names.clear();
    }
    let count = words.look(|bytes| is_state(layout, bytes), thread, memory, &mut catcher.scratch);
    let pid = thread.pid;
    let (left, looks) = (MOST_CALLS, MOST_LOOKS);
    let mut walk = Walk { layout, pid, recall, names, memory, catcher, entries, left, looks };
    let outcome = walk.states(words.found().get(..count).unwrap_or_default());
    catcher.lua = Some(kept);
    outcome
}

/// A walk outwards.
struct Walk<'w, 'o> {
    layout: &'w LuaLayout,
    pid: u32,
    recall: &'w mut Recall,
    names: &'w mut FxHashMap<(u64, u64), Name>,
    memory: &'w dyn Memory,
    catcher: &'w mut Catcher,
    entries: &'w mut Entries<'o>,
    /// How many calls may follow, and how often functions may be looked for that others make.
    left: usize,
    looks: usize,
}

/// The values of a state.
#[derive(Clone, Copy, Debug)]
struct Values {
    start: u64,
    len: usize,
}

impl Walk<'_, '_> {
    fn states(&mut self, states: &[u64]) -> Outcome {
        let mut any = false;
        for state in states {
            let before = self.entries.len();
            match self.state(*state) {
                Some(true) => any = true,
                Some(false) => return Outcome::TooDeep,
                None if self.recall.is_exhausted() || self.left == 0 => return Outcome::TooDeep,
                // What was one is none any more.
                None => self.entries.truncate(before),
            }
        }
        match any {
            false => Outcome::NoThread,
            true if self.entries.push(Entry::of_states()) => Outcome::Read,
            true => Outcome::TooDeep,
        }
    }

    /// The calls of a state, innermost first; whether there was room. `None` if it is no state.
    fn state(&mut self, address: u64) -> Option<bool> {
        let layout = self.layout;
        let mut state = [0; STATE];
        state.copy_from_slice(self.recall.get(address, STATE, self.memory)?);
        let at = |at| word(&state, at).unwrap_or(0);
        let values = self.values(at(layout.stack), at(TOP));
        let is_first = layout.first_state.is(address, at(layout.global));
        let start = self.entries.len();
        let kind = if is_first { FIRST } else { COROUTINE };
        let mut has_room = self.push(Entry { address, code: 0, position: 0, function: kind });
        let first_call = layout.array.map(|array| at(array.first));
        let (mut next, mut inner, mut is_open) = (at(layout.call), None::<Call>, false);
        while has_room {
            self.left = self.left.checked_sub(1)?;
            let mut call = [0; MAX_CALL];
            let bytes = call.get_mut(..layout.call_len)?;
            bytes.copy_from_slice(self.recall.get(next, layout.call_len, self.memory)?);
            let outside = match layout.array {
                Some(_) => next.checked_sub(layout.call_len as u64)?,
                None => word(bytes, OUTSIDE)?,
            };
            let is_last = match first_call {
                Some(first) => next == first,
                None => outside == 0 && next.wrapping_sub(address) < FIRST_CALL,
            };
            if inner.is_none() && layout.array.is_none() {
                let inside = word(bytes, INSIDE)?;
                let first = self.entries.get(start)?;
                self.entries.set(start, Entry { position: inside, ..first });
            }
            if is_last {
                break;
            }
            let running = layout.array.filter(|_| inner.is_none());
            let running = running.and_then(|Array { instruction, .. }| word(&state, instruction));
            let outer = self.call((next, bytes), running, values)?;
            next = outside;
            match (&mut inner, outer.what) {
                (None, What::Nothing) => continue,
                (_, What::Nothing) => return None,
                // It is about to give way to what it calls.
                (Some(inner), _) if !outer.has_position => {
                    inner.is_tail = true;
                    continue;
                }
                (inner, _) => has_room = self.finish(inner.as_ref(), Some(&outer), &mut is_open),
            }
            inner = Some(outer);
        }
        Some(has_room && self.finish(inner.as_ref(), None, &mut is_open) && self.close(is_open))
    }

    /// Reads the part of the stack of values where the functions of calls are.
    fn values(&mut self, start: u64, top: u64) -> Values {
        let len = top.wrapping_sub(start).min(VALUES).next_multiple_of(VALUES_STEP) as usize;
        let is_read = self.recall.get(start, len, self.memory).is_some();
        Values { start, len: if is_read { len } else { 0 } }
    }

    fn value(&mut self, address: u64, values: Values) -> Option<(u64, u8)> {
        let at = usize::try_from(address.wrapping_sub(values.start)).unwrap_or(usize::MAX);
        let bytes = match at.checked_add(VALUE).filter(|end| *end <= values.len) {
            Some(end) => self.recall.get(values.start, values.len, self.memory)?.get(at..end)?,
            None => self.recall.get(address, VALUE, self.memory)?,
        };
        Some((word(bytes, 0)?, byte(bytes, KIND)?))
    }

    /// A call; the instruction that runs, where the call does not say it itself.
    fn call(
        &mut self,
        (at, call): (u64, &[u8]),
        running: Option<u64>,
        values: Values,
    ) -> Option<Call> {
        let layout = self.layout;
        let function_at = if layout.array.is_some() { 8 } else { FUNCTION };
        let (function, kind) = self.value(word(call, function_at)?, values)?;
        let what = self.what(function, kind)?;
        let flags = u16::from_le_bytes([byte(call, layout.flags)?, byte(call, layout.flags + 1)?]);
        let (begins, is_tail) = match layout.begins {
            Begins::Set(bit) => (flags & bit != 0, flags & layout.tail != 0),
            Begins::Clear(bit) => (flags & bit == 0, flags & layout.tail != 0),
            Begins::Always => (true, flags & layout.tail != 0),
            Begins::ByCaller => {
                let tails = layout.array.and_then(|array| half(call, array.tails));
                (false, tails.is_some_and(|tails| tails != 0))
            }
        };
        let held = if layout.array.is_some() { function } else { at };
        let mut found = Call {
            held,
            what,
            position: 0,
            has_position: !matches!(what, What::Lua(_)),
            begins,
            is_tail,
            is_finalizer: flags & layout.finalizer != 0,
            prototype: [0; PROTOTYPE],
            function: 0,
        };
        if let What::Lua(prototype) = what {
            let bytes = self.recall.get(prototype, PROTOTYPE, self.memory)?;
            found.prototype.copy_from_slice(bytes);
            let code = word(&found.prototype, layout.of.code)?;
            let count = half(&found.prototype, layout.of.code_len)?;
            let instruction = running.or_else(|| word(call, layout.instruction))?;
            // The next one is what is kept.
            let position = (instruction.wrapping_sub(code) / 4).wrapping_sub(1);
            found.has_position = position < u64::from(count);
            found.position = if found.has_position { position } else { 0 };
        }
        found.function = match what {
            What::Lua(prototype) => told_by(self.pid, layout, (prototype, &found.prototype)),
            What::C(function) => of_c(self.pid, function),
            What::Nothing => 0,
        };
        Some(found)
    }

    /// What a value is a function of.
    fn what(&mut self, value: u64, kind: u8) -> Option<What> {
        let of = |walk: &mut Self| {
            let at = value.checked_add(walk.layout.prototype.into())?;
            walk.recall.word(at, walk.memory)
        };
        Some(match (kind, self.layout.array) {
            (FUNCTION_OF_5_1, Some(_)) => {
                let head = self.recall.get(value, 48, self.memory)?;
                let (is_c, of) = (byte(head, IS_C)? != 0, word(head, self.layout.prototype)?);
                if is_c { What::C(of) } else { What::Lua(of) }
            }
            (LUA, None) => What::Lua(of(self)?),
            (C_WITH_VALUES, None) => What::C(of(self)?),
            (C, None) => What::C(value),
            _ => What::Nothing,
        })
    }

    /// Adds a call, of which it is known now who called it; whether there was room.
    fn finish(&mut self, call: Option<&Call>, caller: Option<&Call>, is_open: &mut bool) -> bool {
        let Some(call) = call else { return true };
        let caller = caller.filter(|caller| matches!(caller.what, What::Lua(_)));
        let name = match caller {
            _ if call.is_tail => Name::Unknown,
            _ if call.is_finalizer => Name::Event(GC),
            Some(caller) => self.name(caller),
            None => Name::Unknown,
        };
        let code = match call.what {
            What::Lua(_) => word(&call.prototype, self.layout.of.code).unwrap_or(0).max(TAILS + 1),
            What::C(function) => {
                // One that nobody names is seen as a native frame.
                let is_shown = name != Name::Unknown && caller.is_some();
                let code = function.max(TAILS + 1);
                return !is_shown || self.frame((0, code), call, (Source::C, name), is_open);
            }
            What::Nothing => return true,
        };
        let source = Source::Lua(&call.prototype);
        let parent = (self.pid, self.caller(call));
        let looked = (&mut *self.recall, self.memory, &mut self.looks);
        define_children(self.catcher, parent, call.function, looked);
        let mut has_room = self.frame((call.held, code), call, (source, name), is_open);
        if has_room && call.is_tail {
            let tails = (Source::Tails, Name::Unknown);
            has_room = self.frame(
                (0, TAILS),
                &Call { position: 0, function: TAILS, ..*call },
                tails,
                is_open,
            );
        }
        let begins = match self.layout.begins {
            Begins::ByCaller => caller.is_none_or(|caller| !self.is_call(caller)),
            _ => call.begins,
        };
        has_room && (!begins || self.close(std::mem::take(is_open)))
    }

    /// Adds a frame; whether there was room.
    fn frame(
        &mut self,
        (address, code): (u64, u64),
        call: &Call,
        source: (Source<'_>, Name),
        is_open: &mut bool,
    ) -> bool {
        *is_open = true;
        let Call { position, function, .. } = *call;
        define(self.catcher, (self.layout, self.memory), function, source);
        self.push(Entry { address, code, position, function })
    }

    /// Ends what one loop over instructions runs, if it runs anything.
    fn close(&mut self, is_open: bool) -> bool {
        !is_open || self.push(Entry::default())
    }

    fn push(&mut self, entry: Entry) -> bool {
        self.entries.push(entry)
    }

    fn name(&mut self, caller: &Call) -> Name {
        let key = (caller.function, caller.position);
        if let Some(name) = self.names.get(&key) {
            return *name;
        }
        let name = self.caller(caller).name(self.recall, self.memory);
        let is_empty = matches!(name, Name::Event(event) if EVENTS.get(event).is_none_or(|event| event.is_empty()));
        let name = if is_empty { Name::Unknown } else { name };
        if self.names.len() < NAMES {
            self.names.insert(key, name);
        }
        name
    }

    fn is_call(&mut self, caller: &Call) -> bool {
        let instruction = self.caller(caller).calling(self.recall, self.memory);
        instruction.is_some_and(|instruction| self.layout.code.is_call(instruction))
    }

    fn caller<'c>(&self, call: &'c Call) -> Caller<'c>
    where
        Self: 'c,
    {
        Caller { layout: self.layout, prototype: &call.prototype, position: call.position }
    }
}

/// A number that no other function in C has.
fn of_c(pid: u32, function: u64) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u32(pid);
    hasher.write_u64(!function);
    hasher.finish() | 3
}

#[cfg(test)]
mod tests;
