//! macOS `sample` and Activity Monitor: a call graph with the number of samples in each row.
//!
//! ```text
//! Call graph:
//!     2132 Thread_1234   DispatchQueue_1: com.apple.main-thread  (serial)
//!     + 2132 start  (in dyld) + 2432  [0x18f0fff28]
//!     +   1000 main  (in server) + 36  [0x100003f24]
//!     +   ! 900 poll  (in server) + 12  [0x100003e10]
//! ```
//!
//! All threads are sampled, whether they run or wait: weights are wall-clock time in samples.

use flame_profile::FrameKind;

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::names::{number, rust_signs, without_arguments};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::Sink;
use crate::skipped::Place;
use crate::tree::{TopRow, TreeRows, Weights};

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "macos-sample",
    description: "macOS sample, or Activity Monitor's \"Sample Process\"",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        head.text().starts_with(b"Analysis of sampling ")
            || head.lines().any(|line| line.trim_ascii_end() == b"Call graph:")
    },
    reader: Reader::Stacks(read),
};

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    let mut rows = TreeRows::new(Weights::WithRowsBelow, TopRow::Outermost);
    let mut is_graph = false;
    while let Some(line) = lines.next_line()? {
        let text = line.text.trim_ascii_end();
        if !is_graph {
            is_graph = text == b"Call graph:";
            continue;
        }
        // `Total number in stack (recursive counted multiple, when >=5):` and the list of images.
        if text.starts_with(b"Total number in stack") {
            is_graph = false;
            continue;
        }
        if text.is_empty() {
            continue;
        }
        let Some((depth, count, rest)) = row(text) else {
            sink.skip(Place::Line(line.number), "it is not a row of a call graph", line.text)?;
            continue;
        };
        let name = function(rest);
        let frame = sink.frame(&name, FrameKind::User);
        rows.push(sink, depth, frame, &[count]);
    }
    rows.finish(sink);
    Ok(())
}

/// The position of the count, the count, and what stands behind it.
fn row(text: &[u8]) -> Option<(usize, u64, &[u8])> {
    let is_line = |byte: &u8| matches!(byte, b' ' | b'+' | b'!' | b':' | b'|');
    let depth = text.iter().position(|byte| !is_line(byte))?;
    let rest = &text[depth..];
    let end = memchr::memchr(b' ', rest)?;
    Some((depth, number(&rest[..end])?, rest[end..].trim_ascii()))
}

/// `poll  (in server) + 12  [0x100003e10]` is ``server`poll``; a thread keeps its words.
fn function(text: &[u8]) -> Vec<u8> {
    let Some(at) = memchr::memmem::find(text, b"  (in ") else {
        let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let plain = words.collect::<Vec<_>>().join(&b' ');
        let end = memchr::memmem::find(&plain, b" + ").unwrap_or(plain.len());
        return plain[..end].to_vec();
    };
    let behind = &text[at + b"  (in ".len()..];
    let end = memchr::memchr(b')', behind).unwrap_or(behind.len());
    let symbol = text[..at].trim_ascii();
    let symbol = if symbol == b"???" { b"[unknown]" } else { without_arguments(symbol) };
    [&behind[..end], b"`", &rust_signs(symbol)].concat()
}
