//! What is recorded: started or found, watched, and brought to an end.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;
use std::time::{Duration, Instant};

use flame_doctor::{cgroup_failure, failure, process_called};
use flame_profile::{Pid, Tid};
use flame_recorder::{LiveFiles, command_line};
use flame_sampler::{
    Cgroup, ExitReport, Launched, SamplerError, Taken, Target, is_alive, live_task_of,
};
use nix::sys::signal::Signal;
use nix::unistd::dup2_stdout;

use super::signals::{StopSignals, is_in_mask};
use crate::cli::{SamplingArgs, TargetArgs};
use crate::io_failure;
use crate::message::{Failure, Note};
use crate::sudo;

/// Between two looks whether a program that was asked to end has.
const POLL: Duration = Duration::from_millis(10);

/// How long a launched program gets to end once the recording is over and it was asked to.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a program that handles Ctrl-C gets to end by that before it is asked to: it may have
/// something to save. Another Ctrl-C ends flame at once.
const AFTER_INTERRUPT: Duration = Duration::from_secs(5);

/// A target that is ready to be sampled.
#[derive(Debug)]
pub(super) struct Started {
    target: Target,
    launched: Option<Launched>,
    /// Whether what was launched is not a target, but says how long to record.
    is_timer: bool,
    /// The processes that were found of a target that existed already.
    taken: Vec<Pid>,
    description: String,
    notes: Vec<Note>,
    exit: Option<ExitReport>,
}

/// Does something while stdout leads to where stderr does: a process that is started meanwhile keeps
/// that.
fn with_stdout_on_stderr<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let own = std::io::stdout().as_fd().try_clone_to_owned();
    let own = own.map_err(|error| io_failure("keep stdout for the profile", &error))?;
    let swap = |to: BorrowedFd<'_>| {
        let swapped = dup2_stdout(to).map_err(std::io::Error::from);
        swapped.map_err(|error| io_failure("keep stdout for the profile", &error))
    };
    swap(std::io::stderr().as_fd())?;
    let done = work();
    swap(own.as_fd())?;
    done
}

impl Started {
    /// Finds the processes, or launches the program up to the point before it runs.
    pub(super) fn start(
        args: &TargetArgs,
        sampling: &SamplingArgs,
        profile_on_stdout: bool,
        files: &LiveFiles,
    ) -> Result<Started, Failure> {
        let user = if sampling.as_root { None } else { sudo::invoking_user() };
        let launch = |command: &[OsString]| {
            let launch =
                || Launched::launch(command, user.as_ref()).map_err(|error| failure(&error));
            // In one stream neither the profile nor what the program prints could be read.
            if profile_on_stdout { with_stdout_on_stderr(launch) } else { launch() }
        };
        if let Some(command) = args.launched() {
            return Ok(Started::of_launched(launch(command)?, command));
        }
        let mut started = Started::find(args, sampling, files)?;
        if !args.command.is_empty() {
            started.launched = Some(launch(&args.command)?);
            started.is_timer = true;
        }
        Ok(started)
    }

    /// Finds what exists already.
    fn find(
        args: &TargetArgs,
        sampling: &SamplingArgs,
        files: &LiveFiles,
    ) -> Result<Started, Failure> {
        if let Some(name) = &args.group {
            let group = Cgroup::find(name).map_err(|error| cgroup_failure(&error))?;
            let description = format!("control group {}", group.path().display());
            return Ok(Started::new(Target::Cgroup(group), description));
        }
        if args.all || (!args.names_a_target() && sampling.cpus.is_some()) {
            return Ok(Started::new(Target::System, "all processes".to_owned()));
        }
        if !args.names_a_target() {
            return Err(Failure::usage("what is to be recorded?")
                .why("no target was given: a process, a thread, a program, or the whole machine")
                .or_try("flame record -p PID, or flame record COMMAND, or flame record -a"));
        }
        if !args.tids.is_empty() {
            let tids: Vec<Tid> = args.tids.iter().flat_map(|list| &list.0).copied().collect();
            let tids = distinct(&tids);
            let names: Vec<String> =
                tids.iter().map(|tid| describe_task(Pid(tid.0), files)).collect();
            return Ok(Started::new(Target::Threads(tids), names.join(", ")));
        }
        let mut pids = Vec::new();
        let mut notes = Vec::new();
        for name in args.pids.iter().flat_map(|list| &list.0) {
            let (pid, note) = process_called(name, files)?;
            pids.push(pid);
            notes.extend(note);
        }
        let pids = distinct(&pids);
        let names: Vec<String> = pids.iter().map(|pid| describe_task(*pid, files)).collect();
        Ok(Started { notes, ..Started::new(Target::Processes(pids), names.join(", ")) })
    }

    fn new(target: Target, description: String) -> Started {
        Started {
            target,
            launched: None,
            is_timer: false,
            taken: Vec::new(),
            description,
            notes: Vec::new(),
            exit: None,
        }
    }

    fn of_launched(launched: Launched, command: &[OsString]) -> Started {
        let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        let started = Started::new(Target::Launched(launched.pid()), words.join(" "));
        Started { launched: Some(launched), ..started }
    }

    /// What is to be said of the target as it was found.
    pub(super) fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Remembers what a session has found of it.
    pub(super) fn take(&mut self, taken: &Taken) {
        self.taken.clone_from(&taken.processes);
        if taken.descendants > 0 {
            let others = if taken.descendants == 1 { "process" } else { "processes" };
            self.description += &format!(" and {} {others} below", taken.descendants);
        }
    }

    /// The sampler's view of it.
    pub(super) fn target(&self) -> Target {
        self.target.clone()
    }

    /// In words, for titles.
    pub(super) fn describe(&self) -> String {
        self.description.clone()
    }

    /// Lets a launched program run for a while before it is recorded. It is a process as any other then.
    ///
    /// # Errors
    /// It has ended by then, or flame was asked to.
    pub(super) fn delay(&mut self, time: Duration, signals: &StopSignals) -> Result<(), Failure> {
        // What only says how long to record has not begun yet.
        if let Target::Launched(pid) = self.target {
            self.release().map_err(|error| failure(&error))?;
            self.target = Target::Processes(vec![pid]);
        }
        let begin = Instant::now() + time;
        loop {
            let left = begin.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            if let Some(launched) = &mut self.launched {
                self.exit = launched.try_wait();
            }
            let why = match self.exit {
                Some(_) => "the program has ended by then",
                None if signals.arrived() => "flame was asked to end before that",
                None => {
                    thread::sleep(left.min(POLL));
                    continue;
                }
            };
            return Err(Failure::new(
                "nothing was recorded: the recording ended before --delay was over",
            )
            .why(why));
        }
    }

    /// Lets a launched program run.
    pub(super) fn release(&mut self) -> Result<(), SamplerError> {
        self.launched.as_mut().map_or(Ok(()), Launched::release)
    }

    /// Whether there is nothing left to sample.
    pub(super) fn has_ended(&mut self) -> bool {
        if let Some(launched) = &mut self.launched {
            self.exit = self.exit.or_else(|| launched.try_wait());
            if self.exit.is_some() {
                return true;
            }
        }
        match &self.target {
            Target::Processes(_) => !self.taken.iter().any(|pid| is_alive(live_task_of(*pid))),
            Target::Threads(tids) => !tids.iter().any(|tid| is_alive(*tid)),
            Target::Cgroup(group) => !group.path().exists(),
            Target::System | Target::Launched(_) => false,
        }
    }

    /// Ends a launched program that still runs, and tells how it ended; `None` for what is not a target
    /// that was launched, or would not end.
    pub(super) fn finish(&mut self, signals: &StopSignals) -> Option<ExitReport> {
        let launched = self.launched.as_mut()?;
        let has_time = signals.interrupted() && handles_interrupt(launched.pid());
        let ask = Instant::now() + if has_time { AFTER_INTERRUPT } else { Duration::ZERO };
        let mut asked = false;
        while self.exit.is_none() {
            self.exit = launched.try_wait();
            let now = Instant::now();
            if self.exit.is_some() || now >= ask + PATIENCE {
                break;
            }
            if now >= ask && !asked {
                launched.terminate();
                asked = true;
            }
            thread::sleep(POLL);
        }
        self.exit.filter(|_| !self.is_timer)
    }

    /// Gives up a target whose recording failed: a program that waits never runs, one that runs is
    /// left alone.
    pub(super) fn abandon(&mut self) {
        if let Some(launched) = self.launched.take() {
            launched.abandon();
        }
    }
}

/// Each task once, however often it was named: events opened twice would give every sample twice.
fn distinct<T: Copy + Ord>(tasks: &[T]) -> Vec<T> {
    let mut tasks = tasks.to_vec();
    tasks.sort_unstable();
    tasks.dedup();
    tasks
}

/// Whether a process has a handler of SIGINT.
fn handles_interrupt(pid: Pid) -> bool {
    is_in_mask(&pid.to_string(), "SigCgt", Signal::SIGINT as i32)
}

fn describe_task(pid: Pid, files: &LiveFiles) -> String {
    match command_line(pid, files) {
        Some(command) => format!("{command} ({pid})"),
        None => format!("process {pid}"),
    }
}
