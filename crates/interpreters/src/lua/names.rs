//! What a function is called by the instruction that called it: a global, a local, a field, a method, or
//! the event of a metamethod.
//!
//! Which instruction loaded the register of the call is looked for in the instructions before it, as
//! Lua's own tracebacks do it: where two ways lead there, there is no name.

use super::layout::LuaLayout;
use super::recall::Recall;
use crate::memory::{Memory, half, word};

/// How many instructions before a call are looked through.
const WINDOW: u64 = 512;

/// The most local variables of a function.
const LOCALS: usize = 256;

/// How long what names a local is.
const LOCAL: usize = 16;

/// How often a register is loaded from another one.
const MOST_MOVES: usize = 4;

/// The bits of the kind of a value that are its type, and that of strings.
const TYPES: u8 = 0xf;
const STRING: u8 = 4;

/// What a call is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Unknown,
    /// One of [`EVENTS`].
    Event(usize),
    /// The string at that address.
    String(u64),
}

/// What calls a function besides calls.
pub(crate) const EVENTS: [&str; 28] = [
    "__index",
    "__newindex",
    "__gc",
    "__mode",
    "__len",
    "__eq",
    "__add",
    "__sub",
    "__mul",
    "__mod",
    "__pow",
    "__div",
    "__idiv",
    "__band",
    "__bor",
    "__bxor",
    "__shl",
    "__shr",
    "__unm",
    "__bnot",
    "__lt",
    "__le",
    "__concat",
    "__call",
    "__close",
    "for iterator",
    "",
    "",
];

/// The event of finalizers.
pub(super) const GC: usize = 2;

/// A function that calls, as its prototype says, and where.
#[derive(Clone, Copy)]
pub(super) struct Caller<'c> {
    pub(super) layout: &'c LuaLayout,
    pub(super) prototype: &'c [u8],
    /// The instruction that calls, counted from the first one.
    pub(super) position: u64,
}

impl Caller<'_> {
    /// What it calls the function that it calls.
    pub(super) fn name(&self, recall: &mut Recall, memory: &dyn Memory) -> Name {
        let code = &self.layout.code;
        let Some(instruction) = self.instruction(self.position, recall, memory) else {
            return Name::Unknown;
        };
        let operation = code.operation(instruction);
        if code.calls.contains(&operation) {
            return self.register(code.first(instruction), recall, memory).unwrap_or(Name::Unknown);
        }
        if operation == code.iterates {
            return Name::Event(25);
        }
        match code.event(instruction) {
            Some(event) if event < EVENTS.len() => Name::Event(event),
            _ => Name::Unknown,
        }
    }

    /// The instruction that calls.
    pub(super) fn calling(&self, recall: &mut Recall, memory: &dyn Memory) -> Option<u32> {
        self.instruction(self.position, recall, memory)
    }

    /// What the function is called that the instruction makes, by where it is kept then; of a table its name,
    /// too.
    pub(super) fn made(&self, recall: &mut Recall, memory: &dyn Memory) -> Option<[Name; 2]> {
        let code = &self.layout.code;
        let kept = code.first(self.calling(recall, memory)?);
        let mut position = self.position + 1;
        let mut next = self.instruction(position, recall, memory)?;
        while code.is_captured(next) {
            position += 1;
            next = self.instruction(position, recall, memory)?;
        }
        let here = Caller { position, ..*self };
        if let Some(name) = here.local((kept, position), recall, memory)
            && here.local((kept, position - 1), recall, memory) != Some(name)
        {
            return Some([Name::Unknown, Name::String(name)]);
        }
        let [global, field_of_upvalue, upvalue, any_field, field] = code.stores;
        let (operation, first) = (code.operation(next), code.first(next));
        let name = match operation {
            _ if operation == global && first == kept => next >> code.third,
            _ if operation == upvalue && first == kept => {
                let at = u64::from(code.second(next)) * self.layout.of.upvalue;
                let name =
                    recall.word(self.field(self.layout.of.upvalues).checked_add(at)?, memory)?;
                return Some([Name::Unknown, Name::String(name)]);
            }
            _ if [field_of_upvalue, any_field, field].contains(&operation)
                && code.third(next) == kept =>
            {
                code.key(next)?
            }
            _ => return None,
        };
        let name = Name::String(self.constant(name, recall, memory)?);
        let has_table = [any_field, field].contains(&operation);
        let table = has_table.then(|| here.register(first, recall, memory)).flatten();
        Some([table.unwrap_or(Name::Unknown), name])
    }

    fn field(&self, at: u32) -> u64 {
        word(self.prototype, at).unwrap_or(0)
    }

    /// The prototype of one of the functions that are made in it.
    pub(super) fn child(
        &self,
        number: u32,
        recall: &mut Recall,
        memory: &dyn Memory,
    ) -> Option<u64> {
        let at = self.field(self.layout.of.children).checked_add(8 * u64::from(number))?;
        recall.word(at, memory)
    }

    fn instruction(&self, at: u64, recall: &mut Recall, memory: &dyn Memory) -> Option<u32> {
        let len = half(self.prototype, self.layout.of.code_len)?;
        let address = self.field(self.layout.of.code).checked_add(at.checked_mul(4)?)?;
        (at < u64::from(len))
            .then(|| recall.get(address, 4, memory))?
            .and_then(|bytes| half(bytes, 0))
    }

    /// What was loaded into a register.
    fn register(&self, register: u32, recall: &mut Recall, memory: &dyn Memory) -> Option<Name> {
        let code = &self.layout.code;
        let (mut register, mut position) = (register, self.position);
        for _ in 0..MOST_MOVES {
            let name = self.local((register, position), recall, memory);
            if let Some(name) = name.filter(|name| *name != 0) {
                return Some(Name::String(name));
            }
            position = self.loaded((register, position), recall, memory)?;
            let loads = self.instruction(position, recall, memory)?;
            let operation = code.operation(loads);
            if operation == code.moves {
                register = Some(code.second(loads)).filter(|from| *from < code.first(loads))?;
                continue;
            }
            let name = match operation {
                _ if operation == code.upvalue => {
                    let at = u64::from(code.second(loads)) * self.layout.of.upvalue;
                    recall.word(self.field(self.layout.of.upvalues).checked_add(at)?, memory)?
                }
                _ if operation == code.global => {
                    self.constant(loads >> code.third, recall, memory)?
                }
                _ if [code.field_of_upvalue, code.field, code.method].contains(&operation)
                    || operation == code.any_field && code.bits == 9 =>
                {
                    self.constant(code.constant(loads)?, recall, memory)?
                }
                _ => return None,
            };
            return Some(Name::String(name)).filter(|_| name != 0);
        }
        None
    }

    /// Which instruction before a position has loaded a register there.
    fn loaded(
        &self,
        (register, position): (u32, u64),
        recall: &mut Recall,
        memory: &dyn Memory,
    ) -> Option<u64> {
        let code = &self.layout.code;
        let first = position.saturating_sub(WINDOW);
        let address = self.field(self.layout.of.code).checked_add(4 * first)?;
        let len = usize::try_from(position - first).ok()?;
        let bytes = recall.get(address, 4 * len, memory)?;
        let (mut found, mut target) = (None, 0);
        for (at, bytes) in (first..).zip(bytes.chunks_exact(4)) {
            let Some(instruction) = half(bytes, 0) else { break };
            if let Some(by) = code.jump(instruction) {
                let to = at.saturating_add_signed(by);
                // One that leads beyond the position says nothing of it.
                target = if to <= position { target.max(to) } else { target };
            } else if code.loads(instruction, register) {
                // One that may be jumped over is not the only one.
                found = (at >= target).then_some(at);
            }
        }
        found
    }

    /// The name of the local variable that is in a register at a position.
    fn local(
        &self,
        (register, position): (u32, u64),
        recall: &mut Recall,
        memory: &dyn Memory,
    ) -> Option<u64> {
        let of = &self.layout.of;
        let len = usize::try_from(half(self.prototype, of.locals_len)?).ok()?.min(LOCALS);
        if len == 0 {
            return None;
        }
        let locals = recall.get(self.field(of.locals), len * LOCAL, memory)?;
        let mut left = register;
        for local in locals.chunks_exact(LOCAL) {
            let (from, to) = (u64::from(half(local, 8)?), u64::from(half(local, 12)?));
            if from > position {
                break;
            }
            if position < to {
                match left {
                    // What a parameter is called says nothing of what it is.
                    0 => return word(local, 0).filter(|_| from > 0),
                    _ => left -= 1,
                }
            }
        }
        None
    }

    /// The string that a constant is.
    fn constant(&self, number: u32, recall: &mut Recall, memory: &dyn Memory) -> Option<u64> {
        let at = self.field(self.layout.of.constants).checked_add(16 * u64::from(number))?;
        let value = recall.get(at, 16, memory)?;
        (crate::memory::byte(value, 8)? & TYPES == STRING).then(|| word(value, 0))?
    }
}

#[cfg(test)]
mod tests;
