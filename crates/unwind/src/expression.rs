//! DWARF expressions of call frame information, evaluated over registers and the copied stack.
//!
//! Sources: DWARF 5 sections 2.5 and 6.4.2.

use gimli::{Encoding, Format};
use gimli::{EndianSlice, Evaluation, EvaluationResult, LittleEndian, Location, Value};

use flame_profile::StackEnd;

use crate::registers::Registers;
use crate::stack_copy::StackCopy;

/// Real expressions have 4 to 12 operations; loops would be possible but make no sense.
const MAX_OPERATIONS: u32 = 200;

/// The value of an expression; `initial` is what lies on its stack at the start.
///
/// # Errors
/// `CopyTooShort` when it needs memory beyond the copy, `BadValue` when it cannot be evaluated.
pub(crate) fn evaluate(
    bytes: &[u8],
    initial: Option<u64>,
    registers: &Registers,
    stack: &StackCopy<'_>,
) -> Result<u64, StackEnd> {
    let encoding = Encoding { address_size: 8, format: Format::Dwarf32, version: 5 };
    let mut evaluation = Evaluation::new(EndianSlice::new(bytes, LittleEndian), encoding);
    evaluation.set_max_iterations(MAX_OPERATIONS);
    if let Some(initial) = initial {
        evaluation.set_initial_value(initial);
    }
    let mut state = evaluation.evaluate();
    loop {
        state = match state.map_err(|_| StackEnd::BadValue)? {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresRegister { register, .. } => {
                let register = u8::try_from(register.0).map_err(|_| StackEnd::BadValue)?;
                let value = registers.get(register).ok_or(StackEnd::BadValue)?;
                evaluation.resume_with_register(Value::Generic(value))
            }
            EvaluationResult::RequiresMemory { address, size, space: None, .. } => {
                let value = stack.read_small(address, size).map_err(|e| e.stack_end())?;
                evaluation.resume_with_memory(Value::Generic(value))
            }
            _ => return Err(StackEnd::BadValue),
        };
    }
    match evaluation.as_result() {
        [piece] => match piece.location {
            Location::Address { address } => Ok(address),
            _ => Err(StackEnd::BadValue),
        },
        _ => Err(StackEnd::BadValue),
    }
}

#[cfg(test)]
mod tests {
    use flame_profile::ProcessAddress;

    use super::*;
    use crate::arch::Architecture;
    use crate::stack_copy::StackLimit;

    const SP: u64 = 0x7ffc_0000;

    #[track_caller]
    fn check(bytes: &[u8], initial: Option<u64>, expect: Result<u64, StackEnd>) {
        // rbp = SP + 8, rsp = SP, rip = 0x40102b.
        let mask = 1 << 6 | 1 << 7 | 1 << 8;
        let registers = Registers::from_perf(Architecture::X86_64, mask, [SP + 8, SP, 0x40_102b]);
        let words: Vec<u8> =
            [SP + 0x100, SP + 0x200].iter().flat_map(|w| w.to_le_bytes()).collect();
        let stack = StackCopy::new(ProcessAddress(SP), &words, &[], StackLimit::CopyFull);
        assert_eq!(evaluate(bytes, initial, &registers, &stack), expect);
    }

    #[test]
    fn plt_stubs_find_the_frame_by_their_own_address() {
        // rsp+8 + ((rip & 15) >= 11) << 3, which linkers write for .plt:
        // breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus
        let plt = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        check(&plt, None, Ok(SP + 16));
    }

    #[test]
    fn realigned_frames_find_the_old_frame_in_memory() {
        // breg6 -8; deref, which gcc writes after pushing r10.
        check(&[0x76, 0x78, 0x06], None, Ok(SP + 0x100));
    }

    #[test]
    fn the_frame_address_lies_on_the_stack_at_the_start() {
        check(&[0x23, 0x10], Some(SP), Ok(SP + 0x10)); // plus_uconst 16
    }

    #[test]
    fn what_cannot_be_had_ends_the_walk() {
        check(&[0x77, 0x10, 0x06], None, Err(StackEnd::CopyTooShort)); // breg7 16; deref
        check(&[0x77, 0x78, 0x06], None, Err(StackEnd::BadValue)); // breg7 -8; deref
        check(&[0x70, 0], None, Err(StackEnd::BadValue)); // breg0 0: rax is not known
        check(&[0x9c], None, Err(StackEnd::BadValue)); // call_frame_cfa
        check(&[0x22], None, Err(StackEnd::BadValue)); // plus, with nothing on the stack
        check(&[], None, Err(StackEnd::BadValue));
        check(&[0x2f, 0xfd, 0xff], None, Err(StackEnd::BadValue)); // skip -3: never ends
    }
}
