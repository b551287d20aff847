//! What cannot be done with a trace, its map or its rules, in words for people.

use std::io;

use flame_message::{Failure, clean_name, group_thousands, reason};
use flame_profile::CallTree;

use crate::error::UbootError;
use crate::replay::Facts;

/// More bytes of paths than a disk should be filled with.
const MOST_PATHS: u64 = 4 << 30;

const MAP: &str = "-m with the System.map of the build that made the trace";
const WITHOUT_COMPAT: &str = "the same without --compat, which uses all complete records";

/// A file that cannot be read.
pub fn unreadable(name: &str, error: &io::Error) -> Failure {
    Failure::new(format!("cannot read {name}: {}", reason(error)))
}

/// A trace that cannot be used.
pub fn wrong_trace(name: &str, error: &UbootError) -> Failure {
    match error {
        UbootError::Io(error) => unreadable(name, error),
        UbootError::NoSuchChunk { have: 0, .. } => Failure::new(format!("no calls in {name}"))
            .why("it has lists of functions only, as `trace funclist` writes them")
            .or_try("trace calls, on the target"),
        UbootError::NoSuchChunk { .. } => Failure::new(error.to_string()),
        _ => Failure::new(format!("cannot read {name} as a U-Boot trace")).why(error.to_string()),
    }
}

/// A trace whose packed end is damaged, for who reads all or nothing as proftool does.
pub fn broken_trace(name: &str, why: String) -> Failure {
    Failure::new(format!("cannot read {name}")).why(why).or_try(WITHOUT_COMPAT)
}

/// A trace or a map that proftool does not read either.
pub fn wrong_for_proftool(trace: &str, map: &str, error: &UbootError) -> Failure {
    match error {
        UbootError::MapLine(_) | UbootError::NoTextSymbols => wrong_map(map, error),
        UbootError::Proftool(what) => Failure::new(format!("cannot read {trace} as proftool does"))
            .why(format!("proftool fails here, too: {what}"))
            .or_try(WITHOUT_COMPAT),
        error => wrong_trace(trace, error),
    }
}

/// A map that is not to be had.
pub fn unreadable_map(name: &str, error: &io::Error) -> Failure {
    let failure = unreadable(name, error);
    match error.kind() {
        io::ErrorKind::NotFound => failure
            .why("the map names the functions; U-Boot's build writes it beside the image")
            .or_try("-m PATH/System.map, of the build that made the trace"),
        _ => failure,
    }
}

/// A map that cannot be used.
pub fn wrong_map(name: &str, error: &UbootError) -> Failure {
    Failure::new(format!("cannot use the map {name}")).why(error.to_string()).or_try(MAP)
}

/// A map that names none of `all` functions of the trace.
pub(crate) fn strange_map(name: &str, all: usize) -> Failure {
    let what = match all {
        1 => format!("the only function of the trace is not in {name}"),
        _ => format!(
            "none of the {} functions of the trace is in {name}",
            group_thousands(all as u64)
        ),
    };
    Failure::new(what).why("it is the map of another build, or of another program").or_try(MAP)
}

/// Rules that cannot be used.
pub fn wrong_rules(name: &str, error: &UbootError) -> Failure {
    Failure::new(format!("cannot use the rules of {name}"))
        .why(clean_name(&error.to_string()))
        .or_try("lines such as exclude-func ^mem, or include-func printf")
}

/// A trace in which nothing was entered.
pub fn no_calls(name: &str, facts: &Facts) -> Failure {
    let failure = Failure::new(format!("no calls in {name}"));
    match (facts.exits, facts.others) {
        (0, 0) => {
            failure.why("its calls chunk has no records: nothing was traced, or it was wiped")
        }
        (0, _) => failure.why("its records are neither entries nor exits"),
        _ => failure.why("no function was entered; there are only exits"),
    }
    .or_try("flame uboot info, to see what is in it")
}

/// There are calls, and all of them are excluded by rules or took no time.
pub fn no_weight(has_rules: bool) -> Failure {
    match has_rules {
        true => Failure::new("nothing is left to show")
            .why("the rules exclude all functions that were called")
            .or_try("an include-func rule after them, since the last match decides"),
        false => Failure::new("nothing to show: all calls took less than a microsecond")
            .or_try("flame uboot calls"),
    }
}

/// A tree for formats that name the callers of each function, for which a trace of nothing but entries
/// would need the square of its length.
pub fn too_deep(tree: &CallTree) -> Option<Failure> {
    let bytes = path_bytes(tree);
    (bytes > MOST_PATHS).then(|| {
        let depth = group_thousands(u64::from(tree.max_depth()));
        Failure::new(format!("the calls are {depth} levels deep: too many to name all callers"))
            .why(format!("the names of all paths take {} GB", bytes >> 30))
            .or_try("-o FILE.svg, FILE.json or FILE.csv, or flame uboot info to see what is wrong")
    })
}

/// The bytes of all paths as folded text has them.
fn path_bytes(tree: &CallTree) -> u64 {
    let (mut bytes, mut above) = (0, Vec::new());
    for node in tree.nodes() {
        above.truncate(node.depth as usize);
        let len = above.last().unwrap_or(&0) + tree.label(node).name.len() as u64 + 1;
        bytes += len;
        above.push(len);
    }
    bytes
}
