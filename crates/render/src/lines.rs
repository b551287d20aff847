//! Running text in a given width: cut at the end, or wrapped between words.
//!
//! The viewer script does the same when the window's width changes.

use crate::char_width::{MilliEm, char_width, text_width};

const ELLIPSIS: char = '…';

/// `name` cut at its end to be at most `max` wide.
pub(crate) fn cut_end(name: &str, max: MilliEm) -> String {
    if text_width(name) <= max {
        return name.to_owned();
    }
    let mut left = max.saturating_sub(char_width(ELLIPSIS));
    let fits = |c: &char| match left.checked_sub(char_width(*c)) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    let mut cut: String = name.chars().take_while(fits).collect();
    cut.push(ELLIPSIS);
    cut
}

/// `text` in lines at most `max` wide, broken at blanks; a word wider than that is cut.
pub(crate) fn wrap(text: &str, max: MilliEm) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let word = cut_end(word, max);
        match lines.last_mut() {
            Some(line) if text_width(line) + text_width(" ") + text_width(&word) <= max => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_cut_at_the_end() {
        assert_eq!(cut_end("cc1 -O2 sqlite3.c", text_width("cc1 -O2…")), "cc1 -O2…");
        assert_eq!(cut_end("cc1", text_width("cc1")), "cc1");
    }

    #[test]
    fn footers_are_wrapped_between_words() {
        let text = "1,000 samples,  0 lost";
        assert_eq!(wrap(text, text_width(text)), ["1,000 samples, 0 lost"]);
        assert_eq!(wrap(text, text_width("1,000 samples,")), ["1,000 samples,", "0 lost"]);
        assert_eq!(wrap(text, text_width("samp…")), ["1,000", "samp…", "0 lost"]);
        assert_eq!(wrap("", 1000), [""; 0]);
    }
}
