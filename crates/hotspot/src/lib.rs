//! Frames and methods of a Java VM (HotSpot), from outside and while it runs.
//!
//! The VM exports tables that say where its structures have what ([`Tables`]), for debuggers that look at
//! it when it has crashed. They lead to its heaps of code: which piece of code an address is in, how
//! large its frames are, which method it is. So compiled code can be left without frame pointers, and
//! its methods have names, without asking the VM for anything.
//!
//! ```text
//!   Tables::read -> Layout::of -> Vm::open       once a process
//!   Vm::covers                                   is that address its code?
//!   Vm::leave     (pc, registers, stack)         the caller, and what the frame is called
//! ```
//!
//! Compiled code, and what it calls the VM through, is left by the size of its frame; interpreted frames by
//! the frame pointer, which they always have; the stub by which the VM calls Java too. Where a method is
//! being entered or left, the instructions that follow say how far it is. What none of that proves is
//! [`Left::NotProven`].
//!
//! All of it is a target's memory and may hold anything: sizes, loops and what is kept are bounded, and
//! what does not fit together is not believed. Nothing here knows how memory is read or where registers
//! come from. x86-64 only.
//!
//! ```
//! use flame_hotspot::{EXPORTS, Memory, Tables};
//!
//! /// A process that has ended.
//! struct Gone;
//! impl Memory for Gone {
//!     fn read(&self, _: u64, _: &mut [u8]) -> bool {
//!         false
//!     }
//! }
//!
//! assert!(Tables::read(&Gone, &[0x7f00_0000_1000; EXPORTS.len()]).unwrap().is_none());
//! ```

// What is read here a stranger may have written: no number loses bits without a word.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod blob;
mod codelets;
mod debug_information;
mod heaps;
mod layout;
mod leave;
mod memory;
mod names;
mod scopes;
mod shown;
mod tables;
pub mod testing;
mod vm;
mod x86_64;

pub use layout::{Layout, Unknown};
pub use leave::{Frame, Left, Thread};
pub use memory::Memory;
pub use shown::{Names, Shown};
pub use tables::{EXPORTS, Tables};
pub use vm::Vm;
