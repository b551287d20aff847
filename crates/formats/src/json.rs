//! What the JSON formats have in common: parsing, numbers that may be texts, times with fractions.

use serde_json::Value;

use crate::ReadError;
use crate::input::Input;

/// No JSON file is read beyond that: the parsed values take several times as much memory.
const MAX_JSON: u64 = 1 << 30;

/// The whole input as JSON.
pub(crate) fn parse(input: &mut Input<'_>, format: &'static str) -> Result<Value, ReadError> {
    let bytes = input.bytes(MAX_JSON)?;
    parse_bytes(&bytes, format)
}

pub(crate) fn parse_bytes(bytes: &[u8], format: &'static str) -> Result<Value, ReadError> {
    serde_json::from_slice(bytes).map_err(|error| ReadError::Broken {
        format,
        what: format!("its JSON is truncated or invalid: {error}"),
    })
}

/// All bytes of an input, for formats that look at them before they are parsed.
pub(crate) fn bytes(input: &mut Input<'_>) -> Result<Vec<u8>, ReadError> {
    input.bytes(MAX_JSON)
}

/// A text, or the empty one.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A number that may stand in quotation marks.
pub(crate) fn number(value: &Value) -> Option<f64> {
    let found = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    found.filter(|number| number.is_finite())
}

/// One more than the largest whole number with a sign that 64 bits hold.
const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;

/// The whole part of a number that may stand in quotation marks; none of one that 64 bits with a sign do
/// not hold, since the nearest that they do may be another's.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
pub(crate) fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.parse().ok(),
        _ => value.as_i64().or_else(|| {
            let fits = |number: &f64| (-TOO_LARGE..TOO_LARGE).contains(number);
            number(value).filter(fits).map(|number| number as i64)
        }),
    }
}

/// How often, or how much. What is too large becomes the largest number, with which no sum is right.
pub(crate) fn count(value: &Value) -> Option<u64> {
    match integer(value) {
        Some(number) => u64::try_from(number).ok(),
        None => number(value).filter(|number| *number >= 0.0).map(|number| whole(number, 1.0)),
    }
}

/// An index into a table.
pub(crate) fn index(value: &Value) -> Option<usize> {
    usize::try_from(value.as_u64()?).ok()
}

/// This many units of `scale` as a whole number; negative ones are none, and what is too large stays the
/// largest number.
pub(crate) fn whole(number: f64, scale: f64) -> u64 {
    flame_profile::whole((number * scale).round())
}
