//! Who may record what: the table of the README, held against what happens.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::answer::Answer;
use super::cases::Case;

/// Root; users whose flame has CAP_SYS_ADMIN or CAP_PERFMON (both with CAP_SYS_PTRACE and CAP_SYSLOG);
/// a user.
pub(super) const USERS: [&str; 4] = ["root", "admin", "perfmon", "user"];

/// What somebody can record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rights {
    own: bool,
    kernel: bool,
    others: bool,
    all: bool,
}

impl Rights {
    const EVERYTHING: Rights = Rights { own: true, kernel: true, others: true, all: true };
    const NOTHING: Rights = Rights { own: false, kernel: false, others: false, all: false };

    /// By the README's table.
    fn promised(level: i32, who: &str, knows_levels: bool) -> Rights {
        match (who, level) {
            ("root" | "admin", _) => Rights::EVERYTHING,
            (_, 3..) if knows_levels => Rights::NOTHING,
            ("perfmon", _) => Rights::EVERYTHING,
            (_, ..=0) => Rights { others: false, ..Rights::EVERYTHING },
            (_, 1) => Rights { own: true, kernel: true, ..Rights::NOTHING },
            _ => Rights { own: true, ..Rights::NOTHING },
        }
    }

    /// As recordings came out.
    fn found(answer: &Answer, place: &str) -> Result<Rights> {
        let file = |name: &str| format!("{place}/{name}");
        let own = answer.has(&file("own.folded"));
        let kernel =
            own && answer.folded(&file("own.folded"))?.with(|frame| frame.ends_with("_[k]")) > 0;
        let others = answer.has(&file("other.folded"));
        Ok(Rights { own, kernel, others, all: answer.has(&file("all.folded")) })
    }

    /// As the doctor says.
    fn said(answer: &Answer, place: &str) -> Result<[bool; 3]> {
        let text = answer.text(&format!("{place}/doctor.json"))?;
        let report: Value = serde_json::from_str(&text).context("doctor --json")?;
        let checks = report["checks"].as_array().context("no checks")?;
        let works = |name: &str| {
            let check = checks.iter().find(|check| check["name"] == name);
            check.is_some_and(|check| check["status"] == "ok")
        };
        Ok(["cpu-clock", "kernel stacks", "by CPU (-a)"].map(works))
    }

    fn words(self) -> String {
        let all = [
            (self.own, "own processes"),
            (self.kernel, "kernel stacks"),
            (self.others, "others' processes"),
            (self.all, "the machine"),
        ];
        let words: Vec<&str> = all.iter().filter(|(may, _)| *may).map(|(_, word)| *word).collect();
        if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
    }
}

/// One user at one level.
pub(super) fn case(level: i32, who: &'static str) -> Case {
    let place = format!("{level}-{who}");
    Case::new(&format!("rights-{place}"), format!("rights {level} {who}"), move |answer| {
        let promised = Rights::promised(level, who, answer.knows_levels);
        let found = Rights::found(answer, &place)?;
        ensure!(
            found == promised,
            "promised: {}; found: {}; {}",
            promised.words(),
            found.words(),
            logs(answer, &place)
        );
        let said = Rights::said(answer, &place)?;
        ensure!(said == [found.own, found.kernel, found.all], "the doctor says {said:?}");
        let advice = logs(answer, &place);
        ensure!(who != "root" || !advice.contains("sudo"), "root is advised sudo: {advice}");
        Ok(found.words())
    })
}

/// The errors of the recordings.
fn logs(answer: &Answer, place: &str) -> String {
    let lines = |name: &str| {
        let log = Path::new(place).join(name);
        let text = answer.text(&log.display().to_string()).unwrap_or_default();
        text.lines()
            .filter(|line| line.contains("error:") || line.contains("try:"))
            .collect::<Vec<_>>()
            .join(" / ")
    };
    ["own.log", "other.log", "all.log"].map(lines).join(" | ")
}
