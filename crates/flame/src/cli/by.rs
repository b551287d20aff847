//! `--by`: what the outermost boxes are called after.

use flame_profile::{RootFrame, RootName};

/// What `--by` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum By {
    /// Each thread by its name and number, apart from all others
    Thread,
    /// The process by its name
    Process,
    /// Threads by their names as they are
    Comm,
    /// The process by the title that it has set itself
    Title,
    /// No such boxes: stacks begin with their outermost function
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
