//! What to advise who lacks a right: nothing that they are or have already.
//!
//! Two kinds of kernels are told apart by asking them: those of Debian and Ubuntu know the levels 3
//! and 4 of kernel.perf_event_paranoid, at which CAP_PERFMON is not enough for any event; to all
//! others these levels are the same as 2.
//!
//! Sources: perf_event_open(2), capabilities(7); "security,perf: Allow further restriction of
//! perf_event_open" among the patches of Debian's linux package.

use std::path::Path;
use std::sync::OnceLock;

use caps::{CapSet, Capability};
use flame_sampler::{Feature, Privilege, paranoid_level, probe};
use nix::unistd::{Uid, User};

use flame_message::quoted;

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// The highest level that all kernels know.
const HIGHEST_COMMON: i32 = 2;

/// Whether flame has that right now.
pub fn has(capability: Capability) -> bool {
    caps::has_cap(None, CapSet::Effective, capability).unwrap_or(false)
}

/// Whether this kernel, at its level, opens no event at all without CAP_SYS_ADMIN.
pub fn needs_admin() -> bool {
    static NEEDS: OnceLock<bool> = OnceLock::new();
    *NEEDS.get_or_init(|| {
        let own = || probe(Feature::CpuClock, Privilege::User);
        paranoid_level().is_some_and(|level| level > HIGHEST_COMMON)
            && without(&[Capability::CAP_SYS_ADMIN], own)
                .is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
    })
}

/// The setting as it is, in words.
pub fn paranoid() -> String {
    match paranoid_level() {
        Some(level) => format!("kernel.perf_event_paranoid is {level}"),
        None if Path::new(PARANOID).exists() => "kernel.perf_event_paranoid forbids it".to_owned(),
        None => "this kernel has no perf events (CONFIG_PERF_EVENTS)".to_owned(),
    }
}

/// The setting, and what of it or of flame's rights would have to be different: `level` is the
/// highest that allows it to everybody.
pub fn why_refused(level: i32) -> String {
    format!("{}; this needs {level} or lower, or {}", paranoid(), missing_capability())
}

/// The capability that stands in for a lower level.
pub fn missing_capability() -> &'static str {
    if needs_admin() { "CAP_SYS_ADMIN" } else { "CAP_PERFMON" }
}

/// Whether flame runs as root, whom nothing is gained by becoming.
pub fn is_root() -> bool {
    Uid::effective().is_root()
}

/// A command that only root may run, as this user types it.
pub fn by_root(command: &str) -> String {
    if is_root() { command.to_owned() } else { format!("sudo {command}") }
}

/// What gives flame the rights that it lacks. Root lacks some in a container only.
pub fn more_rights() -> String {
    if !is_root() {
        return setcap_command();
    }
    let perfmon = if needs_admin() { "SYS_ADMIN" } else { "PERFMON" };
    format!(
        "docker run --cap-add {perfmon} --cap-add SYS_PTRACE --cap-add SYS_NICE --cap-add SYSLOG ..."
    )
}

/// What lowers kernel.perf_event_paranoid to that level; root, whom it does not bind, lacks a
/// capability.
pub fn paranoid_fix(level: i32) -> String {
    match is_root() {
        true => more_rights(),
        false => lower_paranoid(level),
    }
}

/// What lowers kernel.perf_event_paranoid to that level, for who is not root.
pub fn lower_paranoid(level: i32) -> String {
    by_root(&format!("sysctl kernel.perf_event_paranoid={level}"))
}

/// The command that gives this binary the rights it lacks; `setcap` replaces what a file has.
pub fn setcap_command() -> String {
    setcap_with("")
}

/// The same, with further capabilities: `cap_checkpoint_restore,`.
pub fn setcap_with(further: &str) -> String {
    let admin = if needs_admin() { "cap_sys_admin" } else { "cap_perfmon" };
    format!(
        "sudo setcap {further}{admin},cap_sys_ptrace,cap_sys_nice,cap_syslog=ep {}",
        quoted(&own_path())
    )
}

/// Where this binary is.
pub fn own_path() -> String {
    let path = std::env::current_exe();
    path.map_or_else(|_| "flame".to_owned(), |path| path.display().to_string())
}

/// A user in words: `user nobody`, or by the number.
pub fn user_name(uid: u32) -> String {
    match User::from_uid(Uid::from_raw(uid)) {
        Ok(Some(user)) => format!("user {}", user.name),
        _ => format!("user {uid}"),
    }
}

/// Runs `attempt` with these capabilities out of effect.
pub fn without<T>(capabilities: &[Capability], attempt: impl FnOnce() -> T) -> T {
    let Ok(before) = caps::read(None, CapSet::Effective) else { return attempt() };
    let mut less = before.clone();
    less.retain(|capability| !capabilities.contains(capability));
    if less.len() == before.len() || caps::set(None, CapSet::Effective, &less).is_err() {
        return attempt();
    }
    let result = attempt();
    if let Err(error) = caps::set(None, CapSet::Effective, &before) {
        tracing::debug!(%error, "capabilities cannot be raised");
    }
    result
}
