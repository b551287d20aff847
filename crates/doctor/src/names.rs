//! Processes as they are typed: by number or by name.

use std::fs;

use flame_message::{Failure, Note};
use flame_profile::{Pid, Tid};
use flame_recorder::{LiveFiles, TargetFiles, all_processes, command_line};
use flame_sampler::{parent_of, process_of};

/// Processes of a name that are listed at most.
const LISTED: usize = 8;

/// Characters of a process's name that the kernel keeps.
const NAME: usize = 15;

/// A process as it is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessName {
    /// Its number, or that of one of its threads.
    Number(Pid),
    /// Its name, or that of what it runs.
    Name(String),
}

/// The process that is meant, with what is to be said of it.
///
/// # Errors
/// No process has that name, or several that are not one tree.
pub fn process_called(
    name: &ProcessName,
    files: &LiveFiles,
) -> Result<(Pid, Option<Note>), Failure> {
    match name {
        ProcessName::Number(number) => Ok(by_number(*number, files)),
        ProcessName::Name(name) => {
            let own = std::process::id();
            let all = all_processes().into_iter().filter(|pid| pid.0 != own);
            let found: Vec<Pid> = all.filter(|pid| is_called(*pid, name, files)).collect();
            one_tree(name, &found, parent_of, files).map(|pid| (pid, None))
        }
    }
}

/// A number may be that of a thread, as `top -H` shows them: then its process is meant, as of perf.
fn by_number(number: Pid, files: &LiveFiles) -> (Pid, Option<Note>) {
    match process_of(Tid(number.0)) {
        Some(process) if process != number => {
            let name = command_line(process, files).unwrap_or_default();
            let text = format!(
                "{number} is a thread of process {process} ({name}): all of its threads are recorded"
            );
            (process, Some(Note::new(text, format!("-t {number}, for that thread alone"))))
        }
        _ => (number, None),
    }
}

/// Whether a process has that name: its own, its file's, or the word that it was started by.
fn is_called(pid: Pid, name: &str, files: &LiveFiles) -> bool {
    let comm = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    let short = &name.as_bytes()[..name.len().min(NAME)];
    let of_path = |path: &str| path.rsplit('/').next() == Some(name);
    let file = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let is_started_as = || {
        let line = files.text(pid, "cmdline").unwrap_or_default();
        let first = line.split(|byte| *byte == 0).next().unwrap_or_default();
        str::from_utf8(first).is_ok_and(of_path)
    };
    comm.trim_ascii_end() == short || file.to_str().is_some_and(of_path) || is_started_as()
}

/// The one of `found` that all others are below.
fn one_tree(
    name: &str,
    found: &[Pid],
    parent_of: impl Fn(Pid) -> Option<Pid>,
    files: &LiveFiles,
) -> Result<Pid, Failure> {
    let is_below = |pid: Pid| {
        let mut above = parent_of(pid);
        while let Some(parent) = above.filter(|parent| parent.0 > 0) {
            if found.contains(&parent) {
                return true;
            }
            above = parent_of(parent);
        }
        false
    };
    let roots: Vec<Pid> = found.iter().copied().filter(|pid| !is_below(*pid)).collect();
    match roots.as_slice() {
        [root] => Ok(*root),
        [] => Err(Failure::new(format!("cannot record {name}: no process has that name"))
            .why(
                "a name is compared with those of processes, of their executables, and of the \
                 commands that started them",
            )
            .or_try("pgrep -af PATTERN, then flame record -p with its number")
            .or_try(format!("flame record {name}, to launch it"))),
        several => {
            let line = |pid: &Pid| {
                let command = command_line(*pid, files).unwrap_or_default();
                format!("{pid} {}", command.chars().take(60).collect::<String>())
            };
            let mut lines: Vec<String> = several.iter().take(LISTED).map(line).collect();
            if several.len() > LISTED {
                lines.push(format!("and {} more", several.len() - LISTED));
            }
            let numbers: Vec<String> = several.iter().map(Pid::to_string).collect();
            Err(Failure::usage(format!("{name} is neither one process nor one tree of processes"))
                .why(format!("{} processes have that name: {}", several.len(), lines.join("; ")))
                .or_try(format!("flame record -p {}, for all of them", numbers.join(","))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 has started 10, that 11 and 12, and 12 has started 13; 20 is another child of 1.
    fn parent(pid: Pid) -> Option<Pid> {
        let parent = match pid.0 {
            10 | 20 => 1,
            11 | 12 => 10,
            13 => 12,
            1 => 0,
            _ => return None,
        };
        Some(Pid(parent))
    }

    #[test]
    fn a_name_is_taken_when_its_processes_are_one_tree() {
        let root = |pids: &[u32]| {
            let pids: Vec<Pid> = pids.iter().copied().map(Pid).collect();
            one_tree("x", &pids, parent, &LiveFiles::default()).ok()
        };
        assert_eq!(root(&[10, 11, 13]), Some(Pid(10)));
        assert_eq!(root(&[13]), Some(Pid(13)));
        assert_eq!(root(&[11, 12]), None);
        assert_eq!(root(&[10, 20]), None);
        assert_eq!(root(&[]), None);
    }
}
