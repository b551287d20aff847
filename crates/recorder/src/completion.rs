//! Stacks that went on beyond their copy become whole, where the evidence allows it.
//!
//! A cut stack shows the frames from the sampled instruction up to some function whose return
//! address lies beyond the copied bytes. What lies outwards of it is taken
//!
//! 1. from the memory of the process, read when the sample is drained ([`CopyThenProcess`]), if
//!    that still agrees with the copy and leads to the root by call frame information;
//! 2. from another stack of the same thread, sooner or later ([`Chains`]): one in which the same
//!    function stood at the same place of the stack. Only those count that were read from the
//!    process and agreed, since stacks that are whole in their copies are others than those that are
//!    not, and nothing is completed so where the process cannot be read. It is a guess all the same,
//!    marked as such ([`flame_profile::Evidence`]) and not counted as complete.
//!
//! `--complete` says which of the two are done. Neither is proof by itself: between the sample and
//! the reading the thread may have returned and have called the same functions again, at the same
//! addresses, from somewhere else. So the last word is spoken when the recording is over ([`Cuts`]).
//! Whoever has been seen with two different callers at the same place is completed in neither way
//! and stays truncated, be it read or not; only rare sights that rest on a call which may be of
//! anybody do not count (see [`Chains`]).
//!
//! Where too many stacks stay short in spite of all this, more is to be copied ([`Growth`]).
//!
//! What remains is a caller that was never once read or copied whole, although another one, which
//! has its frame at the same addresses, was. Since stacks are read at moments that the program
//! knows nothing of, such a caller has a share of about one in as many samples as were read.

mod chains;
mod cuts;
mod growth;
mod live;
mod source;

pub(super) use chains::{Activation, Chains, KnownFrame, MemoryId, NodeId, Sight};
pub(super) use cuts::{Cut, Cuts};
pub(super) use growth::Growth;
pub(super) use live::{LiveMemory, Reader};
pub(super) use source::{CopyThenProcess, MUST_AGREE};
