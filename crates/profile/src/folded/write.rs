//! Call trees written as folded text.
//!
//! The format has no quoting, so a name may not hold what it uses; see [`write_folded`].

use std::io::{self, Write};

use super::sorted::{LineCounts, Lines};
use crate::call_tree::{CallTree, Label};
use crate::frame::FrameKind;
use crate::readable::is_direction_mark;
use crate::units::Weight;

/// Whether names carry the `_[k]`, `_[i]` and `_[j]` suffixes that palettes recognise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Annotations {
    /// Written where a label's kind has one; the default, as flamegraph.pl's palettes expect.
    #[default]
    Write,
    /// Written but for these kinds: what is left has its suffix, `_[i]` say.
    Without {
        /// The kernel's code.
        kernel: bool,
        /// What a runtime has compiled.
        jit: bool,
    },
    /// Left out.
    Omit,
}

impl Annotations {
    fn of(self, kind: FrameKind) -> &'static str {
        let is_left_out = match (self, kind) {
            (Annotations::Write, _) => false,
            (Annotations::Without { kernel, .. }, FrameKind::Kernel | FrameKind::Waiting) => kernel,
            (Annotations::Without { jit, .. }, FrameKind::Jit) => jit,
            (Annotations::Without { .. }, _) => false,
            (Annotations::Omit, _) => true,
        };
        if is_left_out { "" } else { kind.annotation() }
    }
}

/// What folded text can be written of: a tree with its nodes in pre-order, the first of which is the root.
pub trait FoldedTree {
    /// The labels that nodes refer to.
    fn labels(&self) -> &[Label];
    /// The position of a node's label.
    fn label(&self, node: usize) -> usize;
    /// One past the position of the last node below a node.
    fn end(&self, node: usize) -> usize;
    /// The self weights of a node.
    fn counts(&self, node: usize) -> LineCounts;
    /// Whether lines have a count before and one after.
    fn has_before(&self) -> bool;
    /// How many decimal places the weights have.
    fn decimals(&self) -> u32;
}

impl FoldedTree for CallTree {
    fn labels(&self) -> &[Label] {
        CallTree::labels(self)
    }

    fn label(&self, node: usize) -> usize {
        self.nodes()[node].label.index()
    }

    fn end(&self, node: usize) -> usize {
        self.nodes()[node].end as usize
    }

    fn counts(&self, node: usize) -> LineCounts {
        let before = self.before().map_or(Weight(0), |before| before[node].self_weight);
        LineCounts { before, after: self.nodes()[node].self_weight }
    }

    fn has_before(&self) -> bool {
        self.before().is_some()
    }

    fn decimals(&self) -> u32 {
        CallTree::decimals(self)
    }
}

/// A tree with its names as folded text has them.
#[derive(Debug)]
pub struct FoldedText<'t, T> {
    tree: &'t T,
    names: Vec<String>,
}

impl<'t, T: FoldedTree> FoldedText<'t, T> {
    /// Of a tree.
    pub fn new(tree: &'t T, annotations: Annotations) -> FoldedText<'t, T> {
        let text = |label| frame_text(label, annotations);
        FoldedText { tree, names: tree.labels().iter().map(text).collect() }
    }

    /// All lines.
    pub fn lines(&self) -> FoldedLines<'_, T> {
        FoldedLines { tree: self.tree, lines: Lines::new(self.tree, &self.names) }
    }
}

/// The lines of a [`FoldedText`] that are not made yet; see [`write_folded`].
#[expect(missing_debug_implementations, reason = "it is as large as a tree")]
pub struct FoldedLines<'t, T> {
    tree: &'t T,
    lines: Lines<'t, T>,
}

impl<T: FoldedTree> FoldedLines<'_, T> {
    /// The next lines, of 64 KiB together or a little more; `None` behind the last.
    pub fn next_lines(&mut self) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        while text.len() < FoldedLines::<T>::SIZE {
            let Some((path, counts)) = self.lines.next_line() else { break };
            if text.is_empty() {
                text.reserve(FoldedLines::<T>::SIZE + path.len());
            }
            text.extend_from_slice(path.as_bytes());
            if self.tree.has_before() {
                push_count(counts.before, self.tree.decimals(), &mut text);
            }
            push_count(counts.after, self.tree.decimals(), &mut text);
            text.push(b'\n');
        }
        (!text.is_empty()).then_some(text)
    }

    /// As much as stays in a core's own cache.
    const SIZE: usize = 1 << 16;
}

/// Writes one line for each node with self weight, sorted by bytes.
///
/// In names `;` becomes `:` and control characters become escapes (`\x1b`), so that a name is always one
/// frame of one line, and different names stay different; marks that turn the direction of text become escapes
/// (`\u{202e}`); a leaf that ends with a blank and a number, or has no name, gets a `;` behind it, since readers
/// would take the number for a second count. Blanks at both ends of a line are left out, a stack that is
/// nothing else becomes `-`, and one that looks like a comment gets a `_`. Names that become equal by
/// that share a line. A tree with weights before and after has both on each line, as difffolded.pl
/// writes them. Only some lines at a time are in memory.
///
/// # Errors
/// Those of `out`.
pub fn write_folded(
    tree: &impl FoldedTree,
    annotations: Annotations,
    out: &mut impl Write,
) -> io::Result<()> {
    let text = FoldedText::new(tree, annotations);
    let mut lines = text.lines();
    while let Some(lines) = lines.next_lines() {
        out.write_all(&lines)?;
    }
    Ok(())
}

/// Adds a blank and the number, without needless digits.
fn push_count(weight: Weight, decimals: u32, out: &mut Vec<u8>) {
    out.push(b' ');
    if decimals == 0 {
        return push_digits(weight.0, 1, out);
    }
    let unit = 10_u64.saturating_pow(decimals);
    let (whole, mut part) = (weight.0 / unit, weight.0 % unit);
    push_digits(whole, 1, out);
    if part == 0 {
        return;
    }
    let mut places = decimals;
    while part.is_multiple_of(10) {
        part /= 10;
        places -= 1;
    }
    out.push(b'.');
    push_digits(part, places as usize, out);
}

/// Adds a number with this many digits at least. Formatting it is a third of what a line costs else.
fn push_digits(mut number: u64, least: usize, out: &mut Vec<u8>) {
    const MOST: usize = 20;
    let mut digits = [b'0'; MOST];
    let mut start = MOST;
    while number > 0 {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.extend_from_slice(&digits[start.min(MOST - least)..]);
}

fn frame_text(label: &Label, annotations: Annotations) -> String {
    let mut text = String::with_capacity(label.name.len());
    for c in label.name.chars() {
        match c {
            ';' => text.push(':'),
            c if c.is_control() => text.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if is_direction_mark(c) => text.extend(c.escape_unicode()),
            c => text.push(c),
        }
    }
    text.push_str(annotations.of(label.kind));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_tree::{SiblingOrder, TreeOptions};
    use crate::folded::{Columns, FoldedReader};
    use crate::frame::Location;
    use crate::ids::{Pid, StackId, Tid};
    use crate::profile::Profile;
    use crate::units::ValueType;

    #[track_caller]
    fn check(stacks: &[(&[(&str, FrameKind)], u64)], annotations: Annotations, expect: &str) {
        let mut profile = Profile::new(vec![ValueType::samples()]);
        let thread = profile.add_thread("my prog", Pid(1), Tid(1));
        for (frames, weight) in stacks {
            let mut stack = StackId::EMPTY;
            for (name, kind) in *frames {
                let frame = profile.add_frame(name, *kind);
                let location = profile.add_location(Location::named(frame));
                stack = profile.push_stack(stack, location);
            }
            profile.add_sample(thread, stack, &[*weight]);
        }
        let tree = CallTree::from_profile(&profile, &TreeOptions::default());
        let mut out = Vec::new();
        write_folded(&tree, annotations, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expect);
    }

    const STACKS: &[(&[(&str, FrameKind)], u64)] = &[
        (&[("main", FrameKind::User), ("f", FrameKind::Inlined)], 2),
        (&[("main", FrameKind::User), ("do_read", FrameKind::Kernel)], 3),
        (&[("main", FrameKind::User)], 1),
        (&[("main-loop", FrameKind::Jit)], 5),
    ];

    #[test]
    fn lines_are_sorted_by_bytes_and_annotated() {
        let expect = "my prog;main 1\nmy prog;main-loop_[j] 5\n\
                      my prog;main;do_read_[k] 3\nmy prog;main;f_[i] 2\n";
        check(STACKS, Annotations::Write, expect);
    }

    #[test]
    fn fractions_and_counts_of_two_profiles_are_written_as_they_were_read() {
        let text = "a 0 3\na;b 0.25 12\na;c_[w] 7.5 0\n";
        let mut reader = FoldedReader::new(Columns::Two, SiblingOrder::Name);
        reader.read(&mut text.as_bytes()).unwrap();
        let mut out = Vec::new();
        let tree = reader.finish(ValueType::samples());
        write_folded(&tree, Annotations::Write, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }

    #[test]
    fn annotations_can_be_left_out() {
        let expect =
            "my prog;main 1\nmy prog;main-loop 5\nmy prog;main;do_read 3\nmy prog;main;f 2\n";
        check(STACKS, Annotations::Omit, expect);
    }

    #[test]
    fn annotations_of_some_kinds_can_be_left_out() {
        let without = |kernel, jit| Annotations::Without { kernel, jit };
        let both: &[(&[(&str, FrameKind)], u64)] = &[
            (&[("f", FrameKind::Kernel)], 1),
            (&[("f", FrameKind::User)], 2),
            (&[("f", FrameKind::Jit)], 4),
            (&[("f", FrameKind::Inlined)], 8),
        ];
        check(both, without(true, true), "my prog;f 7\nmy prog;f_[i] 8\n");
        check(both, without(true, false), "my prog;f 3\nmy prog;f_[i] 8\nmy prog;f_[j] 4\n");
        check(both, without(false, true), "my prog;f 6\nmy prog;f_[i] 8\nmy prog;f_[k] 1\n");
    }

    #[test]
    fn names_cannot_break_the_format() {
        let hostile: &[(&str, FrameKind)] = &[
            ("[u8; 8]", FrameKind::User),
            ("a\nb\tc", FrameKind::User),
            ("x 12", FrameKind::User),
        ];
        let line = "my prog;[u8: 8];a\\x0ab\\x09c;x 12; 4\n";
        check(&[(hostile, 4)], Annotations::Write, line);
        let exponent: &[(&str, FrameKind)] = &[("x 1.5e3", FrameKind::User)];
        check(&[(exponent, 4)], Annotations::Write, "my prog;x 1.5e3; 4\n");
        // What follows a mark would be shown from right to left, the count included.
        let turned: &[(&str, FrameKind)] = &[("x\u{202e}y", FrameKind::User)];
        check(&[(turned, 4)], Annotations::Write, "my prog;x\\u{202e}y 4\n");
    }

    #[test]
    fn frames_that_end_like_a_count_stay_what_they_are_however_often_they_are_turned() {
        let two = "b;a;thread 1; 3 4\nthread 1; 5 6\n";
        for text in ["thread 1;a;b 3\nthread_2;a 1\n", "thread 1; 3\n", "a;7 3\na;; 4\n", two] {
            let read = |text: &str| {
                let columns = Columns::detect(text.as_bytes());
                let mut reader = FoldedReader::new(columns, SiblingOrder::Name);
                reader.read(&mut text.as_bytes()).unwrap();
                assert_eq!(reader.skipped_lines(), 0);
                reader.finish(ValueType::samples())
            };
            let written = |tree: &CallTree| {
                let mut out = Vec::new();
                write_folded(tree, Annotations::Write, &mut out).unwrap();
                String::from_utf8(out).unwrap()
            };
            let turned = |text: &str| written(&read(text).reversed(SiblingOrder::Name));
            assert_eq!(written(&read(text)), text);
            assert_eq!(turned(&turned(text)), text);
        }
    }

    #[test]
    fn names_that_become_equal_share_a_line() {
        let one: &[(&str, FrameKind)] = &[("a;b", FrameKind::User)];
        let two: &[(&str, FrameKind)] = &[("a:b", FrameKind::User)];
        check(&[(one, 4), (two, 1)], Annotations::Write, "my prog;a:b 5\n");
    }
}
