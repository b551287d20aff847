//! `--fail-if`: what is said where a change exceeds its bound.

use flame_diff::{DiffTree, Excess, Gate, Part, Scaling};
use flame_message::{Failure, clean_name, counted, quoted};

use super::{marked_name, probability};

/// The exit status of a comparison that exceeds a bound.
const EXCEEDED: u8 = 3;

/// What is said where a named function exceeds the bound, but by what could be noise.
pub fn gate_doubt(gate: &Gate, tree: &DiffTree) -> Option<String> {
    let excess = gate.doubtful(tree, &marked_name)?;
    Some(format!(
        "{} exceeds --fail-if {}, but that could be noise: it changed by {:+.2}; longer recordings, or \
         more of them, would tell",
        clean_name(excess.name),
        quoted(&gate.text),
        excess.change
    ))
}

/// What exceeds a bound and is real, as a failure.
pub fn gate_failure(gate: &Gate, tree: &DiffTree) -> Option<Failure> {
    let excesses = gate.exceeded(tree, &marked_name);
    let worst = excesses.first()?;
    Some(failure(gate, tree, worst, excesses.len() - 1))
}

fn failure(gate: &Gate, tree: &DiffTree, worst: &Excess<'_>, others: usize) -> Failure {
    let part = if gate.part == Part::Own { "self weight" } else { "total" };
    let verb = if gate.grows { "grew" } else { "shrank" };
    let by = worst.change.abs();
    let shares = [tree.scale().of(worst.before), worst.after.0 as f64].map(|w| tree.points(w));
    let unit = match tree.scaling() {
        Scaling::Total => "points",
        _ => "% of all before",
    };
    let what = format!(
        "{} {verb} by {by:.2} {unit} in its {part}, from {:.2} % to {:.2} %: more than --fail-if {}",
        clean_name(worst.name),
        shares[0],
        shares[1],
        quoted(&gate.text)
    );
    let p = match probability(worst.evidence.p()) {
        small if small.starts_with('<') => format!("p < {}", &small[1..]),
        p => format!("p = {p}"),
    };
    let tested = counted(tree.tested(), "change", "changes");
    let mut why = format!("chance alone does that with {p}, corrected for {tested} tested");
    if tree.is_one_run_a_side() {
        why += "; one recording per side cannot tell whether the program changed or only the recordings differ";
    }
    if others > 0 {
        let functions = counted(others as u64, "function exceeds", "functions exceed");
        why += &format!("; {functions} it, too");
    }
    let mut failure = Failure::new(what).why(why);
    if tree.is_one_run_a_side() {
        let several = "flame record --repeat 3 for each side, then flame diff --before 'A.*' \
                           --after 'B.*'";
        failure = failure.or_try(several);
    }
    failure.code = EXCEEDED;
    failure
}
