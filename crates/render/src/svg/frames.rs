//! The boxes: one `<g>` a cell, with its tooltip, its rectangle and, where one fits, its label.

use std::io::{self, Write};

use super::geometry::{GAP, GAP_FROM, LABEL_INDENT, MARGIN, ROUND_FROM, ROW, TOP};
use super::geometry::{UNITS_PER_PIXEL, label_room};
use super::xml::{Pixels, escape};
use crate::amount::{ValueScale, format_share, group_thousands};
use crate::clean_name;
use crate::colours::{colour_of, is_gap, palette};
use crate::label::fit;
use crate::layout::{Cell, Content};
use crate::name::tooltip_name;
use flame_profile::{CallTree, Label, Node};

/// Writes the cells into the group `frames`. The viewer script's `drawCell` makes the same
/// elements with the same attributes in the same order; a browser test compares the two.
pub(super) fn write_frames(
    tree: &CallTree,
    cells: &[Cell],
    rows: u32,
    scale: &ValueScale,
    out: &mut impl Write,
) -> io::Result<()> {
    let colours = palette();
    for cell in cells {
        let top = TOP + (rows - 1 - cell.depth) * ROW;
        match cell.content {
            Content::Frame(id) => {
                let node = &tree.nodes()[id.index()];
                let label = tree.label(node);
                write!(out, "<g><title>{}</title>", escape(&tooltip(tree, node, label, scale)))?;
                write_rect(cell, top, &colours[colour_of(label)].to_string(), is_gap(label), out)?;
                write_label(cell, top, &label.name, out)?;
            }
            Content::Thin { frames, weight } => {
                let noun = if frames == 1 { "frame" } else { "frames" };
                let (count, share) = (group_thousands(frames), format_share(weight, tree.total()));
                write!(out, "<g><title>… {count} {noun}, {}</title>", escape(&share))?;
                write_rect(cell, top, "url(#thin)", false, out)?;
            }
        }
        out.write_all(b"</g>")?;
    }
    Ok(())
}

fn tooltip(tree: &CallTree, node: &Node, label: &Label, scale: &ValueScale) -> String {
    let name = clean_name(&label.name);
    let share = format_share(node.total, tree.total());
    format!("{} ({}, {share})", tooltip_name(&name), scale.amount(node.total))
}

fn write_rect(
    cell: &Cell,
    top: u32,
    fill: &str,
    dashed: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let width = cell.right - cell.left;
    let drawn = if width >= GAP_FROM { width - GAP } else { width };
    let x = Pixels(MARGIN * UNITS_PER_PIXEL + cell.left);
    let (width, height) = (Pixels(drawn), ROW - 1);
    write!(out, r#"<rect x="{x}" y="{top}" width="{width}" height="{height}" fill="{fill}""#)?;
    if drawn >= ROUND_FROM {
        out.write_all(br#" rx="2""#)?;
    }
    if dashed {
        out.write_all(br##" stroke="#8c959f" stroke-dasharray="3 2""##)?;
    }
    out.write_all(b"/>")
}

fn write_label(cell: &Cell, top: u32, name: &str, out: &mut impl Write) -> io::Result<()> {
    let label = fit(&clean_name(name), label_room(cell.right - cell.left));
    if let Some(label) = label.filter(|label| !label.is_empty()) {
        let x = Pixels(MARGIN * UNITS_PER_PIXEL + cell.left + LABEL_INDENT);
        write!(out, r#"<text x="{x}" y="{}">{}</text>"#, top + 12, escape(&label))?;
    }
    Ok(())
}
