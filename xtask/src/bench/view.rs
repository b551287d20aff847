//! `cargo xtask bench view`: the SVG in a browser, beside that of flamegraph.pl.
//!
//! Both draw the same folded file with their defaults. Each run is a browser of its own with an
//! empty profile that has come to rest, the two take turns, and the median counts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use flame_browser::Launch;

use super::table::{Table, Unit};
use super::{build_flame, median};

mod page;
mod stacks;

use page::Times;

/// Where flamegraph.pl is found.
const ENV_PEER: &str = "FLAMEGRAPH_DIR";
/// Sizes that both draw, in frames.
const SIZES: [u32; 3] = [10_000, 50_000, 200_000];
const LARGEST: u32 = 1_000_000;
/// A largest graph must be ready in the time that flamegraph.pl's takes with this many frames.
const READY_AS: u32 = 50_000;
/// The most seconds that the first change of order may take a largest graph.
const ORDER: f64 = 0.3;

/// A time of a picture.
type Time = fn(&Times) -> f64;

/// What is timed, with the bar: at most this much of the peer's time.
const TIMES: [(&str, f64, Time); 5] = [
    ("ready", 0.5, |times| times.ready),
    // What follows from the bars of the two.
    ("ready and first zoom", 0.5, |times| times.answer),
    ("zoom", 0.1, |times| times.zoom),
    ("unzoom", 0.25, |times| times.unzoom),
    ("search", 1.0, |times| times.search),
];

/// What the command line asks for.
struct Options {
    rounds: usize,
    /// One size alone; `None` = all.
    frames: Option<u32>,
}

impl Options {
    fn parse(words: &[&str]) -> Result<Options> {
        let mut options = Options { rounds: 5, frames: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let number = words.next().with_context(|| format!("{word} needs a number"))?;
            let number: u32 = number.parse().with_context(|| format!("{word}: {number}"))?;
            match *word {
                "--rounds" => options.rounds = number as usize,
                "--frames" => options.frames = Some(number),
                other => bail!("no such option of bench view: {other}"),
            }
        }
        ensure!(options.rounds > 0, "rounds start at 1");
        Ok(options)
    }
}

/// One program's picture of one input.
struct Picture {
    path: PathBuf,
    times: Vec<Times>,
}

impl Picture {
    fn look(&mut self) -> Result<()> {
        // What takes flamegraph.pl seconds takes it minutes on a busy machine.
        let launch = Launch { limit: Duration::from_secs(300), ..Launch::default() };
        self.times.push(page::measure(&self.path, &launch)?);
        Ok(())
    }

    /// The median of one of the times, in seconds.
    fn median(&self, time: impl Fn(&Times) -> f64) -> Option<f64> {
        median(&self.times.iter().map(time).collect::<Vec<f64>>())
    }

    fn median_order(&self) -> Option<f64> {
        median(&self.times.iter().filter_map(|times| times.order).collect::<Vec<f64>>())
    }

    fn megabytes(&self) -> Result<f64> {
        Ok(fs::metadata(&self.path)?.len() as f64 / f64::from(1 << 20))
    }
}

/// Runs the bars and prints one table.
pub(crate) fn view(words: &[&str]) -> Result<()> {
    let options = Options::parse(words)?;
    ensure!(flame_browser::find_browser().is_some(), "{}", flame_browser::Error::NotFound);
    let peer = std::env::var_os(ENV_PEER).map(|path| PathBuf::from(path).join("flamegraph.pl"));
    let peer = peer.filter(|path| path.is_file());
    let flame = build_flame()?;
    let directory = std::env::temp_dir().join(format!("flame-view-{}", std::process::id()));
    fs::create_dir(&directory).with_context(|| directory.display().to_string())?;
    let mut bench = Bench { flame, peer, directory, rounds: options.rounds, missed: Vec::new() };
    let mut table = Table::new(vec!["flame", "flamegraph.pl"]);
    let result = bench.run(options.frames, &mut table);
    let _ = fs::remove_dir_all(&bench.directory);
    result?;
    println!("{table}");
    if bench.peer.is_none() {
        println!("flamegraph.pl: not found; set {ENV_PEER} to a checkout of FlameGraph");
    }
    ensure!(bench.missed.is_empty(), "missed: {}", bench.missed.join(", "));
    Ok(())
}

struct Bench {
    flame: PathBuf,
    peer: Option<PathBuf>,
    directory: PathBuf,
    rounds: usize,
    missed: Vec<String>,
}

impl Bench {
    fn run(&mut self, only: Option<u32>, table: &mut Table) -> Result<()> {
        let mut ready_as = None;
        for frames in SIZES.into_iter().filter(|size| only.is_none_or(|only| only == *size)) {
            let (ours, theirs) = self.pictures(frames, self.peer.is_some())?;
            if frames == READY_AS {
                ready_as = theirs.as_ref().and_then(|theirs| theirs.median(|times| times.ready));
            }
            self.compare(frames, &ours, theirs.as_ref(), table)?;
        }
        if only.is_none_or(|only| only == LARGEST) {
            let (ours, _) = self.pictures(LARGEST, false)?;
            self.largest(&ours, ready_as, table)?;
        }
        Ok(())
    }

    /// The pictures of an input, looked at as often as was asked for.
    fn pictures(&self, frames: u32, with_peer: bool) -> Result<(Picture, Option<Picture>)> {
        let folded = self.directory.join(format!("{frames}.folded"));
        fs::write(&folded, stacks::folded(frames))?;
        let path = self.directory.join(format!("{frames}-flame.svg"));
        let mut command = Command::new(&self.flame);
        command.arg("render").arg(&folded).arg("-o").arg(&path);
        ensure!(command.status()?.success(), "{command:?} failed");
        let mut ours = Picture { path, times: Vec::new() };
        let mut theirs = match &self.peer {
            Some(peer) if with_peer => Some(draw_with_peer(peer, &folded, &self.directory)?),
            _ => None,
        };
        for _ in 0..self.rounds {
            ours.look()?;
            theirs.as_mut().map_or(Ok(()), Picture::look)?;
        }
        fs::remove_file(folded)?;
        Ok((ours, theirs))
    }

    fn compare(
        &mut self,
        frames: u32,
        ours: &Picture,
        theirs: Option<&Picture>,
        table: &mut Table,
    ) -> Result<()> {
        let size = (Some(ours.megabytes()?), theirs.map(Picture::megabytes).transpose()?);
        self.row(table, frames, "size", 0.45, Unit::MiB, size);
        for (name, most, time) in TIMES {
            let medians = (ours.median(time), theirs.and_then(|theirs| theirs.median(time)));
            self.row(table, frames, name, most, Unit::Milliseconds, medians);
        }
        let name = format!("order, {frames} frames");
        table.row(&name, "", Unit::Milliseconds, vec![ours.median_order(), None]);
        Ok(())
    }

    /// A row with its bar, at most this much of the peer's.
    fn row(
        &mut self,
        table: &mut Table,
        frames: u32,
        name: &str,
        most: f64,
        unit: Unit,
        (ours, theirs): (Option<f64>, Option<f64>),
    ) {
        let name = format!("{name}, {frames} frames");
        if let (Some(ours), Some(theirs)) = (ours, theirs)
            && ours > theirs * most
        {
            self.missed.push(format!("{name} ({:.2} of it)", ours / theirs));
        }
        table.row(&name, &format!("{most} of flamegraph.pl"), unit, vec![ours, theirs]);
    }

    fn largest(&mut self, ours: &Picture, as_: Option<f64>, table: &mut Table) -> Result<()> {
        let size = ours.megabytes()?;
        // The bar counts in millions of bytes.
        if size > 5e6 / f64::from(1 << 20) {
            self.missed.push(format!("size, {LARGEST} frames"));
        }
        table.row(&format!("size, {LARGEST} frames"), "5 MB", Unit::MiB, vec![Some(size), None]);
        let ready = ours.median(|times| times.ready);
        if ready.zip(as_).is_some_and(|(ready, bar)| ready > bar) {
            self.missed.push(format!("ready, {LARGEST} frames"));
        }
        let bar = format!("flamegraph.pl with {READY_AS}");
        let name = format!("ready, {LARGEST} frames");
        table.row(&name, &bar, Unit::Milliseconds, vec![ready, as_]);
        for (name, _, time) in &TIMES[1..] {
            let name = format!("{name}, {LARGEST} frames");
            table.row(&name, "", Unit::Milliseconds, vec![ours.median(time), None]);
        }
        let name = format!("order, {LARGEST} frames");
        let order = ours.median_order();
        if order.is_some_and(|order| order > ORDER) {
            self.missed.push(name.clone());
        }
        table.row(&name, "300 ms", Unit::Milliseconds, vec![order, None]);
        Ok(())
    }
}

fn draw_with_peer(peer: &Path, folded: &Path, directory: &Path) -> Result<Picture> {
    let output = Command::new("perl").arg(peer).arg(folded).output()?;
    ensure!(output.status.success(), "{} failed", peer.display());
    let stem = folded.file_stem().context("a folded file has a name")?;
    let path = directory.join(format!("{}-peer.svg", stem.display()));
    fs::write(&path, output.stdout)?;
    Ok(Picture { path, times: Vec::new() })
}
