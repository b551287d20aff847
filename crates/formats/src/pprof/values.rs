//! Names of values and events as every store of profiles takes them.
//!
//! Stores make metric names of them, which have letters, digits and `_` only: `page-faults` is
//! `page_faults` in the file, and a comment for flame keeps the name as it is.

use std::collections::HashSet;

use flame_profile::Profile;

/// A name of letters, digits and `_`.
pub(super) fn portable(name: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.chars().map(fits).collect()
}

/// The names of a profile's values in the file: portable, unless two values would be called the
/// same then.
pub(super) fn names(profile: &Profile) -> Vec<String> {
    let types = profile.value_types();
    let names: Vec<String> = types.iter().map(|value| portable(&value.name)).collect();
    let distinct = |names: &[String]| names.iter().collect::<HashSet<_>>().len();
    let own: Vec<String> = types.iter().map(|value| value.name.clone()).collect();
    if distinct(&names) == distinct(&own) { names } else { own }
}

/// The values that are called otherwise in the file, with their positions.
pub(super) fn renamed(profile: &Profile) -> impl Iterator<Item = (usize, &str)> {
    let all = profile.value_types().iter().map(|value| value.name.as_str()).enumerate();
    all.zip(names(profile)).filter(|((_, own), name)| own != name).map(|(own, _)| own)
}
