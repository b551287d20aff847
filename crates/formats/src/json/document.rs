//! A whole JSON file, whose long lists are read value by value, and of which what stands before its end
//! can be had where it breaks off.

use std::cell::Cell;

use super::parse::Wrong;
use super::{Parser, Value, read};
use crate::ReadError;
use crate::input::Input;
use crate::sink::Sink;
use crate::skipped::Place;

/// The text of a file. Values borrow from it.
pub(crate) struct Document {
    text: String,
    /// What is wrong first of what was looked at.
    wrong: Cell<Option<Wrong>>,
    /// Whether a list ends with the text, right behind a whole value or its comma.
    lacks_end: Cell<bool>,
}

impl Document {
    /// The whole input.
    pub(crate) fn read(input: &mut Input<'_>) -> Result<Document, ReadError> {
        Ok(Document::of(read(input)?))
    }

    fn of(text: String) -> Document {
        Document { text, wrong: Cell::new(None), lacks_end: Cell::new(false) }
    }

    /// What the file holds, or the start of it. Arrays of these keys are left unread, as is one that is
    /// all of the file: [`Document::elements`] has their values. A list takes as much memory as its text
    /// that way; values take 24 bytes each.
    pub(crate) fn root<'d>(&'d self, lists: &'d [&'d str]) -> Value<'d> {
        let mut parser = Parser::with_lists(&self.text, lists);
        let (root, wrong) = match parser.peek() {
            Some(b'[') => (parser.list(), None),
            _ => parser.start_of_value(),
        };
        let is_ended = wrong.is_some() || parser.is_at_end();
        let behind = Wrong { what: "something stands behind it", at: parser.position() };
        wrong.or((!is_ended).then_some(behind)).into_iter().for_each(|wrong| self.is_wrong(wrong));
        root
    }

    /// The values of an array that was left unread, as far as they are whole; none of anything else.
    pub(crate) fn elements<'d>(&'d self, list: &Value<'d>) -> Elements<'d> {
        let Value::List(text) = list else { return Elements { document: self, rest: None } };
        let start = (text.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let mut parser = Parser::new(&self.text[..start + text.len()], start);
        let is_empty = !parser.takes(b'[') || parser.takes(b']');
        Elements { document: self, rest: (!is_empty).then_some(parser) }
    }

    /// Whether what was looked at so far breaks off.
    pub(crate) fn is_cut(&self) -> bool {
        self.wrong.get().is_some()
    }

    /// Whether the text ends behind whole values of a list that was looked at. Where that list is all of
    /// the file, nothing else is wrong with it.
    pub(crate) fn only_lacks_end(&self) -> bool {
        self.lacks_end.get()
    }

    /// Says that it breaks off, if it does: once everything was looked at.
    ///
    /// # Errors
    /// It breaks off, and that is to be an error.
    pub(crate) fn say_cut(&self, sink: &mut Sink) -> Result<(), ReadError> {
        match self.wrong.get() {
            Some(wrong) => sink.cut_short(Place::Byte(wrong.at as u64), &self.what(wrong)),
            None => Ok(()),
        }
    }

    /// An error of a file that has none of these: where it breaks off, that may be why.
    pub(crate) fn without(&self, format: &'static str, missing: &str) -> ReadError {
        let what = match self.wrong.get() {
            Some(wrong) => format!("{}; it has no {missing} before that", self.what(wrong)),
            None => format!("it has no {missing}"),
        };
        ReadError::Broken { format, what }
    }

    fn what(&self, wrong: Wrong) -> String {
        format!("its JSON is truncated or invalid: {} at byte {}", wrong.what, wrong.at)
    }

    fn is_wrong(&self, wrong: Wrong) {
        let first = self.wrong.get().filter(|first| first.at <= wrong.at).unwrap_or(wrong);
        self.wrong.set(Some(first));
    }
}

/// The values of an array, one after the other.
pub(crate) struct Elements<'d> {
    document: &'d Document,
    rest: Option<Parser<'d>>,
}

impl<'d> Iterator for Elements<'d> {
    type Item = Value<'d>;

    fn next(&mut self) -> Option<Value<'d>> {
        let parser = self.rest.as_mut()?;
        let is_end = parser.is_at_end();
        let value = match parser.value() {
            Ok(value) => value,
            Err(wrong) => {
                self.document.lacks_end.set(is_end);
                self.document.is_wrong(wrong);
                self.rest = None;
                return None;
            }
        };
        if parser.takes(b',') {
            return Some(value);
        }
        let is_broken = !parser.takes(b']');
        let may_go_on = matches!(value, Value::Number(_)) && parser.is_at_break();
        if is_broken && let Err(wrong) = parser.wrong::<()>("a comma or an end is missing") {
            self.document.lacks_end.set(!may_go_on && parser.is_at_end());
            self.document.is_wrong(wrong);
        }
        self.rest = None;
        (!(is_broken && may_go_on)).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"a":[{"b":[1,20,[3,"]"],{"\"]":4}],"c":500}],"d":"e","b":[]}"#;

    fn document(text: &str) -> Document {
        Document::of(text.to_owned())
    }

    /// The values of the first list, and what stands beside it.
    fn found(document: &Document) -> (Vec<String>, String) {
        let root = document.root(&["b"]);
        let first = &root["a"][0];
        let list = document.elements(&first["b"]).map(|value| value.to_string());
        (list.collect(), first["c"].to_string())
    }

    #[test]
    fn lists_are_read_value_by_value() {
        let whole = document(TEXT);
        let (list, beside) = found(&whole);
        assert_eq!(list, ["1", "20", "[3,\"]\"]", "{\"\\\"]\":4}"]);
        assert_eq!((&*beside, whole.is_cut()), ("500", false));
        assert_eq!(whole.elements(&whole.root(&["b"])["b"]).count(), 0);
        let list = document(" [1,{},2] ");
        assert_eq!(list.elements(&list.root(&[])).count(), 3);
        assert!(!list.is_cut());
    }

    #[test]
    fn what_breaks_off_has_its_whole_values_and_no_others() {
        let (whole, beside) = found(&document(TEXT));
        for cut in 0..TEXT.len() {
            let start = document(&TEXT[..cut]);
            let (list, other) = found(&start);
            assert!(whole.starts_with(&list), "{cut}: {list:?}");
            assert!(other == beside || other == "null", "{cut}: {other}");
            assert!(start.is_cut(), "{cut}");
            let ends = [13, 16, 23, 33].iter().filter(|end| cut > **end);
            assert_eq!(list.len(), ends.count(), "{cut}: {list:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_the_first_place() {
        for (text, at) in
            [("{\"b\":[1 2]}", 8), ("{\"b\":[1,2]} {", 12), ("[1,2,]", 5), ("[1,2]]", 5)]
        {
            let document = document(text);
            let root = document.root(&["b"]);
            let list = if root["b"].is_null() { &root } else { &root["b"] };
            document.elements(list).for_each(drop);
            assert_eq!(document.wrong.get().map(|wrong| wrong.at), Some(at), "{text}");
        }
    }
}
