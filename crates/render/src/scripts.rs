//! What the summary and footers say of interpreted programs.

use flame_profile::{Health, Nanos, ScriptEnd};

use crate::amount::group_thousands;

/// For each language how much is known of its programs' stacks.
pub(crate) fn lines(health: &Health) -> Vec<(String, String)> {
    let mut languages: Vec<&String> = health.scripts.keys().map(|(language, _)| language).collect();
    languages.dedup();
    languages.into_iter().map(|language| (language.clone(), line(health, language))).collect()
}

fn line(health: &Health, language: &str) -> String {
    let ends = health.scripts.iter().filter(|((of, _), _)| of == language);
    let ends: Vec<(ScriptEnd, u64)> = ends.map(|((_, end), count)| (*end, *count)).collect();
    let all: u64 = ends.iter().map(|(_, count)| count).sum();
    let whole =
        ends.iter().find(|(end, _)| *end == ScriptEnd::Whole).map_or(0, |(_, count)| *count);
    // 100 % is said of all only.
    let share = if whole == all { "100".to_owned() } else { floor(whole as f64 / all as f64) };
    let (amount, unit): (fn(u64) -> String, &str) = match health.off_cpu {
        Some(_) => (|time| format!("{:.3} s", Nanos(time).as_secs_f64()), ""),
        None => (group_thousands, " samples"),
    };
    let mut text = format!("{share} % of {}{unit} {}", amount(all), ScriptEnd::Whole);
    for (end, count) in ends.iter().filter(|(end, _)| *end != ScriptEnd::Whole) {
        text += &format!(", {} {end}", amount(*count));
    }
    text
}

fn floor(share: f64) -> String {
    format!("{:.1}", (share * 1e3).floor() / 10.0)
}

#[cfg(test)]
mod tests {
    use flame_profile::OffCpuTime;

    use super::*;

    #[test]
    fn each_language_has_a_line() {
        let mut health = Health::default();
        let counts = [
            ("perl", ScriptEnd::NotRead, 3),
            ("python", ScriptEnd::Whole, 9_999),
            ("python", ScriptEnd::Disagrees, 1),
            ("ruby", ScriptEnd::Whole, 5),
        ];
        for (language, end, count) in counts {
            health.scripts.insert((language.to_owned(), end), count);
        }
        let lines: Vec<String> =
            lines(&health).into_iter().map(|(name, text)| format!("{name}: {text}")).collect();
        let expect = [
            "perl: 0.0 % of 3 samples with whole script stacks, 3 not read at the moment of the sample",
            "python: 99.9 % of 10,000 samples with whole script stacks, 1 amid a call or a return",
            "ruby: 100 % of 5 samples with whole script stacks",
        ];
        assert_eq!(lines, expect);
        health.off_cpu = Some(OffCpuTime::default());
        health.scripts.retain(|(language, _), _| language == "perl");
        health.scripts.insert(("perl".to_owned(), ScriptEnd::Whole), 1_997_000_000);
        let text = super::lines(&health).remove(0).1;
        let expect = "99.9 % of 1.997 s with whole script stacks, 0.000 s not read at the moment of the sample";
        assert_eq!(text, expect);
    }
}
