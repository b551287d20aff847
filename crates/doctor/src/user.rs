//! What this user may do besides opening events.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use caps::Capability;
use flame_events::parse_maps;
use flame_sampler::may_go_first;
use nix::unistd::{AccessFlags, Uid, User, access};

use crate::check::Check;
use crate::limits::setting;
use crate::rights::{by_root, has, more_rights, setcap_with};

/// The capabilities that flame has a use for, and what for.
const USEFUL: &[(Capability, &str)] = &[
    (Capability::CAP_PERFMON, "perfmon"),
    (Capability::CAP_SYS_PTRACE, "sys_ptrace"),
    (Capability::CAP_SYS_NICE, "sys_nice"),
    (Capability::CAP_SYSLOG, "syslog"),
    (Capability::CAP_DAC_READ_SEARCH, "dac_read_search"),
    (Capability::CAP_CHECKPOINT_RESTORE, "checkpoint_restore"),
    (Capability::CAP_IPC_LOCK, "ipc_lock"),
    (Capability::CAP_SYS_ADMIN, "sys_admin"),
];

/// The checks of all rights.
pub(crate) fn examine() -> Vec<Check> {
    vec![capabilities(), memory(), deep_stacks(), deleted_files(), bpf(), outputs()]
}

/// Only what there is: what it is good for was tried.
fn capabilities() -> Check {
    let uid = Uid::effective();
    let user = User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name);
    let all: Vec<&str> =
        USEFUL.iter().filter(|(capability, _)| has(*capability)).map(|(_, name)| *name).collect();
    let found = match all.as_slice() {
        [] => "no capability that flame could use".to_owned(),
        all => format!("with {}", all.join(", ")),
    };
    Check::ok("user", format!("{user}, {found}")).optional()
}

/// Of own processes; that of a target is tried.
fn memory() -> Check {
    let name = "memory of processes";
    let scope: Option<u32> = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope")
        .ok()
        .and_then(|text| text.trim().parse().ok());
    let check = match scope {
        _ if has(Capability::CAP_SYS_PTRACE) => Check::ok(name, "readable, of all processes"),
        None | Some(0) => Check::ok(name, "readable, of your own processes"),
        Some(level @ 1..=2) => Check::limited(
            name,
            format!(
                "kernel.yama.ptrace_scope is {level}: only of programs that flame launched. \
                 Stacks deeper than 65,528 bytes are truncated"
            ),
        )
        .fix(by_root("sysctl kernel.yama.ptrace_scope=0")),
        Some(level) => {
            let why = format!("kernel.yama.ptrace_scope is {level}, which lasts until a reboot");
            Check::missing(name, why)
        }
    };
    check.optional()
}

/// Stacks beyond their copy are read at the moment of the sample, by readers that nothing overtakes.
fn deep_stacks() -> Check {
    let name = "deep stacks";
    let check = match may_go_first() {
        true => {
            Check::ok(name, "read completely at the moment of the sample, if events see all tasks")
        }
        false => Check::limited(
            name,
            "no right to the real-time class: stacks deeper than 16 to 64 KiB, and scripts, are read only where a \
             reader gets the CPU at once. To read nearly all takes CAP_SYS_NICE, or a limit of real-time \
             priority (ulimit -r)",
        )
        .fix(more_rights()),
    };
    check.optional()
}

/// The kernel's links to mapped files, which lead to those that are gone or replaced as well.
fn deleted_files() -> Check {
    let name = "deleted files";
    let maps = parse_maps(&fs::read("/proc/self/maps").unwrap_or_default());
    let Some(own) = maps.into_iter().find(|mapping| mapping.path.starts_with(b"/")) else {
        return Check::missing(name, "/proc/self/maps is not readable").optional();
    };
    let link = format!("/proc/self/map_files/{:x}-{:x}", own.start.0, own.end.0);
    let check = match File::open(link) {
        Ok(_) => Check::ok(name, "readable while they are mapped"),
        Err(_) => Check::missing(
            name,
            "libraries replaced since they were loaded cannot be read: needs \
             CAP_CHECKPOINT_RESTORE",
        )
        .fix(match Uid::effective().is_root() {
            true => more_rights(),
            false => setcap_with("cap_checkpoint_restore,"),
        }),
    };
    check.optional()
}

/// Not tried, since loading a program is not a question but an act.
fn bpf() -> Check {
    let privileged = has(Capability::CAP_BPF) || has(Capability::CAP_SYS_ADMIN);
    let open = setting::<u32>("unprivileged_bpf_disabled") == Some(0);
    let check = match (privileged, open) {
        (true, _) => Check::ok("BPF", "allowed; no recording needs it"),
        (_, true) => Check::limited("BPF", "socket filters only; no recording needs it"),
        _ => Check::missing("BPF", "not allowed; no recording needs it"),
    };
    check.optional()
}

fn outputs() -> Check {
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let writable = |path: &Path| access(path, AccessFlags::W_OK | AccessFlags::X_OK).is_ok();
    let outputs = match writable(&here) {
        true => Check::ok("outputs", format!("{} is writable", here.display())),
        false => Check::missing("outputs", format!("{} is not writable for you", here.display()))
            .fix("cd /tmp, or -o with a file elsewhere"),
    };
    outputs.optional()
}
