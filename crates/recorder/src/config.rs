//! What a caller chooses.

/// What completes stacks that go on beyond their copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Complete {
    /// Nothing: they stay truncated.
    Off,
    /// The memory of the process.
    Read,
    /// That, and other stacks of the thread that were read. The default, since what it adds is
    /// marked as a guess.
    #[default]
    All,
}
