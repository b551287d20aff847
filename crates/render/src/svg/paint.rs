//! Definitions of hatches and backgrounds, the style sheet with what was chosen, notes.

use std::io::{self, Write};

use super::config::SvgConfig;
use super::xml::escape;
use crate::colours::{Background, Colours, Fill, INK, MIN_CONTRAST, Rgb, contrast, luminance};

/// Grey that is readable on white.
const QUIET: Rgb = Rgb(0x59, 0x63, 0x6e);
/// What both are on dark pages, as in `style.css`.
const LIGHT_INK: Rgb = Rgb(0xe6, 0xed, 0xf3);
const LIGHT_QUIET: Rgb = Rgb(0x9d, 0xa7, 0xb3);
const WHITE: Background = Background { top: Rgb(255, 255, 255), bottom: Rgb(255, 255, 255) };

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
    pub(super) const GONE: ThinFill = ThinFill { hatch: "url(#thin-gone)", plain: "#c9d5e2" };
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
    r##"patternTransform="rotate(45)"><rect width="4" height="4" fill="#e6ebf1"/>"##,
    r##"<rect width="1.6" height="4" fill="#9db4cc"/></pattern>"##,
    r#"<pattern id="gone-below" width="7" height="7" patternUnits="userSpaceOnUse" "#,
    r#"patternTransform="rotate(45)">"#,
    r##"<rect width="1.6" height="7" fill="#2166ac" fill-opacity=".3"/></pattern>"##,
);

/// Writes `<defs>`: patterns and gradients that boxes and background refer to.
pub(super) fn write_definitions(
    colours: &Colours,
    config: &SvgConfig,
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
    if let (Some(Background { top, bottom }), Some(key)) = (config.colours.background, key(config))
    {
        write!(out, r#"<linearGradient id="ground-{key}" x1="0" y1="0" x2="0" y2="1">"#)?;
        write!(out, r#"<stop offset="5%" stop-color="{top}"/>"#)?;
        write!(out, r#"<stop offset="95%" stop-color="{bottom}"/></linearGradient>"#)?;
    }
    out.write_all(b"</defs>")
}

/// Tells a picture with colours of its own from others in the same page, whose styles and
/// gradients it must not take.
pub(super) fn key(config: &SvgConfig) -> Option<String> {
    let Background { top, bottom } = match config.colours.background {
        None if config.ui_colour.is_none() => return None,
        background => background.unwrap_or(WHITE),
    };
    let digits = |colour: Rgb| colour.to_string().trim_start_matches('#').to_owned();
    Some([texts(config).0, top, bottom].map(digits).join("-"))
}

/// The colours of the title, and of what is less important: those that were asked for, or else
/// such as can be read on the background.
pub(super) fn texts(config: &SvgConfig) -> (Rgb, Rgb) {
    if let Some(colour) = config.ui_colour {
        return (colour, colour);
    }
    let Background { top, bottom } = config.colours.background.unwrap_or(WHITE);
    let least = |colour| contrast(colour, top).min(contrast(colour, bottom));
    let (black, white) = (Rgb(0, 0, 0), Rgb(255, 255, 255));
    match [(INK, QUIET), (LIGHT_INK, LIGHT_QUIET)] {
        [dark, _] if least(dark.1) >= MIN_CONTRAST => dark,
        [_, light] if least(light.1) >= MIN_CONTRAST => light,
        _ if least(black) >= least(white) => (black, black),
        _ => (white, white),
    }
}

/// Writes the rectangle behind everything.
pub(super) fn write_background(config: &SvgConfig, out: &mut impl Write) -> io::Result<()> {
    let fill = match key(config).filter(|_| config.colours.background.is_some()) {
        Some(key) => format!("url(#ground-{key})"),
        None => "#fff".to_owned(),
    };
    write!(out, r#"<rect id="background" width="100%" height="100%" fill="{fill}"/>"#)
}

/// Writes the style sheet. Colours that were chosen come last and hold in dark pages, too.
pub(super) fn write_style(config: &SvgConfig, style: &str, out: &mut impl Write) -> io::Result<()> {
    write!(out, "<style>{style}")?;
    if let Some(key) = key(config) {
        let own = format!(".flame-graph[data-paint=\"{key}\"]");
        let (ink, quiet) = texts(config);
        let (most, less) = (
            "#title,#matched:not(.bad),#details.shown,#more.shown",
            "#subtitle,#details,#more,#standing",
        );
        write!(out, "{own} :is({less},#legend,#footer,#heads){{fill:{quiet}!important}}")?;
        write!(out, "{own} :is({most}){{fill:{ink}!important}}")?;
        if let Some(Background { top, bottom }) = config.colours.background {
            // A window that is higher than the graph.
            write!(out, "{own}:root{{background:{bottom}}}")?;
            write!(out, "{own} :is(#background,.ground){{fill:url(#ground-{key})!important}}")?;
            write!(out, "{own} .bar{{fill:{top}!important;fill-opacity:0}}")?;
            write!(out, "{own} .pinned .bar{{fill-opacity:.9}}")?;
            // As in a light page, or as in a dark one.
            let is_light = luminance(top) > 0.18;
            let (share, text) = if is_light { (".5", Rgb(0, 0, 0)) } else { (".3", LIGHT_INK) };
            write!(out, "{own} .faded rect{{opacity:{share}!important}}")?;
            write!(out, "{own} .faded text{{fill:{text}!important}}")?;
        }
        if config.ui_colour.is_some() {
            write!(out, "{own} .button text{{fill:{ink}!important}}")?;
        }
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
