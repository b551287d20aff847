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
//! Callers stand below what they call. Without a peak, or a heap at the peak (`--stacks=yes`), the last tree is
//! taken.

use flame_profile::{FrameKind, ValueType};

use crate::ReadError;
use crate::foreign::begins_folded;
use crate::head::Head;
use crate::input::Input;
use crate::names::{is_hex, number, rfind, without_arguments};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::Sink;
use crate::skipped::Place;
use crate::tree::{TopRow, TreeRows, Weights};

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "massif",
    description: "Valgrind's heap profiles (massif.out.*)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        head.contains(b"\ntime_unit:")
            && head.contains(b"\nsnapshot=")
            && head.contains(b"\nmem_heap_B=")
            && !begins_folded(head)
    },
    reader: Reader::Stacks(read),
};

/// The tree of a snapshot.
#[derive(Default)]
struct Tree {
    is_peak: bool,
    /// What the threads' stacks took then (`--stacks=yes`), in bytes: massif counts them without functions.
    stacks: u64,
    /// Depth, bytes, name.
    rows: Vec<(usize, u64, Vec<u8>)>,
}

impl Tree {
    /// The first row is massif's own sum of all.
    fn has_heap(&self) -> bool {
        self.rows.iter().any(|(_, bytes, _)| *bytes > 0)
    }

    /// Whether it is shown rather than another that stands before it: the peak, if there is a heap then;
    /// else the last one.
    fn comes_before(&self, other: &Tree) -> bool {
        self.has_heap() && (self.is_peak || !(other.is_peak && other.has_heap()))
    }
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    sink.set_values(vec![ValueType::new("heap", "bytes")]);
    let mut lines = input.lines();
    let mut chosen = Tree::default();
    let (mut peak_stacks, mut stacks) = (None, 0);
    let mut tree: Option<Tree> = None;
    let mut end = |tree: &mut Option<Tree>| {
        let Some(tree) = tree.take() else { return };
        if tree.is_peak {
            peak_stacks = Some(tree.stacks).filter(|_| !tree.has_heap());
        }
        if tree.comes_before(&chosen) {
            chosen = tree;
        }
    };
    while let Some(line) = lines.next_line()? {
        if let Some(kind) = line.text.strip_prefix(b"heap_tree=") {
            let rows = Vec::new();
            tree = (kind != b"empty").then(|| Tree { is_peak: kind == b"peak", stacks, rows });
        } else if line.text.starts_with(b"#-") {
            end(&mut tree);
        } else if let Some(bytes) = line.text.strip_prefix(b"mem_stacks_B=") {
            stacks = number(bytes.trim_ascii()).unwrap_or_default();
        } else if let (Some(tree), Some(found)) = (&mut tree, row(line.text)) {
            tree.rows.push(found);
        } else if !is_known(line.text) {
            let reason = "it is no line of massif's";
            sink.skip(Place::Line(line.number), reason, line.text)?;
        }
    }
    end(&mut tree);
    say_stacks(&chosen, peak_stacks, sink);
    let mut below = TreeRows::new(Weights::WithRowsBelow, TopRow::Innermost);
    for (depth, bytes, name) in chosen.rows.into_iter().filter(|(depth, ..)| *depth > 0) {
        let frame = sink.frame(&name, FrameKind::User);
        below.push(sink, depth, frame, &[bytes]);
    }
    below.finish(sink);
    Ok(())
}

/// `cmd: ./server`, `mem_heap_B=16000`: what is not of a tree.
fn is_known(line: &[u8]) -> bool {
    let starts: [&[u8]; 6] = [b"desc:", b"cmd:", b"time_unit:", b"snapshot=", b"time=", b"mem_"];
    line.trim_ascii().is_empty() || starts.iter().any(|start| line.starts_with(start))
}

/// Says what threads' stacks take, which no function is known of; `peak_stacks` is that at a peak without a
/// heap.
fn say_stacks(chosen: &Tree, peak_stacks: Option<u64>, sink: &mut Sink) {
    if let Some(bytes) = peak_stacks {
        let what =
            format!("at the peak there is no heap, and stacks of threads take {bytes} bytes");
        sink.note(match chosen.has_heap() {
            true => format!("{what}; the heap of the last other snapshot that has one is shown"),
            false => format!("{what}, of which massif knows no functions"),
        });
    } else if chosen.stacks > 0 {
        let bytes = chosen.stacks;
        sink.note(format!("stacks of threads, {bytes} bytes then, have no functions: left out"));
    }
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

#[cfg(test)]
mod tests {
    use crate::{InputContent, ReadOptions, Source, read_input};

    /// A file of snapshots: what the heap and the stacks take, and of which kind the tree is.
    fn notes(snapshots: &[(u64, u64, &str)]) -> (bool, Vec<String>) {
        let mut text = "desc: x\ncmd: x\ntime_unit: i\n".to_owned();
        for (at, (heap, stacks, kind)) in snapshots.iter().enumerate() {
            text += &format!(
                "#-----------\nsnapshot={at}\n#-----------\ntime={at}\nmem_heap_B={heap}\n"
            );
            text += &format!("mem_heap_extra_B=0\nmem_stacks_B={stacks}\nheap_tree={kind}\n");
            if *kind != "empty" {
                text += &format!("n{}: {heap} (heap allocation functions)\n", u8::from(*heap > 0));
            }
            if *heap > 0 {
                text += &format!(" n0: {heap} 0x10915E: parse (parse.c:12)\n");
            }
        }
        let read = read_input(Source::of_bytes(text.into()).unwrap(), &ReadOptions::default());
        let read = read.unwrap();
        let InputContent::Stacks(stacks) = &read.content else { panic!("stacks are expected") };
        (stacks.is_empty(), read.notes)
    }

    #[test]
    fn a_peak_of_stacks_alone_is_said() {
        let peak = (0, 4096, "peak");
        let (is_empty, said) = notes(&[(0, 100, "empty"), peak]);
        let expect = "at the peak there is no heap, and stacks of threads take 4096 bytes, of which \
                      massif knows no functions";
        assert_eq!((is_empty, &*said[0]), (true, expect));
        let other = (10, 0, "detailed");
        for snapshots in [[other, peak], [peak, other]] {
            let (is_empty, said) = notes(&snapshots);
            assert!(
                !is_empty && said[0].ends_with("the last other snapshot that has one is shown")
            );
        }
        let (_, said) = notes(&[(10, 70, "peak"), other]);
        assert_eq!(said, ["stacks of threads, 70 bytes then, have no functions: left out"]);
        assert_eq!(notes(&[(10, 0, "peak"), (5, 3, "detailed")]), (false, Vec::new()));
    }
}
