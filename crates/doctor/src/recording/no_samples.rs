//! Why there are no samples, and what shows more.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use flame_message::{Failure, group_thousands};
use flame_profile::{Cpu, Nanos, Pid, Profile, Tid};
use flame_sampler::{Concession, Session, is_stopped};
use nix::unistd::Uid;

const WAITS: &str = "--mode off-cpu, to see where it waits (needs the right to sample the kernel)";

/// No longer filter is told, such as that for all system calls that read or write.
const MOST_FILTER: usize = 80;

/// A recording without samples.
#[derive(Debug)]
pub struct NoSamples<'a> {
    /// What is known all the same.
    pub profile: &'a Profile,
    /// What was sampled.
    pub session: &'a Session,
    /// The CPUs that were chosen.
    pub cpus: Option<&'a [Cpu]>,
    /// What was asked for of the event's occurrences.
    pub filter: Option<&'a str>,
    /// The file of the program that was launched.
    pub program: Option<&'a Path>,
}

impl NoSamples<'_> {
    /// The failure that it is, for a target that was given so much CPU time by the kernel.
    pub fn failure(&self, accounted: Nanos) -> Failure {
        let failure = Failure::new("no samples were taken");
        if !self.session.event().is_clock() {
            return self.without_events(failure);
        }
        let used = accounted.0 as f64 / 1e6;
        let interval = self.profile.meta.period.unwrap_or(0) as f64 / 1e6;
        let duration = self.duration();
        if let Some(pid) = self.stopped() {
            return failure
                .why(format!("process {pid} is stopped, by a signal or a debugger"))
                .or_try(format!("kill -CONT {pid}, and record again"));
        }
        if let Some(path) = self.hidden_program() {
            let path = path.display();
            return failure
                .why(format!(
                    "{path} runs with other rights than the user has who starts it (set-user-id or \
                     capabilities): the kernel does not let that user sample it"
                ))
                .or_again_with("sudo");
        }
        let slept = format!(
            "it used {used:.1} ms of CPU time in {duration:.1} s, and a sample is taken every \
             {interval:.1} ms of it"
        );
        if let Some(cpus) = self.cpus {
            let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
            return failure
                .why(format!("only CPU {} is recorded; there {slept}", cpus.join(",")))
                .or_try("without -C, to see it on whatever CPU it runs");
        }
        // What hardly runs at all is not seen better by looking more often.
        let is_idle = used < duration * 1e3 / 20.0;
        let is_user_only = self.session.concessions().contains(&Concession::UserOnly);
        if is_user_only && used >= 5.0 * interval {
            return failure
                .why(format!(
                    "it used {used:.1} ms of CPU time in {duration:.1} s, nearly all of it in the kernel, which \
                     this user may not sample"
                ))
                .or_again_with("sudo");
        }
        match (is_idle, self.program.is_some()) {
            (_, true) if duration * 1e3 < 20.0 * interval => failure
                .why(format!("the program was short-lived: {slept}"))
                .or_try("a higher frequency: -F 4999"),
            (true, false) if self.has_ended() => failure
                .why(format!("the target ended: {slept}"))
                .or_try("flame record -- COMMAND, which records it from its start"),
            (true, false) => failure
                .why(format!("the target slept: {slept}"))
                .or_try("a longer recording, while it has work")
                .or_try(WAITS),
            (true, true) => failure
                .why(format!("the program slept: {slept}"))
                .or_try(WAITS)
                .or_try("a higher frequency: -F 4999"),
            (false, _) => failure
                .why(format!("samples are missing: {slept}"))
                .or_try("a higher frequency: -F 4999"),
        }
    }

    fn duration(&self) -> f64 {
        self.profile.meta.duration.map_or(0.0, Nanos::as_secs_f64)
    }

    fn without_events(&self, failure: Failure) -> Failure {
        let (event, duration) = (self.session.event(), self.duration());
        let left_out = self.profile.health.off_cpu.map_or(0, |waits| waits.left_out);
        if left_out > 0 {
            let waits = group_thousands(left_out);
            return failure
                .why(format!(
                    "all waits in {duration:.1} s ({waits}) were shorter or longer than asked for"
                ))
                .or_try("other limits: --min-block, --max-block");
        }
        let filter = self.filter.filter(|filter| filter.len() <= MOST_FILTER);
        let filter = filter.map_or_else(String::new, |filter| format!(", with '{filter}',"));
        let why = match self.session.happened() {
            Some(happened) if happened > 0 => format!(
                "the event {event} happened {} times in {duration:.1} s, and none was sampled",
                group_thousands(happened)
            ),
            _ => format!("the event {event}{filter} did not happen in {duration:.1} s"),
        };
        let failure = failure.why(format!("{why}{}", before_the_recording(&event.name)));
        if !event.is_occurrence() {
            return failure.or_try("-e cpu-clock, or a longer recording");
        }
        let failure = failure.or_try("a longer recording, while the target does that");
        match event.name.contains("futex") {
            true => failure.or_try(WAITS),
            false => failure,
        }
    }

    /// A process of the target, if all of them are stopped.
    fn stopped(&self) -> Option<Pid> {
        let pids = &self.session.taken().processes;
        let all = pids.iter().all(|pid| is_stopped(Tid(pid.0)));
        pids.first().copied().filter(|_| all)
    }

    /// Whether no process of the target is there any more.
    fn has_ended(&self) -> bool {
        let pids = &self.session.taken().processes;
        !pids.is_empty() && pids.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    }

    /// The program that was launched, if the kernel hides it from this user.
    fn hidden_program(&self) -> Option<&Path> {
        self.program.filter(|path| !Uid::effective().is_root() && has_other_rights(path))
    }
}

/// That waits which began before the recording are none of its calls, where these are of a system call that waits.
fn before_the_recording(event: &str) -> &'static str {
    match event.contains("futex") {
        true => "; calls that began before the recording are not seen (by --mode off-cpu they are)",
        false => "",
    }
}

/// Whether a program gets rights that who starts it has not.
fn has_other_rights(path: &Path) -> bool {
    let mode = fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode());
    // Whoever may not read a program may not look into it either.
    mode & 0o6000 != 0 || fs::File::open(path).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_since_before_the_recording_is_shown_by_another_mode() {
        for event in ["syscalls:sys_exit_futex", "syscalls:sys_enter_futex"] {
            assert!(before_the_recording(event).contains("began before the recording"), "{event}");
        }
        assert_eq!(before_the_recording("page-faults"), "");
    }
}
