//! What /proc says of processes that ran before the recording began.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use flame_events::{Processes, parse_maps};
use flame_profile::{Pid, Tid};
use flame_sampler::live_task_of;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Gid, Uid};

use crate::target::{Identity, Namespace, TargetFiles};

/// Clock ticks a second in /proc, the same on every machine that flame runs on.
const USER_HZ: u64 = 100;

/// All processes there are now.
pub fn all_processes() -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok().map(Pid);
    entries.filter_map(|entry| number(entry.ok()?)).collect()
}

/// Enters a process with its mappings and the names of its threads. One that has ended or whose
/// mappings may not be read is entered without.
pub fn enter(processes: &mut Processes, pid: Pid, files: &dyn TargetFiles) {
    let maps = files.text(pid, "maps").unwrap_or_default();
    let threads = files.threads(pid);
    let main = threads.iter().find(|(tid, _)| tid.0 == pid.0);
    let name = main.map_or(&[][..], |(_, name)| name);
    processes.add_existing(pid, name, parse_maps(&maps));
    for (tid, name) in &threads {
        if !processes.knows_name(*tid) {
            processes.add_existing_thread(*tid, name);
        }
    }
}

/// The name of a thread; empty where it has ended.
pub(crate) fn name_of(pid: Pid, tid: Tid) -> Vec<u8> {
    let mut name = fs::read(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
    name.pop_if(|last| *last == b'\n');
    name
}

/// What /proc says of a process; of one that has ended that it was flame's user's.
pub fn identity_of(pid: Pid) -> Identity {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map_or_else(Vec::new, |line| line.split_ascii_whitespace().collect())
    };
    let number = |word: Option<&&str>| word.and_then(|word| word.parse::<u32>().ok());
    let caught = field("SigCgt:").first().and_then(|word| u64::from_str_radix(word, 16).ok());
    Identity {
        inner_pid: number(field("NSpid:").last()).unwrap_or(pid.0),
        // Real, effective, saved, and that of the file system.
        user: number(field("Uid:").last()).unwrap_or_else(|| Uid::effective().as_raw()),
        group: number(field("Gid:").last()).unwrap_or_else(|| Gid::effective().as_raw()),
        caught_signals: caught.unwrap_or(0),
        started: started(pid),
    }
}

/// When a process started; rounded down to a clock tick, so that what it wrote at once is not older.
fn started(pid: Pid) -> Option<SystemTime> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in the second field may hold blanks; the fields behind it start with the third.
    let ticks: u64 = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let started = Duration::from_millis(ticks.saturating_mul(1000 / USER_HZ));
    let now = Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME).ok()?);
    // The kernel takes the times of files from a clock that is up to a tick behind.
    let tick = Duration::from_millis(20);
    SystemTime::now().checked_sub(now.saturating_sub(started) + tick)
}

/// How the file system of a process relates to that of this one.
pub(crate) fn namespace(pid: Pid) -> Namespace {
    // What the links say is the kernel's own knowledge: no file system is asked for it.
    let place = |pid: &str| {
        let link = |name: &str| fs::read_link(format!("/proc/{pid}/{name}"));
        Ok::<_, io::Error>((link("root")?, link("ns/mnt")?))
    };
    match (place("self"), place(&live_task_of(pid).to_string())) {
        (Ok(ours), Ok(theirs)) if ours == theirs => Namespace::Ours,
        (Ok(_), Ok(_)) => Namespace::Other,
        _ => Namespace::Unknown,
    }
}

/// The user who owns a process.
pub fn owner_of(pid: Pid) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|status| status.uid())
}

/// Whether a process is root's and no other user's, as this user namespace knows it. Who owns its directory
/// in /proc does not tell: anybody can make that root.
pub(crate) fn is_roots(task: Tid) -> bool {
    // The line of users is among the first; this is asked for at each piece of memory that is read.
    let mut start = [0; 512];
    let read =
        File::open(format!("/proc/{task}/status")).and_then(|mut file| file.read(&mut start));
    let lines = start[..read.unwrap_or(0)].split(|byte| *byte == b'\n');
    let users = lines.filter_map(|line| line.strip_prefix(b"Uid:")).next();
    users.is_some_and(|users| {
        let mut ids = users.split(u8::is_ascii_whitespace).filter(|id| !id.is_empty()).peekable();
        ids.peek().is_some() && ids.all(|id| id == b"0")
    })
}

/// The command line of a process, its words separated by blanks; its name in brackets for one
/// without, as kernel threads are.
pub fn command_line(pid: Pid, files: &dyn TargetFiles) -> Option<String> {
    let bytes = files.text(pid, "cmdline").ok()?;
    let words: Vec<_> = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let line = words.join(" ").trim_end().to_owned();
    if !line.is_empty() {
        return Some(line);
    }
    Some(format!("[{}]", String::from_utf8_lossy(&name_of(pid, Tid(pid.0)))))
}

/// The machine's name.
pub fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flames_own_process_is_in_its_own_namespace() {
        assert_eq!(namespace(Pid(std::process::id())), Namespace::Ours);
        assert_eq!(namespace(Pid(u32::MAX)), Namespace::Unknown);
    }
}
