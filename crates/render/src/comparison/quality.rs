//! How far the data of each file can be trusted: part of every output of a comparison.
//!
//! It says what the files say of themselves, and what in the comparison makes little sense.

use flame_message::{clean_name, counted, group_thousands};
use flame_profile::{Health, Meta};
use serde_json::{Value, json};

/// This many good files of a side share a line.
const MANY: usize = 3;
/// The share of stacks that are complete, and of CPU time that was seen, that is good: what
/// `flame record --strict` asks for.
const GOOD: f64 = 0.95;

/// What is known of all files, in their order, besides what they weigh.
#[derive(Debug)]
pub struct Quality {
    /// Files of the side before.
    pub before: Vec<ProfileQuality>,
    /// Files of the side after.
    pub after: Vec<ProfileQuality>,
    /// What of the comparison is doubtful.
    pub warnings: Vec<String>,
}

/// What a file says of itself.
#[derive(Clone, Debug)]
pub struct ProfileQuality {
    /// Its name, for people.
    pub name: String,
    /// How it was recorded.
    pub meta: Meta,
    /// What was lost or is uncertain.
    pub health: Health,
}

impl Quality {
    /// A line for each file of which there is something to say, one for many that are good, one for
    /// what all say, and the warnings.
    pub fn lines(&self) -> Vec<String> {
        let common = self.common_notes();
        let mut lines: Vec<String> = Vec::new();
        for side in [&self.before, &self.after] {
            let (good, others): (Vec<&ProfileQuality>, _) =
                side.iter().partition(|f| f.is_good(&common));
            let is_like = |file: &&ProfileQuality| file.rate() == good[0].rate();
            let are_many = good.len() >= MANY && good.iter().all(is_like);
            let together = are_many.then(|| together(&good));
            let one_by_one = if are_many { others } else { side.iter().collect() };
            let of_side = one_by_one.into_iter().filter_map(|file| file.line(&common));
            for line in together.into_iter().chain(of_side) {
                // A file with both sides is listed twice.
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        lines.extend(common.iter().map(|note| clean_name(note).into_owned()));
        lines.extend(self.warnings.iter().map(|warning| format!("warning: {warning}")));
        lines
    }

    fn files(&self) -> impl Iterator<Item = &ProfileQuality> {
        self.before.iter().chain(&self.after)
    }

    /// What every file notes: about the machine, most of the time.
    fn common_notes(&self) -> Vec<String> {
        let Some(first) = self.before.first() else { return Vec::new() };
        let notes = first.health.notes.iter();
        notes
            .filter(|note| self.files().all(|file| file.health.notes.contains(note)))
            .cloned()
            .collect()
    }

    /// How many lines of each file could not be read, where there are any.
    pub fn skipped(&self) -> impl Iterator<Item = String> {
        self.files().filter(|file| file.health.skipped_lines > 0).map(|file| {
            let lines = counted(file.health.skipped_lines, "line is", "lines are");
            format!("{lines} left out of {}: no stack with a count at the end", file.name)
        })
    }

    /// The runs of both sides for machines.
    pub(super) fn json(&self) -> [Value; 2] {
        [&self.before, &self.after].map(|files| files.iter().map(ProfileQuality::json).collect())
    }
}

impl ProfileQuality {
    fn says_health(&self) -> bool {
        self.health.walked().next().is_some() || self.health.has_losses()
    }

    fn line(&self, common: &[String]) -> Option<String> {
        let health = &self.health;
        let mut said: Vec<String> = self.how().into_iter().collect();
        if self.says_health() {
            said.push(health.one_line());
        } else if health.skipped_lines > 0 {
            let lines = counted(health.skipped_lines, "line", "lines");
            said.push(format!("{lines} not readable"));
        }
        said.extend(health.notes.iter().filter(|note| !common.contains(note)).cloned());
        (!said.is_empty())
            .then(|| clean_name(&format!("{}: {}", self.name, said.join("; "))).into())
    }

    /// Whether there is nothing to say but that it is as good as recordings are.
    fn is_good(&self, common: &[String]) -> bool {
        let health = &self.health;
        let is_complete = health.complete_share().is_some_and(|share| share >= GOOD);
        let is_covered = health.coverage.is_some_and(|coverage| coverage.fraction() >= GOOD);
        let is_plain = health.notes.iter().all(|note| common.contains(note));
        is_complete && is_covered && is_plain && !health.has_losses() && health.skipped_lines == 0
    }

    /// `cpu-clock at 99 Hz for 10.0 s`, as far as the file says it.
    fn how(&self) -> Option<String> {
        let time = self.meta.duration.filter(|time| time.0 > 0);
        let time = time.map(|time| format!("for {:.1} s", time.as_secs_f64()));
        let words: Vec<String> = self.rate().into_iter().chain(time).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }

    /// `cpu-clock at 99 Hz`.
    fn rate(&self) -> Option<String> {
        let (event, meta) = (self.meta.event.as_ref()?, &self.meta);
        Some(match (meta.frequency, meta.period) {
            (Some(frequency), _) => format!("{event} at {frequency}"),
            (None, Some(period)) => format!("{event} every {}", group_thousands(period)),
            (None, None) => event.clone(),
        })
    }

    fn json(&self) -> Value {
        let (meta, health) = (&self.meta, &self.health);
        // What a file does not say is not known to be none.
        let known = |number: u64| Some(number).filter(|_| self.says_health());
        json!({
            "profile": self.name,
            "event": meta.event,
            "hertz": meta.frequency.map(|frequency| frequency.0),
            "period": meta.period,
            "seconds": meta.duration.map(|time| time.as_secs_f64()),
            "complete": health.complete_share(),
            "lost": known(health.lost_records),
            "throttled": known(health.throttled),
            "undecodable": known(health.undecodable_records),
            "skipped_lines": health.skipped_lines,
            "coverage": health.coverage.map(|coverage| coverage.fraction()),
            "notes": health.notes,
        })
    }
}

/// A line for many files of one side that are good.
fn together(files: &[&ProfileQuality]) -> String {
    let least = |share: fn(&ProfileQuality) -> Option<f64>| {
        let least = files.iter().filter_map(|file| share(file)).fold(f64::INFINITY, f64::min);
        (least * 1000.0).floor() / 10.0
    };
    let (first, last) = (files[0], files[files.len() - 1]);
    let line = format!(
        "{} to {}, {} runs: {}; at least {:.1} % of stacks complete, 0 lost, coverage at least \
         {:.1} %",
        first.name,
        last.name,
        files.len(),
        first.rate().unwrap_or_default(),
        least(|file| file.health.complete_share()),
        least(|file| file.health.coverage.map(|coverage| coverage.fraction())),
    );
    clean_name(&line).into_owned()
}

#[cfg(test)]
mod tests {
    use flame_profile::{Coverage, Hz, Nanos, StackEnd};

    use super::*;

    #[track_caller]
    fn check(meta: Meta, health: Health, expect: Option<&str>) {
        let file = ProfileQuality { name: "a.pb.gz".to_owned(), meta, health };
        assert_eq!(file.line(&[]).as_deref(), expect);
    }

    #[test]
    fn a_file_that_says_nothing_has_no_line() {
        check(Meta::default(), Health::default(), None);
    }

    #[test]
    fn what_all_files_note_is_said_once() {
        let file = |name: &str, notes: &[&str]| {
            let notes = notes.iter().map(|note| (*note).to_owned()).collect();
            let health = Health { notes, ..Health::default() };
            ProfileQuality { name: name.to_owned(), meta: Meta::default(), health }
        };
        let quality = Quality {
            before: vec![file("a", &["no counters", "short"])],
            after: vec![file("b", &["no counters"])],
            warnings: vec!["other events".to_owned()],
        };
        assert_eq!(quality.lines(), ["a: short", "no counters", "warning: other events"]);
    }

    #[test]
    fn many_good_runs_share_a_line_and_others_have_their_own() {
        let file = |name: &str, complete: u64, sampled: u64| {
            let mut health = Health { samples: 1000, ..Health::default() };
            health.stack_ends.insert(StackEnd::Root, complete);
            health.stack_ends.insert(StackEnd::CopyTooShort, 1000 - complete);
            let coverage = Coverage { sampled: Nanos(sampled), accounted: Nanos(1000) };
            health.coverage = Some(coverage);
            let meta = Meta {
                event: Some("cpu-clock".to_owned()),
                frequency: Some(Hz(999)),
                ..Meta::default()
            };
            ProfileQuality { name: name.to_owned(), meta, health }
        };
        let before = vec![
            file("a1", 1000, 990),
            file("a2", 400, 1000),
            file("a3", 998, 1010),
            file("a4", 1000, 1000),
        ];
        let quality = Quality { before, after: vec![file("b", 1000, 1000)], warnings: Vec::new() };
        let expect = [
            "a1 to a4, 3 runs: cpu-clock at 999 Hz; at least 99.8 % of stacks complete, 0 lost, \
             coverage at least 99.0 %",
            "a2: cpu-clock at 999 Hz; 1000 samples, 40.0 % of stacks complete, 0 lost, coverage \
             100.0 %",
            "b: cpu-clock at 999 Hz; 1000 samples, 100.0 % of stacks complete, 0 lost, coverage \
             100.0 %",
        ];
        assert_eq!(quality.lines(), expect);
    }

    #[test]
    fn lines_say_how_it_was_recorded_and_what_is_missing() {
        let meta = Meta {
            event: Some("cpu-clock".to_owned()),
            frequency: Some(Hz(99)),
            duration: Some(Nanos(10_040_000_000)),
            ..Meta::default()
        };
        let mut health = Health { samples: 4, lost_records: 7, ..Health::default() };
        health.stack_ends.insert(StackEnd::Root, 3);
        health.stack_ends.insert(StackEnd::CopyTooShort, 1);
        let expect = "a.pb.gz: cpu-clock at 99 Hz for 10.0 s; \
                      4 samples, 75.0 % of stacks complete, 7 lost";
        check(meta, health, Some(expect));
        let meta =
            Meta { event: Some("page-faults".to_owned()), period: Some(1000), ..Meta::default() };
        check(meta, Health::default(), Some("a.pb.gz: page-faults every 1,000"));
        let health = Health { skipped_lines: 1, ..Health::default() };
        check(Meta::default(), health, Some("a.pb.gz: 1 line not readable"));
    }
}
