//! LuaJIT 2.1 as built for 64-bit addresses (GC64), on x86-64.
//!
//! ```text
//!   native stack ─▶ state ─▶ its C frames: where on the native stack its interpreter runs
//!                     │ frames, one above the other on the state's own stack, each with a link to its caller
//!                     ▼ function: prototype: file, lines; what the instruction that called it calls it
//! ```
//!
//! The interpreter is written in assembler: it has the frame that runs and the next instruction in registers.
//! Where it has called something in C both are in memory. Compiled code is a *trace*: the frame that it began
//! in is in memory, with all callers; the functions that were compiled into it are nowhere.
//!
//! Sources: lj_obj.h, lj_frame.h, lj_jit.h, lj_bc.h, lj_debug.c, vm_x64.dasc.

pub(crate) mod chain;
pub(crate) mod define;
pub(crate) mod frames;
pub(crate) mod layout;
pub(crate) mod names;
pub(crate) mod state;
pub(crate) mod trace;
