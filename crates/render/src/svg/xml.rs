//! Text that may stand in XML, whatever it was.

use std::borrow::Cow;
use std::fmt;

use crate::clean_name;
use crate::layout::Units;

/// Cleaned of characters that XML forbids, markup escaped; for text and for quoted attributes.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    match clean_name(text) {
        Cow::Borrowed(clean) => escape_clean(clean),
        Cow::Owned(clean) => Cow::Owned(escape_clean(&clean).into_owned()),
    }
}

fn escape_clean(text: &str) -> Cow<'_, str> {
    if !text.contains(['<', '>', '&', '"', '\'']) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

/// Hundredths of a pixel as a decimal number without needless digits: `10`, `10.5`, `10.25`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pixels(pub(super) Units);

impl fmt::Display for Pixels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 100, self.0 % 100);
        match part {
            0 => write!(f, "{whole}"),
            part if part % 10 == 0 => write!(f, "{whole}.{}", part / 10),
            part => write!(f, "{whole}.{part:02}"),
        }
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
            [(0, "0"), (7, "0.07"), (1000, "10"), (1050, "10.5"), (1234, "12.34")]
        {
            assert_eq!(Pixels(units).to_string(), expect);
        }
    }
}
