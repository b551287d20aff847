//! Which layout a file has, told from its headers and from what its first records look like.
//!
//! Only files of U-Boot 2023.04 and later have a version in their headers, and lists of functions
//! not even there. So each layout is tried, and the one is taken in which the least looks wrong:
//! functions and return addresses are multiples of a site, lists ascend, old buffers start with the
//! address of the text, and the last chunk ends where the file does.

use std::cmp::Reverse;
use std::io::{self, Read, Seek, SeekFrom};

use crate::error::UbootError;
use crate::layout::{ChunkKind, HeaderFormat, Layout};
use crate::record::{RECORD_LEN, Record, RecordKind};
use crate::trace::{Chunk, Walk};

/// How many chunks, and records of each, are looked at.
const LOOKED_AT: usize = 64;

/// How well a file fits a layout.
struct Fit {
    odd: usize,
    seen: usize,
    ends_well: bool,
}

/// The layout of a file of this many bytes.
pub(crate) fn detect<R: Read + Seek>(input: &mut R, len: u64) -> Result<Layout, UbootError> {
    if len == 0 {
        return Err(UbootError::NotATrace("it is empty".to_owned()));
    }
    let mut start = Vec::new();
    input.seek(SeekFrom::Start(0))?;
    input.by_ref().take(32).read_to_end(&mut start)?;
    let mut best: Option<((Reverse<usize>, bool), Layout)> = None;
    for layout in Layout::ALL {
        let has_header = start.len() >= layout.header_len();
        let header = has_header.then(|| layout.header(&start)).flatten();
        let Some(header) = header else { continue };
        if header.is_sound {
            return Ok(layout);
        }
        if layout.header == HeaderFormat::Versioned && header.kind == ChunkKind::Calls {
            continue;
        }
        let fit = fit(input, len, layout)?;
        let score = (Reverse(fit.odd), fit.ends_well);
        let is_odd = fit.seen == 0 || fit.odd * 2 >= fit.seen;
        if !is_odd && best.as_ref().is_none_or(|(best, _)| score > *best) {
            best = Some((score, layout));
        }
    }
    best.map(|(_, layout)| layout).ok_or_else(|| UbootError::NotATrace(why_not(&start)))
}

/// What is known about bytes that are not a trace.
fn why_not(start: &[u8]) -> String {
    let word =
        |at: usize| start.get(at..at + 4).map(|bytes| [bytes[0], bytes[1], bytes[2], bytes[3]]);
    if let (Some([1, 0, 0, 0] | [0, 0, 0, 1]), Some(version)) = (word(0), word(4)) {
        let version = u32::from_le_bytes(version).min(u32::from_be_bytes(version));
        if start.len() == 32 && (2..100).contains(&version) {
            return format!("it has version {version}; flame knows version 1");
        }
        if start.len() < 32 && version == 1 {
            return format!("it ends within its first header, after {} bytes", start.len());
        }
    }
    if start.iter().all(|byte| *byte == 0) {
        return "it starts with zeros only".to_owned();
    }
    "it does not start with a chunk of calls or functions".to_owned()
}

fn fit<R: Read + Seek>(input: &mut R, len: u64, layout: Layout) -> io::Result<Fit> {
    let mut fit = Fit { odd: 0, seen: 0, ends_well: false };
    let mut walk = Walk { input, len, layout, at: 0 };
    let mut is_cut = false;
    for _ in 0..LOOKED_AT {
        let Some(chunk) = walk.next_chunk()? else {
            let rest = len - walk.at;
            fit.ends_well = !is_cut && rest < layout.header_len() as u64;
            break;
        };
        is_cut = chunk.whole < chunk.declared;
        look_at(&mut *walk.input, layout, chunk, &mut fit)?;
    }
    Ok(fit)
}

/// Counts what looks wrong in the first records of a chunk.
fn look_at<R: Read + Seek>(
    input: &mut R,
    layout: Layout,
    chunk: Chunk,
    fit: &mut Fit,
) -> io::Result<()> {
    let count = usize::try_from(chunk.whole).unwrap_or(usize::MAX).min(LOOKED_AT);
    let mut bytes = vec![0; count * chunk.kind.record_len() as usize];
    input.seek(SeekFrom::Start(chunk.offset))?;
    input.read_exact(&mut bytes)?;
    layout.order.to_little_endian(&mut bytes);
    let is_old = layout.header != HeaderFormat::Versioned;
    let rest = layout.site_len() - 1;
    fit.seen += count;
    if chunk.kind == ChunkKind::Calls {
        let records = bytes.as_chunks::<RECORD_LEN>().0.iter();
        for (index, record) in records.map(Record::parse).enumerate() {
            let is_base = record.kind == RecordKind::TextBase && record.caller == 0;
            let is_call = matches!(record.kind, RecordKind::Entry | RecordKind::Exit);
            let fits =
                (record.function | record.caller) & rest == 0 && (is_call || is_old && is_base);
            fit.odd += usize::from(!fits || (is_old && index == 0 && !is_base));
        }
    } else {
        let mut last = None;
        for [a, b, c, d, e, f, g, h] in bytes.as_chunks::<8>().0 {
            let function = u32::from_le_bytes([*a, *b, *c, *d]);
            let calls = u32::from_le_bytes([*e, *f, *g, *h]);
            let ascends = last.is_none_or(|last| last < function);
            fit.odd += usize::from(function & rest != 0 || calls == 0 || !ascends);
            last = Some(function);
        }
    }
    Ok(())
}
