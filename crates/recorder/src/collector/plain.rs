//! Samples that are call chains and nothing else, and stand for what they say themselves: what is known of
//! [`Chains`] is enough for most.

use flame_events::SampleEvent;
use flame_profile::{Evidence, Nanos, StackEnd};

use super::Collector;
use crate::aggregator::{Moment, SeenStack};
use crate::chains::Chains;
use crate::config::{Options, ScriptFrames, Stream};

impl Collector {
    /// Takes in a sample of a chain whose frames need no closer look; whether it is one.
    pub(super) fn take_chain(&mut self, time: Nanos, sample: &SampleEvent<'_>) -> bool {
        let Some(mut chains) = self.chains.take() else { return false };
        let is_plain = sample.user_registers.is_none() && sample.tracepoint.is_none();
        let end = is_plain.then(|| chains.put(sample, self.walker.max_depth(), &self.locator));
        if let Some(end) = end.flatten() {
            self.began.get_or_insert(time);
            self.short_tasks.saw(sample.tid);
            self.samples += 1;
            let (pid, tid) = (sample.pid, sample.tid);
            let thread = chains.thread(pid, tid, || self.thread_of(pid, tid));
            let period = self.weight_of(sample);
            self.sampled.0 += if pid.0 == 0 { 0 } else { period };
            let moment = self.moment(time, sample.cpu);
            let add = (sample.event, period, moment);
            self.add_chain(&mut chains, thread, end, add);
        }
        self.chains = Some(chains);
        end.flatten().is_some()
    }

    fn add_chain(
        &mut self,
        chains: &mut Chains,
        thread: usize,
        end: StackEnd,
        (event, period, moment): (usize, u64, Moment),
    ) {
        let met = chains.met();
        if let Some(met) = &met
            && met.row.0 == thread
        {
            return self.aggregator.add_to_row(met.row.1, end, (event, period, moment));
        }
        let known = met.map(|met| met.stack);
        let stack = known.unwrap_or_else(|| self.aggregator.stack(chains.path()));
        let seen = SeenStack { thread, stack, end: (end, Evidence::Copied), script: None };
        let row = self.aggregator.add(seen, event, period, moment);
        match chains.met() {
            Some(met) => met.row = (thread, row),
            None if self.aggregator.is_full() => {}
            None => chains.meet(stack, (thread, row)),
        }
    }
}

/// Whether samples stand for what they say themselves, and have nothing but call chains.
pub(super) fn are_plain(stream: &Stream, options: &Options) -> bool {
    let Options { waits, spans, arguments, blocks, growth, scripts, keeps_runs, .. } = options;
    let is_measured = waits.is_some() || *spans || *growth || *keeps_runs || blocks.is_some();
    let has_scripts = !matches!(scripts, ScriptFrames::Hidden);
    stream.has_user
        && stream.user_registers == 0
        && arguments.is_empty()
        && !is_measured
        && !has_scripts
}
