//! The threads of a process, and the processes below it.

use std::collections::BTreeSet;
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

/// A task by whose number /proc shows the memory and the files of a process: its main thread, or another one
/// where that has ended before them.
pub fn live_task_of(pid: Pid) -> Tid {
    let main = Tid(pid.0);
    if state_of(main) != Some(b'Z') {
        return main;
    }
    threads_of(pid).into_iter().find(|tid| is_alive(*tid)).unwrap_or(main)
}

/// The process that a thread belongs to; `None` when the thread does not exist.
pub fn process_of(tid: Tid) -> Option<Pid> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let group = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    group.trim().parse().ok().map(Pid)
}

/// The processes that those have started, and those that these have, as far as they exist now: not
/// `pids` themselves, nor flame and what it has started. Ascending.
pub fn descendants_of(pids: &[Pid]) -> Vec<Pid> {
    let parents: Vec<(Pid, Pid)> =
        all_processes().filter_map(|pid| Some((pid, parent_of(pid)?))).collect();
    let own = Pid(std::process::id());
    let mut family: BTreeSet<Pid> = pids.iter().copied().collect();
    // Children of children: until nothing is added any more.
    loop {
        let is_new = |(pid, parent): &&(Pid, Pid)| {
            *pid != own && family.contains(parent) && !family.contains(pid)
        };
        let new: Vec<Pid> = parents.iter().filter(is_new).map(|(pid, _)| *pid).collect();
        if new.is_empty() {
            break;
        }
        family.extend(new);
    }
    family.into_iter().filter(|pid| !pids.contains(pid)).collect()
}

/// The processes that exist now.
pub(crate) fn all_processes() -> impl Iterator<Item = Pid> {
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok().map(Pid);
    fs::read_dir("/proc").into_iter().flatten().filter_map(move |entry| number(entry.ok()?))
}

/// The process that started a process, or has adopted it.
pub fn parent_of(pid: Pid) -> Option<Pid> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // `pid (name) state ppid ...`, and the name may itself hold parentheses and spaces.
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok().map(Pid)
}

/// Whether a task is stopped, by a signal or by a debugger.
pub fn is_stopped(tid: Tid) -> bool {
    matches!(state_of(tid), Some(b'T' | b't'))
}

/// The user who owns a task; `None` when it does not exist.
pub(crate) fn owner_of(tid: Tid) -> Option<u32> {
    fs::metadata(format!("/proc/{tid}")).ok().map(|status| status.uid())
}

/// Whether a task exists and has not ended: a zombie has a number but runs no more.
pub fn is_alive(tid: Tid) -> bool {
    !matches!(state_of(tid), None | Some(b'Z' | b'X'))
}

/// The letter that /proc has for what a task does.
fn state_of(tid: Tid) -> Option<u8> {
    let stat = fs::read(format!("/proc/{tid}/stat")).ok()?;
    // The state follows the name, which stands in parentheses and may itself hold some.
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(name_end + 2).copied()
}
