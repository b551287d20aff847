//! Turns threads into the names of the outermost boxes.
//!
//! A pool of threads that differ by number only is one box, unless each is asked for: 2,000 named
//! threads would be 2,000 towers of a few pixels.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::ThreadId;
use crate::profile::{Profile, Thread};

/// What stands between a thread's name and its number.
const SEPARATORS: [char; 6] = ['-', '_', '#', ':', '/', ' '];

/// What the first frame of each stack is called after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RootName {
    /// The thread's name (comm) as the kernel has it.
    #[default]
    Comm,
    /// The same without its number, where a process has several threads of the other part of it;
    /// of main threads the title, where their process has set one.
    Pool,
    /// The name of the process.
    Process,
    /// The title that the process has set itself, or else its name.
    Title,
    /// Nothing: stacks begin with their outermost function.
    None,
}

/// What the first frame of each stack is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootFrame {
    /// What it is called after.
    pub by: RootName,
    /// Write `process/thread` where a thread has another name than its process.
    pub process: bool,
    /// Put the thread id into the root frame, so that threads of one name stand apart.
    pub tid: bool,
    /// Put the process id into the root frame.
    pub pid: bool,
}

/// The names of the threads of one profile.
pub(super) struct RootNames<'p> {
    profile: &'p Profile,
    root: RootFrame,
    /// What names of pools have in common.
    pools: BTreeSet<&'p str>,
}

impl<'p> RootNames<'p> {
    pub(super) fn new(profile: &'p Profile, root: RootFrame) -> RootNames<'p> {
        let pools = match root.by {
            RootName::Pool => pools(profile),
            _ => BTreeSet::new(),
        };
        RootNames { profile, root, pools }
    }

    /// The name of a thread's outermost box; `None` where stacks have none.
    pub(super) fn name(&self, thread: ThreadId) -> Option<String> {
        let thread = self.profile.thread(thread);
        let mut name = self.base(thread)?.to_owned();
        let process = thread.process.filter(|process| self.root.process && *process != thread.name);
        if let Some(process) = process {
            name = format!("{}/{name}", self.profile.text(process));
        }
        let pid = thread.pid.filter(|_| self.root.pid).map(|pid| pid.to_string());
        let tid = thread.tid.filter(|_| self.root.tid).map(|tid| tid.to_string());
        let ids: Vec<String> = pid.into_iter().chain(tid).collect();
        if !ids.is_empty() {
            name = format!("{name}-{}", ids.join("/"));
        }
        Some(name)
    }

    fn base(&self, thread: Thread) -> Option<&'p str> {
        let own = self.profile.text(thread.name);
        let process = thread.process.map_or(own, |process| self.profile.text(process));
        let title = || thread.pid.and_then(|pid| self.profile.title(pid));
        match self.root.by {
            RootName::Comm => Some(own),
            RootName::Pool if process == own => Some(title().unwrap_or_else(|| self.pool(own))),
            RootName::Pool => Some(self.pool(own)),
            RootName::Process => Some(process),
            RootName::Title => Some(title().unwrap_or(process)),
            RootName::None => None,
        }
    }

    fn pool(&self, name: &'p str) -> &'p str {
        without_number(name).and_then(|pool| self.pools.get(pool)).copied().unwrap_or(name)
    }
}

/// What the names have in common that a process has several of, but for their number.
fn pools(profile: &Profile) -> BTreeSet<&str> {
    let mut names: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
    let mut last = None;
    for sample in
        profile.samples().filter(|sample| last.replace(sample.thread) != Some(sample.thread))
    {
        let thread = profile.thread(sample.thread);
        let name = profile.text(thread.name);
        if let (Some(pid), Some(pool)) = (thread.pid, without_number(name)) {
            names.entry((pid, pool)).or_default().insert(name);
        }
    }
    let several = names.into_iter().filter(|(_, names)| names.len() > 1);
    several.map(|((_, pool), _)| pool).collect()
}

/// `pool-1-thread` of `pool-1-thread-12`; `None` of a name without a number, or with nothing else.
fn without_number(name: &str) -> Option<&str> {
    let stem = name.trim_end_matches(|character: char| character.is_ascii_digit());
    let pool = stem.trim_end_matches(SEPARATORS);
    (stem.len() < name.len() && !pool.is_empty()).then_some(pool)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Pid, StackId, Tid};
    use crate::units::ValueType;

    /// The names of threads of processes, each with one sample.
    #[track_caller]
    fn check(by: RootName, threads: &[(u32, &str, &str)], expect: &[&str]) {
        check_frames(RootFrame { by, ..RootFrame::default() }, threads, expect);
    }

    #[track_caller]
    fn check_frames(root: RootFrame, threads: &[(u32, &str, &str)], expect: &[&str]) {
        let mut profile = Profile::new(vec![ValueType::samples()]);
        profile.set_title(Pid(7), "postgres: checkpointer");
        let mut ids = Vec::new();
        for (at, (pid, process, name)) in threads.iter().enumerate() {
            let (process, name) = (profile.intern(process), profile.intern(name));
            let tid = Some(Tid(100 + u32::try_from(at).unwrap()));
            let thread = Thread { name, process: Some(process), pid: Some(Pid(*pid)), tid };
            ids.push(profile.add_whole_thread(thread));
            profile.add_sample(ids[at], StackId::EMPTY, &[1]);
        }
        let names = RootNames::new(&profile, root);
        let names: Vec<String> = ids.iter().map(|id| names.name(*id).unwrap_or_default()).collect();
        assert_eq!(names, expect);
    }

    #[test]
    fn threads_of_a_pool_have_one_name() {
        let threads = [
            (1, "java", "java"),
            (1, "java", "pool-1-thread-1"),
            (1, "java", "pool-1-thread-2"),
            (1, "java", "GC Thread#0"),
            (1, "java", "GC Thread#13"),
            (1, "java", "C2"),
            // Of another process that was met once, and of kernel threads, each a process.
            (2, "java", "pool-1-thread-9"),
            (3, "ksoftirqd/0", "ksoftirqd/0"),
            (4, "ksoftirqd/1", "ksoftirqd/1"),
            (5, "12", "12"),
            (7, "postgres", "postgres"),
            (7, "postgres", "bgworker"),
            (7, "postgres", "bgworker-1"),
        ];
        let pools = [
            "java",
            "pool-1-thread",
            "pool-1-thread",
            "GC Thread",
            "GC Thread",
            "C2",
            "pool-1-thread",
            "ksoftirqd/0",
            "ksoftirqd/1",
            "12",
            "postgres: checkpointer",
            "bgworker",
            "bgworker-1",
        ];
        check(RootName::Pool, &threads, &pools);
        check(RootName::Comm, &threads, &threads.map(|(_, _, name)| name));
        check(RootName::Process, &threads, &threads.map(|(_, process, _)| process));
        let mut titles = threads.map(|(_, process, _)| process);
        titles[10..].fill("postgres: checkpointer");
        check(RootName::Title, &threads, &titles);
        check(RootName::None, &threads[..2], &["", ""]);
    }

    #[test]
    fn processes_and_ids_stand_beside_the_name() {
        let threads = [(1, "java", "java"), (1, "java", "C2")];
        let all = RootFrame { process: true, tid: true, pid: true, ..RootFrame::default() };
        check_frames(all, &threads, &["java-1/100", "java/C2-1/101"]);
        let tid = RootFrame { tid: true, ..RootFrame::default() };
        check_frames(tid, &threads, &["java-100", "C2-101"]);
    }
}
