//! `flame render`: profiles that are there already, merged and drawn.

mod input;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use flame_formats::ReadOptions;
use flame_message::{counted, group_thousands};
use flame_profile::{Annotations, CallTree, Health, Profile};
use flame_render::recording_footer;

use crate::cli::{Cli, OutputArgs, PictureArgs, RenderArgs};
use crate::inputs::{self, say_skipped, shown_path};
use crate::message::{self, Failure, first_of, warn};
use crate::output::{Defaults, Format, Outputs, Shown, Written, write_index};
use crate::terminal::Paint;
use input::Inputs;

/// A picture on stdout, as flamegraph.pl writes it; one of characters on a terminal. What is to be
/// opened has to be a file.
fn defaults(opens: bool) -> Defaults {
    let on_terminal = std::io::stdout().is_terminal();
    Defaults::of(if on_terminal { Format::Terminal } else { Format::Svg }, opens)
}

/// Profiles that are to be read, and what is to be made of them.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) profiles: Vec<PathBuf>,
    /// What is shown in place of what the files hold.
    pub(crate) made: Option<Profile>,
    pub(crate) input: ReadOptions,
    pub(crate) output: &'a OutputArgs,
    pub(crate) picture: &'a PictureArgs,
    /// Whether frames say source lines.
    pub(crate) lines: bool,
    /// What folded text says of the kind of code, where inputs do not say it themselves; `None` = all.
    pub(crate) annotations: Option<Annotations>,
    pub(crate) defaults: Defaults,
}

/// Runs the command.
pub(crate) fn run(args: &RenderArgs, cli: &Cli) -> Result<ExitCode, Failure> {
    if let Some(folder) = &args.index {
        return index(folder, args.output.force, cli);
    }
    let profiles = inputs::files(&args.profiles, "flame render out.folded")?;
    let job = Job {
        input: inputs::options(&args.input, &profiles),
        profiles,
        made: None,
        output: &args.output,
        picture: &args.picture,
        lines: args.lines,
        annotations: None,
        defaults: defaults(args.picture.open),
    };
    show(job, cli)
}

/// Writes the page over a folder of pictures.
fn index(folder: &Path, force: bool, cli: &Cli) -> Result<ExitCode, Failure> {
    let (written, others) = write_index(folder, force)?;
    if !cli.quiet && others > 0 {
        let noun = if others == 1 { "file is" } else { "files are" };
        warn(&format!("{others} .svg {noun} no pictures of flame's"), cli.color);
    }
    say(&[written], cli);
    Ok(ExitCode::SUCCESS)
}

/// Reads profiles and writes what is asked for.
pub(crate) fn show(job: Job<'_>, cli: &Cli) -> Result<ExitCode, Failure> {
    let outputs = Outputs::prepare(job.output, job.picture, cli, job.defaults)?;
    let outputs = outputs.with_lines(job.lines);
    let tree = outputs.default_tree_options();
    let mut options = ReadOptions { tree, threads: flame_threads::count(), ..job.input };
    options.samples.keeps_times = outputs.shows_times();
    let inputs = match job.made {
        Some(profile) => Inputs::of_profile(profile, &job.profiles, &outputs)?,
        None => Inputs::read(&job.profiles, &options, &outputs)?,
    };
    let Inputs { tree, profile, health, notes, skipped, has_annotations } = inputs;
    // What an input says is kept: folded text that is folded once more stays what it is.
    let outputs = outputs.with_annotations(job.annotations.filter(|_| !has_annotations));
    outputs.check_times(profile.as_ref())?;
    say_skipped(&skipped, cli);
    if !cli.quiet {
        let notes = if profile.is_none() { &health.notes } else { &notes };
        notes.iter().for_each(|note| warn(note, cli.color));
    }
    if let Some(failure) = outputs.missing(&tree) {
        return Err(failure);
    }
    if !cli.quiet {
        outputs.idle_options(&tree).iter().for_each(|idle| warn(idle, cli.color));
    }
    let tree = outputs.shape(tree)?;
    if profile.is_none() {
        outputs.check_rounding(&tree, options.strict)?;
    }
    let names: Vec<String> = job.profiles.iter().map(|path| shown_path(path)).collect();
    let footer = match &profile {
        Some(profile) => recording_footer(profile),
        None => footer_of_text(&names, &health, &tree),
    };
    let shown = Shown { tree: &tree, profile: profile.as_ref(), title: None, footer: &footer };
    let (written, failures) = outputs.write(&shown);
    // Taking a large tree apart takes time, and the process is about to end.
    std::mem::forget(tree);
    say(&written, cli);
    let failed = first_of(failures, cli.color);
    failed.map(|()| ExitCode::SUCCESS)
}

/// What is known of folded text: where it came from, and what of it could not be read.
fn footer_of_text(names: &[String], health: &Health, tree: &CallTree) -> Vec<String> {
    let mut line = match names {
        [first, second, third, _, ..] => {
            format!("from {first}, {second}, {third} and {} others", names.len() - 3)
        }
        [name] if name == "-" => "from stdin".to_owned(),
        names => format!("from {}", names.join(", ")),
    };
    line += concat!(", flame ", env!("CARGO_PKG_VERSION"));
    let mut lines = vec![line];
    if health.skipped_lines > 0 {
        lines.push(format!("{} not readable", counted(health.skipped_lines, "line", "lines")));
    }
    let gone = |before: &[flame_profile::Before]| {
        let both = tree.nodes().iter().zip(before);
        both.filter(|(node, before)| node.total.0 == 0 && before.self_weight.0 > 0).count() as u64
    };
    match tree.before().map(gone) {
        Some(gone) if gone > 0 => {
            let gone = counted(gone, "stack is", "stacks are");
            lines.push(format!("{gone} gone: no width here; swap the counts to see it"));
        }
        _ => {}
    }
    lines.extend(health.notes.iter().cloned());
    lines
}

/// Says what was written.
pub(crate) fn say(written: &[Written], cli: &Cli) {
    let paint = Paint(cli.color.on_stderr());
    for file in written.iter().filter(|_| !cli.quiet) {
        message::say(&wrote(file, format!("{} bytes", group_thousands(file.len)), paint));
    }
}

/// The line on a file that was written.
pub(crate) fn wrote(file: &Written, size: String, paint: Paint) -> String {
    format!("wrote {} ({size})\n", paint.bold(&shown_path(&file.path)))
}
