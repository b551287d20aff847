//! Profiles that can be compared, but hardly mean the same.

use flame_diff::{DiffTree, Presence, Samples};
use flame_profile::{NodeId, ValueType};
use flame_render::clean_name;

use super::inputs::{Input, Inputs};
use crate::cli::DiffArgs;
use crate::message::{Failure, quoted};

/// What makes the comparison doubtful.
///
/// # Errors
/// When the weights are of different units.
pub(super) fn check(inputs: &Inputs, args: &DiffArgs) -> Result<Vec<String>, Failure> {
    let mut warnings = Vec::new();
    let all: Vec<&Input> = inputs.before.iter().chain(&inputs.after).collect();
    if args.values.is_none() {
        warnings.extend(given_twice(inputs));
    }
    warnings.extend(all.iter().filter_map(|input| no_counts(input)));
    let [first, others @ ..] = &*all else { return Ok(warnings) };
    for other in others.iter().filter(|_| args.values.is_none()) {
        let values = (first.run.tree.value_type(), other.run.tree.value_type());
        if values.0.unit != values.1.unit || values.0.name != values.1.name {
            return Err(different_values(first, other));
        }
        warnings.extend(different_circumstances(first, other, args));
    }
    Ok(warnings)
}

/// How many weights are looked at, and how few say nothing.
const WEIGHTS: std::ops::Range<usize> = 30..1000;

/// Folded text that is taken for numbers of samples and hardly can be that. Numbers of samples repeat
/// themselves, most of all the small ones; times and bytes do not.
fn no_counts(input: &Input) -> Option<String> {
    if input.run.samples != Samples::Divisor {
        return None;
    }
    let weights = input.run.tree.nodes().iter().map(|node| node.self_weight.0);
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
            input.run.name
        )
    })
}

/// Files that are there more than once, by their names: a pattern and a name may mean the same.
fn given_twice(inputs: &Inputs) -> Vec<String> {
    let names = |side: &[Input]| -> Vec<String> {
        side.iter().map(|input| input.run.name.clone()).collect()
    };
    let (before, after) = (names(&inputs.before), names(&inputs.after));
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

fn different_values(one: &Input, other: &Input) -> Failure {
    let text =
        |value: &ValueType| format!("{} in {}", clean_name(&value.name), clean_name(&value.unit));
    let (names, values) = (
        (&one.run.name, &other.run.name),
        (one.run.tree.value_type(), other.run.tree.value_type()),
    );
    let names_of_values = quoted(&format!("{},{}", values.0.name, values.1.name));
    Failure::new(format!("cannot compare {} with {}", names.0, names.1))
        .why(format!("one has {}, the other {}", text(values.0), text(values.1)))
        .or_try("--value samples, if both have it")
        .or_try(format!("--values {names_of_values}, to compare one with the other all the same"))
}

/// Different events or frequencies behind equal values.
fn different_circumstances(one: &Input, other: &Input, args: &DiffArgs) -> Option<String> {
    let (a, b) = (&one.meta, &other.meta);
    let (name, other_name) = (&one.run.name, &other.run.name);
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
    let are_samples = *one.run.tree.value_type() == ValueType::samples();
    match (a.frequency, b.frequency) {
        (Some(rate), Some(other_rate)) if rate != other_rate && are_samples && !is_scaled(args) => {
            Some(format!(
                "{name} was sampled at {rate}, {other_name} at {other_rate}: samples are not \
                 comparable unless they are normalised; --value cpu compares what they stand for"
            ))
        }
        _ => None,
    }
}

/// Whether numbers of samples are made comparable by shares or by work.
fn is_scaled(args: &DiffArgs) -> bool {
    !args.scaling.no_normalize && !args.scaling.by_time
}

/// A word about profiles that are equal stack by stack.
pub(super) fn identical(tree: &DiffTree) -> Option<String> {
    let equal = tree.nodes().iter().all(|node| node.before == node.after);
    let names = (tree.before().names.join(", "), tree.after().names.join(", "));
    equal.then(|| format!("{} and {} are identical: every stack weighs the same", names.0, names.1))
}

/// A word about profiles whose stacks start with different frames: those of a process that was
/// called otherwise. Nothing of them is compared then.
pub(super) fn strangers(tree: &DiffTree) -> Option<String> {
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
