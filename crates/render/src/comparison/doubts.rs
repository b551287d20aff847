//! Profiles that can be compared, but hardly mean the same.

use flame_diff::{DiffError, DiffTree, Gate, Presence, Run, Samples};
use flame_message::{Failure, clean_name, quoted};
use flame_profile::{Meta, NodeId, ValueType};

use super::marked_name;

/// What makes a comparison doubtful of one value of both sides, or of two. `is_scaled` says whether
/// numbers of samples are made comparable by shares or by work.
///
/// # Errors
/// When the weights are of different units.
pub fn doubts(
    [before, after]: [&[(&Run, &Meta)]; 2],
    is_one_value: bool,
    is_scaled: bool,
) -> Result<Vec<String>, Failure> {
    let mut warnings = Vec::new();
    if is_one_value {
        warnings.extend(given_twice(before, after));
    }
    let mut all = before.iter().chain(after);
    warnings.extend(all.clone().filter_map(|(run, _)| no_counts(run)));
    let Some(first) = all.next().filter(|_| is_one_value) else { return Ok(warnings) };
    for other in all {
        let values = (first.0.tree.value_type(), other.0.tree.value_type());
        if values.0.unit != values.1.unit || values.0.name != values.1.name {
            return Err(different_values(first.0, other.0));
        }
        warnings.extend(different_circumstances(first, other, is_scaled));
    }
    Ok(warnings)
}

/// How many weights are looked at, and how few say nothing.
const WEIGHTS: std::ops::Range<usize> = 30..1000;

/// Folded text that is taken for numbers of samples and hardly can be that. Numbers of samples repeat
/// themselves, most of all the small ones; times and bytes do not.
fn no_counts(run: &Run) -> Option<String> {
    if run.samples != Samples::Divisor {
        return None;
    }
    let weights = run.tree.nodes().iter().map(|node| node.self_weight.0);
    let mut weights: Vec<u64> = weights.filter(|weight| *weight > 0).take(WEIGHTS.end).collect();
    let number = weights.len();
    weights.sort_unstable();
    weights.dedup();
    let repeats = weights.len() * 10 <= number * 9;
    (number >= WEIGHTS.start && !repeats).then(|| {
        format!(
            "hardly two weights of {} are the same, which looks like times or bytes: unless they are counts \
             of samples, changes look more certain than they are; --samples-per-unit NUMBER says how \
             many samples one unit stands for",
            run.name
        )
    })
}

/// Files that are there more than once, by their names: a pattern and a name may mean the same.
fn given_twice(before: &[(&Run, &Meta)], after: &[(&Run, &Meta)]) -> Vec<String> {
    let names = |side: &[(&Run, &Meta)]| -> Vec<String> {
        side.iter().map(|(run, _)| run.name.clone()).collect()
    };
    let (before, after) = (names(before), names(after));
    let again = |side: &[String]| -> Vec<String> {
        let places = (1..side.len()).filter(|at| side[..*at].contains(&side[*at]));
        places.map(|at| side[at].clone()).collect()
    };
    let twice = again(&before).into_iter().chain(again(&after));
    let twice = twice.map(|name| {
        format!(
            "{name} is given twice on one side: its samples are counted twice, so changes look more \
             certain than they are"
        )
    });
    // One file a side that is the same on both is said to be identical.
    let is_plain = before.len() + after.len() == 2;
    let both = after.iter().filter(|name| !is_plain && before.contains(name));
    twice.chain(both.map(|name| format!("{name} is on both sides"))).collect()
}

fn different_values(one: &Run, other: &Run) -> Failure {
    let text =
        |value: &ValueType| format!("{} in {}", clean_name(&value.name), clean_name(&value.unit));
    let values = (one.tree.value_type(), other.tree.value_type());
    let names_of_values = quoted(&format!("{},{}", values.0.name, values.1.name));
    Failure::new(format!("cannot compare {} with {}", one.name, other.name))
        .why(format!("one has {}, the other {}", text(values.0), text(values.1)))
        .or_try("--value samples, if both have it")
        .or_try(format!("--values {names_of_values}, to compare one with the other all the same"))
}

/// Different events or frequencies behind equal values.
fn different_circumstances(
    (one, a): &(&Run, &Meta),
    (other, b): &(&Run, &Meta),
    is_scaled: bool,
) -> Option<String> {
    let (name, other_name) = (&one.name, &other.name);
    match (&a.event, &b.event) {
        (Some(event), Some(other_event)) if event != other_event => {
            let (event, other_event) = (clean_name(event), clean_name(other_event));
            return Some(format!(
                "{name} has samples of {event}, {other_name} of {other_event}: they count \
                 different things"
            ));
        }
        _ => {}
    }
    // What samples stand for, such as CPU time, does not depend on how many there are.
    let are_samples = *one.tree.value_type() == ValueType::samples();
    match (a.frequency, b.frequency) {
        (Some(rate), Some(other_rate)) if rate != other_rate && are_samples && !is_scaled => {
            Some(format!(
                "{name} was sampled at {rate}, {other_name} at {other_rate}: samples are not \
                 comparable unless they are normalised; --value cpu compares what they stand for"
            ))
        }
        _ => None,
    }
}

/// A word about profiles that are equal stack by stack.
pub fn are_identical(tree: &DiffTree) -> Option<String> {
    let equal = tree.nodes().iter().all(|node| node.before == node.after);
    let names = (tree.before().names.join(", "), tree.after().names.join(", "));
    equal.then(|| format!("{} and {} are identical: every stack weighs the same", names.0, names.1))
}

/// A word about profiles whose stacks start with different frames: those of a process that was
/// called otherwise. Nothing of them is compared then.
pub fn are_strangers(tree: &DiffTree) -> Option<String> {
    let first = |presence| {
        let mut of_side = tree.children(NodeId::ROOT).filter(|(_, n)| n.presence() == presence);
        of_side.next().map(|(_, node)| clean_name(&tree.label(node).name))
    };
    let (before, after) = (first(Presence::Vanished)?, first(Presence::New)?);
    first(Presence::Both).is_none().then(|| {
        format!(
            "no stack of one side starts like one of the other ({before}, {after}), so all is new \
             or vanished; --base FUNCTION compares from a function on"
        )
    })
}

/// Why profiles cannot be compared.
pub fn diff_failure(error: &DiffError) -> Failure {
    let failure = Failure::new(format!("cannot compare the profiles: {error}"));
    match error {
        DiffError::NoDuration { .. } => failure
            .why("pprof files may say how long was recorded; folded text does not")
            .or_try("--no-normalize, where both were recorded for the same time"),
        DiffError::NoFunction { function, .. } => {
            Failure::new(format!("cannot scale by {}: {error}", clean_name(function)))
                .or_try("flame render PROFILE --flat --format txt, to see the names")
        }
        DiffError::TooLarge => failure.why("one side has decimal places, the other large numbers"),
        _ => failure,
    }
}

/// A function of a bound that no profile has: such a bound is never exceeded, whatever happens.
pub fn missing_function(gate: &Gate, tree: &DiffTree) -> Option<Failure> {
    let name = gate.missing(tree, &marked_name)?;
    let failure =
        Failure::usage(format!("no function {} for --fail-if in either profile", clean_name(name)));
    let failure = failure
        .why("a bound on what is not there holds whatever happens: renamed, inlined or misspelt?")
        .or_try("the name as flame diff --all shows it, or --allow-missing");
    Some(failure)
}
