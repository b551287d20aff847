//! Where addresses of a process point to, and what kind of address a frame has.

use flame_profile::{Bias, ImageAddress, ProcessAddress, StackEnd};

use crate::epilogue::Epilogue;
use crate::registers::Registers;
use crate::stack_copy::StackCopy;

/// A module that was added to an unwinder: its position in the order of addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub(crate) u32);

impl ModuleId {
    /// The position in the order of addition, from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An address of a process as an address of the image that is mapped there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeAddress {
    /// The image.
    pub module: ModuleId,
    /// The address as the image's own tables state it.
    pub address: ImageAddress,
    /// Where the process has the image.
    pub bias: Bias,
}

impl CodeAddress {
    /// The image address of `address` in a module that is mapped with that bias.
    pub fn new(module: ModuleId, address: ProcessAddress, bias: Bias) -> CodeAddress {
        CodeAddress { module, address: bias.to_image_address(address), bias }
    }

    /// Another process address, seen through the mapping of this one.
    pub(crate) fn to_image_address(self, address: ProcessAddress) -> ImageAddress {
        self.bias.to_image_address(address)
    }
}

/// What an address of a process points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Into an executable mapping of an image whose sections the unwinder has.
    Module(CodeAddress),
    /// Into executable memory of which no image is known: JIT code, or a file that is gone.
    Executable,
    /// The same, behind a call whose function does nothing more when it comes back: of a return
    /// address, the code there says where the caller is.
    Epilogue(Epilogue),
    /// The same, in code that its runtime tells about: [`FindCode::leave`] is asked first.
    Runtime,
    /// Into no executable memory.
    NotCode,
}

/// Knows what addresses point to. A closure that does is one.
pub trait FindCode {
    /// What an address points to.
    fn code(&mut self, address: ProcessAddress) -> Code;

    /// Leaves a frame in [`Code::Runtime`].
    fn leave(&mut self, _frame: RuntimeFrame<'_>) -> Left {
        Left::Unknown
    }
}

impl<F: FnMut(ProcessAddress) -> Code> FindCode for F {
    fn code(&mut self, address: ProcessAddress) -> Code {
        self(address)
    }
}

/// A frame in code that its runtime tells about.
#[derive(Clone, Copy, Debug)]
pub struct RuntimeFrame<'f> {
    /// Its position in the stack, 0 for the innermost.
    pub position: usize,
    /// Where it is.
    pub address: FrameAddress,
    /// Its registers, as far as they are known.
    pub registers: &'f Registers,
    /// The stack.
    pub stack: &'f StackCopy<'f>,
}

/// What a runtime tells of a frame of its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Its caller, as surely as a table says it.
    Caller(RuntimeCaller),
    /// The stack cannot be followed from there.
    End(StackEnd),
    /// Nothing: it is left like any code without tables.
    Unknown,
}

/// The caller of a frame in a runtime's code: nothing is known of other registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuntimeCaller {
    /// The return address.
    pub address: ProcessAddress,
    /// The stack pointer behind the return.
    pub stack_pointer: ProcessAddress,
    /// The frame pointer, as far as it is known.
    pub frame_pointer: Option<u64>,
}

/// The address of one frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameAddress {
    /// The instruction that was about to run: of the sampled frame, and of one that a signal
    /// interrupted.
    Instruction(ProcessAddress),
    /// The instruction after a call, which may already belong to another line or function.
    Return(ProcessAddress),
}

impl FrameAddress {
    /// The address as it was found.
    pub fn address(self) -> ProcessAddress {
        match self {
            FrameAddress::Instruction(address) | FrameAddress::Return(address) => address,
        }
    }

    /// An address inside the instruction that the frame stands at, the call for a return address:
    /// what tables and symbols are to be asked for.
    pub fn lookup_address(self) -> ProcessAddress {
        match self {
            FrameAddress::Instruction(address) => address,
            FrameAddress::Return(address) => ProcessAddress(address.0.saturating_sub(1)),
        }
    }

    /// Whether the address is that of the instruction itself.
    pub fn is_exact(self) -> bool {
        matches!(self, FrameAddress::Instruction(_))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Architecture, CfiUnwinder, UnwindSections};

    #[test]
    fn modules_are_numbered_as_they_are_added() {
        let mut unwinder = CfiUnwinder::new(Architecture::X86_64);
        let positions = [(); 3].map(|()| unwinder.add_module(UnwindSections::default()).index());
        assert_eq!(positions, [0, 1, 2]);
    }
}
