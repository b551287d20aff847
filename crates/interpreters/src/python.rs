//! CPython: 3.8 to 3.15.
//!
//! ```text
//!   _PyRuntime ─▶ interpreters ─▶ threads ─▶ frames: innermost ─▶ its caller ─▶ ...
//!                                              │ code: name, file, lines
//!                                              │ position in the code
//! ```
//!
//! Sources: the headers of each version (Include/internal/pycore_frame.h, pycore_runtime.h,
//! pycore_interp.h, Include/cpython/code.h, pystate.h), Objects/locations.md, Objects/lnotab_notes.txt.

pub(crate) mod chain;
pub(crate) mod code;
pub(crate) mod hints;
pub(crate) mod layout;
pub(crate) mod lines;
pub(crate) mod thread;
