//! A pprof file into a [`Profile`].
//!
//! Files of any tool are read by the rules of `Profile.CheckValid`. What a `Profile` has no place
//! for is dropped and named in the health notes: labels other than the thread's, and negative
//! values, which differences of profiles have.

use std::collections::BTreeSet;

use flame_profile::{Frame, FrameId, FrameKind, ImageAddress, ImageId, Location, LocationId};
use flame_profile::{Meta, Nanos, Profile, StackId, Timeline, ValueType};
use prost::Message;

use crate::skipped::{Place, Skipped};

use super::error::PprofError;
use super::inflate::{MAX_INFLATED, inflate};
use super::proto::{self, field};
use super::roots::Roots;
use super::tables::{MAX_ENTRIES, Tables};
use super::threads::ThreadReader;
use super::wire::{Value, fields};
use super::{facts, kind, mappings, values};

/// How many keys of dropped labels the note about them names.
const NAMED_LABELS: usize = 8;

/// How many distinct stacks, counted with all their callers, a file may have.
const MAX_STACKS: usize = 4 * MAX_ENTRIES;

/// How many functions, inlined ones counted, the stack of a sample may have. Real stacks have 100,000 at
/// most; a location with thousands of lines makes billions of a few bytes.
const MAX_FRAMES_OF_SAMPLE: usize = 1 << 17;

/// How many functions all distinct stacks may have, where what several begin with counts once.
const MAX_FRAMES: usize = 4 * MAX_ENTRIES;

const TOO_DEEP: &str = "its stack has more than 131072 functions";

/// Reads a pprof file, gzipped or not, of any tool.
///
/// Any bytes are safe to read: memory is bounded by [`MAX_INFLATED`] and by limits on the tables.
/// Addresses without a function are named `[image+0xoffset]`. Samples without a thread's name are
/// of a thread that is named after the first mapping's file.
///
/// # Errors
/// When the bytes are not a pprof file, break its rules, or are too large.
pub fn read_pprof(bytes: &[u8]) -> Result<Profile, PprofError> {
    read_pprof_by(bytes, &[])
}

/// The same, with the values of these labels as the outermost frames of all stacks, in their order: the
/// first takes the place of the thread, whose name comes behind them.
///
/// # Errors
/// As [`read_pprof`].
pub fn read_pprof_by(bytes: &[u8], labels: &[String]) -> Result<Profile, PprofError> {
    let Counted { mut profile, negative, skipped } = read_counted(bytes, labels)?;
    let too_deep = (skipped.count() > 0).then(|| {
        format!(
            "{} samples were left out: a stack may have {MAX_FRAMES_OF_SAMPLE} functions at most",
            skipped.count()
        )
    });
    let said = say_negative(negative).into_iter().chain(too_deep);
    profile.health.notes.extend(said.map(|what| format!("pprof: {what}")));
    Ok(profile)
}

/// What is said of so many values that are negative.
pub(crate) fn say_negative(count: u64) -> Option<String> {
    (count > 0).then(|| format!("{count} negative values were taken as 0"))
}

/// A file without notes on what of it was not read.
pub(crate) struct Counted {
    pub(crate) profile: Profile,
    /// The number of values that are negative.
    pub(crate) negative: u64,
    /// Samples that were left out.
    pub(crate) skipped: Skipped,
}

/// The same without notes on negative values and samples that are left out, beside those.
pub(crate) fn read_counted(bytes: &[u8], labels: &[String]) -> Result<Counted, PprofError> {
    let file = inflate(bytes, MAX_INFLATED)?;
    let tables = Tables::parse(&file)?;
    let mut reader = Reader::new(&tables)?;
    reader.roots = Roots::new(labels, &tables.strings);
    reader.images()?;
    reader.locations()?;
    reader.samples(&file)?;
    reader.circumstances()?;
    let Reader { profile, negative_values: negative, skipped, .. } = reader;
    Ok(Counted { profile, negative, skipped })
}

struct Reader<'t, 'b> {
    tables: &'t Tables<'b>,
    profile: Profile,
    /// By position of the mapping; `None` = it stands for "no image".
    images: Vec<Option<ImageId>>,
    /// By position of the location; `None` = it stands for an empty stack.
    locations: Vec<Option<LocationId>>,
    samples: u64,
    /// For each sample of the file its position in the profile.
    rows: Vec<Option<usize>>,
    negative_values: u64,
    skipped: Skipped,
    /// The functions of all distinct stacks.
    frames: usize,
    unused_labels: BTreeSet<i64>,
    roots: Roots,
}

impl<'t, 'b> Reader<'t, 'b> {
    fn new(tables: &'t Tables<'b>) -> Result<Self, PprofError> {
        if tables.value_types.is_empty() {
            return Err(PprofError::NoSampleTypes);
        }
        let value_type = |of: &proto::ValueType| {
            Ok(ValueType::new(tables.string(of.name)?, tables.string(of.unit)?))
        };
        let value_types = tables.value_types.iter().map(value_type).collect::<Result<_, _>>()?;
        Ok(Reader {
            tables,
            profile: Profile::new(value_types),
            images: Vec::new(),
            locations: Vec::new(),
            samples: 0,
            rows: Vec::new(),
            negative_values: 0,
            skipped: Skipped::default(),
            frames: 0,
            unused_labels: BTreeSet::new(),
            roots: Roots::default(),
        })
    }

    fn images(&mut self) -> Result<(), PprofError> {
        for mapping in &self.tables.mappings.entries {
            let path = self.tables.string(mapping.file)?.into_owned();
            let build_id = self.tables.string(mapping.build_id)?;
            if mappings::is_no_image(mapping, &path) {
                self.images.push(None);
                continue;
            }
            let image = mappings::image_of(mapping, path, &build_id);
            self.images.push(Some(self.profile.add_image(image)));
        }
        Ok(())
    }

    fn locations(&mut self) -> Result<(), PprofError> {
        for location in &self.tables.locations.entries {
            if location.is_empty_stack {
                self.locations.push(None);
                continue;
            }
            let mapping = self.tables.mappings.position(location.mapping);
            let image = mapping.and_then(|at| *self.images.get(at)?);
            let mapping = mapping.and_then(|at| self.tables.mappings.entries.get(at));
            let address = mappings::image_address(location, mapping);
            let frames = if location.line.is_empty() {
                vec![self.nameless(address, mapping)?]
            } else {
                self.frames(&location.line, mapping)?
            };
            let id = self.profile.add_location(Location { image, address, frames });
            self.locations.push(Some(id));
        }
        Ok(())
    }

    fn frames(
        &mut self,
        lines: &[proto::Line],
        mapping: Option<&proto::Mapping>,
    ) -> Result<Vec<FrameId>, PprofError> {
        let outermost = lines.len().saturating_sub(1);
        let mut frames = Vec::with_capacity(lines.len());
        for (index, line) in lines.iter().enumerate() {
            let id = line.function;
            let function = self.tables.functions.position(id);
            let function = function.and_then(|at| self.tables.functions.entries.get(at));
            let function =
                function.ok_or(PprofError::Dangling { table: "function", id: id.into() })?;
            let own_kind = kind::from_code(function.kind);
            let kind = match own_kind {
                Some(kind) => kind,
                None if index < outermost => FrameKind::Inlined,
                None => self.kind_by_mapping(mapping)?,
            };
            let name = self.tables.present_string(function.name)?;
            let name = name.map_or_else(|| self.tables.string(function.system_name), Ok)?;
            // Other tools have no functions with an empty name.
            let name =
                if name.is_empty() && own_kind.is_none() { "[unknown]".into() } else { name };
            let file = self.tables.present_string(function.file)?;
            let frame = Frame {
                name: self.profile.intern(&name),
                kind,
                file: file.map(|file| self.profile.intern(&file)),
                line: u32::try_from(line.line).ok().filter(|line| *line > 0),
            };
            frames.push(self.profile.add_whole_frame(frame));
        }
        Ok(frames)
    }

    fn kind_by_mapping(&self, mapping: Option<&proto::Mapping>) -> Result<FrameKind, PprofError> {
        let file = mapping.map_or(Ok("".into()), |mapping| self.tables.string(mapping.file))?;
        Ok(kind::of_mapping(&file))
    }

    fn nameless(
        &mut self,
        ImageAddress(address): ImageAddress,
        mapping: Option<&proto::Mapping>,
    ) -> Result<FrameId, PprofError> {
        let kind = self.kind_by_mapping(mapping)?;
        let path = mapping.map_or(Ok("".into()), |mapping| self.tables.string(mapping.file))?;
        let name = mappings::image_name(&path);
        let name = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
            Some(bare) => format!("[{bare}+{address:#x}]"),
            None if name.is_empty() => format!("[{address:#x}]"),
            None => format!("[{name}+{address:#x}]"),
        };
        Ok(self.profile.add_frame(&name, kind))
    }

    fn samples(&mut self, file: &[u8]) -> Result<(), PprofError> {
        let first = self.tables.mappings.entries.first();
        let path = first.map_or(Ok("".into()), |mapping| self.tables.string(mapping.file))?;
        let name = Some(mappings::image_name(&path)).filter(|name| !name.is_empty());
        let threads =
            ThreadReader::new(&self.tables.strings, name.unwrap_or("[unknown]").to_owned());
        let mut sample = proto::Sample::default();
        let mut values = Vec::new();
        let mut timeline = None;
        for entry in fields(file) {
            let entry = entry?;
            if let (field::TIMELINE, Value::Bytes(bytes)) = (entry.number, entry.value) {
                timeline = Some(bytes);
            }
            let (field::SAMPLE, Value::Bytes(bytes)) = (entry.number, entry.value) else {
                continue;
            };
            let offset = entry.offset;
            sample.clear();
            sample
                .merge(bytes)
                .map_err(|error| PprofError::Wire { offset, source: Some(error) })?;
            self.sample(&sample, offset, &threads, &mut values)?;
        }
        if let Some(bytes) = timeline {
            self.timeline(bytes);
        }
        Ok(())
    }

    fn timeline(&mut self, bytes: &[u8]) {
        match Timeline::from_bytes(bytes, self.rows.len()) {
            Some(timeline) => self.profile.timeline = Some(timeline.with_rows(&self.rows)),
            None => {
                let note = "pprof: the times of samples cannot be read".to_owned();
                self.profile.health.notes.push(note);
            }
        }
    }

    fn sample(
        &mut self,
        sample: &proto::Sample,
        offset: usize,
        threads: &ThreadReader,
        values: &mut Vec<u64>,
    ) -> Result<(), PprofError> {
        let expected = self.profile.value_types().len();
        let found = sample.value.len();
        if found != expected {
            return Err(PprofError::ValueCount { offset, found, expected });
        }
        if self.is_too_deep(&sample.location) {
            self.skipped.add(Place::Byte(offset as u64), TOO_DEEP, &[]);
            self.rows.push(None);
            return Ok(());
        }
        values.clear();
        for value in &sample.value {
            let value = u64::try_from(*value);
            self.negative_values += u64::from(value.is_err());
            values.push(value.unwrap_or(0));
        }
        let unused = &mut self.unused_labels;
        let (mut thread, evidence) =
            threads.thread(&sample.label, self.tables, &mut self.profile, unused)?;
        let mut base = StackId::EMPTY;
        if !self.roots.is_empty() {
            (thread, base) =
                self.roots.of(&sample.label, thread, self.tables, &mut self.profile)?;
        }
        let stack = self.stack(&sample.location, base)?;
        self.samples += 1;
        let row = self.profile.add_sample_of(thread, stack, evidence, values);
        self.rows.push(Some(row));
        Ok(())
    }

    /// Whether the stack of those location ids has more functions than one may have.
    fn is_too_deep(&self, ids: &[u64]) -> bool {
        let positions = ids.iter().filter_map(|id| self.tables.locations.position(*id));
        let entries = positions.filter_map(|at| self.tables.locations.entries.get(at));
        let mut frames = 0_usize;
        entries.map(|location| location.line.len().max(1)).any(|lines| {
            frames = frames.saturating_add(lines);
            frames > MAX_FRAMES_OF_SAMPLE
        })
    }

    /// The stack of those location ids, innermost first, called by `base`.
    fn stack(&mut self, ids: &[u64], base: StackId) -> Result<StackId, PprofError> {
        let mut stack = base;
        for id in ids.iter().rev() {
            let position = self.tables.locations.position(*id);
            let location = position.and_then(|at| self.locations.get(at));
            let location =
                location.ok_or(PprofError::Dangling { table: "location", id: (*id).into() })?;
            let known = self.profile.stacks().len();
            if let Some(location) = location {
                stack = self.profile.push_stack(stack, *location);
            }
            if self.profile.stacks().len() > MAX_STACKS {
                return Err(PprofError::TooMany { table: "stacks", limit: MAX_STACKS });
            }
            if self.profile.stacks().len() > known {
                let entry = position.and_then(|at| self.tables.locations.entries.get(at));
                let lines = entry.map_or(1, |location| location.line.len().max(1));
                self.frames = self.frames.saturating_add(lines);
            }
            if self.frames > MAX_FRAMES {
                let table = "functions in distinct stacks";
                return Err(PprofError::TooMany { table, limit: MAX_FRAMES });
            }
        }
        Ok(stack)
    }

    fn circumstances(&mut self) -> Result<(), PprofError> {
        let tables = self.tables;
        let default = tables.present_string(tables.default_sample_type)?;
        let named = default.and_then(|name| self.profile.value_named(&name));
        // Without a name it is the last one, as profile.proto says.
        self.profile.default_value = named.unwrap_or(self.profile.value_types().len() - 1);
        let comments: Vec<_> =
            tables.comments.iter().map(|at| tables.string(*at)).collect::<Result<_, _>>()?;
        let facts = facts::parse(comments.iter().map(|comment| &**comment));
        for (position, name) in facts.value_names {
            let value = self.profile.value_types().get(position);
            // Another tool may have rewritten the file with other values.
            if value.is_some_and(|value| value.name == values::portable(&name)) {
                self.profile.rename_value(position, &name);
            }
        }
        self.profile.meta = match facts.meta {
            Some(meta) => meta,
            None => self.standard_meta()?,
        };
        self.profile.health = facts.health;
        if !facts.has_health {
            let samples = self.profile.value_named("samples");
            self.profile.health.samples =
                samples.map_or(self.samples, |samples| self.profile.total(samples).0);
        }
        self.note_what_was_dropped()
    }

    /// What the fields that every tool writes say.
    fn standard_meta(&self) -> Result<Meta, PprofError> {
        let tables = self.tables;
        let positive = |value: i64| u64::try_from(value).ok().filter(|value| *value > 0);
        let first = tables.mappings.entries.first();
        let target = first.map_or(Ok(None), |mapping| tables.present_string(mapping.file))?;
        Ok(Meta {
            event: tables.present_string(tables.period_type.name)?.map(Into::into),
            period: positive(tables.period),
            start: positive(tables.time_nanos).map(Nanos),
            duration: positive(tables.duration_nanos).map(Nanos),
            target: target.map(Into::into),
            ..Meta::default()
        })
    }

    fn note_what_was_dropped(&mut self) -> Result<(), PprofError> {
        self.profile.health.notes.extend(self.roots.missing());
        self.unused_labels.retain(|key| !self.roots.has_key(*key));
        if !self.unused_labels.is_empty() {
            let keys = self.unused_labels.iter().take(NAMED_LABELS);
            let keys: Vec<_> =
                keys.map(|key| self.tables.string(*key)).collect::<Result<_, _>>()?;
            let more = if self.unused_labels.len() > keys.len() { ", ..." } else { "" };
            let note = format!("pprof: labels were left out: {}{more}", keys.join(", "));
            self.profile.health.notes.push(note);
        }
        Ok(())
    }
}
