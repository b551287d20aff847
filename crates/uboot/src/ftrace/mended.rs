//! A trace.dat of the mended calls: any depth, any gap, exits with the time of their own call.
//!
//! The depth of an exit is one more than that of its entry, as in proftool's files. Time never
//! goes back. Records of functions that the map does not have are left out, since readers would take
//! the symbol before for their name.

use std::io::{self, Read, Seek, Write};

use super::header::Header;
use super::pages::{ENTRY, EXIT, FUNCTION, Pages, entry, exit, function};
use super::{FtraceKind, Written};
use crate::error::UbootError;
use crate::functions::{Functions, Traits};
use crate::map::SymbolMap;
use crate::recent::Recent;
use crate::record::{Record, RecordKind};
use crate::replay::{Facts, Moment, Replay, Step};
use crate::trace::{Chunk, Trace};

/// What the header of a trace.dat says of the events behind it, from [`crate::follow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FtracePlan {
    kind: FtraceKind,
    /// The bytes of all pages.
    size: u64,
    /// How many calls were open before the trace.
    first_depth: i32,
}

/// A plan while the records are followed.
pub(crate) struct Planning {
    kind: FtraceKind,
    pages: Pages<'static>,
}

impl Planning {
    pub(crate) fn new(kind: FtraceKind) -> Planning {
        Planning { kind, pages: Pages::only_size(false) }
    }

    #[inline]
    pub(crate) fn take(&mut self, record: Record, traits: Traits, time: u64) -> io::Result<()> {
        if traits.is_named && traits.is_kept {
            let words = match (self.kind, record.kind) {
                (FtraceKind::Function, _) => FUNCTION,
                (FtraceKind::FuncGraph, RecordKind::Entry) => ENTRY,
                (FtraceKind::FuncGraph, _) => EXIT,
            };
            self.pages.make_room(words, time)?;
            self.pages.count(words, time);
        }
        Ok(())
    }

    pub(crate) fn finish(self, facts: &Facts) -> io::Result<FtracePlan> {
        let first_depth = i32::try_from(facts.open_before).unwrap_or(i32::MAX);
        Ok(FtracePlan { kind: self.kind, size: self.pages.finish(true)?, first_depth })
    }
}

/// Writes the events of a calls chunk, as planned with the same functions.
///
/// # Errors
/// Those of reading and of `out`; [`UbootError::Changed`] if the events are not those of the plan.
pub fn write_ftrace<R: Read + Seek>(
    trace: &mut Trace<R>,
    chunk: Chunk,
    functions: &mut Functions<'_>,
    plan: FtracePlan,
    out: &mut dyn Write,
) -> Result<Written, UbootError> {
    let mut symbols = Vec::new();
    for symbol in functions.map().into_iter().flat_map(SymbolMap::symbols) {
        writeln!(symbols, "{:016x} T {}", symbol.address, symbol.name)?;
    }
    let header = Header { symbols: &symbols, size: plan.size, is_proftool: false, failed: false };
    header.write(plan.size > 0, out)?;
    let mut events = Events::new(plan, out);
    trace.records(chunk, |record| events.take(record, functions))?;
    if events.pages.finish(true)? != plan.size {
        return Err(UbootError::Changed);
    }
    Ok(events.written)
}

struct Events<'w> {
    kind: FtraceKind,
    replay: Replay,
    /// How many calls are open that are shown.
    depth: i32,
    /// For each open call how many were before it.
    before: Vec<i32>,
    /// The addresses of callers.
    callers: Recent<u64>,
    pages: Pages<'w>,
    written: Written,
}

impl<'w> Events<'w> {
    fn new(plan: FtracePlan, out: &'w mut dyn Write) -> Events<'w> {
        Events {
            kind: plan.kind,
            replay: Replay::default(),
            depth: plan.first_depth,
            before: Vec::new(),
            callers: Recent::default(),
            pages: Pages::new(out, false),
            written: Written::default(),
        }
    }

    fn take(&mut self, record: Record, functions: &mut Functions<'_>) -> io::Result<()> {
        let Some(moment) = self.replay.take(record, functions) else { return Ok(()) };
        let traits = functions.traits(moment.function);
        let is_shown = traits.is_named && traits.is_kept;
        let (depth, micros) = self.follow(moment, is_shown);
        if !is_shown {
            self.written.missing += u64::from(!traits.is_named);
            self.written.excluded += u64::from(traits.is_named);
            return Ok(());
        }
        self.written.events += 1;
        let address = traits.address;
        match (self.kind, record.kind) {
            (FtraceKind::Function, _) => {
                let caller = self.caller(record.caller, functions);
                self.write(function(address, caller))
            }
            (FtraceKind::FuncGraph, RecordKind::Entry) => self.write(entry(address, depth as u32)),
            (FtraceKind::FuncGraph, _) => self.write(exit(address, depth as u32, micros * 1000)),
        }
    }

    fn write<const WORDS: usize>(&mut self, event: [u32; WORDS]) -> io::Result<()> {
        let time = self.replay.clock();
        self.pages.make_room(WORDS, time)?;
        self.pages.push(event, time);
        Ok(())
    }

    /// The address of the function that contains an offset, or the offset's own outside of the text.
    fn caller(&mut self, offset: u32, functions: &Functions<'_>) -> u64 {
        self.callers.find(u64::from(offset)).unwrap_or_else(|| {
            let address = functions.address_around(offset);
            self.callers.keep(u64::from(offset), address);
            address
        })
    }

    /// Keeps the depths. That of the event, and the microseconds of a call that ended.
    fn follow(&mut self, moment: Moment, is_shown: bool) -> (i32, u64) {
        let by = i32::from(is_shown);
        match moment.step {
            Step::Entered => {
                self.before.push(self.depth);
                self.depth += by;
                (self.depth - by, 0)
            }
            Step::Left { outermost, start, .. } => {
                self.depth = self.before[outermost];
                self.before.truncate(outermost);
                (self.depth + by, self.replay.now() - start)
            }
            // What was open before the trace began ends.
            Step::Unmatched if self.before.is_empty() => {
                self.depth -= by;
                (self.depth + by, 0)
            }
            Step::Unmatched => (self.depth, 0),
        }
    }
}
