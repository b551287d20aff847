//! Switches a machine on, and takes what its cases left behind from its console.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::machine::Machine;
use super::packages::Kernel;

/// How long a machine may say nothing: a case has four minutes, by the slower clock of the machine.
const SILENCE: Duration = Duration::from_secs(1200);

/// What a machine said of itself, and where its cases' files are.
#[derive(Debug, Default)]
pub(super) struct Visit {
    /// Whether its kernel asks for CAP_SYS_ADMIN at perf_event_paranoid 4.
    pub(super) knows_levels: bool,
    /// The directory of each case.
    pub(super) cases: BTreeMap<String, PathBuf>,
    pub(super) seconds: f64,
}

/// A running emulator; ended on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already when all went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a machine to its end; `answers` is its own directory.
pub(super) fn run(
    machine: &Machine,
    kernel: &Kernel,
    image: &Path,
    answers: &Path,
) -> Result<Visit> {
    let begin = Instant::now();
    if answers.exists() {
        fs::remove_dir_all(answers)?;
    }
    fs::create_dir_all(answers)?;
    let mut child = Running(command(machine, kernel, image).spawn().context("cannot run QEMU")?);
    let output = child.0.stdout.take().context("stdout is a pipe")?;
    let (send, lines) = channel();
    // Ends with the emulator's output.
    std::thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if send.send(line).is_err() {
                break;
            }
        }
    });
    let mut visit = read(&lines, answers)?;
    visit.seconds = begin.elapsed().as_secs_f64();
    Ok(visit)
}

fn command(machine: &Machine, kernel: &Kernel, image: &Path) -> Command {
    // Others have work to do as well.
    let mut command = Command::new("nice");
    command.args(machine.arch.qemu()).args(machine.options);
    command.args(["-nographic", "-no-reboot", "-nic", "none"]);
    command.args(["-smp", &machine.cpus.to_string(), "-m", &machine.megabytes.to_string()]);
    command.arg("-kernel").arg(&kernel.image).arg("-initrd").arg(image);
    // A kernel that has failed ends the machine: it would hang, and say nothing.
    let line = format!("console={} quiet loglevel=1 oops=panic panic=-1", machine.arch.console());
    command.args(["-append", &line]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command
}

/// Sorts what is said into the files of cases and the rest, which goes into `console`.
fn read(lines: &Receiver<String>, answers: &Path) -> Result<Visit> {
    let mut visit = Visit::default();
    let mut console = fs::File::create(answers.join("console"))?;
    let mut open: Option<(String, String)> = None;
    loop {
        let Ok(line) = lines.recv_timeout(SILENCE) else {
            // What came until then is judged; the other cases have left nothing behind.
            eprint!(" ended too soon, see {}/console", answers.display());
            return Ok(visit);
        };
        let mut words = line.split(' ');
        match (words.next(), &mut open) {
            (Some("@@done"), _) => return Ok(visit),
            (Some("@@release"), _) => {
                visit.knows_levels = words.nth(1).is_some_and(|n| n != "0");
                // What the firmware says has sequences.
                console.set_len(0)?;
                console.rewind()?;
            }
            (Some("@@case"), _) => {
                let name = words.next().unwrap_or_default().to_owned();
                eprint!(" {}", name.split_once('-').map_or("?", |(_, name)| name));
                open = Some((name, String::new()));
            }
            (Some("@@end"), _) => {
                if let Some((name, packed)) = open.take() {
                    visit.cases.insert(name.clone(), unpack(&packed, &answers.join(name))?);
                }
            }
            (_, Some((_, packed))) => *packed += &(line + "\n"),
            _ => writeln!(console, "{line}")?,
        }
    }
}

/// Unpacks a case's directory.
fn unpack(packed: &str, place: &Path) -> Result<PathBuf> {
    fs::create_dir_all(place)?;
    let mut command = Command::new("sh");
    command.args(["-c", "base64 -d | tar -xz --no-same-owner -C \"$1\"", "sh"]).arg(place);
    let mut child = command.stdin(Stdio::piped()).spawn()?;
    child.stdin.take().context("stdin is a pipe")?.write_all(packed.as_bytes())?;
    ensure!(child.wait()?.success(), "what {} left behind is broken", place.display());
    Ok(place.to_owned())
}
