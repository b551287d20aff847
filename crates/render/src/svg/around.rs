//! What stands around the boxes of two profiles: headings, and columns under what vanished.
//!
//! `viewer/panes.js` makes the same elements.

use std::io::{self, Write};

use flame_diff::Presence;

use super::geometry::{FOOTER_SIZE, Geometry, HEAD_GAP, PANE_HEAD, THINNEST_STRIP};
use super::panes::{Panes, PlacedPane};
use super::subject::Subject;
use super::xml::{escape, push_pixels};
use crate::diff::{DiffView, Sides, heading};
use crate::layout::{Cell, Units, siblings};
use crate::lines::cut_end;

/// Writes the heading of each graph.
pub(super) fn write_heads(
    sides: &Sides<'_>,
    panes: &Panes,
    quiet: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    write!(out, r#"<g id="heads" font-size="{FOOTER_SIZE}" fill="{quiet}">"#)?;
    for (at, pane) in panes.list.iter().enumerate() {
        let mut text = heading(sides, pane.view.unwrap_or_default());
        if at == 0 {
            text += &format!("; colours: change of {}", sides.picture.colour_by.name());
        }
        let (mut x, y) = (String::new(), panes.top(at) - u64::from(HEAD_GAP));
        push_pixels(pane.left, &mut x);
        let (top, height) = (panes.top(at) - u64::from(PANE_HEAD) - 6, PANE_HEAD + 5);
        let mut width = String::new();
        push_pixels(pane.width, &mut width);
        write!(out, r#"<g><rect class="bar" x="{x}" y="{top}" width="{width}" "#)?;
        write!(out, r##"height="{height}" fill="#fff"/>"##)?;
        let text = cut_end(&text, pane.width * 10 / FOOTER_SIZE);
        write!(out, r#"<text x="{x}" y="{y}">{}</text></g>"#, escape(&text))?;
    }
    out.write_all(b"</g>")
}

/// A column from a path that vanished down to the root.
struct Strip {
    /// The node that the path stands on.
    above: usize,
    left: Units,
    right: Units,
    /// Depth of that node.
    level: u32,
}

/// Writes columns where paths that vanished stand on frames that are still there: the room that
/// they take below them is not of what is.
pub(super) fn write_strips(
    sides: &Sides<'_>,
    panes: &Panes,
    geometry: Geometry,
    out: &mut impl Write,
) -> io::Result<()> {
    out.write_all(br#"<g id="strips" pointer-events="none">"#)?;
    for (at, pane) in panes.list.iter().enumerate() {
        if pane.view != Some(DiffView::Union) {
            continue;
        }
        for Strip { left, right, level, .. } in strips(sides, pane) {
            if right - left < THINNEST_STRIP {
                continue;
            }
            let upper = if geometry.is_inverted() { 0 } else { level };
            let y = geometry.box_top(panes.top(at), upper, panes.rows);
            let (mut x, mut width) = (String::new(), String::new());
            push_pixels(pane.left + left, &mut x);
            push_pixels(right - left, &mut width);
            let height = (level + 1) * geometry.row - 1;
            write!(out, r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" "#)?;
            out.write_all(br#"fill="url(#gone-below)"/>"#)?;
        }
    }
    out.write_all(b"</g>")
}

fn strips(sides: &Sides<'_>, pane: &PlacedPane) -> Vec<Strip> {
    let mut found: Vec<Strip> = Vec::new();
    for cell in pane.cells.iter().filter(|cell| cell.depth > 0) {
        let first = cell.content.first();
        let above = sides.node(first.index()).parent.index();
        let is_gone = |node: usize| sides.node(node).presence() == Presence::Vanished;
        if is_gone(above) || !is_gone_run(sides, cell) {
            continue;
        }
        let (left, right) = (cell.left, cell.right);
        match found.last_mut() {
            Some(last) if last.above == above && last.right == left => last.right = right,
            _ => found.push(Strip { above, left, right, level: cell.depth - 1 }),
        }
    }
    found
}

/// Whether a cell holds nothing that is still there.
pub(super) fn is_gone_run(sides: &Sides<'_>, cell: &Cell) -> bool {
    let end = |node: usize| Subject::Two(sides).end(node);
    siblings(cell.content.run(end), end)
        .all(|node| sides.node(node).presence() == Presence::Vanished)
}
