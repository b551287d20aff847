//! A calls chunk, gone through once: its calls summed up or side by side, and what was mended.

use std::io::{Read, Seek};

use crate::chart::Chart;
use crate::error::UbootError;
use crate::functions::{FunctionId, Functions};
use crate::graph::CallGraph;
use crate::record::{Record, RecordKind};
use crate::replay::{Facts, Replay};
use crate::trace::{Chunk, Trace};

/// So many calls are looked at to see whether the map is the right one.
const CALLERS_LOOKED_AT: u64 = 1 << 16;
/// Fewer say nothing.
const FEW_CALLERS: u64 = 50;

/// What is made of the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Making {
    /// Nothing but facts.
    Facts,
    /// Sums of equal paths.
    Graph,
    /// These, and a flame chart.
    Chart,
}

/// Whether calls come from where the map says that their callers are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Callers {
    /// Calls whose return address lies in the function that was open.
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
    /// Sums of equal paths; empty where only facts were asked for.
    pub graph: CallGraph,
    /// The flame chart, if it was asked for.
    pub chart: Option<Chart>,
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
    let mut replay = Replay::default();
    let mut graph = CallGraph::default();
    let mut chart = (making == Making::Chart).then(Chart::default);
    let mut callers = Callers::default();
    trace.records::<UbootError>(chunk, |record| {
        let caller = replay.innermost();
        let Some(moment) = replay.take(record, functions) else { return Ok(()) };
        if record.kind == RecordKind::Entry && callers.looked_at < CALLERS_LOOKED_AT {
            look_at(record, caller, functions, &mut callers);
        }
        if making != Making::Facts {
            graph.take(moment, functions);
        }
        if let Some(chart) = &mut chart {
            chart.take(moment, functions);
        }
        Ok(())
    })?;
    Ok(Followed { graph, chart, facts: replay.facts(), callers })
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
