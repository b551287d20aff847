//! Ruby as its authors wrote it (MRI): 2.7 to 3.4.
//!
//! ```text
//!   native stack ─▶ execution context ─▶ control frames, one behind the other: innermost ─▶ its caller ─▶ ...
//!                                          │ code (iseq): label, file, lines; the instruction that is next
//!                                          ▼ environment: flags; the method: its class and name
//! ```
//!
//! Each thread and each fiber has an execution context of its own, and who works on one has its address on the
//! native stack. The loop over instructions has in registers the control frame that it runs and the instruction
//! that is next: both tie a chain to the native stack, and to the moment.
//!
//! Sources: vm_core.h, vm_exec.c, vm_insnhelper.c, iseq.h, iseq.c, method.h, internal/class.h, symbol.c of each
//! version.

pub(crate) mod chain;
pub(crate) mod define;
pub(crate) mod layout;
pub(crate) mod lines;
pub(crate) mod objects;
pub(crate) mod place;
