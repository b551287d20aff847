//! `flame uboot ftrace`: a trace.dat for trace-cmd and kernelshark.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use flame_message::counted;
use flame_uboot::{
    FtraceKind, Functions, Making, Reading, UbootError, Written, complaints_of_file,
    complaints_of_map, follow, summary, write_ftrace, wrong_trace,
};

use super::input::{self, shown};
use super::{compat, complain};
use crate::cli::{Cli, FtraceEvents, UbootFtraceArgs};
use crate::message::{self, Failure, warn};
use crate::output::{Format, RawOutput};
use crate::render::say;

/// Runs the command.
pub(super) fn run(args: &UbootFtraceArgs, cli: &Cli) -> Result<ExitCode, Failure> {
    if args.output == Path::new("-") && io::stdout().is_terminal() {
        return Err(Failure::usage("trace.dat is not for terminals").or_try("-o trace.dat"));
    }
    if Format::of_ending(&args.output).is_some() {
        let name = shown(&args.output);
        return Err(Failure::usage(format!("{name}: ftrace writes trace.dat, and nothing else"))
            .or_try(format!("flame uboot timing -o {name}")));
    }
    let config = args.config.as_deref();
    input::check_stdin(&[Some(&args.input.trace), Some(&args.map), config])?;
    let output = RawOutput::prepare(&args.output)?;
    let kind = match args.events {
        FtraceEvents::Function => FtraceKind::Function,
        FtraceEvents::Funcgraph => FtraceKind::FuncGraph,
    };
    let write = if args.compat { write_compat } else { write_mended };
    // A reader that closes its pipe has seen enough.
    let Some(written) = write(args, kind, &output, cli)? else { return Ok(ExitCode::SUCCESS) };
    if let Some(why) = written.failure {
        return Err(Failure::new(format!("{} is incomplete", shown(&args.output)))
            .why(format!("proftool gives up here, and leaves the same file: {why}"))
            .or_try("the same without --compat"));
    }
    if written.events == 0 && !cli.quiet {
        warn("no events: there are no calls, or the rules exclude them all", cli.color);
    }
    Ok(ExitCode::SUCCESS)
}

fn write_compat(
    args: &UbootFtraceArgs,
    kind: FtraceKind,
    output: &RawOutput,
    cli: &Cli,
) -> Result<Option<Written>, Failure> {
    let rules = input::rules(args.config.as_deref(), Reading::Proftool)?;
    let mut proftool = compat::open(&args.input.trace, &args.map)?;
    let written = write(output, cli, &mut |out| proftool.write_ftrace(kind, rules.as_ref(), out))?;
    let missing = written.as_ref().map_or(0, |written| written.missing);
    if missing > 0 && !cli.quiet {
        let records = counted(missing, "record", "records");
        warn(&format!("{records} left out: their functions are not in the map"), cli.color);
    }
    Ok(written)
}

fn write_mended(
    args: &UbootFtraceArgs,
    kind: FtraceKind,
    output: &RawOutput,
    cli: &Cli,
) -> Result<Option<Written>, Failure> {
    let rules = input::rules(args.config.as_deref(), Reading::Whole)?;
    let (mut trace, broken_end) = input::trace(&args.input.trace)?;
    let wrong_trace = |error| wrong_trace(&shown(&args.input.trace), &error);
    let chunk = trace.calls(args.input.chunk).map_err(wrong_trace)?;
    let map = input::map(&args.map, trace.layout().site_len())?;
    let mut functions = Functions::new(Some(&map), rules.as_ref());
    let followed = follow(&mut trace, chunk, &mut functions, Making::Events(kind));
    let followed = followed.map_err(wrong_trace)?;
    let mut complaints = complaints_of_file(&trace, chunk, broken_end);
    complaints.extend(complaints_of_map(&map, &shown(&args.map), &functions, &followed)?);
    complain(&complaints, cli);
    if !cli.quiet {
        message::say_line(&summary(&followed.facts));
    }
    let plan = followed.plan.expect("events were asked for");
    write(output, cli, &mut |out| write_ftrace(&mut trace, chunk, &mut functions, plan, out))
}

/// What writes the file.
type Writing<'a> = &'a mut dyn FnMut(&mut dyn Write) -> Result<Written, UbootError>;

/// Writes the file; nothing is to be said of one whose reader went away.
fn write(output: &RawOutput, cli: &Cli, writing: Writing<'_>) -> Result<Option<Written>, Failure> {
    let mut written = None;
    let file = output.write(&mut |out| {
        written = Some(writing(out).map_err(|error| match error {
            UbootError::Io(error) => error,
            error => io::Error::other(error),
        })?);
        Ok(())
    })?;
    if let Some(written) = written.as_ref().filter(|_| !cli.quiet) {
        let events = counted(written.events, "event", "events");
        let excluded = match written.excluded {
            0 => String::new(),
            excluded => {
                format!(", {} left out by the rules", counted(excluded, "record", "records"))
            }
        };
        message::say_line(&format!("{events}{excluded}"));
        say(file.as_slice(), cli);
    }
    Ok(written)
}
