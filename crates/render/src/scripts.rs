//! What the summary and footers say of interpreted programs.

use flame_message::ValueScale;
use flame_profile::{Health, Nanos, ScriptEnd, ValueType, Weight};

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
    let scale = ValueScale::of(health.script_value.as_ref().unwrap_or(&ValueType::samples()));
    let is_time = health.script_value.as_ref().is_some_and(|value| value.unit == "nanoseconds");
    let (amount, number): (Amount<'_>, Amount<'_>) = match is_time {
        true => (&seconds, &seconds),
        false => (&|all| scale.amount(Weight(all)), &|part| scale.number(Weight(part))),
    };
    let mut text = format!("{share} % of {} {}", amount(all), ScriptEnd::Whole);
    for (end, count) in ends.iter().filter(|(end, _)| *end != ScriptEnd::Whole) {
        text += &format!(", {} {end}", number(*count));
    }
    text
}

type Amount<'s> = &'s dyn Fn(u64) -> String;

/// All of them to the millisecond, so that they can be compared.
fn seconds(time: u64) -> String {
    format!("{:.3} s", Nanos(time).as_secs_f64())
}

fn floor(share: f64) -> String {
    format!("{:.1}", (share * 1e3).floor() / 10.0)
}

#[cfg(test)]
mod tests {
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
        health.scripts.retain(|(language, _), _| language == "perl");
        health.scripts.insert(("perl".to_owned(), ScriptEnd::Whole), 1_997_000_000);
        let values = [
            ("off-cpu", "nanoseconds", "1.997 s", "0.000 s"),
            ("io", "bytes", "1.86 GiB", "3 B"),
            ("page-faults", "count", "1,997,000,003 page-faults", "3"),
        ];
        for (name, unit, all, part) in values {
            health.script_value = Some(ValueType::new(name, unit));
            let text = super::lines(&health).remove(0).1;
            let expect = "with whole script stacks, PART not read at the moment of the sample";
            let expect = expect.replace("PART", part);
            assert_eq!(text, format!("99.9 % of {all} {expect}"));
        }
    }
}
