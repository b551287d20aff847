//! The profilers of interpreted programs: where they are, how they attach, what they write.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::bench::profiler::locate;

/// How a profiler writes stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Folded text.
    Flame,
    /// py-spy's `raw`.
    PySpy,
    /// rbspy's `collapsed`.
    Rbspy,
    /// A frame a line, innermost first, and an empty line behind each stack.
    Phpspy,
}

/// A profiler in one way of using it.
#[derive(Debug)]
pub(super) struct Peer {
    /// The head of its column.
    pub(super) name: &'static str,
    pub(super) format: Format,
    path: PathBuf,
    options: &'static [&'static str],
}

/// Those of a language that are there, flame first.
pub(super) fn find(language: &str, flame: &Path) -> Vec<Peer> {
    let peer =
        |name, format, path: &Path, options| Peer { name, format, path: path.into(), options };
    let mut peers = vec![peer("flame", Format::Flame, flame, &[])];
    let mut add = |of: &str,
                   program: &str,
                   format,
                   ways: &[(&'static str, &'static [&'static str])]| {
        let variable = format!("FLAME_BENCH_{}", program.replace('-', "").to_uppercase());
        if let Some(path) = locate(&variable, program).filter(|_| of == language) {
            peers.extend(ways.iter().map(|(name, options)| peer(*name, format, &path, *options)));
        }
    };
    add(
        "python",
        "py-spy",
        Format::PySpy,
        &[
            ("py-spy", &[]),
            ("py-spy --native", &["--native"]),
            ("py-spy --nonblocking", &["--nonblocking"]),
        ],
    );
    add(
        "ruby",
        "rbspy",
        Format::Rbspy,
        &[("rbspy", &[]), ("rbspy --nonblocking", &["--nonblocking"])],
    );
    add("php", "phpspy", Format::Phpspy, &[("phpspy", &[]), ("phpspy -S", &["-S"])]);
    peers
}

/// A sentence for each that is not there.
pub(super) fn missing() -> Vec<&'static str> {
    let how = [
        (
            "FLAME_BENCH_PYSPY",
            "py-spy",
            "py-spy is missing: pip install py-spy, or FLAME_BENCH_PYSPY=/path/to/py-spy",
        ),
        (
            "FLAME_BENCH_RBSPY",
            "rbspy",
            "rbspy is missing: cargo install rbspy, or FLAME_BENCH_RBSPY=/path/to/rbspy",
        ),
        (
            "FLAME_BENCH_PHPSPY",
            "phpspy",
            "phpspy is missing: build it from its source, and FLAME_BENCH_PHPSPY=/path/to/phpspy",
        ),
    ];
    let missing = how.iter().filter(|(variable, name, _)| locate(variable, name).is_none());
    missing.map(|(_, _, how)| *how).collect()
}

impl Peer {
    /// The command that records a process for a time.
    pub(super) fn attach(&self, hz: u32, pid: u32, time: Duration, output: &Path) -> Command {
        let (hz, pid) = (hz.to_string(), pid.to_string());
        let (seconds, millis) = (time.as_secs().to_string(), time.as_millis().to_string());
        let mut command = Command::new(&self.path);
        match self.format {
            Format::Flame => {
                command.args(["record", "--force", "-F", &hz, "-d", &seconds, "-p", &pid, "-o"])
            }
            Format::PySpy => command
                .args(["record", "-f", "raw", "-r", &hz, "-d", &seconds, "-p", &pid])
                .args(["--full-filenames", "-o"]),
            Format::Rbspy => command
                .args(["record", "--silent", "--format", "collapsed", "--rate", &hz])
                .args(["--duration", &seconds, "--pid", &pid, "--file"]),
            Format::Phpspy => command.args(["-H", &hz, "-i", &millis, "-p", &pid, "-o"]),
        };
        // Options come behind the name of the output, where all take them.
        command.arg(output).args(self.options);
        command
    }

    /// How many samples it says that it has dropped.
    pub(super) fn lost(&self, stderr: &str, stdout: &str) -> u64 {
        let words = |text: &str, before: &str| {
            let rest = text.rsplit_once(before).map(|(_, rest)| rest.trim_start().to_owned());
            let digits = rest.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect());
            digits.and_then(|digits: String| digits.parse().ok())
        };
        let text = format!("{stdout}\n{stderr}");
        let before = match self.format {
            Format::Flame => return 0,
            Format::PySpy => "Errors: ",
            Format::Rbspy => "Dropped ",
            Format::Phpspy => return 0,
        };
        words(&text, before).unwrap_or(0)
    }

    #[cfg(test)]
    pub(super) fn of(format: Format) -> Peer {
        Peer { name: "test", format, path: PathBuf::new(), options: &[] }
    }
}
