//! Stacks of a table whose entries name their callers: a sample names its innermost entry, and callers are walked up
//! only to the first one that was met before. Time and memory grow with the entries, not with the depth of samples.

use rustc_hash::FxHashMap;

use crate::nested::NestedIndex;
use crate::sink::{FrameIndex, Sample, Sink, TaskIndex};

/// An entry of a table: its frame, or none of one that stands for nothing, and its caller.
pub(crate) type Entry = (Option<FrameIndex>, Option<usize>);

/// The entries that samples of one thread have met.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    /// Where samples stay in their order, those of the last stack only: an entry that is met again later is
    /// another box then.
    stacks: FxHashMap<usize, Stack>,
    /// The entries of the last stack, outermost first; only where samples stay in their order.
    last: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
enum Stack {
    /// Callers that are not in the table, or that call themselves.
    Broken,
    /// No entry has a frame.
    Empty,
    Of(NestedIndex),
}

impl Callers {
    /// Adds a sample whose innermost entry is `at`, of a table with so many `entries`; false if it has no stack,
    /// since `entry` has none or callers go round.
    #[must_use]
    pub(crate) fn add(
        &mut self,
        (at, entries): (usize, usize),
        mut entry: impl FnMut(usize, &mut Sink) -> Option<Entry>,
        sample: &Sample<'_>,
        sink: &mut Sink,
    ) -> bool {
        let mut path = Vec::new();
        let (mut next, mut above) = (Some(at), Stack::Empty);
        while let Some(at) = next {
            if let Some(known) = self.stacks.get(&at) {
                above = *known;
                break;
            }
            let found = if path.len() < entries { entry(at, sink) } else { None };
            path.push((at, found.and_then(|(frame, _)| frame)));
            let Some((_, caller)) = found else {
                above = Stack::Broken;
                break;
            };
            next = caller;
        }
        if sink.keeps_order() && !matches!(above, Stack::Broken) {
            self.leave_up_to(next);
        }
        for (at, frame) in path.into_iter().rev() {
            above = below(above, frame, sample.task, sink);
            self.stacks.insert(at, above);
            if sink.keeps_order() && !matches!(above, Stack::Broken) {
                self.last.push(at);
            }
        }
        match above {
            Stack::Broken => return false,
            Stack::Empty => sink.add(sample),
            Stack::Of(stack) => sink.add_nested(stack, sample),
        }
        true
    }

    /// Forgets the entries of the last stack below that one, or all.
    fn leave_up_to(&mut self, entry: Option<usize>) {
        while let Some(left) = self.last.pop_if(|last| Some(*last) != entry) {
            self.stacks.remove(&left);
        }
    }
}

fn below(
    above: Stack,
    frame: Option<FrameIndex>,
    task: Option<TaskIndex>,
    sink: &mut Sink,
) -> Stack {
    match (above, frame) {
        (Stack::Broken, _) | (_, None) => above,
        (Stack::Empty, Some(frame)) => Stack::Of(sink.nested(None, task, frame)),
        (Stack::Of(above), Some(frame)) => Stack::Of(sink.nested(Some(above), task, frame)),
    }
}

#[cfg(test)]
mod tests {
    use flame_profile::{FrameKind, SiblingOrder, TreeOptions, ValueType};

    use super::*;
    use crate::ReadOptions;

    /// `main` calls `a` and `b`, `a` calls `c`; entries 4 and 5 call each other, 6 has no caller that is there.
    const TABLE: [(&str, Option<usize>); 7] = [
        ("main", None),
        ("a", Some(0)),
        ("b", Some(0)),
        ("c", Some(1)),
        ("x", Some(5)),
        ("y", Some(4)),
        ("z", Some(7)),
    ];

    #[track_caller]
    fn check(order: SiblingOrder, samples: &[usize], expect: &str, broken: usize) {
        let tree = TreeOptions { order, ..TreeOptions::default() };
        let mut sink = Sink::new(&ReadOptions { tree, ..ReadOptions::default() });
        let mut callers = Callers::default();
        let entry = |at: usize, sink: &mut Sink| {
            let (name, caller) = TABLE.get(at)?;
            Some((Some(sink.frame(name.as_bytes(), FrameKind::User)), *caller))
        };
        let weights = [1];
        let mut add = |at| callers.add((at, 7), entry, &Sample::new(&[], &weights), &mut sink);
        let found = samples.iter().filter(|at| !add(**at)).count();
        let (stacks, ..) = sink.finish();
        let tree = stacks.to_builder(&tree).finish(ValueType::samples(), order);
        let gaps = tree.gaps().unwrap_or_default();
        let shown = tree.nodes().iter().enumerate().skip(1).map(|(at, node)| {
            let gap = gaps.get(at).filter(|gap| gap.0 > 0);
            let gap = gap.map_or(String::new(), |gap| format!("{} before ", gap.0));
            let (depth, own) = (node.depth, node.self_weight.0);
            format!("{depth} {gap}{} {own}", tree.label(node).name)
        });
        let text = shown.collect::<Vec<_>>().join(", ");
        assert_eq!((&*text, found), (expect, broken));
    }

    #[test]
    fn samples_have_the_stacks_of_their_callers() {
        let by_name = "1 main 1, 2 a 1, 3 c 2, 2 b 1";
        check(SiblingOrder::Name, &[3, 2, 3, 0, 1], by_name, 0);
        check(SiblingOrder::Time, &[3, 3, 2, 3], "1 main 0, 2 a 0, 3 c 2, 2 b 1, 2 a 0, 3 c 1", 0);
        // What a caller does itself in between stays there.
        check(
            SiblingOrder::Time,
            &[1, 3, 1, 3],
            "1 main 0, 2 a 2, 3 1 before c 1, 3 1 before c 1",
            0,
        );
        check(SiblingOrder::Time, &[1, 3, 1, 2, 2], "1 main 0, 2 a 2, 3 1 before c 1, 2 b 2", 0);
    }

    #[test]
    fn callers_that_go_round_or_are_not_there_are_no_stack() {
        for order in [SiblingOrder::Name, SiblingOrder::Time] {
            check(order, &[0, 4, 5, 4, 6, 9, 0], "1 main 2", 5);
        }
    }

    #[test]
    fn stacks_take_no_more_room_the_deeper_they_are() {
        const DEPTH: usize = 50_000;
        for order in [SiblingOrder::Name, SiblingOrder::Time] {
            let tree = TreeOptions { order, ..TreeOptions::default() };
            let mut sink = Sink::new(&ReadOptions { tree, ..ReadOptions::default() });
            let mut callers = Callers::default();
            let frame = sink.frame(b"f", FrameKind::User);
            let entry = |at: usize, _: &mut Sink| Some((Some(frame), at.checked_sub(1)));
            for at in 0..DEPTH {
                let sample = Sample::new(&[], &[1]);
                assert!(callers.add((at, DEPTH), entry, &sample, &mut sink));
            }
            let (stacks, ..) = sink.finish();
            assert_eq!(stacks.len(), 0);
            // Each calls behind what it does itself, and so goes on as another one in the order of time.
            let most = if order == SiblingOrder::Time { 2 * DEPTH } else { DEPTH };
            assert!(stacks.nested.iter().count() <= most);
        }
    }
}
