//! Instruments' recordings as XML: `xcrun xctrace export --input FILE.trace --xpath
//! '//table[@schema="time-profile"]'`.
//!
//! Each row of the table is a sample; those of `cpu-profile` weigh cycles. An element that was there before is only referred to: `<frame
//! ref="17"/>`.

use std::collections::HashMap;

use flame_profile::{FrameKind, ValueType};
use roxmltree::{Document, Node, ParsingOptions};

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::names::{rust_signs, without_arguments};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sample, Sink, TaskName};
use crate::skipped::Place;

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "xctrace",
    description: "Xcode Instruments as XML (xcrun xctrace export, time-profile)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        head.text().starts_with(b"<") && head.contains(b"<trace-query-result")
    },
    reader: Reader::Stacks(read),
};

/// No file is read beyond that.
const MAX_XML: u64 = 1 << 30;

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let bytes = input.bytes(MAX_XML)?;
    let broken = |what: String| ReadError::Broken { format: "xctrace file", what };
    let text = str::from_utf8(&bytes).map_err(|error| broken(error.to_string()))?;
    let options = ParsingOptions { allow_dtd: false, ..ParsingOptions::default() };
    let document =
        Document::parse_with_options(text, options).map_err(|error| broken(error.to_string()))?;
    let by_id: HashMap<&str, Node<'_, '_>> =
        document.descendants().filter_map(|node| Some((node.attribute("id")?, node))).collect();
    let find = |node| target(node, &by_id);
    let rows: Vec<_> = document.descendants().filter(|node| node.has_tag_name("row")).collect();
    // What rows weigh, by the first that says so.
    let weighs = |name: &&str| rows.iter().any(|row| child(*row, name).is_some());
    let weight_name = ["weight", "cycle-weight"].into_iter().find(weighs);
    sink.set_values(match weight_name {
        Some("weight") => vec![ValueType::new("cpu", "nanoseconds"), ValueType::samples()],
        Some(_) => vec![ValueType::new("cycles", "count"), ValueType::samples()],
        None => vec![ValueType::samples()],
    });
    for (at, row) in rows.into_iter().enumerate() {
        let task = child(row, "thread").and_then(find).and_then(|thread| {
            let name = thread.attribute("fmt")?;
            // `Main Thread 0x1a2b (server, pid: 4242)`
            let end = name.find(" 0x").unwrap_or(name.len());
            Some(sink.task(TaskName { name: name[..end].trim().as_bytes(), ..TaskName::default() }))
        });
        let stack = ["backtrace", "tagged-backtrace"].into_iter().find_map(|name| child(row, name));
        let weight = weight_name.and_then(|name| child(row, name)).and_then(find);
        // Rows of other tables have no stack, and weigh nothing.
        if stack.is_none() && weight.is_none() {
            continue;
        }
        // Samples without a stack have a `sentinel` in its place. A tagged one has the other within.
        let stack = stack.map(|stack| {
            find(stack).and_then(|stack| match child(stack, "backtrace") {
                Some(inner) => find(inner),
                None => Some(stack),
            })
        });
        let frames: Option<Vec<FrameIndex>> = stack.map_or(Some(Vec::new()), |stack| {
            let stack = stack?;
            let frames = stack.children().filter(|node| node.has_tag_name("frame"));
            let names =
                frames.map(|frame| Some(find(frame)?.attribute("name").unwrap_or("[unknown]")));
            names
                .map(|name| {
                    let name = rust_signs(without_arguments(name?.as_bytes()));
                    Some(sink.frame(&name, FrameKind::User))
                })
                .collect()
        });
        let Some(mut frames) = frames else {
            let reason = "it refers to something that is not in the file";
            sink.skip(Place::Record(at as u64 + 1), reason, b"")?;
            continue;
        };
        frames.reverse();
        let weight = weight.and_then(|weight| weight.text()?.trim().parse().ok());
        let weights = [weight.unwrap_or_default(), 1];
        let weights = if weight_name.is_some() { &weights[..] } else { &weights[1..] };
        sink.add(&Sample { task, ..Sample::new(&frames, weights) });
    }
    Ok(())
}

fn child<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|child| child.has_tag_name(name))
}

/// The element itself, or the one that it refers to.
fn target<'a, 'i>(node: Node<'a, 'i>, by_id: &HashMap<&str, Node<'a, 'i>>) -> Option<Node<'a, 'i>> {
    match node.attribute("ref") {
        Some(id) => by_id.get(id).copied(),
        None => Some(node),
    }
}
