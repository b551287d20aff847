//! The boxes: one `<g>` a cell, with its tooltip, its rectangle and, where one fits, its label.

use std::borrow::Cow;
use std::io::{self, Write};

use super::attributes::BoxAttributes;
use super::config::SvgConfig;
use super::geometry::{GAP, GAP_FROM, Geometry, LABEL_INDENT, MARGIN, ROUND_FROM, UNITS_PER_PIXEL};
use super::xml::{Pixels, escape};
use crate::amount::{ValueScale, format_change, format_share, group_thousands};
use crate::clean_name;
use crate::colours::{Colours, Fill, is_gap};
use crate::label::fit;
use crate::layout::{Cell, Content};
use crate::name::tooltip_name;
use flame_profile::{CallTree, Label, NodeId};

/// Writes the boxes of a picture. The viewer script's `drawCell` makes the same elements with the
/// same attributes in the same order; a browser test compares the two.
pub(super) struct Frames<'a> {
    pub(super) tree: &'a CallTree,
    pub(super) config: &'a SvgConfig,
    pub(super) geometry: Geometry,
    pub(super) scale: &'a ValueScale,
    pub(super) colours: &'a Colours,
    /// Rows of boxes, at least 1.
    pub(super) rows: u32,
}

/// How one box looks.
struct Look<'a> {
    fill: String,
    ink: Option<&'static str>,
    dashed: bool,
    stroke: Option<&'a str>,
}

impl Frames<'_> {
    pub(super) fn write(&self, cells: &[Cell], out: &mut impl Write) -> io::Result<()> {
        let stroke = self.config.stroke_colour.map(|colour| colour.to_string());
        let stroke = stroke.as_deref();
        let start: &[u8] = if self.config.pretty { b"\n  <g" } else { b"<g" };
        for cell in cells {
            out.write_all(start)?;
            match cell.content {
                Content::Frame(id) => self.write_frame(cell, id, stroke, out)?,
                Content::Thin { frames, weight } => {
                    let noun = if frames == 1 { "frame" } else { "frames" };
                    let count = group_thousands(frames);
                    let share = format_share(weight, self.tree.total());
                    write!(out, "><title>… {count} {noun}, {}</title>", escape(&share))?;
                    let fill = "url(#thin)".to_owned();
                    self.write_rect(cell, &Look { fill, ink: None, dashed: false, stroke }, out)?;
                }
            }
            out.write_all(b"</g>")?;
        }
        Ok(())
    }

    fn write_frame(
        &self,
        cell: &Cell,
        id: NodeId,
        stroke: Option<&str>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let label = self.tree.label(&self.tree.nodes()[id.index()]);
        let attributes = self.config.attributes.of(&label.name);
        for (name, value) in attributes.iter().flat_map(|attributes| &attributes.group) {
            write!(out, r#" {name}="{}""#, escape(value))?;
        }
        write!(out, "><title>{}</title>", escape(&self.tooltip(id, label, attributes)))?;
        let link = attributes.filter(|attributes| attributes.href.is_some());
        if let Some(attributes) = link {
            write_link(attributes, out)?;
        }
        let fill = self.colours.fills.get(self.colours.fill(self.tree, id.index()) as usize);
        let ink = fill.and_then(|fill| fill.ink());
        let fill = fill.map(Fill::to_string).unwrap_or_default();
        let look = Look { fill, ink, dashed: is_gap(label), stroke };
        self.write_rect(cell, &look, out)?;
        self.write_label(cell, &label.name, look.ink, out)?;
        if link.is_some() {
            out.write_all(b"</a>")?;
        }
        Ok(())
    }

    fn tooltip(&self, id: NodeId, label: &Label, attributes: Option<&BoxAttributes>) -> String {
        if let Some(title) = attributes.and_then(|attributes| attributes.title.as_deref()) {
            return title.to_owned();
        }
        let node = &self.tree.nodes()[id.index()];
        let name = clean_name(&label.name);
        let (name, total) = (tooltip_name(&name), self.tree.total());
        let (amount, share) = (self.scale.amount(node.total), format_share(node.total, total));
        let change = match self.tree.before().and_then(|before| before.get(id.index())) {
            Some(before) => Cow::Owned(format_change(
                before.self_weight,
                node.self_weight,
                total,
                self.config.colours.negate,
            )),
            None => Cow::Borrowed(""),
        };
        format!("{name} ({amount}, {share}{change})")
    }

    fn write_rect(&self, cell: &Cell, look: &Look<'_>, out: &mut impl Write) -> io::Result<()> {
        let width = cell.right - cell.left;
        let drawn = if width >= GAP_FROM { width - GAP } else { width };
        let x = Pixels(MARGIN * UNITS_PER_PIXEL + cell.left);
        let y = self.geometry.box_top(cell.depth, self.rows);
        let (width, height, fill) = (Pixels(drawn), self.geometry.row - 1, &look.fill);
        write!(out, r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}""#)?;
        if drawn >= ROUND_FROM {
            out.write_all(br#" rx="2""#)?;
        }
        if look.dashed {
            out.write_all(br##" stroke="#8c959f" stroke-dasharray="3 2""##)?;
        } else if let Some(stroke) = look.stroke {
            write!(out, r#" stroke="{stroke}""#)?;
        }
        out.write_all(b"/>")
    }

    fn write_label(
        &self,
        cell: &Cell,
        name: &str,
        ink: Option<&str>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let geometry = &self.geometry;
        let room = geometry.label_room(cell.right - cell.left);
        let label = fit(&clean_name(name), room, self.config.shorten, geometry.widths);
        let Some(label) = label.filter(|label| !label.is_empty()) else { return Ok(()) };
        let x = Pixels(MARGIN * UNITS_PER_PIXEL + cell.left + LABEL_INDENT);
        let y = geometry.box_top(cell.depth, self.rows) + u64::from(geometry.baseline());
        write!(out, r#"<text x="{x}" y="{y}""#)?;
        if let Some(ink) = ink {
            write!(out, r#" fill="{ink}""#)?;
        }
        write!(out, ">{}</text>", escape(&label))
    }
}

fn write_link(attributes: &BoxAttributes, out: &mut impl Write) -> io::Result<()> {
    let href = attributes.href.as_deref().unwrap_or_default();
    let target = attributes.target.as_deref().unwrap_or("_top");
    write!(out, r#"<a href="{}" target="{}""#, escape(href), escape(target))?;
    for (name, value) in &attributes.link {
        write!(out, r#" {name}="{}""#, escape(value))?;
    }
    out.write_all(b">")
}
