//! Events in, distinct stacks with their weights out.
//!
//! What a sample copied is unwound at once and thrown away: only addresses stay, and of those each
//! distinct stack once. Names are looked up when the recording is over.
use std::collections::BTreeMap;
use std::sync::Arc;

use flame_events::{Event, EventKind, ImageKey, SampleEvent};
use flame_image::ImageFile;
use flame_profile::{Cpu, Evidence, Health, Nanos, Pid, ProcessAddress, StackEnd, Tid};

use crate::accounting::Counted;
use crate::aggregator::{
    Aggregator, Moment, Rows, SeenStack, ThreadKey, Wait, kernel_addresses, samples_by_image,
};
use crate::arguments::Argument;
use crate::blocks::Blocks;
use crate::chains::Chains;
use crate::config::{Options, Stream};
use crate::growth::Growth;
use crate::images::OpenImage;
use crate::jit::{Deferred, DeferredSample, JitTarget};
use crate::joined::Natives;
use crate::location::CodeLocation;
use crate::locator::Locator;
use crate::off_cpu::OffCpu;
use crate::on_cpu::{OnCpu, Ran};
use crate::scripted::Scripted;
use crate::scripts::Scripts;
use crate::short_tasks::ShortTasks;
use crate::spans::Spans;
use crate::wakings::Wakings;
use crate::walker::Walker;
pub(crate) use looks::SOON;

mod looks;
mod plain;
mod waits;

/// What the kernel writes for the numbers of a task that has given them up and still runs, in the
/// kernel, to its end.
const GIVEN_UP: u32 = u32::MAX;

/// The number of all idle tasks.
const IDLE_TASK: Tid = Tid(0);

/// An image that samples have hit.
#[derive(Clone, Copy, Debug)]
pub struct SeenImage<'r> {
    /// What the kernel says of it.
    pub key: &'r ImageKey,
    /// How many samples' user stacks it is in.
    pub samples: u64,
    /// Its file, if it could be opened.
    pub file: Option<&'r ImageFile>,
}

/// Takes events one by one.
#[derive(Debug)]
pub(crate) struct Collector {
    locator: Locator,
    walker: Walker,
    health: Health,
    now: Nanos,
    aggregator: Aggregator,
    deferred: Deferred,
    unknown_name: Arc<str>,
    /// What the kernel calls the idle tasks, of which /proc says nothing.
    idle_name: Arc<str>,
    /// The name of a thread that is so far gone that it has no number any more.
    exiting_name: Arc<str>,
    short_tasks: ShortTasks,
    scripts: Scripts,
    /// Where samples stand for time off CPU.
    off_cpu: Option<OffCpu<Wait>>,
    looks: looks::Looks,
    /// Where it is followed who has a CPU.
    on_cpu: Option<OnCpu>,
    /// For how long threads, by position, had a CPU.
    ran: BTreeMap<usize, u64>,
    /// When they had one, where that is kept; `None` when there was too much of it.
    runs: Option<Vec<Ran>>,
    /// Waits that are over, of samples that are not settled.
    unsettled: Vec<waits::Waited>,
    /// Where samples of who wakes threads are paired with waits.
    wakings: Option<Wakings>,
    samples: u64,
    /// What samples that are not of waits stand for, all together.
    sampled: Nanos,
    /// For how many occurrences samples stand, by event.
    counted: Vec<Counted>,
    /// Where samples stand for the time between two events.
    spans: Option<Spans<Wait>>,
    /// Of how many events samples are.
    events: usize,
    keeps_times: bool,
    /// The time of the first sample.
    began: Option<Nanos>,
    /// What samples of each weigh, where that is an argument of a function.
    arguments: Vec<Argument>,
    /// Where samples stand for how far heaps have grown.
    growth: Option<Growth>,
    /// Where only those stay whose blocks were not freed.
    blocks: Option<Blocks>,
    /// The registers that samples have.
    registers: u64,
    /// Where samples of chains stand for nothing else than being one: what is known of those.
    chains: Option<Box<Chains>>,
}

impl Collector {
    pub(crate) fn new(stream: &Stream, options: &Options) -> Collector {
        let follows_runs = options.keeps_runs || options.waits.is_some_and(|all| all.with_running);
        Collector {
            locator: Locator::new(options),
            walker: Walker::new(stream, options),
            health: Health::default(),
            now: Nanos(0),
            aggregator: Aggregator::new(stream.values().count(), options.keeps_times),
            keeps_times: options.keeps_times,
            began: None,
            events: stream.values().count(),
            deferred: Deferred::default(),
            unknown_name: "[unknown]".into(),
            idle_name: "swapper".into(),
            exiting_name: "[exiting]".into(),
            short_tasks: ShortTasks::default(),
            scripts: Scripts::new(options),
            off_cpu: options.waits.map(OffCpu::new),
            on_cpu: follows_runs.then(OnCpu::default),
            ran: BTreeMap::new(),
            runs: Some(Vec::new()),
            looks: looks::Looks::default(),
            unsettled: Vec::new(),
            wakings: options.waits.and_then(|waits| Wakings::new(waits, options.kernel_symbols)),
            samples: 0,
            sampled: Nanos(0),
            counted: Vec::new(),
            spans: options.spans.then(|| Spans::new(looks::lacks_callers)),
            arguments: options.arguments.clone(),
            growth: options.growth.then(Growth::default),
            blocks: options.blocks.clone().map(Blocks::new),
            registers: stream.user_registers,
            chains: plain::are_plain(stream, options).then(Box::default),
        }
    }

    /// Enters a process that ran before.
    pub(crate) fn enter(&mut self, pid: Pid) {
        self.locator.enter(pid);
    }

    /// Finds out whether a process that runs already has an interpreter, so that its first sample is read.
    pub(crate) fn look_for_interpreter(&mut self, pid: Pid, now: Nanos) {
        // A file that is younger than what is looked at would be another one than was mapped.
        self.locator.advance_to(now);
        let (_, unwinder) = self.walker.walked();
        for found in self.scripts.named_so(pid, &self.locator) {
            self.locator.open(pid, &found, unwinder);
        }
        self.scripts.look_at(pid, &self.locator);
    }

    /// What code was found.
    pub(crate) fn locator(&self) -> &Locator {
        &self.locator
    }

    /// What is known of interpreted programs.
    pub(crate) fn scripts(&self) -> &Scripts {
        &self.scripts
    }

    /// Tasks that have ended so far.
    pub(crate) fn ended_tasks(&self) -> u64 {
        self.short_tasks.ended()
    }

    /// Samples taken in so far.
    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }

    /// For how many occurrences of each event samples stand.
    pub(crate) fn counted(&self) -> &[Counted] {
        &self.counted
    }

    /// The time that samples stood for when they were taken, where their threads' time on CPUs is
    /// known better.
    pub(crate) fn sampled_time(&self) -> Option<Nanos> {
        (self.on_cpu.is_some() && self.off_cpu.is_some()).then_some(self.sampled)
    }

    /// Takes in one event.
    pub(crate) fn take(&mut self, event: Event<'_>) {
        self.now = event.time;
        self.locator.apply(&event);
        self.scripts.apply(&event);
        self.follow_runs(&event.kind);
        match event.kind {
            EventKind::Sample(sample) => self.take_sample(event.time, &sample),
            EventKind::Throttle => self.health.throttled += 1,
            EventKind::Undecodable(error) => {
                tracing::debug!(%error, "record left out");
                self.health.undecodable_records += 1;
            }
            EventKind::Switch { pid, tid, to } => self.take_switch(pid, tid, to),
            kind => {
                self.growth.iter_mut().for_each(|growth| growth.apply(&kind));
                self.blocks.iter_mut().for_each(|blocks| blocks.apply(&kind));
                self.follow_waits(&kind);
                // Of those who wake others it does not matter.
                if self.wakings.is_none() {
                    self.short_tasks.apply(&kind);
                }
            }
        }
    }

    /// Looks at what runtimes have written about their code. Call it before events are taken in.
    pub(crate) fn look_at_jit_code(&mut self) {
        self.locator.jit.look();
        self.intern_settled(false);
    }

    /// What there is so far, and with which health; samples that wait for their runtime's log are
    /// not among it.
    pub(crate) fn rows_so_far(&mut self) -> (Rows, Health) {
        self.rows_of(self.aggregator.clone())
    }

    /// All rows, when all events were taken in.
    pub(crate) fn last_rows(&mut self) -> (Rows, Health) {
        self.locator.jit.finish();
        self.intern_settled(true);
        let nothing = Aggregator::new(self.events, self.keeps_times);
        let aggregator = std::mem::replace(&mut self.aggregator, nothing);
        // Stacks and threads have other numbers from here on.
        self.chains = self.chains.take().map(|_| Box::default());
        self.rows_of(aggregator)
    }

    fn rows_of(&mut self, mut aggregator: Aggregator) -> (Rows, Health) {
        self.add_running(&mut aggregator);
        self.add_blocks(&mut aggregator);
        self.locator.images.give_up_rewritten();
        let mut health = self.health.clone();
        let rows = aggregator.into_rows(&mut health);
        self.locator.jit_names = self.locator.jit.names();
        health.notes.extend(self.locator.notes.iter().cloned());
        health.notes.extend(self.locator.jit.note());
        health.notes.extend(self.blocks.iter().flat_map(Blocks::notes));
        health.notes.extend(self.locator.java.notes());
        health.short_tasks = self.short_tasks.unseen();
        if self.runs.is_none() {
            let note = "there were too many switches to keep when each thread had a CPU".to_owned();
            health.notes.push(note);
        }
        health.notes.extend(self.spans.iter().flat_map(Spans::notes));
        (rows, health)
    }

    /// The images that rows have, by number.
    pub(crate) fn images<'r>(&'r self, rows: &Rows) -> Vec<SeenImage<'r>> {
        let samples = samples_by_image(rows).into_iter();
        let seen = |(id, samples)| {
            let key = self.locator.processes.image(id)?;
            let file = match self.locator.images.get(id) {
                Some(OpenImage::File(file, _)) => Some(file),
                _ => None,
            };
            Some(SeenImage { key, samples, file })
        };
        samples.filter_map(seen).collect()
    }

    /// The processes that ran code without a file.
    pub(crate) fn jit_targets(&self) -> Vec<JitTarget> {
        let mut targets = self.locator.jit.targets();
        for target in &mut targets {
            target.is_read = self.locator.java.reads(target.pid);
        }
        targets
    }

    /// What a sample stands for: so many occurrences, or what a field of them adds up to. What is
    /// negative there is an error's number.
    fn weight_of(&mut self, sample: &SampleEvent<'_>) -> u64 {
        if self.counted.len() <= sample.event {
            self.counted.resize(sample.event + 1, Counted::default());
        }
        let each = match (self.arguments.get(sample.event), &mut self.growth) {
            (None, Some(growth)) => {
                let end = sample.tracepoint.map_or(0, i64::cast_unsigned);
                let moved = growth.moved(sample.pid, end);
                self.counted[sample.event].add(1, moved);
                return moved;
            }
            (Some(argument), _) => {
                let registers = sample.user_registers.as_deref().unwrap_or_default();
                argument.value(self.registers, registers).unwrap_or(0)
            }
            (None, None) => sample.tracepoint.map_or(1, |value| u64::try_from(value).unwrap_or(0)),
        };
        self.counted[sample.event].add(sample.period, each);
        sample.period.saturating_mul(each)
    }

    fn take_sample(&mut self, time: Nanos, sample: &SampleEvent<'_>) {
        if self.take_chain(time, sample) || self.is_edge(time, sample) || self.is_of_no_use(sample)
        {
            return;
        }
        self.began.get_or_insert(time);
        self.locator.enter_unknown(sample.pid);
        self.short_tasks.saw(sample.tid);
        let walked = self.walker.walk(sample, &mut self.locator, &mut self.health);
        let waits = self.wait(sample);
        self.take_walked(time, sample, walked, waits);
    }

    /// Takes in a sample whose stack the walker has walked just now.
    fn take_walked(
        &mut self,
        time: Nanos,
        sample: &SampleEvent<'_>,
        (end, evidence): (StackEnd, Evidence),
        waits: Option<Wait>,
    ) {
        let thread = self.thread_of(sample.pid, sample.tid);
        let waking = self.waking(thread, sample);
        let end = match waking.in_interrupt {
            Some(_) => StackEnd::NotRecorded,
            None => end,
        };
        let (frames, unwinder) = self.walker.walked();
        self.locator.locate_all(sample.pid, frames, unwinder);
        let (end, evidence) = self.end_of_fiber(evidence).unwrap_or((end, evidence));
        let (frames, _) = self.walker.walked();
        if end.is_truncated() {
            self.locator.count_cut(sample.pid, end, frames.last().copied(), &mut self.health);
        }
        self.samples += 1;
        let (locations, jit) = self.locator.located();
        let is_generated = jit.first().is_some_and(|(index, _)| *index == 0);
        if matches!(locations.first(), Some(CodeLocation::Unmapped(_))) && !is_generated {
            self.health.outside_mappings += 1;
        }
        let natives = Natives { registers: self.walker.registers(), end };
        let script = self.scripts.of_sample(sample, natives, &self.locator);
        let mark = end.is_truncated().then(|| mark_of(end));
        let marks = waking.mark.into_iter().chain(mark);
        let is_chain = sample.user_registers.is_none();
        let (mut path, jit) = match waking.in_interrupt {
            None => user_path(marks, (locations, jit), &script, is_chain),
            Some(_) => (waking.mark.into_iter().collect(), Vec::new()),
        };
        let of_interrupt = waking.in_interrupt.unwrap_or(usize::MAX);
        let in_kernel = kernel_addresses(sample.kernel_chain.iter().take(of_interrupt));
        match waits.is_some() && self.on_cpu.is_some() {
            true => path.extend(in_kernel.map(CodeLocation::Waiting)),
            false => path.extend(in_kernel.map(CodeLocation::Kernel)),
        }
        let SampleEvent { pid, event, cpu, .. } = *sample;
        let period = self.weight_of(sample);
        let end = (end, evidence);
        self.take_in(DeferredSample {
            time,
            cpu,
            pid,
            thread,
            path,
            jit,
            end,
            script: script.end,
            event,
            period,
            waits,
        });
    }

    /// Where a stack is that of a fiber it ends there, whatever was found beyond.
    fn end_of_fiber(&mut self, evidence: Evidence) -> Option<(StackEnd, Evidence)> {
        let len = self.scripts.fiber(&self.locator)?;
        self.walker.truncate(len);
        // Only code without a file is left by guesses.
        let may_be_guessed = self.locator.truncate(len) || evidence != Evidence::GuessedFrames;
        Some((StackEnd::Root, if may_be_guessed { evidence } else { Evidence::Copied }))
    }

    /// Samples of code that may be known better soon wait; the others need not.
    fn take_in(&mut self, sample: DeferredSample) {
        if !sample.jit.is_empty() && self.locator.jit.is_open(sample.pid, sample.time) {
            self.deferred.push(sample);
        } else {
            self.intern(sample);
        }
    }

    /// Takes in the samples of which nothing more will become known, or all of them.
    fn intern_settled(&mut self, all: bool) {
        loop {
            let jit = &self.locator.jit;
            let settled = |sample: &DeferredSample| all || !jit.is_open(sample.pid, sample.time);
            let Some(sample) = self.deferred.pop_if(settled) else { break };
            self.intern(sample);
        }
        self.add_settled_waits();
    }

    fn intern(&mut self, mut sample: DeferredSample) {
        for (position, address) in &sample.jit {
            let id =
                self.locator.jit.locate(sample.pid, *address, sample.time, &self.locator.processes);
            sample.path[*position] = CodeLocation::Jit(id);
        }
        let stack = self.aggregator.stack(sample.path.iter().copied());
        let DeferredSample { thread, end, script, .. } = sample;
        let seen = SeenStack { thread, stack, end, script };
        match sample.waits {
            Some(wait) => _ = wait.set(seen),
            None => {
                // Idle CPUs are sampled, too, and use no time of any thread.
                self.sampled.0 += if sample.pid.0 == 0 { 0 } else { sample.period };
                let moment = self.moment(sample.time, sample.cpu);
                self.aggregator.add(seen, sample.event, sample.period, moment);
            }
        }
    }

    /// A time on the clock of the events, as it is kept.
    fn moment(&self, time: Nanos, cpu: Option<Cpu>) -> Moment {
        let began = self.began.unwrap_or(time);
        Moment { time: time.saturating_since(began), cpu }
    }

    fn thread_of(&mut self, pid: Pid, tid: Tid) -> usize {
        let key = self.thread_key(pid, tid);
        self.aggregator.thread(key)
    }

    fn thread_key(&self, pid: Pid, tid: Tid) -> ThreadKey {
        let name = |tid| match self.locator.processes.thread_name(tid) {
            Some(name) if !name.is_empty() => name.clone(),
            _ if tid == IDLE_TASK => self.idle_name.clone(),
            _ if tid == Tid(GIVEN_UP) => self.exiting_name.clone(),
            _ => self.unknown_name.clone(),
        };
        let (name, process) = (name(tid), name(Tid(pid.0)));
        let pid = Some(pid).filter(|pid| pid.0 != GIVEN_UP);
        let tid = Some(tid).filter(|tid| tid.0 != GIVEN_UP);
        ThreadKey { name, process, pid, tid }
    }
}

/// The user frames of a stack, outermost first, below marks; and where in it code without a file is.
fn user_path(
    marks: impl Iterator<Item = CodeLocation>,
    (locations, jit): (&[CodeLocation], &[(usize, ProcessAddress)]),
    script: &Scripted,
    is_chain: bool,
) -> (Vec<CodeLocation>, Vec<(usize, ProcessAddress)>) {
    let mut path = Vec::with_capacity(16 + 2 * locations.len());
    path.extend(marks);
    let mut places = Vec::with_capacity(jit.len());
    for (index, location) in locations.iter().enumerate().rev() {
        let location = match location {
            // What a register that is not a frame pointer led to: another one in each sample.
            CodeLocation::Unmapped(_) if is_chain && index > 0 => CodeLocation::NoCaller,
            location => *location,
        };
        let before = path.len();
        path.extend(script.of_native(index, location));
        if let Some((_, address)) = jit.iter().find(|(jit, _)| *jit == index)
            && path.get(before) == Some(&location)
        {
            places.push((before, *address));
        }
    }
    (path, places)
}

/// What stands in place of the frames that are missing.
fn mark_of(end: StackEnd) -> CodeLocation {
    match end {
        StackEnd::FrameLimit => CodeLocation::BeyondMaxDepth,
        _ => CodeLocation::Truncated,
    }
}
