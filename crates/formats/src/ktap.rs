//! ktap: a table of backtraces, printed with its counts.
//!
//! ```text
//! \tipv4_conntrack_local+0x4f [nf_conntrack_ipv4]
//! \tnf_iterate+0x98
//! \t7
//! ```

use flame_profile::FrameKind;

use crate::ReadError;
use crate::counted::{CountedLine, read_counted};
use crate::head::Head;
use crate::input::Input;
use crate::names::{is_decimal, without_offset};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::Sink;

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "ktap",
    description: "ktap tables of backtraces with counts",
    content: Content::Text,
    detect,
    reader: Reader::Stacks(read),
};

fn detect(head: &Head<'_>) -> bool {
    let mut lines = head.lines().map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let mut frames = 0;
    let is_counted = lines.by_ref().take(512).any(|line| {
        frames += usize::from(frame(line).is_some());
        frames > 0 && is_decimal(line)
    });
    let is_frame =
        |line: &[u8]| frame(line.trim_ascii()).is_some() || is_decimal(line.trim_ascii());
    is_counted && head.lines().filter(|line| !line.trim_ascii().is_empty()).take(16).all(is_frame)
}

/// The function and whether a module is named: `nf_iterate+0x98`, `x+0x1 [nf]`; `None` without an
/// offset.
fn frame(text: &[u8]) -> Option<&[u8]> {
    let symbol = match memchr::memmem::find(text, b" [") {
        Some(at) if text.ends_with(b"]") => &text[..at],
        _ => text,
    };
    let function = without_offset(symbol);
    let is_function = function.len() < symbol.len() && !function.contains(&b' ');
    (is_function && !function.contains(&b'`')).then_some(function)
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    read_counted(input, sink, |line, sink, stack| {
        let text = line.trim_ascii();
        let name = frame(text).unwrap_or(text);
        // What ktap traces is the kernel; a function of a process has no offset.
        let is_kernel = name.len() < text.len();
        stack.push(sink.frame(name, if is_kernel { FrameKind::Kernel } else { FrameKind::User }));
        CountedLine::Frames
    })
}
