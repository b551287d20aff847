//! `flame record`: sample a target, name what was seen, write it down.

mod events;
#[cfg(feature = "debuginfod")]
mod fetching;
mod modes;
mod plan;
mod priority;
mod progress;
mod repeat;
mod runtimes;
mod signals;
mod target;

use std::mem;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use flame_doctor::{failure, recording};
use flame_message::counted;
use flame_profile::Profile;
use flame_recorder::{Finished, Job, LiveFiles, Recorder, RecorderConfig, host_name, set_titles};
use flame_render::{recording_footer, recording_summary};
use flame_sampler::{ExitReport, Session, Sessions, Taken};

use crate::cli::{Cli, RecordArgs};
use crate::message::{Failure, Note, first_of};
use crate::output::{Defaults, Format, Outputs, Shown};
use crate::render::wrote;
use crate::terminal::{self, Paint};
use crate::{message, privileges};
use plan::Plan;
use progress::Progress;
use signals::StopSignals;

/// How long to wait for the kernel at most between two looks at the clock and the target.
const LOOK: Duration = Duration::from_millis(100);

/// What a recording is written to and as when nothing is asked for.
const DEFAULTS: Defaults = Defaults {
    path: "flame.svg",
    keeps_foreign: true,
    merges_pools: true,
    on_stdout: Format::Folded,
    is_recording: true,
};

/// For users of perf.
const STACKS: &str = "-g is not needed: stacks are always recorded (--call-graph says how)";

/// Runs the command.
pub(crate) fn run(args: &RecordArgs, cli: &Cli) -> Result<ExitCode, Failure> {
    if let Some(text) = &args.sampling.list_events {
        return events::list(text, cli);
    }
    plan::check(&args.sampling)?;
    let number = args.sampling.run_number;
    if let (Some(times), None) = (args.sampling.repeat, number) {
        return repeat::run(times, args, cli);
    }
    // Before anything else, while there is one thread and nothing open.
    let job = args.sampling.java.then_some(runtimes::serve_java as Job);
    let files = LiveFiles::start(privileges::hooks(job));
    // From here on Ctrl-C ends a recording and loses none.
    let signals = StopSignals::install()?;
    let mut named = args.output.clone();
    if let Some(number) = number {
        let numbered = |path| repeat::numbered(path, &number.to_string());
        named.output = named.output.iter().map(|path| numbered(path)).collect();
    }
    let outputs = Outputs::prepare(&named, &args.picture, cli, DEFAULTS)?;
    let outputs = outputs.with_lines(args.symbols.lines);
    let on_stdout = outputs.uses_stdout();
    let mut target = target::Started::start(&args.target, &args.sampling, on_stdout, &files)?;
    if on_stdout && !args.target.command.is_empty() && !cli.quiet {
        message::warn(
            "the profile goes to stdout, so what the program prints there goes to stderr",
            cli.color,
        );
    }
    let delay = args.sampling.delay.map_or(Ok(()), |delay| target.delay(delay, &signals));
    let plan = delay.and_then(|()| Plan::of(args, target.target(), files));
    let result = plan.and_then(|plan| record(&plan, cli, &outputs, &mut target, &signals));
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
    plan: &Plan,
    cli: &Cli,
    outputs: &Outputs,
    target: &mut target::Started,
    signals: &StopSignals,
) -> Result<Option<ExitReport>, Failure> {
    let mut config = plan.recorder.clone();
    show_times(&mut config, outputs)?;
    let drop_rights = |sessions: &Sessions| {
        privileges::keep_for_recording(&outputs.needed_capabilities(), || sessions.may_reopen());
    };
    let recorder = Recorder::start_after(config, drop_rights);
    let mut recorder = recorder.map_err(|error| failure(&error))?;
    let values = recorder.stream().value_types().into_iter().map(|value| value.name);
    outputs.check_value(&values.collect::<Vec<_>>())?;
    let paint = Paint(cli.color.on_stderr());
    let mut notes = first_notes(plan, target, recorder.source());
    message::note(&notes, cli);
    let told = notes.len();
    target.take(recorder.source().first().taken());
    target.release().map_err(|error| failure(&error))?;
    let raised = priority::Raised::begin();

    sample(plan, &mut recorder, target, signals, Progress::new(cli.quiet, paint))?;
    drop(raised);
    let ended_tasks = recorder.ended_tasks();
    let accounted = recorder.accounted();
    tracing::info!("recording over");
    notes.extend(recording::of_refusals(recorder.source()));
    notes.extend(runtimes::read_processes(&mut recorder, plan.java, &plan.files));
    privileges::keep_for_naming();
    let (seen, samples) = (recorder.images(), recorder.samples());
    #[cfg(feature = "debuginfod")]
    notes.extend(fetching::fetch_missing(&seen, samples, cli.quiet, paint, signals));
    notes.extend(recording::torn_debug_files(&seen, samples));
    let images = plan.explains.then(|| recording::Images::of(&seen, samples));
    let finished = recorder.finish_whole().map_err(|error| failure(&error))?;
    let Finished { mut profile, source: sessions, times } = finished;
    tracing::info!("named");
    notes.extend(recording::of_cost(&sessions, &profile, times.all(), ended_tasks));
    let session = sessions.first();
    describe(&mut profile, target.describe(), &plan.files);
    notes.extend(notes_of_profile(&profile, &sessions, ended_tasks));
    notes.extend(recording::of_nothing_shown(&profile, outputs.shown_value(&profile)));
    let left_out = plan.files.notes().into_iter().chain(plan.recorder.options.debug_places.note());
    let recorded = mem::take(&mut profile.health.notes);
    notes.extend(left_out.chain(recorded).map(Note::plain));
    profile.health.notes.extend(notes.iter().map(|note| note.text().to_owned()));
    let late_notes = notes.split_off(told);
    let mut finish = || {
        message::note(&late_notes, cli);
        target.finish(signals)
    };
    let unseen = recording::unseen(&profile, session, &times, ended_tasks);
    profile.health.notes.extend(unseen.iter().map(|note| note.text().to_owned()));
    if profile.health.samples == 0 {
        let failure = no_samples(plan, &profile, session).failure(accounted.unwrap_or_default());
        return exit_without_samples(failure, finish(), plan.forwards_exit, cli);
    }
    let strict = plan.is_strict.then(|| recording::strict(&profile, session)).flatten();
    let taken = taken(session.taken());
    let done = Done { profile, taken, unseen, images, strict };
    let finish = || {
        signals.all_is_written();
        finish()
    };
    publish(done, finish, outputs, cli)
}

/// What the user should know of a profile's samples.
fn notes_of_profile(profile: &Profile, sessions: &Sessions, ended_tasks: u64) -> Vec<Note> {
    let mut notes = Vec::new();
    notes.extend(recording::of_hidden_kernel(&profile.health));
    notes.extend(recording::of_short_copies(&profile.health));
    notes.extend(recording::of_late_readers(sessions, &profile.health));
    notes.extend(recording::of_starts(profile, sessions.first(), ended_tasks));
    notes
}

/// What is known of a recording without samples.
fn no_samples<'a>(
    plan: &'a Plan,
    profile: &'a Profile,
    session: &'a Session,
) -> recording::NoSamples<'a> {
    let cpus = plan.recorder.sampler.cpus.as_deref();
    let program = plan.program.as_deref();
    // Filters that tell sizes apart are none that anybody has asked for.
    let filter = session.event().filter.as_deref().filter(|_| !plan.recorder.options.adds_up);
    recording::NoSamples { profile, session, cpus, filter, program }
}

/// Has kept what outputs over time are drawn of.
fn show_times(config: &mut RecorderConfig, outputs: &Outputs) -> Result<(), Failure> {
    if config.options.keeps_times && !outputs.saves() {
        return Err(Failure::usage("--times is for saved recordings, and none is written")
            .or_try("-o recording.pb.gz"));
    }
    let keeps_times = config.options.keeps_times || outputs.shows_times();
    if keeps_times && config.options.measures_time() {
        let what = match (outputs.shows_runs(), outputs.shows_times()) {
            (true, _) => "draw a flame chart",
            (_, true) => "draw a heat map",
            _ => "keep times",
        };
        return Err(Failure::usage(format!("cannot {what} of waits")).why(
            "a wait lasts, and what is drawn over time shows at which moments something was seen",
        ));
    }
    config.options.keeps_times = keeps_times;
    config.options.keeps_runs = outputs.shows_runs();
    config.sampler.switches |= outputs.shows_runs();
    Ok(())
}

/// What is to be said before anything is sampled.
fn first_notes(plan: &Plan, target: &target::Started, sessions: &Sessions) -> Vec<Note> {
    let mut notes = target.notes().to_vec();
    notes.extend(plan.asks_for_stacks.then(|| Note::plain(STACKS)));
    notes.extend(recording::of_sessions(sessions));
    notes
}

/// Without samples flame has failed; who asked for the program's status gets it all the same.
fn exit_without_samples(
    failure: Failure,
    exit: Option<ExitReport>,
    forwards_exit: bool,
    cli: &Cli,
) -> Result<Option<ExitReport>, Failure> {
    if exit.is_none() || !forwards_exit {
        return Err(failure);
    }
    message::print(&failure, cli.color);
    Ok(exit)
}

/// A profile, and what is to be said with it.
struct Done {
    profile: Profile,
    /// How many processes and threads were found.
    taken: Option<String>,
    /// What of the CPU time was not seen.
    unseen: Option<Note>,
    /// The images, if they are to be explained.
    images: Option<recording::Images>,
    /// Why it is not good enough for `--strict`.
    strict: Option<Failure>,
}

/// Writes the outputs, before anything is waited for or can fail; then `finish` says how the target
/// ended, and the summary follows.
fn publish(
    done: Done,
    finish: impl FnOnce() -> Option<ExitReport>,
    outputs: &Outputs,
    cli: &Cli,
) -> Result<Option<ExitReport>, Failure> {
    let Done { profile, taken, unseen, images, strict } = done;
    let paint = Paint(cli.color.on_stderr());
    let (tree, not_shaped) = outputs.tree(&profile);
    tracing::info!(nodes = tree.nodes().len(), "call tree built");
    let footer = recording_footer(&profile);
    let shown = Shown { tree: &tree, profile: Some(&profile), title: None, footer: &footer };
    let (written, failures) = outputs.write(&shown);
    let not_shaped = not_shaped.map(|it| outputs.shown_whole(it, failures.is_empty()));
    tracing::info!("written");
    let exit = finish();
    if !cli.quiet {
        outputs.idle_options(&tree).iter().for_each(|idle| message::warn(idle, cli.color));
        let columns = terminal::width();
        let mut text = recording_summary(&profile, &tree, taken.as_deref(), paint, columns);
        if let Some(exit) = exit.filter(|exit| !exit.status().success()) {
            let note = paint.yellow("note:");
            text += &format!("{note} the program ended with {}\n", exit.status());
        }
        written.iter().for_each(|file| text += &wrote(file, bytes(file.len), paint));
        message::say(&text);
    }
    message::note(&unseen, cli);
    if let Some(images) = images {
        // Servers that are named are asked for debug files.
        let has_servers = std::env::var_os("DEBUGINFOD_URLS").is_some();
        message::say(&images.table(&profile.health, has_servers, paint));
    }
    let failed = first_of(failures.into_iter().chain(not_shaped).chain(strict), cli.color);
    failed.map(|()| exit)
}

/// How many processes and threads were found, of a target that was there.
fn taken(taken: &Taken) -> Option<String> {
    let processes = counted(taken.processes.len() as u64, "process", "processes");
    let threads = counted(taken.threads as u64, "thread", "threads");
    (!taken.processes.is_empty()).then(|| format!("{processes}, {threads}"))
}

fn bytes(len: u64) -> String {
    match len {
        0..10_000 => format!("{len} bytes"),
        10_000..10_000_000 => format!("{} KB", len / 1000),
        _ => format!("{} MB", len / 1_000_000),
    }
}

/// Records until something ends it.
fn sample(
    plan: &Plan,
    recorder: &mut Recorder,
    target: &mut target::Started,
    signals: &StopSignals,
    mut progress: Progress,
) -> Result<(), Failure> {
    let deadline = plan.duration.map(|duration| Instant::now() + duration);
    let mut next_look = Instant::now();
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let over = left.is_some_and(|left| left.is_zero());
        // At high rates the rings wake flame up far more often than a target ends.
        let look = Instant::now() >= next_look;
        if look {
            next_look = Instant::now() + LOOK;
        }
        if over || signals.arrived() || (look && target.has_ended()) {
            recorder.stop().map_err(|error| failure(&error))?;
            progress.clear();
            return Ok(());
        }
        let timeout = left.map_or(LOOK, |left| left.min(LOOK));
        recorder.poll(timeout).map_err(|error| failure(&error))?;
        progress.show(recorder.samples(), recorder.lost_records());
    }
}

/// Says where and by whom a profile was recorded, and what its processes call themselves.
fn describe(profile: &mut Profile, target: String, files: &LiveFiles) {
    set_titles(profile, files);
    let meta = &mut profile.meta;
    meta.host = host_name();
    meta.target = Some(target);
    meta.command = Some(message::own_command());
    meta.producer = Some(concat!("flame ", env!("CARGO_PKG_VERSION")).to_owned());
}
