//! Frames of interpreted programs, from the memory of their interpreters.
//!
//! What runs in an interpreter is on no native stack: its frames lie in memory that changes with each
//! call. So the work is done in two steps, at two times:
//!
//! ```text
//!   while the thread stands still   Catcher::catch   its chain of frames, functions met first: bytes
//!   later                           join             which native frame runs which of them
//!                                   Function::line   names and lines
//! ```
//!
//! [`Known`] tells whoever does the first step in which processes there is something to be caught, and
//! where. A native stack proves of a chain that it is of the same moment ([`join`]): what it does not
//! prove is an error with a reason, and nothing is guessed.
//!
//! All memory is a target's, and may hold anything: chains are bounded, lengths checked, and what is
//! no object of the right type is not believed. Nothing here knows how memory is read or where
//! registers come from.
//!
//! ```
//! use flame_interpreters::{Catcher, Known, Layout, Memory, Part, PythonBuild, Thread};
//!
//! /// A process that has ended.
//! struct Gone;
//! impl Memory for Gone {
//!     fn read(&self, _: &[Part], _: &mut [u8]) -> usize {
//!         0
//!     }
//! }
//!
//! let layout = Layout::python(&PythonBuild { minor: 11, code_type: 0x4000 }).unwrap();
//! let known = Known::default();
//! known.add(4242, &layout, 0x5555_0000);
//! let (layout, runtime) = known.interpreters_of(4242).next().unwrap();
//! let mut out = vec![0; Catcher::MOST];
//! let registers = Default::default();
//! let thread = Thread { pid: 4242, tid: 4243, stack_pointer: 0x7ffc_0000, registers };
//! let len = Catcher::default().catch(layout, runtime, thread, &Gone, &mut out);
//! let caught = flame_interpreters::Caught::parse(&out[..len]).unwrap();
//! assert_eq!(caught.outcome(), flame_interpreters::Outcome::NoThread);
//! ```

// What is read here a stranger may have written: no number loses bits without a word.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod catch;
mod caught;
mod function;
mod join;
mod known;
mod lua;
mod luajit;
mod memory;
mod met;
mod perl;
mod php;
mod python;
mod ruby;
#[cfg(test)]
mod testing;

pub use catch::{Catcher, SampledRegisters, Thread};
pub use caught::{Caught, Defined, Entry, Outcome};
pub use function::Function;
pub use join::{Mismatch, NativeFrame, Placed, join, join_innermost};
pub use known::{Judged, Known, Layout};
pub use lua::layout::LuaBuild;
pub use luajit::layout::LuaJitBuild;
pub use luajit::trace::{RunningTrace, TraceCaller};
pub use memory::{Memory, Part};
pub use perl::layout::PerlBuild;
pub use php::layout::PhpBuild;
pub use python::layout::{DEBUG_OFFSETS, PythonBuild};
pub use ruby::layout::RubyBuild;
