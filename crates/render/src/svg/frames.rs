//! The boxes: one `<g>` a cell, with its tooltip, its rectangle and, where one fits, its label.

use std::ops::Range;

use flame_message::{ValueScale, clean_name, format_change, push_digits, push_grouped, push_share};
use flame_profile::{CallTree, Label, NodeId, Weight};

use super::around::is_gone_run;
use super::attributes::BoxAttributes;
use super::config::SvgConfig;
use super::document::Picture;
use super::geometry::{GAP, GAP_FROM, Geometry, HATCH_FROM, LABEL_INDENT, ROUND_FROM};
use super::paint::ThinFill;
use super::subject::Subject;
use super::xml::{push_clean, push_escaped, push_pixels};
use crate::colours::{Colours, Fill, is_gap};
use crate::diff::look;
use crate::label::fit;
use crate::layout::{Cell, Content, Units, siblings};
use crate::tooltip::tooltip_name;

/// Makes the boxes of a graph. The viewer script's `drawCell` makes the same elements with the
/// same attributes in the same order; a browser test compares the two.
pub(super) struct Frames<'a> {
    subject: Subject<'a>,
    config: &'a SvgConfig,
    geometry: Geometry,
    scale: &'a ValueScale,
    colours: &'a Colours,
    /// Rows of boxes, at least 1.
    rows: u32,
    /// Where they start.
    corner: (Units, u64),
    fills: Vec<FillText>,
    stroke: Option<String>,
}

/// A fill of the palette as it is written.
struct FillText {
    fill: String,
    /// The colour of text on it, where it has its own.
    ink: Option<&'static str>,
    edge: Option<String>,
}

/// How one box looks.
struct Look<'a> {
    fill: &'a str,
    dashed: bool,
    stroke: Option<&'a str>,
}

impl<'a> Frames<'a> {
    /// For the boxes of one of the graphs.
    pub(super) fn new(picture: &Picture<'a>, pane: usize) -> Frames<'a> {
        let Picture { subject, config, geometry, panes, scale, colours, .. } = *picture;
        let text = |fill: &Fill| FillText {
            fill: fill.to_string(),
            ink: fill.ink(),
            edge: fill.edge().map(|edge| edge.to_string()),
        };
        let fills = colours.fills.iter().map(text).collect();
        let stroke = config.stroke_colour.map(|colour| colour.to_string());
        let (rows, corner) = (panes.rows, (panes.list[pane].left, panes.top(pane)));
        Frames { subject, config, geometry, scale, colours, rows, corner, fills, stroke }
    }

    /// The boxes of some cells.
    pub(super) fn push(&self, cells: &[Cell], out: &mut String) {
        for cell in cells {
            out.push_str(if self.config.pretty { "\n  <g" } else { "<g" });
            match cell.content {
                Content::Frame(id) => self.push_frame(cell, id, out),
                Content::Thin { .. } | Content::Tower(_) => self.push_run(cell, out),
            }
            out.push_str("</g>");
        }
    }

    /// Several frames in one box.
    fn push_run(&self, cell: &Cell, out: &mut String) {
        let run = cell.content.run(|node| self.subject.end(node));
        out.push_str("><title>&#8230; ");
        push_grouped(run.len() as u64, out);
        out.push_str(if run.len() == 1 { " frame" } else { " frames" });
        if let Content::Tower(_) = cell.content {
            self.push_ends(run.clone(), out);
        }
        out.push_str(", ");
        let run = siblings(run, |node| self.subject.end(node));
        let mut fill = ThinFill::HERE;
        match self.subject {
            Subject::One(tree) => {
                let weight = run.map(|node| tree.nodes()[node].total).sum();
                push_share_of(weight, tree.total(), out);
            }
            Subject::Two(sides) => {
                let add = |(before, after), node| {
                    let node = sides.node(node);
                    (before + node.before.total, after + node.after.total)
                };
                let (before, after) = run.fold((Weight(0), Weight(0)), add);
                push_clean(&sides.thin_tooltip(before, after), out);
                if is_gone_run(sides, cell) {
                    fill = ThinFill::GONE;
                }
            }
        }
        out.push_str("</title>");
        let hatched = cell.right - cell.left >= HATCH_FROM;
        let fill = if hatched { fill.hatch } else { fill.plain };
        let look = Look { fill, dashed: false, stroke: self.stroke.as_deref() };
        self.push_rect(cell, &look, out);
    }

    /// The lowest and the deepest frame of a tower.
    fn push_ends(&self, tower: Range<usize>, out: &mut String) {
        let lowest = tower.start;
        let deepest = tower.rev().max_by_key(|node| self.subject.depth(*node)).unwrap_or(lowest);
        for (word, node) in [(" from ", lowest), (" to ", deepest)] {
            out.push_str(word);
            let name = clean_name(&self.subject.label(node).name);
            push_escaped(&tooltip_name(&name), out);
        }
    }

    fn push_frame(&self, cell: &Cell, id: NodeId, out: &mut String) {
        let label = self.subject.label(id.index());
        let attributes = match self.config.attributes.is_empty() {
            true => None,
            false => self.config.attributes.of(label),
        };
        for (name, value) in attributes.iter().flat_map(|attributes| &attributes.group) {
            push_attribute(name, value, out);
        }
        out.push_str("><title>");
        match attributes.and_then(|attributes| attributes.title.as_deref()) {
            Some(title) => push_escaped(title, out),
            None => self.push_tooltip(id, label, out),
        }
        out.push_str("</title>");
        let link = attributes.filter(|attributes| attributes.href.is_some());
        if let Some(attributes) = link {
            push_link(attributes, out);
        }
        let place = match self.subject {
            Subject::One(tree) => self.colours.fill(tree, id.index()) as usize,
            Subject::Two(sides) => look(sides, sides.node(id.index())),
        };
        let fill = self.fills.get(place);
        // Narrow boxes would be nothing but edge.
        let edge = fill.and_then(|fill| fill.edge.as_ref());
        let edge = edge.filter(|_| cell.right - cell.left >= ROUND_FROM).or(self.stroke.as_ref());
        let look = Look {
            fill: fill.map_or("#fff", |fill| &fill.fill),
            dashed: is_gap(label),
            stroke: edge.map(String::as_str),
        };
        self.push_rect(cell, &look, out);
        self.push_label(cell, &label.name, fill.and_then(|fill| fill.ink), out);
        if link.is_some() {
            out.push_str("</a>");
        }
    }

    fn push_tooltip(&self, id: NodeId, label: &Label, out: &mut String) {
        push_escaped(&tooltip_name(&clean_name(&label.name)), out);
        out.push_str(" (");
        match self.subject {
            Subject::One(tree) => self.push_numbers(tree, id, out),
            Subject::Two(sides) => {
                push_clean(&sides.tooltip(sides.node(id.index())), out);
            }
        }
        out.push(')');
    }

    fn push_numbers(&self, tree: &CallTree, id: NodeId, out: &mut String) {
        let node = &tree.nodes()[id.index()];
        // The noun may be anything that the user named.
        let start = out.len();
        self.scale.push_amount(node.total, out);
        if out[start..].contains(['<', '>', '&', '"', '\'']) {
            let amount = out.split_off(start);
            push_escaped(&amount, out);
        }
        out.push_str(", ");
        push_share_of(node.total, tree.total(), out);
        if let Some(before) = tree.before().and_then(|before| before.get(id.index())) {
            let (total, negate) = (tree.total(), self.config.colours.negate);
            out.push_str(&format_change(before.self_weight, node.self_weight, total, negate));
        }
    }

    fn push_rect(&self, cell: &Cell, look: &Look<'_>, out: &mut String) {
        let width = cell.right - cell.left;
        let drawn = if width >= GAP_FROM { width - GAP } else { width };
        out.push_str("<rect x=\"");
        push_pixels(self.corner.0 + cell.left, out);
        out.push_str("\" y=\"");
        push_digits(self.geometry.box_top(self.corner.1, cell.depth, self.rows), out);
        out.push_str("\" width=\"");
        push_pixels(drawn, out);
        out.push_str("\" height=\"");
        push_digits(u64::from(self.geometry.row - 1), out);
        out.push_str("\" fill=\"");
        out.push_str(look.fill);
        out.push('"');
        if drawn >= ROUND_FROM {
            out.push_str(r#" rx="2""#);
        }
        if look.dashed {
            out.push_str(r##" stroke="#8c959f" stroke-dasharray="3 2""##);
        } else if let Some(stroke) = look.stroke {
            push_attribute("stroke", stroke, out);
        }
        out.push_str("/>");
    }

    fn push_label(&self, cell: &Cell, name: &str, ink: Option<&str>, out: &mut String) {
        let geometry = &self.geometry;
        let room = geometry.label_room(cell.right - cell.left);
        // Most boxes of a large graph have no room for anything.
        if room < geometry.widths.narrowest() {
            return;
        }
        let label = fit(&clean_name(name), room, self.config.shorten, geometry.widths);
        let Some(label) = label.filter(|label| !label.is_empty()) else { return };
        out.push_str("<text x=\"");
        push_pixels(self.corner.0 + cell.left + LABEL_INDENT, out);
        out.push_str("\" y=\"");
        let top = geometry.box_top(self.corner.1, cell.depth, self.rows);
        push_digits(top + u64::from(geometry.baseline()), out);
        out.push('"');
        if let Some(ink) = ink {
            push_attribute("fill", ink, out);
        }
        out.push('>');
        push_escaped(&label, out);
        out.push_str("</text>");
    }
}

/// A share, of which `<0.01%` needs an escape.
fn push_share_of(weight: Weight, total: Weight, out: &mut String) {
    let start = out.len();
    push_share(weight, total, out);
    if out[start..].starts_with('<') {
        out.replace_range(start..=start, "&lt;");
    }
}

fn push_attribute(name: &str, value: &str, out: &mut String) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    push_escaped(value, out);
    out.push('"');
}

fn push_link(attributes: &BoxAttributes, out: &mut String) {
    out.push_str("<a");
    push_attribute("href", attributes.href.as_deref().unwrap_or_default(), out);
    push_attribute("target", attributes.target.as_deref().unwrap_or("_top"), out);
    for (name, value) in &attributes.link {
        push_attribute(name, value, out);
    }
    out.push('>');
}
