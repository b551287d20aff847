//! What each thread did when, a lane a thread below one axis of time: a flame chart.
//!
//! The boxes of all lanes are drawn in the file, to a twentieth of a pixel, so that any image viewer shows
//! them; the script zooms into a time, in all lanes at once.

mod axis;
mod lane;

use std::fmt::Write as _;
use std::io::{self, Write};

use flame_profile::{Lane, Nanos, Profile};

use crate::colours::ColourConfig;
use crate::layout::Units;
use crate::lines::{cut_end, wrap};
use crate::svg::{SvgConfig, escape};

/// Pixels: the whole picture, the margin at its sides, and where the first lane begins.
const WIDTH: u32 = 1200;
const MARGIN: u32 = 10;
const TOP: u32 = 76;

/// More lanes than that nobody looks through.
const MOST_LANES: usize = 200;

/// The width of the lanes in hundredths of a pixel, as layouts have it.
const INNER: Units = (WIDTH - 2 * MARGIN) * 100;

/// The script, and what it looks like.
const SCRIPT: &str = include_str!("chart/chart.js");
const STYLE: &str = include_str!("chart/chart.css");

/// What a chart shows.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What stands above it.
    pub title: String,
    /// The threads, each with what it is called.
    pub lanes: Vec<(String, Lane)>,
    /// Whether it is known when threads ran.
    pub knows_runs: bool,
    /// How boxes are coloured.
    pub colours: ColourConfig,
    /// Lines at the foot.
    pub footer: Vec<String>,
}

impl Chart {
    /// The shortest break that is seen in a recording that took so long: half a pixel.
    pub fn finest(duration: Nanos) -> Nanos {
        Nanos(duration.0 / u64::from(2 * (WIDTH - 2 * MARGIN)))
    }

    /// What each thread did when, of a profile that says when its samples were taken; lanes are drawn
    /// of one of its values.
    pub fn of_profile(profile: &Profile, value: usize, config: SvgConfig) -> Chart {
        let name = |lane: &Lane| {
            let thread = profile.thread(lane.thread);
            let name = profile.text(thread.name);
            match (thread.pid, thread.tid) {
                (Some(pid), Some(tid)) if pid.0 != tid.0 => format!("{name} {pid}/{tid}"),
                (Some(pid), _) => format!("{name} {pid}"),
                _ => name.to_owned(),
            }
        };
        let finest = Chart::finest(profile.meta.duration.unwrap_or_default());
        let (lanes, left_out) = Lane::busiest(profile, value / 2, finest, MOST_LANES);
        let mut footer = config.footer;
        if left_out > 0 {
            footer.push(format!("{left_out} threads are not drawn: they ran least."));
        }
        let unplaced: usize = lanes.iter().map(|lane| lane.unplaced).sum();
        if unplaced > 0 {
            footer.push(format!(
                "{unplaced} samples are not drawn: records of when their threads ran were lost."
            ));
        }
        let cut = lanes.iter().filter(|lane| lane.depth.is_some()).count();
        if cut > 0 {
            footer.push(format!(
                "Of {cut} threads only the outermost frames are drawn: all would be millions."
            ));
        }
        Chart {
            title: config.title,
            lanes: lanes.into_iter().map(|lane| (name(&lane), lane)).collect(),
            knows_runs: profile.runs.is_some(),
            colours: config.colours,
            footer,
        }
    }
}

/// Draws a chart.
///
/// # Errors
/// Those of writing.
pub fn write_chart(chart: &Chart, out: &mut impl Write) -> io::Result<()> {
    let mut body = String::new();
    let mut y = TOP;
    for (name, lane) in &chart.lanes {
        let _ = write!(body, "<g class=\"lane\" transform=\"translate(0 {y})\">");
        y += lane::write(name, lane, chart, &mut body);
        body.push_str("</g>\n");
    }
    let duration = chart.lanes.iter().map(|(_, lane)| lane.tree.total().0).max().unwrap_or(0);
    let notes = chart.footer.iter().map(String::as_str).chain([chart.how_drawn()]);
    let room = (WIDTH - 2 * MARGIN) * 1000;
    let notes: Vec<String> = notes.flat_map(|note| wrap(note, room / 11)).collect();
    let height = y + 24 + 16 * u32::try_from(notes.len()).unwrap_or(0);
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"flame-graph\" data-chart=\"\" width=\"{WIDTH}\" \
         height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"Verdana, 'DejaVu Sans', sans-serif\" \
         font-size=\"11\" data-duration=\"{duration}\" data-left=\"{MARGIN}\" data-width=\"{}\">",
        WIDTH - 2 * MARGIN
    )?;
    writeln!(out, "<style>{STYLE}</style>")?;
    writeln!(out, "<rect id=\"ground\" width=\"100%\" height=\"100%\" fill=\"#fff\"/>")?;
    // Right of it are what a search has found and its field.
    let title = cut_end(&chart.title, (room - 400 * 1000) / 16);
    let title = escape(&title);
    writeln!(
        out,
        "<text id=\"title\" x=\"{MARGIN}\" y=\"26\" font-size=\"16\" fill=\"#1f2328\">{title}</text>\n\
         <text id=\"matched\" x=\"{}\" y=\"26\" text-anchor=\"end\" fill=\"#59636e\"/>\n\
         <text id=\"shown\" x=\"{MARGIN}\" y=\"46\" fill=\"#59636e\">{}: click a box or turn the wheel to \
         zoom, drag to move, Esc for the whole; click a name for all its rows</text>",
        WIDTH - MARGIN - 210,
        axis::length(duration)
    )?;
    write!(out, "<g id=\"axis\" fill=\"#59636e\">")?;
    axis::write(duration, f64::from(MARGIN), f64::from(WIDTH - 2 * MARGIN), TOP, y, out)?;
    writeln!(out, "</g>")?;
    out.write_all(body.as_bytes())?;
    writeln!(out, "<g id=\"notes\" transform=\"translate(0 {y})\" fill=\"#59636e\">")?;
    for (line, note) in notes.iter().enumerate() {
        writeln!(out, "<text x=\"{MARGIN}\" y=\"{}\">{}</text>", 20 + 16 * line, escape(note))?;
    }
    writeln!(out, "</g>\n<script><![CDATA[{SCRIPT}]]></script>\n</svg>")
}

impl Chart {
    fn how_drawn(&self) -> &'static str {
        match self.knows_runs {
            true => {
                "A box goes half-way to the samples before and after it; where a thread had no CPU there is \
                 none. The bar above a lane is as dark as the part of the time in which the thread ran."
            }
            false => {
                "A box goes half-way to the samples before and after it; a thread that was not sampled for \
                 several intervals is shown as not running."
            }
        }
    }
}

#[cfg(test)]
mod tests;
