//! The report as a listing for people.

use flame_message::{Paint, clean_name};
use flame_recorder::host_name;
use nix::unistd::{Uid, User};

use crate::check::{Check, Group, Report, Status};
use crate::packages::joined;

/// Columns of a name; what is longer has a line of its own.
const NAME: usize = 20;

/// Columns before a name: a margin and the word for its status.
const MARGIN: usize = 11;

/// The listing. Paths and names of the target are shown without what could steer a terminal.
/// Lines are broken where `width` says how wide they may be.
pub fn listing(report: &Report, paint: Paint, width: Option<usize>) -> String {
    let mut text = format!("{}\n", machine());
    if let Some(target) = &report.target {
        let user = target.user.map_or_else(|| "?".to_owned(), name_of);
        let command = clean_name(&target.command);
        let command: String = command.chars().take(100).collect();
        text += &format!(
            "process {}, {} of {user}: {}\n",
            target.pid,
            if target.threads == 1 {
                "1 thread".to_owned()
            } else {
                format!("{} threads", target.threads)
            },
            paint.bold(&command)
        );
    }
    let mut last: Option<Group> = None;
    for (group, check) in &report.checks {
        if last != Some(*group) {
            text += &format!("\n{}\n", paint.bold(group.title()));
            last = Some(*group);
        }
        text += &line(check, paint, width);
    }
    text + &verdict(report, paint)
}

/// `flame 0.1.0 on HOST, Linux 6.1.0, 8 CPUs, as user me`
fn machine() -> String {
    let host = host_name().unwrap_or_else(|| "this machine".to_owned());
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let user = name_of(Uid::effective().as_raw());
    format!(
        "flame {} on {}, Linux {}, {cpus} CPUs, as {user}",
        env!("CARGO_PKG_VERSION"),
        clean_name(&host),
        release.trim(),
    )
}

fn name_of(uid: u32) -> String {
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    user.map_or_else(|| format!("user {uid}"), |user| user.name)
}

fn line(check: &Check, paint: Paint, width: Option<usize>) -> String {
    let status = format!("{:<7}", check.status.word());
    let status = match (check.status, check.needed) {
        (Status::Ok, _) => paint.green(&status),
        (Status::Limited, _) => paint.yellow(&status),
        (Status::Missing, true) => paint.red(&status),
        (Status::Missing, false) => paint.dim(&status),
    };
    let (name, found) = (clean_name(&check.name), clean_name(&check.found));
    let mut text = match name.chars().count() {
        ..=NAME => {
            let found = wrapped(&found, MARGIN + NAME + 2, width);
            format!("  {status}  {name:<NAME$}  {found}\n")
        }
        _ => {
            let found = wrapped(&found, MARGIN, width);
            format!("  {status}  {name}\n{:MARGIN$}{found}\n", "")
        }
    };
    if let Some(fix) = &check.fix {
        text += &format!("{:MARGIN$}{} {}\n", "", paint.bold("try:"), clean_name(fix));
    }
    text
}

fn verdict(report: &Report, paint: Paint) -> String {
    let whose = if report.target.is_some() { "this process" } else { "your own processes" };
    let checks = || report.checks.iter().map(|(_, check)| check);
    let in_the_way: Vec<&Check> = checks().filter(|check| check.is_in_the_way()).collect();
    if in_the_way.is_empty() {
        let verdict = paint.green("complete:");
        return format!("\n{verdict} nothing is in the way of a complete profile of {whose}\n");
    }
    let is_image = |check: &&&Check| check.name.starts_with('/');
    let mut names: Vec<String> = Vec::new();
    let others = in_the_way.iter().filter(|check| !is_image(check));
    names.extend(others.map(|check| clean_name(&check.name).into_owned()));
    let images = in_the_way.iter().filter(is_image).count();
    match images {
        0 => {}
        1 => names.push("1 of its programs and libraries".to_owned()),
        count => names.push(format!("{count} of its programs and libraries")),
    }
    let verdict = paint.yellow("incomplete:");
    let mut text = format!("\n{verdict} a profile of {whose} suffers from {}\n", names.join(", "));
    // Few of many libraries are in a profile, and only a recording knows which.
    if let Some(target) = report.target.as_ref().filter(|_| images > 1) {
        let command = format!("flame record -p {} -d 10s --explain", target.pid);
        text += &format!("  {} {command}, which ranks them by samples\n", paint.bold("try:"));
    }
    let commands: Vec<&str> = in_the_way.iter().filter_map(|check| check.fix.as_deref()).collect();
    for command in joined(&commands) {
        text += &format!("  {} {}\n", paint.bold("try:"), clean_name(&command));
    }
    text
}

/// Text broken between words, its further lines indented.
fn wrapped(text: &str, indent: usize, width: Option<usize>) -> String {
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(indent).max(30));
    let (mut lines, mut column) = (String::new(), 0);
    for word in text.split(' ') {
        let len = word.chars().count();
        if column > 0 && column + 1 + len > room {
            lines += &format!("\n{:indent$}", "");
            column = 0;
        } else if column > 0 {
            lines.push(' ');
            column += 1;
        }
        lines += word;
        column += len;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Facts;

    #[test]
    fn what_a_target_chose_steers_no_terminal() {
        let check = Check::missing("lib\x1b[2J.so", "gone\r").fix("restart \x07it");
        let report = Report { target: None, checks: vec![(Group::Images, check)] };
        let text = listing(&report, Paint(false), None);
        assert!(text.contains("  missing  lib␛[2J.so            gone␍\n"), "{text}");
        assert!(!text.contains(['\x1b', '\r', '\x07']), "{text:?}");
    }

    #[test]
    fn long_lines_are_broken_between_words_under_their_column() {
        let text = wrapped("seven words that do not fit here", 4, Some(34));
        assert_eq!(text, "seven words that do not fit\n    here");
        assert_eq!(wrapped("all of it", 4, None), "all of it");
    }

    #[test]
    fn the_verdict_counts_images_and_joins_commands() {
        let stripped = |name: &str| {
            Check::limited(name, "stripped").fix("build it without -s, and do not strip it")
        };
        let checks = vec![
            (Group::Events, Check::missing("kernel stacks", "no").fix("sudo sysctl a=1")),
            (Group::Kernel, Check::missing("kallsyms", "no").fix("sudo sysctl a=1")),
            (Group::Rights, Check::missing("BPF", "no").optional()),
            (Group::Images, stripped("/a")),
            (Group::Images, stripped("/b")),
        ];
        let report = Report { target: None, checks };
        let text = verdict(&report, Paint(false));
        let expect = "\nincomplete: a profile of your own processes suffers from kernel stacks, \
                      kallsyms, 2 of its programs and libraries\n  try: sudo sysctl a=1\n  \
                      try: build it without -s, and do not strip it\n";
        assert_eq!(text, expect);
        let command = String::new();
        let target = Facts { pid: 42, threads: 1, user: None, command };
        let text = verdict(&Report { target: Some(target), ..report }, Paint(false));
        let first = text.lines().find(|line| line.starts_with("  try:"));
        let expect = "  try: flame record -p 42 -d 10s --explain, which ranks them by samples";
        assert_eq!(first, Some(expect));
    }
}
