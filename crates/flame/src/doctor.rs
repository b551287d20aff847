//! `flame doctor`: what this machine, this user and a target allow, and what mends what they do
//! not.
//!
//! Whatever can be tried is tried. Each answer is a [`Check`]; two printers know their form.

mod check;
mod events;
mod images;
mod json;
mod limits;
mod process;
mod rights;
mod runtime;
mod symbols;
mod text;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use flame_recorder::LiveFiles;
use flame_sampler::SamplerError;

use crate::cli::{Cli, DoctorArgs};
use crate::message::Failure;
use crate::message::sampler::failure;
use crate::privileges;
use crate::terminal::{self, Paint};
use check::{Check, Group, Report};
use process::Process;

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
        true => json::print(&report),
        false if cli.quiet => String::new(),
        false => {
            let stdout = io::stdout();
            let width = stdout.is_terminal().then(terminal::width);
            text::print(&report, Paint(cli.color.on_stdout()), width)
        }
    };
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(crate::io_failure("write to stdout", &error))
        }
        _ if report.is_complete() => Ok(ExitCode::SUCCESS),
        _ => Ok(ExitCode::from(INCOMPLETE)),
    }
}

fn examine(target: Option<&Process>) -> Report {
    let rings = limits::Rings::open();
    let mut checks = Vec::new();
    let mut add = |group: Group, found: Vec<Check>| {
        checks.extend(found.into_iter().map(|check| (group, check)));
    };
    add(Group::Events, events::examine());
    add(Group::Kernel, symbols::examine());
    add(Group::Limits, limits::examine(&rings, target));
    add(Group::Rights, rights::examine());
    if let Some(process) = target {
        add(Group::Process, process.examine());
        add(Group::Images, images::examine(process));
    }
    Report { target: target.map(Process::facts), checks }
}
