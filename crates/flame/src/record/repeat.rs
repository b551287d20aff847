//! `--repeat`: the same recording several times, one after the other, for `flame diff` to compare.
//!
//! Each recording is a flame of its own: rights that are given up at the end of one are there for
//! the next, and a program is launched from a process with one thread.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use super::signals::StopSignals;
use crate::cli::{Cli, RecordArgs};
use crate::io_failure;
use crate::message::Failure;

/// The option by which a recording is told its number.
const NUMBER: &str = "--run-number";

/// Records as often as asked for, until one fails or Ctrl-C ends one.
pub(super) fn run(times: u32, args: &RecordArgs, cli: &Cli) -> Result<ExitCode, Failure> {
    let signals = StopSignals::install()?;
    let outputs = &args.output.output;
    if outputs.is_empty() || outputs.iter().any(|path| path == Path::new("-")) {
        return Err(Failure::usage("--repeat needs a file to write each recording to")
            .or_try("-o before.pb.gz, for before.1.pb.gz, before.2.pb.gz and so on"));
    }
    for number in 1..=times {
        // The number goes first: what stands behind `--` is the program's.
        let mut words = env::args_os().skip(1);
        let before = words.by_ref().take_while(|word| word != "record");
        let mut command = Command::new("/proc/self/exe");
        command.args(before).arg("record").arg(NUMBER).arg(number.to_string()).args(words);
        let status = command.status().map_err(|error| io_failure("record again", &error))?;
        if !status.success() {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            return Ok(ExitCode::from(code.unwrap_or(1)));
        }
        if signals.arrived() {
            break;
        }
    }
    if !cli.quiet {
        say_how_to_compare(outputs);
    }
    Ok(ExitCode::SUCCESS)
}

fn say_how_to_compare(outputs: &[PathBuf]) {
    use std::io::Write;
    let Some(first) = outputs.first() else { return };
    let pattern = numbered(first, "*");
    let pattern = crate::message::quoted(&pattern.display().to_string());
    let _ = writeln!(
        std::io::stderr(),
        "compare with: flame diff --before {pattern} --after 'OTHER.*'"
    );
}

/// `before.pb.gz` as `before.2.pb.gz`: the number stands before the ending that says the format.
pub(super) fn numbered(path: &Path, number: &str) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // A dot at the start hides a file, and begins no ending.
    let start = name.len() - name.trim_start_matches('.').len();
    let of_format = |ending: &&str| name.len() > ending.len() + start && name.ends_with(*ending);
    let known = [".pb.gz", ".folded.gz"].into_iter().find(of_format).map(str::len);
    let at = match known {
        Some(len) => name.len() - len,
        None => name[start..].rfind('.').map_or(name.len(), |at| start + at),
    };
    path.with_file_name(format!("{}.{number}{}", &name[..at], &name[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_before_the_ending() {
        for (path, expect) in [
            ("a.pb.gz", "a.3.pb.gz"),
            ("/x/b.y/old.folded", "/x/b.y/old.3.folded"),
            ("old.v2.svg", "old.v2.3.svg"),
            ("plain", "plain.3"),
            (".hidden", ".hidden.3"),
        ] {
            assert_eq!(numbered(Path::new(path), "3"), Path::new(expect));
        }
    }
}
