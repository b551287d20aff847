//! The first bytes of a file: in which byte order it is, and where its parts are.
//!
//! Source: tools/perf/Documentation/perf.data-file-format.txt of Linux.

use flame_events::{Endianness, Fields};

use crate::PerfDataError;
use crate::bytes::{ReadAt, read_vec};

/// How a file starts, by the byte order of the machine that wrote it.
const MAGIC: [(&[u8; 8], Endianness); 2] =
    [(b"PERFILE2", Endianness::LittleEndian), (b"2ELIFREP", Endianness::BigEndian)];

/// How long the header of a stream is, and that of a file at least.
const STREAM_HEADER: u64 = 16;
const FILE_HEADER: u64 = 104;

/// The most that is read of one part of a header, in bytes: names and build IDs of 100,000 images.
const MAX_PART: u64 = 32 << 20;

/// A part of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) start: u64,
    pub(crate) len: u64,
}

impl Section {
    fn parse(fields: &mut Fields<'_>) -> Option<Section> {
        Some(Section { start: fields.u64()?, len: fields.u64()? })
    }

    /// Behind its last byte.
    pub(crate) fn end(self) -> u64 {
        self.start.saturating_add(self.len)
    }

    /// Whether it is longer than what is read of it.
    pub(crate) fn is_too_long(self) -> bool {
        self.len > MAX_PART
    }

    /// Its bytes, as far as there are so many.
    pub(crate) fn read(self, input: &mut dyn ReadAt) -> Result<Vec<u8>, PerfDataError> {
        Ok(read_vec(input, self.start, self.len.min(MAX_PART))?)
    }
}

/// What a file says of itself first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) endian: Endianness,
    /// `None` of what was written to a pipe: everything is a record then.
    pub(crate) file: Option<FileHeader>,
    /// Where records start.
    pub(crate) records: u64,
}

/// Where the parts of a file are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    /// How long the attributes of one event are, with where its numbers are.
    pub(crate) attribute_len: usize,
    pub(crate) attributes: Section,
    pub(crate) data: Section,
    /// The numbers of the parts that stand behind the data, ascending.
    pub(crate) features: Vec<u32>,
}

/// Whether bytes are the start of a perf.data file, and whether that was written to a pipe.
///
/// ```
/// assert_eq!(flame_perf_data::recognise(b"PERFILE2\x10\0\0\0\0\0\0\0@"), Some(true));
/// assert_eq!(flame_perf_data::recognise(b"PERFILE2\x68\0\0\0\0\0\0\0"), Some(false));
/// assert_eq!(flame_perf_data::recognise(b"main;read 7"), None);
/// ```
pub fn recognise(start: &[u8]) -> Option<bool> {
    let (magic, rest) = start.split_first_chunk::<8>()?;
    let (_, endian) = MAGIC.iter().find(|(known, _)| *known == magic)?;
    // A file of nothing but its first bytes is one, too.
    Some(Fields::new(rest, *endian).u64() == Some(STREAM_HEADER))
}

impl Header {
    pub(crate) fn read(input: &mut dyn ReadAt) -> Result<Header, PerfDataError> {
        let cut = || PerfDataError::Broken("it ends within its header");
        let start = read_vec(input, 0, STREAM_HEADER)?;
        let (magic, rest) = start.split_first_chunk::<8>().ok_or_else(cut)?;
        let known = MAGIC.iter().find(|(known, _)| *known == magic);
        let endian = known.ok_or(PerfDataError::Broken("it starts like none"))?.1;
        let len = Fields::new(rest, endian).u64().ok_or_else(cut)?;
        if len == STREAM_HEADER {
            return Ok(Header { endian, file: None, records: STREAM_HEADER });
        }
        if len < FILE_HEADER {
            return Err(PerfDataError::Broken("its header is shorter than any version's"));
        }
        let rest = read_vec(input, STREAM_HEADER, FILE_HEADER - STREAM_HEADER)?;
        let file = FileHeader::parse(Fields::new(&rest, endian)).ok_or_else(cut)?;
        Ok(Header { endian, records: file.data.start, file: Some(file) })
    }
}

impl FileHeader {
    fn parse(mut fields: Fields<'_>) -> Option<FileHeader> {
        let attribute_len = usize::try_from(fields.u64()?).ok()?;
        let attributes = Section::parse(&mut fields)?;
        let data = Section::parse(&mut fields)?;
        // Names of tracepoints, which no version writes any more.
        Section::parse(&mut fields)?;
        let mut features = Vec::new();
        for word in 0..4 {
            let bits = fields.u64()?;
            features.extend((0..64).filter(|bit| bits >> bit & 1 == 1).map(|bit| 64 * word + bit));
        }
        Some(FileHeader { attribute_len, attributes, data, features })
    }

    /// The parts behind the data, each with its number; none of a file whose recorder was killed.
    pub(crate) fn feature_sections(
        &self,
        endian: Endianness,
        input: &mut dyn ReadAt,
    ) -> Result<Vec<(u32, Section)>, PerfDataError> {
        if self.data.len == 0 {
            return Ok(Vec::new());
        }
        let table = Section {
            start: self.data.start.saturating_add(self.data.len),
            len: 16 * self.features.len() as u64,
        };
        let table = table.read(input)?;
        let mut fields = Fields::new(&table, endian);
        let mut sections = Vec::new();
        for number in &self.features {
            // Of a table that is cut, the parts are missing, too.
            let missing = Section { start: u64::MAX, len: 1 };
            sections.push((*number, Section::parse(&mut fields).unwrap_or(missing)));
        }
        Ok(sections)
    }

    /// Where something stands behind the file, which has these parts behind its data; nothing is told of one
    /// whose recorder was killed.
    pub(crate) fn behind(
        &self,
        sections: &[(u32, Section)],
        input: &mut dyn ReadAt,
    ) -> Result<Option<u64>, PerfDataError> {
        let table = 16 * self.features.len() as u64;
        let data_end = self.data.end().saturating_add(table).max(self.attributes.end());
        let end = sections.iter().map(|(_, section)| section.end()).fold(data_end, u64::max);
        // The system takes no place beyond that.
        let is_place = self.data.len > 0 && i64::try_from(end).is_ok();
        Ok((is_place && input.read_at(end, &mut [0])? > 0).then_some(end))
    }
}
