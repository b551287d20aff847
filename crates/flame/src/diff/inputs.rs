//! Files into the runs that are compared.

use std::path::Path;
use std::thread;

use flame_diff::{Run, Samples};
use flame_profile::{
    BuilderNode, CallTree, Columns, Health, Meta, Profile, SiblingOrder, TreeBuilder, TreeOptions,
    ValueType, Weight,
};
use flame_render::clean_name;

use super::counted;
use super::names::Names;
use super::sides::Sides;
use crate::cli::{DiffArgs, PictureArgs, ValuePair};
use crate::message::Failure;
use crate::output::Outputs;
use crate::render::input::{Read, nothing, read};

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
}

impl Inputs {
    /// A line for each file of which there is something to say.
    pub(super) fn health(&self) -> Vec<String> {
        self.before.iter().chain(&self.after).filter_map(health).collect()
    }

    /// Reads the files side by side.
    pub(super) fn read(
        sides: &Sides,
        args: &DiffArgs,
        outputs: &Outputs,
    ) -> Result<Inputs, Failure> {
        let paths: Vec<&Path> = sides.paths().collect();
        let cores = thread::available_parallelism().map_or(1, |count| count.get() as u64);
        let threads = (cores / paths.len() as u64).max(1);
        let options = TreeOptions { order: ORDER, ..outputs.default_tree_options() };
        let mut files = side_by_side(paths.clone(), |path| read(path, options, threads))?;
        let maker = Maker { args, outputs, names: names(args), has_folded: has_folded(&files) };
        match sides {
            Sides::One(path) => maker.both_of(path, files.remove(0)),
            Sides::Two { before, .. } => {
                let named: Vec<(&Path, Read)> = paths.into_iter().zip(files).collect();
                let mut inputs = side_by_side(named, |(path, file)| maker.input(path, file))?;
                let after = inputs.split_off(before.len());
                Ok(Inputs { before: inputs, after })
            }
        }
    }
}

/// What is known of how good the data of a file is.
fn health(input: &Input) -> Option<String> {
    let health = &input.health;
    let mut said = Vec::new();
    if health.walked().next().is_some() || health.has_losses() {
        said.push(health.one_line());
    } else if health.skipped_lines > 0 {
        said.push(counted(health.skipped_lines, "line", "lines") + " not readable");
    }
    said.extend(health.notes.iter().cloned());
    (!said.is_empty()).then(|| format!("{}: {}", input.run.name, said.join("; ")))
}

/// Does the same to all, each on a thread of its own; the first failure counts.
fn side_by_side<T: Send, U: Send>(
    all: Vec<T>,
    work: impl Fn(T) -> Result<U, Failure> + Sync,
) -> Result<Vec<U>, Failure> {
    let cores = thread::available_parallelism().map_or(1, |count| count.get());
    let mut all = all.into_iter();
    let mut done = Vec::new();
    loop {
        let some: Vec<T> = all.by_ref().take(cores).collect();
        if some.is_empty() {
            return Ok(done);
        }
        let results: Vec<Result<U, Failure>> = thread::scope(|scope| {
            let work = &work;
            let threads: Vec<_> =
                some.into_iter().map(|one| scope.spawn(move || work(one))).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        });
        done.extend(results.into_iter().collect::<Result<Vec<U>, Failure>>()?);
    }
}

fn names(args: &DiffArgs) -> Names {
    match (args.match_names, args.strip_hex) {
        (true, _) => Names::AcrossBuilds,
        (_, true) => Names::WithoutHex,
        _ => Names::Exact,
    }
}

fn has_folded(files: &[Read]) -> bool {
    files.iter().any(|file| matches!(file, Read::Folded(..)))
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
    fn input(&self, path: &Path, file: Read) -> Result<Input, Failure> {
        match file {
            Read::Folded(reader, Columns::One) => {
                let health = Health { skipped_lines: reader.skipped_lines(), ..Health::default() };
                let (builder, value) = (reader.into_builder(), ValueType::samples());
                self.made(path, builder, value, Samples::Divisor, Meta::default(), health)
            }
            Read::Folded(_, Columns::Two) => {
                Err(Failure::usage(format!("{} has two counts a line", shown(path)))
                    .why("it is a comparison already, and so no side of another one")
                    .or_try(format!("flame diff {}", shown(path))))
            }
            Read::Pprof(profile) => {
                let value = self.value(&profile)?;
                self.of_profile(path, &profile, value)
            }
        }
    }

    /// Both sides of one file.
    fn both_of(&self, path: &Path, file: Read) -> Result<Inputs, Failure> {
        match (file, &self.args.values) {
            (Read::Folded(reader, Columns::Two), None) => {
                let health = Health { skipped_lines: reader.skipped_lines(), ..Health::default() };
                let tree = reader.finish(ValueType::samples());
                let side = |is_before| {
                    let (builder, value) = (column(&tree, is_before), ValueType::samples());
                    let meta = Meta::default();
                    self.made(path, builder, value, Samples::Divisor, meta, health.clone())
                };
                Ok(Inputs { before: vec![side(true)?], after: vec![side(false)?] })
            }
            (Read::Pprof(profile), Some(ValuePair(before, after))) => {
                let side = |name: &str| {
                    let value = profile.value_named(name);
                    let value = value.ok_or_else(|| no_value(name, &profile))?;
                    Ok(vec![self.of_profile(path, &profile, value)?])
                };
                Ok(Inputs { before: side(before)?, after: side(after)? })
            }
            (Read::Folded(..), Some(_)) => {
                Err(Failure::usage(format!("{} has one value only", shown(path)))
                    .why("folded text says one number a stack; pprof files have several values"))
            }
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
        let mut builder = TreeBuilder::new();
        let samples = match samples_of(profile) {
            Some(samples) if samples == value => {
                builder.add_profile(profile, &options);
                Samples::PerUnit(1.0)
            }
            samples => {
                // Where nothing says how many, each stack has been seen once at least.
                let count = |values: &[u64]| {
                    samples.and_then(|at| values.get(at)).map_or(1, |count| (*count).max(1))
                };
                builder.add_profile_with(profile, &options, count);
                Samples::Counted
            }
        };
        let value_type = profile.value_types().get(value).cloned();
        let value_type = value_type.unwrap_or_else(ValueType::samples);
        let (meta, health) = (profile.meta.clone(), profile.health.clone());
        self.made(path, builder, value_type, samples, meta, health)
    }

    /// The last steps, which all files take: names made equal, the tree ordered and shaped.
    fn made(
        &self,
        path: &Path,
        mut builder: TreeBuilder,
        value: ValueType,
        samples: Samples,
        meta: Meta,
        health: Health,
    ) -> Result<Input, Failure> {
        if builder.is_empty() {
            return Err(nothing(&[path.to_owned()], &health));
        }
        if self.names != Names::Exact {
            builder.rename(|name| self.names.common(name));
        }
        let tree = self.outputs.shape(builder.finish(value, ORDER))?;
        if tree.total() == Weight(0) {
            let PictureArgs { base, callers, .. } = &self.args.picture;
            let bases: Vec<&str> = base.iter().chain(callers).map(String::as_str).collect();
            let bases = bases.join(" or ");
            let what = format!("nothing is left of {}", shown(path));
            return Err(Failure::new(what).why(format!("no stack has {}", clean_name(&bases))));
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

/// One of two counts of each stack.
fn column(tree: &CallTree, is_before: bool) -> TreeBuilder {
    let mut builder = TreeBuilder::with_decimals(tree.decimals());
    let before = tree.before().unwrap_or_default();
    let mut path: Vec<BuilderNode> = vec![BuilderNode::ROOT];
    for (index, node) in tree.nodes().iter().enumerate().skip(1) {
        let before = before.get(index).copied().unwrap_or_default();
        let (total, own) = if is_before {
            (before.total, before.self_weight)
        } else {
            (node.total, node.self_weight)
        };
        if total == Weight(0) {
            continue;
        }
        // The parents of what weighs something weigh something, too.
        path.truncate(node.depth as usize);
        let label = tree.label(node);
        let label = builder.label(&label.name, label.kind);
        let parent = path.last().copied().unwrap_or(BuilderNode::ROOT);
        let child = builder.child(parent, label);
        builder.add(child, own);
        path.push(child);
    }
    builder
}

/// Which value counts samples.
fn samples_of(profile: &Profile) -> Option<usize> {
    profile.value_types().iter().position(|value| *value == ValueType::samples())
}

fn no_value(name: &str, profile: &Profile) -> Failure {
    let names: Vec<&str> = profile.value_types().iter().map(|value| value.name.as_str()).collect();
    let names = names.join(" and ");
    Failure::usage(format!("no value {name} in this profile: it has {names}"))
}

fn shown(path: &Path) -> String {
    clean_name(&path.display().to_string()).into_owned()
}
