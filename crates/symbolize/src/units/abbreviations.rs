//! Turns a table of abbreviations into its length, and into one that says nothing of names.
//!
//! Sources: DWARF 5, sections 7.5.3 and 7.5.4.

use gimli::Reader as _;

use super::effort::Unreadable;
use crate::debug_info::Reader;

/// Stands in the place of what addr2line is not to look at: `DW_AT_description`, which it does not know.
const IGNORED: u8 = 0x5a;

/// The most attributes of one entry; compilers write some 20. They may take no byte of the entry, and
/// are gone over with each.
const MAX_ATTRIBUTES: usize = 64;

/// A table in which functions and inlined calls have neither names nor references to other entries.
///
/// addr2line reads both of all calls in a function, whether they are asked for or not, gives up the
/// function at a reference that leads out of the unit, and could be sent round by hostile ones. Flame
/// reads them itself, of those entries that addr2line finds.
#[derive(Debug)]
pub(super) struct WithoutNames {
    /// The table, up to its end.
    pub(super) bytes: Vec<u8>,
    /// The fewest bytes that a function with code, or an inlined call, takes.
    pub(super) shortest_function: usize,
}

/// What says how an entry is stored, for one attribute.
struct Attribute {
    name: gimli::DwAt,
    form: gimli::DwForm,
    /// Where that stands in the table.
    at: usize,
}

impl WithoutNames {
    /// Made from the table that abbreviations start with.
    ///
    /// # Errors
    /// When the table does not end, or an entry has too many attributes.
    pub(super) fn new(table: Reader<'_>) -> Result<WithoutNames, Unreadable> {
        let mut bytes = table.slice()[..abbreviations_len(table)].to_vec();
        let mut shortest_function = usize::MAX;
        visit(table, |tag, attributes| {
            let has_code = attributes
                .iter()
                .any(|a| matches!(a.name, gimli::DW_AT_low_pc | gimli::DW_AT_ranges));
            match tag {
                gimli::DW_TAG_subprogram if !has_code => {}
                gimli::DW_TAG_subprogram | gimli::DW_TAG_inlined_subroutine => {
                    let len = attributes.iter().map(|attribute| shortest(attribute.form));
                    shortest_function = shortest_function.min(1 + len.sum::<usize>());
                }
                _ => return,
            }
            // All of their names have one byte as compilers write them.
            let hidden = attributes.iter().filter(|a| says_name(a.name) && bytes[a.at] < 0x80);
            hidden.map(|a| a.at).collect::<Vec<_>>().into_iter().for_each(|at| bytes[at] = IGNORED);
        })?;
        Ok(WithoutNames { bytes, shortest_function })
    }
}

/// The length in bytes of the table that abbreviations start with; all of them where it does not
/// end.
pub(super) fn abbreviations_len(table: Reader<'_>) -> usize {
    visit(table, |_, _| ()).unwrap_or(table.len())
}

/// Goes over the entries of a table; its length.
fn visit(
    table: Reader<'_>,
    mut each: impl FnMut(gimli::DwTag, &[Attribute]),
) -> Result<usize, Unreadable> {
    let (mut rest, mut attributes) = (table, Vec::new());
    while rest.read_uleb128()? != 0 {
        let tag = gimli::DwTag(rest.read_uleb128_u16()?);
        rest.read_u8()?;
        attributes.clear();
        loop {
            let at = table.len() - rest.len();
            let name = gimli::DwAt(rest.read_uleb128_u16()?);
            let form = gimli::DwForm(rest.read_uleb128_u16()?);
            if form == gimli::DW_FORM_implicit_const {
                rest.read_sleb128()?;
            }
            if (name.0, form.0) == (0, 0) {
                break;
            }
            if attributes.len() == MAX_ATTRIBUTES {
                return Err(Unreadable::Exhausted);
            }
            attributes.push(Attribute { name, form, at });
        }
        each(tag, &attributes);
    }
    Ok(table.len() - rest.len())
}

fn says_name(name: gimli::DwAt) -> bool {
    matches!(
        name,
        gimli::DW_AT_name
            | gimli::DW_AT_linkage_name
            | gimli::DW_AT_abstract_origin
            | gimli::DW_AT_specification
    )
}

/// The fewest bytes that a value of that form has in an entry.
fn shortest(form: gimli::DwForm) -> usize {
    match form {
        gimli::DW_FORM_implicit_const | gimli::DW_FORM_flag_present => 0,
        gimli::DW_FORM_data2 | gimli::DW_FORM_ref2 => 2,
        gimli::DW_FORM_addr
        | gimli::DW_FORM_data4
        | gimli::DW_FORM_ref4
        | gimli::DW_FORM_ref_addr
        | gimli::DW_FORM_sec_offset
        | gimli::DW_FORM_strp => 4,
        gimli::DW_FORM_data8 | gimli::DW_FORM_ref8 => 8,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use gimli::RunTimeEndian;

    use super::*;

    #[test]
    fn a_table_ends_at_its_zero() {
        // 1: compile unit with children, a name (string) and a constant 300; 2: without attributes.
        let table = b"\x01\x11\x01\x03\x08\x13\x21\xac\x02\0\0\x02\x2e\0\0\0\0\x01\x02";
        let len = |bytes| abbreviations_len(Reader::new(bytes, RunTimeEndian::Little));
        assert_eq!(len(table), 17);
        for cut in 0..17 {
            assert_eq!(len(&table[..cut]), cut);
        }
    }

    #[test]
    fn functions_lose_their_names_and_units_keep_them() {
        // 1: compile unit with a name; 2: subprogram with a name (string), low_pc, a linkage name
        // (strp), an origin (ref_addr) and a specification (ref4).
        let unit = b"\x01\x11\x01\x03\x08\0\0";
        let function = b"\x02\x2e\0\x03\x08\x11\x01\x6e\x0e\x31\x10\x47\x13\0\0";
        let hidden = b"\x02\x2e\0\x5a\x08\x11\x01\x5a\x0e\x5a\x10\x5a\x13\0\0";
        let table = [&unit[..], function, b"\0rest"].concat();
        let plain = |table: &[u8]| WithoutNames::new(Reader::new(table, RunTimeEndian::Little));
        let hidden_table = plain(&table).unwrap();
        assert_eq!(hidden_table.bytes, [&unit[..], hidden, b"\0"].concat());
        assert_eq!(hidden_table.shortest_function, 1 + 1 + 4 + 4 + 4 + 4);
        assert!(plain(&table[..20]).is_err());
        let endless = [&b"\x01\x2e\0"[..], &b"\x3b\x21\x07".repeat(65), b"\0\0\0"].concat();
        assert!(plain(&endless).is_err());
        assert!(plain(&[&endless[..3], &endless[6..]].concat()).is_ok());
    }
}
