//! Which files are before and which after.

use std::path::{Path, PathBuf};

use crate::cli::DiffArgs;
use crate::inputs::{is_piped, there};
use crate::message::Failure;

/// The files of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sides {
    /// A side each, none of them empty.
    Two { before: Vec<PathBuf>, after: Vec<PathBuf> },
    /// A file that has both.
    One(PathBuf),
}

impl Sides {
    /// Sorts the arguments out.
    pub(super) fn of(args: &DiffArgs) -> Result<Sides, Failure> {
        let sides = match &*args.profiles {
            [] if args.before.is_empty() && is_piped() => Sides::One(PathBuf::from("-")),
            [] if args.before.is_empty() => {
                return Err(Failure::usage("nothing to compare")
                    .or_try("flame diff before.folded after.folded"));
            }
            [] => Sides::Two { before: expanded(&args.before)?, after: expanded(&args.after)? },
            [both] => Sides::One(both.clone()),
            [before, after] => {
                Sides::Two { before: vec![before.clone()], after: vec![after.clone()] }
            }
            more => {
                let what = format!("two profiles are compared, not {}", more.len());
                return Err(Failure::usage(what)
                    .or_try("--before A1 A2 --after B1 B2, for several runs a side"));
            }
        };
        let stdin = sides.paths().filter(|path| *path == Path::new("-")).count();
        if stdin > 1 {
            return Err(Failure::usage("stdin can be read only once"));
        }
        Ok(sides)
    }

    /// All files, those of before first.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        let (before, after) = match self {
            Sides::Two { before, after } => (&before[..], &after[..]),
            Sides::One(path) => (std::slice::from_ref(path), &[][..]),
        };
        before.iter().chain(after).map(PathBuf::as_path)
    }
}

/// Patterns as the files that match them, sorted by name. What exists as it is called is not a pattern.
fn expanded(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        let text = path.to_str().filter(|text| text.contains(['*', '?', '[']));
        let Some(pattern) = text.filter(|_| !path.exists()) else {
            files.push(there(path)?);
            continue;
        };
        let matches = glob::glob(pattern)
            .map_err(|error| Failure::usage(format!("cannot read {pattern}: {}", error.msg)))?;
        // What cannot be looked into is not there for flame.
        let before = files.len();
        files.extend(matches.filter_map(Result::ok));
        if files.len() == before {
            return Err(Failure::new(format!("no file matches {pattern}")));
        }
    }
    Ok(files)
}
