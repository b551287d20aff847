//! JSON text into values, in a loop: values may be nested as deeply as they like.
//!
//! What is not quite JSON is taken where its meaning is clear: numbers as `01`, half surrogates. Source: RFC 8259.

use memchr::memchr2;

use super::Value;

/// Reads values one after the other.
pub(crate) struct Parser<'t> {
    text: &'t str,
    at: usize,
    /// The keys of arrays that are not read, but left to be read one by one.
    lists: &'t [&'t str],
    /// How many more values and keys the one that is read may hold.
    values_left: usize,
}

/// How many values and keys are held at a time: 1.5 GiB of them, as files of some 400 MB have. A hostile
/// file has one in two bytes.
pub(super) const MAX_VALUES: usize = 1 << 26;
/// What is wrong with more.
pub(super) const TOO_MANY: &str = "it has more than 67108864 values";

/// An array or an object that has begun.
struct Open {
    /// Where its parts start among the values that belong to nothing yet.
    first: usize,
    is_object: bool,
}

/// What is wrong, and at which byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) what: &'static str,
    pub(crate) at: usize,
}

impl<'t> Parser<'t> {
    /// From the byte `at` on.
    pub(crate) fn new(text: &'t str, at: usize) -> Parser<'t> {
        Parser { text, at, lists: &[], values_left: MAX_VALUES }
    }

    /// From the start on; arrays of these keys become [`Value::List`].
    pub(super) fn with_lists(text: &'t str, lists: &'t [&'t str]) -> Parser<'t> {
        Parser { lists, ..Parser::new(text, 0) }
    }

    /// Where the next value is looked for.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Goes behind this byte, if it comes next.
    pub(super) fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Whether the text ends right behind the value before: digits of a number may be missing.
    pub(super) fn is_at_break(&self) -> bool {
        self.at == self.text.len()
    }

    /// Whether nothing but blanks is left.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// The next value.
    pub(crate) fn value(&mut self) -> Result<Value<'t>, Wrong> {
        let (mut parts, mut open) = (Vec::new(), Vec::new());
        self.values_left = MAX_VALUES;
        self.value_of(&mut parts, &mut open)
    }

    /// The next value, or, where it breaks off, what is whole of it, and what is wrong then.
    pub(super) fn start_of_value(&mut self) -> (Value<'t>, Option<Wrong>) {
        let (mut parts, mut open) = (Vec::new(), Vec::new());
        let wrong = match self.value_of(&mut parts, &mut open) {
            Ok(value) => return (value, None),
            Err(wrong) => wrong,
        };
        if self.is_at_break() && matches!(parts.last(), Some(Value::Number(_))) {
            parts.pop();
        }
        let mut value = Value::Null;
        while let Some(Open { first, is_object }) = open.pop() {
            if !value.is_null() {
                parts.push(value);
            }
            // A key without a value.
            if is_object && (parts.len() - first) % 2 == 1 {
                parts.pop();
            }
            value = within(is_object, parts.drain(first..).collect());
        }
        (value, Some(wrong))
    }

    fn value_of(
        &mut self,
        parts: &mut Vec<Value<'t>>,
        open: &mut Vec<Open>,
    ) -> Result<Value<'t>, Wrong> {
        loop {
            self.count()?;
            let mut value = match self.peek() {
                Some(b'[') if self.is_list(parts, open) => self.list(),
                Some(start @ (b'[' | b'{')) => {
                    self.at += 1;
                    let is_object = start == b'{';
                    if self.peek() == Some(end_of(is_object)) {
                        self.at += 1;
                        within(is_object, Box::default())
                    } else {
                        open.push(Open { first: parts.len(), is_object });
                        if is_object {
                            parts.push(self.key()?);
                        }
                        continue;
                    }
                }
                Some(b'"') => self.text()?,
                Some(b'-' | b'0'..=b'9') => self.number(),
                _ => self.word()?,
            };
            loop {
                let Some(Open { first, is_object }) = open.last() else { return Ok(value) };
                parts.push(value);
                let next = self.peek();
                if next == Some(b',') {
                    self.at += 1;
                    if *is_object {
                        parts.push(self.key()?);
                    }
                    break;
                }
                if next != Some(end_of(*is_object)) {
                    return self.wrong("a comma or an end is missing");
                }
                self.at += 1;
                value = within(*is_object, parts.drain(first..).collect());
                open.pop();
            }
        }
    }

    /// Counts a value or a key, unless there are too many.
    fn count(&mut self) -> Result<(), Wrong> {
        match self.values_left.checked_sub(1) {
            Some(left) => self.values_left = left,
            None => return self.wrong(TOO_MANY),
        }
        Ok(())
    }

    /// Whether the key that the next value is of is one of a list.
    fn is_list(&self, parts: &[Value<'t>], open: &[Open]) -> bool {
        !self.lists.is_empty()
            && open.last().is_some_and(|open| open.is_object)
            && parts.last().and_then(Value::as_str).is_some_and(|key| self.lists.contains(&key))
    }

    /// An array that is left unread. One that breaks off ends with the text: who reads it says so.
    pub(super) fn list(&mut self) -> Value<'t> {
        let start = self.at;
        self.skip_nested();
        Value::List(&self.text[start..self.at])
    }

    /// Goes behind an array or an object, without a look at what is in it.
    fn skip_nested(&mut self) {
        let bytes = self.text.as_bytes();
        let mut depth = 0_usize;
        while let Some(byte) = bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'[' | b'{' => depth += 1,
                b']' | b'}' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return;
                    }
                }
                b'"' => self.skip_text(),
                _ => {}
            }
        }
    }

    /// Goes behind the end of a text, from behind its first quotation mark.
    fn skip_text(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(found) = memchr2(b'"', b'\\', &bytes[self.at..]) {
            self.at += found + 1;
            if bytes[self.at - 1] == b'"' {
                return;
            }
            // What is escaped, and one byte of it at least, if it is there; no other starts a character.
            self.at = (self.at + 1).min(bytes.len());
        }
        self.at = bytes.len();
    }

    pub(super) fn wrong<T>(&self, what: &'static str) -> Result<T, Wrong> {
        Err(Wrong { what, at: self.at })
    }

    /// The next byte that is not blank.
    pub(super) fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        let blanks = rest.iter().position(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t'));
        self.at += blanks.unwrap_or(rest.len());
        self.text.as_bytes().get(self.at).copied()
    }

    /// A key with its colon.
    fn key(&mut self) -> Result<Value<'t>, Wrong> {
        self.count()?;
        if self.peek() != Some(b'"') {
            return self.wrong("a key is missing");
        }
        let key = self.text()?;
        if self.peek() != Some(b':') {
            return self.wrong("a colon is missing");
        }
        self.at += 1;
        Ok(key)
    }

    fn number(&mut self) -> Value<'t> {
        let rest = &self.text[self.at..];
        let is_part = |byte: u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
        let len = rest.bytes().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        self.at += len;
        Value::Number(&rest[..len])
    }

    fn word(&mut self) -> Result<Value<'t>, Wrong> {
        let rest = &self.text[self.at..];
        let words =
            [("null", Value::Null), ("true", Value::Bool(true)), ("false", Value::Bool(false))];
        for (word, value) in words {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        self.wrong(if rest.is_empty() { "it ends too early" } else { "a value is missing" })
    }

    /// What stands in quotation marks, at the first of which it is.
    fn text(&mut self) -> Result<Value<'t>, Wrong> {
        self.at += 1;
        let mut unescaped = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(len) = memchr2(b'"', b'\\', rest.as_bytes()) else {
                return self.wrong("a text does not end");
            };
            self.at += len + 1;
            if rest.as_bytes()[len] == b'\\' {
                unescaped.push_str(&rest[..len]);
                unescaped.push(self.escaped()?);
            } else if unescaped.is_empty() {
                return Ok(Value::Text(&rest[..len]));
            } else {
                unescaped.push_str(&rest[..len]);
                return Ok(Value::Unescaped(unescaped.into()));
            }
        }
    }

    /// What a backslash, behind which it is, stands for.
    fn escaped(&mut self) -> Result<char, Wrong> {
        let Some(escape) = self.text[self.at..].chars().next() else {
            return self.wrong("a text does not end");
        };
        self.at += escape.len_utf8();
        Ok(match escape {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => self.code_point()?,
            // Quotation marks, slashes, and what should not have been escaped.
            other => other,
        })
    }

    /// `\uXXXX`, or two of them for what 16 bits do not hold; half of such a pair is not a character.
    fn code_point(&mut self) -> Result<char, Wrong> {
        let first = self.hex()?;
        if !(0xd800..0xdc00).contains(&first) || !self.text[self.at..].starts_with("\\u") {
            return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let before = self.at;
        self.at += 2;
        let second = self.hex()?;
        if (0xdc00..0xe000).contains(&second) {
            let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        self.at = before;
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex(&mut self) -> Result<u32, Wrong> {
        let digits = self.text.get(self.at..self.at + 4);
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let Some(code) = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) else {
            return self.wrong("four digits are missing");
        };
        self.at += 4;
        Ok(code)
    }
}

fn end_of(is_object: bool) -> u8 {
    if is_object { b'}' } else { b']' }
}

fn within(is_object: bool, parts: Box<[Value<'_>]>) -> Value<'_> {
    if is_object { Value::Object(parts) } else { Value::Array(parts) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let value = Parser::new(text, 0).value().unwrap();
        assert_eq!(value.to_string(), expect);
    }

    #[track_caller]
    fn check_text(text: &str, expect: &str) {
        assert_eq!(Parser::new(text, 0).value().unwrap().as_str(), Some(expect));
    }

    #[test]
    fn values_are_read_whatever_blanks_are_between() {
        check(" [ ] ", "[]");
        check("{\n}", "{}");
        check("[1,-2.5e+3 ,\ttrue, false,null]", "[1,-2.5e+3,true,false,null]");
        check("{ \"a\" : { \"b\":[ {} ] } , \"c\":\"d\" }", "{\"a\":{\"b\":[{}]},\"c\":\"d\"}");
        check("18446744073709551615", "18446744073709551615");
        check("\"a\\\"b\"", "\"a\\\"b\"");
    }

    #[test]
    fn more_values_and_keys_than_are_held_are_refused() {
        let wrong = |values_left| {
            let mut parser = Parser { values_left, ..Parser::new("[1,{\"a\":[]}]", 0) };
            parser.value_of(&mut Vec::new(), &mut Vec::new()).err()
        };
        assert_eq!((wrong(5), wrong(4)), (None, Some(Wrong { what: TOO_MANY, at: 8 })));
    }

    #[test]
    fn texts_have_their_escapes_resolved() {
        check_text(r#""""#, "");
        check_text(r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t");
        check_text(r#""a\u00e4\u20AC\ud83d\ude00z""#, "aä€😀z");
        check_text(r#""\ud83d-\ud83d\u0041\ude00""#, "\u{fffd}-\u{fffd}A\u{fffd}");
        check_text("\"\\ä\u{1}ß\"", "ä\u{1}ß");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, what, at) in [
            ("", "it ends too early", 0),
            ("[1", "a comma or an end is missing", 2),
            ("[1,]", "a value is missing", 3),
            ("[1}", "a comma or an end is missing", 2),
            ("{1:2}", "a key is missing", 1),
            ("{\"a\" 2}", "a colon is missing", 5),
            ("{\"a\":2,}", "a key is missing", 7),
            ("\"abc", "a text does not end", 1),
            ("\"\\u12\"", "four digits are missing", 3),
            ("\"\\u12ä4\"", "four digits are missing", 3),
            ("nul", "a value is missing", 0),
        ] {
            let found = Parser::new(text, 0).value().err();
            assert_eq!(found, Some(Wrong { what, at }), "{text}");
        }
    }

    #[test]
    fn values_are_nested_as_deeply_as_they_like() {
        let deep = 1_000_000;
        let text = format!("{}1{}", "[{\"a\":".repeat(deep), "}]".repeat(deep));
        let mut parser = Parser::new(&text, 0);
        let value = parser.value().unwrap();
        assert!(parser.is_at_end() && value[0]["a"][0]["a"].is_array());
        assert_eq!(value.to_string(), "[{\"a\":[{\"a\":...}]}]");
    }
}
