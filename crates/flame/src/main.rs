//! `flame`: from a running Linux process to a flame graph.
//!
//! The command line: it reads arguments and the environment, wires the crates together, prints and
//! exits. No other crate does any of these.

mod cli;
mod diff;
mod doctor;
mod fold;
mod inputs;
mod message;
mod output;
mod privileges;
mod record;
mod render;
mod sudo;
mod symbols;
mod terminal;
mod uboot;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use cli::{Cli, Command};
use message::Failure;

/// The status of wrong usage, as clap has it.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return print_usage(&error),
    };
    start_tracing(cli.verbose);
    match privileges::refuse_set_user_id().and_then(|()| run(&cli)) {
        Ok(code) => code,
        Err(failure) => {
            message::print(&failure, cli.color);
            ExitCode::from(failure.code)
        }
    }
}

/// Runs the command, with no more rights than it needs.
fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    match &cli.command {
        Command::Record(args) => record::run(args, cli),
        Command::Doctor(args) => {
            privileges::keep_for_doctor();
            doctor::run(args, cli)
        }
        Command::Render(args) => {
            privileges::keep_for_profiles();
            render::run(args, cli)
        }
        Command::Fold(args) => {
            privileges::keep_for_profiles();
            fold::run(args, cli)
        }
        Command::Diff(args) => {
            privileges::keep_for_profiles();
            diff::run(args, cli)
        }
        Command::Uboot(args) => {
            privileges::keep_for_named_files();
            uboot::run(args, cli)
        }
    }
}

/// Help goes to stdout and is a success; anything else is wrong usage.
fn print_usage(error: &clap::Error) -> ExitCode {
    // A closed pipe is no reason to complain.
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
        _ => ExitCode::from(USAGE),
    }
}

fn start_tracing(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => tracing::Level::INFO,
        2 => tracing::Level::DEBUG,
        _ => tracing::Level::TRACE,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
}

/// A failure of reading or writing with what was attempted.
pub(crate) fn io_failure(doing: impl Into<String>, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {}: {}", doing.into(), message::reason(error)))
}
