//! `flame doctor`: what this machine, this user and a target allow, and what mends what they do
//! not.
//!
//! [`flame_doctor`] looks, and knows the form of its answers.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use flame_doctor::{Process, examine, failure, listing, to_json};
use flame_recorder::LiveFiles;
use flame_sampler::SamplerError;

use crate::cli::{Cli, DoctorArgs};
use crate::message::{Failure, print_result};
use crate::privileges;
use crate::terminal::{self, Paint};

/// The status when a profile would not be complete.
const INCOMPLETE: u8 = 1;

/// Runs the command.
pub(crate) fn run(args: &DoctorArgs, cli: &Cli) -> Result<ExitCode, Failure> {
    let files = LiveFiles::start(privileges::hooks(None));
    let target = match args.pid {
        None => None,
        Some(pid) => Some(
            Process::find(pid, &files)
                .ok_or_else(|| failure(&SamplerError::NoSuchProcess { pid }))?,
        ),
    };
    let report = examine(target.as_ref());
    let text = match args.json {
        true => to_json(&report),
        false if cli.quiet => String::new(),
        false => {
            let stdout = io::stdout();
            let width = stdout.is_terminal().then(terminal::width);
            listing(&report, Paint(cli.color.on_stdout()), width)
        }
    };
    let printed = print_result(&text)?;
    Ok(if report.is_complete() { printed } else { ExitCode::from(INCOMPLETE) })
}
