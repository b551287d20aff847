//! Definitions of hatches and backgrounds, the style sheet with what was chosen, notes.

use std::io::{self, Write};

use super::config::SvgConfig;
use super::xml::escape;
use crate::colours::{Background, ColourConfig, Colours, Fill, Rgb, luminance};

/// What runs of frames too thin to draw are filled with.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThinFill {
    pub(super) hatch: &'static str,
    /// The mean of the hatch, which has 1.6 pixels of 4 in the colour of its lines.
    pub(super) plain: &'static str,
}

impl ThinFill {
    pub(super) const HERE: ThinFill = ThinFill { hatch: "url(#thin)", plain: "#d4d8de" };
    /// All of them vanished.
    pub(super) const GONE: ThinFill = ThinFill { hatch: "url(#thin-gone)", plain: "#b7cfe8" };
}

/// Hatches for runs of frames too thin to draw: at rest, and with a match among them.
const THIN: &str = concat!(
    r#"<pattern id="thin" width="4" height="4" patternUnits="userSpaceOnUse" "#,
    r##"patternTransform="rotate(45)"><rect width="4" height="4" fill="#eceef1"/>"##,
    r##"<rect width="1.6" height="4" fill="#afb8c1"/></pattern>"##,
    r#"<pattern id="thin-hit" width="4" height="4" patternUnits="userSpaceOnUse" "#,
    r##"patternTransform="rotate(45)"><rect width="4" height="4" fill="#eceef1"/>"##,
    r##"<rect width="2.2" height="4" fill="#f05fd8"/></pattern>"##,
);

/// Hatches for thin frames that vanished, and for the columns under what vanished.
const GONE: &str = concat!(
    r#"<pattern id="thin-gone" width="4" height="4" patternUnits="userSpaceOnUse" "#,
    r##"patternTransform="rotate(45)"><rect width="4" height="4" fill="#dfeaf6"/>"##,
    r##"<rect width="1.6" height="4" fill="#7aa6d3"/></pattern>"##,
    r#"<pattern id="gone-below" width="7" height="7" patternUnits="userSpaceOnUse" "#,
    r#"patternTransform="rotate(45)">"#,
    r##"<rect width="1.6" height="7" fill="#2166ac" fill-opacity=".3"/></pattern>"##,
);

/// Writes `<defs>`: patterns and gradients that boxes and background refer to.
pub(super) fn write_definitions(
    colours: &Colours,
    config: &ColourConfig,
    out: &mut impl Write,
) -> io::Result<()> {
    write!(out, "<defs>{THIN}")?;
    let mut hatches: Vec<_> =
        colours.fills.iter().chain(colours.legend.iter().map(|l| &l.0)).collect();
    hatches.sort_by_key(|fill| fill.to_string());
    hatches.dedup();
    if hatches.iter().any(|fill| matches!(fill, Fill::Gone(..))) {
        out.write_all(GONE.as_bytes())?;
    }
    for fill in hatches {
        if let Fill::Gone(number, colour, edge) = fill {
            let line = colour.mixed(*edge, 0.22);
            write!(out, r#"<pattern id="gone{number}" width="7" height="7" "#)?;
            out.write_all(br#"patternUnits="userSpaceOnUse" patternTransform="rotate(45)">"#)?;
            write!(out, r#"<rect width="7" height="7" fill="{colour}"/>"#)?;
            write!(out, r#"<rect width="2" height="7" fill="{line}"/></pattern>"#)?;
        }
        let Fill::Hatch(number, colour) = fill else { continue };
        // The lines can be told from the colour that they lie on, and names on them read.
        let dark = luminance(*colour) < 0.4;
        let line = colour.mixed(if dark { Rgb(255, 255, 255) } else { Rgb(0x2b, 0x7b, 0xba) }, 0.4);
        write!(out, r#"<pattern id="less{number}" width="8" height="8" "#)?;
        out.write_all(br#"patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">"#)?;
        write!(out, r#"<rect width="8" height="8" fill="{colour}"/>"#)?;
        write!(out, r#"<rect width="1.2" height="8" fill="{line}"/></pattern>"#)?;
    }
    if let Some(Background { top, bottom }) = config.background {
        write!(out, r#"<linearGradient id="ground" x1="0" y1="0" x2="0" y2="1">"#)?;
        write!(out, r#"<stop offset="5%" stop-color="{top}"/>"#)?;
        write!(out, r#"<stop offset="95%" stop-color="{bottom}"/></linearGradient>"#)?;
    }
    out.write_all(b"</defs>")
}

/// Writes the rectangle behind everything.
pub(super) fn write_background(config: &ColourConfig, out: &mut impl Write) -> io::Result<()> {
    let fill = if config.background.is_some() { "url(#ground)" } else { "#fff" };
    write!(out, r#"<rect id="background" width="100%" height="100%" fill="{fill}"/>"#)
}

/// Writes the style sheet. Colours that were chosen come last and hold in dark pages, too.
pub(super) fn write_style(config: &SvgConfig, style: &str, out: &mut impl Write) -> io::Result<()> {
    write!(out, "<style>{style}")?;
    if config.colours.background.is_some() {
        out.write_all(b"#background,.ground{fill:url(#ground)!important}")?;
        out.write_all(b".bar{fill-opacity:0}.pinned .bar{fill-opacity:.9}")?;
    }
    if let Some(colour) = config.ui_colour {
        write!(out, "#title,#subtitle,#details,#matched,#legend,#footer,.button text")?;
        write!(out, "{{fill:{colour}!important}}")?;
    }
    out.write_all(b"</style>")
}

/// Writes the notes as a comment, in which XML forbids `--`.
pub(super) fn write_notes(config: &SvgConfig, out: &mut impl Write) -> io::Result<()> {
    let Some(notes) = &config.notes else { return Ok(()) };
    let mut text = String::new();
    for c in escape(notes).chars() {
        if c == '-' && text.ends_with('-') {
            text.push(' ');
        }
        text.push(c);
    }
    write!(out, "<!-- NOTES: {text} -->")
}
