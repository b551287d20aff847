//! Rows of comma-separated values, as profilers for Windows export them.

use std::borrow::Cow;

/// The fields of a row: those in quotation marks may hold the separator, and a doubled quotation
/// mark is one. Blanks at the start of a field stay, since they are the depth of a tree.
pub(crate) fn fields(row: &[u8], separator: u8) -> Vec<Cow<'_, [u8]>> {
    if memchr::memchr(b'"', row).is_none() {
        return row.split(|byte| *byte == separator).map(Cow::Borrowed).collect();
    }
    let mut fields = Vec::new();
    let mut field = Vec::new();
    let mut is_quoted = false;
    let mut bytes = row.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if is_quoted && bytes.peek() == Some(&b'"') => {
                field.push(b'"');
                bytes.next();
            }
            b'"' => is_quoted = !is_quoted,
            _ if byte == separator && !is_quoted => fields.push(std::mem::take(&mut field).into()),
            _ => field.push(byte),
        }
    }
    fields.push(field.into());
    fields
}

/// The position of the first column whose name, in lower case, `is` one that is looked for.
pub(crate) fn column(header: &[Cow<'_, [u8]>], is: impl Fn(&str) -> bool) -> Option<usize> {
    header.iter().position(|name| {
        let name = String::from_utf8_lossy(name).trim().to_lowercase();
        is(&name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotation_marks_hold_separators_and_themselves() {
        let found = fields(b"1,\"  f<int, char>\",\"say \"\"hi\"\"\",", b',');
        let expect: [&[u8]; 4] = [b"1", b"  f<int, char>", b"say \"hi\"", b""];
        assert_eq!(found, expect);
        assert_eq!(fields(b"", b','), [&b""[..]]);
        assert_eq!(fields(b";  f, g;", b';'), [&b""[..], b"  f, g", b""]);
    }
}
