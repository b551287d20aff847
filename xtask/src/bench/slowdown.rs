//! What being recorded costs a program: one program runs on, and profilers attach to it in turn.
//!
//! Whole runs of the same work differ by more than a percent on a virtual machine, which is more
//! than what is to be measured. Here each window with a profiler is held against the one directly
//! before it without, in the same process, and the median of such pairs counts.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::profiler::Profiler;
use super::table::{Table, Unit};
use super::{build_program, median};

const FREQUENCIES: [(u32, &str); 2] = [(99, "<= 1 %"), (999, "<= 4 %")];

/// The length of a window.
const WINDOW: Duration = Duration::from_secs(2);

/// What a profiler gets to attach before its window begins, and after it to end by itself.
const MARGIN: Duration = Duration::from_millis(500);

/// The rounds of work in a chunk, about 50 ms: some samples fall into each even at 99 Hz.
const CHUNK: &str = "2500";

/// A program that does equal chunks of work, and the CPU time of each in nanoseconds as it is done.
pub(super) struct Chunks {
    child: Child,
    times: Receiver<f64>,
}

impl Chunks {
    pub(super) fn start(command: &mut Command) -> Result<Chunks> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let pipe = child.stdout.take().context("stdout is a pipe")?;
        let (sender, times) = channel();
        thread::spawn(move || {
            let lines = BufReader::new(pipe).lines().map_while(Result::ok);
            let numbers = lines.filter_map(|line| line.parse::<f64>().ok());
            // The receiver is gone when nobody wants to know any more.
            numbers.map_while(|time| sender.send(time).ok()).for_each(drop);
        });
        Ok(Chunks { child, times })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The median CPU time of the chunks that are done within a window from now on.
    pub(super) fn window(&self, span: Duration) -> Result<f64> {
        while self.times.try_recv().is_ok() {}
        // The chunk that runs now began before.
        let _ = self.times.recv();
        let end = Instant::now() + span;
        let mut times = Vec::new();
        while let Ok(time) = self.times.recv_timeout(end.saturating_duration_since(Instant::now()))
        {
            times.push(time);
        }
        median(&times)
            .context("no chunk of work was done: the program has ended, or the machine is too busy")
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Measures all profilers, `rounds` pairs of windows each.
pub(crate) fn measure(
    profilers: &[Profiler],
    directory: &Path,
    rounds: usize,
    table: &mut Table,
) -> Result<()> {
    let program = build_program("work", directory)?;
    let chunks = Chunks::start(Command::new(program).args([CHUNK, "again"]))?;
    for (hz, bar) in FREQUENCIES {
        eprintln!("== slowdown: {rounds} pairs of windows at {hz} Hz");
        let mut slowdowns: Vec<Vec<f64>> = vec![Vec::new(); profilers.len()];
        for _ in 0..rounds {
            for (profiler, slowdowns) in profilers.iter().zip(&mut slowdowns) {
                let alone = chunks.window(WINDOW)?;
                let recorded = with_profiler(profiler, hz, directory, &chunks)?;
                slowdowns.push((recorded / alone - 1.0) * 100.0);
            }
        }
        let column = slowdowns.iter().map(|slowdowns| median(slowdowns)).collect();
        table.row(&format!("target's extra CPU time at {hz} Hz"), bar, Unit::Percent, column);
    }
    Ok(())
}

fn with_profiler(profiler: &Profiler, hz: u32, directory: &Path, chunks: &Chunks) -> Result<f64> {
    let seconds = (WINDOW + 2 * MARGIN).as_secs_f64();
    let mut command = profiler.attach(hz, directory, chunks.pid(), seconds)?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
    thread::sleep(MARGIN);
    let time = chunks.window(WINDOW);
    if profiler.attached_until_interrupted() {
        Command::new("kill").args(["-INT", &running.id().to_string()]).status()?;
    }
    let status = running.wait()?;
    ensure!(status.success(), "{command:?}: {status}");
    time
}
