//! The whole tree as JSON: a table of names and three columns over the nodes in pre-order.
//!
//! `label` is the position in the table of names, `up` how many levels to climb from the node
//! before to find the parent (0: the node before is the parent), `self` the self weight. Totals,
//! depths and positions follow from these. Weights above 2^53 lose digits in JavaScript.

use std::io::{self, Write};

use flame_profile::{CallTree, LabelId};

use super::document::Picture;
use super::geometry::{self as sizes, Geometry};
use crate::char_width;
use crate::clean_name;
use crate::colours::is_gap;

/// Writes one JSON object that holds no `<`, `>` or `&`.
pub(super) fn write_data(picture: &Picture<'_>, out: &mut impl Write) -> io::Result<()> {
    let Picture { tree, config, geometry, scale, colours, .. } = *picture;
    let nodes = if tree.total().0 == 0 { &[] } else { tree.nodes() };
    let labels = LabelOrder::of(tree);
    let title = clean_name(&config.title);
    let subtitle = clean_name(config.subtitle.as_deref().unwrap_or(""));
    write!(out, r#"{{"version":1,"title":{},"subtitle":{}"#, Json(&title), Json(&subtitle))?;
    out.write_all(br#","footer":["#)?;
    for (index, line) in config.footer.iter().enumerate() {
        write!(out, "{}{}", comma(index), Json(&clean_name(line)))?;
    }
    out.write_all(b"]")?;
    write!(out, r#","width":{},"minWidth":{}"#, geometry.width, geometry.min_width)?;
    write_sizes(geometry, out)?;
    write!(out, r#","noun":{},"steps":["#, Json(&scale.noun))?;
    for (index, (size, unit)) in scale.steps.iter().enumerate() {
        write!(out, "{}[{size},{}]", comma(index), Json(unit))?;
    }
    out.write_all(br#"],"palette":["#)?;
    for (index, colour) in colours.fills.iter().enumerate() {
        write!(out, r#"{}"{colour}""#, comma(index))?;
    }
    out.write_all(br#"],"names":["#)?;
    for (index, label) in labels.order.iter().enumerate() {
        let name = clean_name(&tree.labels()[label.index()].name);
        write!(out, "{}{}", comma(index), Json(&name))?;
    }
    out.write_all(b"]")?;
    let drawn = || labels.order.iter().map(|label| &tree.labels()[label.index()]);
    let colour = |label: &LabelId| u64::from(colours.of_label[label.index()]);
    write_column("colour", labels.order.iter().map(colour), out)?;
    write_column("dashed", drawn().map(|label| u64::from(is_gap(label))), out)?;
    let position = |label: LabelId| u64::from(labels.position[label.index()]);
    write_column("label", nodes.iter().map(|node| position(node.label)), out)?;
    let depths = nodes.iter().map(|node| node.depth);
    // The root's own parent would be one level above it.
    let ups = depths.clone().zip(depths.skip(1)).map(|(before, here)| before + 1 - here);
    write_column("up", nodes.iter().take(1).map(|_| 0).chain(ups.map(u64::from)), out)?;
    write_column("self", nodes.iter().map(|node| node.self_weight.0), out)?;
    out.write_all(b"}")
}

fn write_sizes(geometry: Geometry, out: &mut impl Write) -> io::Result<()> {
    let sizes = [
        ("margin", sizes::MARGIN),
        ("row", geometry.row),
        ("top", sizes::TOP),
        ("footerY", sizes::FOOTER_Y),
        ("footerLine", sizes::FOOTER_LINE),
        ("footerSize", sizes::FOOTER_SIZE),
        ("fontSize", geometry.font_size),
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
    write_column("ascii", char_width::ASCII.iter().map(|width| u64::from(*width)), out)
}

/// Labels in the order in which the nodes first use them, so that the file does not depend on
/// the order in which the profile met them.
struct LabelOrder {
    order: Vec<LabelId>,
    /// For each label of the tree, its position in `order`.
    position: Vec<u32>,
}

impl LabelOrder {
    fn of(tree: &CallTree) -> LabelOrder {
        let mut position = vec![u32::MAX; tree.labels().len()];
        let mut order = Vec::new();
        for node in tree.nodes() {
            let place = &mut position[node.label.index()];
            if *place == u32::MAX {
                *place = order.len() as u32;
                order.push(node.label);
            }
        }
        LabelOrder { order, position }
    }
}

fn comma(index: usize) -> &'static str {
    if index == 0 { "" } else { "," }
}

/// Writes `,"name":[1,2,3]`. Millions of numbers go through here: `write!` would take most of the
/// time of the whole file.
fn write_column(
    name: &str,
    numbers: impl Iterator<Item = u64>,
    out: &mut impl Write,
) -> io::Result<()> {
    write!(out, r#","{name}":["#)?;
    let mut digits = [0u8; 21];
    let mut separator = false;
    for mut number in numbers {
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        if separator {
            at -= 1;
            digits[at] = b',';
        }
        separator = true;
        out.write_all(&digits[at..])?;
    }
    out.write_all(b"]")
}

/// A JSON string that is at the same time plain XML text; the text is clean already.
struct Json<'t>(&'t str);

impl std::fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::fmt::Write;
        f.write_char('"')?;
        let special = |c: char| c.is_control() || matches!(c, '"' | '\\' | '<' | '>' | '&');
        let mut rest = self.0;
        while let Some(at) = rest.find(special) {
            f.write_str(&rest[..at])?;
            let mut chars = rest[at..].chars();
            if let Some(c) = chars.next() {
                write!(f, "\\u{:04x}", u32::from(c))?;
            }
            rest = chars.as_str();
        }
        f.write_str(rest)?;
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SvgConfig, write_svg};
    use super::*;
    use crate::test_trees::tree_of;

    #[test]
    fn columns_follow_the_nodes_in_pre_order() {
        let tree = tree_of(&[("c;b<>;\"x", 4), ("c;b<>", 2), ("d", 30), ("c;e;f;g_[k]", 1)]);
        let config = SvgConfig { title: "T&".to_owned(), ..SvgConfig::default() };
        let mut out = Vec::new();
        write_svg(&tree, &config, &mut out).unwrap();
        let json = String::from_utf8(out).unwrap();
        let (_, json) = json.split_once(r#"<metadata id="flame-data">"#).unwrap();
        let (json, _) = json.split_once("</metadata>").unwrap();
        assert!(json.starts_with(
            r#"{"version":1,"title":"T\u0026","subtitle":"","footer":[],"width":1200"#
        ));
        let names = r#""names":["all","c","b\u003c\u003e","\u0022x","e","f","g","d"]"#;
        assert!(json.contains(names), "{json}");
        let columns =
            r#""label":[0,1,2,3,4,5,6,7],"up":[0,0,0,0,2,0,0,4],"self":[0,0,2,4,0,0,1,30]}"#;
        assert!(json.ends_with(columns), "{json}");
    }

    #[test]
    fn numbers_of_any_length_are_written_whole() {
        let mut out = Vec::new();
        write_column("n", [0, 9, 10, u64::MAX].into_iter(), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), r#","n":[0,9,10,18446744073709551615]"#);
    }
}
