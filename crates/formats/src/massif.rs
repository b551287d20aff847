//! Valgrind's massif: the heap at its peak, by who allocated it.
//!
//! ```text
//! snapshot=12
//! ...
//! heap_tree=peak
//! n2: 20000 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
//!  n0: 16000 0x10915E: parse (parse.c:12)
//!  n0: 4000 in 3 places, all below massif's threshold (1.00%)
//! ```
//!
//! Callers stand below what they call. Without a peak the last tree is taken.

use flame_profile::{FrameKind, ValueType};

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::names::{is_hex, number, rfind, without_arguments};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::Sink;
use crate::tree::{TopRow, TreeRows, Weights};

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "massif",
    description: "Valgrind's heap profiles (massif.out.*)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        head.contains(b"\ntime_unit:")
            && head.contains(b"\nsnapshot=")
            && head.contains(b"\nmem_heap_B=")
    },
    reader: Reader::Stacks(read),
};

/// A tree's rows: depth, bytes, name.
type Rows = Vec<(usize, u64, Vec<u8>)>;

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    sink.set_values(vec![ValueType::new("heap", "bytes")]);
    let mut lines = input.lines();
    let mut chosen: Rows = Vec::new();
    let mut chosen_is_peak = false;
    let mut tree: Option<(bool, Rows)> = None;
    while let Some(line) = lines.next_line()? {
        if let Some(kind) = line.text.strip_prefix(b"heap_tree=") {
            tree = (kind != b"empty").then(|| (kind == b"peak", Vec::new()));
            continue;
        }
        if line.text.starts_with(b"#") {
            if let Some((is_peak, rows)) = tree.take()
                && (is_peak || !chosen_is_peak)
            {
                (chosen, chosen_is_peak) = (rows, is_peak);
            }
            continue;
        }
        if let (Some((_, rows)), Some(found)) = (&mut tree, row(line.text)) {
            rows.push(found);
        }
    }
    if let Some((is_peak, rows)) = tree
        && (is_peak || !chosen_is_peak)
    {
        chosen = rows;
    }
    // The first row is massif's own sum of all.
    let mut below = TreeRows::new(Weights::WithRowsBelow, TopRow::Innermost);
    for (depth, bytes, name) in chosen.into_iter().filter(|(depth, ..)| *depth > 0) {
        let frame = sink.frame(&name, FrameKind::User);
        below.push(sink, depth, frame, &[bytes]);
    }
    below.finish(sink);
    Ok(())
}

/// ` n0: 16000 0x10915E: parse (parse.c:12)`
fn row(line: &[u8]) -> Option<(usize, u64, Vec<u8>)> {
    let text = line.trim_ascii_start();
    let depth = line.len() - text.len();
    let colon = memchr::memmem::find(text, b": ")?;
    let _children: u64 = number(text[..colon].strip_prefix(b"n")?)?;
    let rest = &text[colon + 2..];
    let end = memchr::memchr(b' ', rest)?;
    let bytes = number(&rest[..end])?;
    let place = rest[end..].trim_ascii();
    let name = match place.strip_prefix(b"0x").and_then(|hex| {
        let colon = memchr::memmem::find(hex, b": ")?;
        is_hex(&hex[..colon]).then(|| &hex[colon + 2..])
    }) {
        Some(function) => {
            // `parse (parse.c:12)` or `parse (in /usr/bin/server)`; arguments stand before it.
            let end = rfind(function, b" (").unwrap_or(function.len());
            let name = without_arguments(&function[..end]);
            if name == b"???" { b"[unknown]".to_vec() } else { name.to_vec() }
        }
        None if place.starts_with(b"in ") => b"[below massif's threshold]".to_vec(),
        None => place.to_vec(),
    };
    Some((depth, bytes, name))
}
