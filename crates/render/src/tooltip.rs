//! Names as a tooltip has room for them.

use std::borrow::Cow;

/// The longest name that a tooltip holds, in characters; the search still sees all of it.
const TOOLTIP_NAME: usize = 400;
const TOOLTIP_HEAD: usize = 250;

/// A name cut in its middle where it is too long for a tooltip.
pub(crate) fn tooltip_name(name: &str) -> Cow<'_, str> {
    let length = if name.len() <= TOOLTIP_NAME { 0 } else { name.chars().count() };
    if length <= TOOLTIP_NAME {
        return Cow::Borrowed(name);
    }
    let tail = TOOLTIP_NAME - TOOLTIP_HEAD - 1;
    let head = name.chars().take(TOOLTIP_HEAD);
    Cow::Owned(head.chain(['…']).chain(name.chars().skip(length - tail)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_in_the_middle_of_a_tooltip_at_characters() {
        let exact = "ä".repeat(400);
        assert_eq!(tooltip_name(&exact), exact);
        let long = format!("{}{}", "ä".repeat(300), "z".repeat(300));
        let expect = format!("{}…{}", "ä".repeat(250), "z".repeat(149));
        assert_eq!(tooltip_name(&long), expect);
    }
}
