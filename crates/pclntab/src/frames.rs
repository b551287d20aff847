//! The frames at an address: the calls that were inlined there, and the function itself.

use flame_profile::ImageAddress;

use crate::bytes::{text_at, u32_at, u64_at};
use crate::function::GoFunction;
use crate::header::Layout;
use crate::table::GoTable;
use crate::values::value_at;

/// Which table of values of a function says which inlined call an instruction belongs to.
const INLINE_INDEX: usize = 2;

/// Which other data of a function is the tree of its inlined calls.
const INLINE_TREE: usize = 3;

/// How deep calls are inlined into each other at most.
const MAX_INLINED: usize = 256;

/// No file.
const NO_FILE: u32 = u32::MAX;

/// One function at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoFrame<'t> {
    /// Its name, never empty.
    pub name: &'t [u8],
    /// Whether it was inlined into the next frame of the list.
    pub inlined: bool,
    /// The path as the compiler wrote it.
    pub file: Option<&'t [u8]>,
    /// The line in that file, counted from 1: of the address for the innermost frame, of the call
    /// for the others.
    pub line: Option<u32>,
}

/// A call that was inlined.
struct InlinedCall<'t> {
    name: &'t [u8],
    /// An instruction that has the line of the call, in bytes from the function's start.
    parent: u64,
}

impl GoTable {
    /// Puts the functions at an address into `out`, innermost first; `out` is cleared first, and
    /// stays empty for an address that is in no function with a name.
    pub fn frames<'t>(&'t self, address: ImageAddress, out: &mut Vec<GoFrame<'t>>) {
        out.clear();
        let Some(function) = self.function(address).filter(|f| !f.name.is_empty()) else { return };
        self.with_steps(|left| self.add_frames(&function, address, left, out));
    }

    fn add_frames<'t>(
        &'t self,
        function: &GoFunction<'t>,
        address: ImageAddress,
        left: &mut u64,
        out: &mut Vec<GoFrame<'t>>,
    ) {
        let mut offset = address.0.saturating_sub(function.start.0);
        loop {
            let line = self.value(function.record.lines, offset, left);
            let line = line.and_then(|line| u32::try_from(line).ok()).filter(|line| *line > 0);
            let file = self.file(function, offset, left);
            let call = match out.len() < MAX_INLINED {
                true => self.inlined_call(function, offset, left),
                false => None,
            };
            let Some(call) = call else {
                out.push(GoFrame { name: function.name, inlined: false, file, line });
                return;
            };
            out.push(GoFrame { name: call.name, inlined: true, file, line });
            offset = call.parent;
        }
    }

    fn value(&self, place: u32, offset: u64, left: &mut u64) -> Option<i32> {
        value_at(self.steps_of(place)?, offset, left)
    }

    /// The file of an instruction: a number among the files of its unit, which are numbers among
    /// all files.
    fn file(&self, function: &GoFunction<'_>, offset: u64, left: &mut u64) -> Option<&[u8]> {
        let number = u32::try_from(self.value(function.record.files, offset, left)?).ok()?;
        let units = self.bytes.get(self.header.units..self.header.files)?;
        let index = usize::try_from(function.record.unit.checked_add(number)?).ok()?;
        let place = u32_at(units, index.checked_mul(4)?).filter(|place| *place != NO_FILE)?;
        let files = self.bytes.get(self.header.files..self.header.values)?;
        text_at(files, usize::try_from(place).ok()?)
    }

    /// The inlined call that an instruction belongs to.
    fn inlined_call(
        &self,
        function: &GoFunction<'_>,
        offset: u64,
        left: &mut u64,
    ) -> Option<InlinedCall<'_>> {
        let tree = self.inline_tree(function)?;
        let tables = function.record.tables;
        if tables.count <= INLINE_INDEX {
            return None;
        }
        let place = u32_at(self.functions()?, tables.start.checked_add(4 * INLINE_INDEX)?)?;
        let index = usize::try_from(self.value(place, offset, left)?).ok()?;
        // Both forms begin with the kind of function; the older one has its place in the tree and
        // the line of the call as well, which the instruction of the call says, too.
        let (len, name, parent) = match self.header.layout {
            Layout::Go116 | Layout::Go118 => (20, 12, 16),
            Layout::Go120 => (16, 4, 8),
        };
        let call = tree.get(index.checked_mul(len)?..)?.get(..len)?;
        let name = u32_at(call, name)?;
        let parent = u64::from(u32_at(call, parent)?);
        let is_inside = parent < function.end.0.saturating_sub(function.start.0);
        let name = self.name(name).filter(|_| is_inside && self.starts_name(name))?;
        Some(InlinedCall { name, parent })
    }

    /// Where the tree of a function begins, and all that follows.
    fn inline_tree(&self, function: &GoFunction<'_>) -> Option<&[u8]> {
        let trees = self.inlined.as_ref()?;
        let data = function.record.data;
        if data.count <= INLINE_TREE {
            return None;
        }
        let place = match self.header.layout {
            Layout::Go116 => {
                let place = u64_at(self.functions()?, data.start.checked_add(8 * INLINE_TREE)?)?;
                place.checked_sub(u64::from(place == 0))?
            }
            Layout::Go118 | Layout::Go120 => {
                let place = u32_at(self.functions()?, data.start.checked_add(4 * INLINE_TREE)?)?;
                u64::from(Some(place).filter(|place| *place != u32::MAX)?)
            }
        };
        let address = trees.base.checked_add(place)?;
        trees.bytes.get(usize::try_from(address.checked_sub(trees.address.0)?).ok()?..)
    }

    /// Whether a name begins at a place: what is not a tree of inlined calls seldom says so.
    fn starts_name(&self, place: u32) -> bool {
        let names = self.bytes.get(self.header.names..self.header.units).unwrap_or_default();
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        place.checked_sub(1).is_none_or(|before| names.get(before) == Some(&0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Sample, TEXT, sample_table};

    #[track_caller]
    fn check(table: &GoTable, offset: u64, expect: &[(&str, bool, &str, u32)]) {
        let mut frames = Vec::new();
        table.frames(ImageAddress(TEXT + offset), &mut frames);
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        let found: Vec<(&str, bool, &str, u32)> = frames
            .iter()
            .map(|f| (text(f.name), f.inlined, f.file.map_or("", text), f.line.unwrap_or(0)))
            .collect();
        assert_eq!(found, expect, "{offset:#x}");
    }

    #[test]
    fn inlined_calls_stand_before_their_function() {
        for layout in Sample::ALL {
            let table = sample_table(layout).parse();
            check(&table, 0, &[("main.outer", false, "/src/main.go", 10)]);
            let inlined = [
                ("main.inlined", true, "/src/other.go", 21),
                ("main.outer", false, "/src/main.go", 10),
            ];
            check(&table, 0x10, &inlined);
            check(&table, 0x1f, &inlined);
            check(&table, 0x20, &[("main.outer", false, "/src/main.go", 12)]);
            check(&table, 0x40, &[("main.leaf", false, "", 0)]);
            check(&table, 0x80, &[]);
        }
    }

    #[test]
    fn without_trees_there_is_the_function_itself() {
        let sample = sample_table(Sample::Go120);
        let table = GoTable::parse(sample.bytes.into(), TEXT).unwrap();
        check(&table, 0x10, &[("main.outer", false, "/src/other.go", 21)]);
    }
}
