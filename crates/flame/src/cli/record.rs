//! `flame record`: its arguments as they are typed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::ArgPredicate;
use clap::{Args, ValueEnum};
use flame_profile::{ByteLen, Cpu, Hz, Pid, Tid};
use flame_sampler::{
    CallGraph, DEFAULT_STACK_COPY, EventType, MAX_STACK_COPY, max_sample_rate, parse_cpu_list,
};

use super::{SymbolArgs, duration};
use crate::output::Format;

const EXAMPLES: &str = "\
Examples:
  flame record -p 4242 -F 99                   until Ctrl-C: flame.svg
  flame record -p 4242 -d 10s -o out.svg -o out.folded
  flame record -F 999 -o - -- make | grep parse
  sudo flame record -a -d 30s -o out.svg       every process, kernel stacks too
  flame record -e page-faults -- ./prog        where memory is first touched";

const USAGE: &str = "flame record [OPTIONS] -p PID | -t TID | -a | -C CPUS | -- COMMAND [ARGS]";

/// Sample a process, a program or the whole machine, and draw where the time goes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub(crate) struct RecordArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,

    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,

    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
#[group(id = "targets", multiple = false)]
#[command(next_help_heading = "Target")]
pub(crate) struct TargetArgs {
    /// Attach to these processes: all their threads, and what they start
    #[arg(short, value_name = "PID", value_delimiter = ',', value_parser = pid)]
    pub(crate) pids: Vec<Pid>,

    /// Attach to these threads only
    #[arg(short, value_name = "TID", value_delimiter = ',', value_parser = tid)]
    pub(crate) tids: Vec<Tid>,

    /// All processes on all CPUs
    #[arg(short)]
    pub(crate) all: bool,

    /// A program to launch, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingArgs {
    /// Samples a second, or `max` for the kernel's limit
    #[arg(short = 'F', value_name = "HZ", default_value = "99", value_parser = frequency)]
    #[arg(conflicts_with = "period", default_value_if("period", ArgPredicate::IsPresent, None))]
    pub(crate) frequency: Option<Hz>,

    /// One sample every PERIOD events (nanoseconds for clocks) instead
    #[arg(short = 'c', value_name = "PERIOD", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) period: Option<u64>,

    /// Stop after that time: 500ms, 10s, 2m
    #[arg(short, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) duration: Option<Duration>,

    /// Event to sample [default: cycles, or cpu-clock where there is no PMU]
    ///
    /// cycles, instructions, cache-misses, branch-misses, cpu-clock, task-clock, page-faults,
    /// context-switches and others of perf, or rNNN for a raw event; :u and :k restrict it to user
    /// or kernel code.
    #[arg(short, value_name = "EVENT")]
    pub(crate) event: Option<EventType>,

    /// Kernel code only
    #[arg(short, conflicts_with = "user")]
    pub(crate) kernel: bool,

    /// User code only
    #[arg(short)]
    pub(crate) user: bool,

    /// How stacks are walked: dwarf[,BYTES of stack], fp or none
    #[arg(long, value_name = "HOW", default_value = "dwarf", value_parser = call_graph)]
    pub(crate) call_graph: CallGraph,

    /// Only on these CPUs, all processes unless others are named: 0-3,8
    #[arg(short = 'C', value_name = "CPUS", value_parser = cpus)]
    pub(crate) cpus: Option<CpuList>,

    /// Leave out threads and processes that the target starts
    #[arg(long)]
    pub(crate) no_inherit: bool,

    /// Run the program as root under sudo, not as the user who called it
    #[arg(long)]
    pub(crate) as_root: bool,

    /// Exit with the launched program's status
    #[arg(long)]
    pub(crate) forward_exit: bool,
}

/// Several outputs of one recording.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Write FILE (repeatable): .svg, .folded, .txt or .pb.gz; - is stdout [default: flame.svg]
    #[arg(short, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,

    /// Format of files whose ending does not say it, and of stdout [default: folded]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,

    /// Overwrite a flame.svg that flame did not write
    #[arg(long)]
    pub(crate) force: bool,

    /// Headline of the picture
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,

    /// Value that weighs the boxes: samples, or the event's own (cpu for clocks)
    #[arg(long, value_name = "NAME")]
    pub(crate) value: Option<String>,

    /// Name threads PROCESS/THREAD at the root
    #[arg(long)]
    pub(crate) threads: bool,

    /// Put the process id into the root frame: NAME-PID
    #[arg(long = "pid")]
    pub(crate) root_pid: bool,

    /// Put process and thread id into the root frame: NAME-PID/TID
    #[arg(long = "tid")]
    pub(crate) root_tid: bool,

    /// Leave out `_[k]`, `_[i]` and `_[j]` in folded output
    #[arg(long)]
    pub(crate) no_annotate: bool,
}

/// A parsed CPU list; a type of its own, since clap would take a Vec for repeated values.
#[derive(Clone, Debug)]
pub(crate) struct CpuList(pub(crate) Vec<Cpu>);

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Format] {
        &Format::ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.name()))
    }
}

fn pid(text: &str) -> Result<Pid, String> {
    task_number(text).map(Pid)
}

fn tid(text: &str) -> Result<Tid, String> {
    task_number(text).map(Tid)
}

fn task_number(text: &str) -> Result<u32, String> {
    let number = text.parse::<i32>().ok().and_then(|number| u32::try_from(number).ok());
    number.filter(|number| *number > 0).ok_or_else(|| "not the number of a task".to_owned())
}

fn frequency(text: &str) -> Result<Hz, String> {
    if text == "max" {
        return max_sample_rate().ok_or_else(|| "this kernel has no perf events".to_owned());
    }
    let number = text.parse::<u64>().ok().filter(|number| *number > 0);
    number.map(Hz).ok_or_else(|| "a frequency is a number of samples a second, or max".to_owned())
}

fn cpus(text: &str) -> Result<CpuList, String> {
    parse_cpu_list(text).map(CpuList).ok_or_else(|| "a CPU list looks like 0-3,8".to_owned())
}

fn call_graph(text: &str) -> Result<CallGraph, String> {
    let (how, bytes) = text.split_once(',').map_or((text, None), |(how, bytes)| (how, Some(bytes)));
    match (how, bytes) {
        ("none", None) => Ok(CallGraph::None),
        ("fp", None) => Ok(CallGraph::FramePointers),
        ("dwarf", None) => Ok(CallGraph::Dwarf(DEFAULT_STACK_COPY)),
        ("dwarf", Some(bytes)) => {
            let bytes = bytes.parse::<u64>().ok();
            let bytes = bytes.filter(|bytes| (8..=MAX_STACK_COPY.0).contains(bytes));
            let bytes = bytes.ok_or_else(|| {
                format!("the bytes of stack to copy are 8 to {}", MAX_STACK_COPY.0)
            })?;
            // The kernel takes multiples of 8 only.
            Ok(CallGraph::Dwarf(ByteLen(bytes & !7)))
        }
        _ => Err("stacks are walked by dwarf, dwarf,BYTES, fp or none".to_owned()),
    }
}
