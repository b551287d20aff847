//! Two profiles as one tree: what grew, what shrank, and which of it is real.
//!
//! A [`DiffTree`] is the union of all paths of both sides with the weights that each had before and
//! has after, by one exact factor ([`Scale`]) comparable with one another, and for each change the
//! [`Evidence`] that it is none of chance. It draws nothing and reads nothing.
//!
//! ```
//! use flame_diff::{DiffConfig, DiffTree, Presence, Run, Samples};
//! use flame_profile::{Columns, FoldedReader, SiblingOrder, ValueType};
//!
//! let run = |name: &str, text: &str| {
//!     let mut reader = FoldedReader::new(Columns::One, SiblingOrder::Name);
//!     reader.read(&mut text.as_bytes()).unwrap();
//!     let tree = reader.finish(ValueType::samples());
//!     Run { name: name.to_owned(), tree, samples: Samples::PerUnit(1.0), duration: None }
//! };
//! let before = run("v1.folded", "server;main;parse 600\nserver;main;send 400\n");
//! let after = run("v2.folded", "server;main;parse 1000\nserver;main;encode 1000\n");
//! let tree = DiffTree::new(&[before], &[after], &DiffConfig::default())?;
//!
//! assert_eq!(tree.scale().factor(), 2.0);
//! let parse = tree.functions().iter().find(|f| tree.labels()[f.label.index()].name == "parse");
//! let parse = parse.unwrap();
//! assert_eq!(tree.points(tree.self_change(parse.before, parse.after)), -10.0);
//! let new = tree.nodes().iter().filter(|node| node.presence() == Presence::New);
//! assert_eq!(new.map(|node| &*tree.label(node).name).collect::<Vec<_>>(), ["encode"]);
//! # Ok::<(), flame_diff::DiffError>(())
//! ```

mod behind;
mod chance;
mod comparable;
mod compare;
mod counts;
mod error;
mod evidence;
mod family;
mod function;
mod gate;
mod interrupts;
mod judge;
mod names;
mod of_kernel;
mod run;
mod samples;
mod scale;
mod special;
mod spread;
mod tree;
mod union;

#[cfg(test)]
mod test_runs;

pub use behind::samples_of;
pub use comparable::Comparable;
pub use compare::{DEFAULT_ALPHA, DiffConfig, ONE_RUN_LEAST};
pub use error::DiffError;
pub use evidence::Evidence;
pub use function::FunctionChange;
pub use gate::{Excess, Gate, NoGate, Part};
pub use names::Names;
pub use run::{Run, Samples, counted_tree, match_roots, side_of};
pub use scale::{Scale, Scaling};
pub use tree::{DiffNode, DiffTree, Presence, Side, Weights};
