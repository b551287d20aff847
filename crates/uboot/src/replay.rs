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
    /// Exits of functions that were not open.
    pub unmatched_exits: u64,
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
    /// So many calls ended, at least one; the outermost of them is the one that the exit is of.
    Left { calls: usize, outermost: usize, start: u64 },
    /// An exit of what is not open.
    Unmatched,
}

/// What passed before a record, and what it did.
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
#[derive(Debug, Default)]
pub(crate) struct Replay {
    open: Vec<Open>,
    /// For each function how many of its calls are open, so that exits of others cost no search.
    open_calls: Vec<u32>,
    last_time: Option<u32>,
    now: u64,
    records: u64,
    just_entered: bool,
    facts: Facts,
}

impl Replay {
    /// Takes one record; `None` for those that are no calls.
    pub(crate) fn take(&mut self, record: Record, functions: &mut Functions<'_>) -> Option<Moment> {
        self.records += 1;
        if !matches!(record.kind, RecordKind::Entry | RecordKind::Exit) {
            self.facts.others += 1;
            return None;
        }
        let function = functions.meet(record.function);
        let elapsed = self.advance(record.time);
        let is_pause = elapsed > 0
            && record.kind == RecordKind::Exit
            && functions.get(function).is_trace_command
            && self.is_resumed(function);
        if is_pause {
            self.facts.pauses += 1;
            self.facts.paused += elapsed;
        }
        let step = match record.kind {
            RecordKind::Entry => self.enter(function),
            _ => self.leave(function),
        };
        Some(Moment { elapsed, is_pause, step, function })
    }

    /// Whether an exit of `do_trace` comes right after its entry, or out of nowhere.
    fn is_resumed(&self, function: FunctionId) -> bool {
        let is_innermost = self.open.last().is_some_and(|open| open.function == function);
        self.just_entered || !is_innermost
    }

    fn advance(&mut self, time: u32) -> u64 {
        let Some(last) = self.last_time.replace(time) else {
            self.facts.start = Some(time);
            return 0;
        };
        let step = u64::from(time.wrapping_sub(last) % CLOCK_PERIOD);
        if step > LONGEST_PAUSE {
            self.facts.steps_back += 1;
            return 0;
        }
        self.facts.wraps += u64::from(time < last);
        if step > self.facts.longest_gap.0 {
            self.facts.longest_gap = (step, self.records);
        }
        self.now += step;
        step
    }

    fn enter(&mut self, function: FunctionId) -> Step {
        self.facts.entries += 1;
        self.open.push(Open { function, start: self.now });
        let known = self.open_calls.len().max(function.index() + 1);
        self.open_calls.resize(known, 0);
        self.open_calls[function.index()] += 1;
        self.facts.max_depth = self.facts.max_depth.max(self.open.len());
        self.just_entered = true;
        Step::Entered
    }

    fn leave(&mut self, function: FunctionId) -> Step {
        self.facts.exits += 1;
        self.just_entered = false;
        let is_open = self.open_calls.get(function.index()).is_some_and(|calls| *calls > 0);
        let found = is_open.then(|| self.open.iter().rposition(|open| open.function == function));
        let Some(outermost) = found.flatten() else {
            self.facts.unmatched_exits += 1;
            return Step::Unmatched;
        };
        let calls = self.open.len() - outermost;
        if calls > 1 {
            self.facts.resyncs += 1;
            self.facts.unwound_calls += calls as u64 - 1;
        }
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

    /// The innermost open call.
    pub(crate) fn innermost(&self) -> Option<FunctionId> {
        self.open.last().map(|open| open.function)
    }

    /// What was found, when all records are taken.
    pub(crate) fn facts(&self) -> Facts {
        Facts { open_at_end: self.open.len() as u64, span: self.now, ..self.facts }
    }
}

#[cfg(test)]
mod tests;
