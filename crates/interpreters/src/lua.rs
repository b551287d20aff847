//! Lua as its authors wrote it: 5.1 to 5.4.
//!
//! ```text
//!   native stack ─▶ state of a coroutine ─▶ call ─▶ the one outside ─▶ ... ─▶ the first, in the state
//!                                             │ function, on the state's own stack: prototype: name, lines
//!                                             ▼ instruction: what its caller calls it
//! ```
//!
//! No variable leads to a state, and each coroutine has its own. But whoever works on one has its address
//! on the native stack, and what is a state shows itself: its calls lead back into it.
//!
//! Functions have no names in Lua. They are called what the instruction that called them calls them, as
//! in Lua's own tracebacks.
//!
//! Sources: lstate.h, lobject.h, lopcodes.h, ldebug.c, ldo.c, lvm.c of each version.

pub(crate) mod chain;
pub(crate) mod code;
pub(crate) mod define;
pub(crate) mod layout;
pub(crate) mod lines;
pub(crate) mod names;
pub(crate) mod place;
pub(crate) mod recall;
pub(crate) mod states;
