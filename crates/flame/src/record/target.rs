//! What is recorded: started or found, watched, and brought to an end.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use flame_events::Processes;
use flame_profile::{Pid, Tid};
use flame_sampler::{Cgroup, Credentials, ExitReport, Launched, SamplerError, Target, is_alive};
use nix::unistd::dup2_stdout;

use crate::cli::{SamplingArgs, TargetArgs};
use crate::io_failure;
use crate::message::Failure;
use crate::message::sampler::{cgroup_failure, failure};
use crate::target_files::TargetFiles;
use crate::{proc, sudo};

/// Between two looks whether a program that was asked to end has.
const POLL: Duration = Duration::from_millis(10);

/// A target that is ready to be sampled.
#[derive(Debug)]
pub(super) struct Started {
    target: Target,
    launched: Option<Launched>,
    description: String,
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
        files: &TargetFiles,
    ) -> Result<Started, Failure> {
        let started =
            |target, description| Started { target, launched: None, description, exit: None };
        if !args.command.is_empty() {
            let user = if sampling.as_root { None } else { sudo::invoking_user() };
            return Started::launch(args, user.as_ref(), profile_on_stdout);
        }
        if let Some(name) = &args.group {
            let group = Cgroup::find(name).map_err(|error| cgroup_failure(&error))?;
            let description = format!("control group {}", group.path().display());
            return Ok(started(Target::Cgroup(group), description));
        }
        let nothing_named = args.pids.is_empty() && args.tids.is_empty();
        if args.all || (nothing_named && sampling.cpus.is_some()) {
            return Ok(started(Target::System, "all processes".to_owned()));
        }
        if nothing_named {
            return Err(Failure::usage("what is to be recorded?")
                .why("a target is missing: a process, a thread, all of the machine, or a program")
                .or_try("flame record -p PID, or flame record -- COMMAND, or flame record -a"));
        }
        if !args.tids.is_empty() {
            let tids = distinct(&args.tids);
            let names: Vec<String> =
                tids.iter().map(|tid| describe_task(Pid(tid.0), files)).collect();
            return Ok(started(Target::Threads(tids), names.join(", ")));
        }
        let pids = distinct(&args.pids);
        let names: Vec<String> = pids.iter().map(|pid| describe_task(*pid, files)).collect();
        Ok(started(Target::Processes(pids), names.join(", ")))
    }

    /// Where the profile goes to stdout, what the program prints goes to stderr: in one stream
    /// neither could be read.
    fn launch(
        args: &TargetArgs,
        user: Option<&Credentials>,
        profile_on_stdout: bool,
    ) -> Result<Started, Failure> {
        let launch = || Launched::launch(&args.command, user).map_err(|error| failure(&error));
        let launched = if profile_on_stdout { with_stdout_on_stderr(launch)? } else { launch()? };
        let words: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
        Ok(Started {
            target: Target::Launched(launched.pid()),
            description: words.join(" "),
            launched: Some(launched),
            exit: None,
        })
    }

    /// The sampler's view of it.
    pub(super) fn target(&self) -> Target {
        self.target.clone()
    }

    /// In words, for titles.
    pub(super) fn describe(&self) -> String {
        self.description.clone()
    }

    /// Tells `processes` what runs already. Call it once events are open: what is mapped between
    /// then and now is in the records, too.
    pub(super) fn enter_processes(&self, processes: &mut Processes, files: &TargetFiles) {
        let pids = match &self.target {
            Target::System => proc::all_processes(),
            Target::Processes(pids) => pids.clone(),
            Target::Threads(tids) => tids.iter().filter_map(|tid| proc::process_of(*tid)).collect(),
            Target::Cgroup(group) => group.processes(),
            Target::Launched(_) => Vec::new(),
        };
        pids.into_iter().for_each(|pid| proc::enter(processes, pid, files));
    }

    /// Lets a launched program run.
    pub(super) fn release(&mut self) -> Result<(), SamplerError> {
        self.launched.as_mut().map_or(Ok(()), Launched::release)
    }

    /// Whether there is nothing left to sample.
    pub(super) fn has_ended(&mut self) -> bool {
        if let Some(launched) = &mut self.launched {
            self.exit = self.exit.or_else(|| launched.try_wait());
            return self.exit.is_some();
        }
        match &self.target {
            Target::Processes(pids) => !pids.iter().any(|pid| is_alive(Tid(pid.0))),
            Target::Threads(tids) => !tids.iter().any(|tid| is_alive(*tid)),
            Target::Cgroup(group) => !group.path().exists(),
            Target::System | Target::Launched(_) => false,
        }
    }

    /// Ends a launched program that still runs, and tells how it ended; `None` for what was not
    /// launched, or would not end.
    pub(super) fn finish(&mut self, patience: Duration) -> Option<ExitReport> {
        let launched = self.launched.as_mut()?;
        let deadline = Instant::now() + patience;
        let mut asked = false;
        while self.exit.is_none() {
            self.exit = launched.try_wait();
            if self.exit.is_none() && !asked {
                launched.terminate();
                asked = true;
            }
            if self.exit.is_none() {
                if Instant::now() >= deadline {
                    break;
                }
                std::thread::sleep(POLL);
            }
        }
        self.exit
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

fn describe_task(pid: Pid, files: &TargetFiles) -> String {
    match proc::command_line(pid, files) {
        Some(command) => format!("{command} ({pid})"),
        None => format!("process {pid}"),
    }
}
