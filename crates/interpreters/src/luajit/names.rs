//! What a function is called by the instruction that called it, as LuaJIT's own tracebacks do it: a global, a
//! local, a field, a method, an upvalue, or the event of a metamethod.

use super::layout::{CONSTANTS, COUNT, LOCALS, PROTOTYPE, SIZE, STRINGS, TEXT, UPVALUES};
use crate::lua::names::Name;
use crate::lua::recall::Recall;
use crate::memory::{Memory, half, word};

/// How many instructions before a call are looked through.
const WINDOW: u64 = 512;

/// The most bytes of names of a function's variables.
const MOST_VARIABLES: u64 = 8192;

/// How often a register is loaded from another one.
const MOST_MOVES: usize = 4;

/// Instructions, by their numbers.
const MOVE: u8 = 18;
const NILS: u8 = 44;
const UPVALUE: u8 = 45;
const GLOBAL: u8 = 54;
const FIELD: u8 = 57;
const CALLS: std::ops::RangeInclusive<u8> = 65..=68;
const ITERATES: std::ops::RangeInclusive<u8> = 69..=70;

/// The event of the function that a loop asks for the next value.
const ITERATOR: usize = 25;

/// Names of variables that a program cannot use, by their numbers.
const INNER_NAMES: u8 = 7;

/// A function that calls: its prototype.
#[derive(Clone, Copy)]
pub(super) struct Caller<'c> {
    pub(super) address: u64,
    pub(super) prototype: &'c [u8],
}

/// The operands of an instruction.
fn first(instruction: u32) -> u32 {
    instruction >> 8 & 0xff
}

fn operation(instruction: u32) -> u8 {
    instruction.to_le_bytes()[0]
}

/// The event by which an instruction calls, as `lua::names` counts them.
fn event(operation: u8) -> Option<usize> {
    Some(match operation {
        0 | 1 => 20,
        2 | 3 => 21,
        4..=11 => 5,
        20 => 18,
        21 => 4,
        22..=36 => [6, 7, 8, 11, 9][usize::from(operation - 22) % 5],
        37 => 10,
        38 => 22,
        54 | 56..=59 => 0,
        55 | 60..=64 => 1,
        _ => return None,
    })
}

/// Whether an instruction has all registers from the first on.
fn is_range(operation: u8) -> bool {
    matches!(operation, NILS | 63 | 65..=73 | 77..=84)
}

/// Whether it loads its first one.
fn loads(operation: u8) -> bool {
    matches!(operation, 12 | 13 | 18..=43 | 45 | 51..=54 | 56..=59)
}

impl Caller<'_> {
    fn code(&self) -> u64 {
        self.address.wrapping_add(PROTOTYPE as u64)
    }

    /// What it calls the function that the instruction of that number calls.
    pub(super) fn name(&self, position: u64, recall: &mut Recall, memory: &dyn Memory) -> Name {
        let at = self.code().wrapping_add(4 * position);
        let count = half(self.prototype, COUNT).map_or(0, u64::from);
        let instruction = recall.get(at, 4, memory).and_then(|bytes| half(bytes, 0));
        let Some(instruction) = instruction.filter(|_| position < count) else {
            return Name::Unknown;
        };
        let name = match operation(instruction) {
            code if CALLS.contains(&code) => {
                self.register(first(instruction), position, recall, memory).map(Name::String)
            }
            code if ITERATES.contains(&code) => Some(Name::Event(ITERATOR)),
            code => event(code).map(Name::Event),
        };
        name.unwrap_or(Name::Unknown)
    }

    /// The text that names what was loaded into a register.
    fn register(
        &self,
        mut register: u32,
        mut position: u64,
        recall: &mut Recall,
        memory: &dyn Memory,
    ) -> Option<u64> {
        for _ in 0..MOST_MOVES {
            if let Some(found) = self.local((register, position), recall, memory) {
                return found;
            }
            let from = position.saturating_sub(WINDOW).max(1);
            let len = usize::try_from(position.checked_sub(from)?).ok()?;
            let at = self.code().wrapping_add(4 * from);
            let code = recall.get(at, 4 * len, memory)?.as_chunks::<4>().0;
            let touches = |instruction: u32| {
                let (code, to) = (operation(instruction), first(instruction));
                let in_range = register >= to && (code != NILS || register <= instruction >> 16);
                is_range(code) && in_range || loads(code) && to == register
            };
            let mut before = (from..).zip(code).map(|(at, bytes)| (at, u32::from_le_bytes(*bytes)));
            let found = before.by_ref().filter(|(_, instruction)| touches(*instruction)).last();
            let (at, loaded) = found?;
            match operation(loaded) {
                MOVE => (register, position) = (loaded >> 16, at),
                GLOBAL => return self.text(loaded >> 16, recall, memory),
                FIELD => return self.text(loaded >> 16 & 0xff, recall, memory),
                UPVALUE => return self.upvalue(loaded >> 16, recall, memory),
                _ => return None,
            }
        }
        None
    }

    /// The text of a constant.
    fn text(&self, number: u32, recall: &mut Recall, memory: &dyn Memory) -> Option<u64> {
        let is_one = number < half(self.prototype, STRINGS)?;
        let at = word(self.prototype, CONSTANTS)?.checked_sub(8 * (u64::from(number) + 1))?;
        recall.word(at, memory).filter(|_| is_one)?.checked_add(TEXT)
    }

    /// What describes variables, from there to the end of the prototype.
    fn variables<'r>(
        &self,
        at: u32,
        recall: &'r mut Recall,
        memory: &dyn Memory,
    ) -> Option<(u64, &'r [u8])> {
        let start = word(self.prototype, at)?;
        let end = self.address.checked_add(half(self.prototype, SIZE)?.into())?;
        let len = end.checked_sub(start).filter(|_| start > self.address)?.min(MOST_VARIABLES);
        Some((start, recall.get(start, usize::try_from(len).ok()?, memory)?))
    }

    fn upvalue(&self, number: u32, recall: &mut Recall, memory: &dyn Memory) -> Option<u64> {
        let (start, bytes) = self.variables(UPVALUES, recall, memory)?;
        let mut at = 0;
        for _ in 0..number {
            at += bytes.get(at..)?.iter().position(|byte| *byte == 0)? + 1;
        }
        Some(start + at as u64)
    }

    /// The name of the local variable that is in a register at a position: `None` if there is none, and
    /// `Some(None)` if that is no name that says what it is.
    fn local(
        &self,
        (register, position): (u32, u64),
        recall: &mut Recall,
        memory: &dyn Memory,
    ) -> Option<Option<u64>> {
        let (start, bytes) = self.variables(LOCALS, recall, memory)?;
        let (mut at, mut from, mut left) = (0, 0_u64, register);
        loop {
            let (name, kind) = (at, *bytes.get(at)?);
            if kind == 0 {
                return None;
            }
            if kind >= INNER_NAMES {
                at += bytes.get(at..)?.iter().position(|byte| *byte == 0)?;
            }
            at += 1;
            from = from.checked_add(number(bytes, &mut at)?)?;
            if from > position {
                return None;
            }
            let to = from.checked_add(number(bytes, &mut at)?)?;
            if position < to {
                match left {
                    // What a parameter is called says nothing of what it is.
                    0 => {
                        return Some(
                            (kind >= INNER_NAMES && from > 0).then(|| start + name as u64),
                        );
                    }
                    _ => left -= 1,
                }
            }
        }
    }
}

/// A number of seven bits a byte, the lowest first.
fn number(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0;
    for shift in (0..35).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_where_they_say() {
        let mut at = 0;
        assert_eq!(number(&[0x85, 0x01, 7], &mut at), Some(133));
        assert_eq!((number(&[0x85, 0x01, 7], &mut at), at), (Some(7), 3));
        assert_eq!([number(&[0x80], &mut 0), number(&[0x80; 6], &mut 0)], [None, None]);
    }

    #[test]
    fn instructions_call_by_events() {
        use crate::lua::names::EVENTS;
        let names = [0, 3, 9, 20, 21, 22, 25, 26, 30, 37, 38, 57, 61].map(|code| {
            event(code).and_then(|event| EVENTS.get(event)).copied().unwrap_or_default()
        });
        let expect = [
            "__lt",
            "__le",
            "__eq",
            "__unm",
            "__len",
            "__add",
            "__div",
            "__mod",
            "__div",
            "__pow",
            "__concat",
            "__index",
            "__newindex",
        ];
        assert_eq!(names, expect);
        assert_eq!([event(18), event(66)], [None, None]);
    }
}
