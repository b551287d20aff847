//! Rows of call frame information as gimli evaluates them -> [`Row`] or [`LongRow`].
//!
//! Sources: DWARF 5 section 6.4.1; the register numbers of the architecture's supplement.

use std::ops::Range;

use gimli::{
    CfaRule, CommonInformationEntry, EndianSlice, LittleEndian, RegisterRule, UnwindExpression,
    UnwindTableRow,
};

use crate::arch::{CallLeaves, Facts};
use crate::registers::TRACKED_REGISTERS;
use crate::row::{Cfa, LongRow, Rule, SHORT_ROW_SAVES, ShortRow, Table};

/// Bytes of a table; all supported architectures are little-endian.
pub(crate) type TableBytes<'a> = EndianSlice<'a, LittleEndian>;

/// A row before long ones have a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Compiled {
    Outermost,
    /// See [`crate::row::Row::NotCalled`].
    NotCalled,
    /// See [`crate::row::Row::OtherStack`].
    OtherStack,
    Short(ShortRow),
    Long(LongRow),
}

impl Compiled {
    /// Whether the row is that of a frame that the kernel made to call a signal handler.
    pub(crate) fn is_signal_frame(&self) -> bool {
        matches!(self, Compiled::Long(row) if row.signal_frame)
    }
}

/// Compiles one row; `None` when it needs a register that is not tracked, or does not tell enough.
pub(crate) fn compile(
    row: &UnwindTableRow<usize>,
    cie: &CommonInformationEntry<TableBytes<'_>>,
    table: Table,
    facts: &Facts,
) -> Option<Compiled> {
    if cie.is_signal_trampoline() && !facts.signal_rows_are_whole {
        return None;
    }
    let return_address = tracked(cie.return_address_register())?;
    let mut rules = Vec::with_capacity(8);
    for (register, rule) in row.registers() {
        // Vector registers and the signing state never decide where a frame is.
        if let (Some(register), Some(rule)) = (tracked(*register), rule_of(rule)) {
            if register == return_address && rule == Rule::Undefined {
                return Some(Compiled::Outermost);
            }
            rules.push((register, rule));
        }
    }
    // Tables of x86-64 say it in each CIE; where one does not, the ABI does.
    let is_given = rules.iter().any(|(register, _)| *register == return_address);
    if !is_given && facts.call_leaves == CallLeaves::OnStack {
        rules.push((return_address, Rule::Offset(-8)));
    }
    let long = LongRow {
        cfa: cfa_of(row.cfa())?,
        rules,
        return_address,
        signal_frame: cie.is_signal_trampoline(),
        table,
    };
    Some(match short_row(&long, facts) {
        Some(short) => Compiled::Short(short),
        None => Compiled::Long(long),
    })
}

fn tracked(register: gimli::Register) -> Option<u8> {
    let number = u8::try_from(register.0).ok()?;
    (usize::from(number) < TRACKED_REGISTERS).then_some(number)
}

fn cfa_of(rule: &CfaRule<usize>) -> Option<Cfa> {
    match rule {
        CfaRule::RegisterAndOffset { register, offset } => {
            Some(Cfa::Register(tracked(*register)?, *offset))
        }
        CfaRule::Expression(expression) => Some(Cfa::Expression(bytes_of(expression)?)),
    }
}

fn bytes_of(expression: &UnwindExpression<usize>) -> Option<Range<usize>> {
    Some(expression.offset..expression.offset.checked_add(expression.length)?)
}

/// `None` for rules that this crate does not know; the register is then taken as by default.
fn rule_of(rule: &RegisterRule<usize>) -> Option<Rule> {
    match rule {
        RegisterRule::Undefined => Some(Rule::Undefined),
        RegisterRule::SameValue => Some(Rule::SameValue),
        RegisterRule::Offset(offset) => Some(Rule::Offset(*offset)),
        RegisterRule::ValOffset(offset) => Some(Rule::ValOffset(*offset)),
        RegisterRule::Register(register) => {
            Some(tracked(*register).map_or(Rule::Undefined, Rule::Register))
        }
        RegisterRule::Expression(expression) => Some(Rule::Expression(bytes_of(expression)?)),
        RegisterRule::ValExpression(expression) => Some(Rule::ValExpression(bytes_of(expression)?)),
        _ => None,
    }
}

/// The same row in its short form, if it has one.
pub(crate) fn short_row(row: &LongRow, facts: &Facts) -> Option<ShortRow> {
    let Cfa::Register(cfa_register, cfa_offset) = row.cfa else {
        return None;
    };
    if row.signal_frame || row.return_address != facts.return_address {
        return None;
    }
    let mut short = ShortRow {
        cfa_register,
        saves: 0,
        cfa_offset: i32::try_from(cfa_offset).ok()?,
        saved: [0; SHORT_ROW_SAVES],
        word_offsets: [0; SHORT_ROW_SAVES],
    };
    for (register, rule) in &row.rules {
        match rule {
            Rule::Offset(offset) if offset % 8 == 0 && *register != facts.stack_pointer => {
                let index = usize::from(short.saves);
                *short.saved.get_mut(index)? = *register;
                *short.word_offsets.get_mut(index)? = i16::try_from(offset / 8).ok()?;
                short.saves += 1;
            }
            Rule::SameValue if facts.callee_saved & (1 << register) != 0 => {}
            _ => return None,
        }
    }
    Some(short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Architecture;

    const RAX: u8 = 0;
    const RBX: u8 = 3;
    const RBP: u8 = 6;
    const RSP: u8 = 7;
    const RIP: u8 = 16;

    fn row(rules: &[(u8, Rule)]) -> LongRow {
        LongRow {
            cfa: Cfa::Register(RSP, 32),
            rules: [&[(RIP, Rule::Offset(-8))], rules].concat(),
            return_address: RIP,
            signal_frame: false,
            table: Table::EhFrame,
        }
    }

    fn short(row: &LongRow) -> Option<ShortRow> {
        short_row(row, Architecture::X86_64.facts())
    }

    #[test]
    fn a_frame_that_saved_words_below_it_has_a_short_row() {
        let found = short(&row(&[(RBP, Rule::Offset(-16))])).unwrap();
        assert_eq!((found.cfa_register, found.cfa_offset, found.saves), (RSP, 32, 2));
        assert_eq!((&found.saved[..2], &found.word_offsets[..2]), (&[RIP, RBP][..], &[-1, -2][..]));
        // A callee keeps rbx without being told to.
        let kept = row(&[(RBP, Rule::Offset(-16)), (RBX, Rule::SameValue)]);
        assert_eq!(short(&kept), Some(found));
    }

    #[test]
    fn what_a_short_row_cannot_say_has_a_long_one() {
        assert_eq!(short(&row(&[(RBP, Rule::Offset(-12))])), None, "half of a word");
        assert_eq!(short(&row(&[(RSP, Rule::Offset(-16))])), None, "another stack");
        assert_eq!(short(&row(&[(RAX, Rule::SameValue)])), None, "no callee keeps rax else");
        assert_eq!(short(&row(&[(RBP, Rule::Register(RBX))])), None);
        assert_eq!(short(&LongRow { signal_frame: true, ..row(&[]) }), None);
        assert_eq!(short(&LongRow { return_address: RBX, ..row(&[]) }), None);
        assert_eq!(short(&LongRow { cfa: Cfa::Expression(0..1), ..row(&[]) }), None);
    }
}
