//! Which loop over instructions runs which calls.
//!
//! Each loop has on the native stack, or in a register, the state that it works on and the call that it
//! runs; calls that begin a loop say so. What a coroutine had called when it yielded has no loop any more:
//! the one that runs the coroutine now goes on with those calls, too, when it comes to them.

use std::ops::Range;

use super::chain::COROUTINE;
use crate::caught::Entry;
use crate::join::{Mismatch, NativeFrame, Placed, segments};

/// The calls of a state.
#[derive(Debug)]
struct State {
    address: u64,
    /// The call that would be further in than the innermost, and was if that has just returned.
    inside: u64,
    is_coroutine: bool,
    /// Those of each loop, innermost first.
    loops: Vec<Range<usize>>,
    /// How many of them were placed, and where the last of those was.
    used: usize,
    outermost: usize,
}

/// Places the calls of all states in native frames.
pub(crate) fn place(
    entries: &[Entry],
    natives: &[NativeFrame],
    is_whole: bool,
    holds: &dyn Fn(usize, u64) -> bool,
) -> Result<Vec<Placed>, Mismatch> {
    let mut states = states(entries);
    let mut placed: Vec<Placed> = Vec::new();
    let runs = natives.iter().enumerate().filter(|(_, native)| native.runs_frames);
    for (nth, (native, _)) in runs.enumerate() {
        let found = states.iter_mut().find_map(|state| {
            let held = |word: u64| word != 0 && holds(native, word);
            let is_of_state = held(state.address);
            let frames = is_of_state.then(|| state.frames(entries, nth == 0, &held))??;
            Some((state, frames))
        });
        match found {
            Some((state, mut frames)) => {
                state.outermost = placed.len();
                // It has called nothing yet, or not any more.
                while native == 0 && frames.start < frames.end && !is_held(entries, frames.start) {
                    frames.start += 1;
                }
                placed.push(Placed { native, frames });
            }
            // It begins or ends.
            None if nth == 0 => placed.push(Placed { native, frames: 0..0 }),
            None => return Err(Mismatch::Stack),
        }
    }
    for state in states.iter().filter(|state| state.used > 0 && is_whole) {
        let Some(last) = state.loops.get(state.used..).and_then(<[_]>::last) else { continue };
        match placed.get_mut(state.outermost) {
            Some(placed) if state.is_coroutine => placed.frames.end = last.end,
            _ => return Err(Mismatch::Unplaced),
        }
    }
    Ok(placed)
}

/// The states of a chain.
fn states(entries: &[Entry]) -> Vec<State> {
    let mut states: Vec<State> = Vec::new();
    for (mut frames, boundary) in segments(entries) {
        if let (Some(state), false) = (states.last_mut(), frames.is_empty()) {
            state.loops.push(std::mem::take(&mut frames));
        }
        if let Some(boundary) = boundary.filter(|boundary| boundary.address != 0) {
            states.push(State {
                address: boundary.address,
                inside: boundary.position,
                is_coroutine: boundary.function == COROUTINE,
                loops: Vec::new(),
                used: 0,
                outermost: 0,
            });
        }
    }
    states
}

/// Whether a frame is of a function in Lua, which a loop has something of.
fn is_held(entries: &[Entry], index: usize) -> bool {
    entries.get(index).is_some_and(|entry| entry.address != 0)
}

impl State {
    /// The next frames, if a loop has the innermost of them. The innermost loop of all may be amid a call
    /// or a return.
    fn frames(
        &mut self,
        entries: &[Entry],
        is_innermost: bool,
        held: &dyn Fn(u64) -> bool,
    ) -> Option<Range<usize>> {
        let of_lua = |frames: &Range<usize>| {
            let frames = frames.clone().filter(|index| is_held(entries, *index));
            frames.collect::<Vec<usize>>()
        };
        let is_held_word = held;
        let held = |index: &usize| entries.get(*index).is_some_and(|entry| held(entry.address));
        let next = self.loops.get(self.used)?;
        let lua = of_lua(next);
        let mut frames = lua.first().filter(|index| held(index)).map(|_| next.clone());
        let mut used = 1;
        if frames.is_none() && is_innermost {
            // One that has not begun, or whose loop is over.
            let caller = lua.get(1).filter(|index| held(index));
            frames = caller.map(|index| *index..next.end);
            frames = frames.or_else(|| is_held_word(self.inside).then(|| next.clone()));
            if let (None, Some(other)) = (&frames, self.loops.get(self.used + 1)) {
                let is_held = of_lua(other).first().is_some_and(held);
                (frames, used) = (is_held.then(|| other.clone()), 2);
            }
        }
        self.used += if frames.is_some() { used } else { 0 };
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::join;
    use crate::lua::chain::FIRST;

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

    /// Calls, innermost first: a digit is one in Lua, `c` one in C, `-` the end of what a loop runs; `M` and
    /// `N` are the states of the program and of a coroutine, before their calls.
    fn chain(text: &str) -> Vec<Entry> {
        let state = |address, function| Entry { address, code: 0, position: 99, function };
        let entry = |letter: char| match letter {
            'M' => state(200, FIRST),
            'N' => state(300, COROUTINE),
            '-' => Entry::default(),
            'c' => Entry { code: 7, ..Entry::default() },
            digit => Entry { address: 1 + u64::from(digit), code: 7, ..Entry::default() },
        };
        text.chars().map(entry).chain([Entry::of_states()]).collect()
    }

    /// What native frames hold: for each `L` from the innermost on its state and its call.
    #[track_caller]
    fn check(text: &str, of: &str, held: &str, expect: Result<&[(usize, &str)], Mismatch>) {
        let entries = chain(text);
        let loops: Vec<usize> = of.match_indices('L').map(|(index, _)| index).collect();
        let held: Vec<(usize, u64)> = held
            .split(' ')
            .zip(&loops)
            .flat_map(|(held, index)| held.chars().map(|letter| (*index, letter)))
            .map(|(index, letter)| match letter {
                'M' => (index, 200),
                'N' => (index, 300),
                'i' => (index, 99),
                digit => (index, 1 + u64::from(digit)),
            })
            .collect();
        let holds = |index: usize, word: u64| held.contains(&(index, word));
        let placed = join(&entries, &natives(of), true, &|_| None, &holds);
        let placed: Result<Vec<(usize, &str)>, Mismatch> = placed.map(|placed| {
            placed.into_iter().map(|placed| (placed.native, &text[placed.frames])).collect()
        });
        assert_eq!(placed, expect.map(<[_]>::to_vec), "{text} of {of}");
    }

    #[test]
    fn each_loop_has_the_calls_that_it_runs() {
        check("M32-1-", "nLnL", "M3 M1", Ok(&[(1, "32"), (3, "1")]));
        // A function in C stands outside of what it calls, and inside of who called it.
        check("M3-c21-", "LnL", "M3 M2", Ok(&[(0, "3"), (2, "c21")]));
        check("Mc21-", "nL", "M2", Ok(&[(1, "c21")]));
        // It is over where nothing native is inside of the loop.
        check("Mc21-", "Ln", "M2", Ok(&[(0, "21")]));
        check("M21-", "nL", "M9", Ok(&[(1, "")]));
        check("M3-2-1-", "nLL", "M3 M1", Err(Mismatch::Stack));
        check("M3-2-1-", "nLL", "M3 M2", Err(Mismatch::Unplaced));
        check("M2-1-", "nLL", "N2 M1", Err(Mismatch::Stack));
    }

    #[test]
    fn the_innermost_loop_may_be_amid_a_call_or_a_return() {
        // 3 is called, and the loop has its caller yet; it has one that has returned.
        check("M32-1-", "LL", "M2 M1", Ok(&[(0, "2"), (1, "1")]));
        check("M32-1-", "LL", "Mi M1", Ok(&[(0, "32"), (1, "1")]));
        // A call whose loop has not begun, or has ended.
        check("M3-21-", "nL", "M2", Ok(&[(1, "21")]));
        check("M32-21-", "LL", "M3 Mi", Err(Mismatch::Stack));
    }

    #[test]
    fn coroutines_run_inside_of_who_resumes_them() {
        check("N54-M21-", "nLnL", "N5 M2", Ok(&[(1, "54"), (3, "21")]));
        // One that does not run.
        check("N54-M21-", "nL", "M2", Ok(&[(1, "21")]));
        // What it had called when it yielded has no loop, but the one that goes on with it.
        check("N5-c4-3-M1-", "nLL", "N5 M1", Ok(&[(1, "5-c4-3"), (2, "1")]));
    }
}
