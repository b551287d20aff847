//! V8's CPU profiles: `node --cpu-prof`, Chrome's and VS Code's profilers.
//!
//! A tree of nodes, each a function with its caller, the nodes that were sampled and the
//! microseconds between them; older files have a tree of heads with hit counts. Profiles of the heap
//! (`node --heap-prof`) have such a tree with the bytes that a function holds.

use flame_profile::{FrameKind, Nanos, ValueType};
use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::json::{self, count, integer, text};
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

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let root = json::parse(input, "CPU profile")?;
    let is_heap = !root["head"]["selfSize"].is_null();
    let has_times = !is_heap && has_times(&root);
    sink.set_values(match is_heap {
        true => vec![ValueType::new("heap", "bytes")],
        false => values(has_times),
    });
    add_profile(&root, None, has_times, sink)
}

/// Whether it is said how long each sample of a profile lasted.
pub(crate) fn has_times(root: &Value) -> bool {
    let len = |name: &str| root[name].as_array().map(Vec::len).filter(|len| *len > 0);
    len("samples").is_some() && len("samples") == len("timeDeltas")
}

/// What the samples of profiles weigh.
pub(crate) fn values(has_times: bool) -> Vec<ValueType> {
    let mut values = vec![ValueType::samples()];
    values.extend(has_times.then(|| ValueType::new("time", "nanoseconds")));
    values
}

/// Adds a profile's samples, which are of a thread.
pub(crate) fn add_profile(
    root: &Value,
    task: Option<TaskIndex>,
    has_times: bool,
    sink: &mut Sink,
) -> Result<(), ReadError> {
    let mut nodes = Vec::new();
    if let Some(list) = root["nodes"].as_array() {
        flat_nodes(list, &mut nodes, sink);
    } else if root["head"].is_object() {
        nested_nodes(&root["head"], None, &mut nodes, sink);
    } else {
        let what = "it has neither nodes nor a head".to_owned();
        return Err(ReadError::Broken { format: "CPU profile", what });
    }
    let is_heap = !root["head"]["selfSize"].is_null();
    let samples = root["samples"].as_array().filter(|samples| !samples.is_empty() && !is_heap);
    let Some(samples) = samples else {
        for at in 0..nodes.len() {
            let (stack, weights) = (stack(&nodes, at), [nodes[at].hits, 0]);
            let weights = if has_times { &weights[..] } else { &weights[..1] };
            sink.add(&Sample { task, ..Sample::new(&stack, weights) });
        }
        return Ok(());
    };
    add_samples(root, samples, &nodes, (task, has_times), sink)
}

fn flat_nodes(list: &[Value], nodes: &mut Vec<Node>, sink: &mut Sink) {
    let mut by_id: FxHashMap<i64, usize> = FxHashMap::default();
    for value in list {
        let id = integer(&value["id"]).unwrap_or_default();
        by_id.insert(id, nodes.len());
        nodes.push(node(id, (&value["callFrame"], 1), &value["hitCount"], sink));
    }
    for (at, value) in list.iter().enumerate() {
        let children = value["children"].as_array().map(Vec::as_slice).unwrap_or_default();
        for child in children.iter().filter_map(|id| by_id.get(&integer(id)?)) {
            nodes[*child].parent = Some(at);
        }
        let parent = integer(&value["parent"]).and_then(|id| by_id.get(&id));
        if let Some(parent) = parent {
            nodes[at].parent = Some(*parent);
        }
    }
}

fn nested_nodes(value: &Value, parent: Option<usize>, nodes: &mut Vec<Node>, sink: &mut Sink) {
    let at = nodes.len();
    let id = integer(&value["id"]).unwrap_or_default();
    // Of old, a node was its function, and lines counted from 1.
    let call = &value["callFrame"];
    let call = if call.is_object() { (call, 1) } else { (value, 0) };
    let weight = if value["selfSize"].is_null() { &value["hitCount"] } else { &value["selfSize"] };
    nodes.push(Node { parent, ..node(id, call, weight, sink) });
    for child in value["children"].as_array().map(Vec::as_slice).unwrap_or_default() {
        nested_nodes(child, Some(at), nodes, sink);
    }
}

/// A node of a function, whose lines count from 1 when `first_line` is added.
fn node(id: i64, (call, first_line): (&Value, i64), hits: &Value, sink: &mut Sink) -> Node {
    let function = text(&call["functionName"]);
    let function = if function.is_empty() { "(anonymous)" } else { function };
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
    let hits = count(hits).unwrap_or_default();
    Node { id, frame, parent: None, hits }
}

/// A file without the parts that all files of a program share.
fn file(url: &str) -> &str {
    url.strip_prefix("file://").unwrap_or(url)
}

/// The frames of a node, outermost first.
fn stack(nodes: &[Node], at: usize) -> Vec<FrameIndex> {
    let mut stack = Vec::new();
    let mut next = Some(at);
    // A loop among broken parents ends after as many steps as there are nodes.
    for _ in 0..nodes.len() {
        let Some(at) = next else { break };
        stack.extend(nodes[at].frame);
        next = nodes[at].parent;
    }
    stack.reverse();
    stack
}

fn add_samples(
    root: &Value,
    samples: &[Value],
    nodes: &[Node],
    (task, has_times): (Option<TaskIndex>, bool),
    sink: &mut Sink,
) -> Result<(), ReadError> {
    let deltas = root["timeDeltas"].as_array();
    let by_id: FxHashMap<i64, usize> =
        nodes.iter().enumerate().map(|(at, node)| (node.id, at)).collect();
    let mut stacks: FxHashMap<usize, Vec<FrameIndex>> = FxHashMap::default();
    let start = integer(&root["startTime"]).unwrap_or_default();
    let end = integer(&root["endTime"]);
    let delta = |at: usize| deltas.and_then(|deltas| integer(deltas.get(at)?));
    let mut time = start;
    for (at, id) in samples.iter().enumerate() {
        time = time.saturating_add(delta(at).unwrap_or_default());
        let Some(node) = integer(id).and_then(|id| by_id.get(&id)) else {
            let reason = "its node is not in the file";
            sink.skip(Place::Record(at as u64 + 1), reason, id.to_string().as_bytes())?;
            continue;
        };
        let stack = stacks.entry(*node).or_insert_with(|| stack(nodes, *node));
        // A sample stands for the time until the next one.
        let until = delta(at + 1).or_else(|| end.map(|end| end.saturating_sub(time)));
        let micros = u64::try_from(until.unwrap_or_default()).unwrap_or_default();
        let weights = [1, micros.saturating_mul(1000)];
        let weights = if has_times { &weights[..] } else { &weights[..1] };
        let time = u64::try_from(time).ok().map(|micros| Nanos(micros.saturating_mul(1000)));
        sink.add(&Sample { task, time, ..Sample::new(stack, weights) });
    }
    Ok(())
}
