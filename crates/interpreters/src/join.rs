//! Which native frame runs which frames of a chain: what the one says of the other has to agree.

use std::ops::Range;

use crate::caught::Entry;
use crate::lua;
use crate::perl::place;
use crate::php;
use crate::ruby;

/// What is known of a native frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeFrame {
    /// The stack pointer in it, as of the call that it is in.
    pub stack_pointer: u64,
    /// Whether its function is the one that runs frames.
    pub runs_frames: bool,
    /// Whether it is the one that runs a script, from its first frame to its last.
    pub runs_script: bool,
    /// What it has in the register in which LuaJIT's interpreter has the next instruction; 0 if that is not
    /// known.
    pub next: u64,
}

/// Frames of a chain, by their positions, that a native frame runs: innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The position of the native frame.
    pub native: usize,
    /// Those of the frames among the entries.
    pub frames: Range<usize>,
}

/// Why a chain is not that of the native frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The stack has other words than the chain says.
    Stack,
    /// They run another interpreter.
    OtherInterpreter,
    /// A native frame runs frames, and the chain has none for it.
    Missing,
    /// The chain has frames, and no native frame runs them.
    Unplaced,
}

/// Places the frames of a chain, innermost first, in native frames, innermost first.
///
/// `is_whole` says that the native frames go up to the root; else frames beyond them are left out.
/// `word` is the word of the stack at an address, and `holds` whether a native frame has a word in its
/// part of the stack or in its registers.
///
/// # Errors
/// They do not agree. The innermost native frame alone may run nothing: it begins or ends.
pub fn join(
    entries: &[Entry],
    natives: &[NativeFrame],
    is_whole: bool,
    word: &dyn Fn(u64) -> Option<u64>,
    holds: &dyn Fn(usize, u64) -> bool,
) -> Result<Vec<Placed>, Mismatch> {
    if let Some((last, frames)) = entries.split_last()
        && let Some(interpreter) = last.interpreter()
    {
        // Frames are counted from the root.
        let is_known = is_whole.then_some(frames).ok_or(Mismatch::Missing);
        return is_known.and_then(|frames| place::place(frames, interpreter, natives, holds));
    }
    if let Some((last, calls)) = entries.split_last()
        && last.ends_states()
    {
        return lua::place::place(calls, natives, is_whole, holds);
    }
    if let Some((last, frames)) = entries.split_last()
        && last.ends_frames()
    {
        return ruby::place::place(frames, natives, is_whole, holds);
    }
    if let Some((last, frames)) = entries.split_last()
        && let Some(inside) = last.frame_inside()
    {
        return php::place::place(frames, inside, natives, is_whole, holds);
    }
    let entries = match entries.split_last() {
        Some((last, chain)) if last.subroutine().is_some() => chain,
        _ => entries,
    };
    let count = entries.iter().rev().take_while(|entry| entry.instructions().is_some()).count();
    let (entries, checks) = entries.split_at(entries.len() - count);
    let by_address = entries.iter().all(|entry| !entry.is_boundary() || entry.address != 0);
    let placed = match by_address {
        true => place_by_address(entries, natives, is_whole, word)?,
        false => place_by_frames(entries, natives, is_whole, holds)?,
    };
    let is_next = |native: &NativeFrame| {
        checks.iter().filter_map(Entry::instructions).any(|range| range.contains(&native.next))
    };
    if let Some(native) = placed.first().and_then(|placed| natives.get(placed.native))
        && !checks.is_empty()
        && !is_next(native)
    {
        return Err(Mismatch::Stack);
    }
    let mut runs = natives.iter().enumerate().filter(|(_, native)| native.runs_frames);
    let innermost = runs.next().map(|(index, _)| index);
    let is_placed = |index: usize| placed.iter().any(|placed| placed.native == index);
    let all = runs.all(|(index, _)| is_placed(index));
    let has_none = entries.is_empty() && innermost.is_some();
    match all && !has_none {
        true => Ok(placed),
        false => Err(Mismatch::Missing),
    }
}

/// Places the innermost frames of a chain whose callers could not be read, innermost first: those of native frames that
/// are proven to run them, as in [`join`]. It may be none. `is_cut` says that the last frames of the chain are of the
/// moment and lack their callers only; else those that no boundary is behind are left out.
///
/// Chains of interpreters that are proven as a whole have no such part.
pub fn join_innermost(
    entries: &[Entry],
    natives: &[NativeFrame],
    is_cut: bool,
    word: &dyn Fn(u64) -> Option<u64>,
    holds: &dyn Fn(usize, u64) -> bool,
) -> Vec<Placed> {
    let is_boundary = |entry: &&Entry| entry.is_boundary();
    let complete = entries.iter().rposition(|entry| is_boundary(&entry)).map_or(0, |at| at + 1);
    let (complete, cut) = entries.split_at(complete);
    let by_address = complete.iter().filter(is_boundary).all(|entry| entry.address != 0);
    let runs: Vec<usize> = (0..natives.len()).filter(|index| natives[*index].runs_frames).collect();
    if !complete.is_empty() && !by_address {
        return innermost_held(complete, &runs, holds);
    }
    // The native frames beyond are those of the callers that were not read.
    let Ok(mut placed) = place_by_address(complete, natives, false, word) else {
        return Vec::new();
    };
    let ends_at = placed.last().map(|placed| placed.native);
    let Some(first) = placed.first().map_or(runs.first().copied(), |placed| Some(placed.native))
    else {
        return Vec::new();
    };
    // Only the innermost may run nothing, since it begins or ends.
    let between = runs.iter().filter(|index| ends_at.is_some_and(|end| **index <= end));
    let is_placed = |index: &usize| placed.iter().any(|placed| placed.native == *index);
    if between.skip_while(|index| **index < first).any(|index| !is_placed(index))
        || runs.iter().filter(|index| **index < first).count() > 1
    {
        return Vec::new();
    }
    let next = match ends_at {
        Some(end) => runs.iter().copied().find(|index| *index > end),
        // It may not have begun, and the frames are those of the next one.
        None => runs.first().copied().filter(|_| runs.len() == 1),
    };
    if let Some(native) = next.filter(|_| is_cut && !cut.is_empty()) {
        placed.push(Placed { native, frames: complete.len()..entries.len() });
    }
    placed
}

/// The frames, from the innermost on, that native frames have the addresses of.
fn innermost_held(
    entries: &[Entry],
    runs: &[usize],
    holds: &dyn Fn(usize, u64) -> bool,
) -> Vec<Placed> {
    let held = |skip: usize| -> Vec<Placed> {
        let pairs = segments(entries).zip(runs.iter().skip(skip));
        let is_held = |((frames, _), native): &((Range<usize>, _), &usize)| {
            entries.get(frames.start).is_some_and(|entry| holds(**native, entry.address))
        };
        let pairs = pairs.take_while(is_held);
        pairs.map(|((frames, _), native)| Placed { native: *native, frames }).collect()
    };
    let placed = held(0);
    if placed.is_empty() { held(1) } else { placed }
}

/// The frames between boundaries.
pub(crate) fn segments(entries: &[Entry]) -> impl Iterator<Item = (Range<usize>, Option<&Entry>)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = entries.get(start..).filter(|rest| !rest.is_empty())?;
        let len = rest.iter().position(Entry::is_boundary);
        let end = start + len.unwrap_or(rest.len());
        let range = start..end;
        start = end + 1;
        Some((range, entries.get(end)))
    })
}

/// Each boundary says where on the stack something of its native frame is.
fn place_by_address(
    entries: &[Entry],
    natives: &[NativeFrame],
    is_whole: bool,
    word: &dyn Fn(u64) -> Option<u64>,
) -> Result<Vec<Placed>, Mismatch> {
    let mut placed: Vec<Placed> = Vec::new();
    let mut native = 0;
    for (frames, boundary) in segments(entries) {
        let Some(boundary) = boundary else { return Err(Mismatch::Unplaced) };
        if word(boundary.function).is_some_and(|word| word != boundary.position) {
            return Err(Mismatch::Stack);
        }
        let above = |native: &NativeFrame| native.stack_pointer > boundary.address;
        let rest = natives.get(native..).unwrap_or_default();
        let next = rest.iter().position(above).map(|next| native + next);
        match next {
            // Below the stack, or in a native frame that another boundary is of.
            Some(next) if next == native => return Err(Mismatch::Unplaced),
            Some(next) => {
                placed.push(Placed { native: next - 1, frames });
                native = next;
            }
            // The outermost has no end that is known.
            None if !is_whole => break,
            None => return Err(Mismatch::Unplaced),
        }
    }
    Ok(placed)
}

/// Each frame has a native one, which has its address somewhere.
fn place_by_frames(
    entries: &[Entry],
    natives: &[NativeFrame],
    is_whole: bool,
    holds: &dyn Fn(usize, u64) -> bool,
) -> Result<Vec<Placed>, Mismatch> {
    let runs: Vec<usize> = natives
        .iter()
        .enumerate()
        .filter(|(_, native)| native.runs_frames)
        .map(|(index, _)| index)
        .collect();
    // The innermost native frame may not have begun with its frame, or be done with it.
    let skipped = |skip: usize| {
        let pairs: Vec<(Range<usize>, Option<&usize>)> = segments(entries)
            .map(|(frames, _)| frames)
            .zip(runs.iter().skip(skip).map(Some).chain(std::iter::repeat(None)))
            .collect();
        let mut placed = Vec::new();
        for (frames, native) in pairs {
            let Some(native) = native else {
                return if is_whole { Err(Mismatch::Unplaced) } else { Ok(placed) };
            };
            let address = entries.get(frames.start).map_or(0, |entry| entry.address);
            if !holds(*native, address) {
                return Err(Mismatch::Stack);
            }
            placed.push(Placed { native: *native, frames });
        }
        Ok(placed)
    };
    skipped(0).or_else(|why| skipped(1).map_err(|_| why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(address: u64) -> Entry {
        Entry { address, code: 0x100, position: 0, function: 1 }
    }

    fn boundary(address: u64) -> Entry {
        Entry { address, code: 0, position: 7, function: address }
    }

    /// Native frames of sixteen bytes; those of capital letters run frames.
    fn natives(text: &str) -> Vec<NativeFrame> {
        let native = |(index, letter): (usize, char)| NativeFrame {
            stack_pointer: 0x1000 + 16 * index as u64,
            runs_frames: letter.is_uppercase(),
            runs_script: false,
            next: 0,
        };
        text.chars().enumerate().map(native).collect()
    }

    fn by_address(entries: &[Entry], text: &str, is_whole: bool) -> Result<Vec<Placed>, Mismatch> {
        join(entries, &natives(text), is_whole, &|_| Some(7), &|_, _| false)
    }

    #[test]
    fn boundaries_lie_in_the_frames_that_they_are_of() {
        let entries = [frame(1), frame(2), boundary(0x1010), frame(3), boundary(0x1038)];
        let placed = vec![Placed { native: 1, frames: 0..2 }, Placed { native: 3, frames: 3..4 }];
        assert_eq!(by_address(&entries, "aEbEc", true), Ok(placed.clone()));
        // What runs nothing yet may be the innermost only.
        assert_eq!(by_address(&entries, "EEbEc", true), Ok(placed));
        assert_eq!(by_address(&entries, "aEbEcEd", true), Err(Mismatch::Missing));
        assert_eq!(by_address(&[], "aEbc", true), Err(Mismatch::Missing));
        assert_eq!(by_address(&[], "abc", true), Ok(Vec::new()));
        // Of a stack that is cut, what is not there is not missed.
        assert_eq!(by_address(&entries, "aEb", true), Err(Mismatch::Unplaced));
        assert_eq!(by_address(&entries, "aEb", false).map(|placed| placed.len()), Ok(1));
    }

    #[test]
    fn chains_of_another_moment_do_not_agree() {
        let other =
            |entries: &[Entry]| join(entries, &natives("aEc"), true, &|_| Some(8), &|_, _| true);
        assert_eq!(other(&[frame(1), boundary(0x1010)]), Err(Mismatch::Stack));
        // Below the stack, twice in one frame, frames of nobody.
        let cases = [
            vec![frame(1), boundary(0xff0)],
            vec![frame(1), boundary(0x1010), frame(2), boundary(0x1018)],
            vec![frame(1), boundary(0x1010), frame(2)],
        ];
        for entries in cases {
            assert_eq!(by_address(&entries, "aEbEc", true), Err(Mismatch::Unplaced), "{entries:?}");
        }
    }

    #[test]
    fn the_innermost_frames_stay_where_their_callers_were_not_read() {
        let innermost = |entries: &[Entry], text: &str, is_cut: bool| {
            join_innermost(entries, &natives(text), is_cut, &|_| Some(7), &|_, _| false)
        };
        let whole = Placed { native: 1, frames: 0..2 };
        let cut = Placed { native: 3, frames: 3..4 };
        let entries = [frame(1), frame(2), boundary(0x1010), frame(3)];
        assert_eq!(innermost(&entries, "aEbEcEd", true), [whole.clone(), cut]);
        assert_eq!(innermost(&entries, "aEbEcEd", false), [whole]);
        // One native frame runs all there are: of several it is not known which one does.
        let all = Placed { native: 1, frames: 0..2 };
        assert_eq!(innermost(&entries[..2], "aEbc", true), [all]);
        assert_eq!(innermost(&entries[..2], "aEbEc", true), []);
        // Of another moment; and a native frame between that runs nothing.
        let other = join_innermost(&entries, &natives("aEbEc"), true, &|_| Some(8), &|_, _| true);
        assert_eq!(other, []);
        let entries = [frame(1), boundary(0x1010), frame(2), boundary(0x1050)];
        assert_eq!(innermost(&entries, "aEbEcEd", true), []);
    }

    #[test]
    fn the_innermost_objects_stay_where_their_callers_were_not_read() {
        let entries = [frame(5), Entry::default(), frame(6), Entry::default()];
        let innermost = |held: &[(usize, u64)]| {
            let holds = |index: usize, word: u64| held.contains(&(index, word));
            join_innermost(&entries, &natives("aEbEcEEd"), true, &|_| None, &holds)
        };
        let place = |native, frames| Placed { native, frames };
        assert_eq!(innermost(&[(1, 5), (3, 6)]), [place(1, 0..1), place(3, 2..3)]);
        assert_eq!(innermost(&[(1, 5)]), [place(1, 0..1)]);
        // The innermost native frame has not begun.
        assert_eq!(innermost(&[(3, 5), (5, 6)]), [place(3, 0..1), place(5, 2..3)]);
        assert_eq!(innermost(&[(5, 5)]), []);
    }

    #[test]
    fn frames_with_native_frames_of_their_own_are_held_by_those() {
        let entries = [frame(5), Entry::default(), frame(6), Entry::default()];
        let held = [(1, 5), (3, 6)];
        let check = |text: &str, held: &[(usize, u64)]| {
            let holds = |index: usize, word: u64| held.contains(&(index, word));
            join(&entries, &natives(text), true, &|_| None, &holds)
        };
        let placed = vec![Placed { native: 1, frames: 0..1 }, Placed { native: 3, frames: 2..3 }];
        assert_eq!(check("aEbEc", &held), Ok(placed.clone()));
        assert_eq!(check("EEbEc", &held), Ok(placed));
        assert_eq!(check("aEbEc", &held[..1]), Err(Mismatch::Stack));
        assert_eq!(check("aEbbc", &held), Err(Mismatch::Unplaced));
        assert_eq!(check("aEbEE", &held), Err(Mismatch::Missing));
    }
}
