//! Turns ranges that may overlap into ranges that do not, the one of higher rank on top.

use std::collections::BinaryHeap;

/// A range of addresses, its end excluded, that stands for `value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first address.
    pub start: u64,
    /// The first one behind it.
    pub end: u64,
    /// What it stands for.
    pub value: u32,
}

/// The spans as they look from above: sorted, disjoint, none empty, at most twice as many as were
/// given. Where spans overlap the one that `rank` puts highest is seen; where it ends, those below
/// it show again.
pub fn flatten(mut spans: Vec<Span>, rank: impl Fn(&Span) -> u64) -> Vec<Span> {
    spans.retain(|span| span.start < span.end);
    spans.sort_by_key(|span| span.start);
    let mut seen: Vec<Span> = Vec::with_capacity(spans.len());
    // The open spans by rank; those that have ended leave when they come to the top.
    let mut open: BinaryHeap<(u64, usize)> = BinaryHeap::new();
    let mut at = 0;
    for next in 0..=spans.len() {
        let until = spans.get(next).map_or(u64::MAX, |span| span.start);
        while let Some(&(_, index)) = open.peek() {
            let top = spans[index];
            if top.end <= at {
                open.pop();
            } else if at < until {
                let end = top.end.min(until);
                show(&mut seen, Span { start: at, end, value: top.value });
                at = end;
            } else {
                break;
            }
        }
        at = until;
        if let Some(span) = spans.get(next) {
            open.push((rank(span), next));
        }
    }
    seen
}

/// The span that holds an address, of spans that are sorted and disjoint.
pub(crate) fn find(spans: &[Span], address: u64) -> Option<&Span> {
    let after = spans.partition_point(|span| span.start <= address);
    spans[..after].last().filter(|span| address < span.end)
}

/// Appends a span, as a part of the last one where it only continues it.
fn show(seen: &mut Vec<Span>, span: Span) {
    match seen.last_mut() {
        Some(last) if last.end == span.start && last.value == span.value => last.end = span.end,
        _ => seen.push(span),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `spans` as (start, end, value); the later in the list is on top.
    #[track_caller]
    fn check(spans: &[(u64, u64, u32)], expect: &[(u64, u64, u32)]) {
        let to_span = |&(start, end, value): &(u64, u64, u32)| Span { start, end, value };
        let ranked: Vec<Span> = spans.iter().map(to_span).collect();
        let seen = flatten(ranked.clone(), |span| {
            ranked.iter().position(|other| other == span).unwrap() as u64
        });
        assert_eq!(seen, expect.iter().map(to_span).collect::<Vec<_>>());
    }

    #[test]
    fn a_later_span_splits_the_one_below() {
        check(&[(0, 30, 1), (10, 20, 2)], &[(0, 10, 1), (10, 20, 2), (20, 30, 1)]);
    }

    #[test]
    fn a_later_span_hides_earlier_ones_whole_or_in_part() {
        check(
            &[(0, 10, 1), (12, 15, 2), (20, 30, 3), (5, 25, 4)],
            &[(0, 5, 1), (5, 25, 4), (25, 30, 3)],
        );
    }

    #[test]
    fn an_earlier_start_does_not_win() {
        check(&[(10, 30, 1), (0, 20, 2)], &[(0, 20, 2), (20, 30, 1)]);
        check(&[(0, 20, 1), (10, 30, 2)], &[(0, 10, 1), (10, 30, 2)]);
    }

    #[test]
    fn equal_spans_show_the_last_one() {
        check(&[(5, 9, 1), (5, 9, 2), (5, 9, 3)], &[(5, 9, 3)]);
    }

    #[test]
    fn empty_and_reversed_spans_vanish() {
        check(&[(5, 5, 1), (9, 3, 2)], &[]);
    }

    #[test]
    fn gaps_stay_gaps() {
        check(&[(0, 2, 1), (u64::MAX - 1, u64::MAX, 2)], &[(0, 2, 1), (u64::MAX - 1, u64::MAX, 2)]);
        let spans = [Span { start: 3, end: 5, value: 7 }, Span { start: 9, end: 10, value: 8 }];
        let found: Vec<Option<u32>> =
            [2, 3, 4, 5, 8, 9, 10].map(|at| find(&spans, at).map(|span| span.value)).into();
        assert_eq!(found, [None, Some(7), Some(7), None, None, Some(8), None]);
    }
}
