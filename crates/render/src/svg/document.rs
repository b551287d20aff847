//! Everything around the boxes: header, controls, details, legend, footer, style and script.

use std::io::{self, Write};

use flame_profile::CallTree;

use super::geometry::{self as sizes, Geometry, MARGIN, ROW, TOP};
use super::script::{STYLE, script};
use super::xml::escape;
use super::{SvgConfig, data, frames};
use crate::amount::ValueScale;
use crate::clean_name;
use crate::colours::{FAMILIES, LABEL_COLOUR, family_of};
use crate::layout::{Cell, Content};
use crate::lines::{cut_end, wrap};

const FONTS: &str = "Verdana, 'DejaVu Sans', sans-serif";

/// Grey that is readable on white.
const QUIET: &str = "#59636e";
/// What `details` says until the script runs.
const NO_SCRIPT: &str =
    "A still picture here: open the file itself in a browser to zoom and to search.";
const NO_SAMPLES: &str = "no samples: nothing was recorded, or a filter left nothing";

/// Hatches for runs of frames too thin to draw: at rest, and with a match among them.
const PATTERNS: &str = concat!(
    r#"<defs><pattern id="thin" width="4" height="4" patternUnits="userSpaceOnUse" "#,
    r##"patternTransform="rotate(45)"><rect width="4" height="4" fill="#eceef1"/>"##,
    r##"<rect width="1.6" height="4" fill="#afb8c1"/></pattern>"##,
    r#"<pattern id="thin-hit" width="4" height="4" patternUnits="userSpaceOnUse" "#,
    r##"patternTransform="rotate(45)"><rect width="4" height="4" fill="#eceef1"/>"##,
    r##"<rect width="2.2" height="4" fill="#f05fd8"/></pattern></defs>"##,
);

/// The buttons; hidden until the script, without which they are dead, shows and places them.
const CONTROLS: &str = concat!(
    r#"<g id="unzoom" class="button" role="button" tabindex="0" display="none">"#,
    r#"<title>Show the whole graph (Esc)</title>"#,
    r##"<rect width="88" height="24" rx="4" fill="#fff" stroke="#d1d9e0"/>"##,
    r#"<text x="44" y="16" text-anchor="middle" font-size="11">Reset Zoom</text></g>"#,
    r#"<g id="search" display="none"/>"#,
    r#"<g id="ignorecase" class="button" role="button" tabindex="0" aria-pressed="false" "#,
    r#"display="none"><title>Ignore case (Ctrl-I)</title>"#,
    r##"<rect width="28" height="24" rx="4" fill="#fff" stroke="#d1d9e0"/>"##,
    r#"<text x="14" y="16" text-anchor="middle" font-size="11">aA</text></g>"#,
    r#"<text id="matched" text-anchor="end" y="48" display="none"/>"#,
);

/// All that a picture is made of.
pub(super) struct Picture<'a> {
    pub(super) tree: &'a CallTree,
    pub(super) config: &'a SvgConfig,
    pub(super) geometry: Geometry,
    pub(super) cells: &'a [Cell],
    /// Rows of boxes, at least 1.
    pub(super) rows: u32,
    pub(super) scale: &'a ValueScale,
}

impl Picture<'_> {
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let (width, rows) = (self.geometry.width, self.rows);
        let footer = self.footer_lines();
        let height = self.geometry.height(rows, footer.len());
        let title = escape(&self.config.title);
        out.write_all(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")?;
        write!(
            out,
            r#"<svg xmlns="http://www.w3.org/2000/svg" class="flame-graph" width="{width}" "#
        )?;
        write!(out, r#"height="{height}" viewBox="0 0 {width} {height}" "#)?;
        write!(out, r#"font-family="{FONTS}" font-size="12" fill="{LABEL_COLOUR}">"#)?;
        write!(out, "<title>{title}</title><style>{STYLE}</style>{PATTERNS}")?;
        out.write_all(br##"<rect id="background" width="100%" height="100%" fill="#fff"/>"##)?;
        write!(out, r#"<g id="frames" fill="{LABEL_COLOUR}" stroke-width="1">"#)?;
        frames::write_frames(self.tree, self.cells, rows, self.scale, out)?;
        out.write_all(b"</g>")?;
        if self.cells.is_empty() {
            let (x, y) = (width / 2, TOP + ROW);
            write!(out, r#"<text x="{x}" y="{y}" text-anchor="middle">{NO_SAMPLES}</text>"#)?;
        }
        self.write_foot(&footer, out)?;
        self.write_head(out)?;
        out.write_all(br#"<metadata id="flame-data">"#)?;
        data::write_data(self.tree, self.config, self.geometry, self.scale, out)?;
        write!(out, "</metadata><script><![CDATA[{}]]></script></svg>", script())?;
        out.write_all(b"\n")
    }

    /// Comes after the boxes, over which the script moves it while a tall page scrolls.
    fn write_head(&self, out: &mut impl Write) -> io::Result<()> {
        let room = (self.geometry.width - 2 * MARGIN) * 1000;
        let title_room = room / sizes::TITLE_SIZE * 100 / sizes::BOLD_PERCENT;
        let title = cut_end(&clean_name(&self.config.title), title_room);
        let subtitle = clean_name(self.config.subtitle.as_deref().unwrap_or(""));
        let subtitle = cut_end(&subtitle, room / sizes::FONT_SIZE);
        let size = sizes::TITLE_SIZE;
        let height = TOP - 6;
        out.write_all(br#"<g id="head">"#)?;
        write!(out, r##"<rect class="bar" width="100%" height="{height}" fill="#fff"/>"##)?;
        write!(out, r#"<text id="title" x="{MARGIN}" y="28" font-size="{size}" "#)?;
        write!(out, r#"font-weight="bold">{}</text>"#, escape(&title))?;
        write!(out, r#"<text id="subtitle" x="{MARGIN}" y="48" fill="{QUIET}">"#)?;
        write!(out, "{}</text>{CONTROLS}</g>", escape(&subtitle))
    }

    fn footer_lines(&self) -> Vec<String> {
        let room = (self.geometry.width - 2 * MARGIN) * 1000 / sizes::FOOTER_SIZE;
        self.config.footer.iter().flat_map(|line| wrap(&clean_name(line), room)).collect()
    }

    fn write_foot(&self, footer: &[String], out: &mut impl Write) -> io::Result<()> {
        let y = TOP + self.rows * ROW;
        write!(out, r#"<g id="foot" transform="translate(0 {y})">"#)?;
        self.write_legend(out)?;
        let size = sizes::FOOTER_SIZE;
        write!(out, r#"<g id="footer" font-size="{size}" fill="{QUIET}">"#)?;
        for (index, line) in footer.iter().enumerate() {
            let y = sizes::FOOTER_Y + index as u32 * sizes::FOOTER_LINE;
            write!(out, r#"<text x="{MARGIN}" y="{y}">{}</text>"#, escape(line))?;
        }
        out.write_all(br#"</g></g>"#)?;
        write!(out, r#"<g id="status" transform="translate(0 {y})">"#)?;
        out.write_all(br##"<rect class="bar" y="2" width="100%" height="26" fill="#fff"/>"##)?;
        let y = sizes::DETAILS_Y;
        write!(
            out,
            r#"<text id="details" x="{MARGIN}" y="{y}" fill="{QUIET}">{NO_SCRIPT}</text>"#
        )?;
        out.write_all(b"</g>")
    }

    /// Only what the graph holds.
    fn write_legend(&self, out: &mut impl Write) -> io::Result<()> {
        let mut families: Vec<usize> =
            self.tree.labels().iter().map(|label| family_of(label.kind)).collect();
        families.sort_unstable();
        families.dedup();
        let mut entries: Vec<(String, &str)> = families
            .into_iter()
            .filter_map(|family| FAMILIES.get(family))
            .map(|family| (family.middle().to_string(), family.name))
            .collect();
        if self.cells.iter().any(|cell| matches!(cell.content, Content::Thin { .. })) {
            entries.push(("url(#thin)".to_owned(), "too thin to draw"));
        }
        let size = sizes::FOOTER_SIZE;
        write!(out, r#"<g id="legend" font-size="{size}" fill="{QUIET}">"#)?;
        let mut x = MARGIN;
        for (fill, name) in entries {
            let (text_x, y) = (x + 16, sizes::LEGEND_Y);
            let top = y - 9;
            write!(
                out,
                r#"<rect x="{x}" y="{top}" width="11" height="11" rx="2" fill="{fill}"/>"#
            )?;
            write!(out, r#"<text x="{text_x}" y="{y}">{name}</text>"#)?;
            x = text_x + crate::char_width::text_width(name) * size / 1000 + 18;
        }
        out.write_all(b"</g>")
    }
}
