//! What the script must know to draw as the writer does: sizes, units, colours, attributes.

use std::collections::BTreeMap;
use std::io::{self, Write};

use flame_message::{ValueScale, clean_name};
use flame_profile::Label;

use super::comma;
use super::json::{Json, write_numbers};
use crate::char_width;
use crate::colours::Colours;
use crate::diff::{DiffView, STEPS, Sides, heading, ratio};
use crate::label::Shorten;
use crate::svg::attributes::{BoxAttributes, NameAttributes};
use crate::svg::config::{Direction, SvgConfig};
use crate::svg::geometry::{self as sizes, Geometry};
use crate::towers;

pub(super) fn write_sizes(geometry: Geometry, out: &mut impl Write) -> io::Result<()> {
    let sizes = [
        ("width", geometry.width),
        ("minWidth", geometry.narrow.frame),
        ("minRun", geometry.narrow.run),
        ("shallow", if geometry.all_rows { u32::MAX } else { towers::SHALLOW }),
        ("fewRows", towers::FEW_ROWS),
        ("rowParts", towers::PARTS),
        ("hatchFrom", sizes::HATCH_FROM),
        ("margin", sizes::MARGIN),
        ("row", geometry.row),
        ("baseline", geometry.baseline()),
        ("top", geometry.top),
        ("footerY", geometry.footer_y()),
        ("status", sizes::STATUS + geometry.more),
        ("besideFrom", sizes::BESIDE_FROM),
        ("paneGap", sizes::PANE_GAP),
        ("paneHead", sizes::PANE_HEAD),
        ("headGap", sizes::HEAD_GAP),
        ("thinnestStrip", sizes::THINNEST_STRIP),
        ("footerLine", sizes::FOOTER_LINE),
        ("footerSize", sizes::FOOTER_SIZE),
        ("fontSize", geometry.font_size),
        ("uiSize", sizes::UI_FONT_SIZE),
        ("titleSize", sizes::TITLE_SIZE),
        ("boldPercent", sizes::BOLD_PERCENT),
        ("gapFrom", sizes::GAP_FROM),
        ("gap", sizes::GAP),
        ("roundFrom", sizes::ROUND_FROM),
        ("indent", sizes::LABEL_INDENT),
        ("wideFrom", char_width::WIDE_FROM),
        ("doubleFrom", char_width::DOUBLE_FROM),
        ("wide", u32::from(char_width::WIDE)),
        ("other", u32::from(char_width::OTHER)),
        ("uniform", geometry.widths.uniform.unwrap_or(0)),
        ("inverted", u32::from(geometry.direction == Direction::Down)),
    ];
    for (name, size) in sizes {
        write!(out, r#","{name}":{size}"#)?;
    }
    write_numbers("ascii", char_width::ASCII.iter().copied(), out)
}

pub(super) fn write_amounts(scale: &ValueScale, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b",")?;
    write_scale(scale, out)
}

fn write_scale(scale: &ValueScale, out: &mut impl Write) -> io::Result<()> {
    write!(out, r#""noun":{},"steps":["#, Json(&scale.noun))?;
    for (index, (size, unit)) in scale.steps.iter().enumerate() {
        write!(out, "{}[{size},{}]", comma(index), Json(unit))?;
    }
    out.write_all(b"]")
}

/// What is known of two profiles besides the columns.
pub(super) fn write_sides(sides: &Sides<'_>, out: &mut impl Write) -> io::Result<()> {
    let (view, by) = (sides.picture.view.name(), sides.picture.colour_by.name());
    write!(out, r#","diff":{{"view":"{view}","by":"{by}","steps":{STEPS}"#)?;
    let (numerator, denominator) = (sides.numerator, sides.denominator);
    write!(out, r#","word":"{}""#, sides.word())?;
    write!(out, r#","numerator":{numerator},"denominator":{denominator}"#)?;
    write!(out, r#","whole":{},"most":[{},{}]"#, sides.whole, sides.most[0], sides.most[1])?;
    out.write_all(br#","heads":{"#)?;
    let views = [DiffView::Union, DiffView::After, DiffView::Before, DiffView::Delta];
    for (index, view) in views.into_iter().enumerate() {
        let text = heading(sides, view);
        write!(out, r#"{}"{}":{}"#, comma(index), view.name(), Json(&text))?;
    }
    out.write_all(b"}")?;
    if let Some(ratio) = ratio(sides) {
        write!(out, r#","ratio":{}"#, Json(&ratio))?;
    }
    if let Some(scale) = &sides.scale_before {
        out.write_all(br#","scale":{"#)?;
        write_scale(scale, out)?;
        out.write_all(b"}")?;
    }
    out.write_all(b"}")
}

pub(super) fn write_colours(
    config: &SvgConfig,
    colours: &Colours,
    out: &mut impl Write,
) -> io::Result<()> {
    out.write_all(br#","palette":["#)?;
    for (index, fill) in colours.fills.iter().enumerate() {
        write!(out, r#"{}"{fill}""#, comma(index))?;
    }
    out.write_all(b"]")?;
    if colours.fills.iter().any(|fill| fill.ink().is_some()) {
        out.write_all(br#","inks":["#)?;
        for (index, fill) in colours.fills.iter().enumerate() {
            write!(out, r#"{}"{}""#, comma(index), fill.ink().unwrap_or(""))?;
        }
        out.write_all(b"]")?;
    }
    if colours.fills.iter().any(|fill| fill.edge().is_some()) {
        out.write_all(br#","edges":["#)?;
        for (index, fill) in colours.fills.iter().enumerate() {
            let edge = fill.edge().map(|edge| edge.to_string()).unwrap_or_default();
            write!(out, r#"{}"{edge}""#, comma(index))?;
        }
        out.write_all(b"]")?;
    }
    if let Some(same) = colours.same {
        write!(out, r#","same":{same}"#)?;
    }
    write!(out, r#","searchColour":"{}""#, config.search_colour)?;
    if let Some(ink) = config.search_colour.ink() {
        write!(out, r#","searchInk":"{ink}""#)?;
    }
    if let Some(stroke) = config.stroke_colour {
        write!(out, r#","stroke":"{stroke}""#)?;
    }
    let flags = [
        ("cutRight", config.shorten == Shorten::Right),
        ("negate", config.colours.negate),
        ("fluid", config.fluid),
    ];
    for (name, _) in flags.iter().filter(|flag| flag.1) {
        write!(out, r#","{name}":1"#)?;
    }
    write!(out, r#","nameType":{}"#, Json(&clean_name(&config.name_type)))
}

/// The attributes of the names that are drawn, by the place of the name.
pub(super) fn write_attributes<'t>(
    attributes: &NameAttributes,
    names: impl Iterator<Item = &'t Label>,
    out: &mut impl Write,
) -> io::Result<()> {
    if attributes.is_empty() {
        return Ok(());
    }
    out.write_all(br#","attributes":{"#)?;
    let found = names.enumerate().filter_map(|(at, label)| Some((at, attributes.of(label)?)));
    for (index, (at, found)) in found.enumerate() {
        write!(out, r#"{}"{at}":{{"group":"#, comma(index))?;
        write_pairs(&found.group, out)?;
        out.write_all(br#","link":"#)?;
        write_pairs(&found.link, out)?;
        let BoxAttributes { title, href, target, .. } = found;
        for (name, value) in [("title", title), ("href", href), ("target", target)] {
            if let Some(value) = value {
                write!(out, r#","{name}":{}"#, Json(&clean_name(value)))?;
            }
        }
        out.write_all(b"}")?;
    }
    out.write_all(b"}")
}

fn write_pairs(pairs: &BTreeMap<String, String>, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"{")?;
    for (index, (name, value)) in pairs.iter().enumerate() {
        write!(out, "{}{}:{}", comma(index), Json(&clean_name(name)), Json(&clean_name(value)))?;
    }
    out.write_all(b"}")
}
