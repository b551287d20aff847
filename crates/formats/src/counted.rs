//! Stacks as several tracers print them: a frame a line, innermost first, and a line with nothing
//! but a count behind the last.

use crate::ReadError;
use crate::input::Input;
use crate::names::{is_decimal, number};
use crate::sink::{FrameIndex, Sample, Sink, TaskIndex};
use crate::skipped::Place;

/// What a line of a stack is.
pub(crate) enum CountedLine {
    /// Frames, which were put on the stack.
    Frames,
    /// Nothing that matters.
    Nothing,
    /// The thread that the stack is of.
    Task(TaskIndex),
}

/// Reads stacks whose lines `take` understands: it puts frames on the stack, innermost first. A
/// line that is nothing but a number never comes to it.
pub(crate) fn read_counted(
    input: &mut Input<'_>,
    sink: &mut Sink,
    mut take: impl FnMut(&[u8], &mut Sink, &mut Vec<FrameIndex>) -> CountedLine,
) -> Result<(), ReadError> {
    let mut lines = input.lines();
    let mut stack: Vec<FrameIndex> = Vec::new();
    let mut task = None;
    let mut last = 0;
    while let Some(line) = lines.next_line()? {
        last = line.number;
        let text = line.text.trim_ascii();
        if text.is_empty() {
            continue;
        }
        if !is_decimal(text) {
            match take(line.text, sink, &mut stack) {
                CountedLine::Frames | CountedLine::Nothing => {}
                CountedLine::Task(found) => task = Some(found),
            }
            continue;
        }
        match number(text) {
            Some(count) => {
                stack.reverse();
                sink.add(&Sample { task, ..Sample::new(&stack, &[count]) });
            }
            None => sink.skip(Place::Line(last), "its count is too large", text)?,
        }
        stack.clear();
        task = None;
    }
    if !stack.is_empty() {
        sink.skip(Place::Line(last), "the last stack has no count", b"")?;
    }
    Ok(())
}
