//! Names as they may be shown: without characters that break XML, terminals or the reader's eye.

use std::borrow::Cow;

use flame_profile::is_direction_mark;

/// Replaces what must not reach a picture or a terminal by something visible.
///
/// Control characters become their pictures (`␛`), marks that reorder text become escapes
/// (`\u{202e}`), and characters that hide text (zero-width blanks) and those that XML forbids become
/// `�`.
pub fn clean_name(name: &str) -> Cow<'_, str> {
    if name.bytes().all(|b| (b' '..0x7f).contains(&b)) {
        return Cow::Borrowed(name);
    }
    let mut clean = String::with_capacity(name.len());
    for c in name.chars() {
        match is_direction_mark(c) {
            true => clean.extend(c.escape_unicode()),
            false => clean.push(clean_char(c)),
        }
    }
    Cow::Owned(clean)
}

/// A name with its middle left out where it is too long; control characters, which a hostile
/// program could steer the terminal with, are replaced.
pub fn shortened(name: &str, room: usize) -> String {
    let clean: Vec<char> = clean_name(name).chars().collect();
    if clean.len() <= room {
        return clean.into_iter().collect();
    }
    let keep = room.saturating_sub(1);
    let (head, tail) = (keep / 2, keep - keep / 2);
    let head: String = clean[..head].iter().collect();
    head + "…" + &clean[clean.len() - tail..].iter().collect::<String>()
}

fn clean_char(c: char) -> char {
    match c {
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\x7f' => '\u{2421}',
        '\u{80}'..='\u{9f}'
        | '\u{200b}'
        | '\u{2028}'..='\u{2029}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => '\u{fffd}',
        // The last two code points of every plane are not characters, and XML forbids U+FFFE/F.
        c if u32::from(c) & 0xfffe == 0xfffe => '\u{fffd}',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_both_ends_and_control_characters_are_shown() {
        assert_eq!(shortened("abcdefghij", 5), "ab…ij");
        assert_eq!(shortened("a\x1b[2Jb", 10), "a␛[2Jb");
    }

    #[test]
    fn ordinary_names_stay_as_they_are() {
        for name in ["main", "<T as core::fmt::Debug>::fmt", "größe", "日本語", "a\u{200d}b"] {
            assert_eq!(clean_name(name), name);
        }
    }

    #[test]
    fn what_breaks_output_becomes_visible() {
        assert_eq!(clean_name("a\x1b[31mb\n\0"), "a␛[31mb␊␀");
        assert_eq!(
            clean_name("gpj.\u{202e}exe\u{fffe}\u{9b}m"),
            "gpj.\\u{202e}exe\u{fffd}\u{fffd}m"
        );
    }

    #[test]
    fn names_that_differ_in_direction_only_stay_apart() {
        assert_eq!(clean_name("a\u{2066}b\u{2069}\u{61c}"), r"a\u{2066}b\u{2069}\u{61c}");
        assert_ne!(clean_name("a\u{202a}"), clean_name("a\u{202b}"));
    }
}
