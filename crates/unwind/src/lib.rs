//! Return addresses from registers, a copy of the stack and call frame information.
//!
//! [`CfiUnwinder`] walks the stack of one sample as the DWARF tables of the mapped images say,
//! through the frame pointer where they are silent, and tells why it ended. It tracks all general
//! registers that the kernel gave, so frames whose address hangs on any of them are walked too
//! (realigned stacks, hand-written assembly, signal frames, PLT stubs). It does no I/O: sections
//! are bytes that the caller brings, the memory of the process is the copied stack and nothing
//! else.
//!
//! Sources: DWARF 5 section 6.4, the LSB's description of `.eh_frame` and `.eh_frame_hdr`, the
//! System V ABI supplements for x86-64 and AArch64.
//!
//! ```
//! use flame_image::Section;
//! use flame_profile::{Bias, ImageAddress, ProcessAddress, SharedBytes, StackEnd};
//! use flame_unwind::{Architecture, CfiUnwinder, Code, CodeAddress, FrameAddress, Registers};
//! use flame_unwind::{StackCopy, StackLimit, UnwindSections, Unwinder};
//!
//! // A sampled thread at 0x55d2_0000_1004 with two words of stack, in an image without tables.
//! let mut unwinder = CfiUnwinder::new(Architecture::X86_64);
//! let text = Section { address: ImageAddress(0x1000), bytes: SharedBytes::from(vec![0x90; 64]) };
//! let module = unwinder.add_module(UnwindSections { text: Some(text), ..Default::default() });
//! let bias = Bias::between(ProcessAddress(0x55d2_0000_1000), ImageAddress(0x1000));
//! let mut find = |address: ProcessAddress| match address.0.wrapping_sub(0x55d2_0000_0000) {
//!     0x1000..0x1040 => Code::Module(CodeAddress::new(module, address, bias)),
//!     _ => Code::NotCode,
//! };
//! let mask = Architecture::X86_64.perf_register_mask();
//! // rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, rip, r8 to r15: the order of the bits of the mask.
//! let values = [0, 0, 0, 0, 0, 0, 0, 0x7ffc_0000, 0x55d2_0000_1004, 0, 0, 0, 0, 0, 0, 0, 0];
//! let registers = Registers::from_perf(Architecture::X86_64, mask, values);
//! let stack = StackCopy::new(ProcessAddress(0x7ffc_0000), &[0; 16], &[], StackLimit::StackEnded);
//!
//! let mut frames = Vec::new();
//! let end = unwinder.unwind(&mut find, &registers, &stack, 512, &mut frames);
//! assert_eq!(frames, [FrameAddress::Instruction(ProcessAddress(0x55d2_0000_1004))]);
//! assert_eq!(end, StackEnd::NoUnwindInfo);
//! ```

// What is read here a stranger may have written: no number loses bits without a word.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod arch;
mod code;
mod compile;
mod epilogue;
mod expression;
mod fallback;
mod go_frames;
mod instruction;
mod module;
mod prologue;
mod registers;
mod row;
mod row_cache;
mod section;
mod stack_copy;
mod step;
#[cfg(test)]
mod testing;
mod unwinder;

pub use arch::Architecture;
pub use code::{
    Code, CodeAddress, FindCode, FrameAddress, Left, ModuleId, RuntimeCaller, RuntimeFrame,
};
pub use epilogue::Epilogue;
pub use registers::Registers;
pub use section::UnwindSections;
pub use stack_copy::{StackCopy, StackLimit, Unreadable};
pub use unwinder::{CfiUnwinder, DEFAULT_FRAME_LIMIT, Unwinder};
