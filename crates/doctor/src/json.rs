//! The report as JSON, in a form that stays: docs/doctor.md describes it.

use serde_json::{Value, json};

use crate::check::{Check, Group, Report};

/// Raised when a field changes its meaning or goes; new ones may come without.
const VERSION: u32 = 1;

/// The report, one line.
pub fn to_json(report: &Report) -> String {
    let target = report.target.as_ref().map(|target| {
        json!({
            "pid": target.pid,
            "command": target.command,
            "uid": target.user,
            "threads": target.threads,
        })
    });
    let checks: Vec<Value> =
        report.checks.iter().map(|(group, check)| describe(*group, check)).collect();
    let report = json!({
        "version": VERSION,
        "flame": env!("CARGO_PKG_VERSION"),
        "complete": report.is_complete(),
        "target": target,
        "checks": checks,
    });
    format!("{}\n", ascii(&report.to_string()))
}

/// The same JSON without characters that a terminal could take for commands: names are the
/// target's own.
fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            ' '..='~' => text.push(c),
            _ => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                text += &format!("\\u{unit:04x}");
            }),
        }
    }
    text
}

fn describe(group: Group, check: &Check) -> Value {
    json!({
        "group": group.word(),
        "name": check.name,
        "status": check.status.word(),
        "needed": check.needed,
        "found": check.found,
        "fix": check.fix,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_the_one_that_is_documented() {
        let check = Check::limited("kernel stacks", "refused").fix("sudo sysctl a=1");
        let optional = Check::missing("BPF", "not allowed").optional();
        let checks = vec![(Group::Events, check), (Group::Rights, optional)];
        let report = Report { target: None, checks };
        let expect = json!({
            "version": 1,
            "flame": env!("CARGO_PKG_VERSION"),
            "complete": false,
            "target": null,
            "checks": [
                { "group": "events", "name": "kernel stacks", "status": "limited", "needed": true,
                  "found": "refused", "fix": "sudo sysctl a=1" },
                { "group": "rights", "name": "BPF", "status": "missing", "needed": false,
                  "found": "not allowed", "fix": null },
            ],
        });
        let printed: Value = serde_json::from_str(&to_json(&report)).unwrap();
        assert_eq!(printed, expect);
    }

    #[test]
    fn names_keep_their_characters_and_print_none_that_steer() {
        let name = "/tmp/\u{9b}31m\u{7f}\u{202e}\u{1f525}\n\u{1b}[2J";
        let checks = vec![(Group::Images, Check::ok(name, "fine"))];
        let text = to_json(&Report { target: None, checks });
        assert!(text.trim_end().bytes().all(|byte| (b' '..0x7f).contains(&byte)), "{text:?}");
        let parsed: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(parsed["checks"][0]["name"], name);
    }

    #[test]
    fn what_is_optional_is_not_in_the_way() {
        let optional = Check::missing("BPF", "not allowed").optional();
        let report = |needed| Report {
            target: None,
            checks: vec![(Group::Rights, Check { needed, ..optional.clone() })],
        };
        assert!(report(false).is_complete());
        assert!(!report(true).is_complete());
    }
}
