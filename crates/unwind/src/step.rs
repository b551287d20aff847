//! One step from a frame to its caller by a row of call frame information.

use flame_profile::{ProcessAddress, StackEnd};

use crate::arch::Facts;
use crate::code::FrameAddress;
use crate::expression::evaluate;
use crate::module::Module;
use crate::registers::Registers;
use crate::row::{Cfa, LongRow, Rule, ShortRow};
use crate::stack_copy::{StackCopy, Unreadable};

/// How far below the stack pointer a register may have been saved to count as popped: all general
/// registers.
const MAX_POPPED: u64 = 32 * 8;

/// More arguments than a program can be started with: their addresses alone would take the
/// kernel's limit of 6 MiB.
const MAX_ARGUMENTS: u64 = 6 * 1024 * 1024 / 8;

/// Where a step leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// To the caller at that address; the registers are the caller's.
    Caller(FrameAddress),
    /// The same, by what addresses and code look like and not by what a table says.
    Guess(FrameAddress),
    /// Nowhere.
    End(StackEnd),
}

/// One frame that a row is applied to.
pub(crate) struct Frame<'f> {
    pub(crate) facts: &'static Facts,
    pub(crate) stack: &'f StackCopy<'f>,
    /// Whether the frame stands at its instruction, not behind a call.
    pub(crate) is_exact: bool,
}

impl Frame<'_> {
    /// Applies a short row. After [`Step::End`] the registers mean nothing, but for the stack
    /// pointer after [`StackEnd::CopyTooShort`]: it is what the caller's would have been.
    #[inline]
    pub(crate) fn apply_short(&self, row: &ShortRow, registers: &mut Registers) -> Step {
        let facts = self.facts;
        let Some(base) = registers.get(row.cfa_register) else {
            return Step::End(StackEnd::BadValue);
        };
        let cfa = base.wrapping_add_signed(i64::from(row.cfa_offset));
        let sp = registers.get(facts.stack_pointer).unwrap_or(0);
        if !self.advances(sp, cfa) {
            return Step::End(StackEnd::BadValue);
        }
        let mut return_address = registers.get(facts.return_address).ok_or(StackEnd::BadValue);
        let mut known = facts.callee_saved;
        let saves = row.saved.iter().zip(row.word_offsets).take(usize::from(row.saves));
        for (register, words) in saves {
            let address = cfa.wrapping_add_signed(i64::from(words) * 8);
            let value = self.saved(*register, address, sp, registers);
            if *register == facts.return_address {
                return_address = value.map_err(Unreadable::stack_end);
            } else if let Ok(value) = value {
                registers.set(*register, value);
                known |= 1 << register;
            } else {
                known &= !(1 << register);
            }
        }
        match return_address {
            Err(end) => {
                registers.set(facts.stack_pointer, cfa);
                Step::End(end)
            }
            Ok(address) => {
                registers.keep_only(known);
                registers.set(facts.stack_pointer, cfa);
                self.caller(address, registers)
            }
        }
    }

    /// Applies a row of any form; `module` is where it came from.
    pub(crate) fn apply_long(
        &self,
        row: &LongRow,
        module: &Module,
        registers: &mut Registers,
    ) -> Step {
        let evaluation = LongEvaluation { frame: self, row, module, callee: registers };
        let (caller, return_address) = match evaluation.run() {
            Ok(found) => found,
            Err(end) => return Step::End(end),
        };
        *registers = caller;
        if row.signal_frame {
            // Whatever was interrupted had an address, be it no address of code: a call of a null
            // pointer is interrupted at zero.
            registers.set(self.facts.program_counter, return_address);
            return Step::Caller(FrameAddress::Instruction(ProcessAddress(return_address)));
        }
        self.caller(return_address, registers)
    }

    /// The frame that a return address leads to.
    pub(crate) fn caller(&self, return_address: u64, registers: &mut Registers) -> Step {
        let address = return_address & self.facts.code_address_mask;
        if address == 0 {
            return Step::End(StackEnd::Root);
        }
        registers.set(self.facts.program_counter, address);
        Step::Caller(FrameAddress::Return(ProcessAddress(address)))
    }

    /// Whether the frame is the first one of a process, as the kernel starts it: its stack pointer
    /// points to the number of arguments, their addresses and a zero word. `None` where it does
    /// not; [`StackEnd::CopyTooShort`] where the copy ends before that.
    pub(crate) fn process_start(&self, registers: &Registers) -> Option<StackEnd> {
        let sp = registers.get(self.facts.stack_pointer)?;
        let word = |index: u64| self.stack.read_u64(sp.wrapping_add(index.wrapping_mul(8)));
        let arguments = match word(0) {
            Ok(count) if count <= MAX_ARGUMENTS => count,
            Ok(_) => return None,
            Err(unreadable) => return Some(unreadable.stack_end()),
        };
        match word(arguments + 1) {
            Ok(0) => Some(StackEnd::Root),
            Ok(_) => None,
            Err(unreadable) => Some(unreadable.stack_end()),
        }
    }

    /// Callers lie at higher addresses. Only a frame that has called nobody may be empty, where
    /// calls leave the return address in a register.
    fn advances(&self, sp: u64, cfa: u64) -> bool {
        cfa > sp || (cfa == sp && self.is_exact)
    }

    /// A register's value as it was saved at `address`.
    ///
    /// A word below the stack pointer was popped: tables go on naming it through the epilogue,
    /// while the register already has the value back. Not so the program counter, of course.
    #[inline]
    fn saved(
        &self,
        register: u8,
        address: u64,
        sp: u64,
        registers: &Registers,
    ) -> Result<u64, Unreadable> {
        let is_popped = address < sp && sp - address <= MAX_POPPED;
        if is_popped && register != self.facts.program_counter {
            return registers.get(register).ok_or(Unreadable::OutsideStack);
        }
        self.stack.read_u64(address)
    }
}

/// A long row while it is applied. Rules see the registers of the callee only.
struct LongEvaluation<'e> {
    frame: &'e Frame<'e>,
    row: &'e LongRow,
    module: &'e Module,
    callee: &'e Registers,
}

impl LongEvaluation<'_> {
    /// The caller's registers, and the return address.
    fn run(&self) -> Result<(Registers, u64), StackEnd> {
        let facts = self.frame.facts;
        let row = self.row;
        let cfa = match &row.cfa {
            Cfa::Register(register, offset) => self.known(*register)?.wrapping_add_signed(*offset),
            Cfa::Expression(range) => self.expression(range, None)?,
        };
        let sp = self.callee.get(facts.stack_pointer).unwrap_or(0);
        // A signal handler may run on another stack, below or above the interrupted one.
        if !row.signal_frame && !self.frame.advances(sp, cfa) {
            return Err(StackEnd::BadValue);
        }
        let mut caller = *self.callee;
        if !row.signal_frame {
            caller.keep_only(facts.callee_saved);
        }
        caller.set(facts.stack_pointer, cfa);
        let mut return_address = self.known(row.return_address);
        for (register, rule) in &row.rules {
            let value = self.value(*register, rule, cfa, sp);
            if *register == row.return_address {
                return_address = value;
            }
            match value {
                Ok(value) => caller.set(*register, value),
                Err(_) => caller.forget(*register),
            }
        }
        // The caller's own return address is not the one that leads to it.
        if !row.signal_frame {
            caller.forget(row.return_address);
        }
        Ok((caller, return_address?))
    }

    fn value(&self, register: u8, rule: &Rule, cfa: u64, sp: u64) -> Result<u64, StackEnd> {
        let saved = |address| {
            let value = self.frame.saved(register, address, sp, self.callee);
            value.map_err(Unreadable::stack_end)
        };
        match rule {
            Rule::Undefined => Err(StackEnd::BadValue),
            Rule::SameValue => self.known(register),
            Rule::Offset(offset) => saved(cfa.wrapping_add_signed(*offset)),
            Rule::ValOffset(offset) => Ok(cfa.wrapping_add_signed(*offset)),
            Rule::Register(other) => self.known(*other),
            Rule::Expression(range) => saved(self.expression(range, Some(cfa))?),
            Rule::ValExpression(range) => self.expression(range, Some(cfa)),
        }
    }

    fn known(&self, register: u8) -> Result<u64, StackEnd> {
        self.callee.get(register).ok_or(StackEnd::BadValue)
    }

    fn expression(
        &self,
        range: &std::ops::Range<usize>,
        initial: Option<u64>,
    ) -> Result<u64, StackEnd> {
        let bytes = self.module.expression(self.row.table, range.clone());
        evaluate(bytes.ok_or(StackEnd::BadValue)?, initial, self.callee, self.frame.stack)
    }
}

#[cfg(test)]
mod tests;
