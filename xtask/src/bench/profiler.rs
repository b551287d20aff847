//! The profilers that are compared: where they are, how they record, how one gets them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// A profiler in one way of using it.
#[derive(Clone, Debug)]
pub(crate) enum Profiler {
    /// flame as it stands.
    Flame(PathBuf),
    /// `perf record`, in one of its ways.
    Perf(PathBuf, PerfWay),
    /// `samply record --save-only`.
    Samply(PathBuf),
}

/// How perf records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PerfWay {
    /// `-g`: frame pointers.
    FramePointers,
    /// `--call-graph dwarf` with its default of 8 KiB a sample.
    Dwarf,
    /// `--call-graph dwarf,65528`: the most that the kernel copies.
    DwarfLargest,
    /// `-a -g`: all CPUs.
    Machine,
}

impl PerfWay {
    fn name(self) -> &'static str {
        match self {
            PerfWay::FramePointers => "perf -g",
            PerfWay::Dwarf => "perf dwarf",
            PerfWay::DwarfLargest => "perf dwarf,65528",
            PerfWay::Machine => "perf -a",
        }
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            PerfWay::FramePointers => &["-g"],
            PerfWay::Dwarf => &["--call-graph", "dwarf"],
            PerfWay::DwarfLargest => &["--call-graph", "dwarf,65528"],
            PerfWay::Machine => &["-a", "-g"],
        }
    }
}

impl Profiler {
    /// The head of its column.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Profiler::Flame(_) => "flame",
            Profiler::Perf(_, way) => way.name(),
            Profiler::Samply(_) => "samply",
        }
    }

    /// A name for its files.
    pub(crate) fn slug(&self) -> String {
        self.name().replace(' ', "-")
    }

    /// What it writes, in `directory`.
    pub(crate) fn output(&self, directory: &Path) -> PathBuf {
        directory.join(match self {
            Profiler::Flame(_) => "flame.folded".to_owned(),
            Profiler::Perf(..) => format!("{}.data", self.slug()),
            Profiler::Samply(_) => "samply.json.gz".to_owned(),
        })
    }

    /// The command that records `target` at `hz`, files into `directory`. flame writes the picture
    /// besides the folded text.
    pub(crate) fn record(&self, hz: u32, directory: &Path, target: &[OsString]) -> Result<Command> {
        let output = self.output(directory);
        let hz = hz.to_string();
        let mut command = match self {
            Profiler::Flame(path) => {
                let mut command = Command::new(path);
                command.args(["record", "--force", "-F", &hz, "-o"]).arg(&output);
                command.arg("-o").arg(directory.join("flame.svg")).arg("--");
                command
            }
            Profiler::Perf(path, way) => {
                let mut command = Command::new(path);
                command.args(["record", "-q", "-F", &hz]).args(way.options());
                command.arg("-o").arg(&output).arg("--");
                command
            }
            Profiler::Samply(path) => {
                let mut command = samply(path, directory)?;
                command.args(["record", "--save-only", "-r", &hz, "-o"]).arg(&output).arg("--");
                command
            }
        };
        command.args(target);
        Ok(command)
    }

    /// Whether it goes on until it is interrupted once it is attached: samply 0.13 does, whatever
    /// duration it is given.
    pub(crate) fn attached_until_interrupted(&self) -> bool {
        matches!(self, Profiler::Samply(_))
    }

    /// The command that records a running process for this many seconds, or until it is interrupted.
    pub(crate) fn attach(
        &self,
        hz: u32,
        directory: &Path,
        pid: u32,
        seconds: f64,
    ) -> Result<Command> {
        let output = self.output(directory);
        let (hz, pid, seconds) = (hz.to_string(), pid.to_string(), seconds.to_string());
        let mut command = match self {
            Profiler::Flame(path) | Profiler::Perf(path, _) => Command::new(path),
            Profiler::Samply(path) => samply(path, directory)?,
        };
        command.arg("record");
        match self {
            Profiler::Flame(_) => command.args(["-F", &hz, "-d", &seconds]),
            Profiler::Perf(_, way) => command.args(["-q", "-F", &hz]).args(way.options()),
            Profiler::Samply(_) => command.args(["--save-only", "-r", &hz]),
        };
        command.args(["-p", &pid, "-o"]).arg(&output);
        if matches!(self, Profiler::Perf(..)) {
            command.args(["--", "sleep", &seconds]);
        }
        Ok(command)
    }
}

/// samply takes every error of opening the hardware event for a lack of rights where
/// perf_event_paranoid is above 1, even when it runs as root. It is shown a 1 in a mount namespace
/// of its own; the machine's setting stays.
fn samply(path: &Path, directory: &Path) -> Result<Command> {
    let setting = "/proc/sys/kernel/perf_event_paranoid";
    let level = fs::read_to_string(setting).context(setting)?;
    if level.trim().parse::<i32>().is_ok_and(|level| level <= 1) {
        return Ok(Command::new(path));
    }
    let one = directory.join("one");
    fs::write(&one, "1\n").context("the file that stands in for the setting")?;
    let mut command = Command::new("unshare");
    let script = format!("mount --bind \"$0\" {setting} && exec \"$@\"");
    command.args(["-m", "sh", "-c", &script]).arg(one).arg(path);
    Ok(command)
}

/// flame and the peers that are there, perf in those ways.
pub(crate) fn find(flame: &Path, ways: &[PerfWay]) -> Vec<Profiler> {
    let mut found = vec![Profiler::Flame(flame.to_owned())];
    if let Some(perf) = locate("FLAME_BENCH_PERF", "perf") {
        found.extend(ways.iter().map(|way| Profiler::Perf(perf.clone(), *way)));
    }
    found.extend(locate("FLAME_BENCH_SAMPLY", "samply").map(Profiler::Samply));
    found
}

/// A sentence for each peer that is not there: how to install it.
pub(crate) fn missing(found: &[Profiler]) -> Vec<&'static str> {
    let mut missing = Vec::new();
    if !found.iter().any(|profiler| matches!(profiler, Profiler::Perf(..))) {
        missing.push(
            "perf is missing: sudo apt-get install linux-perf, or FLAME_BENCH_PERF=/path/to/perf",
        );
    }
    if !found.iter().any(|profiler| matches!(profiler, Profiler::Samply(_))) {
        missing
            .push("samply is missing: cargo install samply, or FLAME_BENCH_SAMPLY=/path/to/samply");
    }
    missing
}

/// A sentence where the scripts that draw what perf recorded are not there.
pub(crate) fn missing_scripts() -> Option<&'static str> {
    flamegraph_dir().is_none().then_some(
        "stackcollapse-perf.pl and flamegraph.pl are missing: git clone \
             https://github.com/brendangregg/FlameGraph, and FLAMEGRAPH_DIR=/path/to/FlameGraph",
    )
}

/// Where flamegraph.pl and its companions are, as `FLAMEGRAPH_DIR` says.
pub(crate) fn flamegraph_dir() -> Option<PathBuf> {
    let directory = PathBuf::from(std::env::var_os("FLAMEGRAPH_DIR")?);
    directory.join("flamegraph.pl").is_file().then_some(directory)
}

/// A program by its variable, or in the PATH.
pub(super) fn locate(variable: &str, name: &str) -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(variable) {
        return Some(PathBuf::from(path)).filter(|path| path.is_file());
    }
    let directories = std::env::var_os("PATH")?;
    std::env::split_paths(&directories).map(|dir| dir.join(name)).find(|path| path.is_file())
}
