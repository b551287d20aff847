//! One line of folded text: where its count, its stack and the frames of that end.

use memchr::memchr;

use super::count::Count;
use super::names::HashedName;

/// Lines that are understood, but not in the tree yet.
#[derive(Debug)]
pub(super) struct Batch<'t> {
    /// The frames of all lines that they do not share with the one before.
    pub(super) names: Vec<HashedName<'t>>,
    pub(super) lines: Vec<Line>,
    /// How many lines come before the one before them in the order of their bytes.
    pub(super) falls: usize,
}

/// A line of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Counted from 1.
    pub(super) number: u64,
    /// How many frames it shares with the line before.
    pub(super) kept: usize,
    /// Where the names of its other frames end in the batch.
    pub(super) names_end: usize,
    pub(super) before: Count,
    pub(super) after: Count,
}

impl<'t> Batch<'t> {
    /// An empty one with room for this many names and lines, and for what the last line is beyond.
    pub(super) fn with_room(number: usize) -> Batch<'t> {
        let number = number + number / 4;
        let (names, lines) = (Vec::with_capacity(number), Vec::with_capacity(number));
        Batch { names, lines, falls: 0 }
    }

    /// Whether many of its lines are in no order and have a good part of their frames for themselves.
    pub(super) fn is_in_disorder(&self) -> bool {
        let kept: usize = self.lines.iter().map(|line| line.kept).sum();
        self.falls * 8 > self.lines.len() && self.names.len() * 4 > kept
    }

    /// Adds the names of a stack whose first `common` bytes are those of the stack before, from
    /// the first on that differs. `ends` has where the frames end in the text of the one and then
    /// of the other. Returns how many frames are the same.
    pub(super) fn add_names(
        &mut self,
        stack: &'t [u8],
        common: usize,
        ends: &mut Vec<usize>,
    ) -> usize {
        let shared = |end: usize| {
            let ends_here = match stack.get(end) {
                None => true,
                Some(b';') => stack.get(end + 1) != Some(&b' '),
                Some(_) => false,
            };
            end <= common && ends_here
        };
        while ends.last().is_some_and(|end| !shared(*end)) {
            ends.pop();
        }
        let kept = ends.len();
        let mut at = match ends.last() {
            Some(end) if *end == stack.len() => return kept,
            Some(end) => end + 1,
            None => 0,
        };
        loop {
            let end = frame_end(stack, at);
            self.names.push(HashedName::new(&stack[at..end]));
            ends.push(end);
            if end == stack.len() {
                return kept;
            }
            at = end + 1;
        }
    }
}

pub(super) fn is_comment(line: &[u8]) -> bool {
    matches!(line, [b'#'] | [b'#', b' ' | b'\t', ..])
}

/// Cuts the last word off a line when it is a count: the stack before it, and the count.
pub(super) fn cut_count(line: &[u8]) -> Option<(&[u8], Count)> {
    cut_last(line).map(|(stack, count)| (without_end(stack), count))
}

/// The same, with the semicolon that the stack may end with.
pub(super) fn cut_last(line: &[u8]) -> Option<(&[u8], Count)> {
    let line = line.trim_ascii_end();
    let start = line.iter().rposition(|byte| matches!(byte, b' ' | b'\t'))?;
    let count = Count::parse(&line[start + 1..])?;
    let stack = line[..start].trim_ascii_end();
    (!stack.is_empty()).then_some((stack, count))
}

/// A stack without a semicolon behind its last frame: heaptrack puts one there, and flame where the
/// frame ends like a count.
pub(super) fn without_end(stack: &[u8]) -> &[u8] {
    stack.strip_suffix(b";").filter(|rest| !rest.is_empty()).unwrap_or(stack)
}

/// Where the frame that starts at `at` ends.
fn frame_end(stack: &[u8], at: usize) -> usize {
    let mut from = at;
    while let Some(found) = memchr(b';', &stack[from..]) {
        let end = from + found;
        if stack.get(end + 1) != Some(&b' ') || !has_open_bracket(&stack[at..end]) {
            return end;
        }
        from = end + 1;
    }
    stack.len()
}

fn has_open_bracket(name: &[u8]) -> bool {
    let count = |bracket: u8| name.iter().filter(|byte| **byte == bracket).count();
    count(b'[') > count(b']')
}

/// The length of what two texts start with.
pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    // Arrays are compared in a few instructions each, slices by a call.
    const STEP: usize = 32;
    const WORD: usize = size_of::<u64>();
    let steps = a.as_chunks::<STEP>().0.iter().zip(b.as_chunks::<STEP>().0);
    let whole = steps.take_while(|(a, b)| a == b).count() * STEP;
    let words = a[whole..].as_chunks::<WORD>().0.iter().zip(b[whole..].as_chunks::<WORD>().0);
    let mut common = whole;
    for (a, b) in words {
        let differing = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differing != 0 {
            return common + differing.trailing_zeros() as usize / 8;
        }
        common += WORD;
    }
    let rest = a[common..].iter().zip(&b[common..]);
    common + rest.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_in_common_what_they_start_with() {
        let text: Vec<u8> = (0..100).collect();
        for len in 0..100 {
            let mut other = text.clone();
            other[len] ^= 0x80;
            assert_eq!(common_prefix(&text, &other), len);
            assert_eq!(common_prefix(&text, &text[..len]), len);
            assert_eq!(common_prefix(&other[..len], &text), len);
        }
    }

    #[test]
    fn a_semicolon_behind_the_last_frame_ends_it() {
        let stack = |line: &'static str| cut_count(line.as_bytes()).map(|(stack, _)| stack);
        assert_eq!(
            stack("main (a.c);new;__strdup (b.c); 100"),
            Some(&b"main (a.c);new;__strdup (b.c)"[..])
        );
        assert_eq!(stack("main;;\t3"), Some(&b"main;"[..]));
        // Two frames without names.
        assert_eq!(stack("; 3"), Some(&b";"[..]));
    }
}
