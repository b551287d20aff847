//! The tables in which a VM says what it has where: for each field of its structures the offset, or
//! the address of what there is once; types with their sizes; constants.
//!
//! Sources: `vmStructs.hpp` of OpenJDK says what the columns are; the VM exports where each lies.

use rustc_hash::FxHashMap;

use crate::layout::Unknown;
use crate::memory::{Blocks, Kept, Memory};

/// The names that libjvm exports, and [`Tables::read`] wants the addresses of, in this order.
pub const EXPORTS: [&str; 15] = [
    "gHotSpotVMStructs",
    "gHotSpotVMStructEntryTypeNameOffset",
    "gHotSpotVMStructEntryFieldNameOffset",
    "gHotSpotVMStructEntryIsStaticOffset",
    "gHotSpotVMStructEntryOffsetOffset",
    "gHotSpotVMStructEntryAddressOffset",
    "gHotSpotVMStructEntryArrayStride",
    "gHotSpotVMTypes",
    "gHotSpotVMTypeEntryTypeNameOffset",
    "gHotSpotVMTypeEntrySizeOffset",
    "gHotSpotVMTypeEntryArrayStride",
    "gHotSpotVMIntConstants",
    "gHotSpotVMIntConstantEntryNameOffset",
    "gHotSpotVMIntConstantEntryValueOffset",
    "gHotSpotVMIntConstantEntryArrayStride",
];

/// More lines than any table has: the largest has 1,700.
const MOST_LINES: u64 = 6_000;

/// The longest name.
const LONGEST_NAME: usize = 200;

/// The longest line, in bytes.
const LONGEST_LINE: u64 = 256;

/// What a VM says of itself, by names.
#[derive(Debug, Default)]
pub struct Tables {
    /// By type and field: whether there is one of it only, and its offset or address.
    fields: FxHashMap<(String, String), (bool, u64)>,
    sizes: FxHashMap<String, u64>,
    constants: FxHashMap<String, i32>,
}

impl Tables {
    /// Reads them, with the addresses of what [`EXPORTS`] names; `None` where they are not there yet.
    ///
    /// # Errors
    /// They are longer than any.
    pub fn read(
        memory: &dyn Memory,
        exports: &[u64; EXPORTS.len()],
    ) -> Result<Option<Tables>, Unknown> {
        let mut is_too_long = false;
        let tables = Tables::within(memory, exports, &mut is_too_long);
        if is_too_long { Err(Unknown::NoTables) } else { Ok(tables) }
    }

    fn within(
        memory: &dyn Memory,
        exports: &[u64; EXPORTS.len()],
        is_too_long: &mut bool,
    ) -> Option<Tables> {
        let kept = Kept::default();
        let memory = &Blocks::new(memory, &kept);
        let mut tables = Tables::default();
        let [structs, type_name, field_name, is_static, offset, address, stride, rest @ ..] =
            exports;
        let [types, name_of_type, size, type_stride, ints, name, value, int_stride] = rest;
        let columns = columns_of(memory, [type_name, field_name, is_static, offset, address])?;
        let [type_name, field_name, is_static, offset, address] = columns;
        *is_too_long |= each_line(memory, [*structs, *stride], type_name, |line, of| {
            let field = memory.text(memory.word(line + field_name)?, LONGEST_NAME)?;
            let is_static = memory.half(line + is_static)? != 0;
            let place = memory.word(line + if is_static { address } else { offset })?;
            tables.fields.insert((of, field), (is_static, place));
            Some(())
        })?;
        let [name_of_type, size] = columns_of(memory, [name_of_type, size])?;
        *is_too_long |= each_line(memory, [*types, *type_stride], name_of_type, |line, of| {
            tables.sizes.insert(of, memory.word(line + size)?);
            Some(())
        })?;
        let [name, value] = columns_of(memory, [name, value])?;
        *is_too_long |= each_line(memory, [*ints, *int_stride], name, |line, of| {
            tables.constants.insert(of, memory.half(line + value)?.cast_signed());
            Some(())
        })?;
        Some(tables)
    }

    /// The offset of a field.
    pub(crate) fn offset(&self, of: &str, field: &str) -> Option<u32> {
        match self.fields.get(&(of.to_owned(), field.to_owned()))? {
            (false, offset) => u32::try_from(*offset).ok().filter(|offset| *offset < 1 << 16),
            (true, _) => None,
        }
    }

    /// The address of what there is once.
    pub(crate) fn address(&self, of: &str, field: &str) -> Option<u64> {
        let (is_static, address) = self.fields.get(&(of.to_owned(), field.to_owned()))?;
        is_static.then_some(*address)
    }

    /// The size of a type.
    pub(crate) fn size(&self, of: &str) -> Option<u32> {
        u32::try_from(*self.sizes.get(of)?).ok().filter(|size| *size < 1 << 16)
    }

    /// A constant.
    pub(crate) fn constant(&self, name: &str) -> Option<i32> {
        self.constants.get(name).copied()
    }
}

/// Where columns are in a line: those numbers are variables of the VM.
fn columns_of<const N: usize>(memory: &Blocks<'_>, columns: [&u64; N]) -> Option<[u64; N]> {
    let mut offsets = [0; N];
    for (offset, column) in offsets.iter_mut().zip(columns) {
        *offset = memory.word(*column).filter(|offset| *offset < LONGEST_LINE)?;
    }
    Some(offsets)
}

/// Goes through a table, whose last line has no name; its addresses are those of the variables that
/// say where it starts and how long a line is. Whether it goes on beyond what is read.
fn each_line(
    memory: &Blocks<'_>,
    [start, stride]: [u64; 2],
    name: u64,
    mut each: impl FnMut(u64, String) -> Option<()>,
) -> Option<bool> {
    let start = memory.word(start)?;
    let stride = memory.word(stride).filter(|stride| (8..=LONGEST_LINE).contains(stride))?;
    for number in 0..MOST_LINES {
        let line = start.checked_add(number * stride)?;
        line.checked_add(2 * LONGEST_LINE)?;
        let at = memory.word(line + name)?;
        if at == 0 {
            return Some(false);
        }
        each(line, memory.text(at, LONGEST_NAME)?)?;
    }
    Some(true)
}
