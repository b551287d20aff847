//! Functions that were inlined, looked up where perf printed none.
//!
//! A frame of a program is kept as it was printed until everything has been read. Then those of each file are looked
//! up together.

use std::collections::BTreeMap;

use flame_perf_data::{PrintedFrame, inlined_frames};
use flame_profile::FrameKind;

use super::frame::FrameLine;
use crate::names::{rust_signs, without_arguments, without_class_letter};
use crate::sink::Sink;
use crate::stacks::Frame;

/// Parts a printed frame that is kept; text has none.
const GAP: u8 = 0;

/// What stood before a line of a stack, which says what its address is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Before {
    /// The start of a sample, or the kernel: it is where the program was.
    #[default]
    Start,
    /// A function that it has called: it is that behind the call.
    Callee,
    /// A function that was inlined into it: perf has looked it up already.
    Inlined,
}

impl Before {
    /// What the line behind one of that kind has before it.
    pub(super) fn behind(kind: FrameKind) -> Before {
        match kind {
            FrameKind::Inlined => Before::Inlined,
            FrameKind::Kernel => Before::Start,
            _ => Before::Callee,
        }
    }

    /// What keys of lines begin with.
    pub(super) fn key(self) -> &'static [u8] {
        match self {
            Before::Start => b"0",
            Before::Callee => b"1",
            Before::Inlined => b"2",
        }
    }

    /// The name by which a line is kept; `None` for one that is not looked up.
    pub(super) fn keep(self, line: &FrameLine<'_>) -> Option<Vec<u8>> {
        let is_program = line.kind() == FrameKind::User && line.module.starts_with(b"/");
        let is_wanted = is_program && line.is_named() && self != Before::Inlined;
        let parts = [b"", self.key(), line.address, line.offset, line.symbol, line.module];
        is_wanted.then(|| parts.join(&GAP))
    }
}

/// A frame that was kept.
fn kept(name: &[u8]) -> Option<(PrintedFrame<'_>, &[u8])> {
    let mut parts = name.strip_prefix(&[GAP])?.split(|byte| *byte == GAP);
    let mut next = || parts.next();
    let (before, address, offset, symbol, module) = (next()?, next()?, next()?, next()?, next()?);
    let hex = |text: &[u8]| u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok();
    let (address, offset) = (hex(address)?, hex(offset));
    let is_caller = before == Before::Callee.key();
    Some((PrintedFrame { address, symbol, offset, is_caller }, module))
}

/// Puts what was inlined beside the frames that were kept.
pub(super) fn look_up(sink: &mut Sink) {
    let names = sink.names().find();
    let with_lines = sink.options().source_lines;
    let mut by_module: BTreeMap<&[u8], Vec<(usize, PrintedFrame<'_>)>> = BTreeMap::new();
    let mut found: Vec<Vec<Frame>> = Vec::new();
    for (at, frame) in sink.frames().enumerate() {
        let as_printed = match kept(&frame.name) {
            Some((printed, module)) => {
                by_module.entry(module).or_default().push((at, printed));
                let name = rust_signs(without_arguments(without_class_letter(printed.symbol)));
                Frame { name: name.as_ref().into(), kind: frame.kind }
            }
            None => frame.clone(),
        };
        found.push(vec![as_printed]);
    }
    let (mut asked, mut unknown) = (0, 0);
    for (module, frames) in by_module {
        let printed: Vec<PrintedFrame<'_>> = frames.iter().map(|(_, frame)| *frame).collect();
        asked += printed.len();
        for ((at, _), answer) in frames.iter().zip(inlined_frames(&names, module, &printed)) {
            let Some(answer) = answer else {
                unknown += 1;
                continue;
            };
            let outer = found[*at].pop();
            let frame = |function: &flame_perf_data::SymbolFrame| {
                // The function that was called keeps its name.
                let mut name = match (&outer, function.inlined) {
                    (Some(outer), false) => outer.name.to_vec(),
                    _ => without_arguments(function.name.as_bytes()).to_vec(),
                };
                if let (true, Some(file), Some(line)) = (with_lines, &function.file, function.line)
                {
                    let file = file.rsplit('/').next().unwrap_or(file);
                    name.extend(format!(":{file}:{line}").bytes());
                }
                let kind = if function.inlined { FrameKind::Inlined } else { FrameKind::User };
                Frame { name: name.into(), kind }
            };
            found[*at] = answer.iter().rev().map(frame).collect();
        }
    }
    sink.replace_frames(found);
    if unknown > 0 {
        sink.note(format!(
            "{unknown} of {asked} places in the code are not where their file has them now: \
             what was inlined there is not shown"
        ));
    }
}
