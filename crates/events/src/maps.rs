//! `/proc/PID/maps` as mappings: the executable ones.
//!
//! Paths are bytes, may hold blanks, and are escaped by the kernel only in that a line feed is
//! written `\012`. Source: proc_pid_maps(5), fs/proc/task_mmu.c.

use flame_profile::{FileOffset, ProcessAddress};

use crate::images::FileId;

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
}

/// The executable mappings of a maps file. Lines that do not have its form are skipped: the file is
/// the kernel's, and a line cut short by a process that ends is all that happens.
pub fn parse_maps(bytes: &[u8]) -> Vec<ParsedMapping> {
    bytes.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<ParsedMapping> {
    let mut rest = line;
    let range = word(&mut rest)?;
    let permissions = word(&mut rest)?;
    let offset = hex(word(&mut rest)?)?;
    let device = word(&mut rest)?;
    let inode = std::str::from_utf8(word(&mut rest)?).ok()?.parse().ok()?;
    if permissions.get(2) != Some(&b'x') {
        return None;
    }
    let dash = range.iter().position(|byte| *byte == b'-')?;
    let colon = device.iter().position(|byte| *byte == b':')?;
    let major = u32::try_from(hex(&device[..colon])?).ok()?;
    let minor = u32::try_from(hex(&device[colon + 1..])?).ok()?;
    let file = match inode {
        0 => FileId::None,
        inode => FileId::Inode { major, minor, inode },
    };
    Some(ParsedMapping {
        start: ProcessAddress(hex(&range[..dash])?),
        end: ProcessAddress(hex(&range[dash + 1..])?),
        offset: FileOffset(offset),
        file,
        path: rest.trim_ascii_start().to_vec(),
    })
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
        let file = FileId::Inode { major: 0xfe, minor: 1, inode: 4711 };
        assert_eq!(
            maps[0],
            ParsedMapping {
                start: ProcessAddress(0x55d0_c000_1000),
                end: ProcessAddress(0x55d0_c000_3000),
                offset: FileOffset(0x1000),
                file,
                path: b"/usr/bin/my server".to_vec(),
            }
        );
        let paths: Vec<&[u8]> = maps.iter().map(|map| &*map.path).collect();
        assert_eq!(paths, [&b"/usr/bin/my server"[..], b"", b"[vdso]"]);
        assert_eq!(maps[1].file, FileId::None);
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
