//! FreeBSD's `pmcstat -G`: a tree of callers for each function.
//!
//! ```text
//! @ inst_retired.any [35705 samples]
//!
//! 20.86%  [7447]     zfs_lz4_compress @ /boot/kernel/zfs.ko
//!  100.0%  [7447]      zio_compress_data
//! ```
//!
//! Each blank at the start of a line is a level; a level further in stands for the caller. What a
//! line counts beyond its callers are stacks that end there.

use flame_profile::{FrameKind, ValueType};

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::names::{number, rfind};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sample, Sink};
use crate::skipped::Place;

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "pmcstat",
    description: "FreeBSD pmcstat -G call graphs",
    content: Content::Text,
    detect,
    reader: Reader::Stacks(read),
};

fn detect(head: &Head<'_>) -> bool {
    let is_event = |line: &[u8]| event(line).is_some();
    head.lines().filter(|line| !line.is_empty()).take(16).any(is_event)
}

/// `@ inst_retired.any [35705 samples]`
fn event(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"@ ")?.strip_suffix(b" samples]")?;
    let at = rfind(rest, b" [")?;
    number::<u64>(&rest[at + 2..]).map(|_| &rest[..at])
}

/// A line of the tree.
struct Node {
    depth: usize,
    /// What it counts beyond its callers so far.
    count: u64,
}

/// Level, count, function and module of a line.
fn node(line: &[u8]) -> Option<(usize, u64, &[u8], &[u8])> {
    let depth = line.iter().position(|byte| *byte != b' ')?;
    let text = &line[depth..];
    let (share, rest) = text.split_at(memchr::memchr(b'%', text)?);
    let is_share = share.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let rest = rest[1..].trim_ascii_start().strip_prefix(b"[")?;
    let (count, rest) = rest.split_at(memchr::memchr(b']', rest)?);
    let name = rest[1..].trim_ascii();
    let (name, module) = match memchr::memmem::find(name, b" @ ") {
        Some(at) => (&name[..at], &name[at + 3..]),
        None => (name, &b""[..]),
    };
    let count = number(count.trim_ascii())?;
    (is_share && !name.is_empty()).then_some((depth, count, name, module))
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    let mut reader = Tree::default();
    let mut is_named = false;
    while let Some(line) = lines.next_line()? {
        let text = line.text.trim_ascii_end();
        if let Some(event) = event(text) {
            reader.close(0, sink);
            if !is_named {
                let name = String::from_utf8_lossy(event).into_owned();
                sink.set_values(vec![ValueType::new(name, "count")]);
                is_named = true;
            } else {
                sink.note("several events are added up; pmcstat -G for one of them separates them");
            }
        } else if let Some((depth, count, name, module)) = node(text) {
            reader
                .add(depth, count, name, module, sink)
                .map_or(Ok(()), |reason| sink.skip(Place::Line(line.number), reason, text))?;
        } else if !text.is_empty() && !text.starts_with(b"#") && !text.starts_with(b"//") {
            sink.skip(Place::Line(line.number), "it is not a line of a call graph", text)?;
        }
    }
    reader.close(0, sink);
    Ok(())
}

/// The path to the current line: the function, its caller, and so on.
#[derive(Default)]
struct Tree {
    nodes: Vec<Node>,
    stack: Vec<FrameIndex>,
    /// The module of the line before, which those without one share.
    is_kernel: bool,
}

impl Tree {
    /// Adds a line; returns what is wrong with it.
    fn add(
        &mut self,
        depth: usize,
        count: u64,
        name: &[u8],
        module: &[u8],
        sink: &mut Sink,
    ) -> Option<&'static str> {
        self.close(depth, sink);
        if depth > self.nodes.last().map_or(0, |node| node.depth + 1) {
            return Some("the lines that it belongs to are missing");
        }
        if let Some(callee) = self.nodes.last_mut() {
            callee.count = callee.count.saturating_sub(count);
        }
        if !module.is_empty() {
            self.is_kernel = module.starts_with(b"/boot/") || module.ends_with(b".ko");
        }
        let kind = if self.is_kernel { FrameKind::Kernel } else { FrameKind::User };
        self.stack.push(sink.frame(name, kind));
        self.nodes.push(Node { depth, count });
        None
    }

    /// Ends all lines from a level on.
    fn close(&mut self, depth: usize, sink: &mut Sink) {
        while let Some(node) = self.nodes.pop_if(|node| node.depth >= depth) {
            let outermost_first: Vec<FrameIndex> = self.stack.iter().rev().copied().collect();
            sink.add(&Sample::new(&outermost_first, &[node.count]));
            self.stack.pop();
        }
    }
}
