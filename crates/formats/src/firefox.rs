//! The Firefox Profiler's JSON: what samply, Firefox, and its importers for perf and simpleperf write
//! or load. Both forms are read: the processed one of the web page, and Firefox's own (`schema` and
//! `data`), also as the developer tools of older versions save it (`profile` within), and with the processes
//! of the oldest ones as texts of JSON. Functions without a name but an address are `[libxul.so+0x1f]`.

use flame_profile::{FrameKind, Nanos, ValueType};

use crate::ReadError;
use crate::callers::{self, Callers};
use crate::head::Head;
use crate::input::Input;
use crate::json::{self, Value, index, integer, number, text, whole};
use crate::names::is_hex;
use crate::odd::Names;
use crate::quantity::named_unit;
use crate::registry::{Content, InputFormat, Reader};
use crate::rounded::Rounded;
use crate::sink::{FrameIndex, Sample, Sink, TaskIndex, TaskName};
use crate::skipped::Place;
use table::Table;

mod table;

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "firefox",
    description: "Firefox Profiler JSON (samply, Firefox, profiler.firefox.com)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        let has = |part: &[u8]| head.contains(part);
        let is_processed = has(b"\"preprocessedProfileVersion\"");
        // The list of libraries may be longer than the start that is looked at.
        let is_of_firefox = has(b"\"meta\"")
            && (has(b"\"threads\"") && has(b"\"libs\"")
                || has(b"\"breakpadId\"")
                || has(b"\"stackwalk\"")
                || has(b"\"markerSchema\""));
        let is_of_tools = has(b"\"profile\"") && has(b"\"breakpadId\"")
            || has(b"\"label\"") && has(b"\"markers\"") && has(b"\"isOffMainThread\"");
        head.is_json() && (is_processed || is_of_firefox || is_of_tools)
    },
    reader: Reader::Stacks(read),
};

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let file = json::read(input)?;
    let root = json::parse(&file, "Firefox profile")?;
    let within = &root["profile"];
    let root = if within["threads"].is_array() { within } else { &root };
    let threads = root["threads"].as_array().filter(|threads| !threads.is_empty());
    let Some(threads) = threads else {
        let what = "it has no threads".to_owned();
        return Err(ReadError::Broken { format: "Firefox profile", what });
    };
    let first = weight_type(threads.iter().find(|one| one.is_object()).unwrap_or(&json::NULL));
    sink.set_values(vec![value_type(first)]);
    let mut progress = Progress::default();
    read_process(root, root, first, &mut progress, sink)?;
    // Firefox's own form has its other processes within.
    for process in root["processes"].items() {
        read_process(root, process, first, &mut progress, sink)?;
    }
    progress.names.say(sink)?;
    if progress.no_stacks > 0 {
        sink.note(format!("samples without a stack, left out: {}", progress.no_stacks));
    }
    progress.rounded.say(sink)
}

/// What was read so far.
#[derive(Default)]
struct Progress {
    /// The number of samples.
    record: u64,
    rounded: Rounded,
    names: Names,
    /// Samples without a stack, as the format allows them.
    no_stacks: u64,
}

fn weight_type<'v>(thread: &'v Value<'_>) -> &'v str {
    text(&thread["samples"]["weightType"])
}

fn value_type(weight_type: &str) -> ValueType {
    match weight_type {
        "tracing-ms" => ValueType::new("time", "nanoseconds"),
        _ => named_unit(weight_type),
    }
}

fn read_process(
    root: &Value<'_>,
    process: &Value<'_>,
    first: &str,
    progress: &mut Progress,
    sink: &mut Sink,
) -> Result<(), ReadError> {
    for (thread, number) in process["threads"].items().iter().zip(1..) {
        if let Some(process) = thread.as_str() {
            let process = json::parse(process, "Firefox profile")?;
            read_process(&process, &process, first, progress, sink)?;
            continue;
        }
        let place = Place::Record(progress.record + 1);
        let name = progress.names.of(&thread["name"], place);
        if !thread["samples"].is_object() {
            let reason = format!("thread {number} has no table of samples");
            sink.skip(place, &reason, thread.to_string().as_bytes())?;
            continue;
        }
        if value_type(weight_type(thread)) != value_type(first) {
            let what = format!("thread {name} is left out: its weights have another unit");
            sink.complain(place, &what)?;
            continue;
        }
        let id = |value: &Value<'_>| integer(value).and_then(|id| u32::try_from(id).ok());
        let process_name = text(&thread["processName"]);
        let task = sink.task(TaskName {
            name: name.as_bytes(),
            process: (!process_name.is_empty()).then_some(process_name.as_bytes()),
            pid: id(&thread["pid"]),
            tid: id(&thread["tid"]),
        });
        Thread::of(root, thread).add(task, progress, sink)?;
    }
    Ok(())
}

/// The tables of a thread.
struct Thread<'v> {
    samples: Table<'v>,
    weights: Option<&'v Value<'v>>,
    is_time: bool,
    stacks: Table<'v>,
    frames: Table<'v>,
    functions: Table<'v>,
    /// Libraries and other files of functions.
    resources: Table<'v>,
    /// The number of the category of the kernel's frames.
    kernel: Option<usize>,
    strings: &'v [Value<'v>],
}

impl<'v> Thread<'v> {
    fn of(root: &'v Value<'v>, thread: &'v Value<'v>) -> Thread<'v> {
        // Since version 56 of the format, tables may be shared by all threads.
        let shared = &root["shared"];
        let table = |name: &str| {
            let own = &thread[name];
            Table::of(if own.is_null() { &shared[name] } else { own })
        };
        let strings = [&thread["stringArray"], &thread["stringTable"], &shared["stringArray"]];
        let strings = strings.into_iter().find_map(|strings| strings.as_array());
        let categories = root["meta"]["categories"].as_array();
        let kernel =
            categories.and_then(|all| all.iter().position(|one| text(&one["name"]) == "Kernel"));
        Thread {
            samples: table("samples"),
            weights: thread["samples"].get("weight").filter(|weights| weights.is_array()),
            is_time: weight_type(thread) == "tracing-ms",
            stacks: table("stackTable"),
            frames: table("frameTable"),
            functions: table("funcTable"),
            resources: table("resourceTable"),
            kernel,
            strings: strings.unwrap_or_default(),
        }
    }

    fn add(
        &self,
        task: TaskIndex,
        progress: &mut Progress,
        sink: &mut Sink,
    ) -> Result<(), ReadError> {
        self.say_lengths(Place::Record(progress.record + 1), sink)?;
        let mut known: Vec<Option<FrameIndex>> = vec![None; self.frames.len()];
        let mut callers = Callers::default();
        let mut time = 0.0;
        for at in 0..self.samples.len() {
            progress.record += 1;
            let place = Place::Record(progress.record);
            let delta = number(self.samples.get(at, "timeDeltas")).unwrap_or_default();
            time = number(self.samples.get(at, "time")).unwrap_or(time + delta);
            let skip = |reason: &str, value: &Value<'_>, sink: &mut Sink| {
                sink.skip(place, reason, value.to_string().as_bytes())
            };
            if self.samples.is_short(at, "stack") {
                skip("the list of stacks ends before it", &json::NULL, sink)?;
                continue;
            }
            let stack = self.samples.get(at, "stack");
            if stack.is_null() {
                progress.no_stacks += 1;
                continue;
            }
            let Some(weight) = self.weight(at, &mut progress.rounded, place) else {
                let weights = self.weights.unwrap_or(&json::NULL);
                skip("its weight is missing or negative", &weights[at], sink)?;
                continue;
            };
            let weights = [weight];
            let time = Some(Nanos(whole(time, 1e6)));
            let sample = Sample { task: Some(task), time, ..Sample::new(&[], &weights) };
            let names = &mut progress.names;
            let entry =
                |at: usize, sink: &mut Sink| self.entry((at, place), &mut known, names, sink);
            let entries = self.stacks.len();
            let is_added = index(stack)
                .is_some_and(|stack| callers.add((stack, entries), entry, &sample, sink));
            if !is_added {
                skip("its stack is not in the file", stack, sink)?;
            }
        }
        let Some(missing) = self.samples.missing() else { return Ok(()) };
        let what = format!("samples that are not in their table, by its length: {missing}");
        sink.complain(Place::Record(progress.record + 1), &what)
    }

    /// Says which tables have more rows than they say.
    fn say_lengths(&self, place: Place, sink: &mut Sink) -> Result<(), ReadError> {
        let tables = [
            ("samples", &self.samples),
            ("stackTable", &self.stacks),
            ("frameTable", &self.frames),
            ("funcTable", &self.functions),
        ];
        for (name, rows) in tables.map(|(name, table)| (name, table.beyond_length())) {
            if rows > 0 {
                let what = format!("rows of {name} beyond the length that it says: {rows}");
                sink.complain(place, &format!("{what}; they are read all the same"))?;
            }
        }
        Ok(())
    }

    /// What a sample weighs; none if the others say that and it does not.
    fn weight(&self, at: usize, rounded: &mut Rounded, place: Place) -> Option<u64> {
        let Some(weights) = self.weights else { return Some(1) };
        if !self.is_time {
            return rounded.whole_of(&weights[at], place);
        }
        number(&weights[at]).filter(|weight| *weight >= 0.0).map(|weight| whole(weight, 1e6))
    }

    /// The frame of an entry of the table of stacks, and its caller.
    fn entry(
        &self,
        (at, place): (usize, Place),
        known: &mut [Option<FrameIndex>],
        names: &mut Names,
        sink: &mut Sink,
    ) -> Option<callers::Entry> {
        // Without its caller a stack would be another one.
        if at >= self.stacks.len() || self.stacks.is_short(at, "prefix") {
            return None;
        }
        let frame = index(self.stacks.get(at, "frame"))?;
        let slot = known.get_mut(frame)?;
        let found = match slot {
            Some(found) => *found,
            None => *slot.insert(self.frame(frame, (names, place), sink)),
        };
        let prefix = self.stacks.get(at, "prefix");
        let caller = index(prefix);
        (caller.is_some() || prefix.is_null()).then_some((Some(found), caller))
    }

    fn frame(
        &self,
        frame: usize,
        (names, place): (&mut Names, Place),
        sink: &mut Sink,
    ) -> FrameIndex {
        let depth = integer(self.frames.get(frame, "inlineDepth")).unwrap_or_default();
        let category = index(self.frames.get(frame, "category"));
        let kind = match depth {
            1.. => FrameKind::Inlined,
            _ if category.is_some() && category == self.kernel => FrameKind::Kernel,
            _ => FrameKind::User,
        };
        // Firefox's own form names frames by their location.
        let function = index(self.frames.get(frame, "func"));
        let string = match function {
            Some(function) => self.functions.get(function, "name"),
            None => self.frames.get(frame, "location"),
        };
        let name = self.string(string).unwrap_or_else(|| names.unknown(place));
        let is_address = name.strip_prefix("0x").is_some_and(|digits| is_hex(digits.as_bytes()));
        let library = function.filter(|_| is_address).and_then(|function| {
            let resource = index(self.functions.get(function, "resource"))?;
            let library = self.string(self.resources.get(resource, "name"));
            Some(library.unwrap_or_else(|| names.unknown(place)))
        });
        match library {
            Some(library) => sink.frame(format!("[{library}+{name}]").as_bytes(), kind),
            None => sink.frame(name.as_bytes(), kind),
        }
    }

    fn string(&self, at: &Value<'_>) -> Option<&'v str> {
        self.strings.get(index(at)?)?.as_str()
    }
}
