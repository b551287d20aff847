//! Rows for functions of Go, from the sizes of frames that its own tables have.
//!
//! Go writes no `.eh_frame`, and `-ldflags="-w"` drops `.debug_frame`; the sizes stay, because the
//! runtime's tracebacks need them.
//!
//! Sources: `cmd/internal/obj/x86/obj6.go` and `arm64/obj7.go` of Go for what a frame holds,
//! `runtime/traceback.go` for where tracebacks end.

use flame_pclntab::{GoTable, StackSwitch};
use flame_profile::ImageAddress;

use crate::arch::{CallLeaves, Facts};
use crate::compile::{Compiled, short_row};
use crate::row::{Cfa, LongRow, Rule, Table};

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

#[cfg(test)]
mod tests {
    use flame_pclntab::testing::{Sample, TEXT, sample_table};
    use flame_profile::StackEnd;

    use super::*;
    use crate::arch::Architecture;

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
}
