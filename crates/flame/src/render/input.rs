//! Profiles from files, recognised by what is in them, merged into one call tree.

use std::io;
use std::path::{Path, PathBuf};

use flame_formats::read_pprof;
use flame_profile::{
    CallTree, Columns, FoldedError, FoldedPart, FoldedParts, FoldedReader, Health, Profile,
    SiblingOrder, TreeBuilder, TreeOptions, ValueType, Weight,
};

use super::source::{Part, Source};
use crate::message::{Failure, reason};
use crate::output::Outputs;

/// Everything that was read.
#[derive(Debug)]
pub(super) struct Inputs {
    pub(super) tree: CallTree,
    /// The profile, where it was one and nothing else.
    pub(super) profile: Option<Profile>,
    pub(super) health: Health,
}

/// What one file held.
pub(crate) enum Read {
    Folded(Box<FoldedParts>, Columns),
    Pprof(Box<Profile>),
}

impl Inputs {
    /// Reads the files in their order.
    pub(super) fn read(paths: &[PathBuf], outputs: &Outputs) -> Result<Inputs, Failure> {
        if paths.iter().filter(|path| *path == Path::new("-")).count() > 1 {
            return Err(Failure::usage("stdin can be read once only"));
        }
        let options = outputs.default_tree_options();
        let alone = paths.len() == 1;
        let mut merge = Merge::default();
        let mut profiles = Vec::new();
        for path in paths {
            match read(path, options, flame_threads::count())? {
                Read::Folded(parts, _) if alone => {
                    outputs.check_folded(path)?;
                    let skipped_lines = parts.skipped_lines();
                    let health = Health { skipped_lines, ..Health::default() };
                    let tree = parts.finish(ValueType::samples(), options.order);
                    return Inputs { tree, profile: None, health }.unless_empty(paths);
                }
                Read::Folded(parts, columns) => {
                    outputs.check_folded(path)?;
                    merge.add_folded(path, *parts, columns)?;
                }
                Read::Pprof(profile) => {
                    merge.add_profile(path, &profile, outputs)?;
                    profiles.push(*profile);
                }
            }
        }
        let tree =
            merge.builder.finish(merge.value.unwrap_or_else(ValueType::samples), options.order);
        let profile = profiles.pop().filter(|_| alone);
        Inputs { tree, profile, health: merge.health }.unless_empty(paths)
    }

    fn unless_empty(self, paths: &[PathBuf]) -> Result<Inputs, Failure> {
        match (self.tree.nodes(), &self.profile) {
            ([_root], Some(profile)) => Err(nothing_in(&paths[0], profile, self.tree.value_type())),
            ([_root], None) => Err(nothing(paths, &self.health)),
            _ => Ok(self),
        }
    }
}

/// What has come together so far.
#[derive(Default)]
struct Merge {
    builder: TreeBuilder,
    value: Option<ValueType>,
    columns: Option<Columns>,
    health: Health,
}

impl Merge {
    fn add_folded(
        &mut self,
        path: &Path,
        parts: FoldedParts,
        columns: Columns,
    ) -> Result<(), Failure> {
        self.check(path, columns, ValueType::samples())?;
        self.health.skipped_lines += parts.skipped_lines();
        self.append(parts.into_builder());
        Ok(())
    }

    fn add_profile(
        &mut self,
        path: &Path,
        profile: &Profile,
        outputs: &Outputs,
    ) -> Result<(), Failure> {
        outputs.check_sums(&path.display().to_string())?;
        let names: Vec<String> =
            profile.value_types().iter().map(|value| value.name.clone()).collect();
        outputs.check_value(&names)?;
        let options = outputs.tree_options(profile);
        let value = options.value.unwrap_or(profile.default_value);
        let value_type = profile.value_types().get(value).cloned();
        self.check(path, Columns::One, value_type.unwrap_or_else(ValueType::samples))?;
        self.health.notes.extend(profile.health.notes.iter().cloned());
        let mut builder = TreeBuilder::new();
        builder.add_profile(profile, &options);
        self.append(builder);
        Ok(())
    }

    /// The first tree is taken as it is, which is all there is most of the time.
    fn append(&mut self, builder: TreeBuilder) {
        if self.builder.is_empty() {
            self.builder = builder;
        } else {
            self.builder.append(builder);
        }
    }

    /// Weights of two kinds have no sum.
    fn check(&mut self, path: &Path, columns: Columns, value: ValueType) -> Result<(), Failure> {
        let cannot = |why: String| {
            let failure = Failure::new(format!("cannot merge {} with the others", path.display()));
            Err(failure.why(why))
        };
        if self.columns.is_some_and(|others| others != columns) {
            return cannot("one has two counts a line, another has one".to_owned());
        }
        match &self.value {
            Some(others) if *others != value => {
                let text = |value: &ValueType| format!("{} in {}", value.name, value.unit);
                cannot(format!("it counts {}, they count {}", text(&value), text(others)))
                    .map_err(|failure: Failure| failure.or_try("--value samples, if all have it"))
            }
            _ => {
                (self.columns, self.value) = (Some(columns), Some(value));
                Ok(())
            }
        }
    }
}

/// Reads a file, on so many threads at most.
pub(crate) fn read(path: &Path, options: TreeOptions, threads: usize) -> Result<Read, Failure> {
    let failure = |error: &io::Error| unreadable(path, error);
    let source = Source::open(path).map_err(|error| failure(&error))?;
    if threads > 1 && source.has_parts() {
        flame_threads::start();
    }
    let head = source.head().map_err(|error| failure(&error))?;
    if let Some(refused) = other_format(path, &head) {
        return Err(refused);
    }
    if is_binary(&head) {
        let bytes = source.bytes().map_err(|error| failure(&error))?;
        match read_pprof(&bytes) {
            Ok(profile) => return Ok(Read::Pprof(Box::new(profile))),
            // Folded text with control characters in its names; nothing else is known.
            Err(_) if has_counts(&head) => {
                return read_folded(path, &Source::Memory(bytes), &head, options, threads);
            }
            Err(error) => {
                return Err(Failure::new(format!("cannot read {}: {error}", path.display()))
                    .why("flame reads folded text and pprof, both also gzipped"));
            }
        }
    }
    read_folded(path, &source, &head, options, threads)
}

fn read_folded(
    path: &Path,
    source: &Source,
    head: &[u8],
    options: TreeOptions,
    threads: usize,
) -> Result<Read, Failure> {
    let columns = Columns::detect(head);
    let first = read_parts(source, columns, options, threads);
    let result = match first {
        Err(FoldedError::OneCount) => {
            let parts = read_parts(source, Columns::One, options, threads);
            parts.map(|parts| (parts, Columns::One))
        }
        result => result.map(|parts| (parts, columns)),
    };
    match result {
        Ok((parts, columns)) => Ok(Read::Folded(Box::new(parts), columns)),
        Err(FoldedError::Io(error)) => Err(unreadable(path, &error)),
        Err(error) => Err(Failure::new(format!("cannot read {}: {error}", path.display()))),
    }
}

/// Reads the parts of a source side by side.
fn read_parts(
    source: &Source,
    columns: Columns,
    options: TreeOptions,
    threads: usize,
) -> Result<FoldedParts, FoldedError> {
    let parts = source.parts(threads)?;
    let is_whole = parts.len() == 1;
    let read_part = |mut part: Part<'_>| -> Result<FoldedPart, FoldedError> {
        let reader = FoldedReader::new(columns, options.order);
        let mut reader = reader.with_recursion(options.recursion);
        reader.reserve(part.len());
        reader.read(&mut part)?;
        Ok(reader.into_part(is_whole))
    };
    let parts: Vec<FoldedPart> =
        flame_threads::map(parts, read_part).into_iter().collect::<Result<_, _>>()?;
    Ok(FoldedParts::new(parts).expect("a source has one part at least"))
}

/// What people hand over by mistake: some lines of it would pass for stacks.
fn other_format(path: &Path, head: &[u8]) -> Option<Failure> {
    let cannot = || Failure::new(format!("cannot read {} as a profile", path.display()));
    let text = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head).trim_ascii_start();
    if head.starts_with(b"PERFILE2") {
        let convert = "perf script -i FILE | stackcollapse-perf.pl | flame render -";
        return Some(
            cannot().why("it is a perf.data file, which flame does not read yet").or_try(convert),
        );
    }
    let declares = [&b"<?xml"[..], b"<!DOCTYPE"].into_iter().any(|start| text.starts_with(start));
    // `<svg as Trait>::f` is a function.
    let is_svg = text.starts_with(b"<svg") && text.windows(5).any(|word| word == b"xmlns");
    (declares || is_svg).then(|| {
        cannot().why("it is a picture or a page already").or_try("the profile that it was made of")
    })
}

/// Whether bytes hold what text does not.
fn is_binary(head: &[u8]) -> bool {
    head.iter().any(|byte| matches!(byte, 0..=8 | 14..=26))
}

/// Whether at least one line ends with a count.
fn has_counts(head: &[u8]) -> bool {
    let mut reader = FoldedReader::new(Columns::One, SiblingOrder::Name);
    reader.read(&mut &head[..]).is_ok() && !reader.into_builder().is_empty()
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::new(format!("cannot read {}: {}", path.display(), reason(error)));
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            failure.why("its compressed data is broken or cut off")
        }
        _ => failure,
    }
}

pub(crate) fn nothing(paths: &[PathBuf], health: &Health) -> Failure {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let failure = Failure::new(format!("no stacks in {}", names.join(", ")));
    match health.skipped_lines {
        0 => failure.why("there is no line with a count above zero"),
        1 => failure.why("its only line does not end with a count"),
        lines => failure.why(format!("none of its {lines} lines ends with a count")),
    }
    .or_try("a file of lines such as main;parse;read 7, or a pprof file")
}

/// Of a profile that has none of the value that was to be shown.
pub(crate) fn nothing_in(path: &Path, profile: &Profile, value: &ValueType) -> Failure {
    let failure = Failure::new(format!("no {} in {}", value.name, path.display()));
    let types = profile.value_types().iter().enumerate();
    let others = types.filter(|(at, _)| profile.total(*at) > Weight(0)).map(|(_, value)| value);
    let others: Vec<&str> = others.map(|value| value.name.as_str()).collect();
    match &*others {
        [] => failure.why("it is a profile without samples: nothing was measured"),
        [first, ..] => failure
            .why(format!("its samples have {} only", others.join(" and ")))
            .or_try(format!("--value {first}")),
    }
}
