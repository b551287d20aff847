//! What differs between architectures, as data; the rest of the crate is the same for all.

mod aarch64;
mod x86_64;

/// An architecture whose stacks can be walked. All of them are there on every host, for profiles
/// that were recorded elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Architecture {
    /// 64-bit x86; 32-bit processes are not covered.
    X86_64,
    /// 64-bit Arm, little-endian; 32-bit processes are not covered.
    Aarch64,
}

impl Architecture {
    /// The architecture that this program was built for.
    pub const NATIVE: Architecture =
        if cfg!(target_arch = "aarch64") { Architecture::Aarch64 } else { Architecture::X86_64 };

    /// The registers to ask the kernel for (`sample_regs_user`): all that [`crate::Registers`]
    /// has room for.
    pub fn perf_register_mask(self) -> u64 {
        let numbers = self.facts().perf_to_dwarf.iter().enumerate();
        numbers.filter(|(_, dwarf)| dwarf.is_some()).fold(0, |mask, (perf, _)| mask | 1 << perf)
    }

    pub(crate) fn facts(self) -> &'static Facts {
        match self {
            Architecture::X86_64 => &x86_64::FACTS,
            Architecture::Aarch64 => &aarch64::FACTS,
        }
    }
}

/// How far a function that has no table has come with setting up its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameState {
    /// Nothing was pushed: the return address is where the call left it.
    Bare,
    /// The caller's frame pointer is pushed and not yet replaced.
    FramePointerPushed,
    /// The instruction does not tell.
    Unknown,
}

/// Where a call leaves the return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallLeaves {
    /// In the word that the stack pointer points to.
    OnStack,
    /// In that register.
    InRegister(u8),
}

/// The facts of one architecture. Registers are DWARF numbers.
#[derive(Debug)]
pub(crate) struct Facts {
    /// By the kernel's register number; `None` for those that unwinding never needs.
    pub(crate) perf_to_dwarf: &'static [Option<u8>],
    pub(crate) stack_pointer: u8,
    pub(crate) frame_pointer: u8,
    pub(crate) program_counter: u8,
    /// The column of the return address in the tables of usual compilers.
    pub(crate) return_address: u8,
    /// Bit n is set when a callee gives register n back as it was.
    pub(crate) callee_saved: u64,
    pub(crate) call_leaves: CallLeaves,
    /// The bits of a code pointer that are address; the others may be a signature.
    pub(crate) code_address_mask: u64,
    /// Whether the code that ends with these bytes ends with a call.
    pub(crate) ends_with_call: fn(&[u8]) -> bool,
    /// The target of the direct call that the code ends with, relative to its end.
    pub(crate) direct_call_target: fn(&[u8]) -> Option<i64>,
    /// Whether code that starts with these bytes only jumps to where another image's function is.
    pub(crate) is_plt_stub: fn(&[u8]) -> bool,
    /// Whether code that starts with these bytes ends a signal handler (`rt_sigreturn`).
    pub(crate) is_signal_return: fn(&[u8]) -> bool,
    /// Where the kernel saves the interrupted registers, in bytes from the stack pointer that the
    /// handler returns with.
    pub(crate) signal_frame: &'static [(u8, u64)],
    /// Whether tables of signal frames give all registers back.
    pub(crate) signal_rows_are_whole: bool,
    /// What the code before and from the program counter on tells of the frame.
    pub(crate) frame_state: fn(before: &[u8], at: &[u8]) -> FrameState,
    /// Whether the code from the program counter on can only return to where the call left the return address,
    /// with all that is the caller's as it is now.
    pub(crate) only_returns: fn(before: &[u8], at: &[u8]) -> bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_asked_for_all_registers_but_flags_and_segments() {
        assert_eq!(Architecture::X86_64.perf_register_mask(), 0xff_01ff);
        assert_eq!(Architecture::Aarch64.perf_register_mask(), (1 << 33) - 1);
    }
}
