//! `--compat`: what U-Boot's proftool writes, byte for byte.

use std::process::ExitCode;

use flame_message::counted;
use flame_uboot::{Measure, Proftool, Reading, broken_trace, wrong_for_proftool, wrong_trace};

use super::input::{self, Bytes, shown};
use crate::cli::{Cli, UbootGraphArgs};
use crate::message::{self, Failure, warn};
use crate::output::{Format, Outputs};
use crate::render::say;

/// Opens a trace and a map as proftool does.
pub(super) fn open(
    trace: &std::path::Path,
    map: &std::path::Path,
) -> Result<Proftool<Bytes>, Failure> {
    let text = input::map_text(map)?;
    let (bytes, broken_end) = input::open(trace)?;
    if let Some(why) = broken_end {
        return Err(broken_trace(&shown(trace), why));
    }
    let wrong = |error| wrong_for_proftool(&shown(trace), &shown(map), &error);
    Proftool::open(bytes, &text).map_err(wrong)
}

/// Writes proftool's flame graph.
pub(super) fn graph(
    args: &UbootGraphArgs,
    measure: Measure,
    outputs: &Outputs,
    cli: &Cli,
) -> Result<ExitCode, Failure> {
    if outputs.formats().any(|format| format != Format::Folded) {
        return Err(Failure::usage("--compat writes folded text only")
            .why("that is all that proftool writes, with values that a picture cannot show")
            .or_try("-o FILE.folded"));
    }
    // proftool reads them, and does not apply them to flame graphs.
    input::rules(args.config.as_deref(), Reading::Proftool)?;
    let mut proftool = open(&args.input.trace, &args.map)?;
    let graph = proftool.flame_graph(measure);
    let graph = graph.map_err(|error| wrong_trace(&shown(&args.input.trace), &error.into()))?;
    let (written, failures) = outputs.write_with(&|_, out| graph.write(&proftool, out));
    if !cli.quiet {
        if graph.missing() > 0 {
            let records = counted(graph.missing(), "record", "records");
            warn(&format!("{records} left out: their functions are not in the map"), cli.color);
        }
        message::say_line(&format!(
            "{} of proftool",
            counted(graph.lines() as u64, "line", "lines")
        ));
        say(&written, cli);
    }
    failures.into_iter().next().map_or(Ok(ExitCode::SUCCESS), Err)
}
