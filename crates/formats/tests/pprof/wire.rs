//! Just enough protobuf to take files apart and to build them, independent of the crate's own.

use std::collections::BTreeMap;
use std::io::Read;

/// A decoded message: the values of each field by its number, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    fields: BTreeMap<u64, Vec<Value>>,
}

#[derive(Clone, Debug)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Message {
    pub(crate) fn decode(mut bytes: &[u8]) -> Message {
        let mut message = Message::default();
        while !bytes.is_empty() {
            let key = take_varint(&mut bytes);
            let value = match key & 7 {
                0 => Value::Number(take_varint(&mut bytes)),
                2 => {
                    let len = take_varint(&mut bytes) as usize;
                    let (head, tail) = bytes.split_at(len);
                    bytes = tail;
                    Value::Bytes(head.to_vec())
                }
                other => panic!("pprof has no fields of wire type {other}"),
            };
            message.fields.entry(key >> 3).or_default().push(value);
        }
        message
    }

    /// The last value of a number field; 0 where there is none.
    pub(crate) fn number(&self, field: u64) -> u64 {
        self.numbers(field).last().copied().unwrap_or(0)
    }

    /// The values of a repeated number field, packed or not.
    pub(crate) fn numbers(&self, field: u64) -> Vec<u64> {
        let mut numbers = Vec::new();
        for value in self.fields.get(&field).into_iter().flatten() {
            match value {
                Value::Number(number) => numbers.push(*number),
                Value::Bytes(bytes) => {
                    let mut bytes = bytes.as_slice();
                    while !bytes.is_empty() {
                        numbers.push(take_varint(&mut bytes));
                    }
                }
            }
        }
        numbers
    }

    pub(crate) fn messages(&self, field: u64) -> Vec<Message> {
        self.bytes(field).iter().map(|bytes| Message::decode(bytes)).collect()
    }

    pub(crate) fn texts(&self, field: u64) -> Vec<String> {
        let texts = self.bytes(field).into_iter().map(String::from_utf8);
        texts.collect::<Result<_, _>>().expect("strings are UTF-8")
    }

    pub(crate) fn field_numbers(&self) -> Vec<u64> {
        self.fields.keys().copied().collect()
    }

    fn bytes(&self, field: u64) -> Vec<Vec<u8>> {
        let bytes = |value: &Value| match value {
            Value::Bytes(bytes) => bytes.clone(),
            Value::Number(_) => panic!("field {field} is a number"),
        };
        self.fields.get(&field).into_iter().flatten().map(bytes).collect()
    }
}

fn take_varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("varints end");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}

pub(crate) fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain).expect("a gzip stream");
    plain
}

/// A message under construction; fields stand in the order they are added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Build(pub(crate) Vec<u8>);

impl Build {
    pub(crate) fn number(mut self, field: u64, number: i64) -> Build {
        self.varint(field << 3);
        self.varint(number.cast_unsigned());
        self
    }

    pub(crate) fn bytes(mut self, field: u64, bytes: &[u8]) -> Build {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn message(self, field: u64, message: Build) -> Build {
        self.bytes(field, &message.0)
    }

    pub(crate) fn numbers(self, field: u64, numbers: &[i64]) -> Build {
        let packed = numbers.iter().fold(Build::default(), |mut packed, number| {
            packed.varint(number.cast_unsigned());
            packed
        });
        self.bytes(field, &packed.0)
    }

    pub(crate) fn texts(self, field: u64, texts: &[&str]) -> Build {
        texts.iter().fold(self, |build, text| build.bytes(field, text.as_bytes()))
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}
