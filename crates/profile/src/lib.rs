//! The model that every other crate of flame turns something into or out of.
//!
//! A [`Profile`] holds samples: for each distinct (thread, stack) pair one count per [`ValueType`].
//! Stacks are interned as parent-linked nodes over [`Location`]s, and a location expands into one
//! or more [`Frame`]s where functions were inlined, exactly as in pprof. A [`CallTree`] merges
//! stacks by name into one node a distinct path; renderers and the folded writer start from it.
//!
//! This crate does no I/O besides writing to a given `io::Write`, knows no file format but folded
//! text, and depends on nothing that touches the operating system.
//!
//! ```
//! use flame_profile::{Annotations, CallTree, FrameKind, Location, Profile, TreeOptions};
//! use flame_profile::{Pid, StackId, Tid, ValueType, write_folded};
//!
//! let mut profile = Profile::new(vec![ValueType::samples()]);
//! let main = profile.add_frame("main", FrameKind::User);
//! let parse = profile.add_frame("parse_json", FrameKind::User);
//! let thread = profile.add_thread("server", Pid(4242), Tid(4242));
//! let outer = profile.add_location(Location::named(main));
//! let inner = profile.add_location(Location::named(parse));
//! let stack = profile.push_stack(StackId::EMPTY, outer);
//! let stack = profile.push_stack(stack, inner);
//! profile.add_sample(thread, stack, &[7]);
//!
//! let tree = CallTree::from_profile(&profile, &TreeOptions::default());
//! let mut folded = Vec::new();
//! write_folded(&tree, Annotations::Write, &mut folded).unwrap();
//! assert_eq!(folded, b"server;main;parse_json 7\n");
//! ```

// What is read here a stranger may have written: no number loses bits without a word.
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod address;
mod call_tree;
mod completion;
mod folded;
mod frame;
mod frame_label;
mod health;
mod ids;
mod image;
mod interner;
mod meta;
mod off_cpu;
mod profile;
mod readable;
mod scripts;
mod shared_bytes;
mod stack;
mod timeline;
mod top;
mod units;
mod whole;

pub use address::{Bias, FileOffset, ImageAddress, ProcessAddress};
pub use call_tree::UnsortedStacks;
pub use call_tree::{
    Before, CallTree, Label, LabelId, Node, NodeId, Recursion, RootFrame, RootName,
};
pub use call_tree::{BuilderNode, Lane, Run, SiblingOrder, TooLarge, TreeBuilder, TreeOptions};
pub use completion::{Evidence, NotRead, StackCopies};
pub use folded::{
    Annotations, Columns, FirstFrames, FoldedError, FoldedLines, FoldedPart, FoldedParts,
    FoldedReader, FoldedText, FoldedTree, LineCounts, MAX_LINE, NO_COUNT, SkippedLine, TOO_LONG,
    write_folded,
};
pub use frame::{Frame, FrameKind, Location, is_mark_name};
pub use health::{Coverage, Health, Missing, Occurrences, StackEnd};
pub use ids::{Cpu, FrameId, ImageId, LocationId, Pid, StackId, StrId, ThreadId, Tid, narrow};
pub use image::{BuildId, Image};
pub use interner::StringTable;
pub use meta::Meta;
pub use off_cpu::OffCpuTime;
pub use profile::{Profile, Sample, Thread};
pub use readable::{is_direction_mark, readable};
pub use scripts::ScriptEnd;
pub use shared_bytes::SharedBytes;
pub use stack::StackTable;
pub use timeline::{TimedSample, Timeline};
pub use top::{FunctionShare, functions};
pub use units::{ByteLen, Hz, Nanos, ValueType, Weight};
pub use whole::whole;
