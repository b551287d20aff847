//! What is drawn over time: which profiles say when samples were taken, and what is made of that.

use std::io::{self, Write};

use flame_profile::Profile;
use flame_render::{Chart, HeatMap, SvgConfig, write_chart, write_heat_map};

use super::{Format, Outputs, Shown};
use crate::message::Failure;

/// Why nothing is drawn over time.
const NO_TIMES: &str = "only recordings, those saved with --times, and one perf.data alone say when samples were taken";

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

    /// Draws what each thread did when, or when the samples were taken.
    pub(super) fn write_times(
        &self,
        shown: &Shown<'_>,
        title: Option<&str>,
        format: Format,
        mut out: &mut dyn Write,
    ) -> io::Result<()> {
        let profile = shown.profile.filter(|profile| profile.timeline.is_some());
        let profile = profile.ok_or_else(|| io::Error::other(NO_TIMES))?;
        let value = self.tree_options(profile).value.unwrap_or(profile.default_value);
        let title = self.picture.args.title.as_deref().or(title);
        if format == Format::HeatMap {
            let title = title.unwrap_or("Heat map");
            return write_heat_map(&HeatMap::of_profile(profile, value, title), &mut out);
        }
        let svg = self.picture.svg(None, shown.footer, Some(&profile.value_types()[value]));
        let title = title.unwrap_or("Flame chart").to_owned();
        let chart = Chart::of_profile(profile, value, SvgConfig { title, ..svg });
        write_chart(&chart, &mut out)
    }
}
