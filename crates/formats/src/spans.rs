//! Spans of time that stand within one another.

use flame_profile::Nanos;

use crate::nested::NestedIndex;
use crate::odd::Odd;
use crate::sink::{FrameIndex, Sample, Sink, TaskIndex};
use crate::skipped::Place;

/// A span of a thread's time, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span<N> {
    pub(crate) name: N,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Its place in the file: of two equal spans the first is the outer one.
    pub(crate) order: usize,
}

struct Open {
    stack: NestedIndex,
    end: u64,
    start: u64,
    /// What no span within it has taken, up to `since`, and what of that is not added yet.
    own: u64,
    since: u64,
}

impl Open {
    /// Adds its own time up to there.
    fn add(&mut self, until: u64, task: TaskIndex, sink: &mut Sink) {
        let own = std::mem::take(&mut self.own) + until.saturating_sub(self.since);
        let (task, time) = (Some(task), Some(Nanos(self.start)));
        if own > 0 {
            sink.add_nested(self.stack, &Sample { task, time, ..Sample::new(&[], &[own]) });
        }
    }
}

/// Nests the spans of one thread, and adds each stack with the start and the own time of its last span.
/// Spans that have to end early, since the one that they began in ends before them, are added to `early`; a
/// nanosecond is what rounding makes of times.
pub(crate) fn nest(
    mut spans: Vec<Span<FrameIndex>>,
    task: TaskIndex,
    early: &mut Odd,
    sink: &mut Sink,
) {
    spans.sort_by(|a, b| (a.start, b.end, a.order).cmp(&(b.start, a.end, b.order)));
    let mut open: Vec<Open> = Vec::new();
    for span in spans {
        while let Some(mut ended) = open.pop_if(|above| above.end <= span.start) {
            ended.add(ended.end, task, sink);
        }
        let end = open.last().map_or(span.end, |above| span.end.min(above.end));
        if end.saturating_add(1) < span.end {
            early.add(Place::Record(span.order as u64 + 1));
        }
        let own = end.saturating_sub(span.start);
        if own == 0 {
            continue;
        }
        let above = open.last_mut().map(|above| {
            // Where samples stay in their order it is to stand before what is within.
            match sink.keeps_order() {
                true => above.add(span.start, task, sink),
                false => above.own += span.start.saturating_sub(above.since),
            }
            above.since = end;
            above.stack
        });
        let stack = sink.nested(above, Some(task), span.name);
        open.push(Open { stack, start: span.start, end, own: 0, since: span.start });
    }
    for mut left in open.into_iter().rev() {
        left.add(left.end, task, sink);
    }
}

#[cfg(test)]
mod tests {
    use flame_profile::{
        Annotations, FrameKind, SiblingOrder, TreeOptions, ValueType, write_folded,
    };

    use super::*;
    use crate::ReadOptions;
    use crate::sink::TaskName;

    #[track_caller]
    fn check(spans: &[(&str, u64, u64)], expect: &str, expect_early: &[&str]) {
        let mut sink = Sink::new(&ReadOptions::default());
        let task = sink.task(TaskName { name: b"t", ..TaskName::default() });
        let mut span = |(order, (name, start, end)): (usize, &(&str, u64, u64))| {
            let name = sink.frame(name.as_bytes(), FrameKind::User);
            Span { name, start: *start, end: *end, order }
        };
        let spans = spans.iter().enumerate().map(&mut span).collect();
        let mut early = Odd::default();
        nest(spans, task, &mut early, &mut sink);
        early.say("early", "", &mut sink).unwrap();
        let (stacks, _, notes) = sink.finish();
        let tree = stacks.to_builder(&TreeOptions::default());
        let tree = tree.finish(ValueType::samples(), SiblingOrder::Name);
        let mut found = Vec::new();
        write_folded(&tree, Annotations::Write, &mut found).unwrap();
        let found = String::from_utf8(found).unwrap();
        assert_eq!(found, expect);
        assert_eq!(notes, expect_early);
        assert_eq!(stacks.to_profile().total(0), tree.total());
    }

    #[test]
    fn own_time_is_what_spans_within_leave_over() {
        let spans = [("a", 0, 10), ("b", 2, 5), ("c", 5, 9)];
        check(&spans, "t;a 3\nt;a;b 3\nt;a;c 4\n", &[]);
        check(&[("in", 2, 4), ("out", 2, 8)], "t;out 4\nt;out;in 2\n", &[]);
        check(&[("first", 0, 4), ("second", 0, 4)], "t;first;second 4\n", &[]);
        check(&[("a", 0, 4), ("b", 4, 6), ("none", 5, 5)], "t;a 4\nt;b 2\n", &[]);
    }

    /// A trace of 100,000 spans within one another is 6 MB.
    #[test]
    fn spans_take_no_more_room_the_deeper_they_are() {
        const DEPTH: u64 = 50_000;
        let mut sink = Sink::new(&ReadOptions::default());
        let task = sink.task(TaskName { name: b"t", ..TaskName::default() });
        let name = sink.frame(b"f", FrameKind::User);
        let span = |at| Span { name, start: at, end: 2 * DEPTH - at, order: 0 };
        nest((0..DEPTH).map(span).collect(), task, &mut Odd::default(), &mut sink);
        let (stacks, ..) = sink.finish();
        assert_eq!((stacks.len(), stacks.nested.iter().count() as u64), (0, DEPTH));
        let tree = stacks.to_builder(&TreeOptions::default());
        let tree = tree.finish(ValueType::samples(), SiblingOrder::Name);
        assert_eq!(tree.total().0, 2 * DEPTH);
    }

    #[test]
    fn a_span_that_outlives_the_one_it_began_in_ends_with_it() {
        check(&[("a", 0, 4), ("b", 2, 5)], "t;a 2\nt;a;b 2\n", &[]);
        check(&[("a", 0, 4), ("b", 2, 6)], "t;a 2\nt;a;b 2\n", &["early: 1; "]);
    }
}
