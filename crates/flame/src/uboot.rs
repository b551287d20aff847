//! `flame uboot`: U-Boot's function traces into pictures, reports and trace.dat.

mod compat;
mod ftrace;
mod graph;
mod input;

use std::process::ExitCode;

use flame_uboot::{Measure, info};

use crate::cli::{Cli, UbootArgs, UbootCommand, UbootInfoArgs};
use crate::message::{Failure, print_result, warn};

/// Runs the command.
pub(crate) fn run(args: &UbootArgs, cli: &Cli) -> Result<ExitCode, Failure> {
    match &args.command {
        UbootCommand::Calls(args) => graph::run(args, Measure::Calls, cli),
        UbootCommand::Timing(args) => graph::run(args, Measure::Time, cli),
        UbootCommand::Ftrace(args) => ftrace::run(args, cli),
        UbootCommand::Info(args) => show_info(args),
    }
}

/// Says on stdout what is in a trace.
fn show_info(args: &UbootInfoArgs) -> Result<ExitCode, Failure> {
    let (path, map) = (&args.input.trace, args.map.as_deref());
    input::check_stdin(&[Some(path), map])?;
    let (mut trace, broken_end) = input::trace(path)?;
    let read_map = |site_len| map.map(|map| input::map(map, site_len)).transpose();
    let number = args.input.chunk;
    print_result(&info(&mut trace, &input::shown(path), broken_end, number, read_map)?)
}

/// Prints complaints as warnings.
fn complain(complaints: &[String], cli: &Cli) {
    let complaints = complaints.iter().filter(|_| !cli.quiet);
    complaints.for_each(|complaint| warn(complaint, cli.color));
}
