//! Which loop over operations runs which frames.
//!
//! Nothing of the frames lies on the native stack. What ties them to it: each loop has its interpreter in
//! a register, there are as many loops as there are calls that begin one, and what an eval catches with
//! lies in a native frame outside of the loop that runs it.

use std::ops::Range;

use super::stack::SCRIPT;
use crate::caught::Entry;
use crate::join::{Mismatch, NativeFrame, Placed, segments};

/// Places the frames of a chain of an interpreter, 0 where there is one only, in native frames that go up to
/// the root.
pub(crate) fn place(
    entries: &[Entry],
    interpreter: u64,
    natives: &[NativeFrame],
    holds: &dyn Fn(usize, u64) -> bool,
) -> Result<Vec<Placed>, Mismatch> {
    let loops = natives.iter().enumerate().filter(|(_, native)| native.runs_frames);
    let loops: Vec<usize> = loops.map(|(index, _)| index).collect();
    // The innermost native frame may have its registers yet to be set.
    let is_held = |index: &usize| *index == 0 || interpreter == 0 || holds(*index, interpreter);
    if !loops.iter().all(is_held) {
        let any = loops.iter().any(|index| holds(*index, interpreter));
        return Err(if any { Mismatch::Stack } else { Mismatch::OtherInterpreter });
    }
    let mut segments: Vec<Range<usize>> = segments(entries).map(|(frames, _)| frames).collect();
    leave_out_script(entries, &mut segments, natives, &loops);
    let mut rest = Rest { entries, natives, loops: &loops, placed: Vec::new() };
    for (index, frames) in segments.into_iter().enumerate().rev() {
        match rest.place(frames) {
            Err(Mismatch::Unplaced) if index == 0 => {}
            placed => placed?,
        }
    }
    rest.finish()
}

/// Leaves out the script while it does not run: when it is being compiled, at its end, and in threads.
fn leave_out_script(
    entries: &[Entry],
    segments: &mut Vec<Range<usize>>,
    natives: &[NativeFrame],
    loops: &[usize],
) {
    let outside = natives.iter().skip(loops.last().map_or(0, |last| last + 1));
    let is_run = outside.into_iter().any(|native| native.runs_script);
    if let Some(last) = segments.last_mut()
        && last.clone().next_back().and_then(|last| entries.get(last)).is_some_and(is_script)
        && !is_run
    {
        last.end -= 1;
        if last.start == last.end {
            segments.pop();
        }
    }
}

fn is_script(entry: &Entry) -> bool {
    entry.code == SCRIPT
}

/// What is left to be placed in, from the outermost loop on.
#[derive(Debug)]
struct Rest<'r> {
    entries: &'r [Entry],
    natives: &'r [NativeFrame],
    /// Innermost first.
    loops: &'r [usize],
    placed: Vec<Placed>,
}

impl Rest<'_> {
    /// Places frames that began one loop, and maybe others of the same code, to catch.
    fn place(&mut self, frames: Range<usize>) -> Result<(), Mismatch> {
        // It has not begun, or is between two calls, as sort is.
        let mut native = self.next().ok_or(Mismatch::Unplaced)?;
        let mut end = frames.end;
        for index in frames.clone().rev() {
            let catcher = self.entries.get(index).map_or(0, |entry| entry.address);
            let Some(runs) = self.inside(catcher) else { continue };
            if runs == Some(native) {
                continue;
            }
            // It catches in a loop of its own.
            self.placed.push(Placed { native, frames: index + 1..end });
            end = index + 1;
            native = match self.next() {
                Some(next) if runs == Some(next) => next,
                None if runs.is_none() => return Err(Mismatch::Unplaced),
                _ => return Err(Mismatch::Stack),
            };
        }
        self.placed.push(Placed { native, frames: frames.start..end });
        Ok(())
    }

    fn next(&mut self) -> Option<usize> {
        let (next, rest) = self.loops.split_last()?;
        self.loops = rest;
        Some(*next)
    }

    /// The outermost loop inside of a native frame, by something of it; nothing where that is not on the
    /// stack.
    fn inside(&self, address: u64) -> Option<Option<usize>> {
        let pointer = |native: &NativeFrame| native.stack_pointer;
        let (first, last) = (self.natives.first().map(pointer)?, self.natives.last().map(pointer)?);
        (first..last).contains(&address).then(|| {
            let is_inside =
                |native: &&NativeFrame| native.runs_frames && native.stack_pointer < address;
            self.natives.iter().rposition(|native| is_inside(&native))
        })
    }

    /// The innermost loop alone may run nothing: it begins or ends.
    fn finish(mut self) -> Result<Vec<Placed>, Mismatch> {
        if let Some(native) = self.next() {
            self.placed.push(Placed { native, frames: 0..0 });
        }
        match self.loops {
            [] => Ok(self.placed),
            _ => Err(Mismatch::Missing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::join;

    const ON_STACK: u64 = 0x1000;

    /// Native frames, innermost first, of 16 bytes each: `L` is a loop, `R` runs the script.
    fn natives(text: &str) -> Vec<NativeFrame> {
        let frame = |(index, letter): (usize, char)| NativeFrame {
            stack_pointer: ON_STACK + 16 * index as u64,
            runs_frames: letter == 'L',
            runs_script: letter == 'R',
            next: 0,
        };
        text.chars().enumerate().map(frame).collect()
    }

    /// Frames, innermost first: `s` of a sub, `e` of an eval that catches with what lies in the native frame
    /// of the digit behind it, `x` the script, `-` the end of what a loop runs.
    fn chain(text: &str) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        for letter in text.chars() {
            let frame = |code| Entry { code, ..Entry::default() };
            match letter.to_digit(10) {
                Some(native) => {
                    entries.last_mut().unwrap().address = ON_STACK + 16 * u64::from(native) + 8;
                }
                None => entries.push(frame(match letter {
                    '-' => 0,
                    'x' => SCRIPT,
                    _ => 0x9999,
                })),
            }
        }
        entries.push(Entry::of_interpreter(7));
        entries
    }

    #[track_caller]
    fn check(text: &str, of: &str, expect: Result<&[(usize, Range<usize>)], Mismatch>) {
        let placed = join(&chain(text), &natives(of), true, &|_| None, &|_, word| word == 7);
        let placed = placed.map(|placed| {
            let mut placed: Vec<_> =
                placed.into_iter().map(|placed| (placed.native, placed.frames)).collect();
            placed.sort_by_key(|(native, _)| *native);
            placed
        });
        assert_eq!(placed, expect.map(<[_]>::to_vec), "{text} of {of}");
    }

    #[test]
    fn each_loop_has_the_frames_that_one_call_began() {
        check("ss-sx-", "nLnnLR", Ok(&[(1, 0..2), (4, 3..5)]));
        // Sort compares, by a block, which is no frame.
        check("-sx-", "nLnnLR", Ok(&[(1, 0..0), (4, 1..3)]));
        // It is between two comparisons, or a call has not begun.
        check("s-sx-", "nnLR", Ok(&[(2, 2..4)]));
        // The innermost loop begins or ends.
        check("sx-", "LnLR", Ok(&[(0, 0..0), (2, 0..2)]));
        check("s-s-x-", "LR", Err(Mismatch::Unplaced));
        check("x-", "LnLnLR", Err(Mismatch::Missing));
    }

    #[test]
    fn scripts_stand_where_they_run() {
        // It is compiled meanwhile, or has ended, or that is a thread.
        check("s-x-", "nLnnn", Ok(&[(1, 0..1)]));
        check("x-", "nnn", Ok(&[]));
        check("x-", "nnLR", Ok(&[(2, 0..1)]));
    }

    #[test]
    fn evals_run_in_the_loop_inside_of_what_they_catch_with() {
        // In a callback: a loop of its own, in the frame 2.
        check("se2s-x-", "nLnnLnLR", Ok(&[(1, 0..2), (4, 2..3), (6, 4..5)]));
        // In one that is there already, in the frame 5: that of the script.
        check("ssex-", "nnnLR", Ok(&[(3, 0..4)]));
        check("sse4x-", "nnnLR", Ok(&[(3, 0..4)]));
        // It is about to begin one.
        check("e1s-x-", "nnLnLR", Ok(&[(2, 1..2), (4, 3..4)]));
        // That of another moment.
        check("se7s-x-", "nLnnLnLRn", Err(Mismatch::Stack));
    }

    #[test]
    fn loops_are_those_of_one_interpreter() {
        let with = |holds: &dyn Fn(usize, u64) -> bool, is_whole| {
            join(&chain("s-x-"), &natives("LnLR"), is_whole, &|_| None, holds).is_ok()
        };
        assert!(with(&|_, word| word == 7, true) && with(&|index, _| index > 0, true));
        let other = join(&chain("s-x-"), &natives("nLLR"), true, &|_| None, &|_, _| false);
        assert_eq!(other, Err(Mismatch::OtherInterpreter));
        assert!(!with(&|index, _| index < 2, true) && !with(&|_, word| word == 7, false));
    }
}
