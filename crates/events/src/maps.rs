//! `/proc/PID/maps` as mappings: the executable ones.
//!
//! Paths are bytes, may hold blanks, and are escaped by the kernel only in that a line feed is
//! written `\012`. Source: proc_pid_maps(5), fs/proc/task_mmu.c.

use flame_profile::{FileOffset, ProcessAddress};

use crate::images::FileId;

/// How many anonymous mappings may lie side by side between those of a file.
const MAX_BESIDE: usize = 16;

/// One executable line of a maps file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedMapping {
    /// First address.
    pub start: ProcessAddress,
    /// End, exclusive.
    pub end: ProcessAddress,
    /// Where in the file the mapping starts.
    pub offset: FileOffset,
    /// Which file; `None` without one.
    pub file: FileId,
    /// The path; empty for anonymous memory.
    pub path: Vec<u8>,
    /// For anonymous memory in the midst of a file's mappings: what of the file would be there.
    pub around: Option<Around>,
}

/// A file whose mappings are around anonymous memory, as when a program copies its code into huge
/// pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Around {
    /// Where in the file the bytes are that would be mapped there.
    pub offset: FileOffset,
    /// Which file.
    pub file: FileId,
    /// Its path.
    pub path: Vec<u8>,
}

/// The executable mappings of a maps file. Lines that do not have its form are skipped: the file is
/// the kernel's, and a line cut short by a process that ends is all that happens.
pub fn parse_maps(bytes: &[u8]) -> Vec<ParsedMapping> {
    let lines = bytes.split(|byte| *byte == b'\n').filter_map(parse_line);
    let all: Vec<(bool, ParsedMapping)> = lines.collect();
    let executable = |(index, (is_executable, mapping)): (usize, &(bool, ParsedMapping))| {
        let around = if mapping.file == FileId::None { Around::of(&all, index) } else { None };
        is_executable.then(|| ParsedMapping { around, ..mapping.clone() })
    };
    all.iter().enumerate().filter_map(executable).collect()
}

impl Around {
    /// The file whose mappings are right before and right behind that one and the anonymous ones
    /// beside it, if both say the same of where the file is.
    fn of(all: &[(bool, ParsedMapping)], index: usize) -> Option<Around> {
        let is_anonymous = |mapping: &ParsedMapping| mapping.file == FileId::None;
        let (mut first, mut last) = (index, index);
        let is_near = |at: usize| at.abs_diff(index) < MAX_BESIDE;
        let before = loop {
            let (at, before) = (&all[first].1, &all.get(first.checked_sub(1)?)?.1);
            if before.end != at.start || !is_near(first) {
                return None;
            }
            if !is_anonymous(before) {
                break before;
            }
            first -= 1;
        };
        let behind = loop {
            let (at, behind) = (&all[last].1, &all.get(last + 1)?.1);
            if at.end != behind.start || !is_near(last) {
                return None;
            }
            if !is_anonymous(behind) {
                break behind;
            }
            last += 1;
        };
        let bias = |mapping: &ParsedMapping| mapping.offset.0.wrapping_sub(mapping.start.0);
        if before.file != behind.file || bias(before) != bias(behind) {
            return None;
        }
        let offset = FileOffset(all[index].1.start.0.wrapping_add(bias(before)));
        Some(Around { offset, file: before.file, path: before.path.clone() })
    }
}

/// A line, and whether it is of executable memory.
fn parse_line(line: &[u8]) -> Option<(bool, ParsedMapping)> {
    let mut rest = line;
    let range = word(&mut rest)?;
    let permissions = word(&mut rest)?;
    let offset = hex(word(&mut rest)?)?;
    let device = word(&mut rest)?;
    let inode = std::str::from_utf8(word(&mut rest)?).ok()?.parse().ok()?;
    let dash = range.iter().position(|byte| *byte == b'-')?;
    let colon = device.iter().position(|byte| *byte == b':')?;
    let major = u32::try_from(hex(&device[..colon])?).ok()?;
    let minor = u32::try_from(hex(&device[colon + 1..])?).ok()?;
    let file = FileId::of_inode([major, minor], inode, None);
    let mapping = ParsedMapping {
        start: ProcessAddress(hex(&range[..dash])?),
        end: ProcessAddress(hex(&range[dash + 1..])?),
        offset: FileOffset(offset),
        file,
        path: rest.trim_ascii_start().to_vec(),
        around: None,
    };
    Some((permissions.get(2) == Some(&b'x'), mapping))
}

/// The bytes up to the next blank, which is consumed.
fn word<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let text: &'a [u8] = rest;
    let end = text.iter().position(|byte| *byte == b' ').unwrap_or(text.len());
    *rest = text.get(end + 1..).unwrap_or(&[]);
    (end > 0).then(|| &text[..end])
}

fn hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &[u8] = b"\
55d0c0000000-55d0c0001000 r--p 00000000 fe:01 4711                       /usr/bin/my server
55d0c0001000-55d0c0003000 r-xp 00001000 fe:01 4711                       /usr/bin/my server
7f0000000000-7f0000001000 rwxp 00000000 00:00 0
7ffd1fd9a000-7ffd1fd9c000 r-xp 00000000 00:00 0                          [vdso]
";

    #[test]
    fn executable_lines_become_mappings() {
        let maps = parse_maps(MAPS);
        let file = FileId::Inode { major: 0xfe, minor: 1, inode: 4711, generation: None };
        assert_eq!(
            maps[0],
            ParsedMapping {
                start: ProcessAddress(0x55d0_c000_1000),
                end: ProcessAddress(0x55d0_c000_3000),
                offset: FileOffset(0x1000),
                file,
                path: b"/usr/bin/my server".to_vec(),
                around: None,
            }
        );
        let paths: Vec<&[u8]> = maps.iter().map(|map| &*map.path).collect();
        assert_eq!(paths, [&b"/usr/bin/my server"[..], b"", b"[vdso]"]);
        assert_eq!(maps[1].file, FileId::None);
    }

    #[test]
    fn anonymous_memory_in_the_midst_of_a_file_knows_that_file() {
        let around = |text: &str| {
            let maps = parse_maps(text.as_bytes());
            maps.into_iter().map(|map| map.around.map(|around| around.offset.0)).collect::<Vec<_>>()
        };
        let before = "1000-2000 r--p 00000000 fe:01 7 /a\n";
        let hole = "2000-6000 r-xp 00000000 00:00 0\n";
        let behind = "6000-7000 r-xp 00005000 fe:01 7 /a\n";
        assert_eq!(around(&[before, hole, behind].concat()), [Some(0x1000), None]);
        // Several anonymous mappings, of which one is executable.
        let parts = "2000-3000 rw-p 00000000 00:00 0\n3000-6000 r-xp 00000000 00:00 0\n";
        assert_eq!(around(&[before, parts, behind].concat()), [Some(0x2000), None]);
        // Another file, another place in the file, or a gap.
        for behind in [
            "6000-7000 r-xp 00005000 fe:01 8 /b\n",
            "6000-7000 r-xp 00004000 fe:01 7 /a\n",
            "6001-7000 r-xp 00005000 fe:01 7 /a\n",
        ] {
            assert_eq!(around(&[before, hole, behind].concat()), [None, None], "{behind}");
        }
        assert_eq!(around(&[before, hole].concat()), [None]);
        assert_eq!(around(hole), [None]);
    }

    #[test]
    fn a_file_cut_anywhere_gives_a_prefix_of_the_mappings() {
        let whole = parse_maps(MAPS);
        for end in 0..MAPS.len() {
            let cut = parse_maps(&MAPS[..end]);
            assert!(cut.len() <= whole.len());
            for (cut, whole) in cut.iter().zip(&whole) {
                assert_eq!(cut.start, whole.start);
            }
        }
    }
}
