//! A recording, from its events to its profile.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flame_events::{EventKind, EventSource};
use flame_profile::{Health, Hz, Meta, Nanos, Profile, whole};
use flame_sampler::{Privilege, Rate, SamplerError, Sessions, Target};

use crate::SharedFiles;
use crate::accounting::{ProcessTimes, Sampled, Tally};
use crate::aggregator::Rows;
use crate::collector::{Collector, SOON, SeenImage};
use crate::config::{BlockEvents, EVENT_VALUE, Options, RecorderConfig, Stream};
use crate::jit::JitTarget;
use crate::naming;
use crate::proc::all_processes;
use crate::symbolizer::Symbolizer;

/// Events in, a profile out.
///
/// ```no_run
/// use std::time::Duration;
///
/// use flame_profile::Pid;
/// use flame_recorder::{Recorder, RecorderConfig};
/// use flame_sampler::Target;
///
/// let config = RecorderConfig::new(Target::Processes(vec![Pid(4242)]));
/// let mut recorder = Recorder::start(config)?;
/// while recorder.samples() < 1000 {
///     recorder.poll(Duration::from_millis(100))?;
/// }
/// let profile = recorder.finish()?;
/// assert!(profile.health.samples >= 1000);
/// # Ok::<(), flame_sampler::SamplerError>(())
/// ```
#[derive(Debug)]
pub struct Recorder<S: EventSource = Sessions> {
    source: S,
    stream: Stream,
    files: SharedFiles,
    collector: Collector,
    symbolizer: Symbolizer,
    /// How many lost records LOST records have reported.
    lost: u64,
    /// What a file says of the whole recording.
    lost_in_all: u64,
    shows_idle: bool,
    adds_up: bool,
    meta: Meta,
    started: Instant,
    stopped: Option<Instant>,
    /// All rows, once nothing is read of processes any more.
    rows: Option<(Rows, Health)>,
    /// What the source knows besides its events.
    ask: fn(&S) -> Tally,
    times: ProcessTimes,
    looked_at: Instant,
    /// The same, from when sampling had stopped.
    tally: Option<Tally>,
}

/// How many processes are looked at for interpreters before the recording starts.
const MOST_LOOKED_AT: usize = 64;

/// How often it is looked at what CPU time processes have had that may end. It takes 10 us each.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// What is left of a recording.
#[derive(Debug)]
pub struct Finished<S> {
    /// The profile.
    pub profile: Profile,
    /// Where its events came from.
    pub source: S,
    /// The CPU times of the target's processes.
    pub times: ProcessTimes,
}

impl Recorder {
    /// Opens the events of a target, and starts them.
    ///
    /// # Errors
    /// The events cannot be opened.
    pub fn start(config: RecorderConfig) -> Result<Recorder, SamplerError> {
        Recorder::start_after(config, |_| {})
    }

    /// The same; `is_set_up` is called when everything is open that takes rights, and before there
    /// are threads that would have them: the readers of the CPUs.
    ///
    /// # Errors
    /// The events cannot be opened.
    pub fn start_after(
        config: RecorderConfig,
        is_set_up: impl FnOnce(&Sessions),
    ) -> Result<Recorder, SamplerError> {
        let RecorderConfig { sampler, others, options } = config;
        let source = Sessions::open(&sampler, &others)?;
        let mut stream = Stream::from(&source);
        if let Some(waits) = options.waits {
            if source.all().iter().any(|session| session.privilege() != Privilege::All) {
                return Err(SamplerError::Denied { what: "context switches", level: Some(1) });
            }
            stream = stream.of_waits(waits);
        }
        if options.spans {
            stream.others.clear();
        }
        if let Some(BlockEvents { function_of }) = &options.blocks {
            stream.others.truncate(function_of.len().saturating_sub(1));
        }
        let is_named = options.value.is_some();
        stream.value = options.value.clone().unwrap_or(stream.value);
        let mut recorder = Recorder::of_source(source, stream, options);
        // Once events are open: what is mapped between then and now is in the records, too.
        recorder.enter_existing(&sampler.target);
        is_set_up(&recorder.source);
        // Not before: on a machine with thousands of processes that takes seconds.
        recorder.source.begin()?;
        recorder.begin_time();
        recorder.begin_waits(&sampler.target);
        recorder.ask = Tally::of_sessions;
        let taken = &recorder.source.first().taken().processes;
        recorder.times = ProcessTimes::begin(&sampler, taken);
        let (frequency, period) = match recorder.source.first().rate() {
            Rate::Frequency(Hz(hz)) if recorder.stream.is_clock => {
                (Some(Hz(hz)), Some(1_000_000_000 / hz.max(1)))
            }
            Rate::Frequency(frequency) => (Some(frequency), None),
            Rate::Period(period) => (None, Some(period)),
        };
        let sessions = recorder.source.all().iter();
        let names: Vec<String> = sessions.map(|session| session.event().to_string()).collect();
        let event = Some(names.join(", "));
        recorder.meta = Meta { event, frequency, period, ..recorder.meta };
        if recorder.collector.measures_time() || is_named {
            let event = Some(recorder.stream.value.name.clone());
            recorder.meta = Meta { event, frequency: None, period: None, ..recorder.meta };
        }
        Ok(recorder)
    }

    /// Takes in which threads of a target that was named are waiting already.
    fn begin_waits(&mut self, target: &Target) {
        let only = match target {
            Target::Threads(tids) => Some(tids.as_slice()),
            _ => None,
        };
        let now = self.source.now().unwrap_or_default();
        self.collector.begin_waits(now, &self.source.first().taken().processes, only);
    }

    fn enter_existing(&mut self, target: &Target) {
        let pids = match target {
            _ if self.source.see_all() => all_processes(),
            Target::System => all_processes(),
            Target::Processes(_) | Target::Threads(_) => {
                self.source.first().taken().processes.clone()
            }
            Target::Cgroup(group) => group.processes(),
            Target::Launched(_) => Vec::new(),
        };
        pids.into_iter().for_each(|pid| self.collector.enter(pid));
        // Of processes that were named, the first sample is to be read already.
        if let Target::Processes(_) | Target::Threads(_) = target {
            let named = self.source.first().taken().processes.clone();
            let few = named.into_iter().take(MOST_LOOKED_AT);
            let now = self.source.now().unwrap_or_default();
            few.for_each(|pid| self.collector.look_for_interpreter(pid, now));
        }
    }
}

impl<S: EventSource> Recorder<S> {
    /// A recorder of events from any source; `stream` says what they are.
    pub fn of_source(source: S, stream: Stream, options: Options) -> Recorder<S> {
        let collector = Collector::new(&stream, &options);
        let symbolizer = Symbolizer::new(&options);
        let (files, shows_idle, adds_up) = (options.files, options.shows_idle, options.adds_up);
        Recorder {
            source,
            stream,
            files,
            collector,
            symbolizer,
            lost: 0,
            lost_in_all: 0,
            shows_idle,
            adds_up,
            meta: Meta::default(),
            started: Instant::now(),
            stopped: None,
            rows: None,
            ask: |_| Tally::default(),
            times: ProcessTimes::Unknown,
            looked_at: Instant::now(),
            tally: None,
        }
    }

    fn begin_time(&mut self) {
        self.started = Instant::now();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.meta.start = Some(Nanos::from(since_1970));
    }

    /// Leaves addresses in the kernel without names: the events are of another kernel than the one
    /// that runs.
    pub fn leave_kernel_unnamed(&mut self) {
        self.symbolizer.has_other_kernel();
    }

    /// Where the events come from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// What they are.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// How many samples have been taken in so far.
    pub fn samples(&self) -> u64 {
        self.collector.samples()
    }

    /// How many lost records LOST records have reported so far.
    pub fn lost_records(&self) -> u64 {
        self.lost
    }

    /// How many tasks have ended so far.
    pub fn ended_tasks(&self) -> u64 {
        self.collector.ended_tasks()
    }

    /// Waits for events, at most that long, and takes in what there is. Call it often: what the kernel
    /// has no room for is lost.
    ///
    /// # Errors
    /// The source cannot go on.
    pub fn poll(&mut self, timeout: Duration) -> Result<(), S::Error> {
        let timeout = if self.collector.is_to_look_soon() { timeout.min(SOON) } else { timeout };
        self.source.wait(timeout);
        if self.looked_at.elapsed() >= BETWEEN_LOOKS {
            self.look_at_times();
        }
        self.drain()
    }

    fn look_at_times(&mut self) {
        self.times.look();
        self.looked_at = Instant::now();
    }

    fn drain(&mut self) -> Result<(), S::Error> {
        self.collector.look_at_jit_code();
        let (collector, lost, in_all) =
            (&mut self.collector, &mut self.lost, &mut self.lost_in_all);
        self.source.drain(&mut |event| {
            match event.kind {
                EventKind::Lost { count, .. } => *lost += count,
                EventKind::LostInAll { count } => *in_all += count,
                _ => {}
            }
            collector.take(event);
        })?;
        if self.stopped.is_none() {
            collector.look_at_waiting(|| self.source.now().unwrap_or_default());
        }
        Ok(())
    }

    /// The profile so far; the recording goes on. Samples of code that its runtime has not written down
    /// yet are left for later.
    ///
    /// # Errors
    /// The source cannot go on.
    pub fn snapshot(&mut self) -> Result<Profile, S::Error> {
        self.drain()?;
        self.look_at_times();
        let (rows, health) = self.collector.rows_so_far();
        Ok(self.named(&rows, health))
    }

    /// Ends sampling, and takes in the rest. The recording is complete then, but not yet symbolized.
    ///
    /// # Errors
    /// The source cannot go on.
    pub fn stop(&mut self) -> Result<(), S::Error> {
        if self.stopped.is_none() {
            self.source.stop();
            let now = self.source.now();
            self.stopped = Some(Instant::now());
            self.look_at_times();
            self.drain()?;
            self.collector.end_waits(now);
            self.tally = Some(self.look());
        }
        Ok(())
    }

    fn look(&self) -> Tally {
        let mut tally = (self.ask)(&self.source);
        tally.accounted = self.times.at_least(tally.accounted);
        if self.collector.measures_time() { tally.of_waits() } else { tally }
    }

    /// The CPU time that the kernel accounted to the target until sampling stopped; `None` where
    /// that is not known.
    pub fn accounted(&self) -> Option<Nanos> {
        self.tally.as_ref().and_then(|tally| tally.accounted)
    }

    /// The processes that ran code without a file.
    pub fn jit_targets(&self) -> Vec<JitTarget> {
        self.collector.jit_targets()
    }

    /// Reads what running processes and the kernel say about code, after which no rights beyond
    /// those for reading files are of any use. Call it when the recording is stopped.
    pub fn read_processes(&mut self) {
        if self.rows.is_none() {
            self.rows = Some(self.collector.last_rows());
            self.symbolizer.open_kernel();
            self.files.recording_is_over();
        }
    }

    /// Where names of generated code could have come from, and why they were not believed;
    /// after [`Recorder::read_processes`].
    pub fn refused_code(&self) -> Vec<String> {
        self.collector.locator().jit.refused()
    }

    /// The images that stacks have, after [`Recorder::read_processes`].
    pub fn images(&self) -> Vec<SeenImage<'_>> {
        self.rows.as_ref().map_or_else(Vec::new, |(rows, _)| self.collector.images(rows))
    }

    /// Ends the recording, and gives its profile.
    ///
    /// # Errors
    /// The source cannot go on.
    pub fn finish(self) -> Result<Profile, S::Error> {
        self.finish_whole().map(|finished| finished.profile)
    }

    /// The same, with the source of the events and the times of the target.
    ///
    /// # Errors
    /// The source cannot go on.
    pub fn finish_whole(mut self) -> Result<Finished<S>, S::Error> {
        self.stop()?;
        self.read_processes();
        let (rows, health) = self.rows.take().unwrap_or_else(|| self.collector.last_rows());
        let profile = self.named(&rows, health);
        Ok(Finished { profile, source: self.source, times: self.times })
    }

    fn named(&mut self, rows: &Rows, health: Health) -> Profile {
        let code = self.collector.locator();
        self.symbolizer.look_up(&rows.stacks, code);
        let mut profile = Profile::new(self.stream.value_types());
        profile.default_value = self.stream.default_value();
        let end = self.stopped.unwrap_or_else(Instant::now);
        let duration = end.saturating_duration_since(self.started);
        profile.meta = Meta { duration: Some(Nanos::from(duration)), ..self.meta.clone() };
        profile.health = Health { lost_records: self.lost.max(self.lost_in_all), ..health };
        naming::name_all(rows, &self.collector, &self.symbolizer, &mut profile);
        let tally = self.tally.clone().unwrap_or_else(|| self.look());
        let (time, counted) = (self.collector.sampled_time(), self.collector.counted());
        let (sampled, mut scripts) =
            (Sampled { time, counted, adds_up: self.adds_up }, rows.scripts.clone());
        tally.complete(sampled, &mut scripts, &mut profile);
        // Of several values each would have a share of its own.
        let is_one =
            self.adds_up || self.stream.others.is_empty() || self.collector.measures_time();
        let value = is_one.then(|| self.stream.shown_value()).flatten();
        scripts.tell(value, &mut profile.health);
        if let Some(deviation) = self.collector.deviation_of_blocks() {
            profile.health.standard_error = whole(deviation);
        }
        if self.shows_idle {
            tally.add_idle(&mut profile);
        }
        let shown = Nanos(profile.total(EVENT_VALUE).0);
        profile.health.off_cpu = self.collector.waits(self.stopped.and(Some(shown)));
        profile.runs = self.collector.runs();
        profile
    }
}

#[cfg(test)]
mod tests;
