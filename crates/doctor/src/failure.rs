//! Errors of the sampler in words for the user.

use std::io;

use flame_message::{Failure, clean_name, reason};
use flame_profile::{Hz, Tid};
use flame_recorder::NoAllocator;
use flame_sampler::{CgroupError, SamplerError};
use nix::unistd::Uid;

use crate::rights::{
    by_root, is_root, lower_paranoid, more_rights, needs_admin, paranoid, setcap_command,
    user_name, why_refused,
};

/// The failure that an error of the sampler is for the user.
pub fn failure(error: &SamplerError) -> Failure {
    match error {
        SamplerError::NoSuchProcess { pid } => {
            Failure::new(format!("cannot sample process {pid}: no such process"))
                .why("it has ended, or the number is that of a thread")
                .or_try("pgrep -a NAME, then flame record -p with its number")
        }
        SamplerError::NoSuchThread { tid } => {
            Failure::new(format!("cannot sample thread {tid}: no such thread"))
                .why("it has ended, or the number is of another PID namespace")
                .or_try("ps -eLo tid,pid,comm, then flame record -t with its number")
        }
        SamplerError::TaskDenied { tid, owner } => task_denied(*tid, *owner),
        SamplerError::Denied { what, level } => denied(what, *level),
        SamplerError::EventUnsupported { event, source } => {
            Failure::new(format!("cannot sample {event}: {}", reason(source)))
                .why("this machine (or virtual machine) does not offer that event")
                .or_try("-e cpu-clock, which every machine has")
        }
        SamplerError::Filter { event, filter, source } => bad_filter(event, filter, source),
        SamplerError::FrequencyTooHigh { asked, limit } => too_fast(*asked, *limit),
        SamplerError::TooManyFiles { needed, limit } => {
            let failure = Failure::new("cannot sample so many threads: out of file descriptors")
                .why(format!(
                    "each thread takes one per CPU or more; at least {needed} are needed, {limit} are \
                     allowed"
                ))
                .or_try(format!("{} --nofile=1048576 --pid $$", by_root("prlimit")));
            // Bound to CPUs, events do not grow with the threads.
            as_root(failure)
        }
        SamplerError::LockedMemory { mlock_kb, needed_kb, .. } => {
            let limit = mlock_kb.map_or_else(|| "unknown".to_owned(), |kb| kb.to_string());
            let failure = Failure::new("cannot lock memory for the rings: operation not permitted")
                .why(format!(
                    "kernel.perf_event_mlock_kb is {limit}, used up by this or another profiler"
                ))
                .or_try(by_root(&format!("sysctl kernel.perf_event_mlock_kb={needed_kb}")));
            as_root(failure)
        }
        SamplerError::NoSuchCpu { cpu, online } => {
            Failure::new(format!("cannot sample CPU {cpu}: it is not online"))
                .why(format!("online are {online}"))
        }
        SamplerError::NothingNamed { what } => {
            Failure::usage(format!("nothing to record: an empty list of {what}"))
        }
        SamplerError::ProgramNotFound { program } => not_found(program),
        SamplerError::ProgramNotRunnable { program, source } => {
            Failure::new(format!("cannot run {program}: {}", reason(source)))
        }
        SamplerError::Io { doing, source } => {
            Failure::new(format!("cannot {doing}: {}", reason(source)))
        }
        other => Failure::new(other.to_string()),
    }
}

/// Something that the kernel does not let this user sample; `level` is what lets everybody.
fn denied(what: &str, level: Option<i32>) -> Failure {
    let failure = Failure::new(format!("cannot sample {what}: permission denied"));
    match level {
        // The capabilities that suffice for other events do not open that file.
        None if !is_root() => {
            as_root(failure.why(
                "functions are told to the kernel by a file of root's, uprobe_events of tracefs",
            ))
        }
        _ => {
            let failure =
                level.iter().fold(failure, |failure, level| failure.why(why_refused(*level)));
            with_more_rights(failure, level)
        }
    }
}

/// A program that is not there; what was typed may be meant for `-p`.
fn not_found(program: &str) -> Failure {
    // A path is not looked for.
    if program.contains('/') {
        return Failure::new(format!("cannot run {program}: no such file"));
    }
    Failure::new(format!("cannot run {program}: command not found"))
        .why("no file of that name exists in a directory of PATH")
        .or_try(match program.bytes().all(|byte| byte.is_ascii_digit()) {
            true => format!("flame record -p {program}, for a process that runs"),
            false => format!("flame record -p {program}, for processes of that name"),
        })
}

/// The failure that a control group which cannot be sampled is for the user.
pub fn cgroup_failure(error: &CgroupError) -> Failure {
    match error {
        CgroupError::NotMounted => Failure::new("cannot sample a control group: there are none")
            .why("no cgroup file system with the perf_event controller is mounted")
            .or_try(by_root("mount -t cgroup2 none /sys/fs/cgroup")),
        CgroupError::NotFound { name, mount } => {
            let name = clean_name(name);
            let mount = mount.display();
            Failure::new(format!("cannot sample control group {name}: no such group"))
                .why(format!(
                    "{mount} has none at that path, and no container whose id begins like that"
                ))
                .or_try("systemd-cgls, or docker ps, then its path or id")
        }
        CgroupError::Ambiguous { name, groups } => Failure::new(format!(
            "cannot sample control group {}: it is not unique",
            clean_name(name)
        ))
        .why(format!("it is the beginning of {}", clean_name(&groups.join(", ")))),
        CgroupError::Unreadable { path, source } => {
            let path = path.display();
            let what = format!("cannot open control group {path}: {}", reason(source));
            as_root(Failure::new(what))
        }
        other => Failure::new(other.to_string()),
    }
}

/// The failure that a target without a function malloc is for the user.
pub fn allocator_failure(error: &NoAllocator) -> Failure {
    let why = match &error.on_user_file_system {
        None => "neither the program nor a library of it has the symbol: a program that is linked \
                 statically has it only until it is stripped, and one in Go has none"
            .to_owned(),
        Some(name) => format!(
            "{name} lies on a file system that a user has mounted: the kernel would wait for it"
        ),
    };
    Failure::new("cannot measure allocations: no function malloc was found")
        .why(why)
        .or_try("--allocator FILE, with the library or program that has it")
}

/// The kernel did not understand a filter.
fn bad_filter(event: &str, filter: &str, source: &io::Error) -> Failure {
    let path = event.replace(':', "/");
    Failure::new(format!("cannot filter {event} by '{filter}': {}", reason(source)))
        .why("a filter compares fields of a tracepoint: prev_pid > 0 && comm ~ \"x*\"")
        .or_try(format!("cat /sys/kernel/tracing/events/{path}/format"))
}

fn too_fast(asked: Hz, limit: Hz) -> Failure {
    Failure::new(format!("cannot sample at {asked}: more than the kernel allows"))
        .why(format!(
            "kernel.perf_event_max_sample_rate is {}; the kernel lowers it when sampling takes too long",
            limit.0
        ))
        .or_try("-F max")
        .or_try(by_root(&format!("sysctl kernel.perf_event_max_sample_rate={}", asked.0)))
}

fn task_denied(tid: Tid, owner: Option<u32>) -> Failure {
    let what = format!("cannot sample process {tid}: permission denied");
    let me = Uid::effective().as_raw();
    let (why, level) = match owner {
        Some(owner) if owner != me => {
            (format!("it belongs to {}, and {}", user_name(owner), paranoid()), None)
        }
        _ if needs_admin() => {
            (format!("{}; 2 or lower lets you sample your own processes", paranoid()), Some(2))
        }
        _ => {
            let why = "it is protected (a set-user-id program, or one that changed its user), and";
            (format!("{why} {}", paranoid()), None)
        }
    };
    with_more_rights(Failure::new(what).why(why), level)
}

/// Everything that would lift a refusal: `level` is the highest that allows it to everybody, if any
/// does.
fn with_more_rights(failure: Failure, level: Option<i32>) -> Failure {
    let failure = match is_root() {
        true => failure.or_try(more_rights()),
        false => as_root(failure).or_try(setcap_command()),
    };
    level.into_iter().fold(failure, |failure, level| failure.or_try(lower_paranoid(level)))
}

/// Advises to run the same command as root, unless root ran it.
fn as_root(failure: Failure) -> Failure {
    if is_root() { failure } else { failure.or_again_with("sudo") }
}

#[cfg(test)]
mod tests {
    use flame_message::Paint;
    use flame_profile::ByteLen;

    use super::*;

    /// Refusals of all kinds.
    fn refusals() -> Vec<Failure> {
        let errors = [
            SamplerError::TaskDenied { tid: Tid(7), owner: Some(Uid::effective().as_raw()) },
            SamplerError::TaskDenied { tid: Tid(7), owner: Some(u32::MAX - 1) },
            SamplerError::Denied { what: "all processes", level: Some(0) },
            SamplerError::TooManyFiles { needed: 65, limit: 64 },
            SamplerError::LockedMemory { ring: ByteLen(4096), mlock_kb: Some(8), needed_kb: 516 },
            SamplerError::FrequencyTooHigh { asked: Hz(99_999), limit: Hz(999) },
        ];
        let source = io::Error::from_raw_os_error(13);
        let group = CgroupError::Unreadable { path: "/sys/fs/cgroup/one".into(), source };
        let groups = [CgroupError::NotMounted, group];
        errors.iter().map(failure).chain(groups.iter().map(cgroup_failure)).collect()
    }

    #[test]
    fn nobody_is_advised_to_become_who_they_are() {
        for failure in refusals() {
            let sudo = failure.text(Paint(false), "flame").contains("try: sudo ");
            assert_eq!(sudo, !Uid::effective().is_root(), "{failure:?}");
        }
    }
}
