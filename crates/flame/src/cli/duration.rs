//! Durations as users type them: `500ms`, `10s`, `2m`, `1h`.

use std::time::Duration;

/// Longer than any recording, and far from what overflows a clock.
const MAX_SECONDS: f64 = 366.0 * 86_400.0;

/// A duration: a number with a unit, or of seconds without.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &text[digits.len()..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("a duration is a number with us, ms, s, m or h".to_owned()),
    };
    let number = digits.parse::<f64>().ok().filter(|number| number.is_finite());
    let seconds = number.map(|number| number * scale).filter(|seconds| *seconds > 0.0);
    let seconds = seconds.ok_or("a duration is a number above zero, such as 500ms, 10s or 2m")?;
    if seconds > MAX_SECONDS {
        return Err("a duration is at most a year".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, millis: Option<u64>) {
        assert_eq!(parse(text).ok(), millis.map(Duration::from_millis), "{text}");
    }

    #[test]
    fn units_are_understood() {
        check("500ms", Some(500));
        check("10s", Some(10_000));
        check("1.5", Some(1_500));
        check("2m", Some(120_000));
        check("1h", Some(3_600_000));
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "s", "0", "-1s", "1x", "nan", "inf", "1e300s", "ten"] {
            check(text, None);
        }
    }
}
