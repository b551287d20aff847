//! A terminal as a page that a browser shows: text with its colours.

use std::fmt::Write;

/// A box reaches to the next line, as a terminal's does; an underscore stands at its lower edge.
const STYLE: &str = "body { margin: 0; padding: 14px 18px; background: #16191d; color: #d6dde4 } \
    pre { margin: 0; font: 14px/19px 'DejaVu Sans Mono', monospace } \
    span { padding-bottom: 3px }";

/// The page of what was printed, colours of 24 bits as `ESC [ 38;2;R;G;B m` sets them.
pub(super) fn page(printed: &str) -> String {
    let mut page = format!("<!DOCTYPE html><meta charset=utf-8><style>{STYLE}</style><pre>");
    let mut pen = Pen::default();
    for (index, part) in printed.split("\x1b[").enumerate() {
        let text = match part.split_once('m') {
            Some((codes, text)) if index > 0 => {
                pen.apply(codes);
                text
            }
            _ => part,
        };
        pen.write(text, &mut page);
    }
    page + "</pre>"
}

/// The colours that are set, as CSS has them.
#[derive(Default)]
struct Pen {
    text: Option<String>,
    ground: Option<String>,
}

impl Pen {
    fn apply(&mut self, codes: &str) {
        let colour = |rest: &str| format!("rgb({})", rest.replace(';', ","));
        match codes.get(..5).zip(codes.get(5..)) {
            Some(("38;2;", rest)) => self.text = Some(colour(rest)),
            Some(("48;2;", rest)) => self.ground = Some(colour(rest)),
            _ => match codes {
                "39" => self.text = None,
                "49" => self.ground = None,
                _ => *self = Pen::default(),
            },
        }
    }

    fn write(&self, text: &str, page: &mut String) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let colour = |name: &str, value: &Option<String>| {
            value.as_ref().map(|value| format!("{name}:{value};")).unwrap_or_default()
        };
        let style = colour("color", &self.text) + &colour("background", &self.ground);
        // Text as lines have it, so that a string takes it without complaint.
        let _ = match style.is_empty() || text.is_empty() {
            true => write!(page, "{text}"),
            false => write!(page, "<span style=\"{style}\">{text}</span>"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_the_terminal() {
        let page = page("a\x1b[48;2;1;2;3mb\x1b[38;2;4;5;6m<\x1b[49mc\x1b[0md");
        let expect = "<pre>a<span style=\"background:rgb(1,2,3);\">b</span>\
            <span style=\"color:rgb(4,5,6);background:rgb(1,2,3);\">&lt;</span>\
            <span style=\"color:rgb(4,5,6);\">c</span>d</pre>";
        assert_eq!(page.split_once("</style>").map(|(_, text)| text), Some(expect));
    }
}
