//! PHP 8, built without threads (NTS).
//!
//! ```text
//!   executor_globals ─▶ frame ─▶ the one outside ─▶ ... ─▶ that of the main script
//!                         │ function: name, class, file, instructions with their lines
//!                         ▼ instruction
//! ```
//!
//! A loop over instructions (`execute_ex`) runs a frame, and those that it calls: which frame began a loop is
//! said in it. GCC's builds have the frame that runs and the instruction in registers of their own (r14 and
//! r15), others somewhere in the loop's part of the stack. Frames of internal functions stand in the same list.
//!
//! Sources: zend_compile.h, zend_globals.h, zend_generators.h, zend_fibers.c, zend_vm_def.h of each version.

pub(crate) mod chain;
pub(crate) mod define;
pub(crate) mod layout;
pub(crate) mod place;
