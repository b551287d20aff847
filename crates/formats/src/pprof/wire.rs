//! The fields of a protobuf message, one after the other, without copying.

use prost::encoding::{WireType, decode_key, decode_varint};

use super::error::PprofError;
use super::inflate::GZIP_MAGIC;

/// One field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field<'b> {
    /// Where the field's key starts, in bytes from the start of the message.
    pub(super) offset: usize,
    /// The field's number.
    pub(super) number: u32,
    /// What it holds.
    pub(super) value: Value<'b>,
}

/// What a field holds, by its wire type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'b> {
    /// A number.
    Varint(u64),
    /// A message, a string or packed numbers.
    Bytes(&'b [u8]),
    /// A fixed-size number; pprof has none.
    Fixed,
}

/// The fields of `message`, in the order they stand; ends after the first error.
pub(super) fn fields(message: &[u8]) -> impl Iterator<Item = Result<Field<'_>, PprofError>> {
    let mut rest = message;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let offset = message.len() - rest.len();
        let field = next(&mut rest, offset);
        if field.is_err() {
            rest = &[];
        }
        Some(field)
    })
}

/// Whether what starts like that may be a message at all: what is not need not be read to its end.
///
/// # Errors
/// It starts with no key of a field.
pub(crate) fn check_start(start: &[u8]) -> Result<(), PprofError> {
    let wrong = |source| PprofError::Wire { offset: 0, source };
    if start.is_empty() || start.starts_with(&GZIP_MAGIC) {
        return Ok(());
    }
    match decode_key(&mut &*start).map_err(|error| wrong(Some(error)))? {
        (_, WireType::StartGroup | WireType::EndGroup) => Err(wrong(None)),
        _ => Ok(()),
    }
}

fn next<'b>(rest: &mut &'b [u8], offset: usize) -> Result<Field<'b>, PprofError> {
    let wrong = |source| PprofError::Wire { offset, source };
    let (number, wire_type) = decode_key(rest).map_err(|error| wrong(Some(error)))?;
    let take = |rest: &mut &'b [u8], len: u64| {
        let len = usize::try_from(len).map_err(|_| wrong(None))?;
        let (head, tail) = rest.split_at_checked(len).ok_or_else(|| wrong(None))?;
        *rest = tail;
        Ok(head)
    };
    let value = match wire_type {
        WireType::Varint => Value::Varint(decode_varint(rest).map_err(|e| wrong(Some(e)))?),
        WireType::LengthDelimited => {
            let len = decode_varint(rest).map_err(|error| wrong(Some(error)))?;
            Value::Bytes(take(rest, len)?)
        }
        WireType::ThirtyTwoBit => take(rest, 4).map(|_| Value::Fixed)?,
        WireType::SixtyFourBit => take(rest, 8).map(|_| Value::Fixed)?,
        WireType::StartGroup | WireType::EndGroup => return Err(wrong(None)),
    };
    Ok(Field { offset, number, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_carry_number_offset_and_value() {
        let message = [0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i', 0x1d, 1, 2, 3, 4];
        let found: Vec<Field> = fields(&message).collect::<Result<_, _>>().unwrap();
        let field = |offset, number, value| Field { offset, number, value };
        let expect = [
            field(0, 1, Value::Varint(150)),
            field(3, 2, Value::Bytes(b"hi")),
            field(7, 3, Value::Fixed),
        ];
        assert_eq!(found, expect);
    }

    #[test]
    fn a_length_beyond_the_end_is_an_error_and_the_last_item() {
        let mut found = fields(&[0x08, 1, 0x12, 0xff, 0x01, 0]);
        assert!(found.next().is_some_and(|field| field.is_ok()));
        let error = found.next().unwrap().unwrap_err();
        assert!(matches!(error, PprofError::Wire { offset: 2, .. }), "{error:?}");
        assert!(found.next().is_none());
    }
}
