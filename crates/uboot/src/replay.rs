//! The calls of a trace followed from record to record, mended where records are missing.
//!
//! - Time is what the clock of 30 bits went on by since the record before. A step that looks like
//!   more than [`LONGEST_PAUSE`] is one back: the clock was set anew, and no time passed.
//! - An exit ends the innermost open call of its function. Calls above that one have no exit (the
//!   trace was paused in them, or they were left by a jump) and end there, too. An exit of a
//!   function that is not open at all is passed over: its entry came before the trace.
//! - `trace pause` and `trace resume` are both run by `do_trace`. So the time between the entry of a
//!   `do_trace` that calls nothing and its exit is that of a pause, and so is the time before an exit
//!   of `do_trace` where something else is innermost.

use crate::functions::{FunctionId, Functions};
use crate::record::{CLOCK_PERIOD, Record, RecordKind};

/// The longest time between two records that is believed, in microseconds: 1006.6 s. The clock
/// starts over after 1073.7 s; the rest is for clocks that were set back.
pub const LONGEST_PAUSE: u64 = (1 << 30) - (1 << 26);

/// A call that has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) function: FunctionId,
    /// When it was entered.
    pub(crate) start: u64,
}

/// What was mended, and how much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Entries of functions.
    pub entries: u64,
    /// Exits of functions.
    pub exits: u64,
    /// Records that are neither: the text's address in old files.
    pub others: u64,
    /// Entries and exits of functions that the map does not have.
    pub unnamed: u64,
    /// Exits of functions that were not open.
    pub unmatched_exits: u64,
    /// Those of them where nothing was open: so many calls had begun before the trace.
    pub open_before: u64,
    /// Calls that ended without an exit, since one further out ended.
    pub unwound_calls: u64,
    /// Exits that unwound such calls.
    pub resyncs: u64,
    /// Calls that were open when the trace ended.
    pub open_at_end: u64,
    /// Gaps of pauses.
    pub pauses: u64,
    /// The time of these in microseconds.
    pub paused: u64,
    /// Steps back of the clock.
    pub steps_back: u64,
    /// How often the clock started over.
    pub wraps: u64,
    /// The time of the first record in microseconds.
    pub start: Option<u32>,
    /// Time from the first record to the last in microseconds.
    pub span: u64,
    /// The longest time between two records in microseconds, and which record ended it, from 1.
    pub longest_gap: (u64, u64),
    /// The most calls that were open at once.
    pub max_depth: usize,
}

/// What a record did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A call began; it is the last of the open ones.
    Entered,
    /// This many calls ended, at least one; the outermost of them is the one that the exit is of.
    Left { calls: usize, outermost: usize, start: u64 },
    /// An exit from a function that is not open.
    Unmatched,
}

/// How much time passed before a record, and what the record did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// Microseconds since the record before.
    pub(crate) elapsed: u64,
    /// Whether these were those of a pause.
    pub(crate) is_pause: bool,
    pub(crate) step: Step,
    pub(crate) function: FunctionId,
}

/// The state between two records.
#[derive(Debug)]
pub(crate) struct Replay {
    open: Vec<Open>,
    /// The number of open calls of each function, so that exits from others need no search.
    open_calls: Vec<u32>,
    /// That of the last record; more than any before the first one.
    last_time: u32,
    now: u64,
    just_entered: bool,
    facts: Facts,
}

impl Default for Replay {
    fn default() -> Replay {
        Replay {
            open: Vec::new(),
            open_calls: Vec::new(),
            last_time: u32::MAX,
            now: 0,
            just_entered: false,
            facts: Facts::default(),
        }
    }
}

impl Replay {
    /// Takes one record; `None` for those that are not calls.
    // Otherwise the return value would go through memory, which takes as long as everything else here.
    #[inline(always)]
    pub(crate) fn take(&mut self, record: Record, functions: &mut Functions<'_>) -> Option<Moment> {
        let is_entry = match record.kind {
            RecordKind::Entry => true,
            RecordKind::Exit => false,
            RecordKind::TextBase | RecordKind::Unknown => {
                self.facts.others += 1;
                return None;
            }
        };
        let function = functions.meet(record.function);
        let traits = functions.traits(function);
        self.facts.unnamed += u64::from(!traits.is_named);
        let elapsed = self.advance(record.time);
        let is_pause =
            traits.is_trace_command && !is_entry && elapsed > 0 && self.is_resumed(function);
        if is_pause {
            self.facts.pauses += 1;
            self.facts.paused += elapsed;
        }
        let step = if is_entry { self.enter(function) } else { self.leave(function) };
        Some(Moment { elapsed, is_pause, step, function })
    }

    /// Whether an exit of `do_trace` comes right after its entry, or out of nowhere.
    fn is_resumed(&self, function: FunctionId) -> bool {
        let is_innermost = self.open.last().is_some_and(|open| open.function == function);
        self.just_entered || !is_innermost
    }

    #[inline]
    fn advance(&mut self, time: u32) -> u64 {
        let last = std::mem::replace(&mut self.last_time, time);
        let step = u64::from(time.wrapping_sub(last) % CLOCK_PERIOD);
        if step > self.facts.longest_gap.0 || time < last {
            return self.advance_oddly(last, time, step);
        }
        self.now += step;
        step
    }

    /// What is to be said of few steps: the first, those over the clock's end, and those that are
    /// longer than all before.
    #[cold]
    fn advance_oddly(&mut self, last: u32, time: u32, step: u64) -> u64 {
        if self.facts.start.is_none() {
            self.facts.start = Some(time);
            return 0;
        }
        if step > LONGEST_PAUSE {
            self.facts.steps_back += 1;
            return 0;
        }
        self.facts.wraps += u64::from(time < last);
        if step > self.facts.longest_gap.0 {
            // The record is counted only when it is known what it did.
            let records = self.facts.entries + self.facts.exits + self.facts.others + 1;
            self.facts.longest_gap = (step, records);
        }
        self.now += step;
        step
    }

    #[inline]
    fn enter(&mut self, function: FunctionId) -> Step {
        self.facts.entries += 1;
        self.open.push(Open { function, start: self.now });
        if function.index() >= self.open_calls.len() {
            self.open_calls.resize(function.index() + 1, 0);
        }
        self.open_calls[function.index()] += 1;
        self.facts.max_depth = self.facts.max_depth.max(self.open.len());
        self.just_entered = true;
        Step::Entered
    }

    #[inline]
    fn leave(&mut self, function: FunctionId) -> Step {
        self.facts.exits += 1;
        self.just_entered = false;
        match self.open.pop_if(|innermost| innermost.function == function) {
            Some(Open { start, .. }) => {
                self.open_calls[function.index()] -= 1;
                Step::Left { calls: 1, outermost: self.open.len(), start }
            }
            None => self.unwind(function),
        }
    }

    /// Ends the innermost call of a function that something else is open in, and all above it.
    #[cold]
    fn unwind(&mut self, function: FunctionId) -> Step {
        let is_open = self.open_calls.get(function.index()).is_some_and(|calls| *calls > 0);
        let found = is_open.then(|| self.open.iter().rposition(|open| open.function == function));
        let Some(outermost) = found.flatten() else {
            self.facts.unmatched_exits += 1;
            self.facts.open_before += u64::from(self.open.is_empty());
            return Step::Unmatched;
        };
        let calls = self.open.len() - outermost;
        self.facts.resyncs += 1;
        self.facts.unwound_calls += calls as u64 - 1;
        let start = self.open[outermost].start;
        for ended in self.open.drain(outermost..) {
            self.open_calls[ended.function.index()] -= 1;
        }
        Step::Left { calls, outermost, start }
    }

    /// Microseconds since the first record.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Microseconds as the target's clock had them at the first record, and went on since.
    pub(crate) fn clock(&self) -> u64 {
        u64::from(self.facts.start.unwrap_or(0)) + self.now
    }

    /// The open call that made the innermost one.
    pub(crate) fn caller(&self) -> Option<FunctionId> {
        let [.., caller, _] = self.open.as_slice() else { return None };
        Some(caller.function)
    }

    /// What was found, when all records are taken.
    pub(crate) fn facts(&self) -> Facts {
        Facts { open_at_end: self.open.len() as u64, span: self.now, ..self.facts }
    }
}

#[cfg(test)]
mod tests;
