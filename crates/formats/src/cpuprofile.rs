//! V8's CPU profiles: `node --cpu-prof`, Chrome's and VS Code's profilers.
//!
//! A tree of nodes, each a function with its caller, the nodes that were sampled and the
//! microseconds between them; older files have a tree of heads with hit counts, the times of the samples in
//! microseconds, and the profile's in seconds. Profiles of the heap (`node --heap-prof`) have such a tree with the
//! bytes that a function holds.

use flame_profile::{FrameKind, Nanos, ValueType};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::ReadError;
use crate::callers::Callers;
use crate::head::Head;
use crate::input::Input;
use crate::json::{Document, Value, count, integer, number, text, whole};
use crate::odd::{Names, Odd};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sample, Sink, TaskIndex};
use crate::skipped::Place;

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "cpuprofile",
    description: "V8 CPU and heap profiles (node --cpu-prof, --heap-prof, .cpuprofile)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        let has = |part: &[u8]| head.contains(part);
        let is_profile = has(b"\"callFrame\"") || (has(b"\"head\"") && has(b"\"functionName\""));
        head.is_json() && is_profile && !has(b"\"traceEvents\"") && !has(b"\"ph\"")
    },
    reader: Reader::Stacks(read),
};

/// A function of the tree with its caller.
struct Node {
    id: i64,
    frame: Option<FrameIndex>,
    parent: Option<usize>,
    hits: u64,
}

/// The functions of a profile, and what is odd about them.
#[derive(Default)]
struct Tree {
    nodes: Vec<Node>,
    names: Names,
    /// Numbers of hits that cannot be right.
    hits: Odd,
    /// Nodes with several callers, of which one stays, and those whose caller is not there.
    callers: Odd,
    orphans: Odd,
    /// Nodes that call one that is not there.
    without_callee: Odd,
}

/// The parts of a profile, which may be in several places of a file.
#[derive(Debug, Default)]
pub(crate) struct Parts<'v> {
    /// A list of nodes, or the outermost one with the others within.
    pub(crate) nodes: Vec<&'v Value<'v>>,
    pub(crate) head: Option<&'v Value<'v>>,
    pub(crate) samples: Vec<&'v Value<'v>>,
    /// The microseconds from the sample before, or from the start; none where there is no number.
    pub(crate) deltas: Vec<Option<i64>>,
    /// In microseconds.
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
}

impl<'v> Parts<'v> {
    pub(crate) fn of(root: &'v Value<'v>) -> Parts<'v> {
        Parts {
            nodes: root["nodes"].items().iter().collect(),
            head: Some(&root["head"]).filter(|head| head.is_object() && !root["nodes"].is_array()),
            samples: root["samples"].items().iter().collect(),
            deltas: root["timeDeltas"].items().iter().map(integer).collect(),
            start: integer(&root["startTime"]),
            end: integer(&root["endTime"]),
        }
    }

    /// Whether it is said how long each sample lasted.
    pub(crate) fn has_times(&self) -> bool {
        !self.samples.is_empty() && self.samples.len() == self.deltas.len()
    }

    /// Says that there are times, but not as many as samples.
    pub(crate) fn say_lengths(&self, sink: &mut Sink) -> Result<(), ReadError> {
        let (samples, deltas) = (self.samples.len(), self.deltas.len());
        if deltas == 0 || samples == deltas {
            return Ok(());
        }
        let what =
            format!("{samples} samples have {deltas} times: they are counted, without times");
        sink.complain(Place::Record(samples.min(deltas) as u64 + 1), &what)
    }

    /// Says which times cannot be right.
    fn say_deltas(&self, sink: &mut Sink) -> Result<(), ReadError> {
        let length = self.start.zip(self.end).map(|(start, end)| end.saturating_sub(start));
        if length.is_some_and(|length| length < 0) {
            sink.complain(Place::Record(1), "the profile ends before it starts")?;
        }
        let longest = length.filter(|length| *length > 0).unwrap_or(i64::MAX / 1000);
        let (mut negative, mut large) = ((0, 0), (0, 0));
        for (delta, at) in self.deltas.iter().zip(1..) {
            let found = match delta {
                Some(delta) if *delta < 0 => &mut negative,
                Some(delta) if *delta <= longest => continue,
                _ => &mut large,
            };
            *found = (if found.1 == 0 { at } else { found.0 }, found.1 + 1);
        }
        if negative.1 > 0 {
            let what = format!("times that are negative: {}; they count as 0", negative.1);
            sink.complain(Place::Record(negative.0), &what)?;
        }
        if large.1 > 0 {
            let what = format!("times that are no number or longer than the profile: {}", large.1);
            sink.complain(Place::Record(large.0), &what)?;
        }
        Ok(())
    }
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let file = Document::read(input)?;
    let root = file.root(&["nodes", "samples", "timeDeltas", "timestamps"]);
    let head = Some(&root["head"]).filter(|head| head.is_object() && !root["nodes"].is_array());
    if !root["nodes"].is_array() && head.is_none() {
        return Err(file.without("CPU profile", "nodes and no head"));
    }
    let list = |name: &str| file.elements(&root[name]).collect::<Vec<Value<'_>>>();
    let (nodes, samples) = (list("nodes"), list("samples"));
    if file.is_cut() && samples.is_empty() {
        // A part of the functions is not a part of the time: others may have most of it.
        return Err(file.without("CPU profile", "samples"));
    }
    let (start, end) = (time(&root["startTime"], head), time(&root["endTime"], head));
    let mut parts = Parts {
        nodes: nodes.iter().collect(),
        head,
        samples: samples.iter().collect(),
        deltas: deltas(&file, &root, start),
        start,
        end,
    };
    let is_heap = !root["head"]["selfSize"].is_null();
    if is_heap {
        // They are of allocations, and have no times.
        (parts.samples, parts.deltas) = (Vec::new(), Vec::new());
    }
    let has_times = parts.has_times();
    sink.set_values(match is_heap {
        true => vec![ValueType::new("heap", "bytes")],
        false => values(has_times),
    });
    if !file.is_cut() {
        parts.say_lengths(sink)?;
    }
    add_profile(&parts, None, has_times, sink)?;
    if file.is_cut() && !has_times && !is_heap {
        sink.note("the times of its samples are missing: they are counted");
    }
    file.say_cut(sink)
}

/// When a profile starts or ends, in microseconds: those with a tree of heads have seconds.
fn time(value: &Value<'_>, head: Option<&Value<'_>>) -> Option<i64> {
    match head {
        Some(_) => i64::try_from(whole(number(value)?, 1e6)).ok(),
        None => integer(value),
    }
}

/// The microseconds between samples, which older files have the times of.
fn deltas(file: &Document, root: &Value<'_>, start: Option<i64>) -> Vec<Option<i64>> {
    if root["timestamps"].is_null() {
        return file.elements(&root["timeDeltas"]).map(|delta| integer(&delta)).collect();
    }
    let mut before = start;
    let times = file.elements(&root["timestamps"]).map(|time| integer(&time));
    // Without a start, the first sample is it.
    times.map(|time| Some(time?.saturating_sub(before.replace(time?).unwrap_or(time?)))).collect()
}

/// What the samples of profiles weigh.
pub(crate) fn values(has_times: bool) -> Vec<ValueType> {
    let mut values = vec![ValueType::samples()];
    values.extend(has_times.then(|| ValueType::new("time", "nanoseconds")));
    values
}

/// Adds a profile's samples, which are of a thread.
pub(crate) fn add_profile(
    parts: &Parts<'_>,
    task: Option<TaskIndex>,
    has_times: bool,
    sink: &mut Sink,
) -> Result<(), ReadError> {
    let tree = match parts.head {
        Some(head) => Tree::nested(head, sink),
        None => Tree::flat(&parts.nodes, sink),
    };
    tree.say(sink)?;
    let nodes = &tree.nodes;
    if parts.head.is_none() || !parts.samples.is_empty() {
        say_ids(nodes, sink)?;
    }
    if has_times {
        parts.say_deltas(sink)?;
    }
    if !parts.samples.is_empty() {
        return add_samples(parts, nodes, (task, has_times), sink);
    }
    tree.hits.say("weights that are no number or negative", "they count as 0", sink)?;
    let mut callers = Callers::default();
    for at in 0..nodes.len() {
        let weights = [nodes[at].hits, 0];
        let weights = if has_times { &weights[..] } else { &weights[..1] };
        let at = (at, Place::Record(at as u64 + 1));
        if weights[0] > 0 {
            add(nodes, at, &mut callers, &Sample { task, ..Sample::new(&[], weights) }, sink)?;
        }
    }
    Ok(())
}

/// Says that nodes have the id of another: which of them is meant is not known.
fn say_ids(nodes: &[Node], sink: &mut Sink) -> Result<(), ReadError> {
    let mut known = FxHashSet::default();
    let mut again = nodes.iter().zip(1..).filter(|(node, _)| !known.insert(node.id));
    let Some((_, first)) = again.next() else { return Ok(()) };
    let count = again.count() + 1;
    let what =
        format!("nodes with the id of another one: {count}; samples are of the last of them");
    sink.complain(Place::Record(first), &what)
}

impl Tree {
    fn flat(list: &[&Value<'_>], sink: &mut Sink) -> Tree {
        let mut tree = Tree::default();
        let mut by_id: FxHashMap<i64, usize> = FxHashMap::default();
        for value in list {
            let id = integer(&value["id"]).unwrap_or_default();
            by_id.insert(id, tree.nodes.len());
            tree.push(id, (&value["callFrame"], 1), &value["hitCount"], sink);
        }
        for (at, value) in list.iter().enumerate() {
            for child in value["children"].items() {
                match integer(child).and_then(|id| by_id.get(&id)) {
                    Some(child) => tree.set_caller(*child, at),
                    None => tree.without_callee.add(place_of(at)),
                }
            }
            let parent = &value["parent"];
            match integer(parent).and_then(|id| by_id.get(&id)) {
                Some(parent) => tree.set_caller(at, *parent),
                None if !parent.is_null() => tree.orphans.add(place_of(at)),
                None => {}
            }
        }
        tree
    }

    /// The nodes of a tree, which may be deeper than a thread's own stack is.
    fn nested(head: &Value<'_>, sink: &mut Sink) -> Tree {
        let (mut tree, mut left) = (Tree::default(), vec![(None, head)]);
        while let Some((parent, value)) = left.pop() {
            let at = tree.nodes.len();
            let id = integer(&value["id"]).unwrap_or_default();
            // Of old, a node was its function, and lines counted from 1.
            let call = &value["callFrame"];
            let call = if call.is_object() { (call, 1) } else { (value, 0) };
            let size = &value["selfSize"];
            let weight = if size.is_null() { &value["hitCount"] } else { size };
            tree.push(id, call, weight, sink);
            tree.nodes[at].parent = parent;
            left.extend(value["children"].items().iter().rev().map(|child| (Some(at), child)));
        }
        tree
    }

    /// Adds a node of a function, whose lines count from 1 when `first_line` is added.
    fn push(
        &mut self,
        id: i64,
        (call, first_line): (&Value<'_>, i64),
        hits: &Value<'_>,
        sink: &mut Sink,
    ) {
        let place = place_of(self.nodes.len());
        let function = match call["functionName"].as_str() {
            Some("") => "(anonymous)",
            _ => self.names.of(&call["functionName"], place),
        };
        let url = text(&call["url"]);
        let line = integer(&call["lineNumber"]).filter(|line| *line >= 0);
        let name = match (url, line) {
            ("", _) => function.to_owned(),
            (url, Some(line)) => {
                format!("{function} ({}:{})", file(url), line.saturating_add(first_line))
            }
            (url, None) => format!("{function} ({})", file(url)),
        };
        // `(root)` is not a function: it stands above everything.
        let frame = (function != "(root)").then(|| sink.frame(name.as_bytes(), FrameKind::User));
        let count = count(hits);
        if count.is_none() && !hits.is_null() {
            self.hits.add(place);
        }
        self.nodes.push(Node { id, frame, parent: None, hits: count.unwrap_or_default() });
    }

    fn set_caller(&mut self, node: usize, caller: usize) {
        if self.nodes[node].parent.replace(caller).is_some_and(|before| before != caller) {
            self.callers.add(place_of(node));
        }
    }

    /// Says what is odd of nodes whether they have weights or samples.
    fn say(&self, sink: &mut Sink) -> Result<(), ReadError> {
        self.names.say(sink)?;
        let what = "nodes that are called by several others";
        self.callers.say(what, "the last of these counts as the caller", sink)?;
        let what = "nodes whose caller is not in the file";
        self.orphans.say(what, "stacks begin with them", sink)?;
        self.without_callee.say(
            "nodes that call one that is not in the file",
            "it is left out",
            sink,
        )
    }
}

/// Where a node stands in the file.
fn place_of(node: usize) -> Place {
    Place::Record(node as u64 + 1)
}

/// A file without the parts that all files of a program share.
fn file(url: &str) -> &str {
    url.strip_prefix("file://").unwrap_or(url)
}

/// Adds a sample of a node, unless its parents go round.
fn add(
    nodes: &[Node],
    (at, place): (usize, Place),
    callers: &mut Callers,
    sample: &Sample<'_>,
    sink: &mut Sink,
) -> Result<(), ReadError> {
    let entry = |at: usize, _: &mut Sink| nodes.get(at).map(|node| (node.frame, node.parent));
    match callers.add((at, nodes.len()), entry, sample, sink) {
        true => Ok(()),
        false => sink.skip(place, "the callers of its node go round", &[]),
    }
}

fn add_samples(
    parts: &Parts<'_>,
    nodes: &[Node],
    (task, has_times): (Option<TaskIndex>, bool),
    sink: &mut Sink,
) -> Result<(), ReadError> {
    let by_id: FxHashMap<i64, usize> =
        nodes.iter().enumerate().map(|(at, node)| (node.id, at)).collect();
    let mut callers = Callers::default();
    let delta = |at: usize| parts.deltas.get(at).copied().flatten();
    let mut time = parts.start.unwrap_or_default();
    for (at, id) in parts.samples.iter().enumerate() {
        time = time.saturating_add(delta(at).unwrap_or_default());
        let Some(node) = integer(id).and_then(|id| by_id.get(&id)) else {
            let reason = "its node is not in the file";
            sink.skip(Place::Record(at as u64 + 1), reason, id.to_string().as_bytes())?;
            continue;
        };
        // A sample stands for the time until the next one.
        let until = delta(at + 1).or_else(|| parts.end.map(|end| end.saturating_sub(time)));
        let micros = u64::try_from(until.unwrap_or_default()).unwrap_or_default();
        let weights = [1, micros.saturating_mul(1000)];
        let weights = if has_times { &weights[..] } else { &weights[..1] };
        let time = u64::try_from(time).ok().map(|micros| Nanos(micros.saturating_mul(1000)));
        let sample = Sample { task, time, ..Sample::new(&[], weights) };
        add(nodes, (*node, Place::Record(at as u64 + 1)), &mut callers, &sample, sink)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use crate::{InputContent, ReadOptions, Source, read_input};

    #[test]
    fn nodes_take_no_more_room_the_deeper_they_are() {
        const DEPTH: usize = 20_000;
        let mut text = "{\"nodes\":[".to_owned();
        for id in 1..=DEPTH {
            let (comma, child) = if id < DEPTH { (",", id + 1) } else { ("", 0) };
            let call = format!("{{\"functionName\":\"f{id}\",\"url\":\"\",\"lineNumber\":1}}");
            let node =
                format!("{{\"id\":{id},\"callFrame\":{call},\"children\":[{child}]}}{comma}");
            text.write_str(&node).unwrap();
        }
        let all = |of: &dyn Fn(usize) -> usize| {
            (1..=DEPTH).map(|id| of(id).to_string()).collect::<Vec<_>>().join(",")
        };
        let (samples, deltas) = (all(&|id| id), all(&|_| 5));
        text += &format!("],\"samples\":[{samples}],\"timeDeltas\":[{deltas}]}}");
        let read = read_input(Source::of_bytes(text.into()).unwrap(), &ReadOptions::default());
        let InputContent::Stacks(stacks) = read.unwrap().content else { panic!("no stacks") };
        assert_eq!((stacks.len(), stacks.nested.iter().count()), (0, DEPTH));
        assert_eq!(stacks.to_profile().total(0).0, DEPTH as u64);
    }
}
