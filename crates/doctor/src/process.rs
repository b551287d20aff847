//! Whether one process may be sampled, and what it is.

use std::fs;
use std::io;
use std::sync::Arc;

use flame_events::Processes;
use flame_profile::{Pid, Tid};
use flame_recorder::{LiveFiles, TargetFiles, TargetMemory, command_line, enter, owner_of};
use flame_sampler::{
    Concession, SamplerConfig, SamplerError, Session, Target, is_alive, live_task_of, process_of,
    threads_of,
};
use flame_unwind::Architecture;
use nix::unistd::Uid;

use crate::check::{Check, Facts};
use crate::rights::{by_root, more_rights, needs_admin, paranoid, paranoid_fix, user_name};
use crate::runtime;
use flame_message::{quoted, reason};

/// A process with what it has mapped.
#[derive(Debug)]
pub struct Process {
    pub(crate) pid: Pid,
    pub(crate) owner: Option<u32>,
    /// What it has mapped, as a recording would enter it.
    pub(crate) processes: Processes,
    threads: usize,
    command: String,
    /// The way to its files.
    pub(crate) files: Arc<dyn TargetFiles>,
    /// The way to its memory.
    pub(crate) memory: Arc<dyn TargetMemory>,
}

impl Process {
    /// The process of that number, or that the thread of that number belongs to; `None` when there
    /// is none.
    pub fn find(pid: Pid, files: &LiveFiles) -> Option<Process> {
        let pid = process_of(Tid(pid.0))?;
        let threads = threads_of(pid);
        if !is_alive(live_task_of(pid)) {
            return None;
        }
        let mut processes = Processes::default();
        enter(&mut processes, pid, files);
        Some(Process {
            pid,
            owner: owner_of(pid),
            processes,
            threads: threads.len(),
            command: command_line(pid, files).unwrap_or_default(),
            files: Arc::new(files.clone()),
            memory: Arc::new(files.clone()),
        })
    }

    /// How many threads it has.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// What identifies it for the reader.
    pub(crate) fn facts(&self) -> Facts {
        Facts {
            pid: self.pid.0,
            command: self.command.clone(),
            user: self.owner,
            threads: self.threads,
        }
    }

    /// A file of its directory in /proc.
    pub(crate) fn path(&self, name: &str) -> String {
        format!("/proc/{}/{name}", live_task_of(self.pid))
    }

    /// The checks of the process itself.
    pub(crate) fn examine(&self) -> Vec<Check> {
        let mut checks = self.sampling();
        checks.push(self.memory());
        checks.extend(self.namespaces());
        checks.extend(runtime::examine(self));
        checks
    }

    /// Opens the events of its main thread, and closes them.
    fn sampling(&self) -> Vec<Check> {
        let mask = Architecture::NATIVE.perf_register_mask();
        let config = SamplerConfig::new(Target::Threads(vec![Tid(self.pid.0)]), mask);
        let concessions = match Session::open(&config) {
            Ok(session) => session.concessions().to_vec(),
            Err(error) => return vec![self.refused(&error)],
        };
        let owner = self.owner.map_or_else(|| "an unknown user".to_owned(), user_name);
        let user_only = concessions.contains(&Concession::UserOnly);
        let code = if user_only { "user code only" } else { "user and kernel code" };
        vec![Check::ok("sampling it", format!("allowed, {code}; it belongs to {owner}"))]
    }

    fn refused(&self, error: &SamplerError) -> Check {
        let name = "sampling it";
        let me = Uid::effective().as_raw();
        match error {
            SamplerError::TaskDenied { .. } => match self.owner {
                Some(owner) if owner != me => {
                    let why = format!("it belongs to {}, and {}", user_name(owner), paranoid());
                    Check::missing(name, why).fix(more_rights())
                }
                _ if needs_admin() => Check::missing(name, paranoid()).fix(paranoid_fix(2)),
                _ => {
                    let why = "it is protected: a set-user-id program, one with capabilities, or \
                               one that changed its user";
                    Check::missing(name, why).fix(more_rights())
                }
            },
            SamplerError::Io { source, .. } => Check::missing(name, reason(source)),
            other => Check::missing(name, other.to_string()),
        }
    }

    /// Reads a byte of it, as is done for stacks deeper than what is copied.
    fn memory(&self) -> Check {
        let name = "memory of it";
        let space = self.processes.space(self.pid);
        let Some(mapping) = space.and_then(|space| space.iter().next()) else {
            let why = "its mappings cannot be read, so none of its addresses get names";
            return Check::missing(name, why).fix(self.again());
        };
        match self.memory.read(self.pid, mapping.start, &mut [0]) {
            Ok(_) => Check::ok(name, "readable"),
            Err(error) => {
                let why =
                    format!("{}: stacks deeper than 65,528 bytes are truncated", reason(&error));
                Check::limited(name, why).fix(self.again()).optional()
            }
        }
    }

    /// The same question with the rights that it needs.
    pub(crate) fn again(&self) -> String {
        match Uid::effective().is_root() {
            true => more_rights(),
            false => {
                by_root(&format!("{} doctor -p {}", quoted(&crate::rights::own_path()), self.pid))
            }
        }
    }

    /// What it sees otherwise than flame does.
    fn namespaces(&self) -> Option<Check> {
        let differs = |kind: &str| {
            let own = fs::read_link(format!("/proc/self/ns/{kind}")).ok();
            let other = fs::read_link(self.path(&format!("ns/{kind}"))).ok();
            own.is_some() && other.is_some() && own != other
        };
        let kinds = [("mnt", "files"), ("pid", "process numbers"), ("user", "users")];
        let other: Vec<&str> =
            kinds.iter().filter(|(kind, _)| differs(kind)).map(|(_, what)| *what).collect();
        if other.is_empty() {
            return None;
        }
        let found = format!("it has {} of its own", other.join(", "));
        Some(match fs::read_dir(self.path("root")) {
            Ok(_) => Check::ok("container", format!("{found}; its files are readable")),
            Err(error) => {
                let found = format!("{found}; its files are not readable: {}", reason(&error));
                Check::missing("container", found).fix(self.again())
            }
        })
    }

    /// Whether it sees the same files as flame under the same paths.
    pub(crate) fn shares_files(&self) -> bool {
        fs::read_link(self.path("ns/mnt")).ok() == fs::read_link("/proc/self/ns/mnt").ok()
    }

    /// Its number as it sees it itself, the innermost namespace's.
    pub(crate) fn inner_pid(&self) -> u32 {
        let status = fs::read_to_string(self.path("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let inner = line.and_then(|line| line.split_ascii_whitespace().next_back()?.parse().ok());
        inner.unwrap_or(self.pid.0)
    }

    /// The words of its command line or of its environment.
    pub(crate) fn words(&self, file: &str) -> io::Result<Vec<String>> {
        let bytes = self.files.text(self.pid, file)?;
        let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        Ok(words.map(|word| String::from_utf8_lossy(word).into_owned()).collect())
    }
}
