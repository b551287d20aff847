//! `flame record`: sample a target, name what was seen, write it down.

mod coverage;
mod debug_files;
mod explain;
mod names;
mod no_samples;
mod notes;
mod priority;
mod progress;
mod repeat;
mod runtime_notes;
mod signals;
mod summary;
mod target;

use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flame_events::{EventKind, EventSource};
use flame_profile::{Hz, Meta, Nanos, Profile};
use flame_recorder::{
    Collector, DebugPlaces, Hooks, Job, Sources, TargetFiles, host_name, open_kallsyms, value_names,
};
use flame_sampler::{
    DEFAULT_COUNTING_FREQUENCY, EventType, ExitReport, Privilege, Rate, SamplerConfig, Session,
    Target,
};
use flame_unwind::Architecture;

use crate::cli::{Cli, RecordArgs};
use crate::message::Failure;
use crate::message::sampler::failure;
use crate::output::{Defaults, Format, Outputs, Shown};
use crate::symbols;
use crate::terminal::Paint;
use crate::{java, message, privileges};
use progress::Progress;
use signals::StopSignals;
pub(crate) use summary::{footer, shortened};

/// How long to wait for the kernel at most between two looks at the clock and the target.
const LOOK: Duration = Duration::from_millis(100);

/// How long a launched program gets to end once the recording is over and it was asked to.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a recording is written to and as when nothing is asked for.
const DEFAULTS: Defaults = Defaults {
    path: "flame.svg",
    keeps_foreign: true,
    on_stdout: Format::Folded,
    is_recording: true,
};

/// Runs the command.
pub(crate) fn run(args: &RecordArgs, cli: &Cli) -> Result<ExitCode, Failure> {
    let number = args.sampling.run_number;
    if let (Some(times), None) = (args.sampling.repeat, number) {
        return repeat::run(times, args, cli);
    }
    // Before anything else, while there is one thread and nothing open.
    let job = args.sampling.java.then_some(java::serve as Job);
    let files = TargetFiles::start(Hooks { keep_rights_for: privileges::keep_for, job });
    // From here on Ctrl-C ends a recording and loses none.
    let signals = StopSignals::install()?;
    let mut named = args.output.clone();
    if let Some(number) = number {
        let numbered = |path| repeat::numbered(path, &number.to_string());
        named.output = named.output.iter().map(|path| numbered(path)).collect();
    }
    let outputs = Outputs::prepare(&named, &args.picture, cli, DEFAULTS)?;
    outputs.check_sums("a recording")?;
    let outputs = outputs.with_lines(args.symbols.lines);
    let on_stdout = outputs.uses_stdout();
    let mut target = target::Started::start(&args.target, &args.sampling, on_stdout, &files)?;
    if on_stdout && !args.target.command.is_empty() && !cli.quiet {
        message::warn(
            "the profile goes to stdout, so what the program prints there goes to stderr",
            cli.color,
        );
    }
    let result = record(args, cli, &outputs, &mut target, &Surroundings { signals, files });
    if result.is_err() {
        target.abandon();
    }
    let exit = result?;
    Ok(match exit {
        Some(report) if args.sampling.forward_exit => ExitCode::from(report.code()),
        _ => ExitCode::SUCCESS,
    })
}

/// Everything between a target that is ready and outputs on disk.
fn record(
    args: &RecordArgs,
    cli: &Cli,
    outputs: &Outputs,
    target: &mut target::Started,
    around: &Surroundings,
) -> Result<Option<ExitReport>, Failure> {
    let Surroundings { signals, files } = around;
    let config = sampler_config(args, target.target());
    let mut session = Session::open(&config).map_err(|error| failure(&error))?;
    outputs.check_value(&value_names(&session))?;
    let paint = Paint(cli.color.on_stderr());
    let notes = first_notes(args, target, &session);
    tell(&notes, cli);
    let told = notes.len();
    let places = debug_files::places(&args.symbols);
    let mut collector = collector(args, &session, files, &places);
    target.take(session.taken());
    target.enter_processes(collector.processes(), files);
    // Not before: on a machine with thousands of processes that takes seconds.
    session.begin().map_err(|error| failure(&error))?;
    let process_times = coverage::ProcessTimes::begin(&config, &session.taken().processes);
    let started = Moment::now();
    target.release().map_err(|error| failure(&error))?;
    let raised = priority::Raised::begin();
    privileges::keep_for_recording(&outputs.needed_capabilities(), || session.may_reopen());

    let progress = Progress::new(cli.quiet, paint);
    let Sampled { lost, end } =
        sample(args, &mut session, &mut collector, target, signals, progress)?;
    drop(raised);
    let duration = end.saturating_duration_since(started.clock);
    let ended_tasks = collector.ended_tasks();

    let accounted = process_times.at_least(session.accounted(), target.has_ended());
    let losses = session.losses();
    let meta = meta(&session, &started, duration, target.describe());
    tracing::info!("recording over");
    let mut notes = [notes, notes::of_refusals(&session)].concat();
    notes.extend(runtime_notes::name_jit_code(&mut collector, args.sampling.java, files));
    // Who may see addresses is asked when it is opened.
    let kallsyms = open_kallsyms();
    privileges::keep_for_naming();
    files.recording_is_over();
    let (collected, processes) = collector.collected();
    let missing = debug_files::fetch_missing(collected, cli.quiet, paint, signals);
    notes.extend(missing.map(notes::Note::plain));
    let images = args.symbols.explain.then(|| explain::Images::of(collected, processes));
    let symbols = &symbols::config(&args.symbols);
    let mut profile = collector.into_profile(meta, Sources { symbols, kallsyms });
    tracing::info!("named");
    notes.extend(notes::of_hidden_kernel(&profile.health));
    notes.extend(files.notes().into_iter().chain(places.note()).map(notes::Note::plain));
    tell(&notes[told..], cli);
    profile.health.notes.extend(notes.iter().map(|note| note.text().to_owned()));
    coverage::add_losses(&mut profile.health, &session, losses, lost);
    coverage::add(&mut profile, &session, accounted);
    let exit = target.finish(PATIENCE);
    let unseen = coverage::unseen(&profile, &session, &process_times, ended_tasks);
    profile.health.notes.extend(unseen.iter().map(|note| note.text().to_owned()));
    if profile.health.samples == 0 {
        let empty = no_samples::NoSamples { profile: &profile, session: &session, args };
        let failure = empty.failure(accounted.unwrap_or_default());
        return exit_without_samples(failure, exit, args, cli);
    }
    let strict = args.sampling.strict.then(|| coverage::strict(&profile, &session)).flatten();
    let taken = summary::taken(session.taken());
    publish(Done { profile, exit, taken, unseen, images, strict }, outputs, cli)
}

fn collector(
    args: &RecordArgs,
    session: &Session,
    files: &TargetFiles,
    places: &DebugPlaces,
) -> Collector {
    let complete = args.sampling.complete.into();
    let mut collector = Collector::new(session, args.sampling.max_depth, complete, files.clone());
    collector.look_for_debug_files(places.clone());
    collector
}

fn tell(notes: &[notes::Note], cli: &Cli) {
    if !cli.quiet {
        notes.iter().for_each(|note| note.print(Paint(cli.color.on_stderr())));
    }
}

/// What is to be said before anything is sampled.
fn first_notes(args: &RecordArgs, target: &target::Started, session: &Session) -> Vec<notes::Note> {
    let mut notes = target.notes().to_vec();
    notes.extend(args.sampling.with_stacks.then(notes::of_stacks));
    notes.extend(notes::of_session(session));
    notes
}

/// Without samples flame has failed; who asked for the program's status gets it all the same.
fn exit_without_samples(
    failure: Failure,
    exit: Option<ExitReport>,
    args: &RecordArgs,
    cli: &Cli,
) -> Result<Option<ExitReport>, Failure> {
    if exit.is_none() || !args.sampling.forward_exit {
        return Err(failure);
    }
    failure.print(cli.color);
    Ok(exit)
}

/// What a recording has besides its target.
struct Surroundings {
    signals: StopSignals,
    files: TargetFiles,
}

/// A profile, and what is to be said with it.
struct Done {
    profile: Profile,
    exit: Option<ExitReport>,
    /// How many processes and threads were found.
    taken: Option<String>,
    /// What of the CPU time was not seen.
    unseen: Option<notes::Note>,
    /// The images, if they are to be explained.
    images: Option<explain::Images>,
    /// Why it is not good enough for who asked for a whole one.
    strict: Option<Failure>,
}

/// Writes the outputs and the summary.
fn publish(done: Done, outputs: &Outputs, cli: &Cli) -> Result<Option<ExitReport>, Failure> {
    let Done { profile, exit, taken, unseen, images, strict } = done;
    let paint = Paint(cli.color.on_stderr());
    let (tree, not_shaped) = outputs.tree(&profile);
    tracing::info!(nodes = tree.nodes().len(), "call tree built");
    let footer = footer(&profile);
    let shown = Shown { tree: &tree, profile: Some(&profile), title: None, footer: &footer };
    let (written, failures) = outputs.write(&shown);
    tracing::info!("written");
    if !cli.quiet {
        outputs.idle_options(&tree).iter().for_each(|idle| message::warn(idle, cli.color));
        summary::print(&profile, &tree, &written, summary::Target { exit, taken }, paint);
        unseen.iter().for_each(|note| note.print(paint));
    }
    if let Some(images) = images {
        images.print(&profile.health, paint);
    }
    let mut failures = failures.into_iter().chain(not_shaped).chain(strict);
    let first = failures.next();
    failures.for_each(|failure| failure.print(cli.color));
    first.map_or(Ok(exit), Err)
}

/// What became of a recording besides its samples.
struct Sampled {
    /// How many records LOST records told of.
    lost: u64,
    /// When sampling ended; what was left in the rings is looked at after that.
    end: Instant,
}

/// Drains the session until something ends the recording, then the rest.
fn sample(
    args: &RecordArgs,
    session: &mut Session,
    collector: &mut Collector,
    target: &mut target::Started,
    signals: &StopSignals,
    mut progress: Progress,
) -> Result<Sampled, Failure> {
    let mut lost = 0;
    let deadline = args.sampling.duration.map(|duration| Instant::now() + duration);
    let mut ended = None;
    let mut next_look = Instant::now();
    loop {
        collector.look_at_jit_code();
        session
            .drain(&mut |event| {
                if let EventKind::Lost { count } = event.kind {
                    lost += count;
                }
                collector.take(event);
            })
            .map_err(|error| failure(&error))?;
        let more = collector.end_batch().filter(|_| args.sampling.call_graph.copy_grows);
        if let Some(bytes) = more {
            let grown = session.set_stack_copy(bytes);
            tracing::info!(bytes = bytes.0, grown, "too many stacks are cut");
            collector.set_stack_asked(session.stack_copy());
        }
        progress.show(collector.samples(), lost);
        if let Some(end) = ended {
            progress.clear();
            return Ok(Sampled { lost, end });
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let over = left.is_some_and(|left| left.is_zero());
        // At high rates the rings wake flame up far more often than a target ends.
        let look = Instant::now() >= next_look;
        if look {
            next_look = Instant::now() + LOOK;
        }
        if over || signals.arrived() || (look && target.has_ended()) {
            session.finish();
            ended = Some(Instant::now());
        } else {
            session.wait(left.map_or(LOOK, |left| left.min(LOOK)));
        }
    }
}

fn sampler_config(args: &RecordArgs, target: Target) -> SamplerConfig {
    let mask = Architecture::NATIVE.perf_register_mask();
    let mut config = SamplerConfig::new(target, mask);
    let sampling = &args.sampling;
    config.event = sampling.event.clone();
    config.rate = match (sampling.period, sampling.frequency) {
        (Some(period), _) => Rate::Period(period),
        (None, Some(frequency)) => Rate::Frequency(frequency),
        // Where each is a fact of its own, many are wanted.
        (None, None) if config.event.as_ref().is_some_and(EventType::is_occurrence) => {
            Rate::Frequency(DEFAULT_COUNTING_FREQUENCY)
        }
        (None, None) => config.rate,
    };
    config.privilege = match (sampling.kernel, sampling.user) {
        (true, _) => Privilege::Kernel,
        (_, true) => Privilege::User,
        _ => Privilege::All,
    };
    config.call_graph = sampling.call_graph.how;
    config.copy_grows = sampling.call_graph.copy_grows;
    config.inherit = !sampling.no_inherit;
    config.descendants = !sampling.no_children;
    config.per_task = sampling.per_task;
    config.fixed_period = sampling.fixed_period;
    config.seed = sampling.seed;
    config.cpus = sampling.cpus.as_ref().map(|cpus| cpus.0.clone());
    config
}

/// When the recording started, on the clock that measures and on the one that people read.
struct Moment {
    clock: Instant,
    since_1970: Duration,
}

impl Moment {
    fn now() -> Moment {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment { clock: Instant::now(), since_1970 }
    }
}

fn meta(session: &Session, started: &Moment, duration: Duration, target: String) -> Meta {
    let (frequency, period) = match session.rate() {
        Rate::Frequency(Hz(hz)) if session.event().is_clock() => {
            (Some(Hz(hz)), Some(1_000_000_000 / hz.max(1)))
        }
        Rate::Frequency(frequency) => (Some(frequency), None),
        Rate::Period(period) => (None, Some(period)),
    };
    Meta {
        event: Some(session.event().to_string()),
        frequency,
        period,
        start: Some(Nanos::from(started.since_1970)),
        duration: Some(Nanos::from(duration)),
        host: host_name(),
        target: Some(target),
        command: Some(message::own_command()),
        producer: Some(concat!("flame ", env!("CARGO_PKG_VERSION")).to_owned()),
    }
}
