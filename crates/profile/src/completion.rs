//! What stacks rest on, why some were not read to their end, and how much of them was copied.

use std::fmt;

use crate::units::ByteLen;

/// What the frames of a sample's stack rest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// They were copied with the sample, and found as unwind information says. So is what came
    /// from elsewhere with nothing else said of it.
    #[default]
    Copied,
    /// The outer ones were read from the process, while the thread could not go on.
    ReadFromProcess,
    /// Some were guessed, on the way through code without unwind information.
    GuessedFrames,
}

impl Evidence {
    /// All of them.
    pub const ALL: [Evidence; 3] =
        [Evidence::Copied, Evidence::ReadFromProcess, Evidence::GuessedFrames];
}

/// Why a stack was not read beyond its copy, or not to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotRead {
    /// Nobody was there to read at the moment of the sample: it comes from a file, samples come too
    /// fast, or flame may not go before the target.
    NoReader,
    /// The reader came too late to be sure that the thread had not gone on.
    Late,
    /// It was read, or could have been, and there was no room to keep it: the recording does not keep
    /// up with such stacks at such a rate.
    NoRoom,
    /// The thread is of a real-time class, which may go on while the reader reads.
    RealTime,
    /// The memory of the process is not for this user to read.
    Denied,
    /// The memory is not there, or the process.
    Unreadable,
    /// What was read is not what the kernel had copied.
    Changed,
    /// It was read, and goes on beyond what is read of a stack at most.
    TooDeep,
}

impl NotRead {
    /// All of them.
    pub const ALL: [NotRead; 8] = [
        NotRead::NoReader,
        NotRead::Late,
        NotRead::NoRoom,
        NotRead::RealTime,
        NotRead::Denied,
        NotRead::Unreadable,
        NotRead::Changed,
        NotRead::TooDeep,
    ];
}

impl fmt::Display for NotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotRead::NoReader => "could not be read at the moment of the sample",
            NotRead::Late => "would have been read too late",
            NotRead::NoRoom => "read but not kept, for lack of space",
            NotRead::RealTime => "of threads of a real-time class",
            NotRead::Denied => "not allowed to be read",
            NotRead::Unreadable => "not in memory",
            NotRead::Changed => "changed before they could be read",
            NotRead::TooDeep => "deeper than what is read",
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
    fn each_reason_has_words_of_its_own() {
        let mut words: Vec<String> = NotRead::ALL.iter().map(NotRead::to_string).collect();
        assert_eq!(words[7], "deeper than what is read");
        words.sort();
        words.dedup();
        assert_eq!(words.len(), NotRead::ALL.len());
    }

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
