//! Perf maps: each line is `START SIZE NAME` with hexadecimal numbers; names may have spaces.
//!
//! Runtimes append to the file and reuse memory, so the last line that covers an address is right.
//! A line gives no time.
//!
//! Sources: `tools/perf/Documentation/jit-interface.txt` of Linux.

use std::io;

use flame_profile::{FileOffset, ProcessAddress};

use super::source::{Source, WINDOW_LEN};
use super::{CodeEntry, ENTRY_WORK, EntryKind, MAX_WORK, Scanned};
use crate::demangle::MAX_NAME_LEN;
use crate::line_parser::{parse_hex, split_word};

/// Most of a line that is looked at: two numbers and a name.
const MAX_LINE_LEN: usize = MAX_NAME_LEN + 64;

/// Start, end and name of one line.
type Line<'l> = (ProcessAddress, ProcessAddress, &'l [u8]);

/// The entries of the lines that begin in a part of a map. A last line without its end is passed
/// on, too, but the next scan begins with it again.
pub(super) fn scan(
    source: &Source,
    from: u64,
    until: u64,
    each: &mut dyn FnMut(CodeEntry),
) -> io::Result<Scanned> {
    let mut scanned = Scanned { next: FileOffset(from), ..Scanned::default() };
    let (next, is_cut) =
        for_each_line(source, from, until, &mut |at, line| match parse_line(line) {
            Some((start, end, _)) => {
                let kind = EntryKind::Named { index: 0, lines: 0, unwinding: 0 };
                each(CodeEntry { at: FileOffset(at), time: None, start, end, kind });
            }
            None => scanned.skipped += 1,
        })?;
    (scanned.next, scanned.is_cut) = (FileOffset(next), is_cut);
    Ok(scanned)
}

/// The name in the line at a position.
pub(super) fn name_at(source: &Source, at: u64) -> io::Result<Option<Vec<u8>>> {
    let bytes = source.bytes(at, MAX_LINE_LEN)?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or(&[]);
    Ok(parse_line(line).map(|(_, _, name)| name.to_vec()))
}

fn parse_line(line: &[u8]) -> Option<Line<'_>> {
    let line = &line[..line.len().min(MAX_LINE_LEN)];
    let (start, rest) = split_word(line.trim_ascii());
    let (size, name) = split_word(rest.trim_ascii_start());
    let (start, size) = (parse_hex(start)?, parse_hex(size)?);
    let name = name.trim_ascii();
    let end = ProcessAddress(start.saturating_add(size));
    (!name.is_empty()).then_some((ProcessAddress(start), end, name))
}

/// Calls `each` with the position of each line and the line without its end; lines longer than a
/// window are cut. Returns where the first line begins that is not whole or not before `until`, and
/// whether that is because there was too much to do.
fn for_each_line(
    source: &Source,
    from: u64,
    until: u64,
    each: &mut dyn FnMut(u64, &[u8]),
) -> io::Result<(u64, bool)> {
    let mut work = 0_u64;
    let mut buffer = vec![0; WINDOW_LEN];
    // Where the buffer begins in the file, and how much of it holds bytes.
    let (mut position, mut filled) = (from, 0);
    // Within a line that was too long for the buffer and has been passed on already.
    let mut in_rest = false;
    while position < until {
        let read = source.read_at(position + filled as u64, &mut buffer[filled..])?;
        if read == 0 {
            if filled > 0 && !in_rest {
                each(position, &buffer[..filled]);
            }
            break;
        }
        let mut unseen = filled;
        filled += read;
        let mut start = 0;
        while let Some(len) = memchr::memchr(b'\n', &buffer[unseen..filled]) {
            let at = position + start as u64;
            work += ENTRY_WORK + len as u64;
            if at >= until || work >= MAX_WORK {
                return Ok((at, at < until));
            }
            if !std::mem::take(&mut in_rest) {
                each(at, &buffer[start..unseen + len]);
            }
            start = unseen + len + 1;
            unseen = start;
        }
        if in_rest {
            start = filled;
        } else if start == 0 && filled == buffer.len() {
            each(position, &buffer);
            (in_rest, start) = (true, filled);
        }
        buffer.copy_within(start..filled, 0);
        (position, filled) = (position + start as u64, filled - start);
        if in_rest {
            position = source.next_data(position);
            work += WINDOW_LEN as u64;
        }
        if work >= MAX_WORK {
            return Ok((position, true));
        }
    }
    Ok((position, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The positions and names that a scan of a part of a text passes on, and where it stops.
    fn scanned(text: &[u8], from: u64, until: u64) -> (Vec<(u64, String)>, Scanned) {
        let source = Source::Memory(text.to_vec());
        let mut seen = Vec::new();
        let scanned = scan(&source, from, until, &mut |entry| {
            let name = name_at(&source, entry.at.0).unwrap().unwrap();
            seen.push((entry.at.0, String::from_utf8(name).unwrap()));
        });
        (seen, scanned.unwrap())
    }

    #[test]
    fn a_scan_goes_on_where_the_last_one_stopped() {
        let text = b"10 1 one\n20 1 two\n30 1 thr";
        let whole = [(0, "one".to_owned()), (9, "two".to_owned()), (18, "thr".to_owned())];
        let (seen, end) = scanned(text, 0, u64::MAX);
        assert_eq!((seen.as_slice(), end.next), (&whole[..], FileOffset(18)));
        let (seen, end) = scanned(text, 9, 18);
        assert_eq!((seen.as_slice(), end.next), (&whole[1..2], FileOffset(18)));
        let (seen, end) = scanned(b"10 1 one\n20 1 two\n30 1 three\n", 18, u64::MAX);
        assert_eq!((seen, end.next), (vec![(18, "three".to_owned())], FileOffset(29)));
    }

    #[test]
    fn lines_of_another_form_are_counted() {
        let text = b"\n1000\n1000 10\n1000 10 \nxyz 10 a\n1000 xyz a\n1000 10 good\n";
        let (seen, scanned) = scanned(text, 0, u64::MAX);
        assert_eq!((seen.len(), scanned.skipped), (1, 6));
    }

    #[test]
    fn lines_that_span_windows_are_whole_and_endless_ones_cut() {
        let mut text = vec![b'\n'; WINDOW_LEN - 5];
        text.extend(b"1000 10 across\n2000 10 ");
        text.resize(4 * WINDOW_LEN, b'x');
        text.extend(b"\n3000 10 last\n");
        let (seen, scanned) = scanned(&text, 0, u64::MAX);
        let names: Vec<&str> = seen.iter().map(|(_, name)| name.as_str()).collect();
        let cut = "x".repeat(MAX_LINE_LEN - "2000 10 ".len());
        assert_eq!(names, ["across", &cut, "last"]);
        assert_eq!(
            (seen[0].0, scanned.next),
            (WINDOW_LEN as u64 - 5, FileOffset(text.len() as u64))
        );
    }

    #[test]
    fn lines_without_end_are_cut_by_the_work_that_they_make() {
        let source = Source::Memory(vec![b'\n'; 20 << 20]);
        let scanned = scan(&source, 0, u64::MAX, &mut |_| {}).unwrap();
        assert!(scanned.is_cut && scanned.skipped < 17 << 20, "{scanned:?}");
        let scanned = scan(&source, scanned.next.0, u64::MAX, &mut |_| {}).unwrap();
        assert!(!scanned.is_cut, "{scanned:?}");
    }

    #[test]
    fn a_sparse_file_of_a_terabyte_is_passed_over() {
        let path = std::env::temp_dir().join(format!("flame-sparse-{}", std::process::id()));
        std::fs::write(&path, "1000 10 first\n").unwrap();
        let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let grown = file.set_len(1 << 40);
        std::fs::remove_file(&path).unwrap();
        grown.unwrap();
        let mut seen = 0;
        let scanned = scan(&Source::File(file), 0, u64::MAX, &mut |_| seen += 1).unwrap();
        assert_eq!((seen, scanned.skipped, scanned.next), (1, 1, FileOffset(1 << 40)));
    }
}
