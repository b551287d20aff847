//! Output files: found writable before the recording starts, written whole or not at all.

mod checks;
mod file;
mod filters;
mod folded;
mod foreign;
mod format;
mod idle;
mod index;
mod palette;
mod picture;
mod rounding;
mod times;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use caps::{Capability, CapsHashSet};
use flame_formats::write_pprof;
use flame_own_files::WriteWith;
use flame_profile::{Annotations, CallTree, Profile, Recursion, RootName, TreeOptions, ValueType};
use flame_render::{
    Report, SvgConfig, TextConfig, titled, write_csv, write_json, write_markdown, write_svg,
};
use flame_render::{write_terminal, write_text};
use flate2::Compression;
use flate2::write::GzEncoder;
use nix::unistd::Uid;

use crate::cli::{Cli, OutputArgs, PictureArgs};
use crate::message::{Failure, reason, warn};
use crate::privileges;
use crate::sudo::{self, own_files};
use crate::terminal::Color;
use file::Destination;
pub(crate) use flame_own_files::Written;
pub(crate) use folded::write_folded;
use foreign::refuse_foreign;
pub(crate) use format::Format;
use format::format_of;
pub(crate) use index::write_index;
use palette::PaletteFile;
use picture::Picture;

/// Where a recording goes that can be written neither where it should nor among temporary files.
const ELSEWHERE: &str = "/var/tmp";

/// What is written when nothing is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    /// The file; `-` is stdout.
    pub(crate) path: &'static str,
    /// Whether that file is left alone when it is there and flame did not write it.
    pub(crate) keeps_foreign: bool,
    /// Whether threads of a pool are one box.
    pub(crate) merges_pools: bool,
    /// Whether what is shown cannot be had again: it is saved elsewhere if its place is gone.
    pub(crate) is_recording: bool,
    /// The format of stdout.
    pub(crate) on_stdout: Format,
}

impl Defaults {
    /// One output on stdout in that format; a picture, and a file, where it is to be opened.
    pub(crate) fn of(on_stdout: Format, opens: bool) -> Defaults {
        let (path, on_stdout) = if opens { ("flame.svg", Format::Svg) } else { ("-", on_stdout) };
        Defaults { path, keeps_foreign: opens, merges_pools: true, is_recording: false, on_stdout }
    }
}

/// What is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown<'a> {
    /// The tree that outputs are made of.
    pub(crate) tree: &'a CallTree,
    /// The profile that the tree is of, where there is one.
    pub(crate) profile: Option<&'a Profile>,
    /// What stands over the picture when the user named nothing; otherwise what the profile says.
    pub(crate) title: Option<&'a str>,
    /// Lines at the foot.
    pub(crate) footer: &'a [String],
}

/// The outputs of a profile, validated.
#[derive(Debug)]
pub(crate) struct Outputs {
    files: Vec<(Destination, Format)>,
    value: Option<String>,
    tree: TreeOptions,
    annotations: Annotations,
    picture: Picture,
    color: Color,
    quiet: bool,
    is_recording: bool,
}

impl Outputs {
    /// Decides formats and checks that every output can be written.
    pub(crate) fn prepare(
        args: &OutputArgs,
        picture: &PictureArgs,
        cli: &Cli,
        defaults: Defaults,
    ) -> Result<Outputs, Failure> {
        privileges::as_user(|| Outputs::prepare_as_user(args, picture, cli, defaults))
    }

    fn prepare_as_user(
        args: &OutputArgs,
        picture: &PictureArgs,
        cli: &Cli,
        defaults: Defaults,
    ) -> Result<Outputs, Failure> {
        let (color, quiet) = (cli.color, cli.quiet);
        let warn_of = |what: &str| (!quiet).then(|| warn(what, color));
        let paths = match &*args.output {
            [] => vec![PathBuf::from(defaults.path)],
            paths => paths.to_vec(),
        };
        // Of a recording it is known when each sample was taken.
        let charts = picture.flamechart && defaults.is_recording;
        let over_time = match picture.heatmap {
            true => Some((Format::HeatMap, "--heatmap")),
            false => charts.then_some((Format::FlameChart, "--flamechart")),
        };
        let picture = PictureArgs { flamechart: picture.flamechart && !charts, ..picture.clone() };
        let mut files = Vec::new();
        for path in paths {
            let destination = Destination::prepare(&path)?;
            let format = match (format_of(&path, args.format, defaults.on_stdout)?, over_time) {
                (Format::Svg, Some((over_time, _))) => over_time,
                (format, _) => format,
            };
            if args.output.is_empty() && defaults.keeps_foreign && !args.force {
                refuse_foreign(&path)?;
            }
            files.push((destination, format));
        }
        check_pictures(&picture, over_time, &files)?;
        if let Some(asked) = args.format.filter(|_| files.iter().all(|(file, _)| file.is_ended())) {
            let asked = asked.name();
            let why = "the endings of all outputs determine theirs; -o - is stdout";
            warn_of(&format!("--format {asked} changes nothing here: {why}"));
        }
        let picture = Picture::prepare(&picture, color)?;
        for complaint in &picture.complaints {
            warn_of(complaint);
        }
        if picture.shapes() && files.iter().any(|(_, format)| format.shows_times()) {
            warn_of("pictures over time show all stacks, whatever is left out of other outputs");
        }
        let mut tree = TreeOptions { order: picture.order(), ..TreeOptions::default() };
        if defaults.merges_pools {
            tree.root.by = RootName::Pool;
        }
        tree.root.process = args.threads;
        tree.root.pid = args.root_pid || args.root_tid;
        tree.root.tid = args.root_tid;
        if let Some(by) = args.by {
            by.set(&mut tree.root);
        }
        if args.collapse_recursion {
            tree.recursion = Recursion::Collapse;
        }
        let annotations = if args.no_annotate { Annotations::Omit } else { Annotations::Write };
        let (value, is_recording) = (args.value.clone(), defaults.is_recording);
        Ok(Outputs { files, value, tree, annotations, picture, color, quiet, is_recording })
    }

    /// Whether an output goes to stdout.
    pub(crate) fn uses_stdout(&self) -> bool {
        self.files.iter().any(|(file, _)| matches!(file, Destination::Stdout))
    }

    /// The capabilities without which root cannot write the files. Everybody else writes what they
    /// may without any.
    pub(crate) fn needed_capabilities(&self) -> CapsHashSet {
        if !Uid::effective().is_root() {
            return CapsHashSet::new();
        }
        let files = self.files.iter().flat_map(|(file, _)| file.needed_capabilities());
        let opens = self.picture.args.open && sudo::invoking_user().is_some();
        let caller = [Capability::CAP_SETUID, Capability::CAP_SETGID];
        let colours = self.picture.palette.as_ref().map(PaletteFile::needed_capabilities);
        let caller = caller.into_iter().filter(|_| opens);
        files.chain(caller).chain(colours.unwrap_or_default()).collect()
    }

    /// With source lines in the frames of trees.
    pub(crate) fn with_lines(mut self, lines: bool) -> Outputs {
        self.tree.lines = lines;
        self
    }

    /// With these annotations in folded text, unless it is to have none.
    pub(crate) fn with_annotations(mut self, annotations: Option<Annotations>) -> Outputs {
        if self.annotations == Annotations::Write {
            self.annotations = annotations.unwrap_or_default();
        }
        self
    }

    /// The position of the value that is shown.
    pub(crate) fn shown_value(&self, profile: &Profile) -> usize {
        let asked = self.value.as_ref().and_then(|value| profile.value_named(value));
        asked.unwrap_or(profile.default_value)
    }

    /// The position of the value that is asked for.
    pub(crate) fn value_among(&self, values: &[ValueType]) -> Option<usize> {
        let value = self.value.as_deref()?;
        values.iter().position(|of| of.name == value)
    }

    /// How trees are made of a profile.
    pub(crate) fn tree_options(&self, profile: &Profile) -> TreeOptions {
        let named = self.value.as_deref().and_then(|value| profile.value_named(value));
        TreeOptions { value: named, ..self.tree }
    }

    /// How trees are made of what is not a profile.
    pub(crate) fn default_tree_options(&self) -> TreeOptions {
        self.tree
    }

    /// The call tree that the outputs show of a recording, which cannot be had again: where it
    /// does not hold what was asked for, it is shown whole, and that is said.
    pub(crate) fn tree(&self, profile: &Profile) -> (CallTree, Option<Failure>) {
        let whole = || CallTree::from_profile(profile, &self.tree_options(profile));
        let tree = whole();
        if !self.picture.shapes() {
            return (tree, None);
        }
        let missing = self.missing(&tree);
        let shaped = missing.map_or_else(|| self.shape(tree), Err);
        match shaped {
            Ok(tree) => (tree, None),
            Err(failure) => (whole(), Some(failure.or_why("it cannot be had again"))),
        }
    }

    /// A failure to show a recording as asked for, with what shows it whole.
    pub(crate) fn shown_whole(&self, failure: Failure, are_written: bool) -> Failure {
        let shown_in = self.files.iter().map(|(file, _)| file).filter(|_| are_written);
        failure.but(&file::show_whole(shown_in))
    }

    /// What a tree is asked for and does not have: the functions of `--base` and `--callers`.
    pub(crate) fn missing(&self, tree: &CallTree) -> Option<Failure> {
        self.picture.missing(tree)
    }

    /// A tree as the picture options want it: cut, turned, scaled.
    pub(crate) fn shape(&self, tree: CallTree) -> Result<CallTree, Failure> {
        let (tree, complaints) = self.picture.shape(tree)?;
        complaints.iter().filter(|_| !self.quiet).for_each(|it| warn(it, self.color));
        Ok(tree)
    }

    /// The formats of all outputs.
    pub(crate) fn formats(&self) -> impl Iterator<Item = Format> {
        self.files.iter().map(|(_, format)| *format)
    }

    /// How SVGs look; `title` is what is known where the user named nothing.
    pub(crate) fn svg_config(&self, title: Option<&str>, footer: &[String]) -> SvgConfig {
        self.picture.svg(title, footer, None)
    }

    /// Whether folded text says which code is the kernel's and so on.
    pub(crate) fn annotations(&self) -> Annotations {
        self.annotations
    }

    /// Writes all outputs; a failure of one does not keep the others from being written.
    pub(crate) fn write(&self, shown: &Shown<'_>) -> (Vec<Written>, Vec<Failure>) {
        let (written, mut failures) =
            self.write_with(&|format, out| self.write_one(shown, format, out));
        failures.extend(self.keep_colours(shown.tree));
        (written, failures)
    }

    /// Adds the colours of a tree's names to the file of `--cp`, if there is one.
    pub(crate) fn keep_colours(&self, tree: &CallTree) -> Option<Failure> {
        self.picture.keep_colours(tree).err()
    }

    /// Writes all outputs, each as `write` does in its format.
    pub(crate) fn write_with(&self, write: WriteFormat<'_>) -> (Vec<Written>, Vec<Failure>) {
        privileges::raise_kept();
        let mut written = Vec::new();
        let mut failures = Vec::new();
        for (destination, format) in &self.files {
            let mut write_it = |out: &mut dyn Write| match destination.is_compressed_picture() {
                true => compressed(*format, write, out),
                false => write(*format, out),
            };
            match destination.write(&mut write_it) {
                Ok(file) => {
                    let opens = self.picture.args.open && is_svg_file(destination, *format);
                    if let Some(file) = file.as_ref().filter(|_| opens) {
                        failures.extend(picture::open_in_browser(&file.path).err());
                    }
                    written.extend(file);
                }
                Err(error) => {
                    let saved = self.save_elsewhere(destination, &mut write_it);
                    failures.push(cannot_write(destination, &error, saved.as_ref()));
                    written.extend(saved);
                }
            }
        }
        (written, failures)
    }

    /// Saves what cannot be had again where it can be written.
    fn save_elsewhere(&self, lost: &Destination, write: WriteWith<'_>) -> Option<Written> {
        match lost {
            Destination::File(path) if self.is_recording => {
                let folders = [std::env::temp_dir(), PathBuf::from(ELSEWHERE)];
                own_files().save_in(&folders, path, write).ok()
            }
            _ => None,
        }
    }

    /// Writes what is shown in one format.
    pub(crate) fn write_one(
        &self,
        shown: &Shown<'_>,
        format: Format,
        mut out: &mut dyn Write,
    ) -> io::Result<()> {
        let target = shown.profile.and_then(|profile| profile.meta.target.as_deref());
        let value = shown.tree.value_type();
        let title = shown.title.or(target).map(|title| titled(title, value));
        let title = title.as_deref();
        match format {
            Format::Svg => {
                let config = self.picture.svg(title, shown.footer, Some(value));
                write_svg(shown.tree, &config, &mut out)
            }
            Format::Folded => write_folded(shown.tree, self.annotations, out),
            Format::Text => write_text(shown.tree, &self.text_config(title, shown), &mut out),
            Format::Pprof => match shown.profile {
                Some(profile) => write_pprof(profile, &mut out),
                None => write_pprof(&shown.tree.to_profile(), &mut out),
            },
            // The table of functions, which is text on a terminal as elsewhere.
            Format::Terminal if self.picture.args.flat => {
                write_text(shown.tree, &self.text_config(title, shown), &mut out)
            }
            Format::Terminal => {
                let config = self.picture.terminal(title, self.color, value);
                write_terminal(shown.tree, &config, &mut out)
            }
            Format::Json => write_json(shown.tree, &mut out),
            Format::Csv => write_csv(shown.tree, &mut out),
            Format::HeatMap | Format::FlameChart => self.write_times(shown, title, format, out),
            Format::Markdown => {
                let config = self.text_config(title, shown);
                write_markdown(shown.tree, &config, &mut out)
            }
        }
    }

    fn text_config(&self, title: Option<&str>, shown: &Shown<'_>) -> TextConfig {
        let args = &self.picture.args;
        let title = args.title.as_deref().or(title).map(str::to_owned);
        let footer = if args.no_metadata { &[] } else { shown.footer };
        let two =
            "it has two counts per stack, and this is the second: flame diff shows the change";
        let two = shown.tree.before().map(|_| two.to_owned());
        let header = title.into_iter().chain(footer.iter().cloned()).chain(two).collect();
        let default = TextConfig::default();
        let min_share = args.min_share.unwrap_or(default.min_share);
        let report = if args.flat { Report::Flat } else { Report::Full };
        TextConfig { header, min_share, report, count_name: args.countname.clone(), ..default }
    }
}

/// An output of bytes that are not a profile.
#[derive(Debug)]
pub(crate) struct RawOutput(Destination);

impl RawOutput {
    /// Checks that it can be written.
    pub(crate) fn prepare(path: &Path) -> Result<RawOutput, Failure> {
        Destination::prepare(path).map(RawOutput)
    }

    /// Writes it; `None` for what is not a file.
    pub(crate) fn write(&self, write: WriteWith<'_>) -> Result<Option<Written>, Failure> {
        self.0.write(write).map_err(|error| cannot_write(&self.0, &error, None))
    }
}

/// What asks for a picture needs one among the outputs.
fn check_pictures(
    picture: &PictureArgs,
    over_time: Option<(Format, &str)>,
    files: &[(Destination, Format)],
) -> Result<(), Failure> {
    if picture.open && !files.iter().any(|(file, format)| is_svg_file(file, *format)) {
        return Err(Failure::usage("there is no picture to open")
            .why("--open shows an SVG, and no output is a file of that format")
            .or_try("-o flame.svg"));
    }
    let missing = |of: Format| files.iter().all(|(_, format)| *format != of);
    if let Some((_, option)) = over_time.filter(|(of, _)| missing(*of)) {
        return Err(Failure::usage(format!("{option} is for pictures, and none is written"))
            .or_try("-o NAME.svg"));
    }
    if picture.around.is_some() && files.iter().all(|(_, format)| *format != Format::Svg) {
        return Err(Failure::usage("--around is for pictures, and none is written")
            .or_try("--callers or --base in other formats"));
    }
    Ok(())
}

/// Whether a browser shows it from the disk.
fn is_svg_file(destination: &Destination, format: Format) -> bool {
    let is_file = matches!(destination, Destination::File(_));
    format.is_picture() && is_file && !destination.is_compressed_picture()
}

fn compressed(format: Format, write: WriteFormat<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut out = GzEncoder::new(out, Compression::default());
    write(format, &mut out)?;
    out.finish().map(drop)
}

fn cannot_write(destination: &Destination, error: &io::Error, saved: Option<&Written>) -> Failure {
    let mut failure =
        Failure::new(format!("cannot write {}: {}", destination.name(), reason(error)));
    let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    // Elsewhere a part is written by then.
    let is_file = matches!(destination, Destination::File(_));
    let old = "what was there before is still there";
    if let Some(saved) = saved {
        let saved = saved.path.display();
        let old = if is_full { format!("{old}; ") } else { String::new() };
        failure = failure.why(format!("{old}what was recorded is in {saved} instead"));
    } else if is_full && is_file {
        failure = failure.why(format!("{old}; nothing was written"));
    }
    if is_full { failure.or_try("df -h, to find another place") } else { failure }
}

/// What writes any format.
pub(crate) type WriteFormat<'a> = &'a dyn Fn(Format, &mut dyn Write) -> io::Result<()>;
