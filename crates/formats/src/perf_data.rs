//! perf.data: the file of `perf record`, of which flame's own recorder makes a profile.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

use flame_perf_data::{
    Forward, PerfDataError, ReadAt, ReadConfig, ReadProfile, SampleOf, Takes, Written,
    read_profile, recognise,
};
use flame_profile::{Location, Profile, StackId};

use crate::options::{SampleOptions, Selection};
use crate::read::{InputContent, ReadInput, broken_end};
use crate::registry::{Content, InputFormat, Reader};
use crate::skipped::{Place, Skipped};
use crate::source::Source;
use crate::{NoSuchEvent, ReadError, ReadOptions};

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "perf-data",
    description: "Linux perf: perf.data itself, as perf record writes it into a file or a pipe",
    content: Content::Binary,
    detect: |head| recognise(head.bytes()).is_some(),
    reader: Reader::PerfData,
};

/// How much of a file is kept in memory that comes out of a pipe or is packed, and cannot be read as
/// it comes, in bytes.
const MAX_KEPT: u64 = 2 << 30;

/// A source that can be read from any place on.
struct Seekable<'s>(&'s Source);

impl ReadAt for Seekable<'_> {
    fn read_at(&mut self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(at, into)
    }
}

/// A file next to the one that is read.
struct Beside(File);

impl ReadAt for Beside {
    fn read_at(&mut self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(into, at)
    }
}

pub(crate) fn read(
    mut source: Source,
    format: &'static InputFormat,
    head: &[u8],
    options: &ReadOptions,
) -> Result<ReadInput, ReadError> {
    let samples = &options.samples;
    let mut config = ReadConfig {
        event: samples.event.clone(),
        takes: takes(&samples.selection),
        keeps_times: samples.keeps_times,
        written: source.file().map(written).unwrap_or_default(),
        names: options.names.find(),
        parts: Vec::new(),
    };
    let beside = |file| Box::new(Beside(file)) as Box<dyn ReadAt>;
    config.parts = source.numbered().into_iter().map(beside).collect();
    let (read, trouble) = if source.is_seekable() {
        let read = read_profile(Box::new(Seekable(&source)), config);
        (read, broken_end(source.trouble(), options)?)
    } else if recognise(head) == Some(true) {
        let read = read_profile(Box::new(Forward::new(source.reader())), config);
        (read, broken_end(source.trouble(), options)?)
    } else {
        // What such a file says of itself stands at its end.
        let (bytes, trouble) = source.bytes(MAX_KEPT)?;
        (read_profile(Box::new(bytes.as_slice()), config), broken_end(trouble, options)?)
    };
    let ReadProfile { profile, mut notes, left } = read.map_err(refused)?;
    let broken_at = left.cut_at.or(left.behind);
    if options.strict && (broken_at.is_some() || left.has_no_facts || left.broken_packing) {
        let place = Place::Byte(broken_at.unwrap_or(0));
        let reason = notes.first().cloned().unwrap_or_default();
        return Err(ReadError::Strict { place, reason });
    }
    notes.extend(trouble);
    notes.extend(samples.selection.emptied(&profile));
    let mut skipped = Skipped::default();
    skipped.add_count(profile.health.undecodable_records);
    let content = InputContent::Profile(Box::new(shaped(profile, samples)));
    Ok(ReadInput { format, content, skipped, notes })
}

fn refused(error: PerfDataError) -> ReadError {
    match error {
        PerfDataError::Io(error) => ReadError::Io(error),
        PerfDataError::NoSuchEvent { asked, others } => NoSuchEvent { asked, others }.into(),
        error => ReadError::Broken { format: "perf.data file", what: error.to_string() },
    }
}

/// What is known of the file, which perf began when the recording did.
fn written(file: &File) -> Written {
    let Ok(status) = file.metadata() else { return Written::default() };
    let (created, modified) = (status.created().ok(), status.modified().ok());
    Written { created, modified, owner: Some(status.uid()) }
}

/// Which samples are asked for; `None` = all.
fn takes(selection: &Selection) -> Option<Takes<'static>> {
    if selection.is_all() {
        return None;
    }
    let Selection { pids, threads, comms, cpus, from, to } = selection.clone();
    let mut start = None;
    Some(Box::new(move |sample: SampleOf<'_>| {
        let since = sample.time.saturating_since(*start.get_or_insert(sample.time));
        let SampleOf { thread, process, .. } = sample;
        let is_called = |asked: &str, name: Option<&str>| {
            name.is_some_and(|name| Selection::is_name(asked, name.as_bytes()))
        };
        let is_thread =
            |asked: &String| is_called(asked, thread) || asked.parse() == Ok(sample.tid.0);
        let is_comm = |asked: &String| is_called(asked, thread) || is_called(asked, process);
        (pids.is_empty() || pids.contains(&sample.pid.0))
            && (threads.is_empty() || threads.iter().any(is_thread))
            && (comms.is_empty() || comms.iter().any(is_comm))
            && (cpus.is_empty() || sample.cpu.is_some_and(|cpu| cpus.contains(&cpu.0)))
            && from.is_none_or(|from| since >= from)
            && to.is_none_or(|to| since < to)
    }))
}

/// The profile without the callers that are not asked for.
fn shaped(profile: Profile, samples: &SampleOptions) -> Profile {
    if samples.skip_after.is_empty() {
        return profile;
    }
    let mut shaped = Profile::new(profile.value_types().to_vec());
    (shaped.meta, shaped.health) = (profile.meta.clone(), profile.health.clone());
    shaped.default_value = profile.default_value;
    for image in profile.images() {
        shaped.add_image(image.clone());
    }
    // Outer frames are pushed first: a stack's parent is always known.
    let mut stacks = vec![StackId::EMPTY];
    for (_, parent, location) in profile.stacks().nodes() {
        let mut location = profile.location(location).clone();
        let cut = cut(&profile, &mut location, samples);
        for frame in &mut location.frames {
            let mut whole = profile.frame(*frame);
            whole.name = shaped.intern(profile.text(whole.name));
            whole.file = whole.file.map(|file| shaped.intern(profile.text(file)));
            *frame = shaped.add_whole_frame(whole);
        }
        let location = shaped.add_location(location);
        let parent = stacks.get(parent.index()).copied().filter(|_| !cut);
        stacks.push(shaped.push_stack(parent.unwrap_or(StackId::EMPTY), location));
    }
    for sample in profile.samples() {
        let mut thread = profile.thread(sample.thread);
        thread.name = shaped.intern(profile.text(thread.name));
        thread.process = thread.process.map(|name| shaped.intern(profile.text(name)));
        let thread = shaped.add_whole_thread(thread);
        let stack = stacks.get(sample.stack.index()).copied().unwrap_or(StackId::EMPTY);
        shaped.add_sample_of(thread, stack, sample.evidence, sample.values);
    }
    shaped
}

/// Takes away what called a function that stacks are to start with; whether there was one.
fn cut(profile: &Profile, location: &mut Location, samples: &SampleOptions) -> bool {
    let is_start = |name: &str| samples.skip_after.iter().any(|start| start == name);
    let found =
        location.frames.iter().position(|frame| is_start(profile.text(profile.frame(*frame).name)));
    if let Some(found) = found {
        location.frames.truncate(found + 1);
    }
    found.is_some()
}
