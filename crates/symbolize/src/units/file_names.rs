//! Turns the file numbers of a line program into paths.

use gimli::{LineProgramHeader, UnitRef};
use rustc_hash::FxHashMap;

use super::text::text;
use crate::debug_info::Reader;
use crate::demangle::MAX_NAME_LEN;

/// The most paths of one unit; one more has no name.
const MAX_FILES: usize = 1 << 16;

/// The paths of one unit, numbered anew in the order in which they are asked for.
pub(crate) struct FileNames<'u, 'd> {
    unit: UnitRef<'u, Reader<'d>>,
    numbers: FxHashMap<u64, Option<u32>>,
    /// The paths, as the compiler wrote them, by their new numbers.
    pub(crate) paths: Vec<Vec<u8>>,
}

impl<'u, 'd> FileNames<'u, 'd> {
    pub(crate) fn new(unit: UnitRef<'u, Reader<'d>>) -> FileNames<'u, 'd> {
        FileNames { unit, numbers: FxHashMap::default(), paths: Vec::new() }
    }

    /// The new number of a file.
    pub(crate) fn number(&mut self, file: u64) -> Option<u32> {
        if let Some(known) = self.numbers.get(&file) {
            return *known;
        }
        let path = self.path(file).filter(|_| self.paths.len() < MAX_FILES);
        let number = path.and_then(|path| {
            self.paths.push(path);
            u32::try_from(self.paths.len() - 1).ok()
        });
        if self.numbers.len() < MAX_FILES {
            self.numbers.insert(file, number);
        }
        number
    }

    /// Where the compiler ran, then the directory, then the name, as far as they are relative.
    fn path(&self, file: u64) -> Option<Vec<u8>> {
        let header: &LineProgramHeader<Reader<'d>> = self.unit.line_program.as_ref()?.header();
        let entry = header.file(file)?;
        let mut path = self.unit.comp_dir.map_or(&[][..], |directory| directory.slice()).to_vec();
        path.truncate(MAX_NAME_LEN);
        // The directory 0 is the one where the compiler ran.
        if entry.directory_index() != 0
            && let Some(directory) = entry.directory(header)
        {
            push(&mut path, text(self.unit.dwarf, self.unit.unit, directory)?);
        }
        push(&mut path, text(self.unit.dwarf, self.unit.unit, entry.path_name())?);
        path.truncate(MAX_NAME_LEN);
        Some(path)
    }
}

fn push(path: &mut Vec<u8>, part: &[u8]) {
    if part.starts_with(b"/") {
        path.clear();
    } else if !path.is_empty() && !path.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(part);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_parts_replace_what_is_before_them() {
        let join = |parts: &[&str]| {
            let mut path = Vec::new();
            parts.iter().for_each(|part| push(&mut path, part.as_bytes()));
            String::from_utf8(path).unwrap()
        };
        assert_eq!(join(&["/build", "src", "main.c"]), "/build/src/main.c");
        assert_eq!(join(&["/build/", "/usr/include", "stdio.h"]), "/usr/include/stdio.h");
        assert_eq!(join(&["", "main.c"]), "main.c");
    }
}
