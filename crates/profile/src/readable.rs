//! Bytes from the kernel, from files and from users as text that can be shown and written.

use std::borrow::Cow;

/// Bytes as text: those that are not UTF-8 become `\xNN`, so that different names stay different.
///
/// ```
/// assert_eq!(flame_profile::readable(b"caf\xe9 1"), r"caf\xe9 1");
/// ```
pub fn readable(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    Cow::Owned(text)
}

/// Whether a character turns the direction of what is shown around it, so that a name can look like
/// another one: `\u{202e}` and its like. Outputs show it as that escape.
///
/// Source: Unicode Standard Annex 9, section 2.
pub fn is_direction_mark(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}
