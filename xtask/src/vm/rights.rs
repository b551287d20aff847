//! Who may record what: the table of the README, held against what happens.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::answer::Answer;
use super::cases::Case;

/// Root; users whose flame has CAP_SYS_ADMIN or CAP_PERFMON (both with CAP_SYS_PTRACE and CAP_SYSLOG);
/// a user.
pub(super) const USERS: [&str; 4] = ["root", "admin", "perfmon", "user"];

/// Where the table stands.
const README: &str = include_str!("../../../README.md");

/// The levels of Debian and Ubuntu, of all kernels or of the others, that somebody is at.
type Holds = fn(who: &str, level: i32, knows_levels: bool) -> bool;

/// For whom each row of the table is, by its first cell.
const ROWS: [(&str, Holds); 8] = [
    ("root, or `sudo flame`, at every level", |who, _, _| who == "root"),
    (
        "`setcap cap_perfmon,cap_sys_ptrace,cap_sys_nice,cap_syslog=ep` on the binary, paranoid up to 2",
        |who, level, knows_levels| who == "perfmon" && (level <= 2 || !knows_levels),
    ),
    ("the same, paranoid 3 or 4 of Debian and Ubuntu", |who, level, knows_levels| {
        who == "perfmon" && level > 2 && knows_levels
    }),
    (
        "`setcap cap_sys_admin,cap_sys_ptrace,cap_sys_nice,cap_syslog=ep` on the binary, at every level",
        |who, _, _| who == "admin",
    ),
    ("user, paranoid -1 or 0", |who, level, _| who == "user" && level <= 0),
    ("user, paranoid 1", |who, level, _| who == "user" && level == 1),
    (
        "user, paranoid 2 (the default of most kernels)",
        // Other kernels treat the levels above like 2.
        |who, level, knows_levels| who == "user" && level >= 2 && (level == 2 || !knows_levels),
    ),
    ("user, paranoid 3 or 4 of Debian and Ubuntu (their default)", |who, level, knows_levels| {
        who == "user" && level > 2 && knows_levels
    }),
];

/// What somebody can record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rights {
    own: bool,
    kernel: bool,
    others: bool,
    all: bool,
}

impl Rights {
    /// By the README's table.
    fn promised(level: i32, who: &str, knows_levels: bool) -> Result<Rights> {
        let (row, _) = ROWS
            .iter()
            .find(|(_, holds)| holds(who, level, knows_levels))
            .with_context(|| format!("no row for {who} at {level}"))?;
        let cells = rows().into_iter().find(|cells| cells[0] == *row);
        let cells = cells.with_context(|| format!("README.md has no row {row}"))?;
        let yes = |cell: &str| cell.starts_with("yes");
        Ok(Rights {
            own: yes(cells[1]),
            kernel: yes(cells[2]),
            others: yes(cells[3]),
            all: yes(cells[3]) || cells[3].ends_with("`-a` and `-C` yes"),
        })
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
        let promised = Rights::promised(level, who, answer.knows_levels)?;
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

/// The cells of the README's table, row by row.
fn rows() -> Vec<[&'static str; 4]> {
    let table = README.split("\n| who | own processes |").nth(1).unwrap_or_default();
    let lines = table.lines().skip(2).take_while(|line| line.starts_with("| "));
    let cells = lines.filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        cells.try_into().ok()
    });
    cells.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_of_the_readme_is_tried() {
        let said: Vec<&str> = rows().iter().map(|cells| cells[0]).collect();
        assert_eq!(said, ROWS.map(|(row, _)| row));
        for knows_levels in [true, false] {
            for level in -1..=4 {
                for who in USERS {
                    let rows = ROWS.iter().filter(|(_, holds)| holds(who, level, knows_levels));
                    assert_eq!(rows.count(), 1, "{who} at {level}");
                }
            }
        }
    }

    #[test]
    fn what_the_readme_promises_is_read() {
        let promised = |level, who| Rights::promised(level, who, true).unwrap().words();
        assert_eq!(promised(4, "perfmon"), "nothing");
        assert_eq!(promised(0, "user"), "own processes, kernel stacks, the machine");
        assert_eq!(promised(2, "user"), "own processes");
        assert_eq!(
            promised(4, "admin"),
            "own processes, kernel stacks, others' processes, the machine"
        );
    }

    /// The guest gives its files the capabilities that the table names.
    #[test]
    fn capabilities_are_those_of_the_readme() {
        let bits = [
            ("cap_sys_ptrace", 19),
            ("cap_sys_admin", 21),
            ("cap_sys_nice", 23),
            ("cap_syslog", 34),
            ("cap_perfmon", 38),
        ];
        for (who, row) in [("perfmon", 1), ("admin", 3)] {
            let named = ROWS[row].0.split("setcap ").nth(1).and_then(|text| text.split('=').next());
            let mask: u64 = named
                .unwrap()
                .split(',')
                .map(|name| 1 << bits.iter().find(|(known, _)| *known == name).unwrap().1)
                .sum();
            let line = format!("setcap /tmp/{who}/flame {mask:x}\n");
            assert!(include_str!("guest/init").contains(&line), "{line}");
        }
    }
}
