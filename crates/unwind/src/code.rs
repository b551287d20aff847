//! Where addresses of a process point to, and what kind of address a frame has.

use flame_profile::{ImageAddress, ProcessAddress};

use crate::epilogue::Epilogue;

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
    /// Process address minus image address, wrapping.
    pub bias: u64,
}

impl CodeAddress {
    /// The image address of `address` in a module that is mapped with that bias.
    pub fn new(module: ModuleId, address: ProcessAddress, bias: u64) -> CodeAddress {
        CodeAddress { module, address: ImageAddress(address.0.wrapping_sub(bias)), bias }
    }

    /// Another process address, seen through the mapping of this one.
    pub(crate) fn to_image_address(self, address: ProcessAddress) -> ImageAddress {
        ImageAddress(address.0.wrapping_sub(self.bias))
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
    /// Into no executable memory.
    NotCode,
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
    pub(crate) fn is_exact(self) -> bool {
        matches!(self, FrameAddress::Instruction(_))
    }
}
