//! What a profiler says of the functions of one program, by one rule for all profilers.
//!
//! A sample is one of a function when the function stands anywhere on its stack. It is rooted when
//! a base function of the program (`main`, or what a thread starts with) stands there too: a stack
//! that was cut has none, and what libraries call above it matters to nobody.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::super::profiler::Profiler;
use super::super::rooted::{perf_frame, stdout};

/// What is known of the program that is recorded.
#[derive(Debug)]
pub(super) struct Program {
    path: PathBuf,
    bases: &'static [&'static str],
    threads: &'static [&'static str],
    /// Symbols by address, for a profiler that saves addresses only.
    symbols: BTreeMap<u64, String>,
}

impl Program {
    /// Reads the symbols of a program; its own path has to be absolute.
    pub(super) fn read(
        path: &Path,
        bases: &'static [&'static str],
        threads: &'static [&'static str],
    ) -> Result<Program> {
        let text = stdout(Command::new("nm").args(["--defined-only"]).arg(path))?;
        Ok(Program { path: path.to_owned(), bases, threads, symbols: symbols(&text) })
    }

    fn name_at(&self, address: u64) -> Option<&str> {
        self.symbols.range(..=address).next_back().map(|(_, name)| name.as_str())
    }
}

/// Lines of nm: `ADDRESS KIND NAME`; functions are of kind t or T.
fn symbols(text: &str) -> BTreeMap<u64, String> {
    let function = |line: &str| {
        let mut words = line.split(' ');
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let code = words.next().is_some_and(|kind| kind.eq_ignore_ascii_case("t"));
        Some((address, words.next().filter(|_| code)?.to_owned()))
    };
    text.lines().filter_map(function).collect()
}

/// Samples of a program.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// All of its processes.
    pub(super) samples: u64,
    /// Those in functions of known CPU time.
    pub(super) by_function: BTreeMap<String, u64>,
    /// Those of the latter that reach a base function.
    rooted: u64,
}

impl Seen {
    /// The share of the samples in known functions that are rooted; `None` without any.
    pub(super) fn rooted_percent(&self) -> Option<f64> {
        let all: u64 = self.by_function.values().sum();
        (all > 0).then(|| self.rooted as f64 * 100.0 / all as f64)
    }

    /// Adds a stack, in any order.
    fn add(&mut self, frames: &[&str], weight: u64, program: &Program, functions: &[&str]) {
        self.samples += weight;
        if let Some(function) = functions.iter().find(|function| frames.contains(function)) {
            *self.by_function.entry((*function).to_owned()).or_default() += weight;
            let rooted = frames.iter().any(|frame| program.bases.contains(frame));
            self.rooted += if rooted { weight } else { 0 };
        }
    }
}

/// Reads what a profiler wrote; `functions` are those of known CPU time.
pub(super) fn read(
    profiler: &Profiler,
    output: &Path,
    program: &Program,
    functions: &[&str],
) -> Result<Seen> {
    match profiler {
        Profiler::Flame(_) => {
            let text = fs::read_to_string(output).with_context(|| output.display().to_string())?;
            Ok(flame(&text, program, functions))
        }
        Profiler::Perf(perf, _) => {
            let mut command = Command::new(perf);
            command.args(["script", "--no-inline", "-F", "comm,ip,sym,dso", "-i"]).arg(output);
            Ok(perf_script(&stdout(&mut command)?, program, functions))
        }
        Profiler::Samply(_) => {
            let json = stdout(Command::new("gzip").arg("-dc").arg(output))?;
            let profile = serde_json::from_str(&json).context("samply's JSON")?;
            samply(&profile, program, functions).context("samply's profile has another shape")
        }
    }
}

fn flame(folded: &str, program: &Program, functions: &[&str]) -> Seen {
    let mut seen = Seen::default();
    for (path, weight) in folded.lines().filter_map(|line| line.rsplit_once(' ')) {
        let frames: Vec<&str> = path.split(';').skip(1).collect();
        seen.add(&frames, weight.parse().unwrap_or(0), program, functions);
    }
    seen
}

/// `perf script -F comm,ip,sym,dso`: a line with the thread's name, then a line a frame, then an
/// empty line. Where the whole machine was recorded, other programs stand there, too.
fn perf_script(text: &str, program: &Program, functions: &[&str]) -> Seen {
    let path = program.path.to_string_lossy();
    let mut seen = Seen::default();
    for sample in text.split("\n\n").filter(|sample| !sample.trim().is_empty()) {
        let thread = sample.trim_start_matches('\n').lines().next().unwrap_or_default().trim();
        if !program.threads.contains(&thread) {
            continue;
        }
        let frames = sample.lines().filter_map(perf_frame);
        let frames = frames.filter(|(_, _, image)| *image == path);
        let frames: Vec<&str> = frames.map(|(_, name, _)| name).collect();
        seen.add(&frames, 1, program, functions);
    }
    seen
}

/// The processed profile format of the Firefox profiler, as samply 0.13 writes it.
fn samply(profile: &Value, program: &Program, functions: &[&str]) -> Option<Seen> {
    let path = program.path.to_str()?;
    let mut seen = Seen::default();
    for thread in profile["threads"].as_array()? {
        let number = |table: &str, column: &str, at: u64| {
            thread[table][column].get(usize::try_from(at).ok()?)?.as_u64()
        };
        let name = |stack: u64| {
            let frame = number("stackTable", "frame", stack)?;
            let resource = number("funcTable", "resource", number("frameTable", "func", frame)?)?;
            let library = number("resourceTable", "lib", resource)?;
            let library = profile["libs"].get(usize::try_from(library).ok()?)?;
            let address = number("frameTable", "address", frame)?;
            (library["path"].as_str() == Some(path)).then(|| program.name_at(address))?
        };
        let samples = &thread["samples"];
        for (at, stack) in samples["stack"].as_array()?.iter().enumerate() {
            // A weight of 0 marks a stretch without samples.
            let weight = samples["weight"].get(at).and_then(Value::as_u64).unwrap_or(1);
            let mut frames = Vec::new();
            let mut next = stack.as_u64();
            while let Some(stack) = next {
                frames.extend(name(stack));
                next = number("stackTable", "prefix", stack);
            }
            seen.add(&frames, weight, program, functions);
        }
    }
    Some(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUNCTIONS: [&str; 2] = ["alpha", "beta"];

    fn program() -> Program {
        let symbols = symbols("0000000000001000 t alpha\n0000000000001100 T main\nU puts\n");
        let path = PathBuf::from("/tmp/prog");
        Program { path, bases: &["main"], threads: &["prog"], symbols }
    }

    fn seen(samples: u64, alpha: u64, rooted: u64) -> Seen {
        let by_function = BTreeMap::from([("alpha".to_owned(), alpha)]);
        Seen { samples, by_function, rooted }
    }

    #[test]
    fn flame_says_all_of_the_program() {
        let folded = "prog;_start;main;alpha 5\nprog;[truncated stack];alpha;read_[k] 2\n\
                      prog;_dl_start 1\n";
        assert_eq!(flame(folded, &program(), &FUNCTIONS), seen(8, 7, 5));
        assert_eq!(seen(8, 7, 5).rooted_percent(), Some(500.0 / 7.0));
        assert_eq!(Seen::default().rooted_percent(), None);
    }

    #[test]
    fn perf_says_other_programs_and_other_images_too() {
        let text = "prog \n\t  1000 alpha (/tmp/prog)\n\t  1100 main (/tmp/prog)\n\n\
                    prog \n\t  1000 alpha (/tmp/prog)\n\n\
                    prog \n\t  1000 alpha (/lib/other.so)\n\n\
                    rustc \n\t  1000 alpha (/tmp/prog)\n\n";
        assert_eq!(perf_script(text, &program(), &FUNCTIONS), seen(3, 2, 1));
    }

    #[test]
    fn samply_saves_addresses() {
        let profile = serde_json::json!({
            "libs": [{"path": "/tmp/prog"}, {"path": "/lib/other.so"}],
            "threads": [{
                "samples": {"stack": [1, 2, 3, null], "weight": [3, 1, 1, 0]},
                "stackTable": {"prefix": [null, 0, null, null], "frame": [0, 1, 1, 2]},
                "frameTable": {"func": [0, 0, 1], "address": [0x1104, 0x10ff, 0x1000]},
                "funcTable": {"resource": [0, 1]},
                "resourceTable": {"lib": [0, 1]},
            }],
        });
        assert_eq!(samply(&profile, &program(), &FUNCTIONS), Some(seen(5, 4, 3)));
    }
}
