//! The axis of time: round moments, some hundred pixels apart.

use std::io::{self, Write};

/// Pixels between two moments, at least.
const APART: f64 = 90.0;

/// A length of time as people say it.
pub(super) fn length(nanos: u64) -> String {
    let (unit, one) = match nanos {
        0..10_000 => ("ns", 1.0),
        10_000..10_000_000 => ("\u{b5}s", 1e3),
        10_000_000..10_000_000_000 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    let amount = nanos as f64 / one;
    if amount < 100.0 && one > 1.0 {
        format!("{amount:.1} {unit}")
    } else {
        format!("{amount:.0} {unit}")
    }
}

/// The step between two moments of an axis: 1, 2 or 5 times a power of ten, in nanoseconds.
fn step(duration: u64, width: f64) -> u64 {
    let least = duration as f64 * APART / width;
    let mut power = 1_u64;
    loop {
        for times in [1, 2, 5] {
            let step = power.saturating_mul(times);
            if step as f64 >= least || power > u64::MAX / 10 {
                return step;
            }
        }
        power *= 10;
    }
}

/// Draws the axis above the lanes, and its lines through them.
pub(super) fn write(
    duration: u64,
    left: f64,
    width: f64,
    top: u32,
    bottom: u32,
    out: &mut impl Write,
) -> io::Result<()> {
    let step = step(duration, width);
    let digits = (0..9).find(|digits| step.is_multiple_of(10_u64.pow(9 - digits))).unwrap_or(9);
    let mut moment = 0;
    while moment <= duration {
        let x = left + moment as f64 / duration.max(1) as f64 * width;
        let seconds = moment as f64 / 1e9;
        let (line, text) = (top - 12, top - 16);
        write!(
            out,
            "<path d=\"M{x:.1} {line}V{bottom}\"/>\
             <text x=\"{:.1}\" y=\"{text}\">{seconds:.*} s</text>",
            x + 3.0,
            digits as usize
        )?;
        moment += step;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_round_and_have_room() {
        assert_eq!(step(2_000_000_000, 1180.0), 200_000_000);
        assert_eq!(step(1_000_000, 1180.0), 100_000);
        assert_eq!(step(0, 1180.0), 1);
        assert_eq!(
            [length(999), length(12_345_678), length(90_000_000_000)],
            ["999 ns", "12.3 ms", "90.0 s"]
        );
    }
}
