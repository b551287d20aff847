//! One thread: its name, when it ran, and its boxes, callers above what they call.

use std::fmt::Write;
use std::ops::Range;

use flame_profile::{Lane, Nanos, narrow};

use super::{Chart, INNER, MARGIN, WIDTH, axis};
use crate::char_width::Widths;
use crate::colours::Colours;
use crate::label::{Shorten, fit};
use crate::layout::{Cell, Content, Narrow, Units, layout};
use crate::svg::escape;

/// Pixels: what stands above the boxes, the bar of when the thread ran with what is left free below it, a row
/// of boxes, and what is left free below them.
const HEAD: u32 = 20;
const BAR: u32 = 10;
const ROW: u32 = 16;
const BELOW: u32 = 10;

/// Boxes are drawn from that width on, in hundredths of a pixel: who zooms sees them.
const NARROWEST: Narrow = Narrow { frame: 5, run: 20 };

/// A row shows that has this part of what the outermost boxes have, and this many hundredths of a pixel.
const RARE: Units = 50;
const LEAST_WIDTH: Units = 1000;

/// A text takes at least that room, in pixels.
const LEAST_TEXT: u32 = 22;

/// The size of the letters in boxes, in thousandths of a pixel for each thousandth of an em.
const FONT: u32 = 11;

/// The bar of when the thread ran has this many parts.
const PARTS: usize = 590;

/// Draws a lane; its height. All its boxes are there, of which the rows show that have much: the script shows
/// the others when the name is clicked.
pub(super) fn write(name: &str, lane: &Lane, chart: &Chart, out: &mut String) -> u32 {
    let duration = lane.tree.total().0;
    let cells: Vec<Cell> = layout(&lane.tree, INNER, NARROWEST)
        .into_iter()
        .filter(|cell| cell.depth > 0 && !is_away(lane, cell))
        .collect();
    let all = cells.iter().map(|cell| cell.depth).max().unwrap_or(0);
    let rows = rows_of(&cells);
    let ran: u64 = lane.runs.iter().map(|run| run.end.0.saturating_sub(run.start.0)).sum();
    let mut about = match lane.runs.is_empty() {
        true => String::new(),
        false => format!(", on a CPU for {}", axis::length(ran)),
    };
    if rows < all {
        let _ = write!(about, ", {} rows more", all - rows);
    }
    if let Some(depth) = lane.depth {
        let _ = write!(about, ", the outermost {depth} frames alone");
    }
    let (name, width, height) = (escape(name), WIDTH - 2 * MARGIN, BAR + rows * ROW);
    let _ = write!(
        out,
        "<text class=\"name\" x=\"{MARGIN}\" y=\"14\" font-weight=\"bold\" fill=\"#1f2328\" \
         data-rows=\"{rows}\" data-all=\"{all}\">{name}<tspan font-weight=\"normal\" \
         fill=\"#59636e\">{about}</tspan></text>\n<svg class=\"boxes\" x=\"{MARGIN}\" y=\"{HEAD}\" \
         width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {INNER} {height}\" preserveAspectRatio=\"none\">"
    );
    write_runs(&lane.runs, duration, out);
    let colours = Colours::of(&lane.tree, &chart.colours);
    let mut texts = String::new();
    for cell in &cells {
        write_box(cell, lane, &colours, out);
        if cell.depth <= rows {
            write_text(cell, lane, &mut texts);
        }
    }
    let _ = writeln!(out, "</svg><g class=\"texts\">{texts}</g>");
    HEAD + height + BELOW
}

/// How many rows are drawn: what is deeper for little of the thread's time would make the lane higher than a
/// window, and nearly empty.
fn rows_of(cells: &[Cell]) -> u32 {
    let mut widths = vec![0; cells.iter().map(|cell| cell.depth as usize + 1).max().unwrap_or(1)];
    for cell in cells {
        widths[cell.depth as usize] += cell.right - cell.left;
    }
    let outermost = widths.get(1).copied().unwrap_or(0);
    let is_much = |width: &Units| *width >= LEAST_WIDTH.max(outermost / RARE);
    let deepest = widths.iter().rposition(is_much).unwrap_or(0);
    narrow(deepest.max(1).min(widths.len() - 1))
}

/// Whether it stands for a time without the thread.
fn is_away(lane: &Lane, cell: &Cell) -> bool {
    let Content::Frame(node) = cell.content else { return cell.depth == 1 };
    lane.tree.label(&lane.tree.nodes()[node.index()]).name == Lane::AWAY
}

fn write_box(cell: &Cell, lane: &Lane, colours: &Colours, out: &mut String) {
    let (x, width) = (cell.left, cell.right - cell.left);
    let (y, height) = (BAR + (cell.depth - 1) * ROW, ROW - 1);
    let _ = write!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"");
    let _ = match cell.content {
        Content::Thin { .. } | Content::Tower(_) => write!(out, "#d4d8de\"/>"),
        Content::Frame(node) => {
            let frame = &lane.tree.nodes()[node.index()];
            let (name, took) = (escape(&lane.tree.label(frame).name), axis::length(frame.total.0));
            let fill = colours.fills[colours.fill(&lane.tree, node.index()) as usize].colour();
            write!(out, "{fill}\"><title>{name}\n{took}</title></rect>")
        }
    };
}

fn write_text(cell: &Cell, lane: &Lane, out: &mut String) {
    let Content::Frame(node) = cell.content else { return };
    let pixels = (cell.right - cell.left) / 100;
    if pixels < LEAST_TEXT {
        return;
    }
    let name = &lane.tree.label(&lane.tree.nodes()[node.index()]).name;
    let room = (pixels - 6) * 1000 / FONT;
    if let Some(text) = fit(name, room, Shorten::default(), Widths::default()) {
        let x = f64::from(MARGIN) + f64::from(cell.left) / 100.0 + 3.0;
        let y = HEAD + BAR + (cell.depth - 1) * ROW + 12;
        let _ = write!(out, "<text x=\"{x:.1}\" y=\"{y}\">{}</text>", escape(&text));
    }
}

/// A bar as dark as the part of each moment in which the thread ran.
fn write_runs(runs: &[Range<Nanos>], duration: u64, out: &mut String) {
    if runs.is_empty() || duration == 0 {
        return;
    }
    let part = duration.div_ceil(PARTS as u64).max(1);
    let mut ran = vec![0_u64; PARTS];
    for run in runs {
        let mut at = run.start.0;
        while at < run.end.0.min(duration) {
            let position = at / part;
            let until = ((position + 1) * part).min(run.end.0);
            if let Some(sum) = usize::try_from(position).ok().and_then(|at| ran.get_mut(at)) {
                *sum += until - at;
            }
            at = until;
        }
    }
    let x = |position: usize| position as u64 * part * u64::from(INNER) / duration;
    for (position, ran) in ran.iter().enumerate().filter(|(_, ran)| **ran > 0) {
        // What is there at all is seen.
        let share = (*ran as f64 / part as f64).clamp(0.12, 1.0);
        let (left, right) = (x(position), x(position + 1));
        let _ = write!(
            out,
            "<rect class=\"ran\" x=\"{left}\" y=\"0\" width=\"{}\" height=\"6\" fill=\"#0b5fc0\" \
             fill-opacity=\"{share:.2}\"/>",
            right - left
        );
    }
}
