//! The whole tree for the script: a JSON object of sizes and texts, and compressed columns.
//!
//! | column | one for each | holds |
//! |---|---|---|
//! | `names` | name | the text, each ended by a line feed (which no clean name holds) |
//! | `paint` | name | twice the place of its fill in `palette`, plus 1 for a dashed edge |
//! | `label` | node in pre-order | 0 for a name that was not met before, else its place plus 1 |
//! | `up` | node | how many levels to climb from the node before to find the parent |
//! | `self` | node | the self weight |
//! | `before` | node | the self weight before, in a tree that has one |
//! | `gap` | node | the self weight of its parent right before it, in the order of time |
//! | `fill` | node | the place of its fill, where nodes of one name differ |
//! | `sure` | node of two profiles | a byte: how sure the changes of its self weight (lower four bits) and of its total are, see `diff/sides.rs` |
//!
//! Numbers are LEB128, but for `label`: all lowest bytes, then all second ones and so on, which
//! packs better. A column is raw deflate (RFC 1951) in base64. Totals, depths and positions follow
//! from these. Names are numbered as the nodes first use them, so the bytes depend on the tree
//! alone; equal subtrees have equal runs of `label` and `up`, which is what deflate finds.

mod column;
mod json;
mod look;

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use flame_message::clean_name;
use flame_profile::{LabelId, narrow};

use self::column::{Column, Packer};
use self::json::Json;
use super::WORTH_A_THREAD;
use super::document::Picture;
use super::subject::Subject;
use crate::colours::is_gap;
use crate::diff::level;

/// Whole numbers are exact in JavaScript's ordinary numbers up to here; above, the script uses
/// big integers.
const EXACT: u64 = 1 << 53;

/// The data of a picture while it is made, by as many threads as there are.
pub(super) struct Data<'a> {
    picture: &'a Picture<'a>,
    /// How many nodes: none of a tree without weight.
    count: usize,
    /// Made by the thread that needs it first.
    order: OnceLock<LabelOrder>,
    columns: Vec<(Content, OnceLock<Column>)>,
    /// The first column that nobody works on.
    next: AtomicUsize,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Label,
    Own,
    Names,
    Up,
    Before,
    Gap,
    Sure,
    Fill,
    Paint,
}

impl Content {
    fn name(self) -> &'static str {
        match self {
            Content::Label => "label",
            Content::Own => "self",
            Content::Names => "names",
            Content::Up => "up",
            Content::Before => "before",
            Content::Gap => "gap",
            Content::Sure => "sure",
            Content::Fill => "fill",
            Content::Paint => "paint",
        }
    }
}

impl<'a> Data<'a> {
    pub(super) fn of(picture: &'a Picture<'a>) -> Data<'a> {
        let subject = picture.subject;
        let count = if subject.total() == 0 { 0 } else { subject.len() };
        // Those that take longest first, so that the threads are done at about the same time.
        let mut columns = vec![Content::Label, Content::Own, Content::Names, Content::Up];
        match subject {
            Subject::One(tree) if tree.before().is_none() || count == 0 => {}
            Subject::One(_) => columns.push(Content::Before),
            Subject::Two(_) => columns.extend([Content::Before, Content::Sure]),
        }
        let has_gaps = matches!(subject, Subject::One(tree) if tree.gaps().is_some());
        columns.extend(Some(Content::Gap).filter(|_| has_gaps && count > 0));
        let fills = picture.colours.of_node.as_ref();
        columns.extend(fills.filter(|_| count > 0).map(|_| Content::Fill));
        columns.push(Content::Paint);
        let columns = columns.into_iter().map(|column| (column, OnceLock::new())).collect();
        Data { picture, count, order: OnceLock::new(), columns, next: AtomicUsize::new(0) }
    }

    /// How many threads besides the one that asks it is worth to have.
    pub(super) fn helpers(&self) -> usize {
        if self.count < WORTH_A_THREAD { 0 } else { self.columns.len() }
    }

    /// Compresses columns that nobody works on until there is none.
    pub(super) fn compress(&self) {
        let mut packer = Packer::default();
        while let Some((content, column)) =
            self.columns.get(self.next.fetch_add(1, Ordering::Relaxed))
        {
            column.get_or_init(|| packer.pack(&self.bytes(*content)));
        }
    }

    /// Writes one JSON object that holds no `<`, `>` or `&`.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let Picture { subject, config, .. } = *self.picture;
        let order = &self.order().order;
        let title = clean_name(&config.title);
        let subtitle = clean_name(config.subtitle.as_deref().unwrap_or(""));
        write!(out, r#"{{"version":2,"title":{},"subtitle":{}"#, Json(&title), Json(&subtitle))?;
        out.write_all(br#","footer":["#)?;
        for (index, line) in self.picture.footer().iter().enumerate() {
            write!(out, "{}{}", comma(index), Json(line))?;
        }
        out.write_all(b"]")?;
        look::write_sizes(self.picture.geometry, out)?;
        look::write_amounts(self.picture.scale, out)?;
        look::write_colours(config, self.picture.colours, out)?;
        if let Some(sides) = subject.sides() {
            look::write_sides(sides, out)?;
        }
        let asked = config.around.as_deref();
        let around = asked.and_then(|name| subject.labels().iter().find(|l| l.is_called(name)));
        if let Some(label) = around {
            write!(out, r#","around":{}"#, Json(&clean_name(&label.name)))?;
        }
        let drawn = order.iter().map(|label| &subject.labels()[label.index()]);
        look::write_attributes(&config.attributes, drawn, out)?;
        let big = u8::from(subject.total() > EXACT);
        write!(out, r#","count":{},"labels":{},"big":{big}"#, self.count, order.len())?;
        out.write_all(br#","columns":{"#)?;
        for (index, (content, column)) in self.columns.iter().enumerate() {
            let column = column.get_or_init(|| Packer::default().pack(&self.bytes(*content)));
            write!(out, r#"{}"{}":[{},""#, comma(index), content.name(), column.size)?;
            out.write_all(column.text.as_bytes())?;
            out.write_all(b"\"]")?;
        }
        out.write_all(b"}}")
    }

    fn order(&self) -> &LabelOrder {
        self.order.get_or_init(|| LabelOrder::of(self.picture.subject, self.count))
    }

    /// A column before the compression.
    fn bytes(&self, content: Content) -> Vec<u8> {
        match content {
            Content::Label => self.labels(),
            Content::Own => self.own(),
            Content::Names => self.names(),
            Content::Up => self.ups(),
            Content::Before => self.before(),
            Content::Gap => self.gaps(),
            Content::Sure => self.sure(),
            Content::Fill => {
                let fills = self.picture.colours.of_node.as_deref().unwrap_or_default();
                column::leb(fills.iter().map(|fill| u64::from(*fill)))
            }
            Content::Paint => self.paints(),
        }
    }

    fn own(&self) -> Vec<u8> {
        match self.picture.subject {
            Subject::One(tree) => {
                column::leb(tree.nodes()[..self.count].iter().map(|node| node.self_weight.0))
            }
            Subject::Two(sides) => {
                let nodes = &sides.tree.nodes()[..self.count];
                column::leb(nodes.iter().map(|node| node.after.self_weight.0))
            }
        }
    }

    fn before(&self) -> Vec<u8> {
        match self.picture.subject {
            Subject::One(tree) => {
                let before = tree.before().unwrap_or_default();
                column::leb(before.iter().map(|before| before.self_weight.0))
            }
            Subject::Two(sides) => {
                let nodes = &sides.tree.nodes()[..self.count];
                column::leb(nodes.iter().map(|node| node.before.self_weight.0))
            }
        }
    }

    fn gaps(&self) -> Vec<u8> {
        let Subject::One(tree) = self.picture.subject else { return Vec::new() };
        column::leb(tree.gaps().unwrap_or_default().iter().map(|gap| gap.0))
    }

    fn sure(&self) -> Vec<u8> {
        let Subject::Two(sides) = self.picture.subject else { return Vec::new() };
        let nodes = sides.tree.nodes()[..self.count].iter();
        nodes.map(|node| level(node.self_evidence) | level(node.total_evidence) << 4).collect()
    }

    fn names(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for label in &self.order().order {
            let name = &self.picture.subject.labels()[label.index()].name;
            bytes.extend_from_slice(clean_name(name).as_bytes());
            bytes.push(b'\n');
        }
        bytes
    }

    fn paints(&self) -> Vec<u8> {
        let paint = |label: &LabelId| {
            let dashed = is_gap(&self.picture.subject.labels()[label.index()]);
            // Colours of two profiles are none of names.
            let fill = self.picture.colours.of_label.get(label.index()).copied().unwrap_or(0);
            u64::from(fill) * 2 + u64::from(dashed)
        };
        column::leb(self.order().order.iter().map(paint))
    }

    fn labels(&self) -> Vec<u8> {
        let LabelOrder { order, numbers } = self.order();
        let mut bytes = Vec::with_capacity(2 * numbers.len());
        let most = narrow(order.len()).to_le_bytes();
        let planes = most.iter().rposition(|byte| *byte > 0).unwrap_or(0);
        for plane in 0..=planes {
            bytes.extend(numbers.iter().map(|number| number.to_le_bytes()[plane]));
        }
        bytes
    }

    fn ups(&self) -> Vec<u8> {
        // The root's own parent would be one level above it.
        let mut below = 0;
        column::leb((0..self.count).map(|node| {
            let depth = self.picture.subject.depth(node);
            let up = below - depth;
            below = depth + 1;
            u64::from(up)
        }))
    }
}

/// Labels in the order in which the nodes first use them, so that the file does not depend on
/// the order in which the profile met them.
struct LabelOrder {
    order: Vec<LabelId>,
    /// The column `label`.
    numbers: Vec<u32>,
}

impl LabelOrder {
    fn of(subject: Subject<'_>, count: usize) -> LabelOrder {
        // For each label of the tree its place in `order` plus 1; 0 = not met yet.
        let mut places = vec![0u32; subject.labels().len()];
        let mut order = Vec::new();
        let number = |node: usize| {
            let label = subject.label_id(node);
            let place = &mut places[label.index()];
            let number = *place;
            if number == 0 {
                order.push(label);
                *place = narrow(order.len());
            }
            number
        };
        let numbers = (0..count).map(number).collect();
        LabelOrder { order, numbers }
    }
}

fn comma(index: usize) -> &'static str {
    if index == 0 { "" } else { "," }
}

#[cfg(test)]
mod tests;
