//! How stacks became complete whose copy was too short, and how much of stacks was copied.

use std::fmt;

use crate::units::ByteLen;

/// Where outer frames came from that the copied bytes did not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Completion {
    /// Read from the process after the sample, while its stack still agreed with the copy.
    ReadFromProcess,
    /// The same thread was seen at the same place of its stack in the same function, complete,
    /// and never with other callers.
    EarlierStack,
}

impl Completion {
    /// All of them.
    pub const ALL: [Completion; 2] = [Completion::ReadFromProcess, Completion::EarlierStack];
}

impl fmt::Display for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Completion::ReadFromProcess => "read on from the process",
            Completion::EarlierStack => "as in another stack of the thread",
        })
    }
}

/// What the frames of a sample's stack rest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// They were copied with the sample, and found as unwind information says. So is what came
    /// from elsewhere with nothing else said of it.
    #[default]
    Copied,
    /// The outer ones were read from the process after the sample.
    ReadFromProcess,
    /// Some were guessed, on the way through code without unwind information.
    GuessedFrames,
    /// The outer ones are those of another stack of the thread: a guess.
    OtherStack,
}

impl Evidence {
    /// All of them.
    pub const ALL: [Evidence; 4] = [
        Evidence::Copied,
        Evidence::ReadFromProcess,
        Evidence::GuessedFrames,
        Evidence::OtherStack,
    ];
}

/// Why a stack whose copy was too short stays truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotCompleted {
    /// It had changed before it could be read, and no other stack of the thread tells.
    Changed,
    /// The memory of the process could not be read.
    Unreadable,
    /// More than one chain of callers was seen at its place.
    Ambiguous,
    /// Nobody asked for it.
    NotAsked,
}

impl NotCompleted {
    /// All of them.
    pub const ALL: [NotCompleted; 4] = [
        NotCompleted::Changed,
        NotCompleted::Unreadable,
        NotCompleted::Ambiguous,
        NotCompleted::NotAsked,
    ];
}

impl fmt::Display for NotCompleted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotCompleted::Changed => "changed before they could be read",
            NotCompleted::Unreadable => "memory of the process not readable",
            NotCompleted::Ambiguous => "with several callers to choose from",
            NotCompleted::NotAsked => "not completed, as asked for",
        })
    }
}

/// How much of user stacks was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackCopies {
    /// Samples that had a copy.
    pub samples: u64,
    /// Bytes asked for, the sum of all samples.
    pub asked: ByteLen,
    /// Bytes that were there to copy, the sum of all samples.
    pub copied: ByteLen,
}

impl StackCopies {
    /// Adds one sample's copy.
    pub fn add(&mut self, asked: ByteLen, copied: ByteLen) {
        self.samples = self.samples.saturating_add(1);
        self.asked = ByteLen(self.asked.0.saturating_add(asked.0));
        self.copied = ByteLen(self.copied.0.saturating_add(copied.0));
    }

    /// Bytes asked for a sample, on average; `None` of no samples.
    pub fn mean_asked(self) -> Option<ByteLen> {
        self.asked.0.checked_div(self.samples).map(ByteLen)
    }

    /// Bytes copied a sample, on average; `None` of no samples.
    pub fn mean_copied(self) -> Option<ByteLen> {
        self.copied.0.checked_div(self.samples).map(ByteLen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_have_means() {
        let mut copies = StackCopies::default();
        assert_eq!((copies.mean_asked(), copies.mean_copied()), (None, None));
        copies.add(ByteLen(16_384), ByteLen(2_000));
        copies.add(ByteLen(32_768), ByteLen(4_000));
        assert_eq!(copies.mean_asked(), Some(ByteLen(24_576)));
        assert_eq!(copies.mean_copied(), Some(ByteLen(3_000)));
    }
}
