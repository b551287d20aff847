//! Blocks of memory that programs have allocated and not freed yet, by the calls that the source samples.

use std::sync::Arc;

use flame_events::{EventKind, SampleEvent};
use flame_profile::{Cpu, Nanos, Pid, Tid};
use rustc_hash::FxHashMap;

use crate::aggregator::Wait;
use crate::arguments::Argument;
use crate::config::BlockEvents;

/// This many are followed at a time, some 150 bytes each.
const MOST_BLOCKS: usize = 2_000_000;

/// An allocator's functions that call each other lie that deep at most.
const MOST_OPEN: usize = 16;

/// A block that was sampled when it was allocated.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) stack: Wait,
    /// The event of the function.
    pub(crate) event: usize,
    /// The bytes that it stands for.
    pub(crate) weight: u64,
    /// One of so many was sampled.
    pub(crate) period: u64,
    pub(crate) time: Nanos,
    pub(crate) cpu: Option<Cpu>,
}

/// Follows which blocks there are.
#[derive(Debug)]
pub(crate) struct Blocks {
    events: BlockEvents,
    /// Calls that have not returned, innermost last.
    open: FxHashMap<Tid, Vec<Block>>,
    live: FxHashMap<(Pid, u64), Block>,
    /// How many were not followed, since there were too many.
    left_out: u64,
    /// Whether calls that free may have been lost.
    has_gaps: bool,
}

impl Blocks {
    pub(crate) fn new(events: BlockEvents) -> Blocks {
        Blocks {
            events,
            open: FxHashMap::default(),
            live: FxHashMap::default(),
            left_out: 0,
            has_gaps: false,
        }
    }

    /// A sampled function that allocates was entered.
    pub(crate) fn entered(&mut self, tid: Tid, block: Block) {
        let open = self.open.entry(tid).or_default();
        if open.len() < MOST_OPEN {
            open.push(block);
        }
    }

    /// Takes in a sample of a return, or of a call that frees; `false` for those that allocate.
    pub(crate) fn take(&mut self, sample: &SampleEvent<'_>, registers: u64) -> bool {
        let function_of = &self.events.function_of;
        let Some(behind) = sample.event.checked_sub(function_of.len()) else { return false };
        let functions = function_of.iter().max().map_or(0, |last| last + 1);
        let (pid, values) = (sample.pid, sample.user_registers.as_deref().unwrap_or_default());
        if behind < functions {
            let address = Argument::Returned.value(registers, values);
            self.returned(pid, sample.tid, behind, address.unwrap_or(0));
        } else if let Some(address) = Argument::One(0).value(registers, values) {
            self.live.remove(&(pid, address));
        }
        true
    }

    fn returned(&mut self, pid: Pid, tid: Tid, function: usize, address: u64) {
        let Some(open) = self.open.get_mut(&tid) else { return };
        let function_of = &self.events.function_of;
        let is_of_it = |block: &Block| function_of.get(block.event) == Some(&function);
        let Some(position) = open.iter().rposition(is_of_it) else { return };
        // What it called has returned, seen or not.
        let block = open.drain(position..).next();
        if open.is_empty() {
            self.open.remove(&tid);
        }
        let Some(block) = block.filter(|_| address != 0) else { return };
        if self.live.len() < MOST_BLOCKS {
            self.live.insert((pid, address), block);
        } else {
            self.left_out += 1;
        }
    }

    /// Follows what happens to threads and their memory.
    pub(crate) fn apply(&mut self, kind: &EventKind<'_>) {
        match kind {
            EventKind::Exit { tid, .. } => _ = self.open.remove(tid),
            // Another program, with a memory of its own.
            EventKind::Comm { pid, exec: true, .. } => self.live.retain(|(of, _), _| of != pid),
            // A call that was not seen to allocate is as one that was not sampled.
            EventKind::Lost { event, .. } if *event >= self.events.function_of.len() => {
                self.open.clear();
                self.has_gaps = true;
            }
            _ => {}
        }
    }

    /// What was not freed so far, in the order in which it was allocated.
    pub(crate) fn live(&self) -> Vec<&Block> {
        let mut live: Vec<_> = self.live.iter().collect();
        live.sort_unstable_by_key(|(place, block)| (block.time, **place));
        live.into_iter().map(|(_, block)| block).collect()
    }

    /// How far their sum may be off, since they stand for others: one standard deviation.
    pub(crate) fn deviation(&self) -> f64 {
        let variance = |block: &Block| {
            (block.weight as f64).powi(2) * (1.0 - 1.0 / block.period.max(1) as f64)
        };
        self.live.values().map(variance).sum::<f64>().sqrt()
    }

    /// What the blocks are not.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> + '_ {
        let too_many = (self.left_out > 0).then(|| {
            format!("{} blocks were not followed: there were too many at once", self.left_out)
        });
        let gaps = self
            .has_gaps
            .then(|| "records were lost: some of what is shown may have been freed".to_owned());
        too_many.into_iter().chain(gaps)
    }
}

impl Block {
    pub(crate) fn of(sample: &SampleEvent<'_>, time: Nanos, bytes: u64) -> Block {
        Block {
            stack: Arc::default(),
            event: sample.event,
            weight: sample.period.saturating_mul(bytes),
            period: sample.period,
            time,
            cpu: sample.cpu,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PID: Pid = Pid(7);
    const TID: Tid = Tid(8);
    const MALLOC: usize = 0;
    const REALLOC: usize = 1;

    fn entered(blocks: &mut Blocks, function: usize, weight: u64) {
        let time = Nanos(weight);
        let stack = Wait::default();
        let block = Block { stack, event: function, weight, period: 2, time, cpu: None };
        blocks.entered(TID, block);
    }

    fn weights(blocks: &Blocks) -> Vec<u64> {
        blocks.live().iter().map(|block| block.weight).collect()
    }

    fn freed(blocks: &mut Blocks, address: u64) {
        blocks.live.remove(&(PID, address));
    }

    /// One of two was sampled: each that was seen may be none or two.
    #[test]
    fn what_blocks_stand_for_is_as_uncertain_as_they_are_few() {
        let mut blocks = Blocks::new(BlockEvents { function_of: vec![0, 1] });
        for address in 1..=8 {
            entered(&mut blocks, MALLOC, 100);
            blocks.returned(PID, TID, MALLOC, address);
        }
        assert!((blocks.deviation() - 200.0).abs() < 1e-9, "{}", blocks.deviation());
    }

    #[test]
    fn what_is_freed_is_gone_and_what_failed_never_was() {
        let mut blocks = Blocks::new(BlockEvents { function_of: vec![0, 1] });
        entered(&mut blocks, MALLOC, 10);
        blocks.returned(PID, TID, MALLOC, 0x1000);
        entered(&mut blocks, MALLOC, 20);
        blocks.returned(PID, TID, MALLOC, 0x2000);
        entered(&mut blocks, MALLOC, 30);
        blocks.returned(PID, TID, MALLOC, 0);
        // One that was not sampled.
        blocks.returned(PID, TID, MALLOC, 0x3000);
        assert_eq!(weights(&blocks), [10, 20]);
        freed(&mut blocks, 0x1000);
        assert_eq!(weights(&blocks), [20]);
        let name = Vec::new();
        blocks.apply(&EventKind::Comm { pid: PID, tid: TID, name, exec: true });
        assert!(blocks.live().is_empty());
    }

    #[test]
    fn a_function_that_calls_another_one_has_the_block() {
        let mut blocks = Blocks::new(BlockEvents { function_of: vec![0, 1] });
        entered(&mut blocks, REALLOC, 10);
        entered(&mut blocks, MALLOC, 11);
        blocks.returned(PID, TID, MALLOC, 0x1000);
        blocks.returned(PID, TID, REALLOC, 0x1000);
        assert_eq!(weights(&blocks), [10]);
        assert!(blocks.open.is_empty());
        // The return of what it called was not seen.
        entered(&mut blocks, REALLOC, 20);
        entered(&mut blocks, MALLOC, 21);
        blocks.returned(PID, TID, REALLOC, 0x2000);
        assert_eq!(weights(&blocks), [10, 20]);
        assert!(blocks.open.is_empty());
    }

    #[test]
    fn lost_records_are_told_and_leave_nothing_open() {
        let mut blocks = Blocks::new(BlockEvents { function_of: vec![0, 1] });
        assert_eq!(blocks.notes().count(), 0);
        entered(&mut blocks, MALLOC, 10);
        blocks.apply(&EventKind::Lost { event: 1, count: 3 });
        assert_eq!((blocks.notes().count(), blocks.open.len()), (0, 1));
        blocks.apply(&EventKind::Lost { event: 2, count: 3 });
        blocks.returned(PID, TID, MALLOC, 0x1000);
        assert!(blocks.live().is_empty());
        assert_eq!(blocks.notes().count(), 1);
    }
}
