//! The options of `flame record` as what the recorder and the rest of the command work by.

use std::env;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use flame_doctor::{allocator_failure, failure};
use flame_profile::{Nanos, Pid, Tid};
use flame_recorder::{
    Allocations, Calls, LiveFiles, Options, RecorderConfig, States, Waits, Wakers, set_allocations,
    tracepoint,
};
use flame_sampler::{
    CallGraph, EventSpec, EventType, Privilege, Rate, SamplerConfig, SamplerError, Target, is_alive,
};

use super::modes;
use crate::cli::{Mode, RecordArgs, SamplingArgs};
use crate::message::Failure;
use crate::symbols;

/// What is to be done.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) recorder: RecorderConfig,
    /// How files of targets are opened.
    pub(super) files: LiveFiles,
    /// When to end at the latest.
    pub(super) duration: Option<Duration>,
    /// The file of the program that is the target.
    pub(super) program: Option<PathBuf>,
    /// Whether Java VMs are asked for the names of their code.
    pub(super) java: bool,
    /// Whether it is said of each image what it lacks.
    pub(super) explains: bool,
    /// Whether a profile that is not whole is a failure.
    pub(super) is_strict: bool,
    /// Whether the program's status becomes that of flame.
    pub(super) forwards_exit: bool,
    /// Whether stacks were asked for, as perf wants it.
    pub(super) asks_for_stacks: bool,
}

impl Plan {
    /// What the command line and the environment say.
    ///
    /// # Errors
    /// What is to be measured is not to be had here.
    pub(super) fn of(args: &RecordArgs, target: Target, files: LiveFiles) -> Result<Plan, Failure> {
        let sampling = &args.sampling;
        let mut recorder = match sampling.mode {
            Some(Mode::OffCpu) => off_cpu(target, sampling)?,
            Some(Mode::Wakeup) => with_wakers(target, sampling, Wakers::Alone)?,
            Some(Mode::Offwake) => with_wakers(target, sampling, Wakers::Above)?,
            Some(Mode::Wall) => RecorderConfig::wall(target),
            _ => RecorderConfig::new(target),
        };
        recorder.options = Options {
            max_depth: sampling.max_depth,
            keeps_times: sampling.times,
            shows_idle: args.target.idle,
            files: Arc::new(files.clone()),
            memory: Arc::new(files.clone()),
            debug_places: symbols::debug_places(&args.symbols.debug_dirs),
            symbols: symbols::config(args.symbols.no_inline),
            ..recorder.options
        };
        recorder.show_scripts(!sampling.no_script, sampling.native);
        set_sampling(&mut recorder.sampler, sampling);
        if args.target.idle {
            show_idle(&mut recorder.sampler, sampling)?;
        }
        leave_out_stacks_of_waits(&mut recorder);
        for waker in recorder.others.iter_mut().filter(|other| other.wakes) {
            waker.rate = rate(Some(&waker.event), sampling);
        }
        recorder.others.extend(further_events(sampling));
        modes::set(&mut recorder, sampling)?;
        let program = args.target.launched().and_then(program_of);
        if sampling.mode == Some(Mode::Alloc) {
            let of = Allocations {
                file: sampling.allocator.as_deref(),
                program: program.as_deref(),
                live: sampling.live,
                rate: asked_rate(sampling),
            };
            let set = set_allocations(&mut recorder, &of, &files);
            set.map_err(|no| match &recorder.sampler.target {
                Target::Processes(pids) if !pids.iter().any(|pid| is_alive(Tid(pid.0))) => {
                    let pid = pids.first().copied().unwrap_or(Pid(0));
                    failure(&SamplerError::NoSuchProcess { pid })
                }
                _ => allocator_failure(&no),
            })?;
        }
        check_functions(&mut recorder)?;
        Ok(Plan {
            recorder,
            files,
            duration: sampling.duration,
            program,
            java: sampling.java,
            explains: args.symbols.explain,
            is_strict: sampling.strict,
            forwards_exit: sampling.forward_exit,
            asks_for_stacks: sampling.with_stacks,
        })
    }
}

/// Time without anything to do is told by a clock only.
fn show_idle(config: &mut SamplerConfig, sampling: &SamplingArgs) -> Result<(), Failure> {
    if config.target != Target::System {
        return Err(Failure::usage("--idle is for all processes: -a"));
    }
    let is_cpu = matches!(sampling.mode, None | Some(Mode::Cpu));
    if !is_cpu || events(sampling).any(|event| !event.is_clock()) {
        return Err(Failure::usage("--idle is for CPU time, which a clock measures")
            .or_try("flame record -a --idle -e cpu-clock"));
    }
    config.event = Some(EventType::cpu_clock());
    Ok(())
}

/// The file of a program that is launched: as the command says, or in a directory of PATH.
fn program_of(command: &[OsString]) -> Option<PathBuf> {
    let program = command.first()?;
    if program.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(program));
    }
    let directories = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    env::split_paths(&directories).map(|directory| directory.join(program)).find(|it| it.is_file())
}

/// Functions are sampled in the target's processes alone: in others their breakpoints would cost time.
/// What they are called with is in registers, which only copies of stacks have beside them.
fn check_functions(config: &mut RecorderConfig) -> Result<(), Failure> {
    let others = config.others.iter().map(|other| &other.event);
    let mut events = config.sampler.event.iter().chain(others);
    if events.any(EventType::is_function) {
        config.sampler.per_task |=
            !matches!(config.sampler.target, Target::System | Target::Cgroup(_));
    }
    let copies = matches!(config.sampler.call_graph, CallGraph::Dwarf(_));
    if !config.options.arguments.is_empty()
        && (!copies || config.sampler.privilege == Privilege::Kernel)
    {
        return Err(Failure::new(
            "arguments of functions need --call-graph dwarf and user code, not -k",
        )
        .why("registers are recorded with copies of user stacks"));
    }
    Ok(())
}

/// Why wall has no choice of waits.
const ALL_TIME: &str =
    "wall shows all the time of each thread, which some of its waits would not add up to";

/// Refuses options that the mode does not have.
pub(super) fn check(sampling: &SamplingArgs) -> Result<(), Failure> {
    let limits = sampling.min_block.is_some() || sampling.max_block.is_some();
    if limits && !matches!(sampling.mode, Some(Mode::OffCpu | Mode::Wakeup | Mode::Offwake)) {
        return Err(Failure::new(
            "--min-block and --max-block are for --mode off-cpu, wakeup and offwake",
        )
        .why(match sampling.mode {
            Some(Mode::Wall) => ALL_TIME,
            _ => "other modes record no waits",
        }));
    }
    if sampling.min_block.zip(sampling.max_block).is_some_and(|(least, most)| least > most) {
        return Err(Failure::usage("--min-block is longer than --max-block: no wait is both"));
    }
    if sampling.state.is_some() {
        check_mode_of_state(sampling.mode)?;
        if asked_rate(sampling).is_some() {
            return Err(Failure::usage("--state takes neither -F nor -c").why(
                "every wait in those states is sampled: the state of any other is not known",
            ));
        }
    }
    if sampling.allocator.is_some() && sampling.mode != Some(Mode::Alloc) {
        return Err(Failure::new("--allocator is for --mode alloc"));
    }
    if sampling.live && sampling.mode != Some(Mode::Alloc) {
        return Err(Failure::new("--live is for --mode alloc"));
    }
    let is_tracepoint = events(sampling).any(EventType::is_tracepoint);
    if sampling.filter.is_some() && !is_tracepoint {
        return Err(Failure::new("--filter is for tracepoints: -e GROUP:NAME")
            .why("the kernel filters by the fields of a tracepoint, and other events have none"));
    }
    let mode = match sampling.mode {
        Some(Mode::OffCpu) => "off-cpu",
        Some(Mode::Wall) => "wall",
        Some(Mode::Wakeup) => "wakeup",
        Some(Mode::Offwake) => "offwake",
        _ => return Ok(()),
    };
    if sampling.kernel || sampling.user {
        return Err(Failure::new(format!("--mode {mode} has no -k and -u"))
            .why("threads leave their CPUs in the kernel, whatever code made them wait")
            .or_try("flame render --hide, on the recording"));
    }
    if sampling.cpus.is_some() {
        return Err(Failure::new(format!("--mode {mode} has no -C"))
            .why("a thread that leaves one CPU may come back on another"));
    }
    Ok(())
}

/// Refuses states of waits where none are shown, or all must be.
fn check_mode_of_state(mode: Option<Mode>) -> Result<(), Failure> {
    let refused = Failure::new("--state is for --mode off-cpu, wakeup and offwake");
    Err(match mode {
        Some(Mode::OffCpu | Mode::Wakeup | Mode::Offwake) => return Ok(()),
        Some(Mode::Wall) => {
            refused.why(ALL_TIME).or_try("--mode off-cpu --state, for the waits alone")
        }
        _ => refused.why("other modes record no waits"),
    })
}

/// Waits, of some states or all.
fn off_cpu(target: Target, sampling: &SamplingArgs) -> Result<RecorderConfig, Failure> {
    let mut config = RecorderConfig::off_cpu(target, waits(sampling));
    of_states(&mut config, sampling)?;
    Ok(config)
}

/// Leaves out waits of other states than those that are asked for.
fn of_states(config: &mut RecorderConfig, sampling: &SamplingArgs) -> Result<(), Failure> {
    let Some(letters) = &sampling.state else { return Ok(()) };
    let letters = letters.replace(',', "");
    let filter = modes::filter_of(&letters)?;
    if sampling.mode == Some(Mode::Wakeup) && letters.bytes().all(|letter| letter == b'R') {
        return Err(Failure::usage("--mode wakeup has no waits in state R")
            .why("nobody wakes a thread that was preempted")
            .or_try("--mode off-cpu --state R"));
    }
    config.sampler.event = Some(scheduling("sched:sched_switch", Some(filter))?);
    // Of what is not sampled the state is not known.
    config.sampler.rate = Rate::Period(1);
    config.options.waits.iter_mut().for_each(|all| all.states = States::of_letters(&letters));
    Ok(())
}

/// Waits with who ends them.
fn with_wakers(
    target: Target,
    sampling: &SamplingArgs,
    wakers: Wakers,
) -> Result<RecorderConfig, Failure> {
    let event = scheduling("sched:sched_waking", None)?.with_field("pid");
    let event = event.map_err(|error| Failure::new(error.to_string()))?;
    let mut config = RecorderConfig::off_cpu(target, waits(sampling)).with_wakers(wakers, event);
    of_states(&mut config, sampling)?;
    Ok(config)
}

/// Where only wakers are shown, the state of a thread that waits is all that is asked of its switch.
fn leave_out_stacks_of_waits(config: &mut RecorderConfig) {
    let states =
        config.options.waits.filter(|all| all.wakers == Wakers::Alone && all.states.is_some());
    if states.is_some() && matches!(config.sampler.call_graph, CallGraph::Dwarf(_)) {
        let wakers = config.others.iter_mut().filter(|other| other.wakes);
        wakers.for_each(|waker| waker.call_graph = Some(config.sampler.call_graph));
        // The profile's registers are those of this event.
        config.sampler.call_graph = CallGraph::Registers;
    }
}

fn scheduling(name: &str, filter: Option<String>) -> Result<EventType, Failure> {
    tracepoint(name, filter).map_err(|error| modes::refused(&error, Calls::Locks))
}

fn waits(sampling: &SamplingArgs) -> Waits {
    let all = Waits::default();
    Waits {
        shortest: sampling.min_block.map_or(all.shortest, Nanos::from),
        longest: sampling.max_block.map_or(all.longest, Nanos::from),
        ..all
    }
}

/// The events that were asked for.
fn events(sampling: &SamplingArgs) -> impl Iterator<Item = &EventType> {
    sampling.event.iter().flat_map(|events| &events.0)
}

/// An event with the filter for tracepoints.
fn filtered(event: &EventType, sampling: &SamplingArgs) -> EventType {
    let mut event = event.clone();
    event.filter = sampling.filter.clone().filter(|_| event.is_tracepoint());
    event
}

/// What is sampled besides the first event.
fn further_events(sampling: &SamplingArgs) -> impl Iterator<Item = EventSpec> + '_ {
    let spec = |event| EventSpec::new(filtered(event, sampling), rate(Some(event), sampling));
    events(sampling).skip(1).map(spec)
}

/// How often an event is sampled.
fn rate(event: Option<&EventType>, sampling: &SamplingArgs) -> Rate {
    asked_rate(sampling).unwrap_or_else(|| Rate::usual(event))
}

/// How often that was asked for.
pub(super) fn asked_rate(sampling: &SamplingArgs) -> Option<Rate> {
    sampling.period.map(Rate::Period).or(sampling.frequency.map(Rate::Frequency))
}

fn set_sampling(config: &mut SamplerConfig, sampling: &SamplingArgs) {
    match sampling.mode {
        Some(Mode::OffCpu | Mode::Wall | Mode::Wakeup | Mode::Offwake) => {}
        Some(Mode::Faults) => config.event = Some(EventType::page_faults()),
        // What they are is set where their fields are known, see modes.rs.
        Some(Mode::Io | Mode::BlockIo | Mode::Syscalls | Mode::Mmap | Mode::Brk | Mode::Locks) => {}
        Some(Mode::Alloc) => {}
        Some(Mode::Cpu) | None => {
            config.event = events(sampling).next().map(|event| filtered(event, sampling));
        }
    }
    if !config.switches || asked_rate(sampling).is_some() {
        config.rate = rate(config.event.as_ref(), sampling);
    }
    config.privilege = match (sampling.kernel, sampling.user) {
        (true, _) => Privilege::Kernel,
        (_, true) => Privilege::User,
        _ => Privilege::All,
    };
    config.call_graph = sampling.call_graph.how;
    config.copy_may_be_larger = sampling.call_graph.copy_may_be_larger;
    config.inherit = !sampling.no_inherit;
    config.descendants = !sampling.no_children;
    config.per_task = sampling.per_task;
    config.fixed_period = sampling.fixed_period;
    config.seed = sampling.seed;
    config.cpus = sampling.cpus.as_ref().map(|cpus| cpus.0.clone());
}
