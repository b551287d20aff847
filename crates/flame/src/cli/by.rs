//! `--by`: what the outermost boxes are called after.

use flame_profile::{RootFrame, RootName};

/// What `--by` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum By {
    /// Each thread by itself, with its name and number
    Thread,
    /// Processes by their names
    Process,
    /// Threads by their names, numbers included
    Comm,
    /// Processes by the titles that they have set themselves
    Title,
    /// No such boxes: stacks start with their outermost function
    None,
}

impl By {
    /// Sets what the outermost boxes say.
    pub(crate) fn set(self, root: &mut RootFrame) {
        root.by = match self {
            By::Thread | By::Comm => RootName::Comm,
            By::Process => RootName::Process,
            By::Title => RootName::Title,
            By::None => RootName::None,
        };
        root.tid |= self == By::Thread;
    }
}
