//! The registers of one frame, by DWARF number.

use std::fmt;

use flame_profile::ProcessAddress;

use crate::arch::Architecture;

/// How many registers are tracked: the largest DWARF number of a general register, the program
/// counter included, plus 1 (33 on AArch64, 17 on x86-64).
pub(crate) const TRACKED_REGISTERS: usize = 33;

/// The general registers of one frame, each known or not, by DWARF number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    /// Those that are not known are stale; only `known` tells.
    values: [u64; TRACKED_REGISTERS],
    /// Bit n is set when register n is known.
    known: u64,
}

impl Registers {
    /// The registers of a perf sample: `mask` is the event's `sample_regs_user`, `values` has one
    /// value for each bit that is set, lowest bit first. Registers beyond the general ones are
    /// left out.
    pub fn from_perf(
        architecture: Architecture,
        mask: u64,
        values: impl IntoIterator<Item = u64>,
    ) -> Registers {
        let perf_to_dwarf = architecture.facts().perf_to_dwarf;
        let mut registers = Registers::default();
        let numbers = (0..64usize).filter(|bit| mask & (1 << bit) != 0);
        for (perf, value) in numbers.zip(values) {
            if let Some(Some(register)) = perf_to_dwarf.get(perf) {
                registers.set(*register, value);
            }
        }
        registers
    }

    /// Those of which nothing is known but where the thread is and where its stack ends.
    pub fn at(
        architecture: Architecture,
        program_counter: ProcessAddress,
        stack_pointer: ProcessAddress,
    ) -> Registers {
        let facts = architecture.facts();
        let mut registers = Registers::default();
        registers.set(facts.program_counter, program_counter.0);
        registers.set(facts.stack_pointer, stack_pointer.0);
        registers
    }

    /// The value of a register by its DWARF number, if it is known.
    #[inline]
    pub fn get(&self, register: u8) -> Option<u64> {
        let value = self.values.get(usize::from(register))?;
        (self.known & (1 << register) != 0).then_some(*value)
    }

    /// The stack pointer, if it is known: where a copy of the stack starts.
    pub fn stack_pointer(&self, architecture: Architecture) -> Option<ProcessAddress> {
        self.get(architecture.facts().stack_pointer).map(ProcessAddress)
    }

    /// Makes a register known; does nothing for one that is not tracked.
    #[inline]
    pub(crate) fn set(&mut self, register: u8, value: u64) {
        if let Some(slot) = self.values.get_mut(usize::from(register)) {
            *slot = value;
            self.known |= 1 << register;
        }
    }

    /// Makes a register unknown.
    pub(crate) fn forget(&mut self, register: u8) {
        if usize::from(register) < TRACKED_REGISTERS {
            self.known &= !(1 << register);
        }
    }

    /// Makes all registers unknown whose bit is not set in `mask`.
    #[inline]
    pub(crate) fn keep_only(&mut self, mask: u64) {
        self.known &= mask;
    }
}

impl Default for Registers {
    /// No register is known.
    fn default() -> Registers {
        Registers { values: [0; TRACKED_REGISTERS], known: 0 }
    }
}

impl fmt::Debug for Registers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for register in (0..u8::MAX).take(TRACKED_REGISTERS) {
            if let Some(value) = self.get(register) {
                map.entry(&register, &format_args!("{value:#x}"));
            }
        }
        map.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(architecture: Architecture, perf: u32, dwarf: u8) {
        let registers = Registers::from_perf(architecture, 1 << perf, [0xabcd]);
        assert_eq!(format!("{registers:?}"), format!("{{{dwarf}: 0xabcd}}"));
    }

    #[test]
    fn a_thread_that_waits_has_its_place_and_its_stack_alone() {
        let (at, stack) = (ProcessAddress(0x1234), ProcessAddress(0x7ffc_0000));
        for (architecture, expect) in [
            (Architecture::X86_64, "{7: 0x7ffc0000, 16: 0x1234}"),
            (Architecture::Aarch64, "{31: 0x7ffc0000, 32: 0x1234}"),
        ] {
            let registers = Registers::at(architecture, at, stack);
            assert_eq!(format!("{registers:?}"), expect);
            assert_eq!(registers.stack_pointer(architecture), Some(stack));
        }
        assert_eq!(Registers::default().stack_pointer(Architecture::X86_64), None);
    }

    #[test]
    fn perf_numbers_become_dwarf_numbers_on_x86_64() {
        // PERF_REG_X86_AX, BX, CX, DX, SI, DI, BP, SP, IP = 0..=8; R8..R15 = 16..=23.
        let pairs = [(0, 0), (1, 3), (2, 2), (3, 1), (4, 4), (5, 5), (6, 6), (7, 7), (8, 16)];
        for (perf, dwarf) in pairs {
            check(Architecture::X86_64, perf, dwarf);
        }
        for n in 8..16 {
            check(Architecture::X86_64, u32::from(n) + 8, n);
        }
    }

    #[test]
    fn perf_numbers_are_dwarf_numbers_on_aarch64() {
        for n in 0..33 {
            check(Architecture::Aarch64, u32::from(n), n);
        }
    }

    #[test]
    fn registers_that_are_not_tracked_take_their_place_among_the_values() {
        // Flags (9) and cs (10) stand between ip (8) and r8 (16).
        let mask = 1 << 8 | 1 << 9 | 1 << 10 | 1 << 16;
        let registers = Registers::from_perf(Architecture::X86_64, mask, [1, 2, 3, 4]);
        assert_eq!(format!("{registers:?}"), "{8: 0x4, 16: 0x1}");
    }
}
