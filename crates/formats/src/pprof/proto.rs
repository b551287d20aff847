//! The messages of `profile.proto`, as prost structs.
//!
//! The top-level message has no struct: it is read and written field by field, so that neither
//! side ever holds all samples as messages. [`field`] has its numbers. All strings are indexes
//! into the string table. Fields that flame neither reads nor writes are left out.
//!
//! The fields numbered 1001, far above pprof's own, are not in `profile.proto`: other tools skip
//! them.

/// Field numbers of the top-level message.
pub(super) mod field {
    /// Repeated [`super::ValueType`].
    pub(in crate::pprof) const SAMPLE_TYPE: u32 = 1;
    /// Repeated [`super::Sample`].
    pub(in crate::pprof) const SAMPLE: u32 = 2;
    /// Repeated [`super::Mapping`].
    pub(in crate::pprof) const MAPPING: u32 = 3;
    /// Repeated [`super::Location`].
    pub(in crate::pprof) const LOCATION: u32 = 4;
    /// Repeated [`super::Function`].
    pub(in crate::pprof) const FUNCTION: u32 = 5;
    /// Repeated string; the first is empty.
    pub(in crate::pprof) const STRING: u32 = 6;
    /// Start, in nanoseconds since 1970-01-01 UTC.
    pub(in crate::pprof) const TIME_NANOS: u32 = 9;
    /// Duration in nanoseconds.
    pub(in crate::pprof) const DURATION_NANOS: u32 = 10;
    /// [`super::ValueType`] of the period.
    pub(in crate::pprof) const PERIOD_TYPE: u32 = 11;
    /// Events between two samples.
    pub(in crate::pprof) const PERIOD: u32 = 12;
    /// Repeated string index.
    pub(in crate::pprof) const COMMENT: u32 = 13;
    /// String index of the name of the value type to show first.
    pub(in crate::pprof) const DEFAULT_SAMPLE_TYPE: u32 = 14;
    /// When samples were taken, as [`flame_profile::Timeline`] keeps it; rows are samples of the file, in
    /// their order.
    pub(in crate::pprof) const TIMELINE: u32 = 1001;
}

/// What a value means.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(super) name: i64,
    #[prost(int64, tag = "2")]
    pub(super) unit: i64,
}

/// One stack with its values, one for each sample type.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Sample {
    /// Innermost first.
    #[prost(uint64, repeated, tag = "1")]
    pub(super) location: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(super) value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(super) label: Vec<Label>,
}

/// A key with a text or a number.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Label {
    #[prost(int64, tag = "1")]
    pub(super) key: i64,
    /// The text; 0 where the label is a number.
    #[prost(int64, tag = "2")]
    pub(super) text: i64,
    #[prost(int64, tag = "3")]
    pub(super) number: i64,
}

/// An image and where it was mapped.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Mapping {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(uint64, tag = "2")]
    pub(super) start: u64,
    #[prost(uint64, tag = "3")]
    pub(super) limit: u64,
    #[prost(uint64, tag = "4")]
    pub(super) offset: u64,
    #[prost(int64, tag = "5")]
    pub(super) file: i64,
    /// In hexadecimal digits.
    #[prost(int64, tag = "6")]
    pub(super) build_id: i64,
    #[prost(bool, tag = "7")]
    pub(super) has_functions: bool,
    #[prost(bool, tag = "8")]
    pub(super) has_filenames: bool,
    #[prost(bool, tag = "9")]
    pub(super) has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    pub(super) has_inline_frames: bool,
    /// Present in what flame writes for a real image: addresses are image addresses, and this is
    /// the range that the image had.
    #[prost(message, optional, tag = "1001")]
    pub(super) range: Option<Range>,
}

/// Where an image was really mapped.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Range {
    #[prost(uint64, tag = "1")]
    pub(super) start: u64,
    /// Exclusive.
    #[prost(uint64, tag = "2")]
    pub(super) end: u64,
    #[prost(uint64, tag = "3")]
    pub(super) offset: u64,
}

/// An address of code.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Location {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    /// 0 = none.
    #[prost(uint64, tag = "2")]
    pub(super) mapping: u64,
    #[prost(uint64, tag = "3")]
    pub(super) address: u64,
    /// Innermost first.
    #[prost(message, repeated, tag = "4")]
    pub(super) line: Vec<Line>,
    /// The location stands in for an empty stack: pprof's reports leave out samples without one.
    #[prost(bool, tag = "1001")]
    pub(super) is_empty_stack: bool,
}

/// A function at a location, with the line in it.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Line {
    #[prost(uint64, tag = "1")]
    pub(super) function: u64,
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
}

/// A function's names.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Function {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(int64, tag = "2")]
    pub(super) name: i64,
    #[prost(int64, tag = "3")]
    pub(super) system_name: i64,
    #[prost(int64, tag = "4")]
    pub(super) file: i64,
    /// The kind of frame, as [`super::kind::code`] has it; 0 where another tool wrote the file.
    #[prost(uint32, tag = "1001")]
    pub(super) kind: u32,
}
