//! The inputs of the commands that read profiles: which they are, and what is said when one cannot
//! be read.

use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use flame_formats::{
    FORMATS, Names, NamesOf, PprofError, ReadError, ReadInput, ReadOptions, Skipped, SkippedPart,
    Source, files_in, read_input,
};
use flame_message::{clean_name, counted};
use flame_own_files::is_refused;
use flame_profile::{Health, NO_COUNT, Profile, ValueType, Weight};
use flame_recorder::LiveFiles;
use nix::sys::stat::{SFlag, fstat};

use crate::cli::{Cli, InputArgs};
use crate::message::{Failure, reason, warn_with};
use crate::sudo::own_files;
use crate::{privileges, symbols};

/// An input with lines that could not be read.
#[derive(Debug)]
pub(crate) struct SkippedOf {
    pub(crate) path: PathBuf,
    pub(crate) skipped: Skipped,
}

/// The files that are meant: those of folders, and stdin where nothing is named and something is
/// piped in.
pub(crate) fn files(paths: &[PathBuf], usage: &str) -> Result<Vec<PathBuf>, Failure> {
    if paths.is_empty() {
        return match is_piped() {
            true => Ok(vec![PathBuf::from("-")]),
            false => {
                Err(Failure::usage("no file was given, and nothing is piped in").or_try(usage))
            }
        };
    }
    if paths.iter().filter(|path| *path == Path::new("-")).count() > 1 {
        return Err(Failure::usage("stdin can be read only once"));
    }
    let mut files = Vec::new();
    for path in paths {
        let path = &there(path)?;
        match path.is_dir() {
            true => {
                files.extend(files_in(path).map_err(|(path, error)| unreadable(&path, &error))?)
            }
            false => files.push(path.clone()),
        }
    }
    if files.is_empty() {
        let folders: Vec<String> = paths.iter().map(|path| shown_path(path)).collect();
        return Err(Failure::new(format!("no files in {}", folders.join(", "))));
    }
    Ok(files)
}

/// A file or folder that was named: not a link that leads nowhere, and nothing that root is led to or kept
/// waiting with by strangers.
pub(crate) fn there(path: &Path) -> Result<PathBuf, Failure> {
    if path != Path::new("-")
        && let Err(error) = own_files().check_input(path)
        && is_refused(&error)
    {
        return Err(unreadable(path, &error));
    }
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_symlink() => {
            Err(unreadable(path, &error))
        }
        _ => Ok(path.to_owned()),
    }
}

/// Whether stdin is a pipe, a socket or a file: what a script without a terminal has is none.
pub(crate) fn is_piped() -> bool {
    let stdin = io::stdin();
    let kind = fstat(stdin.as_fd()).map(|status| SFlag::from_bits_truncate(status.st_mode));
    let is = |kind: SFlag, expect: SFlag| kind & SFlag::S_IFMT == expect;
    !stdin.is_terminal()
        && kind.is_ok_and(|kind| {
            is(kind, SFlag::S_IFIFO) || is(kind, SFlag::S_IFREG) || is(kind, SFlag::S_IFSOCK)
        })
}

/// How inputs at these paths are read as the arguments want it.
pub(crate) fn options(args: &InputArgs, paths: &[impl AsRef<Path>]) -> ReadOptions {
    let of = args.clone();
    // perf.data names files, which others have made: a process opens them that is started while there
    // is one thread.
    let hooks = privileges::hooks(None);
    let needs_files = paths.iter().any(|path| !is_text(path.as_ref()));
    let files = if needs_files { LiveFiles::start(hooks) } else { LiveFiles::default() };
    let names = NamesOf::new(move || Names {
        files: files.clone(),
        debug_places: symbols::debug_places(&of.debug_dirs),
        symbols: symbols::config(of.no_inline),
        sysroot: of.sysroot.as_ref().map(symbols::absolute),
    });
    ReadOptions { format: args.from, strict: args.strict, names, ..ReadOptions::default() }
}

/// Whether a file is text, which perf.data is not, packed or plain.
fn is_text(path: &Path) -> bool {
    const PERF_DATA: [&[u8; 8]; 2] = [b"PERFILE2", b"2ELIFREP"];
    let mut start = [0; 8];
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    let mut read = || own_files().open_input(path)?.read_exact(&mut start);
    is_file
        && read().is_ok()
        && start.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
        && !PERF_DATA.contains(&&start)
}

/// Opens an input, `-` for stdin, unless root is led astray on the way.
fn open(path: &Path) -> io::Result<Source> {
    match path == Path::new("-") {
        true => Source::open(path),
        false => Source::of_file(own_files().open_input(path)?, path),
    }
}

/// Reads an input.
pub(crate) fn read(path: &Path, options: &ReadOptions) -> Result<ReadInput, Failure> {
    let source = open(path).map_err(|error| unreadable(path, &error))?;
    read_input(source, options).map_err(|error| failure(path, &error))
}

/// Reads one of several inputs: the inner failure is of one that the others are shown without. What is asked
/// for and not there, as a file that was named, is missing whatever the others have.
pub(crate) fn read_among(
    path: &Path,
    options: &ReadOptions,
) -> Result<Result<ReadInput, Failure>, Failure> {
    let left_out = |failure: Failure| match options.strict {
        true => Err(failure.or_why("--strict makes it an error")),
        false => Ok(Err(failure)),
    };
    // A link that leads nowhere is there: in a folder, since none that is named comes here.
    let is_missing =
        |error: &io::Error| error.kind() == io::ErrorKind::NotFound && !path.is_symlink();
    let source = open(path);
    if source.as_ref().is_ok_and(|source| source.has_nothing().is_ok_and(|nothing| nothing)) {
        return left_out(Failure::new(format!("cannot read {}: it is empty", shown_path(path))));
    }
    match source.map_err(ReadError::Io).and_then(|source| read_input(source, options)) {
        Ok(read) => Ok(Ok(read)),
        Err(error) => {
            let failure = failure(path, &error);
            match error {
                ReadError::NotSaid { .. } | ReadError::NoSuchEvent(_) => Err(failure),
                ReadError::Io(error) if is_missing(&error) => Err(failure),
                _ => left_out(failure),
            }
        }
    }
}

/// Notes of inputs that the others are shown without, the first few named.
pub(crate) fn notes_of_unread(unread: &[Failure]) -> impl Iterator<Item = String> {
    const MOST: usize = 5;
    let named = unread.iter().take(MOST).map(|failure| format!("left out: {}", failure.what()));
    let others = unread.len().saturating_sub(MOST);
    let more = counted(others as u64, "other input", "other inputs");
    named.chain((others > 0).then(|| format!("left out: {more} that cannot be read")))
}

/// Says which lines were left out, and why.
pub(crate) fn say_skipped(all: &[SkippedOf], cli: &Cli) {
    let count: u64 = all.iter().map(|of| of.skipped.count()).sum();
    if count == 0 || cli.quiet {
        return;
    }
    let mut text = format!("{} left out: they cannot be read", counted(count, "line", "lines"));
    if count == 1 {
        text = "1 line left out: it cannot be read".to_owned();
    }
    const MOST: usize = 5;
    let mut details = Vec::new();
    let shown = all.iter().flat_map(|of| of.skipped.first().iter().map(move |part| (of, part)));
    for (of, part) in shown.take(MOST) {
        let excerpt = if part.text.is_empty() { String::new() } else { format!(": {}", part.text) };
        let path = shown_path(&of.path);
        details.push(format!("{path}, {}: {}{excerpt}", part.place, part.reason));
    }
    warn_with(&text, &details, cli.color);
}

/// The table of formats, as `flame fold --list-formats` prints it.
pub(crate) fn list_of_formats() -> String {
    let width = FORMATS.iter().map(|format| format.name.len()).max().unwrap_or(0);
    let line = |format: &flame_formats::InputFormat| {
        format!("{:width$}  {}\n", format.name, format.description)
    };
    FORMATS.iter().map(line).collect()
}

pub(crate) fn shown_path(path: &Path) -> String {
    clean_name(&path.display().to_string()).into_owned()
}

const LIST: &str = "flame fold --list-formats, to see what flame reads";

fn failure(path: &Path, error: &ReadError) -> Failure {
    let cannot = |what: String| Failure::new(format!("cannot read {}{what}", shown_path(path)));
    match error {
        ReadError::Io(error) => unreadable(path, error),
        ReadError::UnknownFormat { looks } => {
            let failure = cannot(" as a profile".to_owned()).why(format!("it {looks}"));
            match looks.as_str() {
                looks if looks.contains("picture or a page") => {
                    failure.or_try("the profile that it was made from")
                }
                _ => failure.or_try(LIST),
            }
        }
        ReadError::Pprof(PprofError::Wire { .. }) => cannot(format!(": {error}"))
            .why("it is binary, but neither pprof nor another format that flame reads")
            .or_try(LIST),
        ReadError::Strict { place, reason } => {
            cannot(format!(": {place}: {reason}")).why("--strict makes that an error")
        }
        ReadError::NotSaid { option, why } => {
            let what = format!("cannot choose samples of {} by {option}", shown_path(path));
            Failure::usage(what).why(*why)
        }
        error => cannot(format!(": {error}")).or_try(LIST),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::new(format!("cannot read {}: {}", shown_path(path), reason(error)));
    match error.kind() {
        _ if is_refused(error) => failure,
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            failure.why("its compressed data is damaged or truncated")
        }
        _ => failure,
    }
}

/// Of inputs without a stack; `first` is the first part that could not be read, where it is known.
pub(crate) fn nothing(paths: &[PathBuf], health: &Health, first: Option<&SkippedPart>) -> Failure {
    let names: Vec<String> = paths.iter().map(|path| shown_path(path)).collect();
    let failure = Failure::new(format!("no stacks in {}", names.join(", ")));
    let excerpt = |part: &SkippedPart| match &*part.text {
        "" => String::new(),
        text => format!(": {text}"),
    };
    match (health.skipped_lines, first) {
        (0, _) => return nothing_weighs(failure, health),
        // A count that makes no sense says more than that there is none.
        (_, Some(part)) if part.reason != NO_COUNT => {
            failure.why(format!("{}: {}{}", part.place, part.reason, excerpt(part)))
        }
        (lines, first) => {
            let none = match lines {
                1 => "its only line does not end with a count".to_owned(),
                lines => {
                    format!("none of its {} ends with a count", counted(lines, "line", "lines"))
                }
            };
            let first = first.map(|part| format!("; {}{}", part.place, excerpt(part)));
            let first = first.unwrap_or_default();
            failure.why(format!("it was read as folded text, and {none}{first}"))
        }
    }
    .or_try("--from FORMAT, if it has a format that was not recognised")
    .or_try(LIST)
}

/// Of inputs that were read and have nothing that weighs; notes say what was left out.
fn nothing_weighs(failure: Failure, health: &Health) -> Failure {
    match &*health.notes {
        [] => failure
            .why("no line has a count above zero")
            .or_try("a file of lines such as main;parse;read 7, or a pprof file")
            .or_try(LIST),
        notes => failure.why(notes.join("; ")),
    }
}

/// Of weights whose sums would be wrong.
pub(crate) fn too_large(paths: &[PathBuf]) -> Failure {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    Failure::new(format!(
        "the sum of the weights in {} does not fit into 64 bits",
        names.join(", ")
    ))
    .why("2^64 is the limit, decimal places included; no sum beyond it would be right")
    .or_try("counts in a larger unit: milliseconds in place of nanoseconds, say")
}

/// Of a profile that has none of the value that was to be shown; notes say what of it was left out.
pub(crate) fn nothing_in(
    path: &Path,
    profile: &Profile,
    value: &ValueType,
    notes: &[String],
) -> Failure {
    let failure = Failure::new(format!("no {} in {}", value.name, path.display()));
    let types = profile.value_types().iter().enumerate();
    let others = types.filter(|(at, _)| profile.total(*at) > Weight(0)).map(|(_, value)| value);
    let others: Vec<&str> = others.map(|value| value.name.as_str()).collect();
    match &*others {
        [] if !notes.is_empty() => failure.why(notes.join("; ")),
        [] => failure.why("it is a profile without samples: nothing was measured"),
        [first, ..] => failure
            .why(format!("its samples have {} only", others.join(" and ")))
            .or_try(format!("--value {first}")),
    }
}
