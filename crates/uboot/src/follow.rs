//! A calls chunk, gone through once: its calls summed up or side by side, and what was mended.

use std::io::{self, Read, Seek};

use crate::chart::Chart;
use crate::error::UbootError;
use crate::ftrace::{FtraceKind, FtracePlan, Planning};
use crate::functions::{FunctionId, Functions};
use crate::graph::CallGraph;
use crate::record::Record;
use crate::replay::{Facts, Moment, Replay, Step};
use crate::trace::{Chunk, Trace};

/// This many calls are looked at to see whether the map is the right one.
const CALLERS_LOOKED_AT: u64 = 1 << 16;
/// Fewer say nothing.
const FEW_CALLERS: u64 = 50;

/// What to build from the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Making {
    /// Nothing but facts.
    Facts,
    /// Sums of equal paths.
    Graph,
    /// These, and a flame chart.
    Chart,
    /// What has to be known before events are written.
    Events(FtraceKind),
}

/// Whether calls come from where the map says that their callers are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Callers {
    /// Calls whose return address is in the function that was open.
    pub fitting: u64,
    /// All that were looked at.
    pub looked_at: u64,
}

impl Callers {
    /// Whether the map is most likely that of another build: most calls come from elsewhere. With
    /// the right map some do, from functions that are inlined or not traced.
    pub fn contradict(&self) -> bool {
        self.looked_at >= FEW_CALLERS && self.fitting * 2 < self.looked_at
    }
}

/// What a chunk held.
#[derive(Debug)]
pub struct Followed {
    /// Sums of equal paths; empty where they were not asked for.
    pub graph: CallGraph,
    /// The flame chart, if it was asked for.
    pub chart: Option<Chart>,
    /// What [`crate::write_ftrace`] needs, if events were asked for.
    pub plan: Option<FtracePlan>,
    /// What was found and mended.
    pub facts: Facts,
    /// Whether calls fit the map.
    pub callers: Callers,
}

/// Goes through the records of a calls chunk.
///
/// # Errors
/// What reading fails with.
pub fn follow<R: Read + Seek>(
    trace: &mut Trace<R>,
    chunk: Chunk,
    functions: &mut Functions<'_>,
    making: Making,
) -> Result<Followed, UbootError> {
    let mut calls = Calls { functions, replay: Replay::default(), callers: Callers::default() };
    let mut graph = CallGraph::default();
    let (mut chart, mut plan) = (None, None);
    match making {
        Making::Facts => calls.each(trace, chunk, |_, _, _| Ok(()))?,
        Making::Graph => calls.each(trace, chunk, |calls, _, moment| {
            graph.take(moment, calls.functions);
            Ok(())
        })?,
        Making::Chart => {
            let chart = chart.insert(Chart::default());
            calls.each(trace, chunk, |calls, _, moment| {
                graph.take(moment, calls.functions);
                chart.take(moment, calls.functions);
                Ok(())
            })?;
        }
        Making::Events(kind) => {
            let mut planning = Planning::new(kind);
            calls.each(trace, chunk, |calls, record, moment| {
                let traits = calls.functions.traits(moment.function);
                planning.take(record, traits, calls.replay.clock())
            })?;
            plan = Some(planning.finish(&calls.replay.facts())?);
        }
    }
    Ok(Followed { graph, chart, plan, facts: calls.replay.facts(), callers: calls.callers })
}

/// What is known of the calls between two records.
struct Calls<'f, 'm> {
    functions: &'f mut Functions<'m>,
    replay: Replay,
    callers: Callers,
}

impl Calls<'_, '_> {
    /// Visits all records that are calls. Each use has a loop of its own, for speed.
    fn each<R: Read + Seek>(
        &mut self,
        trace: &mut Trace<R>,
        chunk: Chunk,
        mut take: impl FnMut(&mut Self, Record, Moment) -> io::Result<()>,
    ) -> io::Result<()> {
        trace.records(chunk, |record| {
            let Some(moment) = self.replay.take(record, self.functions) else { return Ok(()) };
            if moment.step == Step::Entered && self.callers.looked_at < CALLERS_LOOKED_AT {
                look_at(record, self.replay.caller(), self.functions, &mut self.callers);
            }
            take(self, record, moment)
        })
    }
}

fn look_at(
    record: Record,
    caller: Option<FunctionId>,
    functions: &Functions<'_>,
    callers: &mut Callers,
) {
    let (Some(caller), Some(map)) = (caller, functions.map()) else { return };
    let open = functions.get(caller).symbol;
    callers.looked_at += 1;
    callers.fitting += u64::from(open.is_some() && map.function_around(record.caller) == open);
}
