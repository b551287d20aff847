//! `cargo xtask bench fold`: what profilers write, read by flame and by those who read it now.
//!
//! The inputs are made here, real captures of perf among them: a compiler at work, which does not repeat.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::random::Random;
use super::render::{Renderer, costs, medians};
use super::table::{Table, Unit};
use super::{build_flame, in_directory, stacks};

/// How much perf script text there is at least, in bytes.
const TEXT: u64 = 100 << 20;
/// Runs of each program; of those that take long, fewer.
const ROUNDS: usize = 5;
const SLOW_ROUNDS: usize = 2;
/// Distinct stacks of the folded text.
const STACKS: u64 = 200_000;
/// How many pprof files are summed up.
const FILES: usize = 100;

/// Runs the bars and prints a table each.
pub(crate) fn run() -> Result<()> {
    in_directory(measure)
}

fn measure(directory: &Path) -> Result<()> {
    let flame = build_flame()?;
    let peers = Peers::find();
    if let Some((data, text)) = capture(directory)? {
        perf_script(&flame, &peers, ("short stacks of g++", &text), directory)?;
        perf_data(&flame, &peers, &data, directory)?;
    }
    if let Some(text) = capture_of_java(directory)? {
        perf_script(&flame, &peers, ("deep stacks of javac", &text), directory)?;
    }
    folded(&flame, &peers, directory)?;
    pprof(&flame, directory)
}

/// The readers that people use now, where they are.
struct Peers {
    collapse: Option<PathBuf>,
    draw: Option<PathBuf>,
    script: Option<PathBuf>,
}

impl Peers {
    fn find() -> Peers {
        let directory = std::env::var_os("FLAME_BENCH_INFERNO_DIR").map(PathBuf::from);
        let inferno = |name: &str| {
            let path = directory.as_ref().map_or(PathBuf::from(name), |dir| dir.join(name));
            Command::new(&path).arg("--version").output().is_ok().then_some(path)
        };
        let script = std::env::var_os("FLAMEGRAPH_DIR");
        let script = script.map(|dir| Path::new(&dir).join("stackcollapse-perf.pl"));
        let peers = Peers {
            collapse: inferno("inferno-collapse-perf"),
            draw: inferno("inferno-flamegraph"),
            script: script.filter(|script| script.is_file()),
        };
        if peers.collapse.is_none() {
            println!("no inferno: cargo install inferno, or FLAME_BENCH_INFERNO_DIR=DIRECTORY");
        }
        if peers.script.is_none() {
            println!("no stackcollapse-perf.pl: FLAMEGRAPH_DIR=DIRECTORY says where it is");
        }
        peers
    }
}

fn program(name: &'static str, words: &[&str], rounds: usize) -> Renderer {
    Renderer { name, command: words.iter().map(PathBuf::from).collect(), rounds }
}

/// A path as a word of a command line.
fn word(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}

/// A recording of a compiler, as perf.data and as text; `None` where perf is missing.
fn capture(directory: &Path) -> Result<Option<(PathBuf, PathBuf)>> {
    let (source, text) = (directory.join("big.cc"), directory.join("perf.script"));
    let (data, object) = (directory.join("perf.data"), directory.join("big.o"));
    write_program(&source)?;
    for compilations in [4_usize, 8, 16, 32] {
        let once = format!("g++ -O2 -c {} -o {}", source.display(), object.display());
        let all = vec![once; compilations].join(" && ");
        let mut perf = Command::new("perf");
        perf.args(["record", "-q", "-e", "cpu-clock", "-F", "12000", "-g", "-o"]).arg(&data);
        let status = perf.args(["--", "sh", "-c", &all]).stderr(Stdio::null()).status();
        if !status.is_ok_and(|status| status.success()) {
            println!("no perf that may record a g++: its rows are missing");
            return Ok(None);
        }
        print(&data, &text)?;
        if fs::metadata(&text)?.len() >= TEXT {
            break;
        }
    }
    Ok(Some((data, text)))
}

/// perf.data as text.
fn print(data: &Path, text: &Path) -> Result<()> {
    let mut script = Command::new("perf");
    script.args(["script", "-i"]).arg(data).stdout(File::create(text)?);
    ensure!(script.stderr(Stdio::null()).status()?.success(), "perf script");
    Ok(())
}

/// The text of a recording of Java's compiler, whose stacks are whole; `None` where perf or Java is missing.
fn capture_of_java(directory: &Path) -> Result<Option<PathBuf>> {
    let (data, text) = (directory.join("java.data"), directory.join("java.script"));
    let mut sources = Vec::new();
    for file in 0..150 {
        let path = directory.join(format!("C{file}.java"));
        let mut out = BufWriter::new(File::create(&path)?);
        writeln!(out, "import java.util.*;\npublic class C{file} {{")?;
        for at in 0..60 {
            writeln!(
                out,
                "  <T extends Comparable<T>> List<T> m{at}(Collection<? extends T> in) {{"
            )?;
            writeln!(out, "    Map<String, List<T>> all = new HashMap<>();")?;
            writeln!(
                out,
                "    for (T t : in) all.computeIfAbsent(\"\" + t, k -> new ArrayList<>()).add(t);"
            )?;
            writeln!(out, "    return all.get(\"k{at}\"); }}")?;
        }
        writeln!(out, "}}")?;
        out.flush()?;
        sources.push(path);
    }
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-e", "cpu-clock", "-F", "1999", "-g", "-o"]).arg(&data);
    // The last makes the VM say the names of its code, where perf looks for them.
    perf.args(["--", "java", "-XX:+PreserveFramePointer", "-XX:+UnlockDiagnosticVMOptions"]);
    perf.args(["-XX:+DumpPerfMapAtExit", "-m", "jdk.compiler/com.sun.tools.javac.Main", "-d"]);
    perf.arg(directory.join("classes")).args(sources).stderr(Stdio::null());
    if !perf.status().is_ok_and(|status| status.success()) {
        println!("no perf that may record javac: its rows are missing");
        return Ok(None);
    }
    print(&data, &text)?;
    Ok(Some(text))
}

/// C++ that takes a compiler seconds.
fn write_program(path: &Path) -> Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    writeln!(out, "#include <map>\n#include <regex>\n#include <string>")?;
    for at in 0..40 {
        writeln!(out, "struct K{at} {{ std::map<std::string, int> m; std::regex r; }};")?;
        writeln!(out, "int f{at}(K{at}& k, const std::string& s) {{ k.m[s]++;")?;
        writeln!(out, "  return std::regex_search(s, k.r) + int(k.m.size()); }}")?;
    }
    Ok(out.flush()?)
}

fn megabytes(path: &Path) -> Result<f64> {
    Ok(fs::metadata(path).with_context(|| path.display().to_string())?.len() as f64 / 1e6)
}

fn perf_script(
    flame: &Path,
    peers: &Peers,
    (what, text): (&str, &Path),
    directory: &Path,
) -> Result<()> {
    let one = ["taskset", "-c", "0"];
    let flame = word(flame);
    let alone = [&one[..], &[flame, "fold"]].concat();
    let mut programs =
        vec![program("flame, 1 CPU", &alone, ROUNDS), program("flame", &[flame, "fold"], ROUNDS)];
    if let Some(inferno) = &peers.collapse {
        let alone = [&one[..], &[word(inferno), "-n", "1"]].concat();
        programs.push(program("inferno, 1 CPU", &alone, ROUNDS));
        programs.push(program("inferno", &[word(inferno)], ROUNDS));
    }
    if let Some(script) = &peers.script {
        programs.push(program("stackcollapse-perf.pl", &["perl", word(script)], SLOW_ROUNDS));
    }
    let costs = costs(&programs, &[text], directory)?;
    let row = |of| medians(&costs, of);
    let mut table = Table::new(programs.iter().map(|program| program.name).collect());
    let what = format!("perf script, {what}, {:.0} MB", megabytes(text)?);
    let bar = "1 CPU: 1/5 of inferno, 1/40 of Perl";
    table.row(&format!("{what}: time"), bar, Unit::Seconds, row(|cost| cost.wall));
    table.row(&format!("{what}: CPU"), "", Unit::Seconds, row(|cost| cost.cpu));
    table.row(&format!("{what}: memory"), "64 MiB", Unit::MiB, row(|cost| cost.peak_rss));
    println!("{table}");
    Ok(())
}

fn perf_data(flame: &Path, peers: &Peers, data: &Path, directory: &Path) -> Result<()> {
    let mut programs = vec![program("flame", &[word(flame), "fold"], ROUNDS)];
    if let Some(inferno) = &peers.collapse {
        let inferno = inferno.display();
        let pipe = format!("perf script -i \"$0\" 2>/dev/null | {inferno} 2>/dev/null");
        programs.push(program("perf script, inferno", &["sh", "-c", &pipe], SLOW_ROUNDS));
    }
    let costs = costs(&programs, &[data], directory)?;
    let mut table = Table::new(programs.iter().map(|program| program.name).collect());
    let what = format!("perf.data with call chains, {:.0} MB", megabytes(data)?);
    let row = |of| medians(&costs, of);
    table.row(&format!("{what}: time"), "1/20", Unit::Seconds, row(|cost| cost.wall));
    table.row(&format!("{what}: CPU"), "", Unit::Seconds, row(|cost| cost.cpu));
    println!("{table}");
    Ok(())
}

fn folded(flame: &Path, peers: &Peers, directory: &Path) -> Result<()> {
    let (sorted, shuffled) = (directory.join("sorted.folded"), directory.join("shuffled.folded"));
    let mut text = Vec::new();
    stacks::write(STACKS, &mut text)?;
    fs::write(&sorted, &text)?;
    let mut lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let mut random = Random::new(7);
    for at in (1..lines.len()).rev() {
        lines.swap(at, random.below(at as u64 + 1) as usize);
    }
    fs::write(&shuffled, lines.concat())?;
    let draw = [word(flame), "render", "--format", "svg"];
    let mut programs = vec![program("flame", &draw, ROUNDS)];
    if let Some(inferno) = &peers.draw {
        programs.push(program("inferno", &[word(inferno)], ROUNDS));
    }
    let mut table = Table::new(programs.iter().map(|program| program.name).collect());
    for (what, bar, input) in [("sorted", "1/5", &sorted), ("shuffled", "1/4", &shuffled)] {
        let costs = costs(&programs, &[input], directory)?;
        let what = format!("{STACKS} folded stacks, {what}, to SVG");
        table.row(&what, bar, Unit::Seconds, medians(&costs, |cost| cost.wall));
    }
    println!("{table}");
    Ok(())
}

/// Files of one program: each has three in five of its stacks.
fn pprof(flame: &Path, directory: &Path) -> Result<()> {
    const DISTINCT: usize = 10;
    let mut text = Vec::new();
    stacks::write(STACKS / 4, &mut text)?;
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let folder = directory.join("pprof");
    fs::create_dir(&folder)?;
    for file in 0..FILES {
        let path = folder.join(format!("{file}.pb.gz"));
        if file >= DISTINCT {
            fs::hard_link(folder.join(format!("{}.pb.gz", file % DISTINCT)), &path)?;
            continue;
        }
        let mut random = Random::new(file as u64 + 1);
        let part: Vec<&[u8]> = lines.iter().copied().filter(|_| random.below(5) < 3).collect();
        let folded = directory.join("part.folded");
        fs::write(&folded, part.concat())?;
        let mut command = Command::new(flame);
        command.arg("fold").arg(&folded).arg("-o").arg(&path).arg("-q");
        ensure!(command.status()?.success(), "flame fold");
    }
    let size = megabytes(&folder.join("0.pb.gz"))?;
    let all = "exec go tool pprof -proto -output \"$1/../merged.pb.gz\" \"$1\"/*";
    let mut programs = vec![program("flame", &[word(flame), "fold"], SLOW_ROUNDS)];
    if Command::new("go").arg("version").output().is_ok() {
        programs.push(program("go tool pprof", &["sh", "-c", all, "sh"], 1));
    } else {
        println!("no go: its row is missing");
    }
    let mut table = Table::new(programs.iter().map(|program| program.name).collect());
    let costs = costs(&programs, &[&folder], directory)?;
    let row = |of| medians(&costs, of);
    let what = format!("{FILES} pprof files of {size:.2} MB");
    table.row(&format!("{what}: time"), "faster", Unit::Seconds, row(|cost| cost.wall));
    table.row(&format!("{what}: memory"), "", Unit::MiB, row(|cost| cost.peak_rss));
    println!("{table}");
    Ok(())
}
