//! Rows for functions of Go, from the sizes of frames that its own tables have.
//!
//! Go writes no `.eh_frame`, and `-ldflags="-w"` drops `.debug_frame`; the sizes stay, because the
//! runtime's tracebacks need them.
//!
//! Sources: `cmd/internal/obj/x86/obj6.go` and `arm64/obj7.go` of Go for what a frame holds,
//! `runtime/traceback.go` for where tracebacks end.

use flame_pclntab::{GoTable, StackSwitch};
use flame_profile::{ImageAddress, ProcessAddress};

use crate::arch::{CallLeaves, Facts};
use crate::code::{CodeAddress, FrameAddress};
use crate::compile::{Compiled, short_row};
use crate::module::Module;
use crate::registers::Registers;
use crate::row::{Cfa, LongRow, Rule, Table};
use crate::stack_copy::StackCopy;
use crate::step::Step;

/// What the table says of an address; `None` when nothing.
pub(crate) fn row(table: &GoTable, address: ImageAddress, facts: &Facts) -> Option<Compiled> {
    let function = table.function(address)?;
    match function.stack_switch() {
        StackSwitch::Outermost => return Some(Compiled::Outermost),
        StackSwitch::Elsewhere => return Some(Compiled::OtherStack),
        StackSwitch::None => {}
    }
    let size = i64::from(table.frame_size(&function, address)?);
    let (cfa, rules) = match facts.call_leaves {
        // The caller's frame pointer lies below the return address in all functions with a frame but
        // for some assembly, and but for the one or two instructions that store it. Nothing of Go is
        // walked by it, so it is only wrong where it does no harm.
        CallLeaves::OnStack => {
            let mut rules = vec![(facts.return_address, Rule::Offset(-8))];
            if size >= 8 {
                rules.push((facts.frame_pointer, Rule::Offset(-16)));
            }
            (size + 8, rules)
        }
        // The lowest word of the frame has the return address, as soon as there is a frame. The
        // caller's frame pointer lies below, where nothing tells whether it is still there.
        CallLeaves::InRegister(link) => {
            let saved = (size > 0).then_some((link, Rule::Offset(-size)));
            (size, saved.into_iter().collect())
        }
    };
    let row = LongRow {
        cfa: Cfa::Register(facts.stack_pointer, cfa),
        rules,
        return_address: facts.return_address,
        signal_frame: false,
        // No rule has an expression.
        table: Table::DebugFrame,
    };
    Some(match short_row(&row, facts) {
        Some(short) => Compiled::Short(short),
        None => Compiled::Long(row),
    })
}

/// How far below its frame pointer a function of Go that changes stacks has its return address at most,
/// in words.
const MOST_WORDS: u64 = 512;

/// Leaves a function that runs others on another stack than its caller's.
///
/// Where it has a frame of its own, the frame pointer points to that, and the return address stands
/// behind it. Else it is its caller's: then the return address stands as far below it as the caller's
/// frame is large there. Either has to stand behind a direct call of this very function, and there must
/// be one such place only, so nothing is guessed.
pub(crate) fn leave_stack(
    module: &Module,
    code: CodeAddress,
    facts: &Facts,
    stack: &StackCopy<'_>,
    registers: &mut Registers,
) -> Option<Step> {
    let table = module.go_table().filter(|_| facts.call_leaves == CallLeaves::OnStack)?;
    let function = table.function(code.address)?;
    let frame_pointer = registers.get(facts.frame_pointer).filter(|pointer| pointer % 8 == 0)?;
    // The return address at a place, if it is that of a call of this function.
    let returns_to = |at: u64| {
        let address = stack.read_u64(at).ok()?;
        let image_address = code.to_image_address(ProcessAddress(address));
        let (before, _) = module.text()?.split_at(image_address)?;
        let distance = (facts.direct_call_target)(before)?;
        let target = image_address.0.wrapping_add_signed(distance);
        (target == function.start.0).then_some((address, image_address))
    };
    let has_frame = table.frame_size(&function, code.address).is_some_and(|size| size >= 8);
    let (at, address, caller_frame) = if has_frame {
        let at = frame_pointer.checked_add(8)?;
        (at, returns_to(at)?.0, stack.read_u64(frame_pointer).ok()?)
    } else {
        let mut found = None;
        for words in 1..=MOST_WORDS {
            let at = frame_pointer.checked_sub(8 * words)?;
            let Some((address, image_address)) = returns_to(at) else { continue };
            let call = ImageAddress(image_address.0.checked_sub(1)?);
            let caller = table.function(call)?;
            // The frame ends with the word that the frame pointer points to.
            if table.frame_size(&caller, call).map(u64::from) != Some(8 * words) {
                continue;
            }
            if found.replace((at, address)).is_some() {
                return None;
            }
        }
        let (at, address) = found?;
        (at, address, frame_pointer)
    };
    registers.keep_only(0);
    registers.set(facts.frame_pointer, caller_frame);
    registers.set(facts.stack_pointer, at.checked_add(8)?);
    registers.set(facts.program_counter, address);
    Some(Step::Caller(FrameAddress::Return(ProcessAddress(address))))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use flame_image::Section;
    use flame_pclntab::testing::{Sample, TEXT, sample_table};
    use flame_profile::{Bias, SharedBytes, StackEnd};

    use super::*;
    use crate::arch::Architecture;
    use crate::code::Code;
    use crate::section::UnwindSections;
    use crate::stack_copy::StackLimit;
    use crate::unwinder::{CfiUnwinder, Unwinder};

    fn at(offset: u64, architecture: Architecture) -> Option<Compiled> {
        let table = sample_table(Sample::Go120).parse();
        row(&table, ImageAddress(TEXT + offset), architecture.facts())
    }

    /// The offset of the CFA from the stack pointer, and what is saved where, in words from it.
    #[track_caller]
    fn check(row: Option<Compiled>, cfa: i32, saved: &[(u8, i16)]) {
        let Some(Compiled::Short(row)) = row else { panic!("{row:?}") };
        let found: Vec<(u8, i16)> =
            row.saved.into_iter().zip(row.word_offsets).take(row.saves.into()).collect();
        assert_eq!((row.cfa_offset, found.as_slice()), (cfa, saved));
    }

    #[test]
    fn the_return_address_lies_behind_the_frame() {
        check(at(0, Architecture::X86_64), 8, &[(16, -1)]);
        check(at(8, Architecture::X86_64), 32, &[(16, -1), (6, -2)]);
        check(at(0x3c, Architecture::X86_64), 8, &[(16, -1)]);
    }

    #[test]
    fn the_return_address_lies_at_the_start_of_a_frame_of_arm64() {
        check(at(0, Architecture::Aarch64), 0, &[]);
        check(at(8, Architecture::Aarch64), 24, &[(30, -3)]);
    }

    #[test]
    fn functions_that_change_stacks_end_the_walk() {
        assert_eq!(at(0x60, Architecture::X86_64), Some(Compiled::Outermost));
        assert_eq!(at(0x70, Architecture::X86_64), Some(Compiled::OtherStack));
        assert_eq!(at(0x80, Architecture::X86_64), None);
        assert!(StackEnd::OtherStack.is_truncated());
    }

    /// Where `main.outer` calls `runtime.systemstack`, and where that calls others.
    const CALL: u64 = TEXT + 0x20;
    const IN_SYSTEMSTACK: u64 = TEXT + 0x75;

    /// Where the stack of the goroutine was read from.
    const OTHER: u64 = 0xc000_0000_1000;

    /// The frames and the end of a stack in `systemstack`, with that frame pointer and these words of
    /// the goroutine's stack.
    fn walk(frame_pointer: u64, words: &[u64]) -> (Vec<u64>, StackEnd) {
        let mut text = vec![0x90; 0x80];
        // call 0x1070; the second byte of goexit is behind no call.
        text[0x20..0x25].copy_from_slice(&[0xe8, 0x4b, 0, 0, 0]);
        let text = Section { address: ImageAddress(TEXT), bytes: SharedBytes::from(text) };
        let go_table = Some(Arc::new(sample_table(Sample::Go120).parse()));
        let mut unwinder = CfiUnwinder::new(Architecture::X86_64);
        let sections = UnwindSections { text: Some(text), go_table, ..Default::default() };
        let module = unwinder.add_module(sections);
        let mut find = |address: ProcessAddress| match address.0 {
            0x1000..0x1080 => Code::Module(CodeAddress::new(module, address, Bias::default())),
            _ => Code::NotCode,
        };
        let mut registers = Registers::default();
        for (register, value) in [(6, frame_pointer), (7, 0x7ffc_0000), (16, IN_SYSTEMSTACK)] {
            registers.set(register, value);
        }
        let other: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let start = ProcessAddress(0x7ffc_0000);
        let stack = StackCopy::new(start, &[0; 64], &[], StackLimit::CopyFull)
            .with_interrupted(ProcessAddress(OTHER), &other);
        let mut frames = Vec::new();
        let end = unwinder.unwind(&mut find, &registers, &stack, 16, &mut frames);
        (frames.iter().map(|frame| frame.address().0).collect(), end)
    }

    #[test]
    fn the_caller_on_another_stack_is_where_its_frame_says() {
        let (back, goexit) = (CALL + 5, TEXT + 0x61);
        // The frame of 24 bytes: two words and the caller's frame pointer, then the return address.
        let words = [7, 7, back, 1, 2, 0, 3, goexit, 0];
        let whole = (vec![IN_SYSTEMSTACK, back, goexit], StackEnd::Root);
        let words_of = |words: &[u64]| walk(OTHER + 8 * 5, words);
        let mut frame = words;
        (frame[3], frame[4], frame[5], frame[6]) = (1, 2, 0, goexit);
        assert_eq!(words_of(&frame), whole);
        let cut = (vec![IN_SYSTEMSTACK], StackEnd::OtherStack);
        assert_eq!(walk(OTHER + 8 * 6, &frame), cut, "the frame is of another size");
        assert_eq!(walk(OTHER + 8 * 5, &[7, 7, back + 1, 1, 2, 0, goexit]), cut, "no call");
        assert_eq!(walk(0, &frame), cut);
        assert_eq!(walk(OTHER + 1, &frame), cut);
        assert_eq!(walk(OTHER + 8 * 5, &[]), cut, "nothing was read");
    }
}
