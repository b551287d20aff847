//! Code of a function of x86-64 up to one of its calls into how far its stack pointer is below its frame pointer there.
//!
//! Where a function's frame pointer is not known, its stack pointer may be: what the function has pushed and made room for
//! since it set the one to the other leads from there to the frame pointer. All of its code before the call is read, in the
//! order of addresses: the optimiser mixes its beginning with other instructions, and arguments are pushed later on. A jump
//! takes the depth along to where it leads: what a call that does not return was given is not there then. And nowhere in
//! the function may room be made whose size only a register knows (`alloca`, a frame aligned to more than 16 bytes), behind
//! the call neither: what is unlikely stands there and runs before it.

use std::collections::BTreeMap;

use crate::instruction::{Instruction, Map};

/// How much code of a function is read, in bytes.
const LONGEST: usize = 64 * 1024;

/// The largest frame that is believed, in bytes.
const LARGEST_FRAME: i64 = 1 << 30;

/// The stack pointer by its number in instructions.
const SP: u8 = 4;

/// What one instruction does to the stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// Moves it down by so many bytes, or up.
    Moves(i64),
    /// Pushes the frame pointer.
    PushesFramePointer,
    /// Sets the frame pointer to it.
    SetsFramePointer,
    /// Sets it to so many bytes below the frame pointer.
    SetsBelowFramePointer(i64),
    /// Sets r11 to so many bytes below it: how far a loop that touches each page will go.
    SetsGoal(i64),
    /// Compares it with r11, which the loop ends at.
    ComparesWithGoal,
    /// Gives the frame back.
    Leaves,
    /// Calls another function.
    Calls,
    /// Goes on somewhere else, or here.
    Branches,
    /// Goes on somewhere else.
    Jumps,
    /// Does not go on.
    Ends,
    Nothing,
}

/// How far the stack pointer is below the frame pointer, in bytes, as far as that is known.
#[derive(Debug, Default)]
struct Depth {
    here: Option<i64>,
    /// Where jumps lead to whose targets are not known: the same all over the function, but for arguments that are being
    /// pushed.
    at_jumps: Option<i64>,
    /// Of the other ones, by the place further down that they lead to.
    at_targets: BTreeMap<usize, i64>,
    goal: Option<i64>,
    /// The frame pointer is pushed and not yet set.
    is_pushed: bool,
    /// The loop's own jump comes next.
    is_in_loop: bool,
}

/// How far the stack pointer of a function is below its frame pointer behind the first `until` bytes of its code, in
/// bytes. `None` if the code does not tell.
pub(crate) fn frame_pointer_distance(function: &[u8], until: usize) -> Option<u64> {
    let (before, behind) = function.split_at_checked(until)?;
    if function.len() > LONGEST {
        return None;
    }
    let mut depth = Depth::default();
    let mut follows_call = false;
    for_each(before, |end, bytes, instruction| {
        depth.arrive(end - bytes.len(), follows_call)?;
        let does = effect(bytes, instruction)?;
        follows_call = does == Does::Calls;
        depth.follow(does, target(bytes, instruction, end))
    })?;
    for_each(behind, |_, bytes, instruction| effect(bytes, instruction).map(|_| ()))?;
    depth.here.and_then(|depth| u64::try_from(depth).ok())
}

/// Takes code apart, as long as `take` goes along, which gets where each instruction ends.
fn for_each(
    code: &[u8],
    mut take: impl FnMut(usize, &[u8], &Instruction) -> Option<()>,
) -> Option<()> {
    let mut rest = code;
    while !rest.is_empty() {
        let instruction = Instruction::decode(rest)?;
        let (bytes, behind) = rest.split_at_checked(instruction.len)?;
        take(code.len() - behind.len(), bytes, &instruction)?;
        rest = behind;
    }
    Some(())
}

/// Where a jump leads to that ends at `end`, if it says so itself.
fn target(bytes: &[u8], instruction: &Instruction, end: usize) -> Option<usize> {
    let distance = match (instruction.map, instruction.code) {
        (Map::One, 0x70..=0x7f | 0xe0..=0xe3 | 0xeb) => i64::from(bytes.last()?.cast_signed()),
        (Map::One, 0xe9) | (Map::Two, 0x80..=0x8f) => {
            i64::from(i32::from_le_bytes(*bytes.last_chunk()?))
        }
        _ => return None,
    };
    usize::try_from(i64::try_from(end).ok()?.checked_add(distance)?).ok()
}

impl Depth {
    /// Takes over what jumps have brought along to a place. Who comes there from above as well must have the same: but what
    /// stands behind a call that does not return is reached by the jump alone.
    fn arrive(&mut self, place: usize, follows_call: bool) -> Option<()> {
        let Some(depth) = self.at_targets.remove(&place) else { return Some(()) };
        let is_known = self.here.is_none_or(|here| here == depth) || follows_call;
        self.here = Some(depth);
        is_known.then_some(())
    }

    /// A jump to that place, if it is known, takes the depth along.
    fn branch(&mut self, target: Option<usize>) -> Option<()> {
        let (Some(here), Some(target)) = (self.here, target) else { return Some(()) };
        (*self.at_targets.entry(target).or_insert(here) == here).then_some(())
    }

    fn follow(&mut self, does: Does, target: Option<usize>) -> Option<()> {
        let was_pushed = std::mem::take(&mut self.is_pushed);
        let was_in_loop = std::mem::take(&mut self.is_in_loop);
        match does {
            Does::Nothing => self.is_pushed = was_pushed,
            Does::Calls => {}
            Does::Moves(by) => self.here = self.here.and_then(|here| moved(here, by)),
            Does::PushesFramePointer => {
                self.here = self.here.and_then(|here| moved(here, 8));
                self.is_pushed = true;
            }
            Does::SetsFramePointer if was_pushed => {
                *self = Depth { here: Some(0), ..Depth::default() };
            }
            // A frame pointer that does not point to its predecessor.
            Does::SetsFramePointer => return None,
            Does::SetsBelowFramePointer(by) => self.here = self.here.and(moved(0, by)),
            Does::SetsGoal(by) => {
                self.goal = self.here.and_then(|here| moved(here, by));
                self.is_pushed = was_pushed;
            }
            Does::ComparesWithGoal => {
                self.here = Some(self.goal?);
                self.is_in_loop = true;
            }
            Does::Leaves => self.here = None,
            Does::Branches if was_in_loop => {}
            Does::Branches => {
                self.branch(target)?;
                self.at_jumps = self.at_jumps.or(self.here);
            }
            Does::Jumps => {
                self.branch(target)?;
                self.at_jumps = self.at_jumps.or(self.here);
                self.here = self.at_jumps;
            }
            Does::Ends => self.here = self.at_jumps,
        }
        Some(())
    }
}

/// A depth that so many bytes were added to, while it is that of a frame.
fn moved(depth: i64, by: i64) -> Option<i64> {
    depth.checked_add(by).filter(|depth| (0..=LARGEST_FRAME).contains(depth))
}

/// What an instruction does; `None` if it sets the stack pointer to what the code does not tell.
fn effect(bytes: &[u8], instruction: &Instruction) -> Option<Does> {
    let byte = |value: u8| i64::from(value.cast_signed());
    let word = |bytes: [u8; 4]| i64::from(i32::from_le_bytes(bytes));
    Some(match *bytes {
        // push %rbp; mov %rsp,%rbp in both encodings.
        [0x55] => Does::PushesFramePointer,
        [0x48, 0x89, 0xe5] | [0x48, 0x8b, 0xec] => Does::SetsFramePointer,
        // sub and add of $imm8 and $imm32 to %rsp.
        [0x48, 0x83, 0xec, by] => Does::Moves(byte(by)),
        [0x48, 0x83, 0xc4, by] => Does::Moves(-byte(by)),
        [0x48, 0x81, 0xec, a, b, c, d] => Does::Moves(word([a, b, c, d])),
        [0x48, 0x81, 0xc4, a, b, c, d] => Does::Moves(-word([a, b, c, d])),
        // lea distance(%rsp),%rsp, then lea distance(%rbp),%rsp and mov %rbp,%rsp.
        [0x48, 0x8d, 0x64, 0x24, by] => Does::Moves(-byte(by)),
        [0x48, 0x8d, 0xa4, 0x24, a, b, c, d] => Does::Moves(-word([a, b, c, d])),
        [0x48, 0x8d, 0x65, by] => Does::SetsBelowFramePointer(-byte(by)),
        [0x48, 0x8d, 0xa5, a, b, c, d] => Does::SetsBelowFramePointer(-word([a, b, c, d])),
        [0x48, 0x89, 0xec] | [0x48, 0x8b, 0xe5] => Does::SetsBelowFramePointer(0),
        // lea distance(%rsp),%r11; cmp %r11,%rsp.
        [0x4c, 0x8d, 0x9c, 0x24, a, b, c, d] => Does::SetsGoal(-word([a, b, c, d])),
        [0x4c, 0x39, 0xdc] => Does::ComparesWithGoal,
        // ud2
        [0x0f, 0x0b] => Does::Ends,
        _ => return effect_by_code(instruction),
    })
}

fn effect_by_code(instruction: &Instruction) -> Option<Does> {
    let does = match (instruction.map, instruction.code, instruction.group()) {
        // pop %rsp, enter, iret.
        (Map::One, 0x5c, _) if instruction.rex & 1 == 0 => return None,
        (Map::One, 0xc8 | 0xcf, _) => return None,
        // xchg %rax,%rsp
        (Map::One, 0x94, _) if instruction.rex & 1 == 0 => return None,
        (Map::One, 0x50..=0x57 | 0x68 | 0x6a | 0x9c, _) => Does::Moves(8),
        (Map::One, 0x58..=0x5f | 0x9d, _) => Does::Moves(-8),
        (Map::One, 0xff, Some(6)) => Does::Moves(8),
        (Map::One, 0x8f, Some(0)) => Does::Moves(-8),
        (Map::One, 0xc9, _) => Does::Leaves,
        (Map::One, 0xe8, _) | (Map::One, 0xff, Some(2)) => Does::Calls,
        (Map::One, 0xc2 | 0xc3 | 0xca | 0xcb | 0xf4, _) => Does::Ends,
        (Map::One, 0xe9 | 0xeb, _) | (Map::One, 0xff, Some(4)) => Does::Jumps,
        (Map::One, 0x70..=0x7f | 0xe0..=0xe3, _) | (Map::Two, 0x80..=0x8f, _) => Does::Branches,
        _ if sets_stack_pointer(instruction) => return None,
        _ => Does::Nothing,
    };
    Some(does)
}

/// Whether the stack pointer is an operand that the instruction writes. Operations on single bytes have other registers by
/// its number, as vector code has.
fn sets_stack_pointer(instruction: &Instruction) -> bool {
    let Instruction { map, code, rex, mod_rm: Some(mod_rm), .. } = *instruction else {
        return false;
    };
    let is_first = rex & 4 == 0 && mod_rm >> 3 & 7 == SP;
    if map != Map::One {
        // cmov; a vector's operand has no such place.
        return map == Map::Two && matches!(code, 0x40..=0x4f) && is_first;
    }
    let is_second = rex & 1 == 0 && mod_rm >> 6 == 3 && mod_rm & 7 == SP;
    match (code, mod_rm >> 3 & 7) {
        // cmp, test.
        (0x39 | 0x3b | 0x85, _) | (0x81 | 0x83, 7) | (0xf7, 0 | 1) => false,
        (0x00..=0x3f, _) if code & 3 == 1 => is_second,
        (0x00..=0x3f, _) if code & 3 == 3 => is_first,
        // movslq, imul, mov, lea.
        (0x63 | 0x69 | 0x6b | 0x8b | 0x8d, _) => is_first,
        (0x87, _) => is_first || is_second,
        (0x81 | 0x83 | 0x89 | 0x8f | 0xc1 | 0xc7 | 0xd1 | 0xd3, _) | (0xf7, _) => is_second,
        (0xff, 0 | 1) => is_second,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
