//! What /proc says of processes that ran before the recording began.

use std::fs;
use std::os::unix::fs::MetadataExt;

use flame_events::{Processes, parse_maps};
use flame_profile::{Pid, Tid};
use flame_sampler::threads_of;

/// All processes there are now.
pub(crate) fn all_processes() -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok().map(Pid);
    entries.filter_map(|entry| number(entry.ok()?)).collect()
}

/// The process of a thread.
pub(crate) fn process_of(tid: Tid) -> Option<Pid> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok().map(Pid)
}

/// Enters a process with its mappings and the names of its threads. One that has ended or whose
/// mappings may not be read is entered without.
pub(crate) fn enter(processes: &mut Processes, pid: Pid) {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    processes.add_existing(pid, &name_of(pid, Tid(pid.0)), parse_maps(&maps));
    for tid in threads_of(pid) {
        if !processes.knows_name(tid) {
            processes.add_existing_thread(tid, &name_of(pid, tid));
        }
    }
}

fn name_of(pid: Pid, tid: Tid) -> Vec<u8> {
    let mut name = fs::read(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
    name.pop_if(|last| *last == b'\n');
    name
}

/// The user who owns a process.
pub(crate) fn owner_of(pid: Pid) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|status| status.uid())
}

/// The command line of a process, its words separated by blanks; its name in brackets for one
/// without, as kernel threads are.
pub(crate) fn command_line(pid: Pid) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<_> = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let line = words.join(" ").trim_end().to_owned();
    if !line.is_empty() {
        return Some(line);
    }
    Some(format!("[{}]", String::from_utf8_lossy(&name_of(pid, Tid(pid.0)))))
}

/// The machine's name.
pub(crate) fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned())
}
