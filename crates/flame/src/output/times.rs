//! What is drawn over time: which profiles say when samples were taken, and what is made of that.

use flame_profile::{Lane, Profile, TimedSample, Timeline};
use flame_render::{Chart, HeatMap};

use super::{Format, Outputs, Shown};
use crate::message::Failure;

/// Why nothing is drawn over time.
const NO_TIMES: &str = "only recordings, those saved with --times, and one perf.data alone say when samples were taken";

/// More lanes than that nobody looks through.
const MOST_LANES: usize = 200;

impl Outputs {
    /// Whether outputs show when samples were taken.
    pub(crate) fn shows_times(&self) -> bool {
        self.formats().any(Format::shows_times)
    }

    /// Whether one of them has all that a profile has.
    pub(crate) fn saves(&self) -> bool {
        self.formats().any(|format| format == Format::Pprof)
    }

    /// Whether they show when threads ran.
    pub(crate) fn shows_runs(&self) -> bool {
        self.formats().any(|format| format == Format::FlameChart)
    }

    /// Whether they can: of what was read it may not be known.
    pub(crate) fn check_times(&self, profile: Option<&Profile>) -> Result<(), Failure> {
        let has_times = profile.is_some_and(|profile| profile.timeline.is_some());
        if has_times || !self.shows_times() {
            return Ok(());
        }
        let chart = if self.shows_runs() { "flame chart" } else { "heat map" };
        Err(Failure::usage(format!("cannot draw a {chart} of this")).why(NO_TIMES))
    }

    /// What each thread did when.
    pub(super) fn chart(
        &self,
        shown: &Shown<'_>,
        title: Option<&str>,
    ) -> Result<Chart, &'static str> {
        let profile = shown.profile.filter(|profile| profile.timeline.is_some());
        let Some(profile) = profile else { return Err(NO_TIMES) };
        let value = self.tree_options(profile).value.unwrap_or(profile.default_value);
        let svg = self.picture.svg(title, shown.footer, Some(&profile.value_types()[value]));
        let finest = Chart::finest(profile.meta.duration.unwrap_or_default());
        let name = |lane: &Lane| {
            let thread = profile.thread(lane.thread);
            let name = profile.text(thread.name);
            match (thread.pid, thread.tid) {
                (Some(pid), Some(tid)) if pid.0 != tid.0 => format!("{name} {pid}/{tid}"),
                (Some(pid), _) => format!("{name} {pid}"),
                _ => name.to_owned(),
            }
        };
        let (lanes, left_out) = Lane::busiest(profile, value / 2, finest, MOST_LANES);
        let mut footer = svg.footer;
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
        Ok(Chart {
            title: self.picture.args.title.as_deref().or(title).unwrap_or("Flame chart").to_owned(),
            lanes: lanes.into_iter().map(|lane| (name(&lane), lane)).collect(),
            knows_runs: profile.runs.is_some(),
            colours: svg.colours,
            footer,
        })
    }

    /// When the samples were taken.
    pub(super) fn heat_map(
        &self,
        shown: &Shown<'_>,
        title: Option<&str>,
    ) -> Result<HeatMap, &'static str> {
        let profile = shown.profile.filter(|profile| profile.timeline.is_some());
        let Some(profile) = profile else { return Err(NO_TIMES) };
        let value = self.tree_options(profile).value.unwrap_or(profile.default_value);
        let samples = profile.timeline.iter().flat_map(Timeline::iter);
        // Each event has two values, of which the first counts samples; where several events add up to
        // one value, all samples have that.
        let last = (profile.value_types().len() / 2).saturating_sub(1);
        let samples = samples.filter(|sample| sample.event.min(last) == value / 2);
        let weight = |sample: &TimedSample| if value.is_multiple_of(2) { 1 } else { sample.weight };
        let title = self.picture.args.title.as_deref().or(title).unwrap_or("Heat map");
        Ok(HeatMap {
            title: title.to_owned(),
            value: profile.value_types()[value].clone(),
            duration: profile.meta.duration.unwrap_or_default(),
            samples: samples.map(|sample| (sample.time, weight(&sample))).collect(),
        })
    }
}
