//! Which loop over instructions runs which frames.
//!
//! Each loop has the frame that it runs in a register, or on the native stack. GCC's builds keep it in one that
//! unwinding does not know to be saved by the loop: so that of a loop further out is where whoever was called
//! in between has saved it.

use std::ops::Range;

use super::chain::FIBER;
use crate::caught::Entry;
use crate::join::{Mismatch, NativeFrame, Placed};

/// Frames of one loop, and the innermost of them that it runs itself.
#[derive(Clone, Debug)]
struct Segment {
    frames: Range<usize>,
    /// 0 = none: those are in C.
    address: u64,
}

/// Places the frames of a program in native frames; `inside` is the frame that is called or has returned, 0 where
/// that is not known.
pub(crate) fn place(
    entries: &[Entry],
    inside: u64,
    natives: &[NativeFrame],
    is_whole: bool,
    holds: &dyn Fn(usize, u64) -> bool,
) -> Result<Vec<Placed>, Mismatch> {
    // Frames outside of a fiber are on another native stack.
    let is_fiber = |entry: &Entry| entry.is_boundary() && entry.function == FIBER;
    let end = entries.iter().position(is_fiber).unwrap_or(entries.len());
    let segments = segments(entries.get(..end).unwrap_or_default());
    let runs = natives.iter().enumerate().filter(|(_, native)| native.runs_frames);
    let runs: Vec<usize> = runs.map(|(index, _)| index).collect();
    let attempt = |natives: usize, frames: usize| {
        let segments = segments.get(frames..)?;
        let first = runs.get(natives).copied();
        let is_run = |(nth, (segment, native)): (usize, (&Segment, &usize))| {
            let own = |word: u64| word != 0 && holds(*native, word);
            match (natives + nth).checked_sub(1).and_then(|inner| runs.get(inner)) {
                None => own(segment.address) || own(inside),
                Some(inner) => (*inner..=*native).any(|index| holds(index, segment.address)),
            }
        };
        let pairs = segments.iter().zip(runs.iter().skip(natives)).enumerate();
        let count = runs.len() - natives.min(runs.len());
        let is_count = segments.len() == count || !is_whole && segments.len() > count;
        let agrees = is_count && first.is_some() && pairs.clone().all(is_run);
        agrees.then_some((natives, segments))
    };
    // The innermost loop may not have begun with its frame, or be done with it; or a frame have no loop yet, or
    // not any more.
    let found = [(0, 0), (1, 0), (0, 1)].into_iter();
    let found = found.map(|(natives, frames)| attempt(natives, frames)).find_map(|found| found);
    let Some((skipped, segments)) = found else {
        let is_none = segments.is_empty() && runs.len() <= 1;
        return if is_none { Ok(Vec::new()) } else { Err(Mismatch::Stack) };
    };
    let mut placed: Vec<Placed> = (0..skipped)
        .filter_map(|index| Some(Placed { native: *runs.get(index)?, frames: 0..0 }))
        .collect();
    for (segment, native) in segments.iter().zip(runs.iter().skip(skipped)) {
        let mut frames = segment.frames.clone();
        // It has called nothing in C yet, or not any more.
        let is_in_c = |index: usize| entries.get(index).is_some_and(|entry| entry.address == 0);
        while *native == 0 && frames.start < frames.end && is_in_c(frames.start) {
            frames.start += 1;
        }
        placed.push(Placed { native: *native, frames });
    }
    if is_whole && end < entries.len() {
        let outermost = natives.len().checked_sub(1);
        let last = placed.last().map(|placed| placed.native);
        // Who resumed the fiber stands outside of all, unless it is about to be left.
        let native = outermost.filter(|native| Some(*native) > last && end + 1 < entries.len());
        let native = native.ok_or(Mismatch::Missing)?;
        placed.push(Placed { native, frames: end + 1..entries.len() });
    }
    Ok(placed)
}

/// The frames of each loop, innermost first.
fn segments(entries: &[Entry]) -> Vec<Segment> {
    let mut segments = Vec::new();
    for (frames, _) in crate::join::segments(entries) {
        let mut of = entries.get(frames.clone()).unwrap_or_default().iter();
        let address = of.find(|entry| entry.address != 0).map_or(0, |entry| entry.address);
        segments.push(Segment { frames, address });
    }
    // What is called from outside of all loops.
    if segments.last().is_some_and(|segment| segment.address == 0) {
        segments.pop();
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::join;

    /// Native frames, innermost first: `L` runs instructions.
    fn natives(text: &str) -> Vec<NativeFrame> {
        let frame = |(index, letter): (usize, char)| NativeFrame {
            stack_pointer: 0x1000 + 16 * index as u64,
            runs_frames: letter == 'L',
            runs_script: false,
            next: 0,
        };
        text.chars().enumerate().map(frame).collect()
    }

    /// Frames, innermost first: a digit is one of a program, `c` one in C, `-` the end of what a loop runs, `F` that of
    /// a fiber; the frame inside of them is 9.
    fn chain(text: &str) -> Vec<Entry> {
        let entry = |letter: char| match letter {
            '-' => Entry::default(),
            'F' => Entry { address: 7, function: FIBER, ..Entry::default() },
            'c' => Entry { code: 1, ..Entry::default() },
            digit => Entry { address: u64::from(digit), code: 7, ..Entry::default() },
        };
        text.chars().map(entry).chain([Entry::of_php(u64::from('9'))]).collect()
    }

    /// What native frames hold: for each one a word, `.` for none.
    #[track_caller]
    fn check(
        text: &str,
        of: &str,
        held: &str,
        is_whole: bool,
        expect: Result<&[(usize, &str)], Mismatch>,
    ) {
        let holds = |index: usize, word: u64| {
            held.chars().nth(index).is_some_and(|held| u64::from(held) == word)
        };
        let placed = join(&chain(text), &natives(of), is_whole, &|_| None, &holds);
        let placed: Result<Vec<(usize, &str)>, Mismatch> = placed.map(|placed| {
            placed.into_iter().map(|placed| (placed.native, &text[placed.frames])).collect()
        });
        assert_eq!(placed, expect.map(<[_]>::to_vec), "{text} of {of}");
    }

    #[test]
    fn each_loop_has_the_frames_that_it_runs() {
        check("3-c21-", "nLnnLn", ".3..2.", true, Ok(&[(1, "3"), (4, "c21")]));
        // That of a loop further out is where somebody in between has saved it.
        check("3-c21-", "nLnnLn", ".3.2..", true, Ok(&[(1, "3"), (4, "c21")]));
        check("3-c21-", "nLnnLn", ".3...2", true, Err(Mismatch::Stack));
        check("3-c21-", "nLnnLn", ".2..2.", true, Err(Mismatch::Stack));
        // A function in C is over where nothing native is inside of the loop.
        check("c21-", "Ln", "2.", true, Ok(&[(0, "21")]));
        check("c21-", "nL", ".2", true, Ok(&[(1, "c21")]));
        // One that is called from outside of all loops.
        check("1-c", "Ln", "1.", true, Ok(&[(0, "1")]));
        check("c", "nn", "..", true, Ok(&[]));
    }

    #[test]
    fn the_innermost_loop_may_be_amid_a_call_or_a_return() {
        check("21-", "Ln", "9.", true, Ok(&[(0, "21")]));
        // A loop that has no frame, a frame that has no loop.
        check("21-", "LnLn", ".2..", true, Ok(&[(0, ""), (2, "21")]));
        check("3-c21-", "nnLn", "..2.", true, Ok(&[(2, "c21")]));
        // Two of them are of another moment.
        check("4-3-21-", "nnLn", "..2.", true, Err(Mismatch::Stack));
        check("21-", "LLLn", "..2.", true, Err(Mismatch::Stack));
        check("", "Ln", "..", true, Ok(&[]));
        check("", "LLn", "...", true, Err(Mismatch::Stack));
    }

    #[test]
    fn of_a_stack_that_is_cut_the_rest_is_not_missed() {
        check("3-c21-", "nLn", ".3.", false, Ok(&[(1, "3")]));
        check("3-c21-", "nLn", ".3.", true, Err(Mismatch::Stack));
    }

    #[test]
    fn who_resumed_a_fiber_stands_outside_of_it() {
        check("5-Fc21-", "nLnn", ".5..", true, Ok(&[(1, "5"), (3, "c21-")]));
        check("5-Fc21-", "nLnn", ".5..", false, Ok(&[(1, "5")]));
        // It is about to be left.
        check("5-F", "nLnn", ".5..", true, Err(Mismatch::Missing));
    }
}
