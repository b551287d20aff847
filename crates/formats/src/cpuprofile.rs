//! V8's CPU profiles: `node --cpu-prof`, Chrome's and VS Code's profilers.
//!
//! A tree of nodes, each a function with its caller, the nodes that were sampled and the
//! microseconds between them; older files have a tree of heads with hit counts.

use flame_profile::{FrameKind, Nanos, ValueType};
use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::json::{self, count, integer, text};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sample, Sink};
use crate::skipped::Place;

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "cpuprofile",
    description: "V8 CPU profiles (node --cpu-prof, .cpuprofile)",
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
    let mut nodes = Vec::new();
    if let Some(list) = root["nodes"].as_array() {
        flat_nodes(list, &mut nodes, sink);
    } else if root["head"].is_object() {
        nested_nodes(&root["head"], None, &mut nodes, sink);
    } else {
        let what = "it has neither nodes nor a head".to_owned();
        return Err(ReadError::Broken { format: "CPU profile", what });
    }
    let samples = root["samples"].as_array().filter(|samples| !samples.is_empty());
    match (samples, root["timeDeltas"].as_array()) {
        (Some(samples), deltas) => add_samples(&root, samples, deltas, &nodes, sink),
        (None, _) => {
            for at in 0..nodes.len() {
                let stack = stack(&nodes, at);
                sink.add(&Sample::new(&stack, &[nodes[at].hits]));
            }
            Ok(())
        }
    }
}

fn flat_nodes(list: &[Value], nodes: &mut Vec<Node>, sink: &mut Sink) {
    let mut by_id: FxHashMap<i64, usize> = FxHashMap::default();
    for value in list {
        let id = integer(&value["id"]).unwrap_or_default();
        by_id.insert(id, nodes.len());
        nodes.push(node(id, &value["callFrame"], &value["hitCount"], sink));
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
    nodes.push(Node { parent, ..node(id, value, &value["hitCount"], sink) });
    for child in value["children"].as_array().map(Vec::as_slice).unwrap_or_default() {
        nested_nodes(child, Some(at), nodes, sink);
    }
}

fn node(id: i64, call: &Value, hits: &Value, sink: &mut Sink) -> Node {
    let function = text(&call["functionName"]);
    let function = if function.is_empty() { "(anonymous)" } else { function };
    let url = text(&call["url"]);
    let line = integer(&call["lineNumber"]).filter(|line| *line >= 0);
    let name = match (url, line) {
        ("", _) => function.to_owned(),
        (url, Some(line)) => format!("{function} ({}:{})", file(url), line + 1),
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
    deltas: Option<&Vec<Value>>,
    nodes: &[Node],
    sink: &mut Sink,
) -> Result<(), ReadError> {
    let mut types = vec![ValueType::samples()];
    let has_times = deltas.is_some_and(|deltas| deltas.len() == samples.len());
    if has_times {
        types.push(ValueType::new("time", "nanoseconds"));
    }
    sink.set_values(types);
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
        sink.add(&Sample { time, ..Sample::new(stack, weights) });
    }
    Ok(())
}
