//! Everything around the boxes: header, controls, details, legend, footer, style and script.

use std::io::{self, Write};

use flame_message::{ValueScale, clean_name};

use super::chunks::Chunks;
use super::config::SvgConfig;
use super::data::Data;
use super::geometry::{self as sizes, Geometry, MARGIN};
use super::paint::ThinFill;
use super::panes::Panes;
use super::script::{STYLE, script};
use super::subject::Subject;
use super::xml::escape;
use super::{around, paint};
use crate::colours::{Colours, INK, Rgb};
use crate::diff;
use crate::layout::Content;
use crate::lines::{cut_end, wrap};

/// What `details` says until the script runs.
const NO_SCRIPT: &str =
    "A still picture here: open the file itself in a browser to zoom and to search.";
const NO_SAMPLES: &str = "no samples: nothing was recorded, or a filter left nothing";

/// Phones lay a page out 980 pixels wide otherwise. The prefix keeps the element harmless where the
/// picture stands in a page of HTML, whose parser would end the picture at a `<meta>`.
const VIEWPORT: &str = concat!(
    r#"<h:meta xmlns:h="http://www.w3.org/1999/xhtml" name="viewport" "#,
    r#"content="width=device-width"/>"#,
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
    r##"<rect width="88" height="24" rx="4" fill="#fff" stroke="#d1d9e0"/>"##,
    r#"<text x="44" y="16" text-anchor="middle" font-size="11">Ignore case</text></g>"#,
);

/// All that a picture is made of.
pub(super) struct Picture<'a> {
    pub(super) subject: Subject<'a>,
    pub(super) config: &'a SvgConfig,
    pub(super) geometry: Geometry,
    pub(super) panes: &'a Panes,
    pub(super) scale: &'a ValueScale,
    pub(super) colours: &'a Colours,
    /// The description, where there is something to describe.
    pub(super) hottest: Option<&'a str>,
}

impl Picture<'_> {
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let (width, config) = (self.geometry.width, self.config);
        let footer = self.footer_lines();
        let height = self.geometry.height(self.panes.bottom(), footer.len());
        out.write_all(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")?;
        write!(
            out,
            r#"<svg xmlns="http://www.w3.org/2000/svg" class="flame-graph" width="{width}" "#
        )?;
        write!(out, r#"height="{height}" viewBox="0 0 {width} {height}" "#)?;
        if let Some(key) = paint::key(config) {
            write!(out, r#"data-paint="{key}" "#)?;
        }
        let fonts = escape(&config.fonts);
        let size = sizes::UI_FONT_SIZE;
        write!(out, r#"font-family="{fonts}" font-size="{size}" fill="{INK}">"#)?;
        out.write_all(VIEWPORT.as_bytes())?;
        self.break_line(out)?;
        write!(out, "<title>{}</title>", escape(&config.title))?;
        if let Some(text) = self.hottest {
            write!(out, "<desc>{}</desc>", escape(text))?;
        }
        paint::write_notes(config, out)?;
        paint::write_style(config, STYLE, out)?;
        paint::write_definitions(self.colours, config, out)?;
        self.break_line(out)?;
        paint::write_background(config, out)?;
        self.break_line(out)?;
        let chunks = Chunks::of(self);
        if !config.script {
            self.write_visible(&chunks, &footer, out)?;
            return out.write_all(b"</svg>\n");
        }
        let data = Data::of(self);
        // Both are made at the same time, by whoever has time.
        let help = || {
            data.compress();
            chunks.help();
        };
        flame_threads::beside(data.helpers(), help, || {
            let result = self.write_visible(&chunks, &footer, out);
            data.compress();
            result
        })?;
        self.break_line(out)?;
        out.write_all(br#"<metadata id="flame-data">"#)?;
        data.write(out)?;
        write!(out, "</metadata><script><![CDATA[{}]]></script></svg>", script())?;
        out.write_all(b"\n")
    }

    /// Everything that can be seen but the background.
    fn write_visible(
        &self,
        chunks: &Chunks<'_>,
        footer: &[String],
        out: &mut impl Write,
    ) -> io::Result<()> {
        self.write_frames(chunks, out)?;
        self.break_line(out)?;
        self.write_foot(footer, out)?;
        self.break_line(out)?;
        self.write_head(out)
    }

    /// Where the file is to be read by people.
    fn break_line(&self, out: &mut impl Write) -> io::Result<()> {
        if self.config.pretty { out.write_all(b"\n") } else { Ok(()) }
    }

    fn write_frames(&self, chunks: &Chunks<'_>, out: &mut impl Write) -> io::Result<()> {
        let Picture { subject, geometry, panes, .. } = *self;
        // Said once, not by a rule that browsers try on every box.
        write!(out, r#"<g id="frames" class="frames" cursor="pointer" fill="{INK}" "#)?;
        out.write_all(br#"stroke-width="1""#)?;
        if geometry.font_size != sizes::UI_FONT_SIZE {
            write!(out, r#" font-size="{}""#, geometry.font_size)?;
        }
        out.write_all(b">")?;
        chunks.write(out)?;
        out.write_all(b"</g>")?;
        if let Some(sides) = subject.sides() {
            around::write_strips(sides, panes, geometry, out)?;
            around::write_heads(sides, panes, &self.ui_fills().1, out)?;
        }
        if panes.is_empty() && subject.sides().is_none() {
            let (x, y) = (geometry.width / 2, geometry.top + 17);
            write!(out, r#"<text x="{x}" y="{y}" text-anchor="middle">{NO_SAMPLES}</text>"#)?;
        }
        Ok(())
    }

    /// Comes after the boxes, over which the script moves it while a tall page scrolls.
    fn write_head(&self, out: &mut impl Write) -> io::Result<()> {
        let room = (self.geometry.width - 2 * MARGIN) * 1000;
        let title_room = room / sizes::TITLE_SIZE * 100 / sizes::BOLD_PERCENT;
        let title = cut_end(&clean_name(&self.config.title), title_room);
        let subtitle = clean_name(self.config.subtitle.as_deref().unwrap_or(""));
        let subtitle = cut_end(&subtitle, room / sizes::UI_FONT_SIZE);
        let (size, height) = (sizes::TITLE_SIZE, self.geometry.top - 6);
        let (fill, quiet) = self.ui_fills();
        out.write_all(br#"<g id="head">"#)?;
        write!(out, r##"<rect class="bar" width="100%" height="{height}" fill="#fff"/>"##)?;
        write!(out, r#"<text id="title" x="{MARGIN}" y="28" font-size="{size}" fill="{fill}" "#)?;
        write!(out, r#"font-weight="bold">{}</text>"#, escape(&title))?;
        write!(out, r#"<text id="subtitle" x="{MARGIN}" y="48" fill="{quiet}">"#)?;
        write!(out, "{}</text>", escape(&subtitle))?;
        if self.config.script {
            out.write_all(CONTROLS.as_bytes())?;
        }
        out.write_all(b"</g>")
    }

    /// The colours of the title, and of what is less important.
    fn ui_fills(&self) -> (String, String) {
        let (ink, quiet) = paint::texts(self.config);
        (ink.to_string(), quiet.to_string())
    }

    /// The lines at the foot, not wrapped yet.
    pub(super) fn footer(&self) -> Vec<String> {
        let own = self.subject.sides().map(diff::notes).unwrap_or_default();
        own.iter().chain(&self.config.footer).map(|line| clean_name(line).into_owned()).collect()
    }

    fn footer_lines(&self) -> Vec<String> {
        let room = (self.geometry.width - 2 * MARGIN) * 1000 / sizes::FOOTER_SIZE;
        self.footer().iter().flat_map(|line| wrap(line, room)).collect()
    }

    fn write_foot(&self, footer: &[String], out: &mut impl Write) -> io::Result<()> {
        let y = self.panes.bottom();
        let (_, quiet) = self.ui_fills();
        write!(out, r#"<g id="foot" transform="translate(0 {y})">"#)?;
        self.write_legend(out)?;
        let size = sizes::FOOTER_SIZE;
        write!(out, r#"<g id="footer" font-size="{size}" fill="{quiet}">"#)?;
        for (index, line) in (0..).zip(footer) {
            let y = self.geometry.footer_y() + index * sizes::FOOTER_LINE;
            write!(out, r#"<text x="{MARGIN}" y="{y}">{}</text>"#, escape(line))?;
        }
        out.write_all(br#"</g></g>"#)?;
        write!(out, r#"<g id="status" transform="translate(0 {y})">"#)?;
        let height = sizes::STATUS - 1 + self.geometry.more;
        write!(out, r##"<rect class="bar" y="2" width="100%" height="{height}" fill="#fff"/>"##)?;
        let y = sizes::DETAILS_Y;
        let hint = if self.config.script { NO_SCRIPT } else { "" };
        write!(out, r#"<text id="details" x="{MARGIN}" y="{y}" fill="{quiet}">{hint}</text>"#)?;
        if self.geometry.more > 0 {
            let y = y + self.geometry.more;
            write!(out, r#"<text id="more" x="{MARGIN}" y="{y}"/>"#)?;
        }
        if self.config.script {
            out.write_all(br#"<text id="matched" text-anchor="end" display="none"/>"#)?;
        }
        out.write_all(b"</g>")
    }

    /// Why several frames are one box, where any are.
    fn runs(&self) -> Option<&'static str> {
        let cells = || self.panes.list.iter().flat_map(|pane| &pane.cells);
        let thin = cells().any(|cell| matches!(cell.content, Content::Thin { .. }));
        let tower = cells().any(|cell| matches!(cell.content, Content::Tower(_)));
        match (thin, tower, self.config.script) {
            (false, false, _) => None,
            (true, false, _) => Some("too thin to draw"),
            (false, true, true) => Some("deeper than 99%"),
            (true, true, true) => Some("too thin to draw, or deeper than 99%"),
            (false, true, false) => Some("deeper than 99% (--all-rows draws them)"),
            (true, true, false) => {
                Some("too thin to draw, or deeper than 99% (--all-rows draws these)")
            }
        }
    }

    /// Only what the graph holds.
    fn write_legend(&self, out: &mut impl Write) -> io::Result<()> {
        let legend = self.colours.legend.iter();
        let edge = |edge: Rgb| format!(r#" stroke="{edge}""#);
        let mut entries: Vec<(String, String, &str)> = legend
            .map(|(fill, name)| {
                (fill.to_string(), fill.edge().map(edge).unwrap_or_default(), &**name)
            })
            .collect();
        if let Some(name) = self.runs() {
            entries.push((ThinFill::HERE.hatch.to_owned(), String::new(), name));
        }
        let size = sizes::FOOTER_SIZE;
        write!(out, r#"<g id="legend" font-size="{size}" fill="{}">"#, self.ui_fills().1)?;
        let mut x = MARGIN;
        for (fill, edge, name) in entries {
            let (text_x, y) = (x + 16, sizes::LEGEND_Y + self.geometry.more);
            let top = y - 9;
            write!(
                out,
                r#"<rect x="{x}" y="{top}" width="11" height="11" rx="2" fill="{fill}"{edge}/>"#
            )?;
            write!(out, r#"<text x="{text_x}" y="{y}">{}</text>"#, escape(name))?;
            x = text_x + crate::char_width::text_width(name) * size / 1000 + 18;
        }
        out.write_all(b"</g>")
    }
}
