//! What the JSON formats have in common: values, numbers that may be texts, times with fractions.
//!
//! Values borrow from the text, and numbers stay as they are written, since most are never looked at.

use std::fmt;
use std::ops::Index;

use crate::ReadError;
use crate::input::Input;
pub(crate) use document::Document;
use parse::{Parser, Wrong};

mod document;
mod parse;

/// No JSON file is read beyond that: the parsed values take several times as much memory.
const MAX_JSON: u64 = 1 << 30;

/// A value. What it does not have, by key or position, is null.
#[derive(Debug)]
pub(crate) enum Value<'t> {
    Null,
    Bool(bool),
    /// As it is written.
    Number(&'t str),
    Text(&'t str),
    /// A text that is written otherwise.
    Unescaped(Box<str>),
    Array(Box<[Value<'t>]>),
    /// Keys and values in turn.
    Object(Box<[Value<'t>]>),
    /// The text of an array that is left unread.
    List(&'t str),
}

pub(crate) static NULL: Value<'static> = Value::Null;

impl<'t> Value<'t> {
    /// The value of a key; the last one of several.
    pub(crate) fn get(&self, key: &str) -> Option<&Value<'t>> {
        self.entries().rev().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    /// The keys of an object with their values.
    pub(crate) fn entries(&self) -> impl DoubleEndedIterator<Item = (&str, &Value<'t>)> {
        let parts = if let Value::Object(parts) = self { &**parts } else { &[] };
        parts.chunks_exact(2).map(|pair| (text(&pair[0]), &pair[1]))
    }

    pub(crate) fn as_array(&self) -> Option<&[Value<'t>]> {
        if let Value::Array(items) = self { Some(items) } else { None }
    }

    /// The values of an array; none of anything else.
    pub(crate) fn items(&self) -> &[Value<'t>] {
        self.as_array().unwrap_or_default()
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            Value::Unescaped(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number that is written as such.
    pub(crate) fn as_u64(&self) -> Option<u64> {
        if let Value::Number(digits) = self { digits.parse().ok() } else { None }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    pub(crate) fn is_array(&self) -> bool {
        matches!(self, Value::Array(_) | Value::List(_))
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self, Value::Object(_))
    }

    /// What it is made of, taken out of it.
    fn take_parts(&mut self) -> Vec<Value<'t>> {
        match self {
            Value::Array(parts) | Value::Object(parts) => std::mem::take(parts).into_vec(),
            _ => Vec::new(),
        }
    }
}

/// In a loop, since values may be nested deeper than a stack is.
impl Drop for Value<'_> {
    fn drop(&mut self) {
        let mut left = self.take_parts();
        while let Some(mut value) = left.pop() {
            left.append(&mut value.take_parts());
        }
    }
}

impl<'t> Index<&str> for Value<'t> {
    type Output = Value<'t>;

    fn index(&self, key: &str) -> &Value<'t> {
        self.get(key).unwrap_or(&NULL)
    }
}

impl<'t> Index<usize> for Value<'t> {
    type Output = Value<'t>;

    fn index(&self, at: usize) -> &Value<'t> {
        self.items().get(at).unwrap_or(&NULL)
    }
}

/// As JSON, without what is nested deeply.
impl fmt::Display for Value<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self, 0, out)
    }
}

fn write(value: &Value<'_>, depth: usize, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    const DEEP: usize = 4;
    let comma = |at| if at > 0 { "," } else { "" };
    match value {
        Value::Null => out.write_str("null"),
        Value::Bool(is) => write!(out, "{is}"),
        Value::Number(digits) => out.write_str(digits),
        Value::List(_) => out.write_str("[...]"),
        Value::Text(_) | Value::Unescaped(_) => write!(out, "{:?}", text(value)),
        Value::Array(_) | Value::Object(_) if depth == DEEP => out.write_str("..."),
        Value::Array(items) => {
            out.write_str("[")?;
            for (at, item) in items.iter().enumerate() {
                out.write_str(comma(at))?;
                write(item, depth + 1, out)?;
            }
            out.write_str("]")
        }
        Value::Object(_) => {
            out.write_str("{")?;
            for (at, (key, value)) in value.entries().enumerate() {
                write!(out, "{}{key:?}:", comma(at))?;
                write(value, depth + 1, out)?;
            }
            out.write_str("}")
        }
    }
}

/// The whole input as text; bytes that are not UTF-8 are signs for that.
pub(crate) fn read(input: &mut Input<'_>) -> Result<String, ReadError> {
    let text = String::from_utf8(input.bytes(MAX_JSON)?);
    Ok(text.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// A text as JSON.
pub(crate) fn parse<'t>(text: &'t str, format: &'static str) -> Result<Value<'t>, ReadError> {
    let mut parser = Parser::new(text, 0);
    let what = match parser.value() {
        Ok(value) if parser.is_at_end() => return Ok(value),
        Ok(_) => format!("something stands behind it at byte {}", parser.position()),
        Err(Wrong { what: parse::TOO_MANY, .. }) => {
            let what = format!("{}, which is more than flame holds in memory", parse::TOO_MANY);
            return Err(ReadError::Broken { format, what });
        }
        Err(wrong) => format!("{} at byte {}", wrong.what, wrong.at),
    };
    let what = format!("its JSON is truncated or invalid: {what}");
    Err(ReadError::Broken { format, what })
}

/// A text, or the empty one.
pub(crate) fn text<'v>(value: &'v Value<'_>) -> &'v str {
    value.as_str().unwrap_or_default()
}

/// A number that may stand in quotation marks.
pub(crate) fn number(value: &Value<'_>) -> Option<f64> {
    let digits = if let Value::Number(digits) = value { Some(*digits) } else { value.as_str() };
    digits?.parse().ok().filter(|number: &f64| number.is_finite())
}

/// One more than the largest whole number with a sign that 64 bits hold.
const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;

/// The whole part of a number that may stand in quotation marks; none of one that 64 bits with a sign do
/// not hold, since the nearest that they do may be another's.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
pub(crate) fn integer(value: &Value<'_>) -> Option<i64> {
    let Value::Number(digits) = value else { return value.as_str()?.parse().ok() };
    digits.parse().ok().or_else(|| {
        let fits = |number: &f64| (-TOO_LARGE..TOO_LARGE).contains(number);
        number(value).filter(fits).map(|number| number as i64)
    })
}

/// How often, or how much. What is too large becomes the largest number, with which no sum is right.
pub(crate) fn count(value: &Value<'_>) -> Option<u64> {
    match integer(value) {
        Some(number) => u64::try_from(number).ok(),
        None => number(value).filter(|number| *number >= 0.0).map(|number| whole(number, 1.0)),
    }
}

/// An index into a table.
pub(crate) fn index(value: &Value<'_>) -> Option<usize> {
    usize::try_from(value.as_u64()?).ok()
}

/// This many units of `scale` as a whole number; negative ones are none, and what is too large stays the
/// largest number.
pub(crate) fn whole(number: f64, scale: f64) -> u64 {
    flame_profile::whole((number * scale).round())
}

#[cfg(test)]
mod tests {
    use flame_profile::{SiblingOrder, TreeOptions, ValueType};

    use super::*;
    use crate::{InputContent, ReadOptions, Source, read_input};

    /// The depth of the call tree in a file.
    fn depth(file: String) -> usize {
        let source = Source::of_bytes(file.into_bytes()).unwrap();
        let read = read_input(source, &ReadOptions::default()).unwrap();
        assert_eq!((read.skipped.count(), &*read.notes), (0, &[][..]));
        let InputContent::Stacks(stacks) = &read.content else { panic!("stacks are expected") };
        let builder = stacks.to_builder(&TreeOptions::default());
        let tree = builder.finish(ValueType::samples(), SiblingOrder::Name);
        let mut folded = Vec::new();
        flame_profile::write_folded(&tree, flame_profile::Annotations::Write, &mut folded).unwrap();
        let lines = folded.split(|byte| *byte == b'\n');
        lines.map(|line| line.iter().filter(|byte| **byte == b';').count()).max().unwrap() + 1
    }

    #[test]
    fn trees_are_read_however_deep_they_are() {
        let call = r#""callFrame":{"functionName":"f"},"selfSize":8,"children":["#;
        let heap = format!("{}{}", format!("{{{call}").repeat(200), "]}".repeat(200));
        assert_eq!(depth(format!("{{\"head\":{heap}}}")), 200);
        let centres = r#"{"rts_arguments":[],"cost_centres":[{"id":1,"module":"M","label":"f"}],"#;
        let node = r#"{"id":1,"ticks":1,"alloc":8,"children":["#;
        let tree = format!("{}{}", node.repeat(200), "]}".repeat(200));
        assert_eq!(depth(format!("{centres}\"profile\":{tree}}}")), 200);
        let arguments = format!("{}{}", "{\"a\":[".repeat(200), "]}".repeat(200));
        let span = r#"{"name":"f","ph":"X","ts":1,"dur":5,"pid":1,"tid":2,"args":"#;
        assert_eq!(depth(format!("{{\"traceEvents\":[{span}{arguments}}}]}}")), 2);
    }

    #[test]
    fn the_last_value_of_a_key_counts_and_what_is_missing_is_null() {
        let value =
            parse(r#"{"a":1,"b":"12.5","\u0061":-3,"c":[1e3,9223372036854775808]}"#, "").unwrap();
        assert_eq!((integer(&value["a"]), number(&value["b"])), (Some(-3), Some(12.5)));
        assert_eq!((integer(&value["c"][0]), value["c"][0].as_u64()), (Some(1000), None));
        assert_eq!((integer(&value["c"][1]), count(&value["c"][1])), (None, Some(1 << 63)));
        assert!(value["d"][5]["e"].is_null() && value["c"][2].is_null());
    }
}
