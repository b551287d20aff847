//! `flame fold`: its arguments as they are typed.

use std::path::PathBuf;

use clap::Args;
use flame_formats::{SampleOptions, Selection};
use flame_profile::{Annotations, Nanos};

use super::input::InputArgs;
use super::outputs::OutputArgs;
use super::picture::PictureArgs;

const EXAMPLES: &str = "\
Examples:
  flame fold perf.data > out.folded           perf itself is not needed
  perf script | flame fold -o out.svg         or any other output
  flame fold perf.data --event instructions --comm nginx --time 2..5
  flame fold day1/ day2/ -o week.pb.gz        all files of folders, summed up
  flame fold --files /var -o var.svg          what fills a disk
  flame fold --list-formats";

/// Turn the output of any profiler into folded stacks, or into what -o names
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FoldArgs {
    /// Profiles, or folders of profiles, which are added up; - is stdin
    #[arg(value_name = "FILE")]
    pub(crate) profiles: Vec<PathBuf>,

    /// Fold the disk usage of these folders, instead of profiles
    ///
    /// Frames are folders, the innermost one a file. --value size takes file lengths, --value files
    /// counts files. Files with several names count once; symbolic links and other file systems are not
    /// followed.
    #[arg(long, conflicts_with_all = ["from", "event", "process", "thread", "comm", "cpu", "time", "skip_after", "roots"])]
    pub(crate) files: bool,

    /// List the formats that are read
    #[arg(long, exclusive = true)]
    pub(crate) list_formats: bool,

    #[command(flatten)]
    pub(crate) input: InputArgs,

    #[command(flatten)]
    pub(crate) samples: SampleArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) picture: PictureArgs,
}

/// Which samples are taken, and how they are named; the names of options are those of
/// stackcollapse-perf.pl and inferno-collapse-perf where they have them.
#[derive(Debug, Args)]
#[command(next_help_heading = "Samples")]
pub(crate) struct SampleArgs {
    /// Mark functions of the kernel in folded output: `_[k]`
    #[arg(long)]
    pub(crate) kernel: bool,

    /// Mark functions that a runtime has compiled in folded output: `_[j]`
    #[arg(long)]
    pub(crate) jit: bool,

    /// Mark both
    #[arg(long)]
    pub(crate) all: bool,

    /// Show the addresses of functions that have no name
    #[arg(long)]
    pub(crate) addrs: bool,

    /// Show source lines where perf script printed them (`-F +srcline`), or where --inline finds them
    #[arg(long, alias = "context", overrides_with = "srcline")]
    pub(crate) srcline: bool,

    /// Look up the functions that were inlined, where perf script printed none
    ///
    /// They are those of the files that this machine has now, or of --sysroot. A function that is not where
    /// perf printed it stays as it is. perf.data has inlined functions without this option.
    #[arg(long, conflicts_with = "no_inline")]
    pub(crate) inline: bool,

    /// Only samples of this event [default: the first one in the input]
    #[arg(long, value_name = "EVENT", alias = "event-filter")]
    pub(crate) event: Option<String>,

    /// Leave out the callers of this function (repeatable)
    #[arg(long, value_name = "FUNCTION")]
    pub(crate) skip_after: Vec<String>,

    /// Make the values of this pprof label the outermost frames: host, service (repeatable)
    #[arg(long = "root", value_name = "LABEL")]
    pub(crate) roots: Vec<String>,

    /// Only samples of these processes
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pub(crate) process: Vec<u32>,

    /// Only samples of these threads, by name or number; a comma within a name is \,
    #[arg(long, value_name = "THREAD")]
    pub(crate) thread: Vec<String>,

    /// Only samples of processes or threads of this name; a comma within it is \,
    #[arg(long, value_name = "NAME")]
    pub(crate) comm: Vec<String>,

    /// Only samples on these CPUs
    #[arg(long, value_name = "CPU", value_delimiter = ',')]
    pub(crate) cpu: Vec<u32>,

    /// Only samples between FROM and TO, in seconds after the first one: 2..5, 2.. or ..0.5
    #[arg(long, value_name = "FROM..TO", value_parser = time_range)]
    pub(crate) time: Option<TimeRange>,
}

/// A span of time; open where it has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeRange {
    from: Option<Nanos>,
    to: Option<Nanos>,
}

impl SampleArgs {
    /// What is asked of readers.
    pub(crate) fn options(&self) -> SampleOptions {
        let time = self.time.unwrap_or(TimeRange { from: None, to: None });
        SampleOptions {
            keeps_times: false,
            event: self.event.clone(),
            selection: Selection {
                pids: self.process.clone(),
                threads: names(&self.thread),
                comms: names(&self.comm),
                cpus: self.cpu.clone(),
                from: time.from,
                to: time.to,
            },
            addresses: self.addrs,
            skip_after: self.skip_after.clone(),
            roots: self.roots.clone(),
            source_lines: self.srcline,
            inlined: self.inline,
        }
    }

    /// What folded output says of the kind of code, where inputs do not say it themselves.
    pub(crate) fn annotations(&self) -> Annotations {
        let (kernel, jit) = (self.kernel || self.all, self.jit || self.all);
        Annotations::Without { kernel: !kernel, jit: !jit }
    }
}

/// Names between commas; one that belongs to a name has a backslash before it.
fn names(lists: &[String]) -> Vec<String> {
    let mut names = Vec::new();
    for list in lists {
        let mut name = String::new();
        let mut parts = list.split(',').peekable();
        while let Some(part) = parts.next() {
            match part.strip_suffix('\\').filter(|_| parts.peek().is_some()) {
                Some(start) => name += &format!("{start},"),
                None => names.push(std::mem::take(&mut name) + part),
            }
        }
    }
    names
}

fn time_range(text: &str) -> Result<TimeRange, String> {
    let bound = |text: &str| -> Result<Option<Nanos>, String> {
        if text.is_empty() {
            return Ok(None);
        }
        let seconds = text.trim_end_matches('s').parse::<f64>().ok();
        let seconds = seconds.filter(|seconds| (0.0..1e9).contains(seconds));
        let nanos = seconds.map(|seconds| Nanos((seconds * 1e9).round() as u64));
        nanos.map(Some).ok_or_else(|| format!("{text} is not a number of seconds"))
    };
    let (from, to) =
        text.split_once("..").ok_or("a time span is FROM..TO in seconds, such as 2..5")?;
    let range = TimeRange { from: bound(from)?, to: bound(to)? };
    match (range.from, range.to) {
        (Some(from), Some(to)) if from >= to => Err("its end is not behind its start".to_owned()),
        _ => Ok(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_between_commas_that_are_not_theirs() {
        let lists = ["a b,c", r"x\,y,z", r"end\", "42"].map(str::to_owned);
        assert_eq!(names(&lists), ["a b", "c", "x,y", "z", r"end\", "42"]);
    }

    #[test]
    fn spans_of_time_may_be_open() {
        let nanos = |seconds: f64| Some(Nanos((seconds * 1e9) as u64));
        for (text, from, to) in [
            ("2..5", nanos(2.0), nanos(5.0)),
            ("0.5s..", nanos(0.5), None),
            ("..1.25", None, nanos(1.25)),
            ("..", None, None),
        ] {
            assert_eq!(time_range(text), Ok(TimeRange { from, to }), "{text}");
        }
        for text in ["", "2", "5..2", "a..b", "-1..2", "inf.."] {
            assert!(time_range(text).is_err(), "{text}");
        }
    }
}
