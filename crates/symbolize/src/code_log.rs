//! Opens the files in which runtimes write down the code that they make, and reads them in pieces:
//! perf maps (`perf-PID.map`) and jitdumps (`jit-PID.dump`).
//!
//! Such a file grows while it is read and may have gigabytes, of which a profile needs a few lines.
//! So nothing of it is kept: [`CodeLog::scan`] passes over entries, and [`CodeLog::names`] finds
//! the names of addresses in one pass.
//!
//! Anybody can put a file into /tmp. Whoever opens one must not follow a link at its end; a file
//! that is not regular, or belongs to neither the process's user nor root, is refused here, by what
//! the descriptor says.

mod jitdump;
mod names;
mod perf_map;
mod source;

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use flame_profile::{FileOffset, Nanos, ProcessAddress};

use jitdump::JitDump;
use source::Source;

pub use names::{CodeName, CodeNames, WantedCode};

/// A file that says which code a runtime made where.
#[derive(Debug)]
pub struct CodeLog {
    source: Source,
    format: Format,
}

#[derive(Debug)]
enum Format {
    PerfMap,
    JitDump(JitDump),
}

/// What kind of file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CodeLogKind {
    /// Text: a line with start, size and name of each piece of code, without times.
    PerfMap,
    /// Binary: records with times, moves and source lines.
    JitDump,
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodeLogError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is a directory, device, FIFO, socket or link.
    #[error("{} is not a regular file", path.display())]
    NotRegular {
        /// The file.
        path: PathBuf,
    },
    /// It belongs to a user who could be lying about this process.
    #[error("{} belongs to user {owner}, not to the process's", path.display())]
    ForeignOwner {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// It is a jitdump of a kind that flame does not read.
    #[error("{} is not a jitdump that can be read: {why}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What is in the way.
        why: &'static str,
    },
}

/// One piece of code that a runtime wrote down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeEntry {
    /// Where it stands in the file; later entries stand further behind.
    pub at: FileOffset,
    /// When the code came to be there (CLOCK_MONOTONIC); `None` where the file has no times.
    pub time: Option<Nanos>,
    /// First address.
    pub start: ProcessAddress,
    /// End, exclusive.
    pub end: ProcessAddress,
    kind: EntryKind,
}

/// Where the name of an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryKind {
    /// In the entry itself; of a jitdump, with the number that moves call the code by, and where
    /// its source lines and its unwinding tables stand (0 = nowhere).
    Named { index: u64, lines: u64, unwinding: u64 },
    /// In the entry of that number: the code was moved.
    Moved { index: u64 },
}

impl CodeEntry {
    /// Whether the log has unwinding tables for it.
    pub fn has_unwinding(&self) -> bool {
        matches!(self.kind, EntryKind::Named { unwinding: 1.., .. })
    }
}

/// The unwinding tables of a piece of code, and the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CodeUnwinding {
    /// The instructions.
    pub code: Vec<u8>,
    /// A table in the form of `.eh_frame`.
    pub eh_frame: Vec<u8>,
    /// Where its first byte counts as standing, in bytes from the start of the code.
    pub eh_frame_at: u64,
}

/// What a scan came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Where the next scan goes on: behind the last entry that was complete.
    pub next: FileOffset,
    /// Lines or records that made no sense.
    pub skipped: u64,
    /// Whether it ended early, because the log asked for too much work.
    pub is_cut: bool,
}

/// How much work one scan does at most, in bytes that it looks at, with [`ENTRY_WORK`] for each entry:
/// about 7 million lines of usual length, 3 s. Logs have no bound of their own, and a file with holes
/// or empty lines costs whoever writes it next to nothing.
const MAX_WORK: u64 = 1 << 30;

/// What finding one line or record costs, in bytes looked at.
const ENTRY_WORK: u64 = 64;

impl CodeLog {
    /// The log in an open file, if one of `owners` (user ids, usually the process's and root's) has
    /// written it. `path` is for messages.
    ///
    /// # Errors
    /// When the file is not regular, somebody else's, or a jitdump that cannot be read.
    pub fn open(
        file: File,
        path: &Path,
        owners: &[u32],
        kind: CodeLogKind,
    ) -> Result<CodeLog, CodeLogError> {
        let failed = |source| CodeLogError::Io { path: path.to_owned(), source };
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(CodeLogError::NotRegular { path: path.to_owned() });
        }
        if !owners.contains(&metadata.uid()) {
            let owner = metadata.uid();
            return Err(CodeLogError::ForeignOwner { path: path.to_owned(), owner });
        }
        CodeLog::of(Source::File(file), path, kind)
    }

    /// The log of those bytes.
    ///
    /// # Errors
    /// When they are not a jitdump that can be read; any text is a perf map.
    pub fn from_bytes(bytes: Vec<u8>, kind: CodeLogKind) -> Result<CodeLog, CodeLogError> {
        CodeLog::of(Source::Memory(bytes), Path::new("memory"), kind)
    }

    fn of(source: Source, path: &Path, kind: CodeLogKind) -> Result<CodeLog, CodeLogError> {
        let format = match kind {
            CodeLogKind::PerfMap => Format::PerfMap,
            CodeLogKind::JitDump => Format::JitDump(JitDump::parse_header(&source, path)?),
        };
        Ok(CodeLog { source, format })
    }

    /// What kind of file it is.
    pub fn kind(&self) -> CodeLogKind {
        match self.format {
            Format::PerfMap => CodeLogKind::PerfMap,
            Format::JitDump(_) => CodeLogKind::JitDump,
        }
    }

    /// Its length now, and when it was last written to, since 1970.
    ///
    /// # Errors
    /// What the system says.
    pub fn state(&self) -> io::Result<(FileOffset, Nanos)> {
        self.source.state()
    }

    /// Whether both are the same file.
    pub fn is_same_file(&self, other: &CodeLog) -> bool {
        self.source.identity().is_some_and(|mine| other.source.identity() == Some(mine))
    }

    /// The last bytes before a place, by which it can be told later whether the file was only
    /// appended to or written anew.
    pub fn fingerprint(&self, before: FileOffset) -> Vec<u8> {
        let start = before.0.saturating_sub(64);
        let mut bytes = vec![0; usize::try_from(before.0 - start).unwrap_or(0)];
        let len = self.source.read_at(start, &mut bytes).unwrap_or(0);
        bytes.truncate(len);
        bytes
    }

    /// The unwinding tables of an entry of this log, if it has any that can be read.
    pub fn unwinding(&self, entry: &CodeEntry) -> Option<CodeUnwinding> {
        match &self.format {
            Format::PerfMap => None,
            Format::JitDump(_) => jitdump::unwinding(&self.source, entry).ok()?,
        }
    }

    /// Calls `each` with the entries from `from` on, in their order; the start of the file is 0.
    /// Entries that begin at or behind `until` wait for another scan, and so does the last one
    /// while it is not written to its end.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn scan(
        &self,
        from: FileOffset,
        until: FileOffset,
        each: &mut dyn FnMut(CodeEntry),
    ) -> io::Result<Scanned> {
        match &self.format {
            Format::PerfMap => perf_map::scan(&self.source, from.0, until.0, each),
            Format::JitDump(dump) => dump.scan(&self.source, from.0, until.0, each),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_files_and_directories_are_refused() {
        let path = std::env::temp_dir().join(format!("flame-code-log-{}", std::process::id()));
        std::fs::write(&path, "1000 10 mine\n").unwrap();
        let owner = path.metadata().unwrap().uid();
        let open = |path: &Path, owner| {
            CodeLog::open(File::open(path).unwrap(), path, &[owner], CodeLogKind::PerfMap)
        };
        let (mine, foreign) = (open(&path, owner), open(&path, owner + 1));
        let dump = CodeLog::open(File::open(&path).unwrap(), &path, &[owner], CodeLogKind::JitDump);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(mine.unwrap().state().unwrap().0, FileOffset(13));
        assert!(matches!(foreign, Err(CodeLogError::ForeignOwner { .. })));
        assert!(matches!(dump, Err(CodeLogError::Unsupported { .. })));
        let directory = open(&std::env::temp_dir(), owner);
        assert!(matches!(directory, Err(CodeLogError::NotRegular { .. })));
    }
}
