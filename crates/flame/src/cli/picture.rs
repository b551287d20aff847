//! What a picture looks like: the options that every command which draws has.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use super::filter::FilterArgs;
use clap::Args;
use flame_render::{Background, DeltaColours, MinWidth, Palette, Rgb};

/// Names of options are those of flamegraph.pl and inferno-flamegraph, so that scripts go on
/// working; what is seldom wanted stands in `--help` only.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct PictureArgs {
    /// Headline
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub(crate) title: Option<String>,

    /// Second line under the headline
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub(crate) subtitle: Option<String>,

    /// Palette [default: kinds]
    ///
    /// kinds (user, library, inlined, kernel and JIT code), hot, mem, io, wakeup, chain, java, js,
    /// perl, python, rust, red, green, blue, aqua, yellow, purple, orange or grey.
    #[arg(long, value_name = "PALETTE", value_parser = Palette::from_str)]
    pub(crate) colors: Option<Palette>,

    /// Root on top: an icicle graph
    #[arg(long, hide_short_help = true)]
    pub(crate) inverted: bool,

    /// Merge stacks from their leaves
    #[arg(long, hide_short_help = true)]
    pub(crate) reverse: bool,

    /// Keep the order of the input, which is the order of time
    ///
    /// Calls that directly follow each other are one box; a call that comes again after its caller did
    /// something itself, or called something else, is another box. A recording gets one lane per thread
    /// below a time axis, with gaps where the thread had no CPU.
    #[arg(long, hide_short_help = true)]
    pub(crate) flamechart: bool,

    /// Samples by time: a column a second, 50 slices of it from the bottom up
    #[arg(long, conflicts_with = "flamechart", hide_short_help = true)]
    pub(crate) heatmap: bool,

    /// Keep the order in which siblings are first met
    #[arg(long, conflicts_with = "flamechart", hide_short_help = true)]
    pub(crate) no_sort: bool,

    /// Only stacks with this function, without its callers (repeatable)
    ///
    /// Where a stack has it more than once, or several of the functions asked for, the innermost
    /// call counts.
    #[arg(long, value_name = "FUNCTION", visible_alias = "focus", hide_short_help = true)]
    pub(crate) base: Vec<String>,

    /// Width in pixels, or fluid: that of the window [default: fluid, 1200 where no script runs]
    #[arg(long, value_name = "PIXELS", value_parser = width, hide_short_help = true)]
    pub(crate) width: Option<Width>,

    /// Height of a row in pixels [default: 17]
    #[arg(long, value_name = "PIXELS", value_parser = row_height, hide_short_help = true)]
    pub(crate) height: Option<u32>,

    /// Draw narrower boxes as part of a run: pixels, or percent of the width [default: 0.5]
    #[arg(long, value_name = "WIDTH", value_parser = min_width, hide_short_help = true)]
    pub(crate) minwidth: Option<MinWidth>,

    /// Draw every row, however few samples reach it
    ///
    /// Otherwise the frames above the last row that is as wide as 1 % of the graph become one box for each
    /// tower, … N frames, which a click opens. Graphs of up to 40 rows are always drawn whole.
    #[arg(long, hide_short_help = true)]
    pub(crate) all_rows: bool,

    /// Fonts, as CSS lists them [default: Verdana, 'DejaVu Sans', sans-serif]
    #[arg(long, value_name = "FONT", hide_short_help = true)]
    pub(crate) fonttype: Option<String>,

    /// Size of the text in boxes in pixels [default: 12]
    #[arg(long, value_name = "PIXELS", value_parser = font_size, hide_short_help = true)]
    pub(crate) fontsize: Option<u32>,

    /// Width of a character as a share of the font's size [default: by the font]
    #[arg(long, value_name = "SHARE", value_parser = font_width, hide_short_help = true)]
    pub(crate) fontwidth: Option<u32>,

    /// What the counts count [default: what the profile says, or samples]
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub(crate) countname: Option<String>,

    /// What stands before a name in the line of details
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub(crate) nametype: Option<String>,

    /// Background: yellow, blue, green, grey or #rrggbb [default: white, dark on dark pages]
    #[arg(long, value_name = "COLOR", alias = "bgcolor", value_parser = Background::from_str)]
    #[arg(hide_short_help = true)]
    pub(crate) bgcolors: Option<Background>,

    /// Shades by how names start
    #[arg(long, hide_short_help = true)]
    pub(crate) hash: bool,

    /// The same shades each time, as always: scripts for inferno ask for it
    #[arg(long, conflicts_with = "random", hide = true)]
    pub(crate) deterministic: bool,

    /// Other shades each time
    #[arg(long, conflicts_with = "hash", hide_short_help = true)]
    pub(crate) random: bool,

    /// Take colours from FILE, and add new names to it [default file: palette.map]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "palette.map", hide_short_help = true)]
    pub(crate) cp: Option<PathBuf>,

    /// The wider a box, the redder
    #[arg(long, hide_short_help = true)]
    pub(crate) colordiffusion: bool,

    /// Colours of a differential graph: red-blue or safe (vermilion and hatched blue)
    #[arg(long, value_name = "PAIR", value_parser = DeltaColours::from_str, hide_short_help = true)]
    pub(crate) colors_diff: Option<DeltaColours>,

    /// Swap the colours of growth and shrinking
    #[arg(long, hide_short_help = true)]
    pub(crate) negate: bool,

    /// Colour of what a search finds
    #[arg(long, value_name = "COLOR", value_parser = Rgb::from_str, hide_short_help = true)]
    pub(crate) search_color: Option<Rgb>,

    /// Colour of the edge around boxes, or none [default: none]
    #[arg(long, value_name = "COLOR", value_parser = stroke, hide_short_help = true)]
    pub(crate) stroke_color: Option<Stroke>,

    /// Colour of title, details and buttons
    #[arg(long, value_name = "COLOR", value_parser = Rgb::from_str, hide_short_help = true)]
    pub(crate) uicolor: Option<Rgb>,

    /// Shorten long names at their end, not at their start or middle
    #[arg(long, hide_short_help = true)]
    pub(crate) truncate_text_right: bool,

    /// What counts as 100 %, if more than the samples weigh
    #[arg(long, value_name = "COUNT", value_parser = total, hide_short_help = true)]
    pub(crate) total: Option<u64>,

    /// Multiply counts by this number
    #[arg(long, value_name = "FACTOR", value_parser = factor, hide_short_help = true)]
    pub(crate) factor: Option<Factor>,

    /// Keep TEXT in the file, as a comment
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub(crate) notes: Option<String>,

    /// Links and other attributes of functions, from lines of NAME TAB key=value TAB ...
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) nameattr: Option<PathBuf>,

    /// Encoding of the file; flame writes UTF-8
    #[arg(long, value_name = "NAME", value_parser = encoding, hide_short_help = true)]
    pub(crate) encoding: Option<()>,

    /// Break lines, for people who read the file
    #[arg(long, hide_short_help = true)]
    pub(crate) pretty_xml: bool,

    /// A still picture, without the viewer and its data
    #[arg(long, hide_short_help = true)]
    pub(crate) no_javascript: bool,

    /// Leave out the footer: health, event, host, command line
    #[arg(long, hide_short_help = true)]
    pub(crate) no_metadata: bool,

    /// In text reports, sum up branches below this share, in percent [default: 0.5]
    #[arg(long, value_name = "PERCENT", value_parser = share, hide_short_help = true)]
    pub(crate) min_share: Option<f64>,

    /// List the callers of FUNCTION, with the weight that comes through each
    #[arg(long, value_name = "FUNCTION", conflicts_with_all = ["reverse", "base"])]
    #[arg(hide_short_help = true)]
    pub(crate) callers: Option<String>,

    /// Draw the callers and the callees of FUNCTION
    ///
    /// Callers stand above it and callees below; shares are of the whole profile, which the file holds,
    /// too. Where a stack has the function more than once, the outermost call counts. The viewer's
    /// script draws this view: without scripts the whole profile is shown.
    #[arg(long, value_name = "FUNCTION", hide_short_help = true)]
    #[arg(conflicts_with_all = ["reverse", "callers", "no_javascript"])]
    pub(crate) around: Option<String>,

    /// In text reports, list all functions, without a call tree
    #[arg(long, hide_short_help = true)]
    pub(crate) flat: bool,

    /// Open the picture in the browser
    #[arg(long, hide_short_help = true)]
    pub(crate) open: bool,

    // Behind all others, since its heading holds for what follows.
    #[command(flatten)]
    pub(crate) filters: FilterArgs,
}

/// How wide a picture is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// As wide as the window.
    Fluid,
    /// This many pixels, wherever it is shown.
    Pixels(u32),
}

/// An edge, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stroke(pub(crate) Option<Rgb>);

/// A number that weights are multiplied by: `digits / 10^decimals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Factor {
    pub(crate) digits: u64,
    pub(crate) decimals: u32,
}

fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
}

fn width(text: &str) -> Result<Width, String> {
    match text {
        "fluid" => Ok(Width::Fluid),
        _ => pixels(text, 200..=100_000).map(Width::Pixels).ok_or_else(|| {
            "a width is 200 to 100000 pixels, or fluid: that of the window".to_owned()
        }),
    }
}

fn row_height(text: &str) -> Result<u32, String> {
    pixels(text, 4..=1000).ok_or_else(|| "a height is 4 to 1000 pixels".to_owned())
}

/// A number of pixels, rounded: scripts compute them.
fn pixels(text: &str, range: RangeInclusive<u32>) -> Option<u32> {
    let number = number(text.strip_suffix("px").unwrap_or(text))?.round();
    (number <= f64::from(u32::MAX)).then_some(number as u32).filter(|n| range.contains(n))
}

fn total(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a total is a whole number, such as 1000".to_owned())
}

fn min_width(text: &str) -> Result<MinWidth, String> {
    let width = match text.strip_suffix('%') {
        Some(percent) => number(percent).filter(|p| *p <= 100.0).map(MinWidth::Percent),
        None => number(text.strip_suffix("px").unwrap_or(text)).map(MinWidth::Pixels),
    };
    width.ok_or_else(|| {
        "a width is a number of pixels, such as 0.1, or percent, such as 1%".to_owned()
    })
}

fn font_size(text: &str) -> Result<u32, String> {
    let size = number(text).map(f64::round).filter(|size| (4.0..=100.0).contains(size));
    size.map(|size| size as u32).ok_or_else(|| "a size is 4 to 100 pixels".to_owned())
}

fn font_width(text: &str) -> Result<u32, String> {
    let width = number(text).filter(|width| (0.1..=3.0).contains(width));
    let width = width.map(|width| (width * 1000.0).round() as u32);
    width.ok_or_else(|| "a width is 0.1 to 3 of the font's size, such as 0.59".to_owned())
}

fn stroke(text: &str) -> Result<Stroke, String> {
    match text {
        "none" => Ok(Stroke(None)),
        color => {
            let color: Result<Rgb, String> = color.parse();
            color.map(|color| Stroke(Some(color))).map_err(|error| format!("{error}, or none"))
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    let percent = number(text.trim_end_matches('%')).filter(|percent| *percent <= 100.0);
    percent.map(|percent| percent / 100.0).ok_or_else(|| "a share is 0 to 100 percent".to_owned())
}

fn encoding(text: &str) -> Result<(), String> {
    match text.to_ascii_lowercase().as_str() {
        "utf-8" | "utf8" => Ok(()),
        _ => Err("flame writes UTF-8; iconv converts it".to_owned()),
    }
}

fn factor(text: &str) -> Result<Factor, String> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let part = part.trim_end_matches('0');
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let digits = format!("{whole}{part}").parse::<u64>().ok().filter(|digits| *digits > 0);
    match (digits, u32::try_from(part.len())) {
        (Some(digits), Ok(decimals @ 0..=9)) if is_number(whole) && is_number(part) => {
            Ok(Factor { digits, decimals })
        }
        _ => Err("a factor is a number above zero with at most nine decimal places".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_exact() {
        assert_eq!(factor("0.1"), Ok(Factor { digits: 1, decimals: 1 }));
        assert_eq!(factor("12.50"), Ok(Factor { digits: 125, decimals: 1 }));
        assert_eq!(factor("1000"), Ok(Factor { digits: 1000, decimals: 0 }));
        for text in ["", "0", "-1", "1e3", "0.0000000001", "x", "."] {
            assert!(factor(text).is_err(), "{text}");
        }
    }

    #[test]
    fn widths_are_pixels_or_that_of_the_window() {
        assert_eq!(width("fluid"), Ok(Width::Fluid));
        assert_eq!(width("1800"), Ok(Width::Pixels(1800)));
        assert_eq!(width("1800.4px"), Ok(Width::Pixels(1800)));
        for text in ["", "199", "100001", "1e99", "-300", "wide"] {
            assert!(width(text).is_err(), "{text}");
        }
        assert_eq!((row_height("16"), row_height("3").ok()), (Ok(16), None));
    }

    #[test]
    fn widths_are_pixels_or_percent() {
        assert_eq!(min_width("0.1"), Ok(MinWidth::Pixels(0.1)));
        assert_eq!(min_width("1%"), Ok(MinWidth::Percent(1.0)));
        for text in ["", "%", "-1", "101%", "nan", "inf"] {
            assert!(min_width(text).is_err(), "{text}");
        }
        assert_eq!(font_width("0.59"), Ok(590));
        assert_eq!(font_size("11.6"), Ok(12));
        assert_eq!(share("0.5"), Ok(0.005));
    }
}
