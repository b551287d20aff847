//! Numbers and texts at offsets of a table that may end before them.

/// The longest name or path that is read, in bytes; generic functions of Go have names of some
/// hundred.
const MAX_TEXT: usize = 16 << 10;

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*word))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*word))
}

/// A number that is a length or an offset.
pub(crate) fn usize_at(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64_at(bytes, at)?).ok()
}

/// The text at an offset, up to its zero byte; `None` for one that is empty or has no end.
pub(crate) fn text_at(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let rest = bytes.get(at..)?;
    let rest = &rest[..rest.len().min(MAX_TEXT)];
    let len = memchr::memchr(0, rest)?;
    Some(&rest[..len]).filter(|text| !text.is_empty())
}
