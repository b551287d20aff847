//! The start of an input, by which its format is recognised.

use flame_profile::{Columns, FoldedReader, SiblingOrder};

/// How much of an input is looked at to recognise its format.
pub(crate) const HEAD: usize = 1 << 16;

/// The first bytes of an input, decompressed and as UTF-8.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'h> {
    bytes: &'h [u8],
}

impl<'h> Head<'h> {
    pub(crate) fn new(bytes: &'h [u8]) -> Head<'h> {
        Head { bytes: &bytes[..bytes.len().min(HEAD)] }
    }

    /// The bytes as they are.
    pub(crate) fn bytes(&self) -> &'h [u8] {
        self.bytes
    }

    /// The bytes from the first on that is not white space.
    pub(crate) fn text(&self) -> &'h [u8] {
        self.bytes.trim_ascii_start()
    }

    /// The lines without their ends, the last perhaps cut short.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &'h [u8]> + use<'h> {
        let lines = self.bytes.split(|byte| *byte == b'\n');
        lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Whether the bytes hold what text does not.
    pub(crate) fn is_binary(&self) -> bool {
        self.bytes.iter().any(|byte| matches!(byte, 0..=8 | 14..=26))
    }

    /// Whether a text starts that way, and so is JSON most likely: `{"`, `[{`. `[New LWP 4243]` and
    /// `[unknown];main 7` are not.
    pub(crate) fn is_json(&self) -> bool {
        match self.text() {
            [b'{', rest @ ..] => matches!(rest.trim_ascii_start(), [] | [b'"' | b'}', ..]),
            [b'[', rest @ ..] => matches!(rest.trim_ascii_start(), [] | [b'{' | b']', ..]),
            _ => false,
        }
    }

    /// Whether a part of the start is these bytes.
    pub(crate) fn contains(&self, part: &[u8]) -> bool {
        memchr::memmem::find(self.bytes, part).is_some()
    }

    /// Whether the bytes are UTF-8, but for a character that the end cuts in two.
    pub(crate) fn is_utf8(&self) -> bool {
        std::str::from_utf8(self.bytes).map_or_else(|error| error.error_len().is_none(), |_| true)
    }

    /// Whether half of the lines end with a count: so do some lines of anything, and all of folded text.
    pub(crate) fn has_mostly_counts(&self) -> bool {
        let mut reader = FoldedReader::new(Columns::One, SiblingOrder::Name);
        let is_read = reader.read(&mut &*self.bytes).is_ok();
        let lines = self.lines().filter(|line| !line.trim_ascii().is_empty()).count() as u64;
        is_read && reader.skipped_lines().saturating_mul(2) <= lines
    }

    /// Whether at least one line ends with a count, as those of folded text do.
    pub(crate) fn has_counts(&self) -> bool {
        let mut reader = FoldedReader::new(Columns::One, SiblingOrder::Name);
        reader.read(&mut &*self.bytes).is_ok() && !reader.into_builder().is_empty()
    }
}
