//! The whole tree for the script: a JSON object of sizes and texts, and compressed columns.
//!
//! | column | one for each | holds |
//! |---|---|---|
//! | `names` | name | the text, each ended by a line feed (which no clean name holds) |
//! | `paint` | name | twice the place of its colour in `palette`, plus 1 for a dashed edge |
//! | `label` | node in pre-order | 0 for a name that was not met before, else its place plus 1 |
//! | `up` | node | how many levels to climb from the node before to find the parent |
//! | `self` | node | the self weight |
//!
//! Numbers are LEB128; a column is raw deflate (RFC 1951) in base64. Totals, depths and positions
//! follow from these. Names are numbered as the nodes first use them, so the bytes depend on the
//! tree alone; equal subtrees have equal runs of `label` and `up`, which is what deflate finds.

mod column;
mod json;

use std::io::{self, Write};

use flame_profile::{CallTree, LabelId, Node};

use self::column::{Column, compress};
use self::json::{Json, write_numbers};
use super::SvgConfig;
use super::geometry::{self as sizes, Geometry};
use crate::amount::ValueScale;
use crate::char_width;
use crate::clean_name;
use crate::colours::{colour_of, is_gap, palette};

/// Whole numbers are exact in JavaScript's ordinary numbers up to here; above, the script uses
/// big integers.
const EXACT: u64 = 1 << 53;

/// Writes one JSON object that holds no `<`, `>` or `&`.
pub(super) fn write_data(
    tree: &CallTree,
    config: &SvgConfig,
    geometry: Geometry,
    scale: &ValueScale,
    out: &mut impl Write,
) -> io::Result<()> {
    let title = clean_name(&config.title);
    let subtitle = clean_name(config.subtitle.as_deref().unwrap_or(""));
    write!(out, r#"{{"version":2,"title":{},"subtitle":{}"#, Json(&title), Json(&subtitle))?;
    out.write_all(br#","footer":["#)?;
    for (index, line) in config.footer.iter().enumerate() {
        write!(out, "{}{}", comma(index), Json(&clean_name(line)))?;
    }
    out.write_all(b"]")?;
    write!(out, r#","width":{},"minWidth":{}"#, geometry.width, geometry.min_width)?;
    write_sizes(out)?;
    write!(out, r#","noun":{},"steps":["#, Json(&scale.noun))?;
    for (index, (size, unit)) in scale.steps.iter().enumerate() {
        write!(out, "{}[{size},{}]", comma(index), Json(unit))?;
    }
    out.write_all(br#"],"palette":["#)?;
    for (index, colour) in palette().iter().enumerate() {
        write!(out, r#"{}"{colour}""#, comma(index))?;
    }
    out.write_all(b"]")?;
    write_tree(tree, out)?;
    out.write_all(b"}")
}

fn write_tree(tree: &CallTree, out: &mut impl Write) -> io::Result<()> {
    let nodes = if tree.total().0 == 0 { &[] } else { tree.nodes() };
    let order = LabelOrder::of(tree, nodes);
    let big = u8::from(tree.total().0 > EXACT);
    write!(out, r#","count":{},"labels":{},"big":{big}"#, nodes.len(), order.order.len())?;
    for (name, column) in columns(tree, nodes, &order) {
        write!(out, r#","{name}":[{},""#, column.size)?;
        out.write_all(column.text.as_bytes())?;
        out.write_all(b"\"]")?;
    }
    Ok(())
}

/// All columns, side by side on two threads where there is enough to do.
fn columns(tree: &CallTree, nodes: &[Node], order: &LabelOrder) -> [(&'static str, Column); 5] {
    const WORTH_A_THREAD: usize = 20_000;
    let of_labels = || (compress(&names(tree, order)), compress(&paints(tree, order)));
    let of_nodes = || (compress(&ups(nodes)), compress(&self_weights(nodes)));
    let labels = || compress(&order.numbers);
    let ((names, paint), (up, own), label) = if nodes.len() < WORTH_A_THREAD {
        (of_labels(), of_nodes(), labels())
    } else {
        std::thread::scope(|scope| {
            let label = scope.spawn(labels);
            let (of_labels, of_nodes) = (of_labels(), of_nodes());
            (of_labels, of_nodes, label.join().expect("compressing bytes in memory cannot fail"))
        })
    };
    [("names", names), ("paint", paint), ("label", label), ("up", up), ("self", own)]
}

fn names(tree: &CallTree, order: &LabelOrder) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in &order.order {
        bytes.extend_from_slice(clean_name(&tree.labels()[label.index()].name).as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

fn paints(tree: &CallTree, order: &LabelOrder) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in &order.order {
        let label = &tree.labels()[label.index()];
        column::push(colour_of(label) as u64 * 2 + u64::from(is_gap(label)), &mut bytes);
    }
    bytes
}

fn ups(nodes: &[Node]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(nodes.len() + 16);
    // The root's own parent would be one level above it.
    let mut below = 0;
    for node in nodes {
        column::push(u64::from(below - node.depth), &mut bytes);
        below = node.depth + 1;
    }
    bytes
}

fn self_weights(nodes: &[Node]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(2 * nodes.len());
    for node in nodes {
        column::push(node.self_weight.0, &mut bytes);
    }
    bytes
}

/// Labels in the order in which the nodes first use them, so that the file does not depend on
/// the order in which the profile met them.
struct LabelOrder {
    order: Vec<LabelId>,
    /// The column `label`.
    numbers: Vec<u8>,
}

impl LabelOrder {
    fn of(tree: &CallTree, nodes: &[Node]) -> LabelOrder {
        // For each label of the tree its place in `order` plus 1; 0 = not met yet.
        let mut places = vec![0u32; tree.labels().len()];
        let mut order = Vec::new();
        let mut numbers = Vec::with_capacity(2 * nodes.len());
        for node in nodes {
            let place = &mut places[node.label.index()];
            column::push(u64::from(*place), &mut numbers);
            if *place == 0 {
                order.push(node.label);
                *place = order.len() as u32;
            }
        }
        LabelOrder { order, numbers }
    }
}

fn write_sizes(out: &mut impl Write) -> io::Result<()> {
    let sizes = [
        ("margin", sizes::MARGIN),
        ("row", sizes::ROW),
        ("top", sizes::TOP),
        ("footerY", sizes::FOOTER_Y),
        ("footerLine", sizes::FOOTER_LINE),
        ("footerSize", sizes::FOOTER_SIZE),
        ("fontSize", sizes::FONT_SIZE),
        ("titleSize", sizes::TITLE_SIZE),
        ("boldPercent", sizes::BOLD_PERCENT),
        ("gapFrom", sizes::GAP_FROM),
        ("gap", sizes::GAP),
        ("roundFrom", sizes::ROUND_FROM),
        ("indent", sizes::LABEL_INDENT),
        ("wideFrom", char_width::WIDE_FROM),
        ("wide", u32::from(char_width::WIDE)),
        ("other", u32::from(char_width::OTHER)),
    ];
    for (name, size) in sizes {
        write!(out, r#","{name}":{size}"#)?;
    }
    write_numbers("ascii", char_width::ASCII.iter().copied(), out)
}

fn comma(index: usize) -> &'static str {
    if index == 0 { "" } else { "," }
}

#[cfg(test)]
mod tests;
