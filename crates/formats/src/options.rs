//! What is asked of the readers.

use std::fmt;
use std::sync::Arc;

use flame_perf_data::Names;
use flame_profile::{Nanos, Profile, TreeOptions, Weight};

use crate::InputFormat;

/// How inputs are read.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The format; `None` = the one that is recognised.
    pub format: Option<&'static InputFormat>,
    /// How folded text becomes a tree, and what the first frames of all stacks say.
    pub tree: TreeOptions,
    /// How many threads read at most; at least 1.
    pub threads: usize,
    /// Whether a part that cannot be read is an error, and not skipped and counted.
    pub strict: bool,
    /// Which samples are taken, and how they are named.
    pub samples: SampleOptions,
    /// Where the names of code are looked for, in formats that have addresses alone.
    pub names: NamesOf,
}

/// Where names are looked for, found out when a format needs it: that may open files of flame's own.
#[derive(Clone)]
pub struct NamesOf(Arc<dyn Fn() -> Names + Send + Sync>);

impl NamesOf {
    /// Found out that way.
    pub fn new(find: impl Fn() -> Names + Send + Sync + 'static) -> NamesOf {
        NamesOf(Arc::new(find))
    }

    /// Finds it out.
    pub(crate) fn find(&self) -> Names {
        (self.0)()
    }
}

impl Default for NamesOf {
    /// The usual places.
    fn default() -> NamesOf {
        NamesOf::new(Names::default)
    }
}

impl fmt::Debug for NamesOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NamesOf")
    }
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions {
            format: None,
            tree: TreeOptions::default(),
            threads: 1,
            strict: false,
            samples: SampleOptions::default(),
            names: NamesOf::default(),
        }
    }
}

/// Which samples are taken, and how they are named. Who asks a format for what it does not say of samples
/// is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleOptions {
    /// Samples of this event only; `None` = of all that perf.data has, of the first one elsewhere.
    pub event: Option<String>,
    /// Samples of these tasks, CPUs and times only.
    pub selection: Selection,
    /// Name functions that have no name by their address: `[libc.so.6 7f3a10001234]`.
    pub addresses: bool,
    /// Take stacks from the innermost of these functions on, without what called it.
    pub skip_after: Vec<String>,
    /// Say the source lines that stand below frames in perf script text: `parse:main.c:12`.
    pub source_lines: bool,
    /// Look up the functions that were inlined into those of perf script text, if it has none.
    pub inlined: bool,
    /// Keep when each sample was taken, where the format is perf.data.
    pub keeps_times: bool,
    /// Labels of pprof whose values become the outermost frames, in their order.
    pub roots: Vec<String>,
}

impl SampleOptions {
    /// The first option by which samples or parts of them are chosen, as users know it.
    pub(crate) fn first_choice(&self) -> Option<&'static str> {
        let Selection { pids, threads, comms, cpus, from, to } = &self.selection;
        let choices = [
            (from.is_some() || to.is_some(), "--time"),
            (!cpus.is_empty(), "--cpu"),
            (!pids.is_empty(), "--process"),
            (!threads.is_empty(), "--thread"),
            (!comms.is_empty(), "--comm"),
            (self.event.is_some(), "--event"),
            (!self.skip_after.is_empty(), "--skip-after"),
        ];
        choices.into_iter().find(|(is_asked, _)| *is_asked).map(|(_, option)| option)
    }
}

/// Samples that are taken; an empty list takes all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Processes.
    pub pids: Vec<u32>,
    /// Threads, by their name or number.
    pub threads: Vec<String>,
    /// Processes or threads by their name.
    pub comms: Vec<String>,
    /// CPUs.
    pub cpus: Vec<u32>,
    /// From this time on, counted from the first sample of the input.
    pub from: Option<Nanos>,
    /// Up to this time, which is not within.
    pub to: Option<Nanos>,
}

impl Selection {
    /// Whether `name` is the one that is asked for: names are asked for as they are, and as they are shown,
    /// where a blank is `_` and a `;` is `:`.
    pub(crate) fn is_name(asked: &str, name: &[u8]) -> bool {
        let shown = |byte: &u8| match byte {
            b' ' => b'_',
            b';' => b':',
            other => *other,
        };
        asked.as_bytes().iter().map(shown).eq(name.iter().map(shown))
    }

    /// Whether anything is left out.
    pub fn is_all(&self) -> bool {
        *self == Selection::default()
    }

    /// What is said of a recording of which it leaves nothing, and which was so long, if that is known.
    pub(crate) fn leaves_nothing(&self, duration: Option<Nanos>) -> String {
        let Selection { from, to, .. } = *self;
        let seconds = |time: Nanos| time.as_secs_f64().to_string();
        let [start, end] = [from, to].map(|time| time.map(seconds).unwrap_or_default());
        let mut text = "no sample matches ".to_owned();
        text += &match *self == (Selection { from, to, ..Selection::default() }) {
            true => format!("--time {start}..{end}"),
            false => "the options".to_owned(),
        };
        if let Some(duration) = duration.filter(|_| from.or(to).is_some()) {
            text += &format!("; the recording is {:.3} s long", duration.as_secs_f64());
        }
        text
    }

    /// The same of a profile, if it leaves nothing of it.
    pub(crate) fn emptied(&self, profile: &Profile) -> Option<String> {
        let weighs = |value| profile.total(value) > Weight(0);
        let is_empty = !self.is_all() && !(0..profile.value_types().len()).any(weighs);
        is_empty.then(|| self.leaves_nothing(profile.meta.duration))
    }
}
