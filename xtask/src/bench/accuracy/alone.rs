//! What flame alone is asked, since other profilers have no such thing or no way to say it: events that are
//! counted, by how often they come; one thread; children that end; a user without rights; a process whose
//! memory may not be read.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::super::build_program;
use super::super::table::{Table, Unit};
use super::super::target::Target;
use super::{Options, ShareError, share_error};

/// The kinds of cases, as `--only` has them.
pub(super) const KINDS: [&str; 5] =
    ["occurrences", "thread", "reaped", "unprivileged", "unreadable"];

/// Rates of the events a second that are asked of the program.
const RATES: [&str; 6] = ["10", "100", "1000", "10000", "100000", "1000000"];

/// Levels of recursion that tell the two depths of `hard depths`, 10 and 211, apart.
const BETWEEN: usize = 20;

/// Records with flame, and fills the rows; other profilers have none.
pub(super) struct Alone<'a> {
    pub(super) flame: &'a Path,
    pub(super) directory: &'a Path,
    pub(super) options: &'a Options,
    /// How many profilers the table has columns for.
    pub(super) columns: usize,
    pub(super) table: &'a mut Table,
}

/// A recording of flame's.
struct Recording {
    folded: Vec<(Vec<String>, u64)>,
    said: String,
}

impl Recording {
    /// The weight of the stacks that each of these functions is on.
    fn by_function(&self, functions: &[&str]) -> BTreeMap<String, u64> {
        let mut seen = BTreeMap::new();
        for (frames, weight) in &self.folded {
            let of = functions.iter().find(|name| frames.iter().any(|frame| frame == *name));
            if let Some(name) = of {
                *seen.entry((*name).to_owned()).or_default() += weight;
            }
        }
        seen
    }

    /// The number in front of some words of the summary.
    fn said_before(&self, words: &str) -> Result<f64> {
        let number = self.said.lines().find_map(|line| {
            let number = line.split_once(words)?.0.rsplit(' ').next()?;
            number.replace(',', "").parse().ok()
        });
        number.with_context(|| format!("no {words:?} in:\n{}", self.said))
    }
}

/// The lines `[THREAD] FUNCTION NUMBER` of these functions.
fn truth(printed: &str, functions: &[&str]) -> Result<BTreeMap<String, f64>> {
    let mut truth = BTreeMap::new();
    for line in printed.lines() {
        let mut words = line.split(' ').rev();
        if let (Some(number), Some(name)) = (words.next(), words.next())
            && functions.contains(&name)
        {
            truth.insert(name.to_owned(), number.parse()?);
        }
    }
    ensure!(!truth.is_empty(), "none of {functions:?} in {printed:?}");
    Ok(truth)
}

impl Alone<'_> {
    pub(super) fn measure(&mut self) -> Result<()> {
        let steps: [fn(&mut Self) -> Result<()>; KINDS.len()] =
            [Self::occurrences, Self::thread, Self::reaped, Self::unprivileged, Self::unreadable];
        for (kind, step) in KINDS.into_iter().zip(steps) {
            if self.options.wants_kind(kind) {
                step(self).context(kind)?;
            }
        }
        Ok(())
    }

    fn row(&mut self, measure: &str, bar: &str, value: f64) {
        let mut cells = vec![Some(value)];
        cells.resize(self.columns, None);
        self.table.row(measure, bar, Unit::Number, cells);
    }

    fn share_row(&mut self, head: &str, error: Option<ShareError>) -> Result<()> {
        let error = error.context("no samples")?;
        let measure = format!("{head}: largest error of a share, in standard errors");
        self.row(&measure, "<= 3", error.deviations);
        Ok(())
    }

    fn output(&self) -> PathBuf {
        self.directory.join("alone.folded")
    }

    /// flame with these options, as somebody.
    fn record(&self, as_whom: &[&str], flame: &Path, options: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        command.args(as_whom).arg(flame).args(["record", "--force", "-o"]).arg(self.output());
        command.args(options).current_dir(self.directory).stdin(Stdio::null());
        command
    }

    /// Runs such a command; gives what it recorded and what its target printed.
    fn run(&self, mut command: Command) -> Result<(Recording, String)> {
        let ended = command.output().with_context(|| format!("{command:?}"))?;
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        ensure!(ended.status.success(), "{command:?}: {}\n{said}", ended.status);
        Ok((self.read(said)?, String::from_utf8_lossy(&ended.stdout).into_owned()))
    }

    fn read(&self, said: String) -> Result<Recording> {
        let mut folded = Vec::new();
        for line in fs::read_to_string(self.output())?.lines() {
            let (frames, weight) = line.rsplit_once(' ').context("a line of folded text")?;
            folded.push((frames.split(';').map(str::to_owned).collect(), weight.parse()?));
        }
        Ok(Recording { folded, said })
    }

    /// Records a running program to its end; `go` starts what is to be recorded.
    fn attached(
        &self,
        options: &[&str],
        target: &mut Target,
        go: fn(&mut Target) -> Result<()>,
    ) -> Result<(Recording, String)> {
        let log = self.directory.join("alone.log");
        let mut command = self.record(&[], self.flame, options);
        let mut flame = command.stderr(fs::File::create(&log)?).spawn().context("flame")?;
        wait_until("flame to record", || is_recording(flame.id()))?;
        go(target)?;
        let printed = target.rest()?;
        ensure!(flame.wait()?.success(), "{command:?}:\n{}", fs::read_to_string(&log)?);
        Ok((self.read(fs::read_to_string(&log)?)?, printed))
    }

    fn occurrences(&mut self) -> Result<()> {
        let program = build_program("occurrences", self.directory)?;
        let functions = ["in_three", "in_one"];
        for (kind, event) in [("faults", "page-faults"), ("switches", "context-switches")] {
            for rate in RATES {
                let mut command = self.record(&[], self.flame, &["-e", event, "--"]);
                command.arg(&program).args([kind, rate, &self.options.seconds.to_string()]);
                let (recording, printed) = self.run(command)?;
                let truth = truth(&printed, &functions)?;
                let seen = recording.by_function(&functions);
                // A busy machine takes the CPU away, which is a switch, too: the kernel counts them all.
                let (all, sum) = match kind {
                    "switches" => {
                        let counted = self::truth(&printed, &["main"])?;
                        (counted.values().sum::<f64>(), recording.by_function(&["main"]))
                    }
                    _ => (truth.values().sum(), seen.clone()),
                };
                let sum = sum.values().sum::<u64>();
                let head = format!("{event}, {rate} a second asked, {all:.0} happened");
                self.row(
                    &format!("{head}: sum off, in percent"),
                    "<= 1",
                    (sum as f64 / all - 1.0).abs() * 100.0,
                );
                // Samples of unequal weight tell as much as fewer of equal weight, which flame says.
                let samples = recording.said_before(" samples of equal weight");
                let samples = samples.or_else(|_| recording.said_before(" samples of "))?;
                // Those of all threads, of which these functions have a part.
                let total: u64 = recording.folded.iter().map(|(_, weight)| weight).sum();
                let scale = (samples / total.max(1) as f64).min(1.0);
                let scaled = seen.into_iter().map(|(name, w)| (name, (w as f64 * scale) as u64));
                self.share_row(&head, share_error(&scaled.collect(), &truth))?;
            }
        }
        Ok(())
    }

    fn thread(&mut self) -> Result<()> {
        let program = build_program("lockstep", self.directory)?;
        let seconds = self.options.seconds.to_string();
        let mut command = Command::new(&program);
        command.args([&seconds, "one=77:70,30", "two=77:30,70"]);
        let mut target = Target::spawn(&mut command)?;
        let tasks = PathBuf::from(format!("/proc/{}/task", target.pid()));
        let mut thread = None;
        wait_until("the thread to start", || {
            thread = named(&tasks, "one");
            thread.is_some()
        })?;
        let thread = thread.unwrap_or_default();
        let options = ["-F", "499", "-t", &thread];
        let (recording, printed) = self.attached(&options, &mut target, |_| Ok(()))?;
        let of_thread: String = printed
            .lines()
            .filter(|line| line.starts_with("one "))
            .map(|l| format!("{l}\n"))
            .collect();
        let functions = ["first", "second"];
        let truth = truth(&of_thread, &functions)?;
        let seen = recording.by_function(&functions);
        self.share_row("one thread of two", share_error(&seen, &truth))?;
        let coverage = recording.said_before(" % of ")?;
        self.row("one thread of two: coverage, in percent, as flame says", "", coverage);
        Ok(())
    }

    fn reaped(&mut self) -> Result<()> {
        let program = build_program("prefork", self.directory)?;
        let seconds = self.options.seconds.to_string();
        let mut command = Command::new(&program);
        let mut target = Target::start(command.args(["3", "0.5", &seconds]))?;
        let options = ["-F", "499", "-p", &target.pid().to_string()];
        let (recording, printed) = self.attached(&options, &mut target, Target::go)?;
        let functions = ["serve", "lead"];
        let truth = truth(&printed, &functions)?;
        let seen = recording.by_function(&functions);
        let told = seen.values().sum::<u64>() as f64 / 499.0;
        let off = (told / truth.values().sum::<f64>() - 1.0).abs() * 100.0;
        self.row("children that are reaped: time off, in percent", "", off);
        self.share_row("children that are reaped", share_error(&seen, &truth))?;
        let coverage = recording.said_before(" % of ")?;
        self.row("children that are reaped: coverage, in percent, as flame says", "", coverage);
        Ok(())
    }

    /// A copy of flame, and of a program, that everybody reaches; the output is everybody's, too.
    fn for_everybody(&self, program: &str) -> Result<(PathBuf, PathBuf)> {
        let flame = self.directory.join("flame-of-all");
        fs::copy(self.flame, &flame)?;
        let all: fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(self.directory, all)?;
        let _ = fs::remove_file(self.output());
        Ok((flame, build_program(program, self.directory)?))
    }

    fn unprivileged(&mut self) -> Result<()> {
        let (flame, program) = self.for_everybody("lockstep")?;
        let functions = ["first", "second"];
        for rhythm in ["rhythm=99:70,30:clock", "rhythm=198:70,30:clock"] {
            let mut command = self.record(&NOBODY, &flame, &["-F", "99", "--"]);
            command.arg(&program).args([&self.options.seconds.to_string(), rhythm]);
            let (recording, printed) = self.run(command)?;
            let (seen, truth) = (recording.by_function(&functions), truth(&printed, &functions)?);
            self.share_row(&format!("without rights, {rhythm}"), share_error(&seen, &truth))?;
        }
        Ok(())
    }

    /// CAP_PERFMON samples everybody's processes, and reads nobody's memory.
    fn unreadable(&mut self) -> Result<()> {
        let (flame, program) = self.for_everybody("hard")?;
        let mut size = Command::new(&program);
        let size: usize = super::super::rooted::stdout(size.args(["0", "size"]))?.trim().parse()?;
        // Room for one of both depths.
        let copy = format!("dwarf,{}", 206 * size);
        let perfmon = ["--inh-caps=+perfmon", "--ambient-caps=+perfmon"];
        let as_whom: Vec<&str> = NOBODY.into_iter().chain(perfmon).collect();
        let mut command =
            self.record(&as_whom, &flame, &["-F", "499", "--call-graph", &copy, "--"]);
        command.arg(&program).args([&self.options.seconds.to_string(), "depths"]);
        let (recording, _) = self.run(command)?;
        let (mut all, mut wrong, mut truncated) = (0, 0, 0);
        for (frames, weight) in &recording.folded {
            let levels = frames.iter().filter(|frame| *frame == "level").count();
            let has = |name: &str| frames.iter().any(|frame| frame == name);
            let is_wrong = if levels > BETWEEN { has("ten") } else { levels > 0 && has("many") };
            all += weight;
            wrong += if is_wrong { *weight } else { 0 };
            truncated += if has("[truncated stack]") { *weight } else { 0 };
        }
        let percent = |part: u64| part as f64 * 100.0 / all as f64;
        self.row("memory that may not be read: wrong callers, in percent", "0", percent(wrong));
        self.row(
            "memory that may not be read: marked, in percent (half is too deep)",
            "",
            percent(truncated),
        );
        Ok(())
    }
}

/// A user without rights.
const NOBODY: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];

/// flame of root's is more urgent than others from when it records.
fn is_recording(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_ascii_whitespace().nth(16).is_some_and(|nice| nice.starts_with('-'))
}

/// The number of a thread with that name.
fn named(tasks: &Path, name: &str) -> Option<String> {
    let tasks = fs::read_dir(tasks).ok()?.filter_map(Result::ok);
    let is_named = |task: &fs::DirEntry| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim_end() == name)
    };
    let file_name: OsString = tasks.into_iter().find(is_named)?.file_name();
    file_name.into_string().ok()
}

fn wait_until(what: &str, mut test: impl FnMut() -> bool) -> Result<()> {
    for _ in 0..12_000 {
        if test() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    anyhow::bail!("waited a minute for {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_summary_are_those_before_the_words() {
        let said = "1,376 samples of cpu-clock at 99 Hz\n  coverage  95.4 % of 3.98 s CPU time\n";
        let recording = Recording { folded: Vec::new(), said: said.to_owned() };
        assert_eq!(recording.said_before(" samples of ").unwrap(), 1376.0);
        assert_eq!(recording.said_before(" % of ").unwrap(), 95.4);
        assert!(recording.said_before(" samples of equal weight").is_err());
    }

    #[test]
    fn truth_is_of_the_functions_that_are_asked_for() {
        let truth = truth("one first 1.5\none second 0.5\ntotal 2.25\n", &["first"]).unwrap();
        assert_eq!(truth, BTreeMap::from([("first".to_owned(), 1.5)]));
        assert!(super::truth("total 2.25\n", &["first"]).is_err());
    }

    #[test]
    fn weight_is_counted_for_the_function_that_is_on_the_stack() {
        let frames = |text: &str| text.split(';').map(str::to_owned).collect();
        let folded = vec![(frames("a;main;f"), 3), (frames("a;main;f;g"), 4), (frames("a"), 5)];
        let recording = Recording { folded, said: String::new() };
        assert_eq!(recording.by_function(&["f"]), BTreeMap::from([("f".to_owned(), 7)]));
    }
}
