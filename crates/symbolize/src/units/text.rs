//! Turns the value of an attribute into text of bounded length.

use std::ffi::CStr;

use gimli::{AttributeValue, Dwarf, Section, Unit};

use crate::debug_info::Reader;
use crate::demangle::MAX_NAME_LEN;

/// The bytes of a string, without the zero that ends it and cut after [`MAX_NAME_LEN`]; `None` when
/// the value is none.
///
/// The end is not looked for any further than that: millions of entries may name one string, which
/// may be as long as the file.
pub(crate) fn text<'d>(
    dwarf: &Dwarf<Reader<'d>>,
    unit: &Unit<Reader<'d>>,
    value: AttributeValue<Reader<'d>>,
) -> Option<&'d [u8]> {
    let (section, offset) = match value {
        AttributeValue::String(text) => return Some(bounded(text.slice())),
        AttributeValue::DebugStrRef(offset) => (dwarf.debug_str.reader(), offset.0),
        AttributeValue::DebugStrOffsetsIndex(index) => {
            (dwarf.debug_str.reader(), dwarf.string_offset(unit, index).ok()?.0)
        }
        AttributeValue::DebugStrRefSup(offset) => (dwarf.sup()?.debug_str.reader(), offset.0),
        AttributeValue::DebugLineStrRef(offset) => (dwarf.debug_line_str.reader(), offset.0),
        _ => return None,
    };
    section.slice().get(offset..).map(bounded)
}

fn bounded(bytes: &[u8]) -> &[u8] {
    let bytes = &bytes[..bytes.len().min(MAX_NAME_LEN)];
    // Looks at a word at a time.
    CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes)
}
