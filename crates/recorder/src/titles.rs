//! The titles that processes have set themselves: `postgres: checkpointer`, `nginx: worker process`.
//!
//! They are read when the recording ends: servers set them after they have forked. What has ended by
//! then has none.

use std::collections::BTreeSet;

use flame_profile::{Pid, Profile};

use crate::target::TargetFiles;

/// How many characters of a title are kept.
const LONGEST: usize = 80;

/// Notes the titles of the processes that have samples and are still there.
pub fn set_titles(profile: &mut Profile, files: &dyn TargetFiles) {
    let threads = profile.samples().map(|sample| profile.thread(sample.thread));
    let pids: BTreeSet<Pid> = threads.filter_map(|thread| thread.pid).collect();
    for pid in pids {
        let line = files.text(pid, "cmdline").unwrap_or_default();
        if let Some(title) = title(&line) {
            profile.set_title(pid, &title);
        }
    }
}

/// The title in a command line; `None` of one that still has the words of the start.
///
/// Words have a zero after each, of which a title has none before its end. One that follows the
/// custom begins with the program's name and a colon: others write their options with blanks
/// between (Chromium), which say little.
fn title(line: &[u8]) -> Option<String> {
    let end = line.iter().rposition(|byte| *byte != 0)? + 1;
    let text = str::from_utf8(&line[..end]).ok()?.trim();
    let (program, rest) = text.split_once(": ")?;
    let is_name = !program.is_empty() && !program.contains(['/', ' ', '\0']);
    let is_title = is_name && !rest.trim().is_empty() && !rest.contains('\0');
    is_title.then(|| text.chars().take(LONGEST).collect())
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
}
