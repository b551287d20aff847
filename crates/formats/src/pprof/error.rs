//! Why a pprof file cannot be read.

use std::io;

use flame_profile::ByteLen;

/// Why a pprof file cannot be read. Offsets count bytes of the uncompressed file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PprofError {
    /// The file is gzipped, and the compressed data is broken or cut off.
    #[error("the file's compressed data is damaged or truncated")]
    Gzip {
        /// What the decompressor says.
        #[source]
        source: io::Error,
    },
    /// The file is larger than flame is ready to hold in memory.
    #[error("the file is larger than {} bytes uncompressed", limit.0)]
    TooLarge {
        /// What flame reads at most.
        limit: ByteLen,
    },
    /// A table has more entries than flame is ready to hold in memory.
    #[error("the file has more than {limit} {table}")]
    TooMany {
        /// Which table, in the plural.
        table: &'static str,
        /// What flame reads at most.
        limit: usize,
    },
    /// The bytes are not a protobuf message, or one of another type.
    #[error("not a pprof file: byte {offset} is not part of a profile message")]
    Wire {
        /// Where the field starts that makes no sense.
        offset: usize,
        /// What the decoder says, where it says anything.
        #[source]
        source: Option<prost::DecodeError>,
    },
    /// The file does not say what its samples count.
    #[error("not a pprof file: no sample types")]
    NoSampleTypes,
    /// A sample does not have one value for each sample type.
    #[error("the sample at byte {offset} has {found} values, not {expected}")]
    ValueCount {
        /// Where the sample starts.
        offset: usize,
        /// How many values it has.
        found: usize,
        /// How many sample types there are.
        expected: usize,
    },
    /// An entry has the id 0 or the id of another one.
    #[error("the {table} id {id} is 0 or not unique")]
    BadId {
        /// Which table.
        table: &'static str,
        /// The id.
        id: u64,
    },
    /// Something refers to an entry that is not there.
    #[error("{table} {id} is referred to but not in the file")]
    Dangling {
        /// Which table.
        table: &'static str,
        /// The id or, for strings, the index.
        id: i128,
    },
}
