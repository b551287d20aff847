//! The viewer script and its style sheet, put together from the files of `viewer/`.

use std::sync::LazyLock;

/// The files of the script, one idea each, in the order in which they build on each other.
const FILES: [&str; 28] = [
    include_str!("viewer/page.js"),
    include_str!("viewer/inflate.js"),
    include_str!("viewer/load.js"),
    include_str!("viewer/tree.js"),
    include_str!("viewer/sides.js"),
    include_str!("viewer/path.js"),
    include_str!("viewer/arrange.js"),
    include_str!("viewer/around.js"),
    include_str!("viewer/amount.js"),
    include_str!("viewer/change.js"),
    include_str!("viewer/text.js"),
    include_str!("viewer/layout.js"),
    include_str!("viewer/draw.js"),
    include_str!("viewer/panes.js"),
    include_str!("viewer/scroll.js"),
    include_str!("viewer/controls.js"),
    include_str!("viewer/footer.js"),
    include_str!("viewer/status.js"),
    include_str!("viewer/matching.js"),
    include_str!("viewer/search.js"),
    include_str!("viewer/state.js"),
    include_str!("viewer/details.js"),
    include_str!("viewer/select.js"),
    include_str!("viewer/copy.js"),
    include_str!("viewer/panel.js"),
    include_str!("viewer/actions.js"),
    include_str!("viewer/events.js"),
    include_str!("viewer/begin.js"),
];
pub(super) const STYLE: &str = include_str!("viewer/style.css");

/// The script, one function so that it leaves no names in the page; ASCII, see `escape_clean`.
pub(super) fn script() -> &'static str {
    static SCRIPT: LazyLock<String> = LazyLock::new(|| {
        let lines = FILES.iter().flat_map(|file| file.lines()).map(str::trim);
        let mut script = "(() => {\n'use strict';\n".to_owned();
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with("//")) {
            push_ascii(line, &mut script);
            script.push('\n');
        }
        script.push_str("})();\n");
        script
    });
    &SCRIPT
}

/// Appends a line whose other characters stand in texts and patterns, where escapes mean the same.
fn push_ascii(line: &str, out: &mut String) {
    for c in line.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                *out += &format!("\\u{unit:04x}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_ascii_with_the_same_texts() {
        assert!(script().is_ascii());
        let line = "return left < 0 || kept < 3 ? null : chars.slice(0, kept).join('') + '…';";
        assert!(FILES.iter().any(|file| file.contains(line)));
        assert!(script().contains(&line.replace('…', "\\u2026")));
        let mut text = String::new();
        push_ascii("'a—🔥'", &mut text);
        assert_eq!(text, r"'a\u2014\ud83d\udd25'");
    }

    #[test]
    fn comments_and_indentation_stay_out_of_the_picture() {
        let lines: Vec<&str> = script().lines().collect();
        assert_eq!((lines[0], lines[1]), ("(() => {", "'use strict';"));
        assert_eq!(lines.last(), Some(&"})();"));
        assert!(!lines.iter().any(|line| line.starts_with([' ', '/'])));
        let code = "const HTML = 'http://www.w3.org/1999/xhtml';";
        assert!(lines.contains(&code), "what looks like a comment within a line stays");
    }

    /// A line of text over several lines would lose its indentation.
    #[test]
    fn no_text_of_the_script_spans_lines() {
        for file in FILES {
            for (number, line) in file.lines().enumerate() {
                let code = line.trim();
                let odd = !code.starts_with("//") && code.matches('`').count() % 2 == 1;
                assert!(!odd, "{}: {line}", number + 1);
            }
        }
    }

    #[test]
    fn nothing_is_evaluated_and_nothing_is_requested() {
        for word in ["eval(", "Function(", "innerHTML", "outerHTML", "fetch(", "XMLHttp", "import("]
        {
            assert!(!script().contains(word), "{word}");
        }
    }
}
