//! A file into a profile.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flame_events::{Endianness, Event, EventKind, EventSource, Processes, Sampling};
use flame_profile::{ByteLen, Cpu, Hz, Nanos, Pid, Profile, Tid, ValueType};
use flame_recorder::{
    Absent, DebugPlaces, EVENT_VALUE, LiveFiles, Options, Recorder, SAMPLES_VALUE, Stream,
};
use flame_symbolize::SymbolizeConfig;

use crate::PerfDataError;
use crate::bytes::ReadAt;
use crate::files::{RecordedFiles, Written};
use crate::machine::is_this_kernel;
use crate::notes;
use crate::recorded_events::RecordedEvent;
use crate::source::{Left, PerfData};

/// Where the names of a recording's code are looked for.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Where debug files are, besides the usual places.
    pub debug_places: DebugPlaces,
    /// How names are looked up.
    pub symbols: SymbolizeConfig,
    /// The directory that has the files of the recorded machine, as its `/`.
    pub sysroot: Option<PathBuf>,
    /// The way to files of this machine: the file may name some that never answer.
    pub files: LiveFiles,
}

impl Names {
    /// Directories of this machine, whatever the sysroot.
    pub(crate) fn own_directories(&self) -> Vec<PathBuf> {
        let DebugPlaces { directories, cache, .. } = &self.debug_places;
        directories.iter().chain(cache).cloned().collect()
    }
}

/// A sample, for who takes some of them.
#[derive(Clone, Copy, Debug)]
pub struct SampleOf<'s> {
    /// When it was taken, on the recording's clock.
    pub time: Nanos,
    /// The process that ran.
    pub pid: Pid,
    /// The thread that ran.
    pub tid: Tid,
    /// What that is called then.
    pub thread: Option<&'s str>,
    /// What its process is called.
    pub process: Option<&'s str>,
    /// The CPU, where samples say it.
    pub cpu: Option<Cpu>,
}

/// Whether a sample is taken.
pub type Takes<'t> = Box<dyn FnMut(SampleOf<'_>) -> bool + 't>;

/// How a file is read. The default takes all samples.
#[derive(Default)]
pub struct ReadConfig<'t> {
    /// The event whose samples are taken; `None` = all that make some, each a value of the profile. Those
    /// whose stacks are recorded in another way than those of the first are left out.
    pub event: Option<String>,
    /// Which of its samples are taken; `None` = all.
    pub takes: Option<Takes<'t>>,
    /// The other files of a directory that `perf record --threads` wrote.
    pub parts: Vec<Box<dyn ReadAt + 't>>,
    /// Whether the profile says of each sample when it was taken.
    pub keeps_times: bool,
    /// What is known of the file itself.
    pub written: Written,
    /// Where names are looked for.
    pub names: Names,
}

impl std::fmt::Debug for ReadConfig<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadConfig").field("event", &self.event).finish_non_exhaustive()
    }
}

/// What a file holds.
#[derive(Clone, Debug)]
pub struct ReadProfile {
    /// The profile.
    pub profile: Profile,
    /// What a user should know of it, as sentences.
    pub notes: Vec<String>,
    /// What of the file is not in it.
    pub left: Left,
}

/// Reads a file and names what it has.
///
/// # Errors
/// It cannot be read, or lacks what is asked for.
pub fn read_profile<'t>(
    input: Box<dyn ReadAt + 't>,
    mut config: ReadConfig<'t>,
) -> Result<ReadProfile, PerfDataError> {
    let mut file = PerfData::open(input)?;
    if file.facts().is_directory {
        file.add_parts(config.parts.drain(..));
    }
    if let Some(asked) = &config.event {
        file.choose(asked)?;
    }
    if !is_of_this_architecture(&file) {
        file.leave_out_registers();
    }
    let stream = stream_of(&file);
    let clock = file.values().first().and_then(|(event, _)| event.attributes.clock);
    let ReadConfig { takes, written, names, keeps_times, .. } = config;
    let own_directories = names.own_directories();
    let files = RecordedFiles {
        facts: file.facts().clone(),
        written,
        live: names.files,
        sysroot: names.sysroot,
        own_directories,
        clock,
        unproven: Arc::new(AtomicU64::new(0)),
    };
    let debug_places = names.debug_places.clone();
    let options = Options {
        files: Arc::new(files.clone()),
        memory: Arc::new(Absent),
        debug_places: names.debug_places,
        symbols: names.symbols,
        keeps_times,
        ..Options::default()
    };
    let source = Taken { file, takes, tasks: Processes::default(), left_out: 0, span: None };
    let mut recorder = Recorder::of_source(source, stream, options);
    recorder.stop()?;
    let file = &recorder.source().file;
    if !is_this_kernel(file.facts(), file.kernel()) {
        recorder.leave_kernel_unnamed();
    }
    let finished = recorder.finish_whole()?;
    let (mut profile, source) = (finished.profile, finished.source);
    let mut said = notes::of_file(&source.file)?;
    said.extend(notes::of_places(&files, files.unproven.load(Ordering::Relaxed)));
    said.extend(files.live.notes().into_iter().chain(debug_places.note()));
    said.extend(notes::of_names(&profile));
    // Where none is left, readers say so.
    if source.left_out > 0 && profile.health.samples > 0 {
        said.push(format!(
            "{} samples did not match the options and were left out",
            source.left_out
        ));
    }
    describe(&mut profile, &source);
    show_first_with_samples(&mut profile, &source.file);
    Ok(ReadProfile { profile, notes: said, left: source.file.left() })
}

/// Whether registers mean what they mean here.
fn is_of_this_architecture(file: &PerfData<'_>) -> bool {
    let architecture = file.facts().architecture.as_deref();
    file.endian() == Endianness::NATIVE
        && architecture.is_none_or(|name| name == std::env::consts::ARCH)
}

/// What the samples are.
fn stream_of(file: &PerfData<'_>) -> Stream {
    let events = file.values();
    let has_registers = is_of_this_architecture(file);
    let first = events.first().map(|(event, _)| *event);
    let fields = first.map(|event| event.layout.fields()).unwrap_or_default();
    let mut values = events.iter().map(|(event, _)| event.value_type(events.len() == 1));
    Stream {
        value: values.next().unwrap_or_else(ValueType::samples),
        others: values.collect(),
        is_clock: first.is_none_or(RecordedEvent::is_clock),
        has_user: true,
        user_registers: if has_registers { fields.user_registers } else { 0 },
        stack_copy: ByteLen(fields.user_stack.into()),
    }
}

/// Has the first event shown that has samples.
fn show_first_with_samples(profile: &mut Profile, file: &PerfData<'_>) {
    let values = file.values();
    let first = values.iter().position(|(_, samples)| *samples > 0).filter(|first| *first > 0);
    if let Some(first) = first {
        // Of each the number of samples comes before what they stand for.
        let is_clock = values[first].0.is_clock();
        profile.default_value = 2 * first + if is_clock { SAMPLES_VALUE } else { EVENT_VALUE };
    }
}

/// What is known of how the profile was taken.
fn describe(profile: &mut Profile, source: &Taken<'_, '_>) {
    let facts = source.file.facts();
    let meta = &mut profile.meta;
    let events = source.file.events();
    let chosen: Vec<_> =
        events.filter(|(_, value)| value.is_some()).map(|(event, _)| event).collect();
    let names: Vec<&str> = chosen.iter().map(|event| event.name.as_str()).collect();
    meta.event = Some(names.join(", "));
    (meta.frequency, meta.period) = match chosen.first().map(|e| (e.attributes.sampling, e)) {
        Some((Sampling::Frequency(hz), event)) => {
            let period = event.is_clock().then(|| 1_000_000_000 / hz.max(1));
            (Some(Hz(hz)), period)
        }
        Some((Sampling::Period(period), _)) => (None, Some(period)),
        None => (None, None),
    };
    let (first, last) = source.span.unwrap_or_default();
    meta.duration = source.span.map(|_| last.saturating_since(first));
    meta.start =
        facts.clock.map(|(day, clock)| Nanos(day.wrapping_add(first.0).wrapping_sub(clock)));
    meta.host = facts.host.clone();
    meta.producer = facts.perf.as_ref().map(|version| format!("perf {version}"));
    meta.command = (!facts.command.is_empty()).then(|| facts.command.join(" "));
}

/// The events of a file without the samples that are not asked for.
struct Taken<'s, 't> {
    file: PerfData<'s>,
    takes: Option<Takes<'t>>,
    /// What threads are called.
    tasks: Processes,
    left_out: u64,
    /// When the first and the last sample were taken.
    span: Option<(Nanos, Nanos)>,
}

impl EventSource for Taken<'_, '_> {
    type Error = PerfDataError;

    fn drain(&mut self, sink: &mut dyn FnMut(Event<'_>)) -> Result<(), PerfDataError> {
        let Taken { file, takes, tasks, left_out, span } = self;
        file.drain(&mut |event| {
            match &event.kind {
                EventKind::Sample(sample) => {
                    let (first, _) = *span.get_or_insert((event.time, event.time));
                    *span = Some((first, event.time));
                    let Some(takes) = takes else { return sink(event) };
                    let name = |tid| tasks.thread_name(tid).map(|name| &**name);
                    let taken = takes(SampleOf {
                        time: event.time,
                        pid: sample.pid,
                        tid: sample.tid,
                        thread: name(sample.tid),
                        process: name(Tid(sample.pid.0)),
                        cpu: sample.cpu,
                    });
                    if !taken {
                        *left_out += 1;
                        return;
                    }
                }
                EventKind::Comm { .. } | EventKind::Fork { .. } | EventKind::Exit { .. } => {
                    tasks.apply(event.time, &event.kind);
                }
                _ => {}
            }
            sink(event);
        })
    }
}
