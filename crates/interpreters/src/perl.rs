//! Perl 5: 5.28 to 5.42, with threads and without.
//!
//! ```text
//!   PL_curinterp ─▶ interpreter ─▶ stack ─▶ the one outside, as of sort or tie ─▶ ...
//!                        │            contexts: of a sub, an eval, a loop, ...
//!                        │              │ sub: name, file
//!                        ▼              ▼
//!                   the statement    the statement outside: file and line
//! ```
//!
//! All of it lies in the heap, and nothing of it on the native stack, save where `die` jumps to. What
//! the native stack says is how often perl runs a loop over operations (`Perl_runops_standard`), one
//! inside the other, of which interpreter, and which of them catch.
//!
//! Sources: cop.h, cv.h, gv.h, hv.h, intrpvar.h, inline.h, opnames.h, pp_ctl.c of each version.

pub(crate) mod define;
pub(crate) mod layout;
pub(crate) mod place;
pub(crate) mod stack;
pub(crate) mod subs;
