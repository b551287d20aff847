//! Samples by time: a column a second, its fiftieths from the bottom up, the darker the more there were.
//! Bursts and pauses that a sum over the recording hides show at a glance.

use std::io::{self, Write};

use flame_message::ValueScale;
use flame_profile::{Nanos, Profile, TimedSample, Timeline, ValueType, Weight};

use crate::char_width::{MilliEm, text_width};
use crate::lines::cut_end;
use crate::svg::escape;
use crate::whole::position;

/// Parts of a column.
const SLICES: usize = 50;

/// More columns than that are not a picture: each stands for several seconds then.
const MOST_COLUMNS: u64 = 1200;

/// The height of a slice and the widths that it may have, so that maps are some 900 wide; and what
/// stands around the map, in pixels.
const HEIGHT: usize = 7;
const WIDTHS: [usize; 2] = [6, 24];
const ACROSS: usize = 900;
const LEFT: usize = 60;
const TOP: usize = 44;
const BELOW: usize = 46;
const LEAST_WIDTH: usize = 480;
/// The font size of a title, and its room: it may make the picture wider, up to where maps end.
const TITLE_SIZE: u32 = 15;
const TITLE_ROOM: MilliEm = 900 * 1000 / TITLE_SIZE;

/// Colours from few to many; none for nothing.
const COLOURS: [&str; 8] =
    ["#fff3d6", "#fee0a8", "#fdc877", "#fca94f", "#f98339", "#ea5a2b", "#cf331f", "#a01818"];

/// What a map shows.
#[derive(Clone, Debug)]
pub struct HeatMap {
    /// What stands above it.
    pub title: String,
    /// What the samples weigh.
    pub value: ValueType,
    /// How long the recording took.
    pub duration: Nanos,
    /// When samples were taken, and what they weigh.
    pub samples: Vec<(Nanos, u64)>,
}

impl HeatMap {
    /// When the samples of a profile that says that were taken, by one of its values.
    pub fn of_profile(profile: &Profile, value: usize, title: &str) -> HeatMap {
        let samples = profile.timeline.iter().flat_map(Timeline::iter);
        // Each event has two values, of which the first counts samples; where several events add up to
        // one value, all samples have that.
        let last = (profile.value_types().len() / 2).saturating_sub(1);
        let samples = samples.filter(|sample| sample.event.min(last) == value / 2);
        let weight = |sample: &TimedSample| if value.is_multiple_of(2) { 1 } else { sample.weight };
        HeatMap {
            title: title.to_owned(),
            value: profile.value_types()[value].clone(),
            duration: profile.meta.duration.unwrap_or_default(),
            samples: samples.map(|sample| (sample.time, weight(&sample))).collect(),
        }
    }
}

/// Draws a map.
///
/// # Errors
/// Those of writing.
pub fn write_heat_map(map: &HeatMap, out: &mut impl Write) -> io::Result<()> {
    let last = map.samples.iter().map(|(time, _)| time.0).max().unwrap_or(0);
    let seconds = map.duration.0.max(last + 1).div_ceil(1_000_000_000).max(1);
    let of_column = seconds.div_ceil(MOST_COLUMNS);
    let columns = usize::try_from(seconds.div_ceil(of_column)).unwrap_or(1);
    let slice = of_column * 1_000_000_000 / SLICES as u64;
    let mut cells = vec![0_u64; columns * SLICES];
    for (time, weight) in &map.samples {
        let cell = usize::try_from(time.0 / slice).ok().and_then(|at| cells.get_mut(at));
        cell.into_iter().for_each(|sum| *sum = sum.saturating_add(*weight));
    }
    let most = cells.iter().copied().max().unwrap_or(0);
    let width = (ACROSS / columns).clamp(WIDTHS[0], WIDTHS[1]);
    let grid = Grid { columns, width, of_column, slice, most };
    grid.write_frame(map, out)?;
    let scale = ValueScale::of(&map.value);
    for (at, weight) in cells.into_iter().enumerate().filter(|(_, weight)| *weight > 0) {
        grid.write_cell(at, weight, &scale, out)?;
    }
    writeln!(out, "</svg>")
}

/// Where things stand.
struct Grid {
    columns: usize,
    /// The width of one.
    width: usize,
    /// Seconds of a column.
    of_column: u64,
    /// Nanoseconds of a slice.
    slice: u64,
    /// What the heaviest slice weighs.
    most: u64,
}

impl Grid {
    fn write_frame(&self, map: &HeatMap, out: &mut impl Write) -> io::Result<()> {
        let (across, up) = (self.columns * self.width, SLICES * HEIGHT);
        let title = cut_end(&map.title, TITLE_ROOM);
        let inner = across.max((text_width(&title) * TITLE_SIZE / 1000) as usize);
        let (width, height) = ((LEFT + inner + 20).max(LEAST_WIDTH), TOP + up + BELOW);
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"Verdana, sans-serif\" font-size=\"11\">"
        )?;
        writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>")?;
        let title = escape(&title);
        writeln!(out, "<text x=\"{LEFT}\" y=\"24\" font-size=\"{TITLE_SIZE}\">{title}</text>")?;
        writeln!(
            out,
            "<rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{across}\" height=\"{up}\" fill=\"none\" stroke=\"#bbb\"/>"
        )?;
        // As many numbers as have room.
        let each = match 64 / self.width + 1 {
            few @ ..5 => few,
            more => more.next_multiple_of(5),
        };
        let foot = TOP + up + 16;
        for column in (0..self.columns).step_by(each) {
            let (x, second) = (LEFT + column * self.width, column as u64 * self.of_column);
            writeln!(out, "<text x=\"{x}\" y=\"{foot}\">{second} s</text>")?;
        }
        let whole = self.of_column * 1000;
        for part in 0..=4_u64 {
            let y = TOP + up - usize::try_from(part).unwrap_or(0) * up / 4 + 4;
            let (x, time) = (LEFT - 6, whole * part / 4);
            writeln!(out, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{time} ms</text>")?;
        }
        let foot = foot + 20;
        let scale = ValueScale::of(&map.value);
        let (slice, most) = (self.slice / 1_000_000, scale.amount(Weight(self.most)));
        writeln!(
            out,
            "<text x=\"{LEFT}\" y=\"{foot}\" fill=\"#555\">each column is {} s, each slice {slice} ms; the darkest has {most}</text>",
            self.of_column
        )
    }

    fn write_cell(
        &self,
        at: usize,
        weight: u64,
        scale: &ValueScale,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let (column, slice) = (at / SLICES, at % SLICES);
        let (x, y) = (LEFT + column * self.width, TOP + (SLICES - 1 - slice) * HEIGHT);
        let part = weight as f64 / self.most.max(1) as f64 * COLOURS.len() as f64;
        let colour = COLOURS[position(part.ceil()).clamp(1, COLOURS.len()) - 1];
        let (start, end) = (at as u64 * self.slice, (at as u64 + 1) * self.slice);
        let (start, end) = (start as f64 / 1e9, end as f64 / 1e9);
        let amount = scale.amount(Weight(weight));
        let width = self.width;
        writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{HEIGHT}\" fill=\"{colour}\">\
             <title>{start:.2}s..{end:.2}s: {amount}</title></rect>"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(duration: u64, samples: &[(u64, u64)]) -> String {
        titled("a < b", duration, samples)
    }

    fn titled(title: &str, duration: u64, samples: &[(u64, u64)]) -> String {
        let samples = samples.iter().map(|(ms, weight)| (Nanos(ms * 1_000_000), *weight)).collect();
        let (title, value) = (title.to_owned(), ValueType::samples());
        let map = HeatMap { title, value, duration: Nanos(duration * 1_000_000), samples };
        let mut out = Vec::new();
        write_heat_map(&map, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_slice_has_the_samples_of_its_time() {
        let svg = drawn(2500, &[(1030, 2), (1039, 3), (0, 1)]);
        assert!(svg.contains("<title>1.02s..1.04s: 5 samples</title>"), "{svg}");
        assert!(svg.contains("<title>0.00s..0.02s: 1 samples</title>"), "{svg}");
        assert_eq!(svg.matches("<title>").count(), 2);
        // The second column, two slices up; three columns in all.
        assert!(svg.contains(&format!("x=\"{}\" y=\"{}\"", 60 + 24, 44 + 48 * 7)), "{svg}");
        assert!(svg.contains("a &lt; b") && svg.contains("width=\"72\" height=\"350\""), "{svg}");
    }

    #[test]
    fn titles_have_room_up_to_the_width_of_a_map() {
        let width = |svg: &str| -> usize {
            svg.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        assert_eq!(width(&drawn(1000, &[])), LEAST_WIDTH);
        let long = titled(&"x".repeat(80), 1000, &[]);
        assert!(long.contains(&format!(">{}<", "x".repeat(80))), "{long}");
        assert_eq!(width(&long), LEFT + 80 * 592 * 15 / 1000 + 20);
        let longer = titled(&"x".repeat(1000), 1000, &[]);
        assert!(
            longer.contains("x&#8230;</text>") && width(&longer) <= LEFT + ACROSS + 20,
            "{longer}"
        );
    }

    #[test]
    fn long_recordings_have_columns_of_several_seconds() {
        let svg = drawn(3_600_000, &[(3_599_999, 1)]);
        assert!(svg.contains("each column is 3 s, each slice 60 ms"), "{svg}");
        assert!(svg.contains("<title>3599.94s..3600.00s: 1 samples</title>"), "{svg}");
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert_eq!(drawn(0, &[]).matches("<title>").count(), 0);
    }
}
