//! The titles that processes have set themselves: `postgres: checkpointer`, `nginx: worker process`.
//!
//! They are read when the recording ends: servers set them after they have forked. What has ended by
//! then has none. Some tell what a process does at the moment (`postgres: app shop [local] UPDATE`),
//! which says nothing about the time before: of a title that changes, the words that stay are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use flame_profile::{Pid, Profile};

use crate::target::TargetFiles;

/// How many characters of a title are kept.
const LONGEST: usize = 80;

/// How often titles are read, to see whether they change.
const LOOKS: usize = 5;

/// The time between two of these: a database under load changes its titles in each of them.
const BETWEEN: Duration = Duration::from_millis(3);

type Titles = BTreeMap<Pid, String>;

/// Notes the titles of the processes that have samples and are still there.
pub fn set_titles(profile: &mut Profile, files: &dyn TargetFiles) {
    let threads = profile.samples().map(|sample| profile.thread(sample.thread));
    let pids: BTreeSet<Pid> = threads.filter_map(|thread| thread.pid).collect();
    let read = |pid: Pid| title(&files.text(pid, "cmdline").unwrap_or_default());
    for (pid, title) in lasting(&pids, read) {
        profile.set_title(pid, &title);
    }
}

/// The titles of processes, of those that change the part that stays.
fn lasting(pids: &BTreeSet<Pid>, mut read: impl FnMut(Pid) -> Option<String>) -> Titles {
    let mut titles: Titles = pids.iter().filter_map(|pid| Some((*pid, read(*pid)?))).collect();
    for _ in 1..LOOKS {
        if titles.is_empty() {
            break;
        }
        thread::sleep(BETWEEN);
        // One that has ended meanwhile keeps what was seen of it.
        for (pid, title) in &mut titles {
            if let Some(now) = read(*pid).filter(|now| now != title) {
                *title = in_common(title, &now);
            }
        }
    }
    titles.retain(|_, title| is_title(title));
    titles
}

/// The words with which both begin.
fn in_common(one: &str, other: &str) -> String {
    let same = one.split(' ').zip(other.split(' ')).take_while(|(one, other)| one == other);
    same.map(|(word, _)| word).collect::<Vec<_>>().join(" ")
}

/// The title in a command line; `None` of one that still has the words of the start.
///
/// Words have a zero after each, of which a title has none before its end. One that follows the
/// custom begins with the program's name and a colon: others write their options with blanks
/// between (Chromium), which say little.
fn title(line: &[u8]) -> Option<String> {
    let end = line.iter().rposition(|byte| *byte != 0)? + 1;
    let text = str::from_utf8(&line[..end]).ok()?.trim();
    is_title(text).then(|| text.chars().take(LONGEST).collect())
}

fn is_title(text: &str) -> bool {
    text.split_once(": ").is_some_and(|(program, rest)| {
        let is_name = !program.is_empty() && !program.contains(['/', ' ', '\0']);
        is_name && !rest.trim().is_empty() && !rest.contains('\0')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_told_from_a_command_line() {
        let title = |line: &str| title(line.as_bytes());
        let own = |text: &str| Some(text.to_owned());
        assert_eq!(title("postgres: checkpointer \0\0\0"), own("postgres: checkpointer"));
        assert_eq!(title("nginx: worker process"), own("nginx: worker process"));
        assert_eq!(title("postgres\0-D\0/data: dir\0"), None);
        assert_eq!(title("grep: x\0file\0"), None, "words, of which the first has a colon");
        assert_eq!(title("/opt/chrome --type=renderer a: b"), None);
        assert_eq!(title("sleep\0"), None);
        assert_eq!(title("x: \0\0"), None);
        assert_eq!(title(""), None);
        assert_eq!(title(&format!("a: {}", "b".repeat(200))).map(|text| text.len()), Some(80));
    }

    #[test]
    fn of_a_title_that_changes_the_words_that_stay_are_kept() {
        let shown: [(u32, &[&str], Option<&str>); 5] = [
            (1, &["postgres: checkpointer"], Some("postgres: checkpointer")),
            (
                2,
                &["pg: app shop UPDATE", "pg: app shop idle", "pg: app shop"],
                Some("pg: app shop"),
            ),
            (3, &["worker: one", "worker: two"], None),
            (4, &["nginx: worker process", ""], Some("nginx: worker process")),
            (5, &["", "late: title"], None),
        ];
        let pids = shown.iter().map(|(pid, ..)| Pid(*pid)).collect();
        let mut looks = BTreeMap::new();
        let found = lasting(&pids, |pid| {
            let (_, titles, _) = shown.iter().find(|(of, ..)| Pid(*of) == pid).unwrap();
            let look = looks.entry(pid).or_insert(0);
            *look += 1;
            title(titles[(*look - 1) % titles.len()].as_bytes())
        });
        for (pid, _, expect) in shown {
            assert_eq!(found.get(&Pid(pid)).map(String::as_str), expect, "{pid}");
        }
    }
}
