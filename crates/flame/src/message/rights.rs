//! What to advise who lacks a right, in a failure: what [`flame_doctor::rights`] knows.

use flame_doctor::rights::{is_root, lower_paranoid, more_rights, setcap_command};

use super::{Failure, this_command_with};

/// Everything that would lift a refusal: `level` is the highest that allows it to everybody, if any
/// does.
pub(crate) fn with_more_rights(failure: Failure, level: Option<i32>) -> Failure {
    let failure = match is_root() {
        true => failure.or_try(more_rights()),
        false => as_root(failure).or_try(setcap_command()),
    };
    level.into_iter().fold(failure, |failure, level| failure.or_try(lower_paranoid(level)))
}

/// Advises to run the same command as root, unless root ran it.
pub(crate) fn as_root(failure: Failure) -> Failure {
    match is_root() {
        true => failure,
        false => failure.or_try(this_command_with("sudo")),
    }
}
