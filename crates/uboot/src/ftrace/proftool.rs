//! proftool's trace.dat, byte for byte.

use std::io::{self, Read, Seek, Write};

use super::header::Header;
use super::pages::{ENTRY, EXIT, FUNCTION, Pages, entry, exit, function};
use super::{FtraceKind, Written};
use crate::compat::{DEPTH, Proftool};
use crate::error::UbootError;
use crate::map::ProftoolMap;
use crate::record::{Record, RecordKind};
use crate::rules::Rules;

/// proftool gives up with one more than this many functions that are not in the map, or steps back.
const MOST_MISSING: u64 = 20;
const MOST_STEPS_BACK: u64 = 20;
/// The longest time between two events that it writes, in microseconds.
const LONGEST_DELTA: i64 = 0x7f_ffff;

impl<R: Read + Seek> Proftool<R> {
    /// Writes the trace.dat. Where proftool gives up, the file ends as proftool leaves it, and
    /// [`Written::failure`] says why.
    ///
    /// # Errors
    /// Those of reading and of `out`.
    pub fn write_ftrace(
        &mut self,
        kind: FtraceKind,
        rules: Option<&Rules>,
        out: &mut dyn Write,
    ) -> Result<Written, UbootError> {
        let mut symbols = Vec::new();
        for symbol in &self.map().symbols {
            writeln!(symbols, "{:016x} T {}", symbol.address, symbol.name)?;
        }
        let kept = self.kept(rules);
        let first_depth = if kind == FtraceKind::FuncGraph { self.first_depth()? } else { 0 };
        let mut pass = |mut pages: Pages<'_>| {
            let mut conversion = Conversion::new(kind, &kept, first_depth);
            self.records(|map, record| match conversion.is_over {
                true => Ok(()),
                false => conversion.take(map, record, &mut pages),
            })?;
            let size = pages.finish(conversion.written.failure.is_none())?;
            Ok::<_, UbootError>((size, conversion.written))
        };
        let (size, outcome) = pass(Pages::only_size(true))?;
        let failed = outcome.failure.is_some();
        let header = Header { symbols: &symbols, size, is_proftool: true, failed };
        header.write(outcome.events > 0 || failed, out)?;
        pass(Pages::new(out, true)).map(|(_, written)| written)
    }

    /// How many calls were open before the first record.
    fn first_depth(&mut self) -> io::Result<i32> {
        let (mut depth, mut least) = (0_i32, 0);
        self.records(|_, record| {
            match record.kind {
                RecordKind::Entry => depth += 1,
                RecordKind::Exit => depth -= 1,
                RecordKind::TextBase | RecordKind::Unknown => {}
            }
            least = least.min(depth);
            Ok(())
        })?;
        Ok(-least)
    }
}

struct Conversion<'k> {
    kind: FtraceKind,
    kept: &'k [bool],
    depth: i32,
    starts: Vec<u64>,
    steps_back: u64,
    is_over: bool,
    written: Written,
}

impl Conversion<'_> {
    fn new(kind: FtraceKind, kept: &[bool], depth: i32) -> Conversion<'_> {
        let written = Written::default();
        Conversion { kind, kept, depth, starts: Vec::new(), steps_back: 0, is_over: false, written }
    }

    fn fail(&mut self, why: String) {
        self.written.failure = Some(why);
        self.is_over = true;
    }

    fn take(&mut self, map: &ProftoolMap, record: Record, pages: &mut Pages<'_>) -> io::Result<()> {
        let Some(symbol) = map.function_at(record.function) else {
            self.written.missing += 1;
            if self.written.missing > MOST_MISSING {
                self.fail("Too many missing functions".to_owned());
            }
            return Ok(());
        };
        if !self.kept[symbol] {
            self.written.excluded += 1;
            return Ok(());
        }
        let is_entry = record.kind == RecordKind::Entry;
        let time = u64::from(record.time);
        let address = map.symbols[symbol].address;
        let words = match (self.kind, is_entry) {
            (FtraceKind::Function, _) => FUNCTION,
            (FtraceKind::FuncGraph, true) => ENTRY,
            (FtraceKind::FuncGraph, false) => EXIT,
        };
        let delta = pages.make_room(words, time)?;
        if delta < 0 {
            self.steps_back += 1;
            if self.steps_back > MOST_STEPS_BACK {
                self.fail("Too many errors, giving up".to_owned());
                return Ok(());
            }
        }
        if delta > LONGEST_DELTA {
            self.fail(format!("cannot represent time delta {delta:x}"));
            return Ok(());
        }
        match (self.kind, is_entry) {
            (FtraceKind::Function, _) => {
                let caller = map.symbols[map.function_around(record.caller)].address;
                pages.push(function(address, caller), time);
            }
            (FtraceKind::FuncGraph, true) => pages.push(self.enter(address, time), time),
            (FtraceKind::FuncGraph, false) => pages.push(self.leave(address, time), time),
        }
        self.written.events += 1;
        // Without a word, and as if all were well.
        self.is_over = self.starts.len() == DEPTH;
        Ok(())
    }

    fn enter(&mut self, address: u64, time: u64) -> [u32; ENTRY] {
        self.starts.push(time);
        self.depth += 1;
        entry(address, (self.depth - 1) as u32)
    }

    fn leave(&mut self, address: u64, time: u64) -> [u32; EXIT] {
        let duration = self.starts.pop().map_or(0, |start| time.wrapping_sub(start));
        self.depth -= 1;
        exit(address, (self.depth + 1) as u32, duration.wrapping_mul(1000))
    }
}
