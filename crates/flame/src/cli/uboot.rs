//! `flame uboot`: its commands and their arguments as they are typed.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::picture::PictureArgs;
use crate::output::Format;

const EXAMPLES: &str = "\
Examples:
  flame uboot info -t trace
  flame uboot timing -m System.map -t trace -o boot.svg
  flame uboot timing -t trace --flamechart -o chart.svg    the boot as it went on
  flame uboot calls -t trace -o calls.folded -o calls.txt
  flame uboot ftrace -t trace -f funcgraph -o trace.dat    for trace-cmd report, kernelshark
  flame diff before.folded after.folded                    what a change did to the boot

The trace is what `trace calls` puts into memory of a U-Boot built with FTRACE=1, saved to a file.";

/// Turn U-Boot's function traces into pictures and trace.dat
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct UbootArgs {
    /// What to make of the trace
    #[command(subcommand)]
    pub(crate) command: UbootCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UbootCommand {
    /// Draw how often functions were called, and by whom, or write any other output
    Calls(Box<UbootGraphArgs>),
    /// Draw how long functions took, in microseconds, or write any other output
    Timing(Box<UbootGraphArgs>),
    /// Write trace.dat, for `trace-cmd report` and KernelShark
    Ftrace(UbootFtraceArgs),
    /// Show what is in a trace: chunks, records, gaps, depth, what is missing
    Info(UbootInfoArgs),
}

/// What would change the lines that proftool writes.
const SHAPING: [&str; 8] =
    ["flamechart", "heatmap", "FilterArgs", "base", "reverse", "callers", "total", "factor"];

/// The trace and what names its functions.
#[derive(Debug, Args)]
pub(crate) struct UbootInputArgs {
    /// The trace; - is stdin
    #[arg(short, long, value_name = "FILE")]
    pub(crate) trace: PathBuf,

    /// Which calls chunk of the trace, counted from 1 [default: the last]
    #[arg(long, value_name = "NUMBER", hide_short_help = true)]
    pub(crate) chunk: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct UbootGraphArgs {
    #[command(flatten)]
    pub(crate) input: UbootInputArgs,

    /// The System.map of the very same build
    #[arg(short, long, value_name = "FILE", default_value = "System.map")]
    pub(crate) map: PathBuf,

    /// Rules: lines of include-func REGEX or exclude-func REGEX, the last that matches decides
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Leave out functions that the rules exclude: their time is their callers', as if inlined
    ///
    /// Without this option rules apply to ftrace only, as in proftool.
    #[arg(long, requires = "config")]
    pub(crate) apply_filter: bool,

    /// Write the folded text of U-Boot's proftool, byte for byte, mistakes included
    #[arg(long, conflicts_with_all = SHAPING, conflicts_with_all = ["apply_filter", "chunk"])]
    pub(crate) compat: bool,

    /// Write FILE (repeatable): .svg .svgz .folded .txt .pb.gz .json .csv .md; - is stdout
    #[arg(short, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Vec<PathBuf>,

    /// Format of stdout, and of files whose ending does not say it
    #[arg(long, value_name = "FORMAT", help_heading = "Output")]
    pub(crate) format: Option<Format>,

    #[command(flatten)]
    pub(crate) picture: PictureArgs,
}

/// The events of a trace.dat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FtraceEvents {
    /// Each record as FUNCTION <-- CALLER
    Function,
    /// Entries and exits, with depth and duration
    Funcgraph,
}

#[derive(Debug, Args)]
pub(crate) struct UbootFtraceArgs {
    #[command(flatten)]
    pub(crate) input: UbootInputArgs,

    /// The System.map of the very same build
    #[arg(short, long, value_name = "FILE", default_value = "System.map")]
    pub(crate) map: PathBuf,

    /// The events
    #[arg(short = 'f', value_name = "EVENTS", default_value = "function")]
    pub(crate) events: FtraceEvents,

    /// Rules: lines of include-func REGEX or exclude-func REGEX, the last that matches decides
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Write what U-Boot's proftool writes, byte for byte, mistakes included
    #[arg(long, conflicts_with = "chunk")]
    pub(crate) compat: bool,

    /// Write FILE; - is stdout
    #[arg(short, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct UbootInfoArgs {
    #[command(flatten)]
    pub(crate) input: UbootInputArgs,

    /// The System.map, to see whether it is that of this build, and to tell pauses
    #[arg(short, long, value_name = "FILE")]
    pub(crate) map: Option<PathBuf>,
}
