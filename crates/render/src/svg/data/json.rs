//! JSON that is at the same time plain XML text.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

/// A JSON string without `<`, `>` or `&`; the text is clean already.
pub(super) struct Json<'t>(pub(super) &'t str);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        let special = |c: char| c.is_control() || matches!(c, '"' | '\\' | '<' | '>' | '&');
        let mut rest = self.0;
        while let Some(at) = rest.find(special) {
            f.write_str(&rest[..at])?;
            let mut chars = rest[at..].chars();
            if let Some(c) = chars.next() {
                write!(f, "\\u{:04x}", u32::from(c))?;
            }
            rest = chars.as_str();
        }
        f.write_str(rest)?;
        f.write_char('"')
    }
}

/// Writes `,"name":[1,2,3]`.
pub(super) fn write_numbers(
    name: &str,
    numbers: impl Iterator<Item = u16>,
    out: &mut impl Write,
) -> io::Result<()> {
    write!(out, r#","{name}":["#)?;
    for (index, number) in numbers.enumerate() {
        write!(out, "{}{number}", super::comma(index))?;
    }
    out.write_all(b"]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_quotes_are_escaped() {
        assert_eq!(Json("a<\"b\\&>é").to_string(), r#""a\u003c\u0022b\u005c\u0026\u003eé""#);
    }
}
