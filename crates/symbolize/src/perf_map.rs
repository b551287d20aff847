//! Turns `/tmp/perf-PID.map` into names of code that a runtime compiled while it ran.
//!
//! Each line is `START SIZE NAME` with hexadecimal numbers; names may have spaces. Runtimes append
//! to the file and reuse memory, so the last line that covers an address is right.
//!
//! Anybody can put a file into /tmp: one that is a symbolic link, no regular file, or somebody
//! else's is refused.
//!
//! Sources: `tools/perf/Documentation/jit-interface.txt` of Linux.

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use flame_profile::ProcessAddress;

use crate::demangle::MAX_NAME_LEN;
use crate::disjoint::{Span, find, flatten};
use crate::line_parser::{parse_hex, split_word};

/// Most of a line that is kept: two numbers and a name.
const MAX_LINE_LEN: usize = MAX_NAME_LEN + 64;

/// Most bytes of names and most lines that are kept; later lines count as skipped. Together they
/// bound the memory for a map to about 1 GB, however long it is.
const MAX_NAMES_LEN: usize = 512 << 20;
const MAX_LINES: usize = 4 << 20;

/// The functions of a perf map, by address.
#[derive(Clone, Debug, Default)]
pub struct PerfMap {
    /// All names, one behind the other.
    names: String,
    /// Where the name of each line ends; it starts where that of the line before ends.
    name_ends: Vec<u32>,
    /// Sorted, disjoint; the value is a position in `name_ends`.
    spans: Vec<Span>,
    skipped_lines: u64,
}

/// Why a perf map is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PerfMapError {
    /// The file cannot be read; also when it is a symbolic link.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is a directory, device, FIFO or socket.
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
}

impl PerfMap {
    /// Reads a map that one of `owners` (user ids, usually the process's and root's) has written.
    ///
    /// # Errors
    /// When the file cannot be read, is a symbolic link or no regular file, or is somebody else's.
    pub fn open(path: &Path, owners: &[u32]) -> Result<PerfMap, PerfMapError> {
        let failed = |source| PerfMapError::Io { path: path.to_owned(), source };
        // The link is refused without following it, a FIFO without waiting for its writer.
        let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(PerfMapError::NotRegular { path: path.to_owned() });
        }
        if !owners.contains(&metadata.uid()) {
            let owner = metadata.uid();
            return Err(PerfMapError::ForeignOwner { path: path.to_owned(), owner });
        }
        PerfMap::read(BufReader::with_capacity(256 << 10, file)).map_err(failed)
    }

    /// The map of that text. Lines of another form are skipped and counted.
    pub fn parse(text: &[u8]) -> PerfMap {
        PerfMap::read(text).expect("reading from memory never fails")
    }

    fn read(input: impl BufRead) -> io::Result<PerfMap> {
        let mut map = PerfMap::default();
        let mut spans = Vec::new();
        for_each_line(input, |line| {
            if !map.add_line(line, &mut spans) {
                map.skipped_lines += 1;
            }
        })?;
        map.spans = flatten(spans, |span| u64::from(span.value));
        Ok(map)
    }

    /// How many lines made no sense or exceeded what is kept.
    pub fn skipped_lines(&self) -> u64 {
        self.skipped_lines
    }

    /// The function at an address; of several, that of the last line. Pass return addresses minus
    /// 1. Names are as the runtime wrote them.
    pub fn lookup(&self, address: ProcessAddress) -> Option<&str> {
        let line = find(&self.spans, address.0)?.value as usize;
        let start =
            line.checked_sub(1).map_or(Some(0), |last| self.name_ends.get(last).copied())?;
        self.names.get(start as usize..*self.name_ends.get(line)? as usize)
    }

    /// Whether the line was understood.
    fn add_line(&mut self, line: &[u8], spans: &mut Vec<Span>) -> bool {
        let (start, rest) = split_word(line.trim_ascii());
        let (size, name) = split_word(rest.trim_ascii_start());
        let (Some(start), Some(size)) = (parse_hex(start), parse_hex(size)) else { return false };
        let name = name.trim_ascii();
        let (lines, len) = (self.name_ends.len(), self.names.len() + name.len());
        if name.is_empty() || lines >= MAX_LINES || len > MAX_NAMES_LEN {
            return false;
        }
        let (Ok(value), Ok(end)) = (u32::try_from(lines), self.append_name(name)) else {
            return false;
        };
        self.name_ends.push(end);
        spans.push(Span { start, end: start.saturating_add(size), value });
        true
    }

    /// Appends a name; where it ends.
    fn append_name(&mut self, name: &[u8]) -> Result<u32, std::num::TryFromIntError> {
        self.names.push_str(&String::from_utf8_lossy(name));
        u32::try_from(self.names.len())
    }
}

/// Calls `each` with every line, without its end and cut at [`MAX_LINE_LEN`]; lines that stand
/// whole in the reader's buffer are not copied.
fn for_each_line(mut input: impl BufRead, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let mut begun: Vec<u8> = Vec::new();
    loop {
        let buffer = match input.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if buffer.is_empty() {
            break;
        }
        let len = buffer.len();
        for piece in buffer.split_inclusive(|byte| *byte == b'\n') {
            let line = piece.strip_suffix(b"\n");
            match line {
                Some(line) if begun.is_empty() => each(&line[..line.len().min(MAX_LINE_LEN)]),
                _ => {
                    let part = line.unwrap_or(piece);
                    let room = MAX_LINE_LEN - begun.len();
                    begun.extend_from_slice(&part[..part.len().min(room)]);
                    if line.is_some() {
                        each(&begun);
                        begun.clear();
                    }
                }
            }
        }
        input.consume(len);
    }
    if !begun.is_empty() {
        each(&begun);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each expectation is an address and the name there.
    #[track_caller]
    fn check(text: &[u8], expect: &[(u64, Option<&str>)], skipped_lines: u64) {
        let map = PerfMap::parse(text);
        for (address, name) in expect {
            assert_eq!(map.lookup(ProcessAddress(*address)), *name, "{address:#x}");
        }
        assert_eq!(map.skipped_lines(), skipped_lines);
    }

    #[test]
    fn names_may_have_spaces_and_numbers_a_prefix() {
        let text =
            b"7f00 20 LazyCompile:*fib /srv/app.js:3:1\n0x7f20 0x10 py::main:/srv/a b.py\r\n";
        check(
            text,
            &[
                (0x7eff, None),
                (0x7f00, Some("LazyCompile:*fib /srv/app.js:3:1")),
                (0x7f1f, Some("LazyCompile:*fib /srv/app.js:3:1")),
                (0x7f20, Some("py::main:/srv/a b.py")),
                (0x7f30, None),
            ],
            0,
        );
    }

    #[test]
    fn the_last_line_that_covers_an_address_wins() {
        let text = b"1000 100 old\n1040 20 new\n10f0 20 next\n1040 10 newest\n";
        check(
            text,
            &[
                (0x103f, Some("old")),
                (0x1040, Some("newest")),
                (0x1050, Some("new")),
                (0x1060, Some("old")),
                (0x10ef, Some("old")),
                (0x10f0, Some("next")),
                (0x110f, Some("next")),
                (0x1110, None),
            ],
            0,
        );
    }

    #[test]
    fn lines_of_another_form_are_counted() {
        let text = b"\n1000\n1000 10\n1000 10 \nxyz 10 a\n1000 xyz a\n1000 10 good\n";
        check(text, &[(0x1000, Some("good"))], 6);
    }

    #[test]
    fn ranges_end_with_the_address_space() {
        check(
            b"fffffffffffffff0 ffff last\n10 0 empty\n",
            &[(u64::MAX - 1, Some("last")), (0x10, None)],
            0,
        );
    }

    #[test]
    fn text_cut_at_any_byte_gives_a_start_of_the_name() {
        let text = b"1000 10 Interpreter\n2000 10 LFib;::fib\n";
        for len in 0..text.len() {
            let map = PerfMap::parse(&text[..len]);
            for (address, whole) in [(0x1000, "Interpreter"), (0x2000, "LFib;::fib")] {
                let name = map.lookup(ProcessAddress(address)).unwrap_or("");
                assert!(whole.starts_with(name), "{len}: {name}");
            }
        }
    }

    #[test]
    fn lines_that_span_buffers_are_whole() {
        let long = "x".repeat(5000);
        let text = format!("1000 10 first\n2000 10 {long}\n3000 10 last");
        for capacity in [1, 7, 64, 4096] {
            let map = PerfMap::read(BufReader::with_capacity(capacity, text.as_bytes())).unwrap();
            assert_eq!(map.lookup(ProcessAddress(0x2000)), Some(&*long));
            assert_eq!(map.lookup(ProcessAddress(0x3000)), Some("last"));
        }
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let text = [b"1000 10 ".to_vec(), vec![b'x'; 4 * MAX_LINE_LEN]].concat();
        for capacity in [512, 8 * MAX_LINE_LEN] {
            let map = PerfMap::read(BufReader::with_capacity(capacity, &text[..])).unwrap();
            let name = map.lookup(ProcessAddress(0x1000)).unwrap();
            assert_eq!(name.len(), MAX_LINE_LEN - "1000 10 ".len());
        }
    }

    #[test]
    fn foreign_files_links_and_directories_are_refused() {
        let path = std::env::temp_dir().join(format!("flame-perf-{}.map", std::process::id()));
        std::fs::write(&path, "1000 10 mine\n").unwrap();
        let owner = path.metadata().unwrap().uid();
        let link = path.with_extension("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let (mine, foreign) = (PerfMap::open(&path, &[owner]), PerfMap::open(&path, &[owner + 1]));
        let (linked, directory) =
            (PerfMap::open(&link, &[owner]), PerfMap::open(&std::env::temp_dir(), &[owner]));
        std::fs::remove_file(&link).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(mine.unwrap().lookup(ProcessAddress(0x1008)), Some("mine"));
        assert!(matches!(foreign, Err(PerfMapError::ForeignOwner { .. })));
        assert!(matches!(linked, Err(PerfMapError::Io { .. })));
        assert!(matches!(directory, Err(PerfMapError::NotRegular { .. })));
    }
}
