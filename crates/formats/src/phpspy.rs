//! phpspy's traces of PHP: `phpspy -p PID`, `phpspy -P '-x php-fpm'`.
//!
//! ```text
//! 0 Memcached::get <internal>:-1
//! 1 Cache::get /srv/lib/Cache.php:26
//! 2 <main> /srv/index.php:3
//! # uri = /index.php
//!
//! ```
//!
//! Frames are numbered from the innermost on. Lines are left out: a function that was met at several
//! of them is one box. Source: event_fout.c of phpspy.

use flame_profile::FrameKind;

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::names::number;
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sink};
use crate::skipped::Place;

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "phpspy",
    description: "phpspy's traces (stackcollapse-phpspy.pl writes folded text)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        let mut lines = head.lines().filter(|line| !line.is_empty() && !line.starts_with(b"#"));
        lines.next().and_then(frame).is_some_and(|(at, _)| at == 0)
    },
    reader: Reader::Stacks(read),
};

/// `1 Cache::get /srv/lib/Cache.php:26`: the number and the name.
fn frame(line: &[u8]) -> Option<(u64, &[u8])> {
    let (at, rest) = line.split_at(memchr::memchr(b' ', line)?);
    // Names have no blanks, paths may.
    let (name, place) = rest[1..].split_at(memchr::memchr(b' ', &rest[1..])?);
    let (_file, line) = place.split_at(memchr::memrchr(b':', place)?);
    let is_line = &line[1..] == b"-1" || number::<u64>(&line[1..]).is_some();
    (is_line && !name.is_empty()).then_some((number(at)?, name))
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    // Innermost first.
    let mut stack: Vec<FrameIndex> = Vec::new();
    while let Some(line) = lines.next_line()? {
        // `# uri = ...` and the like stand behind the frames of their trace.
        if line.text.trim_ascii().is_empty() || line.text.starts_with(b"#") {
            sink.end_stack(&mut stack, None, 1);
            continue;
        }
        let Some((at, name)) = frame(line.text) else {
            sink.skip(Place::Line(line.number), "it is not a frame of a trace", line.text)?;
            continue;
        };
        if at == 0 {
            sink.end_stack(&mut stack, None, 1);
        }
        stack.push(sink.frame(name, FrameKind::User));
    }
    sink.end_stack(&mut stack, None, 1);
    Ok(())
}
