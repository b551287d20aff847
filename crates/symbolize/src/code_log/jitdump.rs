//! Jitdumps: records of code that was loaded, moved, and which source lines it came from.
//!
//! The code and its unwinding tables are passed over, and read when they are asked for.
//!
//! Sources: `tools/perf/Documentation/jitdump-specification.txt` of Linux;
//! `src/diagnostics/perf-jit.cc` of V8 for what it does otherwise.

use std::io;
use std::path::Path;

use flame_profile::{FileOffset, Nanos, ProcessAddress};

use super::source::{Source, WINDOW_LEN, Window};
use super::{CodeEntry, CodeLogError, CodeUnwinding, ENTRY_WORK, EntryKind, MAX_WORK, Scanned};
use crate::demangle::MAX_NAME_LEN;

const MAGIC: &[u8] = b"DTiJ";
/// The magic as a machine of the other byte order writes it.
const FOREIGN_MAGIC: &[u8] = b"JiTD";
const VERSION: u32 = 1;
/// The header up to its flags; a later version may have more.
const HEADER_LEN: usize = 40;
/// The times are those of the CPU's counter, not of CLOCK_MONOTONIC.
const ARCH_TIMESTAMP: u64 = 1;

/// The ELF number of the machine that flame was built for: EM_AARCH64 or EM_X86_64.
const NATIVE_MACHINE: u32 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

/// What CPython writes: nothing (EM_NONE). All else of such a dump is as it should be.
const NO_MACHINE: u32 = 0;

/// What V8 writes where the format has padding. It gives source lines for code behind an ELF header
/// (0x40 bytes), as which `perf inject` writes it down.
const V8_PADDING: u32 = 0xdead_beef;
const V8_LINES_SHIFT: u64 = 0x40;

const CODE_LOAD: u32 = 0;
const CODE_MOVE: u32 = 1;
const CODE_DEBUG_INFO: u32 = 2;
const CODE_UNWINDING: u32 = 4;

/// Number, length and time of a record.
const PREFIX_LEN: usize = 16;
/// Where the name of loaded code starts in its record.
const LOAD_NAME_AT: usize = PREFIX_LEN + 40;
/// Where the source lines start in theirs.
const LINES_AT: usize = PREFIX_LEN + 16;

/// Where unwinding tables start in theirs, behind three lengths: of all, of the sorted table at their
/// end, and of what a runtime has mapped of it.
const TABLES_AT: usize = PREFIX_LEN + 24;

/// The most bytes of a piece of code and of its tables that are read: what compilers make in one
/// piece has some kilobytes.
const MAX_CODE_LEN: usize = 1 << 20;
const MAX_TABLES_LEN: usize = 64 << 10;
/// A description without any instruction, and what it refers to.
const MIN_TABLES_LEN: usize = 24;

/// The tables count as standing behind the code, at the next multiple of this.
const TABLES_ALIGNMENT: u64 = 8;

/// The most bytes of source lines that are read for one piece of code.
const MAX_LINES_LEN: usize = 4 << 20;

/// What the header says.
#[derive(Debug)]
pub(super) struct JitDump {
    header_len: u64,
    has_times: bool,
    lines_shift: u64,
}

/// What was said of the code that is loaded next.
#[derive(Debug, Default)]
struct Ahead {
    /// Where its lines stand, and its address.
    lines: (u64, u64),
    /// Where its tables stand.
    unwinding: u64,
    /// Where the first of these records begins, if nothing else came behind them.
    since: Option<u64>,
}

/// Where a piece of code came from, from an address on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceLine {
    pub(super) address: u64,
    pub(super) line: u32,
    pub(super) file: String,
}

impl JitDump {
    pub(super) fn parse_header(source: &Source, path: &Path) -> Result<JitDump, CodeLogError> {
        let failed = |source| CodeLogError::Io { path: path.to_owned(), source };
        let unsupported = |why| CodeLogError::Unsupported { path: path.to_owned(), why };
        let header = source.bytes(0, HEADER_LEN).map_err(failed)?;
        if header.starts_with(FOREIGN_MAGIC) {
            return Err(unsupported("it was written on a machine of another byte order"));
        }
        if !header.starts_with(MAGIC) {
            return Err(unsupported("it does not start like one"));
        }
        if header.len() < HEADER_LEN {
            return Err(unsupported("its header is cut short"));
        }
        if u32_at(&header, 4) != Some(VERSION) {
            return Err(unsupported("its version is not 1"));
        }
        let header_len = u64::from(u32_at(&header, 8).unwrap_or(0));
        if header_len < HEADER_LEN as u64 {
            return Err(unsupported("its header is too short"));
        }
        if !u32_at(&header, 12)
            .is_some_and(|machine| [NO_MACHINE, NATIVE_MACHINE].contains(&machine))
        {
            return Err(unsupported("it contains code for another kind of machine"));
        }
        let is_v8 = u32_at(&header, 16) == Some(V8_PADDING);
        Ok(JitDump {
            header_len,
            has_times: u64_at(&header, 32).is_some_and(|flags| flags & ARCH_TIMESTAMP == 0),
            lines_shift: if is_v8 { V8_LINES_SHIFT } else { 0 },
        })
    }

    /// The entries of the records that begin in a part of the dump and are whole. A record that
    /// cannot be one ends the scan for good, because nothing says where the next one begins.
    pub(super) fn scan(
        &self,
        source: &Source,
        from: u64,
        until: u64,
        each: &mut dyn FnMut(CodeEntry),
    ) -> io::Result<Scanned> {
        let file_len = source.state()?.0.0;
        let mut window = Window::new(source);
        let mut position = from.max(self.header_len);
        let (mut skipped, mut work) = (0, 0_u64);
        let mut ahead = Ahead::default();
        while position < until && work < MAX_WORK {
            let Some(prefix) = window.get(position, PREFIX_LEN)? else { break };
            let (id, len) = (u32_at(prefix, 0), u64::from(u32_at(prefix, 4).unwrap_or(0)));
            let time = u64_at(prefix, 8).filter(|_| self.has_times).map(Nanos);
            if len < PREFIX_LEN as u64 {
                skipped += 1;
                position = u64::MAX;
                break;
            }
            if position.saturating_add(len) > file_len {
                break;
            }
            let fixed = usize::try_from(len).unwrap_or(usize::MAX).min(LOAD_NAME_AT + 8);
            let Some(record) = window.get(position, fixed)? else { break };
            match id {
                Some(CODE_LOAD) => match load(record, std::mem::take(&mut ahead)) {
                    Some(code) => each(CodeEntry { at: FileOffset(position), time, ..code }),
                    None => skipped += 1,
                },
                Some(CODE_MOVE) => match moved(record) {
                    Some(code) => each(CodeEntry { at: FileOffset(position), time, ..code }),
                    None => skipped += 1,
                },
                Some(CODE_DEBUG_INFO) => {
                    let code = u64_at(record, PREFIX_LEN);
                    ahead.lines = code.map_or((0, 0), |code| (position, code));
                }
                Some(CODE_UNWINDING) => ahead.unwinding = position,
                _ => {}
            }
            let is_ahead = matches!(id, Some(CODE_DEBUG_INFO | CODE_UNWINDING));
            ahead.since = is_ahead.then(|| ahead.since.unwrap_or(position));
            // What is passed over is read all the same, up to a window.
            work += ENTRY_WORK + len.min(WINDOW_LEN as u64);
            position += len;
        }
        let is_cut = work >= MAX_WORK;
        let next = ahead.since.filter(|_| position != u64::MAX).unwrap_or(position);
        Ok(Scanned { next: FileOffset(next), skipped, is_cut })
    }

    /// The name in the record of loaded code at a position.
    pub(super) fn name_at(&self, source: &Source, at: u64) -> io::Result<Option<Vec<u8>>> {
        let prefix = source.bytes(at, PREFIX_LEN)?;
        let len = u32_at(&prefix, 4).map_or(0, |len| len as usize);
        let mut name = source.bytes(
            at.saturating_add(LOAD_NAME_AT as u64),
            len.saturating_sub(LOAD_NAME_AT).min(MAX_NAME_LEN),
        )?;
        name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
        Ok(Some(name).filter(|name| !name.is_empty()))
    }

    /// The source lines in the record at a position, sorted by address.
    pub(super) fn lines_at(&self, source: &Source, at: u64) -> io::Result<Vec<SourceLine>> {
        let prefix = source.bytes(at, LINES_AT)?;
        let len = u32_at(&prefix, 4).map_or(0, |len| len as usize).saturating_sub(LINES_AT);
        let bytes = source.bytes(at.saturating_add(LINES_AT as u64), len.min(MAX_LINES_LEN))?;
        let mut lines: Vec<SourceLine> = Vec::new();
        let mut rest = bytes.as_slice();
        while let (Some(address), Some(line)) = (u64_at(rest, 0), u32_at(rest, 8)) {
            let name = &rest[PREFIX_LEN.min(rest.len())..];
            let Some(end) = memchr::memchr(0, name) else { break };
            let file = match (&name[..end], lines.last()) {
                // A byte that is not text stands for the file of the line before.
                (b"\xff", Some(last)) => last.file.clone(),
                (name, _) => String::from_utf8_lossy(&name[..end.min(MAX_NAME_LEN)]).into_owned(),
            };
            let address = address.saturating_sub(self.lines_shift);
            lines.push(SourceLine { address, line, file });
            rest = &name[end + 1..];
        }
        lines.sort_by_key(|line| line.address);
        Ok(lines)
    }
}

/// The unwinding tables of an entry.
pub(super) fn unwinding(source: &Source, entry: &CodeEntry) -> io::Result<Option<CodeUnwinding>> {
    let EntryKind::Named { unwinding: at @ 1.., .. } = entry.kind else { return Ok(None) };
    let head = source.bytes(at, TABLES_AT)?;
    let length = |at: usize| usize::try_from(u64_at(&head, at)?).ok();
    let lengths = || {
        let (all, sorted) = (length(PREFIX_LEN)?, length(PREFIX_LEN + 8)?);
        let room = usize::try_from(u32_at(&head, 4)?).ok()?.checked_sub(TABLES_AT)?;
        all.checked_sub(sorted).filter(|_| all <= room.min(MAX_TABLES_LEN))
    };
    let Some(len) = lengths() else { return Ok(None) };
    let eh_frame = source.bytes(at.saturating_add(TABLES_AT as u64), len)?;
    let code_len = entry.end.0.saturating_sub(entry.start.0);
    let record_len = source.bytes(entry.at.0, PREFIX_LEN)?;
    let record_len = u32_at(&record_len, 4).map_or(0, u64::from);
    let is_inside = record_len.checked_sub(LOAD_NAME_AT as u64).is_some_and(|len| len > code_len);
    let Ok(code_len) = usize::try_from(code_len) else { return Ok(None) };
    // Runtimes that have no tables write empty ones.
    let is_whole = len >= MIN_TABLES_LEN && eh_frame.len() == len;
    if !is_inside || code_len > MAX_CODE_LEN || !is_whole {
        return Ok(None);
    }
    // The code ends its record.
    let code_at = entry.at.0.saturating_add(record_len).saturating_sub(code_len as u64);
    let code = source.bytes(code_at, code_len)?;
    let eh_frame_at = (code_len as u64).next_multiple_of(TABLES_ALIGNMENT);
    Ok((code.len() == code_len).then_some(CodeUnwinding { code, eh_frame, eh_frame_at }))
}

/// Loaded code; its place in the file and its time are the caller's.
fn load(record: &[u8], ahead: Ahead) -> Option<CodeEntry> {
    let start = u64_at(record, PREFIX_LEN + 16)?;
    let size = u64_at(record, PREFIX_LEN + 24)?;
    let index = u64_at(record, PREFIX_LEN + 32)?;
    let Ahead { lines, unwinding, .. } = ahead;
    let lines = if lines.1 == start { lines.0 } else { 0 };
    Some(entry(start, size, EntryKind::Named { index, lines, unwinding }))
}

/// Moved code, at its new place.
fn moved(record: &[u8]) -> Option<CodeEntry> {
    let start = u64_at(record, PREFIX_LEN + 24)?;
    let size = u64_at(record, PREFIX_LEN + 32)?;
    let index = u64_at(record, PREFIX_LEN + 40)?;
    Some(entry(start, size, EntryKind::Moved { index }))
}

fn entry(start: u64, size: u64, kind: EntryKind) -> CodeEntry {
    let end = ProcessAddress(start.saturating_add(size));
    CodeEntry { at: FileOffset(0), time: None, start: ProcessAddress(start), end, kind }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests;
