//! `flame uboot`: U-Boot's function traces into pictures, reports and trace.dat.

mod compat;
mod ftrace;
mod graph;
mod info;
mod input;
mod words;

use std::process::ExitCode;

use flame_uboot::Measure;

use crate::cli::{Cli, UbootArgs, UbootCommand};
use crate::message::Failure;

/// Runs the command.
pub(crate) fn run(args: &UbootArgs, cli: &Cli) -> Result<ExitCode, Failure> {
    match &args.command {
        UbootCommand::Calls(args) => graph::run(args, Measure::Calls, cli),
        UbootCommand::Timing(args) => graph::run(args, Measure::Time, cli),
        UbootCommand::Ftrace(args) => ftrace::run(args, cli),
        UbootCommand::Info(args) => info::run(args),
    }
}
