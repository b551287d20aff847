//! A trace.dat of the mended calls: any depth, any gap, exits with the time of their own call.
//!
//! Of the depths, that of an exit is one more than that of its entry, as proftool has it. Time never
//! goes back. Records of functions that the map does not have are left out, since readers would take
//! the symbol before for their name.

use std::io::{Read, Seek, Write};

use super::pages::{Counted, Payload};
use super::{FtraceKind, Written, write_file};
use crate::error::UbootError;
use crate::functions::Functions;
use crate::map::SymbolMap;
use crate::record::{Record, RecordKind};
use crate::replay::{Moment, Replay, Step};
use crate::rules::Rules;
use crate::trace::{Chunk, Trace};

/// Writes the events of a calls chunk.
///
/// # Errors
/// Those of reading and of `out`.
pub fn write_ftrace<R: Read + Seek>(
    trace: &mut Trace<R>,
    chunk: Chunk,
    map: &SymbolMap,
    (kind, rules): (FtraceKind, Option<&Rules>),
    out: &mut dyn Write,
) -> Result<Written, UbootError> {
    let mut symbols = Vec::new();
    for symbol in map.symbols() {
        writeln!(symbols, "{:016x} T {}", symbol.address, symbol.name)?;
    }
    let mut functions = Functions::new(Some(map), rules);
    // Known once the first pass is over, which only counts.
    let mut first_depth = 0;
    let mut pass = |pages: &mut Counted<'_>| {
        let mut events = Events::new(kind, first_depth);
        trace.records(chunk, |record| events.take(record, map, &mut functions, pages))?;
        first_depth = events.first_depth - events.least;
        Ok(events.written)
    };
    write_file(&symbols, false, &mut pass, out)
}

struct Events {
    kind: FtraceKind,
    replay: Replay,
    first_depth: i32,
    /// How many calls are open that are shown.
    depth: i32,
    /// For each open call how many were before it: those that are shown, and all.
    before: Vec<(i32, i32)>,
    /// How many calls are open, those from before the trace subtracted, and the least ever.
    all: i32,
    least: i32,
    written: Written,
}

impl Events {
    fn new(kind: FtraceKind, first_depth: i32) -> Events {
        Events {
            kind,
            replay: Replay::default(),
            first_depth,
            depth: first_depth,
            before: Vec::new(),
            all: first_depth,
            least: first_depth.min(0),
            written: Written::default(),
        }
    }

    fn take(
        &mut self,
        record: Record,
        map: &SymbolMap,
        functions: &mut Functions<'_>,
        pages: &mut Counted<'_>,
    ) -> Result<(), UbootError> {
        let Some(moment) = self.replay.take(record, functions) else { return Ok(()) };
        let function = functions.get(moment.function);
        let is_shown = function.is_kept && function.is_named;
        let (depth, micros) = self.follow(moment, is_shown);
        if !function.is_named {
            self.written.missing += 1;
        } else if !function.is_kept {
            self.written.excluded += 1;
        }
        if !is_shown {
            return Ok(());
        }
        let time = self.replay.clock();
        let (address, depth) = (function.address, depth as u32);
        let payload = match (self.kind, record.kind) {
            (FtraceKind::Function, _) => {
                let caller = map.function_around(record.caller);
                let outside = || map.text_start().wrapping_add(u64::from(record.caller));
                let caller = caller.map_or_else(outside, |caller| map.symbols()[caller].address);
                Payload::Function { function: address, caller }
            }
            (FtraceKind::FuncGraph, RecordKind::Entry) => {
                Payload::Entry { function: address, depth }
            }
            (FtraceKind::FuncGraph, _) => {
                Payload::Exit { function: address, depth, nanos: micros * 1000 }
            }
        };
        pages.make_room(payload.words(), time)?;
        pages.push(&payload, time);
        self.written.events += 1;
        Ok(())
    }

    /// Keeps the depths. That of the event, and the microseconds of a call that ended.
    fn follow(&mut self, moment: Moment, is_shown: bool) -> (i32, u64) {
        let by = i32::from(is_shown);
        let (event, micros) = match moment.step {
            Step::Entered => {
                self.before.push((self.depth, self.all));
                self.depth += by;
                self.all += 1;
                (self.depth - by, 0)
            }
            Step::Left { outermost, start, .. } => {
                (self.depth, self.all) = self.before[outermost];
                self.before.truncate(outermost);
                (self.depth + by, self.replay.now() - start)
            }
            // What was open before the trace began ends.
            Step::Unmatched if self.before.is_empty() => {
                self.depth -= by;
                self.all -= 1;
                (self.depth + by, 0)
            }
            Step::Unmatched => (self.depth, 0),
        };
        self.least = self.least.min(self.all);
        (event, micros)
    }
}
