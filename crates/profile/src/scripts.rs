//! How much is known of interpreted programs: what became of samples that ran in an interpreter.

use std::fmt;

/// What is known of a sample's frames of an interpreted program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScriptEnd {
    /// All that its native frames run were read at the moment of the sample.
    Whole,
    /// The same, as far as the native stack goes, which is truncated.
    Cut,
    /// The same, but for functions that were compiled into the one that runs.
    Inlined,
    /// All of them are there, and what some of them are is not known.
    Unnamed,
    /// Nobody could read them at that moment; the reason is that of stacks.
    NotRead,
    /// The process was not known to have an interpreter yet.
    Early,
    /// The interpreter does not know the thread, or not yet.
    NoThread,
    /// In another interpreter of the process than the one that is read.
    OtherInterpreter,
    /// What was read is not what the native frames say: most are amid a call or a return.
    Disagrees,
    /// Some of the memory could not be read.
    Unreadable,
    /// There are more frames than are read.
    TooDeep,
    /// The version of the interpreter is not known.
    UnknownVersion,
}

impl ScriptEnd {
    /// All of them.
    pub const ALL: [ScriptEnd; 12] = [
        ScriptEnd::Whole,
        ScriptEnd::Cut,
        ScriptEnd::Inlined,
        ScriptEnd::Unnamed,
        ScriptEnd::NotRead,
        ScriptEnd::Early,
        ScriptEnd::NoThread,
        ScriptEnd::OtherInterpreter,
        ScriptEnd::Disagrees,
        ScriptEnd::Unreadable,
        ScriptEnd::TooDeep,
        ScriptEnd::UnknownVersion,
    ];

    /// A word for it, as files have it.
    pub fn word(self) -> &'static str {
        match self {
            ScriptEnd::Whole => "whole",
            ScriptEnd::Cut => "cut",
            ScriptEnd::Inlined => "inlined",
            ScriptEnd::Unnamed => "unnamed",
            ScriptEnd::NotRead => "not-read",
            ScriptEnd::Early => "early",
            ScriptEnd::NoThread => "no-thread",
            ScriptEnd::OtherInterpreter => "other-interpreter",
            ScriptEnd::Disagrees => "disagrees",
            ScriptEnd::Unreadable => "unreadable",
            ScriptEnd::TooDeep => "too-deep",
            ScriptEnd::UnknownVersion => "unknown-version",
        }
    }

    /// That of a word.
    pub fn of_word(word: &str) -> Option<ScriptEnd> {
        ScriptEnd::ALL.into_iter().find(|end| end.word() == word)
    }
}

impl fmt::Display for ScriptEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ScriptEnd::Whole => "with whole script stacks",
            ScriptEnd::Cut => "with script stacks as far as the native ones go",
            ScriptEnd::Inlined => "in traces, without what is compiled into them",
            ScriptEnd::Unnamed => "with frames whose functions could not be read",
            ScriptEnd::NotRead => "not read at the moment of the sample",
            ScriptEnd::Early => "before the interpreter was known",
            ScriptEnd::NoThread => "of threads that the interpreter does not know",
            ScriptEnd::OtherInterpreter => "of another interpreter of the process",
            ScriptEnd::Disagrees => "amid a call or a return",
            ScriptEnd::Unreadable => "not in memory",
            ScriptEnd::TooDeep => "deeper than what is read",
            ScriptEnd::UnknownVersion => "of a version that is not known",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        for end in ScriptEnd::ALL {
            assert_eq!(ScriptEnd::of_word(end.word()), Some(end));
        }
        assert_eq!(ScriptEnd::of_word("half"), None);
    }

    #[test]
    fn each_end_is_told_in_words_of_its_own() {
        let told: std::collections::BTreeSet<String> =
            ScriptEnd::ALL.iter().map(ScriptEnd::to_string).collect();
        assert_eq!(told.len(), ScriptEnd::ALL.len());
        assert!(told.contains("not in memory"), "{told:?}");
    }
}
