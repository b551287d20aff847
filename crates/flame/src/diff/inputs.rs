//! Files into the runs that are compared.

use std::path::Path;

use flame_diff::{Names, Run, Samples, counted_tree, match_roots, samples_of, side_of};
use flame_formats::{ReadOptions, Whole};
use flame_message::clean_name;
use flame_profile::{
    CallTree, Columns, Health, Meta, Profile, SiblingOrder, TreeBuilder, TreeOptions, ValueType,
    Weight,
};

use super::names_of;
use super::sides::Sides;
use crate::cli::{DiffArgs, ValuePair};
use crate::inputs::{
    self, notes_of_unread, nothing, nothing_in, read, read_among, shown_path as shown, too_large,
};
use crate::message::Failure;
use crate::output::Outputs;

/// The order that unions are made in.
const ORDER: SiblingOrder = SiblingOrder::Name;

/// A run and what else its file says.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) run: Run,
    pub(super) meta: Meta,
    pub(super) health: Health,
}

/// What was read, a side each.
#[derive(Debug)]
pub(super) struct Inputs {
    pub(super) before: Vec<Input>,
    pub(super) after: Vec<Input>,
    /// What is said of files that could not be read, and that their side is shown without.
    pub(super) left_out: Vec<String>,
}

impl Inputs {
    /// Reads the files side by side.
    pub(super) fn read(
        sides: &Sides,
        args: &DiffArgs,
        outputs: &Outputs,
    ) -> Result<Inputs, Failure> {
        let paths: Vec<&Path> = sides.paths().collect();
        let threads = (flame_threads::count() / paths.len()).max(1);
        let options = TreeOptions { order: ORDER, ..outputs.default_tree_options() };
        let options =
            ReadOptions { tree: options, threads, ..inputs::options(&args.input, &paths) };
        let names = names_of(args);
        let Sides::Two { before, after } = sides else {
            let file = read(paths[0], &options)?.into_whole();
            let has_folded = is_folded(&file);
            return Maker { args, outputs, names, has_folded }.both_of(paths[0], file);
        };
        let is_alone = |at| if at < before.len() { before.len() == 1 } else { after.len() == 1 };
        let mut files = side_by_side(paths.into_iter().enumerate().collect(), |(at, path)| {
            let read =
                if is_alone(at) { Ok(read(path, &options)?) } else { read_among(path, &options)? };
            Ok(read.map(|read| (path, read.into_whole())))
        })?;
        let of_after = files.split_off(before.len());
        let (before, mut unread) = readable(files)?;
        let (after, unread_after) = readable(of_after)?;
        unread.extend(unread_after);
        let has_folded = before.iter().chain(&after).any(|(_, file)| is_folded(file));
        let maker = Maker { args, outputs, names, has_folded };
        let values = args.values.as_ref();
        let values = values.map(|ValuePair(before, after)| (before.as_str(), after.as_str()));
        let count = before.len();
        let named = before.into_iter().map(|it| (it, values.map(|values| values.0)));
        let named = named.chain(after.into_iter().map(|it| (it, values.map(|values| values.1))));
        let input = |((path, file), value)| maker.input(path, file, value);
        let mut before = side_by_side(named.collect(), input)?;
        let after = before.split_off(count);
        let left_out = notes_of_unread(&unread).collect();
        Ok(Inputs { before, after, left_out })
    }
}

/// A file with what it holds and what is to be said of it.
type Found<'p> = (&'p Path, (Whole, Health));

/// The files of a side that could be read, and the failures of the others.
///
/// # Errors
/// None could be read.
fn readable(
    files: Vec<Result<Found<'_>, Failure>>,
) -> Result<(Vec<Found<'_>>, Vec<Failure>), Failure> {
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    for file in files {
        match file {
            Ok(file) => found.push(file),
            Err(failure) => unread.push(failure),
        }
    }
    match found.is_empty() && !unread.is_empty() {
        true => Err(unread.swap_remove(0)),
        false => Ok((found, unread)),
    }
}

impl Inputs {
    /// Takes the outermost frames of both sides for one where each side has a single one and they
    /// differ. Says so.
    pub(super) fn match_roots(&mut self) -> Option<String> {
        let before = self.before.iter_mut().map(|input| &mut input.run).collect();
        let after = self.after.iter().map(|input| &input.run).collect();
        let [before, after] = match_roots(before, after)?;
        let (before, after) = (clean_name(&before), clean_name(&after));
        Some(format!(
            "the outermost frames {before} (before) and {after} (after) are compared as one"
        ))
    }
}

/// Does the same to all side by side; the first failure counts.
fn side_by_side<T: Send, U: Send>(
    all: Vec<T>,
    work: impl Fn(T) -> Result<U, Failure> + Sync,
) -> Result<Vec<U>, Failure> {
    flame_threads::map(all, work).into_iter().collect()
}

fn is_folded((file, _): &(Whole, Health)) -> bool {
    matches!(file, Whole::Folded(..))
}

/// Makes runs of files.
struct Maker<'a> {
    args: &'a DiffArgs,
    outputs: &'a Outputs,
    names: Names,
    /// Whether there is folded text among the files, which counts samples most of the time.
    has_folded: bool,
}

impl Maker<'_> {
    /// A file of one side; `named` is the value that it is to have.
    fn input(
        &self,
        path: &Path,
        (file, health): (Whole, Health),
        named: Option<&str>,
    ) -> Result<Input, Failure> {
        match file {
            Whole::Folded(..) if named.is_some() => Err(one_value(path)),
            Whole::Folded(parts, Columns::One) => {
                self.outputs.check_folded(path)?;
                let tree = match self.names {
                    // Their trees are there already.
                    Names::Exact => parts.finish(ValueType::samples(), ORDER),
                    _ => self.tree(parts.into_builder(), ValueType::samples()),
                };
                self.made(path, tree, Samples::Divisor, Meta::default(), health)
            }
            Whole::Folded(_, Columns::Two) => {
                Err(Failure::usage(format!("{} has two counts a line", shown(path)))
                    .why("it is a comparison already, so it cannot be one side of another")
                    .or_try(format!("flame diff {}", shown(path))))
            }
            Whole::Profile(profile) => {
                let value = match named {
                    Some(name) => value_named(name, &profile, path)?,
                    None => self.value(&profile)?,
                };
                self.of_profile(path, &profile, value)
            }
        }
    }

    /// Both sides of one file.
    fn both_of(&self, path: &Path, (file, health): (Whole, Health)) -> Result<Inputs, Failure> {
        match (file, &self.args.values) {
            (Whole::Folded(parts, Columns::Two), None) => {
                self.outputs.check_folded(path)?;
                let tree = parts.finish(ValueType::samples(), ORDER);
                let side = |is_before| {
                    let tree = self.tree(side_of(&tree, is_before), ValueType::samples());
                    self.made(path, tree, Samples::Divisor, Meta::default(), health.clone())
                };
                Ok(Inputs {
                    before: vec![side(true)?],
                    after: vec![side(false)?],
                    left_out: Vec::new(),
                })
            }
            (Whole::Profile(profile), Some(ValuePair(before, after))) => {
                let side = |name: &str| {
                    let value = value_named(name, &profile, path)?;
                    Ok(vec![self.of_profile(path, &profile, value)?])
                };
                Ok(Inputs { before: side(before)?, after: side(after)?, left_out: Vec::new() })
            }
            (Whole::Folded(..), Some(_)) => Err(one_value(path)),
            _ => Err(Failure::usage(format!("only {} to compare, and nothing else", shown(path)))
                .or_try(format!("flame diff {} OTHER", shown(path)))),
        }
    }

    /// The value that weighs the stacks of a profile.
    fn value(&self, profile: &Profile) -> Result<usize, Failure> {
        let names: Vec<String> =
            profile.value_types().iter().map(|value| value.name.clone()).collect();
        self.outputs.check_value(&names)?;
        let named = self.outputs.tree_options(profile).value;
        let samples = samples_of(profile).filter(|_| self.has_folded);
        Ok(named.or(samples).unwrap_or(profile.default_value))
    }

    fn of_profile(&self, path: &Path, profile: &Profile, value: usize) -> Result<Input, Failure> {
        let mut options = self.outputs.default_tree_options();
        (options.value, options.order) = (Some(value), ORDER);
        let (builder, samples) = counted_tree(profile, &options, value);
        let value_type = profile.value_types().get(value).cloned();
        let value_type = value_type.unwrap_or_else(ValueType::samples);
        if profile.total(value) == Weight(0) {
            return Err(nothing_in(path, profile, &value_type, &[]));
        }
        let (meta, health) = (profile.meta.clone(), profile.health.clone());
        self.made(path, self.tree(builder, value_type), samples, meta, health)
    }

    /// What has grown as a tree, its names made equal.
    fn tree(&self, mut builder: TreeBuilder, value: ValueType) -> CallTree {
        if self.names != Names::Exact {
            builder.rename(|name| self.names.common(name));
        }
        builder.finish(value, ORDER)
    }

    /// The last steps, which all files take.
    fn made(
        &self,
        path: &Path,
        tree: CallTree,
        samples: Samples,
        meta: Meta,
        health: Health,
    ) -> Result<Input, Failure> {
        if tree.nodes().len() == 1 {
            return Err(nothing(&[path.to_owned()], &health, None));
        }
        if tree.is_too_large() {
            return Err(too_large(&[path.to_owned()]));
        }
        let picture = &self.args.picture;
        let lacks = |name: &&String| !tree.labels().iter().any(|label| label.is_called(name));
        if let Some(function) = picture.callers.as_ref().filter(lacks) {
            return Err(nothing_left(path, function));
        }
        let tree = self.outputs.shape(tree)?;
        if tree.total() == Weight(0) {
            return Err(nothing_left(path, &picture.base.join(" or ")));
        }
        let samples = match (self.args.samples_per_unit, samples) {
            (Some(number), _) => Samples::PerUnit(number),
            (None, Samples::Counted) if tree.before().is_none() => Samples::Divisor,
            (None, samples) => samples,
        };
        let run = Run { name: shown(path), tree, samples, duration: meta.duration };
        Ok(Input { run, meta, health })
    }
}

/// Of a side without the functions that it was to be cut to.
fn nothing_left(path: &Path, functions: &str) -> Failure {
    Failure::new(format!("nothing is left of {}", shown(path)))
        .why(format!("no stack has {}", clean_name(functions)))
}

fn value_named(name: &str, profile: &Profile, path: &Path) -> Result<usize, Failure> {
    profile.value_named(name).ok_or_else(|| {
        let values = profile.value_types().iter();
        let names: Vec<&str> = values.map(|value| value.name.as_str()).collect();
        let names = names.join(" and ");
        Failure::usage(format!("no value {name} in {}: it has {names}", shown(path)))
    })
}

fn one_value(path: &Path) -> Failure {
    Failure::usage(format!("{} has one value only", shown(path)))
        .why("folded text has one number per stack; pprof files may have several values")
}
