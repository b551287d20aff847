//! `flame record`: sample a target, name what was seen, write it down.

mod collector;
mod images;
mod location;
mod naming;
mod notes;
mod perf_maps;
mod progress;
mod signals;
mod summary;
mod target;

use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flame_events::{EventKind, EventSource};
use flame_profile::{Coverage, Hz, Meta, Nanos, Profile};
use flame_sampler::{ExitReport, Privilege, Rate, SamplerConfig, Session, Target};
use flame_unwind::Architecture;

use crate::cli::{Cli, RecordArgs};
use crate::message::Failure;
use crate::message::sampler::failure;
use crate::output::Outputs;
use crate::proc;
use crate::symbols;
use crate::terminal::Paint;
use collector::Collector;
use progress::Progress;
use signals::StopSignals;

/// How long to wait for the kernel at most between two looks at the clock and the target.
const LOOK: Duration = Duration::from_millis(100);

/// How long a launched program gets to end once the recording is over and it was asked to.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs the command.
pub(crate) fn run(args: &RecordArgs, cli: &Cli) -> Result<ExitCode, Failure> {
    // Before anything else: from here on Ctrl-C ends a recording and loses none.
    let signals = StopSignals::install()?;
    let outputs = Outputs::prepare(&args.output, &args.symbols)?;
    let mut target = target::Started::start(&args.target, &args.sampling)?;
    let result = record(args, cli, &outputs, &mut target, &signals);
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
    signals: &StopSignals,
) -> Result<Option<ExitReport>, Failure> {
    let config = sampler_config(args, target.target());
    let mut session = Session::open(&config).map_err(|error| failure(&error))?;
    outputs.check_value(&collector::value_names(&session))?;
    let paint = Paint(cli.color.on_stderr());
    let notes = notes::of_session(&session);
    if !cli.quiet {
        notes.iter().for_each(|note| note.print(paint));
    }
    let mut collector = Collector::new(&session);
    target.enter_processes(collector.processes());
    let started = Moment::now();
    target.release().map_err(|error| failure(&error))?;

    let progress = Progress::new(cli.quiet, paint);
    let lost = sample(args, &mut session, &mut collector, target, signals, progress)?;
    let duration = started.clock.elapsed();

    let accounted = session.accounted();
    let meta = meta(&session, &started, duration, target.describe());
    collector.set_losses(lost.max(session.lost_records().unwrap_or(0)));
    tracing::info!("recording over");
    let mut profile = collector.into_profile(meta, &symbols::config(&args.symbols));
    tracing::info!("named");
    profile.health.notes.extend(notes.iter().map(|note| note.text.clone()));
    add_coverage(&mut profile, &session, accounted);
    let exit = target.finish(PATIENCE);
    if profile.health.samples == 0 {
        return Err(summary::no_samples(&profile, accounted, &session, args));
    }

    let tree = outputs.tree(&profile);
    tracing::info!(nodes = tree.nodes().len(), "call tree built");
    let footer = summary::footer(&profile);
    let (written, failures) = outputs.write(&profile, &tree, &footer);
    tracing::info!("written");
    if !cli.quiet {
        summary::print(&profile, &tree, &written, exit, paint);
    }
    let mut failures = failures.into_iter();
    let first = failures.next();
    failures.for_each(|failure| failure.print(cli.color));
    first.map_or(Ok(exit), Err)
}

/// Drains the session until something ends the recording, then the rest. Returns the number of
/// records that LOST records told of.
fn sample(
    args: &RecordArgs,
    session: &mut Session,
    collector: &mut Collector,
    target: &mut target::Started,
    signals: &StopSignals,
    mut progress: Progress,
) -> Result<u64, Failure> {
    let mut lost = 0;
    let deadline = args.sampling.duration.map(|duration| Instant::now() + duration);
    let mut finished = false;
    let mut next_look = Instant::now();
    loop {
        session
            .drain(&mut |event| {
                if let EventKind::Lost { count } = event.kind {
                    lost += count;
                }
                collector.take(event);
            })
            .map_err(|error| failure(&error))?;
        progress.show(collector.samples(), lost);
        if finished {
            progress.clear();
            return Ok(lost);
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
            finished = true;
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
        (None, None) => config.rate,
    };
    config.privilege = match (sampling.kernel, sampling.user) {
        (true, _) => Privilege::Kernel,
        (_, true) => Privilege::User,
        _ => Privilege::All,
    };
    config.call_graph = sampling.call_graph;
    config.inherit = !sampling.no_inherit;
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
        host: proc::host_name(),
        target: Some(target),
        producer: Some(concat!("flame ", env!("CARGO_PKG_VERSION")).to_owned()),
    }
}

/// CPU time is comparable with what the kernel accounted only where samples stand for CPU time.
fn add_coverage(profile: &mut Profile, session: &Session, accounted: Nanos) {
    if session.event().is_clock() {
        let sampled = Nanos(profile.total(collector::EVENT_VALUE).0);
        profile.health.coverage = Some(Coverage { sampled, accounted });
    }
}
