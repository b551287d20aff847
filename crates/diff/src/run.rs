//! What is compared: one recording a run, one run or several a side.

use flame_profile::{CallTree, Nanos};

/// One recording of a side.
#[derive(Clone, Debug)]
pub struct Run {
    /// What it is called in messages: the file's name.
    pub name: String,
    /// Its stacks, siblings in the order of their names ([`flame_profile::SiblingOrder::Name`]).
    /// What it has as weights before is not a profile of its own here: see [`Samples::Counted`].
    pub tree: CallTree,
    /// How many samples stand behind its weights.
    pub samples: Samples,
    /// How long was recorded, where that is known.
    pub duration: Option<Nanos>,
}

/// How many samples stand behind a weight: all that tells a change from noise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Samples {
    /// A sample weighs the common divisor of all weights, or 1 where they have none. The default,
    /// since folded text of every tool counts either samples or periods of one length.
    #[default]
    Divisor,
    /// That many samples for each whole unit of weight; above 0.
    PerUnit(f64),
    /// [`CallTree::before`] of the run's tree has the number of samples of each node.
    Counted,
}
