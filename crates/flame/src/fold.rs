//! `flame fold`: the output of any profiler as folded stacks, or as what is asked for.

use std::path::PathBuf;
use std::process::ExitCode;

use flame_formats::{DiskUsage, MAX_DEPTH, ReadOptions, disk_usage};
use flame_profile::Profile;

use crate::cli::{Cli, FoldArgs};
use crate::inputs;
use crate::inputs::shown_path;
use crate::message::{Failure, print_result, reason};
use crate::output::{Defaults, Format};
use crate::render::{Job, show};

/// Runs the command.
pub(crate) fn run(args: &FoldArgs, cli: &Cli) -> Result<ExitCode, Failure> {
    if args.list_formats {
        return print_result(&inputs::list_of_formats());
    }
    let defaults = Defaults { merges_pools: false, ..Defaults::of(Format::Folded, false) };
    let (profiles, made) = match args.files {
        true => (args.profiles.clone(), Some(usage_of(&args.profiles)?)),
        false => (inputs::files(&args.profiles, "perf script | flame fold")?, None),
    };
    let input = inputs::options(&args.input, &profiles);
    let job = Job {
        profiles,
        made,
        input: ReadOptions { samples: args.samples.options(), ..input },
        output: &args.output,
        picture: &args.picture,
        lines: false,
        annotations: Some(args.samples.annotations()),
        defaults,
    };
    show(job, cli)
}

/// What folders take on the disk, with notes on what of them is not in it.
fn usage_of(folders: &[PathBuf]) -> Result<Profile, Failure> {
    if folders.is_empty() {
        return Err(Failure::usage("no folder to look into").or_try("flame fold --files /var"));
    }
    let found = disk_usage(folders).map_err(|error| {
        let folder = shown_path(&error.folder);
        Failure::new(format!("cannot read {folder}: {}", reason(&error.source)))
    })?;
    let DiskUsage { mut profile, unreadable, unreadable_count, others, too_deep, again } = found;
    let notes = &mut profile.health.notes;
    if unreadable_count > 0 {
        let named = unreadable.iter().map(|(path, error)| format!("{path} ({})", reason(error)));
        let named = named.collect::<Vec<String>>().join(", ");
        notes.push(format!("cannot be read: {unreadable_count}: {named}"));
    }
    if let Some(first) = others.first() {
        let count = others.len();
        notes.push(format!("other file systems left out: {count}, {first} among them"));
    }
    if too_deep > 0 {
        notes.push(format!("folders within more than {MAX_DEPTH}: {too_deep}"));
    }
    if again > 0 {
        notes.push(format!("further names of files that were already counted: {again}"));
    }
    Ok(profile)
}
