//! An input into what it holds, by the reader of its format.

use std::collections::HashSet;

use flame_profile::{
    Columns, FirstFrames, FoldedError, FoldedPart, FoldedParts, FoldedReader, Health, Nanos,
    Profile, ThreadId,
};

use crate::foreign::callgrind_behind_folded;
use crate::head::Head;
use crate::input::Input;
use crate::lines::{Line, Lines};
use crate::pprof::{Counted, check_start, read_counted, say_negative};
use crate::registry::Reader;
use crate::second_counts::lacking_counts;
use crate::sink::Sink;
use crate::skipped::{Place, Skipped};
use crate::source::Source;
use crate::{
    InputFormat, MAX_INFLATED, ReadError, ReadOptions, SampleOptions, Selection, Stacks, perf_data,
    perf_script,
};

/// What an input holds, and what is to be said of it.
#[derive(Debug)]
pub struct ReadInput {
    /// The format that it was read as.
    pub format: &'static InputFormat,
    /// What it holds.
    pub content: InputContent,
    /// What of it could not be read.
    pub skipped: Skipped,
    /// What else a user should know: `its end is missing`.
    pub notes: Vec<String>,
}

/// What an input holds.
#[derive(Debug)]
pub enum InputContent {
    /// Folded text, with one count a line or two.
    Folded(Box<FoldedParts>, Columns),
    /// A whole profile.
    Profile(Box<Profile>),
    /// Stacks.
    Stacks(Box<Stacks>),
}

/// What an input holds, where stacks are a profile, too.
#[derive(Debug)]
pub enum Whole {
    /// Folded text, with one count a line or two.
    Folded(Box<FoldedParts>, Columns),
    /// A profile.
    Profile(Box<Profile>),
}

impl ReadInput {
    /// As a profile, or as folded text where it is such; what is to be said of it is in the health.
    pub fn into_whole(self) -> (Whole, Health) {
        let (notes, skipped_lines) = (self.notes, self.skipped.count());
        let mut profile = match self.content {
            InputContent::Folded(parts, columns) => {
                let health = Health { skipped_lines, notes, ..Health::default() };
                return (Whole::Folded(parts, columns), health);
            }
            InputContent::Profile(profile) => profile,
            InputContent::Stacks(stacks) => Box::new(stacks.to_profile()),
        };
        profile.health.skipped_lines += skipped_lines;
        profile.health.notes.extend(notes);
        let health = profile.health.clone();
        (Whole::Profile(profile), health)
    }
}

/// Reads an input in the format that is asked for, or in the one that is recognised.
///
/// # Errors
/// See [`ReadError`].
pub fn read_input(mut source: Source, options: &ReadOptions) -> Result<ReadInput, ReadError> {
    let head = source.head()?;
    let format = match options.format {
        Some(format) => format,
        None => recognised(&Head::new(&head))?,
    };
    let mut notes = Vec::new();
    let (content, skipped) = match &format.reader {
        Reader::Folded => {
            refuse(options.samples.first_choice(), "folded text has only names and counts")?;
            let other = callgrind_behind_folded(&Head::new(&head));
            let (content, mut skipped, note) = match other {
                Some((_, at)) => {
                    let mut part = Source::of_bytes(head[..at].to_vec())?;
                    read_folded(&mut part, &head[..at], options)?
                }
                None => read_folded(&mut source, &head, options)?,
            };
            if let Some((first, _)) = other {
                skip_lines_from(first, &mut source, &mut skipped, options)?;
            }
            notes.extend(note);
            (content, skipped)
        }
        Reader::Pprof => return read_binary(source, format, &head, options),
        Reader::PerfData => return perf_data::read(source, format, &head, options),
        Reader::Stacks(read) => {
            let mut sink = Sink::new(options);
            let threads = options.threads.max(1);
            let mut input = Input::new(source.reader(), threads);
            read(&mut input, &mut sink)?;
            let too_long = input.into_too_long();
            too_long.refuse_if(options.strict)?;
            let (stacks, mut skipped, said) = sink.finish();
            skipped.merge(too_long);
            notes = said;
            let is_all = options.samples.selection.is_all();
            if stacks.is_empty() && skipped.count() == 0 && is_all {
                notes.push(format!(
                    "it was read as {}, and has no sample that weighs anything",
                    format.name
                ));
            }
            (InputContent::Stacks(Box::new(stacks)), skipped)
        }
    };
    notes.extend(broken_end(source.trouble(), options)?);
    if !options.samples.roots.is_empty() {
        notes.push("only pprof has labels: --root has no effect on other formats".to_owned());
    }
    Ok(ReadInput { format, content, skipped, notes })
}

/// What is said of packed data that is cut short.
pub(crate) fn broken_end(
    trouble: Option<String>,
    options: &ReadOptions,
) -> Result<Option<String>, ReadError> {
    let Some(trouble) = trouble else { return Ok(None) };
    let what = format!("its compressed data is damaged or truncated: {trouble}");
    match options.strict {
        true => Err(std::io::Error::new(std::io::ErrorKind::InvalidData, what).into()),
        false => Ok(Some(format!("{what}; everything before that was read"))),
    }
}

/// The format of a start, or what it looks like.
fn recognised(head: &Head<'_>) -> Result<&'static InputFormat, ReadError> {
    if let Some(looks) = looks_like(head) {
        return Err(ReadError::UnknownFormat { looks });
    }
    let format = InputFormat::detect(head.bytes());
    let is_folded = format.is_none_or(|format| matches!(format.reader, Reader::Folded));
    if is_folded && head.is_json() {
        let looks = "is JSON, but not from a profiler that flame knows".to_owned();
        return Err(ReadError::UnknownFormat { looks });
    }
    if is_folded && !head.is_utf8() && !head.has_mostly_counts() {
        let looks = "is not text, or in another encoding than UTF-8 and UTF-16".to_owned();
        return Err(ReadError::UnknownFormat { looks });
    }
    // What no format claims is read as folded text, whose stacks may start late; where it has none,
    // that is said.
    let folded = crate::registry::FORMATS.last();
    let format = format.or(folded);
    format.ok_or_else(|| ReadError::UnknownFormat { looks: "is not recognised".to_owned() })
}

const OF_OLD_PPROF: &str =
    "is a profile in pprof's old text form; go tool pprof -proto converts it";

/// What people hand over by mistake: some lines of it would pass for stacks.
fn looks_like(head: &Head<'_>) -> Option<String> {
    let text = head.text();
    let starts: [(&[u8], &str); 13] = [
        (b"<!DOCTYPE", "is already a picture or a web page"),
        (b"<html", "is already a picture or a web page"),
        (b"\x7fELF", "is an executable or a library"),
        (b"PK\x03\x04", "is a zip archive; unpack it first"),
        (b"BZh", "is compressed with bzip2; flame unpacks gzip, zstd and xz"),
        (b"\x89PNG", "is a picture"),
        (b"%PDF", "is a PDF document"),
        (b"heap profile: ", OF_OLD_PPROF),
        (b"--- contention", OF_OLD_PPROF),
        (b"--- heap", OF_OLD_PPROF),
        (b"goroutine profile: ", OF_OLD_PPROF),
        (b"threadcreate profile: ", OF_OLD_PPROF),
        (b"SQLite format 3", "is an SQLite database; export another format with its profiler"),
    ];
    let is_known = |(start, _): &&(&[u8], &str)| text.starts_with(start);
    if let Some((_, looks)) = starts.iter().find(is_known) {
        return Some((*looks).to_owned());
    }
    // POSIX, and GNU of old.
    if head.bytes().get(257..262) == Some(b"ustar") {
        return Some("is a tar archive; unpack it first".to_owned());
    }
    if perf_script::lacks_frames(head) {
        return Some("is what perf script prints without frames; add ip,sym to its -F".to_owned());
    }
    if head.lines().any(|line| line.starts_with(b". ... raw event: size ")) {
        return Some("is a dump of perf's records; flame reads perf.data itself".to_owned());
    }
    // `<svg as Trait>::f` is a function.
    let is_svg = text.starts_with(b"<svg") && head.contains(b"xmlns");
    let is_xml = text.starts_with(b"<?xml");
    let is_format = || InputFormat::detect(head.bytes()).is_some_and(|f| f.name != "folded");
    (is_svg || (is_xml && !is_format())).then(|| "is already a picture or a web page".to_owned())
}

/// Reads what is not text: pprof, or folded text with control characters in its names.
fn read_binary(
    source: Source,
    format: &'static InputFormat,
    head: &[u8],
    options: &ReadOptions,
) -> Result<ReadInput, ReadError> {
    let folded = InputFormat::named("folded").filter(|_| options.format.is_none());
    let folded = folded.filter(|_| Head::new(head).has_mostly_counts());
    if folded.is_none() {
        check_start(head)?;
    }
    let (bytes, trouble) = source.bytes(MAX_INFLATED.0)?;
    let broken = broken_end(trouble, options)?;
    let error = match read_counted(&bytes, &options.samples.roots) {
        Ok(Counted { mut profile, negative, skipped }) => {
            skipped.refuse_if(options.strict)?;
            let negative = say_negative(negative);
            if let Some(reason) = negative.clone().filter(|_| options.strict) {
                return Err(ReadError::Broken { format: "pprof file", what: reason });
            }
            select(&mut profile, &options.samples)?;
            let emptied = options.samples.selection.emptied(&profile);
            let content = InputContent::Profile(Box::new(profile));
            let notes = negative.into_iter().chain(broken).chain(emptied).collect();
            return Ok(ReadInput { format, content, skipped, notes });
        }
        Err(error) => error,
    };
    match folded {
        Some(folded) => {
            let options = ReadOptions { format: Some(folded), ..options.clone() };
            let mut read = read_input(Source::of_bytes(bytes)?, &options)?;
            read.notes.extend(broken);
            Ok(read)
        }
        // The tables that samples refer to stand at the end.
        None => match broken {
            Some(_) => Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()),
            None => Err(error.into()),
        },
    }
}

/// All samples where some were asked for would be a wrong number.
fn refuse(option: Option<&'static str>, why: &'static str) -> Result<(), ReadError> {
    option.map_or(Ok(()), |option| Err(ReadError::NotSaid { option, why }))
}

/// Leaves of a profile what is selected.
fn select(profile: &mut Profile, samples: &SampleOptions) -> Result<(), ReadError> {
    let selection = &samples.selection;
    let Selection { pids, threads, comms, cpus, from, to } = selection;
    let of_event = samples.event.is_some().then_some("--event");
    refuse(of_event, "in pprof files, --value chooses what is shown")?;
    let below = (!samples.skip_after.is_empty()).then_some("--skip-after");
    refuse(below, "stacks of pprof files are always read whole")?;
    let on_cpu = (!cpus.is_empty()).then_some("--cpu");
    refuse(on_cpu, "it does not say on which CPUs samples were taken")?;
    if !(pids.is_empty() && threads.is_empty() && comms.is_empty()) {
        let all: HashSet<ThreadId> = profile.samples().map(|sample| sample.thread).collect();
        let selected = all.into_iter().filter(|id| selects(selection, profile, *id));
        let selected: HashSet<ThreadId> = selected.collect();
        profile.keep_threads(|id| selected.contains(&id));
    }
    if from.is_some() || to.is_some() {
        let times = from.unwrap_or_default()..to.unwrap_or(Nanos(u64::MAX));
        let is_unknown = !profile.keep(times, |_| true);
        let why = "it does not say when samples were taken (flame record --times)";
        refuse(is_unknown.then_some("--time"), why)?;
    }
    Ok(())
}

/// Whether a thread is one of those that are asked for, by its names as they are shown.
fn selects(selection: &Selection, profile: &Profile, thread: ThreadId) -> bool {
    let Selection { pids, threads, comms, .. } = selection;
    let thread = profile.thread(thread);
    let tid = thread.tid.map(|tid| tid.to_string());
    let is_called = |asked: &str, name| Selection::is_name(asked, profile.text(name).as_bytes());
    let is_name = |asked: &String| {
        is_called(asked, thread.name) || thread.process.is_some_and(|name| is_called(asked, name))
    };
    let is_thread = |asked: &String| is_called(asked, thread.name) || Some(asked) == tid.as_ref();
    (pids.is_empty() || thread.pid.is_some_and(|pid| pids.contains(&pid.0)))
        && (comms.is_empty() || comms.iter().any(is_name))
        && (threads.is_empty() || threads.iter().any(is_thread))
}

fn read_folded(
    source: &mut Source,
    head: &[u8],
    options: &ReadOptions,
) -> Result<(InputContent, Skipped, Option<String>), ReadError> {
    let (columns, first_frames) = (Columns::detect(head), FirstFrames::detect(head));
    let is_seekable = source.is_seekable();
    let mut read = |columns| read_parts(source, (columns, first_frames), options);
    let mut note = None;
    let result = match read(columns) {
        Err(FoldedError::OneCount) if is_seekable => {
            note = lacking_counts(head);
            if note.is_some() && options.strict {
                return Err(ReadError::Folded(FoldedError::OneCount));
            }
            read(Columns::One).map(|parts| (parts, Columns::One))
        }
        result => result.map(|parts| (parts, columns)),
    };
    let (parts, columns) = result.map_err(|error| match error {
        FoldedError::Io(error) => ReadError::Io(error),
        error => ReadError::Folded(error),
    })?;
    let mut skipped = Skipped::default();
    let shown = parts.first_skipped();
    for line in &shown {
        let place = Place::Line(line.number);
        if options.strict {
            return Err(ReadError::Strict { place, reason: line.reason.to_owned() });
        }
        skipped.add(place, line.reason, &line.text);
    }
    skipped.add_count(parts.skipped_lines().saturating_sub(shown.len() as u64));
    Ok((InputContent::Folded(Box::new(parts), columns), skipped, note))
}

/// Counts the lines from `first` on, which are not folded.
fn skip_lines_from(
    first: u64,
    source: &mut Source,
    skipped: &mut Skipped,
    options: &ReadOptions,
) -> Result<(), ReadError> {
    const REASON: &str = "it is of another format: callgrind";
    let mut too_long = Skipped::default();
    let mut lines = Lines::new(source.reader(), &mut too_long);
    while let Some(Line { number, text }) = lines.next_line()? {
        if number >= first && !text.trim_ascii().is_empty() {
            if options.strict {
                return Err(ReadError::Strict {
                    place: Place::Line(number),
                    reason: REASON.into(),
                });
            }
            skipped.add(Place::Line(number), REASON, text);
        }
    }
    skipped.merge(too_long);
    Ok(())
}

/// Reads the parts of a source side by side.
fn read_parts(
    source: &mut Source,
    (columns, first_frames): (Columns, FirstFrames),
    options: &ReadOptions,
) -> Result<FoldedParts, FoldedError> {
    let new_reader = || {
        let reader = FoldedReader::new(columns, options.tree.order);
        reader.with_recursion(options.tree.recursion).with_first_frames(first_frames)
    };
    if !source.is_seekable() {
        let mut reader = new_reader();
        reader.read(&mut source.reader())?;
        return Ok(FoldedParts::new([reader.into_part(true)]).expect("there is one"));
    }
    if options.threads > 1 && source.has_parts() {
        flame_threads::start();
    }
    let parts = source.parts(options.threads)?;
    let is_whole = parts.len() == 1;
    let read_part = |mut part: crate::source::Part<'_>| -> Result<FoldedPart, FoldedError> {
        let mut reader = new_reader();
        reader.reserve(part.len());
        reader.read(&mut part)?;
        Ok(reader.into_part(is_whole))
    };
    let parts: Vec<FoldedPart> =
        flame_threads::map(parts, read_part).into_iter().collect::<Result<_, _>>()?;
    Ok(FoldedParts::new(parts).expect("a source has one part at least"))
}

#[cfg(test)]
mod tests {
    use flame_profile::{FrameKind, SiblingOrder, ValueType};

    use super::*;

    /// The kinds of the first frames of a folded text, by name.
    fn first_frames(text: &str) -> Vec<(String, FrameKind)> {
        let source = Source::of_bytes(text.as_bytes().to_vec()).unwrap();
        let read = read_input(source, &ReadOptions::default()).unwrap();
        let InputContent::Folded(parts, _) = read.content else { panic!("{text}") };
        let tree = parts.finish(ValueType::samples(), SiblingOrder::Name);
        let first = tree.nodes().iter().filter(|node| node.depth == 1);
        let labels = first.map(|node| tree.label(node));
        labels.map(|label| (label.name.clone(), label.kind)).collect()
    }

    #[test]
    fn main_is_a_function_where_no_stack_begins_with_a_thread() {
        let (thread, function) = (FrameKind::Mark, FrameKind::User);
        let main = |kind| vec![("main".to_owned(), kind)];
        assert_eq!(first_frames("main;parse 7\nmain;render;draw 3\n"), main(function));
        assert_eq!(first_frames("main;parse 7\nmain;_start;main;parse 3\n"), main(thread));
        let two = first_frames("clone3;start_thread;work 1\nmain;parse 7\n");
        assert_eq!(two, [("clone3".to_owned(), function), ("main".to_owned(), function)]);
    }

    #[test]
    fn what_stands_behind_folded_lines_claims_no_text() {
        let folded = "main;parse 7\nmain;draw 3\n";
        let callgrind = "version: 1\nevents: Ir\nfl=a.c\nfn=main\n16 400\n";
        let massif =
            "desc: x\ncmd: x\ntime_unit: i\nsnapshot=0\ntime=0\nmem_heap_B=5\nmem_heap_extra_B=0\n";
        for (behind, lines) in [(callgrind, 5), (massif, 7)] {
            let read = |strict| {
                let text = format!("{folded}{behind}").into_bytes();
                let options = ReadOptions { strict, ..ReadOptions::default() };
                read_input(Source::of_bytes(text).unwrap(), &options)
            };
            let found = read(false).unwrap();
            assert_eq!((found.format.name, found.skipped.count()), ("folded", lines));
            let InputContent::Folded(parts, _) = found.content else { panic!("{behind}") };
            let tree = parts.finish(ValueType::samples(), SiblingOrder::Name);
            assert_eq!(tree.total().0, 10);
            let refused = read(true).unwrap_err();
            assert!(
                matches!(refused, ReadError::Strict { place: Place::Line(3), .. }),
                "{refused}"
            );
        }
    }

    #[test]
    fn dumps_of_records_are_refused() {
        let text = "\n0x4e8 [0x60]: event: 9\n.\n. ... raw event: size 96 bytes\n\
                    1 12 0x548 [0x28]: PERF_RECORD_SAMPLE(IP, 0x4001): 1/1: 0x401136 period: 1\n";
        let source = Source::of_bytes(text.as_bytes().to_vec()).unwrap();
        let refused = read_input(source, &ReadOptions::default()).unwrap_err();
        assert!(matches!(refused, ReadError::UnknownFormat { .. }), "{refused}");
    }
}
