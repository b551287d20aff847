//! Output files: found writable before the recording starts, written whole or not at all.

mod file;

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use caps::CapsHashSet;
use flame_formats::write_pprof;
use flame_profile::{Annotations, CallTree, Profile, Recursion, TreeOptions, write_folded};
use flame_render::{SvgConfig, TextConfig, write_svg, write_text};

use crate::cli::{OutputArgs, SymbolArgs};
use crate::message::{Failure, reason};
use crate::privileges;
use file::Destination;
pub(crate) use file::Written;

/// What is written when nothing is asked for.
const DEFAULT_OUTPUT: &str = "flame.svg";

/// How an output is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// The picture.
    Svg,
    /// `comm;outermost;...;leaf WEIGHT` lines.
    Folded,
    /// A report to read.
    Text,
    /// pprof, the profile with everything in it.
    Pprof,
}

impl Format {
    /// All formats, in the order of the help.
    pub(crate) const ALL: [Format; 4] = [Format::Svg, Format::Folded, Format::Text, Format::Pprof];

    /// The name as `--format` takes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Format::Svg => "svg",
            Format::Folded => "folded",
            Format::Text => "txt",
            Format::Pprof => "pprof",
        }
    }

    /// The format that the ending of a file's name chooses.
    fn of_ending(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_string_lossy().to_lowercase();
        let endings: [(&str, Format); 6] = [
            (".svg", Format::Svg),
            (".folded", Format::Folded),
            (".collapsed", Format::Folded),
            (".txt", Format::Text),
            (".pb.gz", Format::Pprof),
            (".pprof", Format::Pprof),
        ];
        endings.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| *format)
    }
}

/// The outputs of a recording, validated.
#[derive(Debug)]
pub(crate) struct Outputs {
    files: Vec<(Destination, Format)>,
    options: Options,
}

#[derive(Debug)]
struct Options {
    title: Option<String>,
    value: Option<String>,
    tree: TreeOptions,
    annotations: Annotations,
}

impl Outputs {
    /// Decides formats and checks that every output can be written.
    pub(crate) fn prepare(args: &OutputArgs, symbols: &SymbolArgs) -> Result<Outputs, Failure> {
        let paths = match &*args.output {
            [] => vec![PathBuf::from(DEFAULT_OUTPUT)],
            paths => paths.to_vec(),
        };
        let mut files = Vec::new();
        for path in paths {
            let format = format_of(&path, args.format)?;
            let destination = Destination::prepare(&path)?;
            if args.output.is_empty() && !args.force {
                refuse_foreign(&path)?;
            }
            files.push((destination, format));
        }
        let mut tree = TreeOptions::default();
        tree.root.process = args.threads;
        tree.root.pid = args.root_pid || args.root_tid;
        tree.root.tid = args.root_tid;
        if args.collapse_recursion {
            tree.recursion = Recursion::Collapse;
        }
        tree.lines = symbols.lines;
        let annotations = if args.no_annotate { Annotations::Omit } else { Annotations::Write };
        let (title, value) = (args.title.clone(), args.value.clone());
        Ok(Outputs { files, options: Options { title, value, tree, annotations } })
    }

    /// The capabilities without which the files cannot be written, as far as flame has them.
    pub(crate) fn needed_capabilities(&self) -> CapsHashSet {
        self.files.iter().flat_map(|(destination, _)| destination.needed_capabilities()).collect()
    }

    /// Whether the value asked for is one that a recording of those value names has.
    pub(crate) fn check_value(&self, names: &[String]) -> Result<(), Failure> {
        match &self.options.value {
            Some(value) if !names.contains(value) => Err(Failure::usage(format!(
                "no value {value} in this recording: it has {}",
                names.join(" and ")
            ))),
            _ => Ok(()),
        }
    }

    /// The call tree that the outputs show.
    pub(crate) fn tree(&self, profile: &Profile) -> CallTree {
        let named = self.options.value.as_deref().and_then(|value| profile.value_named(value));
        CallTree::from_profile(profile, &TreeOptions { value: named, ..self.options.tree })
    }

    /// Writes all outputs; a failure of one does not keep the others from being written.
    pub(crate) fn write(
        &self,
        profile: &Profile,
        tree: &CallTree,
        footer: &[String],
    ) -> (Vec<Written>, Vec<Failure>) {
        privileges::raise_kept();
        let mut written = Vec::new();
        let mut failures = Vec::new();
        for (destination, format) in &self.files {
            let result = destination.write(&mut |mut out| match format {
                Format::Svg => write_svg(tree, &self.svg_config(profile, footer), &mut out),
                Format::Folded => write_folded(tree, self.options.annotations, &mut out),
                Format::Text => write_text(tree, &self.text_config(profile, footer), &mut out),
                Format::Pprof => write_pprof(profile, &mut out),
            });
            match result {
                Ok(file) => written.extend(file),
                Err(error) => failures.push(cannot_write(destination, &error)),
            }
        }
        (written, failures)
    }

    fn title(&self, profile: &Profile) -> Option<String> {
        self.options.title.clone().or_else(|| profile.meta.target.clone())
    }

    fn svg_config(&self, profile: &Profile, footer: &[String]) -> SvgConfig {
        let default = SvgConfig::default();
        let title = self.title(profile).unwrap_or_else(|| default.title.clone());
        SvgConfig { title, footer: footer.to_vec(), ..default }
    }

    fn text_config(&self, profile: &Profile, footer: &[String]) -> TextConfig {
        let header = self.title(profile).into_iter().chain(footer.iter().cloned()).collect();
        TextConfig { header, ..TextConfig::default() }
    }
}

fn format_of(path: &Path, asked: Option<Format>) -> Result<Format, Failure> {
    let default = (path == Path::new("-")).then_some(Format::Folded);
    let format = Format::of_ending(path).or(asked).or(default);
    format.ok_or_else(|| {
        Failure::usage(format!("cannot tell the format of {} from its ending", path.display()))
            .why("flame writes .svg, .folded, .txt and .pb.gz")
            .or_try("--format svg, or another ending")
    })
}

/// What every SVG of flame has near its start, and no other tool's.
const SVG_MARK: &[u8] = br#"class="flame-graph""#;

fn is_flame_svg(bytes: &[u8]) -> bool {
    let start = bytes.get(..1000).unwrap_or(bytes);
    start.windows(SVG_MARK.len()).any(|window| window == SVG_MARK)
}

/// Whether there is something that flame did not write: another file, a link, a FIFO. Not followed,
/// not waited for, and no more of it is read than is needed.
fn is_foreign(path: &Path) -> bool {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) => return error.raw_os_error() == Some(nix::libc::ELOOP),
    };
    if !file.metadata().is_ok_and(|status| status.is_file()) {
        return true;
    }
    let mut start = Vec::new();
    // What cannot be read is not known to be flame's.
    let read = file.take(1000).read_to_end(&mut start);
    read.is_err() || (!start.is_empty() && !is_flame_svg(&start))
}

/// The default name may well be somebody's own picture.
fn refuse_foreign(path: &Path) -> Result<(), Failure> {
    if !is_foreign(path) {
        return Ok(());
    }
    Err(Failure::new(format!("cannot write {}: it exists already", path.display()))
        .why("flame did not write it, and does not overwrite such a file unasked")
        .or_try(format!("-o OTHER.svg, or --force to replace {}", path.display())))
}

fn cannot_write(destination: &Destination, error: &io::Error) -> Failure {
    let failure = Failure::new(format!("cannot write {}: {}", destination.name(), reason(error)));
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => failure
            .why("what was there before is still there; nothing was written")
            .or_try("df -h, to find another place"),
        _ => failure,
    }
}

/// What an output writes itself with.
type WriteWith<'a> = &'a mut dyn FnMut(&mut dyn Write) -> io::Result<()>;
