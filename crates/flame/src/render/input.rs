//! Profiles from files, recognised by what is in them, merged into one call tree.

use std::path::{Path, PathBuf};

use flame_formats::{InputContent, Merge, MergeError, ReadInput, ReadOptions};
use flame_profile::{CallTree, Health, Profile, TreeOptions, ValueType};

use crate::inputs::{SkippedOf, notes_of_unread, nothing, nothing_in, read, read_among, too_large};
use crate::message::Failure;
use crate::output::{Format, Outputs};

/// Everything that was read.
#[derive(Debug)]
pub(super) struct Inputs {
    pub(super) tree: CallTree,
    /// The profile, where it was one and nothing else.
    pub(super) profile: Option<Profile>,
    pub(super) health: Health,
    /// What is to be said of how they were read, besides what the profile says.
    pub(super) notes: Vec<String>,
    /// The inputs with lines that could not be read.
    pub(super) skipped: Vec<SkippedOf>,
    /// Whether names of an input say themselves which code is the kernel's.
    pub(super) has_annotations: bool,
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
        let mut merge = Merge::in_order(order);
        let (mut health, mut skipped_of) = (Health::default(), Vec::new());
        let (mut only, mut said) = (None, Vec::new());
        let (mut has_annotations, mut unread) = (false, Vec::new());
        for path in paths {
            let read = if alone { Ok(read(path, options)?) } else { read_among(path, options)? };
            let ReadInput { format, content, skipped, notes } = match read {
                Ok(read) => read,
                Err(failure) => {
                    unread.push(failure);
                    continue;
                }
            };
            has_annotations |= format.has_annotations();
            said.extend(notes.iter().cloned());
            health.notes.extend(notes);
            health.skipped_lines += skipped.count();
            if skipped.count() > 0 {
                skipped_of.push(SkippedOf { path: path.clone(), skipped });
            }
            let content = match content {
                InputContent::Folded(parts, _) if alone => {
                    outputs.check_folded(path)?;
                    let tree = parts.finish(ValueType::samples(), order);
                    let (notes, skipped) = (said, skipped_of);
                    return Inputs { tree, profile: None, health, notes, skipped, has_annotations }
                        .unless_empty(paths);
                }
                content => content,
            };
            let is_pprof = alone && outputs.formats().any(|format| format == Format::Pprof);
            let made = match &content {
                InputContent::Stacks(stacks) if is_pprof => Some(stacks.to_profile()),
                _ => None,
            };
            let read = add(&mut merge, (path, content), outputs, &mut health)?;
            only = read.or(made).filter(|_| alone);
        }
        if unread.len() == paths.len() && !unread.is_empty() {
            return Err(unread.swap_remove(0));
        }
        health.notes.extend(notes_of_unread(&unread));
        let tree = merge.finish(order);
        let (notes, skipped) = (said, skipped_of);
        Inputs { tree, profile: only, health, notes, skipped, has_annotations }.unless_empty(paths)
    }

    /// Of a profile that was not a file.
    pub(super) fn of_profile(
        profile: Profile,
        paths: &[PathBuf],
        outputs: &Outputs,
    ) -> Result<Inputs, Failure> {
        outputs.check_sums("files")?;
        check_value(outputs, profile.value_types())?;
        let tree = CallTree::from_profile(&profile, &outputs.tree_options(&profile));
        let (health, notes) = (profile.health.clone(), profile.health.notes.clone());
        let (profile, skipped) = (Some(profile), Vec::new());
        Inputs { tree, profile, health, notes, skipped, has_annotations: false }.unless_empty(paths)
    }

    fn unless_empty(self, paths: &[PathBuf]) -> Result<Inputs, Failure> {
        match (self.tree.nodes(), &self.profile) {
            ([_root], Some(profile)) => {
                Err(nothing_in(&paths[0], profile, self.tree.value_type(), &self.notes))
            }
            ([_root], None) => {
                let first = self.skipped.iter().flat_map(|of| of.skipped.first()).next();
                Err(nothing(paths, &self.health, first))
            }
            _ if self.tree.is_too_large() => Err(too_large(paths)),
            _ => Ok(self),
        }
    }
}

/// Adds what a file holds to what others hold; handed back is the profile that it is, if it is one.
fn add(
    merge: &mut Merge,
    (path, content): (&Path, InputContent),
    outputs: &Outputs,
    health: &mut Health,
) -> Result<Option<Profile>, Failure> {
    let (added, profile) = match content {
        InputContent::Folded(parts, columns) => {
            outputs.check_folded(path)?;
            (merge.add_folded(*parts, columns), None)
        }
        InputContent::Profile(profile) => {
            outputs.check_sums(&path.display().to_string())?;
            check_value(outputs, profile.value_types())?;
            health.notes.extend(profile.health.notes.iter().cloned());
            let added = merge.add_profile(&profile, &outputs.tree_options(&profile));
            (added, Some(*profile))
        }
        InputContent::Stacks(stacks) => {
            outputs.check_stacks(path)?;
            check_value(outputs, stacks.value_types())?;
            let value = Some(outputs.value_among(stacks.value_types()).unwrap_or(0));
            let options = TreeOptions { value, ..outputs.default_tree_options() };
            (merge.add_stacks(&stacks, &options), None)
        }
    };
    added.map_err(|error| refused(path, &error))?;
    Ok(profile)
}

/// Whether the value that is asked for is there.
fn check_value(outputs: &Outputs, types: &[ValueType]) -> Result<(), Failure> {
    outputs.check_value(&types.iter().map(|value| value.name.clone()).collect::<Vec<_>>())
}

/// Weights of two kinds have no sum.
fn refused(path: &Path, error: &MergeError) -> Failure {
    let what = format!("cannot merge {} with the others", path.display());
    let failure = Failure::new(what).why(error.to_string());
    match error {
        MergeError::Values { .. } => failure.or_try("--value samples, if all have it"),
        _ => failure,
    }
}
