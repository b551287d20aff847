//! The threads of a process.

use std::fs;
use std::os::unix::fs::MetadataExt;

use flame_profile::{Pid, Tid};

/// The threads of a process now; empty when it does not exist (any more).
pub fn threads_of(pid: Pid) -> Vec<Tid> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok().map(Tid);
    entries.filter_map(|entry| number(entry.ok()?)).collect()
}

/// The process that a thread belongs to; `None` when the thread does not exist.
pub(crate) fn process_of(tid: Tid) -> Option<Pid> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let group = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    group.trim().parse().ok().map(Pid)
}

/// The user who owns a task; `None` when it does not exist.
pub(crate) fn owner_of(tid: Tid) -> Option<u32> {
    fs::metadata(format!("/proc/{tid}")).ok().map(|status| status.uid())
}

/// Whether a task exists and has not ended: a zombie has a number but runs no more.
pub fn is_alive(tid: Tid) -> bool {
    let Ok(stat) = fs::read(format!("/proc/{tid}/stat")) else {
        return false;
    };
    // The state follows the name, which stands in parentheses and may itself hold some.
    let state = stat.iter().rposition(|byte| *byte == b')').and_then(|at| stat.get(at + 2));
    !matches!(state, None | Some(b'Z' | b'X'))
}
