//! Errors of the sampler in words for the user.

use std::path::Path;

use flame_profile::{Hz, Tid};
use flame_render::clean_name;
use flame_sampler::{CgroupError, SamplerError, paranoid_level};
use nix::unistd::{Uid, User};

use super::{Failure, reason, this_command_with};

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// The smallest right that allows to sample everything, given to the binary itself.
const CAPABILITIES: &str = "cap_perfmon,cap_sys_ptrace,cap_syslog=ep";

/// The failure that an error of the sampler is for the user.
pub(crate) fn failure(error: &SamplerError) -> Failure {
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
        SamplerError::Denied { what, level } => {
            Failure::new(format!("cannot sample {what}: permission denied"))
                .why(format!("{}; this needs {level} or lower, or CAP_PERFMON", paranoid()))
                .or_try(this_command_with("sudo"))
                .or_try(format!("sudo setcap {CAPABILITIES} {}", own_path()))
                .or_try(format!("sudo sysctl kernel.perf_event_paranoid={level}"))
        }
        SamplerError::EventUnsupported { event, source } => {
            Failure::new(format!("cannot sample {event}: {}", reason(source)))
                .why("this machine (or virtual machine) does not offer that event")
                .or_try("-e cpu-clock, which every machine has")
        }
        SamplerError::FrequencyTooHigh { asked, limit } => too_fast(*asked, *limit),
        SamplerError::TooManyFiles { needed, limit } => {
            Failure::new("cannot sample so many threads: out of file descriptors")
                .why(format!(
                    "each thread takes one a CPU; at least {needed} are needed, {limit} are allowed"
                ))
                .or_try("ulimit -n 1048576 (as root), or as root, where it takes one a thread")
        }
        SamplerError::LockedMemory { mlock_kb, needed_kb, .. } => {
            let limit = mlock_kb.map_or_else(|| "unknown".to_owned(), |kb| kb.to_string());
            Failure::new("cannot lock memory for the rings: operation not permitted")
                .why(format!(
                    "kernel.perf_event_mlock_kb is {limit}, used up by this or another profiler"
                ))
                .or_try(format!("sudo sysctl kernel.perf_event_mlock_kb={needed_kb}"))
                .or_try(this_command_with("sudo"))
        }
        SamplerError::NoSuchCpu { cpu, online } => {
            Failure::new(format!("cannot sample CPU {cpu}: it is not online"))
                .why(format!("online are {online}"))
        }
        SamplerError::ProgramNotFound { program } => {
            Failure::new(format!("cannot run {program}: command not found"))
                .why("no file of that name is there or in a directory of PATH")
        }
        SamplerError::ProgramNotRunnable { program, source } => {
            Failure::new(format!("cannot run {program}: {}", reason(source)))
        }
        SamplerError::Io { doing, source } => {
            Failure::new(format!("cannot {doing}: {}", reason(source)))
        }
        other => Failure::new(other.to_string()),
    }
}

/// The failure that a control group which cannot be sampled is for the user.
pub(crate) fn cgroup_failure(error: &CgroupError) -> Failure {
    match error {
        CgroupError::NotMounted => Failure::new("cannot sample a control group: none is there")
            .why("no cgroup file system with the perf_event controller is mounted")
            .or_try("sudo mount -t cgroup2 none /sys/fs/cgroup"),
        CgroupError::NotFound { name, mount } => {
            let name = clean_name(name);
            let mount = mount.display();
            Failure::new(format!("cannot sample control group {name}: no such group"))
                .why(format!("{mount} has none of that path, and no container whose id begins so"))
                .or_try("systemd-cgls, or docker ps, then its path or id")
        }
        CgroupError::Ambiguous { name, groups } => Failure::new(format!(
            "cannot sample control group {}: it is not unique",
            clean_name(name)
        ))
        .why(format!("it is the beginning of {}", clean_name(&groups.join(", ")))),
        CgroupError::Unreadable { path, source } => {
            let path = path.display();
            Failure::new(format!("cannot open control group {path}: {}", reason(source)))
                .or_try(this_command_with("sudo"))
        }
        other => Failure::new(other.to_string()),
    }
}

fn too_fast(asked: Hz, limit: Hz) -> Failure {
    Failure::new(format!("cannot sample at {asked}: more than the kernel allows"))
        .why(format!(
            "kernel.perf_event_max_sample_rate is {}; the kernel lowers it when sampling takes too long",
            limit.0
        ))
        .or_try("-F max")
        .or_try(format!("sudo sysctl kernel.perf_event_max_sample_rate={}", asked.0))
}

fn task_denied(tid: Tid, owner: Option<u32>) -> Failure {
    let what = format!("cannot sample process {tid}: permission denied");
    let me = Uid::effective().as_raw();
    let level = paranoid_level();
    let failure = match owner {
        Some(owner) if owner != me => Failure::new(what).why(format!(
            "it belongs to {}, and {}",
            user_name(owner),
            paranoid()
        )),
        _ if level.is_some_and(|level| level > 2) => Failure::new(what)
            .why(format!("{}; 2 or lower lets you sample your own processes", paranoid()))
            .or_try("sudo sysctl kernel.perf_event_paranoid=2"),
        _ => Failure::new(what).why(format!(
            "it is protected (a set-user-id program, or one that changed its user), and {}",
            paranoid()
        )),
    };
    failure
        .or_try(this_command_with("sudo"))
        .or_try(format!("sudo setcap {CAPABILITIES} {}", own_path()))
}

/// The setting as it is, in words.
pub(crate) fn paranoid() -> String {
    match paranoid_level() {
        Some(level) => format!("kernel.perf_event_paranoid is {level}"),
        None if Path::new(PARANOID).exists() => "kernel.perf_event_paranoid forbids it".to_owned(),
        None => "this kernel has no perf events (CONFIG_PERF_EVENTS)".to_owned(),
    }
}

/// The command that gives this binary the rights it lacks.
pub(crate) fn setcap_command() -> String {
    format!("sudo setcap {CAPABILITIES} {}", own_path())
}

/// Where this binary is.
pub(crate) fn own_path() -> String {
    let path = std::env::current_exe();
    path.map_or_else(|_| "flame".to_owned(), |path| path.display().to_string())
}

/// A user in words: `user nobody`, or by the number.
pub(crate) fn user_name(uid: u32) -> String {
    match User::from_uid(Uid::from_raw(uid)) {
        Ok(Some(user)) => format!("user {}", user.name),
        _ => format!("user {uid}"),
    }
}
