//! Finds the names of addresses in one pass over a log, and keeps only what covers one of them.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;

use flame_profile::{FileOffset, ProcessAddress, readable};
use rustc_hash::FxHashMap;

use super::jitdump::SourceLine;
use super::{CodeEntry, CodeLog, EntryKind, Format, perf_map};
use crate::demangle::MAX_NAME_LEN;

/// How many entries are kept at most that cover a wanted address, 40 bytes each: a runtime would
/// have to compile the same addresses millions of times. The oldest give way.
const MAX_KEPT: usize = 1 << 20;

/// For how many pieces of code it is remembered where their names stand, in case they are moved.
const MAX_INDEXED: usize = 1 << 20;

/// An address whose name is wanted, as the log was at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedCode {
    /// The address; pass return addresses minus 1.
    pub address: ProcessAddress,
    /// Entries from here on were written later and do not count, unless no earlier one covers the
    /// address: then the very entry here does, since many runtimes write a name down a little
    /// after the code has begun to run. The largest offset for all of the log.
    pub before: FileOffset,
}

/// What a log says of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeName {
    /// The function's name as the runtime wrote it.
    pub name: Arc<str>,
    /// The source file, where the log has lines.
    pub file: Option<Arc<str>>,
    /// The line in that file, counted from 1.
    pub line: Option<u32>,
}

/// The answer of [`CodeLog::names`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeNames {
    /// One answer for each address that was asked for.
    pub names: Vec<Option<CodeName>>,
    /// Lines or records of the log that made no sense.
    pub skipped: u64,
    /// Whether the log was not read to its end, because it asked for too much work.
    pub is_cut: bool,
}

/// An entry that covers a wanted address.
#[derive(Clone, Copy, Debug)]
struct Kept {
    start: u64,
    end: u64,
    at: u64,
    /// Where the name stands.
    named_at: u64,
    /// Where the source lines stand; 0 = nowhere.
    lines_at: u64,
}

impl CodeLog {
    /// The names of addresses: of all entries that cover one the last that counts for it.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn names(&self, wanted: &[WantedCode]) -> io::Result<CodeNames> {
        let mut addresses: Vec<u64> = wanted.iter().map(|wanted| wanted.address.0).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let mut kept = VecDeque::new();
        // Where the name and the lines of code stand, by its number.
        let mut indexed: FxHashMap<u64, (u64, u64)> = FxHashMap::default();
        // What is appended while it is read is not waited for: it is never over.
        let (end, _) = self.state()?;
        let scanned = self.scan(FileOffset(0), end, &mut |entry| {
            if let EntryKind::Named { index, lines, .. } = entry.kind
                && self.has_moves()
                && (indexed.len() < MAX_INDEXED || indexed.contains_key(&index))
            {
                indexed.insert(index, (entry.at.0, lines));
            }
            if covers_any(&addresses, &entry)
                && let Some(entry) = to_kept(&entry, &indexed)
            {
                if kept.len() == MAX_KEPT {
                    kept.pop_front();
                }
                kept.push_back(entry);
            }
        })?;
        drop(indexed);
        let chosen = choose(wanted, kept.make_contiguous());
        let names = self.read_names(wanted, &chosen)?;
        Ok(CodeNames { names, skipped: scanned.skipped, is_cut: scanned.is_cut })
    }

    fn has_moves(&self) -> bool {
        matches!(self.format, Format::JitDump(_))
    }

    /// Reads the names and lines of the chosen entries, each once.
    fn read_names(
        &self,
        wanted: &[WantedCode],
        chosen: &[Option<Kept>],
    ) -> io::Result<Vec<Option<CodeName>>> {
        let mut names: FxHashMap<u64, Option<Arc<str>>> = FxHashMap::default();
        let mut files: FxHashMap<String, Arc<str>> = FxHashMap::default();
        let mut answers = vec![None; wanted.len()];
        // In the order of the lines, of which only one piece of code's are held at a time.
        let mut order: Vec<(u64, usize)> =
            (0..wanted.len()).map(|i| (chosen[i].map_or(0, |kept| kept.lines_at), i)).collect();
        order.sort_unstable();
        let mut lines: (u64, Vec<SourceLine>) = (0, Vec::new());
        for (lines_at, number) in order {
            let Some(kept) = chosen[number] else { continue };
            let name = match names.get(&kept.named_at) {
                Some(known) => known.clone(),
                None => {
                    let name = self.read_name(kept.named_at)?;
                    names.insert(kept.named_at, name.clone());
                    name
                }
            };
            if let (Format::JitDump(dump), true) = (&self.format, lines.0 != lines_at) {
                lines = (lines_at, dump.lines_at(&self.source, lines_at)?);
            }
            let place = line_of(&lines.1, wanted[number].address.0).filter(|_| lines_at != 0);
            answers[number] = name.map(|name| CodeName {
                name,
                file: place.map(|place| interned(&mut files, &place.file)),
                line: place.map(|place| place.line),
            });
        }
        Ok(answers)
    }

    fn read_name(&self, at: u64) -> io::Result<Option<Arc<str>>> {
        let name = match &self.format {
            Format::PerfMap => perf_map::name_at(&self.source, at),
            Format::JitDump(dump) => dump.name_at(&self.source, at),
        };
        Ok(name?.map(|name| {
            let name = &name[..name.len().min(MAX_NAME_LEN)];
            Arc::from(readable(name))
        }))
    }
}

fn covers_any(addresses: &[u64], entry: &CodeEntry) -> bool {
    let first = addresses.partition_point(|address| *address < entry.start.0);
    addresses.get(first).is_some_and(|address| *address < entry.end.0)
}

fn to_kept(entry: &CodeEntry, indexed: &FxHashMap<u64, (u64, u64)>) -> Option<Kept> {
    let (named_at, lines_at) = match entry.kind {
        EntryKind::Named { lines, .. } => (entry.at.0, lines),
        // The lines are those of the place that it was moved from.
        EntryKind::Moved { index } => (indexed.get(&index)?.0, 0),
    };
    Some(Kept { start: entry.start.0, end: entry.end.0, at: entry.at.0, named_at, lines_at })
}

/// For each address the last entry that covers it and counts.
fn choose(wanted: &[WantedCode], kept: &[Kept]) -> Vec<Option<Kept>> {
    let mut chosen = vec![None; wanted.len()];
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|number| std::cmp::Reverse(wanted[*number].before));
    let mut later = order.iter().copied().peekable();
    // Backwards, so that each address is done with at the first entry that covers it.
    let mut open: BTreeSet<(u64, usize)> = BTreeSet::new();
    for entry in kept.iter().rev() {
        while let Some(number) = later.next_if(|number| wanted[*number].before.0 > entry.at) {
            open.insert((wanted[number].address.0, number));
        }
        let covered = open.range((entry.start, 0)..(entry.end, 0));
        let covered: Vec<(u64, usize)> = covered.copied().collect();
        for key in covered {
            open.remove(&key);
            chosen[key.1] = Some(*entry);
        }
    }
    for (number, wanted) in wanted.iter().enumerate().filter(|(_, w)| w.before.0 != u64::MAX) {
        if chosen[number].is_none()
            && let Ok(index) = kept.binary_search_by_key(&wanted.before.0, |entry| entry.at)
        {
            let covers = |entry: &&Kept| (entry.start..entry.end).contains(&wanted.address.0);
            chosen[number] = kept.get(index).filter(covers).copied();
        }
    }
    chosen
}

/// The line of the last address that is not behind the one asked for.
fn line_of(lines: &[SourceLine], address: u64) -> Option<&SourceLine> {
    let after = lines.partition_point(|line| line.address <= address);
    lines[..after].last().filter(|line| line.line > 0)
}

fn interned(files: &mut FxHashMap<String, Arc<str>>, file: &str) -> Arc<str> {
    if let Some(known) = files.get(file) {
        return Arc::clone(known);
    }
    let new: Arc<str> = Arc::from(file);
    files.insert(file.to_owned(), Arc::clone(&new));
    new
}

#[cfg(test)]
mod tests;
