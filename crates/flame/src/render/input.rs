//! Profiles from files, recognised by what is in them, merged into one call tree.

use std::path::{Path, PathBuf};

use flame_formats::{InputContent, ReadInput, ReadOptions, Stacks};
use flame_profile::{
    CallTree, Columns, FoldedParts, Health, Profile, TreeBuilder, TreeOptions, ValueType,
};

use crate::inputs::{SkippedOf, nothing, nothing_in, read, too_large};
use crate::message::Failure;
use crate::output::{Format, Outputs};

/// Everything that was read.
#[derive(Debug)]
pub(super) struct Inputs {
    pub(super) tree: CallTree,
    /// The profile, where it was one and nothing else.
    pub(super) profile: Option<Profile>,
    pub(super) health: Health,
    /// The inputs with lines that could not be read.
    pub(super) skipped: Vec<SkippedOf>,
}

impl Inputs {
    /// Reads the files in their order.
    pub(super) fn read(
        paths: &[PathBuf],
        options: &ReadOptions,
        outputs: &Outputs,
    ) -> Result<Inputs, Failure> {
        let order = options.tree.order;
        let alone = paths.len() == 1;
        let mut merge = Merge::default();
        let mut only = None;
        for path in paths {
            let ReadInput { content, skipped, notes, .. } = read(path, options)?;
            merge.health.notes.extend(notes);
            merge.health.skipped_lines += skipped.count();
            if skipped.count() > 0 {
                merge.skipped.push(SkippedOf { path: path.clone(), skipped });
            }
            match content {
                InputContent::Folded(parts, _) if alone => {
                    outputs.check_folded(path)?;
                    let tree = parts.finish(ValueType::samples(), order);
                    let Merge { health, skipped, .. } = merge;
                    return Inputs { tree, profile: None, health, skipped }.unless_empty(paths);
                }
                InputContent::Folded(parts, columns) => {
                    outputs.check_folded(path)?;
                    merge.add_folded(path, *parts, columns)?;
                }
                InputContent::Profile(profile) => {
                    merge.add_profile(path, &profile, outputs)?;
                    only = Some(*profile).filter(|_| alone);
                }
                InputContent::Stacks(stacks) => {
                    merge.add_stacks(path, &stacks, outputs)?;
                    let is_pprof = outputs.formats().any(|format| format == Format::Pprof);
                    only = (alone && is_pprof).then(|| stacks.to_profile());
                }
            }
        }
        let value = merge.value.unwrap_or_else(ValueType::samples);
        let tree = merge.builder.finish(value, order);
        let Merge { health, skipped, .. } = merge;
        Inputs { tree, profile: only, health, skipped }.unless_empty(paths)
    }

    fn unless_empty(self, paths: &[PathBuf]) -> Result<Inputs, Failure> {
        match (self.tree.nodes(), &self.profile) {
            ([_root], Some(profile)) => Err(nothing_in(&paths[0], profile, self.tree.value_type())),
            ([_root], None) => Err(nothing(paths, &self.health)),
            _ if self.tree.is_too_large() => Err(too_large(paths)),
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
    skipped: Vec<SkippedOf>,
}

impl Merge {
    fn add_folded(
        &mut self,
        path: &Path,
        parts: FoldedParts,
        columns: Columns,
    ) -> Result<(), Failure> {
        self.check(path, columns, ValueType::samples())?;
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

    fn add_stacks(
        &mut self,
        path: &Path,
        stacks: &Stacks,
        outputs: &Outputs,
    ) -> Result<(), Failure> {
        outputs.check_stacks(path)?;
        let types = stacks.value_types();
        let names: Vec<String> = types.iter().map(|value| value.name.clone()).collect();
        outputs.check_value(&names)?;
        let value = outputs.value_among(types).unwrap_or(0);
        self.check(path, Columns::One, types[value].clone())?;
        let options = TreeOptions { value: Some(value), ..outputs.default_tree_options() };
        self.append(stacks.to_builder(&options));
        Ok(())
    }

    /// The first tree is taken as it is, which is all there is most of the time.
    fn append(&mut self, builder: TreeBuilder) {
        if self.builder.is_empty() {
            self.builder = builder;
        } else {
            self.builder.append(builder);
            if self.builder.is_crowded() {
                self.builder.compact();
            }
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
