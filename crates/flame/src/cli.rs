//! The command line's definition.

mod by;
mod command;
mod diff;
mod doctor;
mod duration;
mod filter;
mod fold;
mod input;
mod outputs;
mod picture;
mod record;
mod render;
mod symbols;
mod uboot;

use clap::{ArgAction, Parser};

use crate::terminal::Color;

pub(crate) use by::By;
pub(crate) use command::Command;
pub(crate) use diff::{DiffArgs, REFUSED, ValuePair};
pub(crate) use doctor::DoctorArgs;
pub(crate) use filter::FilterArgs;
pub(crate) use fold::FoldArgs;
pub(crate) use input::InputArgs;
pub(crate) use outputs::OutputArgs;
pub(crate) use picture::{PictureArgs, Width};
pub(crate) use record::{Mode, RecordArgs, SamplingArgs, TargetArgs};
pub(crate) use render::RenderArgs;
pub(crate) use symbols::SymbolArgs;
pub(crate) use uboot::{FtraceEvents, UbootArgs, UbootCommand};
pub(crate) use uboot::{UbootFtraceArgs, UbootGraphArgs, UbootInfoArgs};

/// From a running Linux process to a flame graph, in one binary.
#[derive(Debug, Parser)]
#[command(name = "flame", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = EXAMPLES, infer_subcommands = true)]
pub(crate) struct Cli {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Print nothing but errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,

    /// Log what flame does, for developers (-vv, -vvv for more)
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Colour messages: auto, always or never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    #[arg(value_parser = Color::parse)]
    pub(crate) color: Color,
}

const EXAMPLES: &str = "\
Examples:
  flame record -p 4242 -d 10s               attach for ten seconds: flame.svg
  flame record -o out.svg -- ./prog a b     launch, until it ends
  sudo flame record -a -d 30s -o out.svg    the whole machine
  flame render out.folded -o out.svg        draw what another tool has recorded
  flame fold out.perf > out.folded          stacks of any profiler's output
  flame diff v1.folded v2.folded -o d.svg   what changed, and whether that is noise
  flame doctor -p 4242                      what is in the way of a complete profile
  flame uboot timing -t trace -o boot.svg   where a U-Boot spends its boot";
