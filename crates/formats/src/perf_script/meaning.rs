//! What the lines of a stack stand for: a frame, a group of them where functions were inlined, or nothing.

use flame_profile::{FrameKind, narrow};

use super::frame::{self, FrameLine};
use crate::names::{
    inlined_parts, is_decimal, is_hex, rust_signs, without_arguments, without_class_letter,
};
use crate::sink::{FrameIndex, Sink};

/// A line of a stack stands for nothing: it is not a frame.
pub(super) const NOTHING: u32 = u32::MAX;
/// It is not a frame, but known to be none: a source line.
pub(super) const SILENT: u32 = u32::MAX - 1;
/// From here on the numbers are those of groups of frames.
pub(super) const GROUPS: u32 = 1 << 31;

/// The frames of a new line, as a number of one or of a group.
pub(super) fn make_frames(
    text: &[u8],
    sink: &mut Sink,
    groups: &mut Vec<Vec<FrameIndex>>,
    stops: &mut Vec<bool>,
) -> u32 {
    let Some(line) = frame::parse(text) else {
        return if is_source_line(text) || is_aside(text) { SILENT } else { NOTHING };
    };
    if is_process_name(line.symbol) {
        return SILENT;
    }
    let frames = frames_of(&line, sink);
    for frame in &frames {
        stop_at(*frame, sink.is_called(*frame, &sink.options().skip_after), stops);
    }
    match &*frames {
        [only] => only.0,
        _ => {
            groups.push(frames);
            GROUPS.checked_add(narrow(groups.len() - 1)).expect("lines have fewer groups of frames")
        }
    }
}

/// Leaves out the callers of a frame.
pub(super) fn stop_at(frame: FrameIndex, stops_there: bool, stops: &mut Vec<bool>) {
    if stops_there {
        let at = frame.0 as usize;
        stops.resize(stops.len().max(at + 1), false);
        stops[at] = true;
    }
}

/// The frames that a line stands for, innermost first.
fn frames_of(line: &FrameLine<'_>, sink: &mut Sink) -> Vec<FrameIndex> {
    let kind = line.kind();
    if !line.is_named() {
        let mut name = [b"[", line.image()].concat();
        if sink.options().addresses {
            name.extend([b" <", line.address, b">"].concat());
        }
        name.push(b']');
        return vec![sink.frame(&name, kind)];
    }
    let mut frames: Vec<FrameIndex> = Vec::new();
    for (at, part) in inlined_parts(line.symbol).enumerate() {
        let name = rust_signs(without_arguments(without_class_letter(part)));
        frames.push(sink.frame(&name, if at > 0 { FrameKind::Inlined } else { kind }));
    }
    frames.reverse();
    frames
}

/// `main.c:12`, which `-F srcline` prints below a frame; `:0` where it is not known.
pub(super) fn is_source_line(text: &[u8]) -> bool {
    let Some(colon) = memchr::memrchr(b':', text) else { return false };
    is_decimal(&text[colon + 1..])
}

/// The bytes of the instruction that was sampled (`-F insn`).
pub(super) const INSTRUCTION: &[u8] = b"insn: ";

/// What perf prints besides: instructions (`-F insn`), lines of the source (`-F srccode`), and the place of
/// what has no source line.
pub(super) fn is_aside(text: &[u8]) -> bool {
    let starts: [&[u8]; 3] = [INSTRUCTION, b"ilen: ", b"|"];
    // `[kernel.kallsyms][ffffffff813a2413]`, `libc.so.6[9bee0]`
    let is_place = || {
        let place = text.strip_suffix(b"]")?;
        let at = memchr::memrchr(b'[', place).filter(|at| *at > 0)?;
        Some(is_hex(&place[at + 1..]) && !place.contains(&b' '))
    };
    starts.iter().any(|start| text.starts_with(start)) || is_place() == Some(true)
}

/// The only frame of a sample without its instruction.
pub(super) fn without_asides(frame: &[u8]) -> &[u8] {
    let starts = [&b" ilen: "[..], b" insn: "].into_iter();
    let end = starts.filter_map(|start| memchr::memmem::find(frame, start)).min();
    end.map_or(frame, |end| frame[..end].trim_ascii_end())
}

/// `(java)`, which old versions of perf print for the process; C++ has `(anonymous namespace)`.
fn is_process_name(symbol: &[u8]) -> bool {
    symbol.starts_with(b"(") && !symbol.starts_with(b"(anonymous ") && symbol.ends_with(b")")
}
