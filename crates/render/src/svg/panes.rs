//! The graphs of a picture: one, or those of two profiles beside or below each other.

use flame_profile::narrow;

use crate::diff::{DiffView, Pane, Sides};
use crate::layout::{Cell, Units, layout};
use crate::towers;

use super::geometry::{BESIDE_FROM, Geometry, MARGIN, PANE_GAP, PANE_HEAD, UNITS_PER_PIXEL};
use super::subject::Subject;

/// One graph.
#[derive(Debug)]
pub(super) struct PlacedPane {
    /// Which widths it has, where there are two profiles.
    pub(super) view: Option<DiffView>,
    /// Left edge of its boxes in the picture.
    pub(super) left: Units,
    /// Width of its root.
    pub(super) width: Units,
    /// Its boxes, from the left edge.
    pub(super) cells: Vec<Cell>,
}

/// All graphs of a picture.
#[derive(Debug)]
pub(super) struct Panes {
    pub(super) list: Vec<PlacedPane>,
    /// Rows of boxes of each, at least 1.
    pub(super) rows: u32,
    /// Whether they stand beside each other, so that a frame is at one height in all of them.
    is_beside: bool,
    /// Where the first graph starts.
    start: u32,
    /// Room for the headings.
    head: u32,
    row: u32,
}

impl Panes {
    pub(super) fn of(subject: Subject<'_>, geometry: Geometry) -> Panes {
        let mut list = match subject {
            Subject::One(tree) => {
                let width = geometry.frames_width();
                let cells = layout(tree, width, geometry.narrow);
                let left = MARGIN * UNITS_PER_PIXEL;
                vec![PlacedPane { view: None, left, width, cells }]
            }
            Subject::Two(sides) => of_sides(sides, geometry),
        };
        let drawn = list.iter().map(|pane| &pane.cells[..]);
        if let Some(last) = towers::last_row(drawn).filter(|_| !geometry.all_rows) {
            list.iter_mut().for_each(|pane| towers::collapse(&mut pane.cells, last));
        }
        let cells = list.iter().flat_map(|pane| &pane.cells);
        let rows = cells.map(|cell| cell.depth + 1).max().unwrap_or(1);
        let is_beside = list.len() > 1 && geometry.width >= BESIDE_FROM;
        let head = if subject.sides().is_some() { PANE_HEAD } else { 0 };
        Panes { list, rows, is_beside, start: geometry.top, head, row: geometry.row }
    }

    /// The upper edge of the boxes of a graph.
    pub(super) fn top(&self, pane: usize) -> u64 {
        let below = if self.is_beside { 0 } else { pane as u64 };
        u64::from(self.start + self.head) + below * self.height()
    }

    /// The lower edge of all boxes.
    pub(super) fn bottom(&self) -> u64 {
        let number = if self.is_beside { 1 } else { self.list.len() as u64 };
        u64::from(self.start) + number * self.height()
    }

    /// Height of a graph with its heading.
    fn height(&self) -> u64 {
        u64::from(self.rows) * u64::from(self.row) + u64::from(self.head)
    }

    /// Whether there is nothing to draw.
    pub(super) fn is_empty(&self) -> bool {
        self.list.iter().all(|pane| pane.cells.is_empty())
    }
}

fn of_sides(sides: &Sides<'_>, geometry: Geometry) -> Vec<PlacedPane> {
    let views = sides.picture.view.panes();
    let (number, whole) = (narrow(views.len()), geometry.frames_width());
    let is_beside = number > 1 && geometry.width >= BESIDE_FROM;
    let width = if is_beside { (whole - (number - 1) * PANE_GAP) / number } else { whole };
    let left = |at| MARGIN * UNITS_PER_PIXEL + if is_beside { at * (width + PANE_GAP) } else { 0 };
    let place = |(at, view): (u32, &DiffView)| {
        let cells = layout(&Pane::new(sides, *view), width, geometry.narrow);
        PlacedPane { view: Some(*view), left: left(at), width, cells }
    };
    (0..).zip(views).map(place).collect()
}
