//! Spans of time that stand within one another.

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
    end: u64,
    start: u64,
    /// What no span within it has taken.
    own: u64,
}

/// Nests the spans of one thread, and gives each stack (outermost first) with the start and the own
/// time of its last span, in the order of their starts. Returns how many spans had to end early
/// since the span that they began in ends before them.
pub(crate) fn nest<N>(mut spans: Vec<Span<N>>, add: &mut dyn FnMut(&[N], u64, u64)) -> usize {
    spans.sort_by(|a, b| (a.start, b.end, a.order).cmp(&(b.start, a.end, b.order)));
    let mut names: Vec<N> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let mut early = 0;
    let mut close = |names: &mut Vec<N>, open: &mut Vec<Open>| {
        if let Some(span) = open.pop() {
            if span.own > 0 {
                add(names, span.start, span.own);
            }
            names.pop();
        }
    };
    for span in spans {
        while open.last().is_some_and(|above| above.end <= span.start) {
            close(&mut names, &mut open);
        }
        let end = open.last().map_or(span.end, |above| span.end.min(above.end));
        early += usize::from(end < span.end);
        let own = end.saturating_sub(span.start);
        if own == 0 {
            continue;
        }
        if let Some(above) = open.last_mut() {
            above.own = above.own.saturating_sub(own);
        }
        names.push(span.name);
        open.push(Open { start: span.start, end, own });
    }
    while !open.is_empty() {
        close(&mut names, &mut open);
    }
    early
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(spans: &[(&str, u64, u64)], expect: &[(&str, u64)], expect_early: usize) {
        let spans = spans.iter().enumerate().map(|(order, (name, start, end))| Span {
            name: (*name).to_owned(),
            start: *start,
            end: *end,
            order,
        });
        let mut found = Vec::new();
        let early = nest(spans.collect(), &mut |stack, _, own| found.push((stack.join(";"), own)));
        let found: Vec<(&str, u64)> = found.iter().map(|(stack, own)| (&stack[..], *own)).collect();
        assert_eq!((found.as_slice(), early), (expect, expect_early));
    }

    #[test]
    fn own_time_is_what_spans_within_leave_over() {
        check(&[("a", 0, 10), ("b", 2, 5), ("c", 5, 9)], &[("a;b", 3), ("a;c", 4), ("a", 3)], 0);
        check(&[("in", 2, 4), ("out", 2, 8)], &[("out;in", 2), ("out", 4)], 0);
        check(&[("first", 0, 4), ("second", 0, 4)], &[("first;second", 4)], 0);
        check(&[("a", 0, 4), ("b", 4, 6), ("none", 5, 5)], &[("a", 4), ("b", 2)], 0);
    }

    #[test]
    fn a_span_that_outlives_the_one_it_began_in_ends_with_it() {
        check(&[("a", 0, 4), ("b", 2, 6)], &[("a;b", 2), ("a", 2)], 1);
    }
}
