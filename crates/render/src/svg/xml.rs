//! Text that may stand in XML, whatever it was.

use std::borrow::Cow;

use flame_message::{clean_name, push_digits};

use crate::layout::Units;

/// Cleaned of characters that XML forbids, markup escaped; for text and for quoted attributes.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    match clean_name(text) {
        Cow::Borrowed(clean) => escape_clean(clean),
        Cow::Owned(clean) => Cow::Owned(escape_clean(&clean).into_owned()),
    }
}

fn escape_clean(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(is_special) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    push_clean(text, &mut escaped);
    Cow::Owned(escaped)
}

/// Appends what [`escape`] gives.
pub(super) fn push_escaped(text: &str, out: &mut String) {
    if text.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
        push_clean(text, out);
    } else {
        push_clean(&clean_name(text), out);
    }
}

/// Appends a text that is clean already with its markup escaped.
pub(super) fn push_clean(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(is_special) {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        let mut chars = special.chars();
        match chars.next() {
            Some('<') => out.push_str("&lt;"),
            Some('>') => out.push_str("&gt;"),
            Some('&') => out.push_str("&amp;"),
            Some('"') => out.push_str("&quot;"),
            Some('\'') => out.push_str("&#39;"),
            // Labels end in it. Browsers decode a file of nothing but ASCII five times as fast.
            Some('…') => out.push_str("&#8230;"),
            other => out.extend(other),
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
}

/// Markup, or what an ellipsis starts with.
fn is_special(byte: u8) -> bool {
    matches!(byte, b'<' | b'>' | b'&' | b'"' | b'\'' | 0xe2)
}

/// Appends hundredths of a pixel as a decimal number without needless digits: `10`, `10.5`,
/// `10.25`.
pub(super) fn push_pixels(units: Units, out: &mut String) {
    push_digits(u64::from(units / 100), out);
    let part = units % 100;
    if part > 0 {
        out.push('.');
        out.push(char::from(b'0' + (part / 10) as u8));
    }
    if !part.is_multiple_of(10) {
        out.push(char::from(b'0' + (part % 10) as u8));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_forbidden_characters_are_escaped() {
        assert_eq!(escape("main"), "main");
        assert_eq!(escape("<a href=\"b\">'&]]>"), "&lt;a href=&quot;b&quot;&gt;&#39;&amp;]]&gt;");
        assert_eq!(escape("\0<\u{ffff}"), "␀&lt;\u{fffd}");
    }

    #[test]
    fn pixels_have_no_needless_digits() {
        for (units, expect) in
            [(0, "0"), (7, "0.07"), (70, "0.7"), (1000, "10"), (1050, "10.5"), (1234, "12.34")]
        {
            let mut text = String::new();
            push_pixels(units, &mut text);
            assert_eq!(text, expect);
        }
    }
}
