//! Deep outliers: what few samples have above everything else is one box for each tower of it.
//!
//! A single stack of 150 frames over a graph of 12 rows would make a picture of 2,700 pixels that is
//! blank but for a line. `collapse` of the viewer's script does the same to what it draws.

use crate::layout::{Cell, Content};

/// Rows above the root's that are drawn however little they hold.
pub(crate) const SHALLOW: u32 = 16;
/// This many rows more are no reason to leave any out: with those most windows have room for all.
pub(crate) const FEW_ROWS: u32 = 23;
/// A row that is drawn has at least one of this many parts of the graph's width.
pub(crate) const PARTS: u32 = 100;

/// The last row that graphs beside each other draw whole: the last one of which any of them has a
/// hundredth; `None` where the rows above it are few.
pub(crate) fn last_row<'c>(graphs: impl Iterator<Item = &'c [Cell]>) -> Option<u32> {
    let (mut last, mut highest) = (SHALLOW, 0);
    for cells in graphs {
        let mut widths: Vec<u64> = Vec::new();
        for cell in cells {
            let depth = cell.depth as usize;
            widths.resize(widths.len().max(depth + 1), 0);
            widths[depth] += u64::from(cell.right - cell.left);
        }
        highest = (0..).zip(&widths).last().map_or(highest, |(row, _)| highest.max(row));
        let whole = widths.first().copied().unwrap_or(0);
        let wide = (0..).zip(&widths).filter(|(_, width)| **width * u64::from(PARTS) >= whole);
        last = wide.last().map_or(last, |(row, _)| last.max(row));
    }
    (highest > last + FEW_ROWS).then_some(last)
}

/// Makes one cell of each frame right above a row that has others above it, and of all those.
pub(crate) fn collapse(cells: &mut Vec<Cell>, last: u32) {
    for at in 1..cells.len() {
        let (below, above) = (cells[at - 1], cells[at]);
        if below.depth == last + 1
            && above.depth > below.depth
            && let Content::Frame(id) = below.content
        {
            cells[at - 1].content = Content::Tower(id);
        }
    }
    cells.retain(|cell| cell.depth <= last + 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Narrow, layout};
    use crate::test_trees::tree_of;

    const NARROW: Narrow = Narrow { frame: 1, run: 1 };

    /// A stack of this many frames.
    fn stack(frames: usize) -> String {
        (0..frames).map(|n| format!("f{n}")).collect::<Vec<_>>().join(";")
    }

    fn cells(stacks: &[(String, u64)]) -> Vec<Cell> {
        let stacks: Vec<_> = stacks.iter().map(|(stack, weight)| (stack, *weight)).collect();
        layout(&tree_of(&stacks), 100_000, NARROW)
    }

    #[track_caller]
    fn check(stacks: &[(String, u64)], expect: Option<u32>) {
        assert_eq!(last_row([&cells(stacks)[..]].into_iter()), expect);
    }

    #[test]
    fn rows_that_hold_less_than_a_hundredth_are_left_out() {
        let most = ("a;b".to_owned(), 9_900);
        check(&[most.clone(), (stack(150), 99)], Some(SHALLOW));
        check(&[most.clone(), (stack(150), 100)], None);
        check(&[most.clone(), (stack(60), 100), (stack(150), 50)], Some(60));
    }

    #[test]
    fn a_graph_that_is_hardly_higher_is_drawn_whole() {
        let most = ("a;b".to_owned(), 9_990);
        check(&[most.clone(), (stack(39), 10)], None);
        check(&[most.clone(), (stack(40), 10)], Some(16));
        check(&[], None);
    }

    #[test]
    fn the_highest_row_of_graphs_beside_each_other_holds_for_all() {
        let flat = cells(&[("a;b".to_owned(), 9_990), (stack(150), 10)]);
        let high = cells(&[(stack(60), 9_990), (stack(150), 10)]);
        assert_eq!(last_row([&flat[..], &high[..]].into_iter()), Some(60));
        assert_eq!(last_row([&high[..], &[]].into_iter()), Some(60));
    }

    #[test]
    fn a_tower_is_one_box_of_all_its_frames_and_what_ends_there_a_frame() {
        // Both go on above the last row from the same frame: `f16` is row 17.
        let ends = stack(16) + ";end";
        let mut cells = cells(&[("a".into(), 9_980), (stack(150), 10), (ends, 10)]);
        let all = cells.len();
        collapse(&mut cells, 16);
        assert_eq!(cells.iter().map(|cell| cell.depth).max(), Some(17));
        let towers = cells.iter().filter(|cell| matches!(cell.content, Content::Tower(_)));
        assert_eq!((towers.count(), all - cells.len()), (1, 133));
    }
}
