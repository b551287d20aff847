//! SystemTap: aggregated backtraces, as `sample-bt` and scripts with `print_stack` print them.
//!
//! ```text
//!  0xffffffff8104f45a : native_safe_halt+0xa/0x20 [kernel]
//!  0x7f3a1002 : read+0xd/0x80 [/lib/x86_64-linux-gnu/libc-2.19.so]
//! \t42
//! ```
//!
//! Kernel and user stacks stand one after the other, the kernel's first. Names without an address
//! are those of scripting languages (`pl-sample-bt`).

use flame_profile::FrameKind;

use crate::ReadError;
use crate::counted::{CountedLine, read_counted};
use crate::head::Head;
use crate::input::Input;
use crate::names::{is_decimal, is_hex, rfind, without_arguments};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::Sink;

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "systemtap",
    description: "SystemTap backtraces with counts (sample-bt, pl-sample-bt, print_stack)",
    content: Content::Text,
    detect,
    reader: Reader::Stacks(read),
};

fn detect(head: &Head<'_>) -> bool {
    let mut lines = head.lines().filter(|line| !line.trim_ascii().is_empty());
    // Messages of the script before the first stack.
    let found = lines.by_ref().take(8).any(|line| frame(line.trim_ascii()).is_some());
    found && lines.any(|line| line.starts_with(b"\t") && is_decimal(line.trim_ascii()))
}

/// A frame with an address: its function and its module.
fn frame(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = text.strip_prefix(b"0x")?;
    let (address, rest) = rest.split_at(memchr::memmem::find(rest, b" : ")?);
    let rest = rest[3..].strip_suffix(b" (inexact)").unwrap_or(&rest[3..]);
    let (function, module) = match rfind(rest, b" [") {
        Some(at) if rest.ends_with(b"]") => (&rest[..at], &rest[at + 2..rest.len() - 1]),
        _ => (rest, &b""[..]),
    };
    is_hex(address).then_some((without_offset(function.trim_ascii()), module))
}

/// Without `+0xd/0x10`.
fn without_offset(function: &[u8]) -> &[u8] {
    let Some(at) = rfind(function, b"+0x") else { return function };
    let mut parts = function[at + 3..].splitn(2, |byte| *byte == b'/');
    let is_offset = parts.next().is_some_and(is_hex)
        && parts.next().is_none_or(|size| size.strip_prefix(b"0x").is_some_and(is_hex));
    if is_offset { &function[..at] } else { function }
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    read_counted(input, sink, |line, sink, stack| {
        let text = line.trim_ascii();
        let (function, module) = frame(text).unwrap_or((text, b""));
        let kind = match module {
            b"" => FrameKind::User,
            // Modules of the kernel have a name, images of processes a path.
            module if module.contains(&b'/') || module.contains(&b'.') => FrameKind::User,
            _ => FrameKind::Kernel,
        };
        let is_nameless = function.strip_prefix(b"0x").is_some_and(is_hex);
        let frame = if is_nameless && !module.is_empty() {
            let image = module.rsplit(|byte| *byte == b'/').next().unwrap_or(module);
            sink.frame(&[b"[", image, b"]"].concat(), kind)
        } else {
            sink.frame(without_arguments(function), kind)
        };
        stack.push(frame);
        CountedLine::Frames
    })
}
