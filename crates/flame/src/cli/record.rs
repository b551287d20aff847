//! `flame record`: its arguments as they are typed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use flame_doctor::ProcessName;
use flame_profile::{ByteLen, Cpu, Hz, Pid, Tid};
use flame_recorder::{DEFAULT_MAX_DEPTH, parse_event};
use flame_sampler::{
    CallGraph, DEFAULT_STACK_COPY, EventType, MAX_STACK_COPY, ParseEventError, event_names,
    max_sample_rate, near_names, parse_cpu_list, tracepoints,
};

use super::outputs::OutputArgs;
use super::picture::PictureArgs;
use super::{SymbolArgs, duration};

/// The most frames that may be asked for: 8 MiB of stack have half a million at most, and a picture
/// of this depth is beyond drawing.
const MOST_DEPTH: usize = 65_536;

const EXAMPLES: &str = "\
Examples:
  flame record -p 4242 -F 99                   until Ctrl-C: flame.svg
  flame record -p 4242 -d 10s -o out.svg -o out.folded
  flame record -F 999 -o - -- make | grep parse
  sudo flame record -a -d 30s -o out.svg       every process, kernel stacks too
  sudo flame record --mode off-cpu -p 4242     where it waits, and for how long
  flame record --repeat 3 -o old.pb.gz -- ./old    three runs, for flame diff";

const USAGE: &str = "\
flame record [OPTIONS] [--] COMMAND [ARGS]
       flame record [OPTIONS] -p PID | -t TID | -a | -C CPUS | -G CGROUP [-- WHILE_THIS_RUNS]";

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

    #[command(flatten)]
    pub(crate) picture: PictureArgs,
}

#[derive(Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "Target")]
pub(crate) struct TargetArgs {
    /// Attach to these processes and all that they have started or will start
    ///
    /// Numbers or names, separated by commas or blanks. A name is accepted if all processes of that
    /// name are one tree, such as a server with its workers; otherwise they are listed.
    #[arg(short, long = "pid", value_name = "PID", value_parser = process_list)]
    #[arg(conflicts_with_all = ["tids", "all", "group"])]
    pub(crate) pids: Vec<List<ProcessName>>,

    /// Attach to these threads only
    #[arg(short, long = "tid", value_name = "TID", value_parser = thread_list)]
    #[arg(conflicts_with_all = ["all", "group"])]
    pub(crate) tids: Vec<List<Tid>>,

    /// Record all processes on all CPUs
    #[arg(short, long, alias = "all-cpus", conflicts_with = "group")]
    pub(crate) all: bool,

    /// With -a, show the time in which CPUs had nothing to do as `swapper`, too
    #[arg(long, hide_short_help = true)]
    pub(crate) idle: bool,

    /// Record one control group: a path below /sys/fs/cgroup, or a container id
    #[arg(short = 'G', long = "cgroup", value_name = "CGROUP")]
    pub(crate) group: Option<String>,

    /// A program to launch, with its arguments
    ///
    /// Together with another target it is not recorded, but says how long to record: `-p PID -- sleep 5`.
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl TargetArgs {
    /// Whether processes, threads or all of the machine are named.
    pub(crate) fn names_a_target(&self) -> bool {
        self.all || self.group.is_some() || !self.pids.is_empty() || !self.tids.is_empty()
    }

    /// The program that is the target, and not just how long to record.
    pub(crate) fn launched(&self) -> Option<&[OsString]> {
        let launches = !self.command.is_empty() && !self.names_a_target();
        launches.then_some(self.command.as_slice())
    }
}

/// A list in one word, separated by commas or white space; a type of its own, since clap would take
/// a Vec for repeated values.
#[derive(Clone, Debug)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingArgs {
    /// Samples a second, or `max` for the kernel's limit [default: 99]
    ///
    /// For events that the kernel counts one by one (page-faults, context-switches, --mode off-cpu)
    /// the default is 999. Up to 1,000 occurrences a second are all sampled; beyond that, each sample
    /// stands for as many as the kernel's own counter says.
    #[arg(short = 'F', long = "freq", alias = "frequency", value_name = "HZ", value_parser = frequency, conflicts_with = "period")]
    pub(crate) frequency: Option<Hz>,

    /// Take a sample every PERIOD events (nanoseconds for clocks) instead
    #[arg(short = 'c', long = "period", alias = "count", value_name = "PERIOD", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) period: Option<u64>,

    /// Stop after this time: 500ms, 10s, 2m
    #[arg(short, long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) duration: Option<Duration>,

    /// Start recording this long after the target, to leave out how a program starts
    #[arg(short = 'D', long, value_name = "DURATION", value_parser = duration::parse, hide_short_help = true)]
    pub(crate) delay: Option<Duration>,

    /// Event to sample [default: cycles, or cpu-clock where there is no PMU]
    ///
    /// Several events, separated by commas (cycles,instructions), are one value of the profile each:
    /// --value chooses the one that is drawn.
    ///
    /// cycles, instructions, cache-misses, branch-misses, cpu-clock, task-clock, page-faults,
    /// context-switches and others of perf, a tracepoint (block:block_rq_issue), calls of a function
    /// (uprobe:/lib/x86_64-linux-gnu/libc.so.6:fsync), an event of a PMU (cpu/event=0xc2,umask=0x2/), or
    /// rNNN for a raw event; :u and :k restrict it to user or kernel code. --list-events names all there are.
    #[arg(short, long, value_name = "EVENT", value_parser = events)]
    pub(crate) event: Option<List<EventType>>,

    /// Record only what passes this filter of a tracepoint's fields: 'bytes > 4096'
    #[arg(long, value_name = "FILTER", requires = "event", hide_short_help = true)]
    pub(crate) filter: Option<String>,

    /// List the events that can be sampled, or those and functions of libc that hold or match TEXT ('*wak*')
    #[arg(long, value_name = "TEXT", num_args = 0..=1, default_missing_value = "", hide_short_help = true)]
    pub(crate) list_events: Option<String>,

    /// Measure cpu (the default), off-cpu, wall, faults, io, syscalls, ...
    ///
    /// cpu: where threads run. off-cpu: where they wait, weighted by the time until they run again;
    /// needs the right to sample the kernel. wakeup: who wakes them, weighted by how long they waited.
    /// offwake: where they wait, and above that who wakes them. wall: off-cpu and cpu in one picture, so
    /// that each thread adds up to its lifetime. faults: where memory is first touched. io: bytes that
    /// system calls read and write. block-io: bytes requested of disks. syscalls: how many there are.
    /// mmap: address space requested. alloc: memory requested of malloc and its like. locks: waits for
    /// locks and conditions.
    #[arg(long, value_name = "MODE", conflicts_with = "event", hide_possible_values = true)]
    pub(crate) mode: Option<Mode>,

    /// What is measured of system calls: bytes, count or latency (from entry to return)
    ///
    /// The default is bytes, and count for --mode syscalls.
    #[arg(long, value_name = "HOW", hide_short_help = true)]
    pub(crate) measure: Option<Measure>,

    /// For --mode alloc, the library or program that has malloc, if flame does not find it
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) allocator: Option<PathBuf>,

    /// For --mode alloc, only what is not freed before the recording ends
    #[arg(long, hide_short_help = true)]
    pub(crate) live: bool,

    /// Keep the time of each sample in .pb.gz, for heat maps, flame charts and fold --time
    #[arg(long, hide_short_help = true)]
    pub(crate) times: bool,

    /// Weight a tracepoint by one of its fields (bytes, ret), or a function by an argument (arg1 to arg6)
    #[arg(long, value_name = "FIELD", requires = "event", hide_short_help = true)]
    pub(crate) weight: Option<String>,

    /// Measure the time from one event of a thread to another, whose stacks are shown: syscalls:sys_enter_fsync,syscalls:sys_exit_fsync
    #[arg(long, value_name = "ENTER,EXIT", value_parser = events, conflicts_with_all = ["event", "mode"], hide_short_help = true)]
    pub(crate) pair: Option<List<EventType>>,

    /// For --mode off-cpu, wakeup and offwake, only waits in these states: S, D (for a disk), R, T, I
    #[arg(long, value_name = "S,D,...", hide_short_help = true)]
    pub(crate) state: Option<String>,

    /// For --mode off-cpu, wakeup and offwake, only waits of at least this time: 1us, 10ms
    #[arg(long, value_name = "TIME", value_parser = duration::parse, hide_short_help = true)]
    pub(crate) min_block: Option<Duration>,

    /// For --mode off-cpu, wakeup and offwake, only waits of at most this time
    #[arg(long, value_name = "TIME", value_parser = duration::parse, hide_short_help = true)]
    pub(crate) max_block: Option<Duration>,

    /// Kernel code only
    #[arg(short, conflicts_with = "user")]
    pub(crate) kernel: bool,

    /// User code only
    #[arg(short)]
    pub(crate) user: bool,

    /// How to unwind stacks: `dwarf[,BYTES]`, fp or none
    ///
    /// Without BYTES, 16 KiB of stack are copied with each sample, and the rest is read while the thread
    /// stands still; where that is not possible, up to 64 KiB are copied.
    #[arg(long, value_name = "HOW", default_value = "dwarf", value_parser = call_graph)]
    pub(crate) call_graph: StackWalk,

    /// Frames kept of each stack, from the innermost on
    ///
    /// Stacks with more frames stand under `[frames beyond --max-depth]` and are counted.
    #[arg(long, value_name = "FRAMES", default_value_t = DEFAULT_MAX_DEPTH, value_parser = max_depth, hide_short_help = true)]
    pub(crate) max_depth: usize,

    /// At the end, ask Java VMs that flame cannot read for the names of their compiled methods
    #[arg(long, hide_short_help = true)]
    pub(crate) java: bool,

    /// Show an interpreter's native frames, without those of the program that it runs
    #[arg(long, hide_short_help = true)]
    pub(crate) no_script: bool,

    /// Keep an interpreter's own frames beside those of the program that it runs
    ///
    /// Otherwise the frames of the program take the place of those that run and call its functions.
    #[arg(long, hide_short_help = true, conflicts_with = "no_script")]
    pub(crate) native: bool,

    /// Record only on these CPUs; all processes, unless some are named: 0-3,8
    #[arg(short = 'C', value_name = "CPUS", value_parser = cpus)]
    pub(crate) cpus: Option<CpuList>,

    /// Leave out processes that those of -p have already started
    #[arg(long, hide_short_help = true)]
    pub(crate) no_children: bool,

    /// Leave out threads and processes that the target starts or has already started
    #[arg(long, hide_short_help = true)]
    pub(crate) no_inherit: bool,

    /// As perf's: stacks are always recorded
    #[arg(short = 'g', hide = true)]
    pub(crate) with_stacks: bool,

    /// Take samples at a fixed interval, instead of random ones around its length
    #[arg(long, hide_short_help = true)]
    pub(crate) fixed_period: bool,

    /// Open events for each of the target's tasks, even with the right to sample whole CPUs
    ///
    /// This costs other programs nothing, but tasks that live for less than an interval are not seen.
    #[arg(long, hide_short_help = true)]
    pub(crate) per_task: bool,

    /// Record this many times: -o old.pb.gz writes old.1.pb.gz, old.2.pb.gz and so on
    ///
    /// One recording does not tell how much recordings of the same program differ: with three of each
    /// side, flame diff can tell which changes are real.
    #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: Option<u32>,

    /// Which of several recordings this is
    #[arg(long, value_name = "NUMBER", hide = true)]
    pub(crate) run_number: Option<u32>,

    /// Exit with 1 if anything was lost, or under 95 % of CPU time was seen
    #[arg(long)]
    pub(crate) strict: bool,

    /// What random intervals are drawn from, for repeatable tests
    #[arg(long, value_name = "NUMBER", env = "FLAME_SEED", hide = true)]
    pub(crate) seed: Option<u64>,

    /// Run the program as root under sudo, not as the user who called it
    #[arg(long, hide_short_help = true)]
    pub(crate) as_root: bool,

    /// Exit with the launched program's status
    #[arg(long, hide_short_help = true)]
    pub(crate) forward_exit: bool,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Where threads run.
    Cpu,
    /// Where they wait.
    OffCpu,
    /// Who wakes them.
    Wakeup,
    /// Where they wait, and above that who wakes them.
    Offwake,
    /// Where they are, running or waiting.
    Wall,
    /// Where memory is first touched.
    Faults,
    /// What system calls read and write.
    Io,
    /// What is asked of disks.
    BlockIo,
    /// System calls.
    Syscalls,
    /// Address space that is asked for.
    Mmap,
    /// Heaps that grow.
    Brk,
    /// What is asked of malloc.
    Alloc,
    /// Waits for locks.
    Locks,
}

/// What of a system call counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Measure {
    /// How many bytes are transferred.
    Bytes,
    /// How many calls there are.
    Count,
    /// How long calls take.
    Latency,
}

impl From<Measure> for flame_recorder::Measure {
    fn from(measure: Measure) -> flame_recorder::Measure {
        match measure {
            Measure::Bytes => flame_recorder::Measure::Bytes,
            Measure::Count => flame_recorder::Measure::Count,
            Measure::Latency => flame_recorder::Measure::Latency,
        }
    }
}

/// How stacks are walked, and whether copies of them may be larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackWalk {
    pub(crate) how: CallGraph,
    pub(crate) copy_may_be_larger: bool,
}

/// A parsed CPU list; a type of its own, since clap would take a Vec for repeated values.
#[derive(Clone, Debug)]
pub(crate) struct CpuList(pub(crate) Vec<Cpu>);

pub(super) fn pid(text: &str) -> Result<Pid, String> {
    task_number(text).map(Pid)
}

fn process_list(text: &str) -> Result<List<ProcessName>, String> {
    list(text, |word| match word.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        true => pid(word).map(ProcessName::Number),
        false => Ok(ProcessName::Name(word.to_owned())),
    })
}

fn thread_list(text: &str) -> Result<List<Tid>, String> {
    list(text, |word| task_number(word).map(Tid))
}

/// What a shell makes of `-p "$(pgrep x)"`, too: numbers in lines of their own.
fn list<T>(text: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<List<T>, String> {
    let words = text.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty());
    let items: Vec<T> = words.map(parse).collect::<Result<_, _>>()?;
    if items.is_empty() { Err("an empty list".to_owned()) } else { Ok(List(items)) }
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

fn max_depth(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MOST_DEPTH).contains(number));
    number.ok_or_else(|| format!("a depth is a number of frames from 1 to {MOST_DEPTH}"))
}

fn cpus(text: &str) -> Result<CpuList, String> {
    parse_cpu_list(text).map(CpuList).ok_or_else(|| "a CPU list looks like 0-3,8".to_owned())
}

fn events(text: &str) -> Result<List<EventType>, String> {
    let mut events: Vec<EventType> = Vec::new();
    for name in event_names_in(text) {
        let event = parse_event(name).map_err(|error| unknown(name).unwrap_or(error))?;
        if events.contains(&event) {
            return Err(format!("{event} stands there twice"));
        }
        events.push(event);
    }
    Ok(List(events))
}

/// What is said of an event that there is not.
fn unknown(name: &str) -> Option<String> {
    let Err(ParseEventError::Unknown { text }) = name.parse::<EventType>() else { return None };
    let names = event_names().into_iter().map(str::to_owned);
    let all: Vec<String> = names.chain(tracepoints().unwrap_or_default()).collect();
    let near = near_names(&text.split(':').next().unwrap_or_default().to_lowercase(), &all);
    Some(format!(
        "unknown event '{text}'{near}; --list-events names all, --list-events TEXT those that have TEXT in their names"
    ))
}

/// The events of a list. Commas between the slashes of a PMU are those of one event:
/// `cpu/event=0xc2,umask=2/u,cycles`; files of functions have slashes of their own.
fn event_names_in(text: &str) -> Vec<&str> {
    let (mut names, mut start, mut in_slashes) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        let name = &text[start..at];
        match c {
            '/' if !name.starts_with("uprobe:") => in_slashes ^= true,
            ',' if !in_slashes => {
                names.push(name);
                start = at + 1;
            }
            _ => {}
        }
    }
    names.push(&text[start..]);
    names
}

fn call_graph(text: &str) -> Result<StackWalk, String> {
    let (how, bytes) = text.split_once(',').map_or((text, None), |(how, bytes)| (how, Some(bytes)));
    let walk = |how| Ok(StackWalk { how, copy_may_be_larger: bytes.is_none() });
    match (how, bytes) {
        ("none", None) => walk(CallGraph::None),
        ("fp", None) => walk(CallGraph::FramePointers),
        ("dwarf", None) => walk(CallGraph::Dwarf(DEFAULT_STACK_COPY)),
        ("dwarf", Some(bytes)) => {
            let number = bytes.parse::<u64>().ok();
            let number = number.filter(|bytes| (8..=MAX_STACK_COPY.0).contains(bytes));
            let number = number.ok_or_else(|| {
                format!("the bytes of stack to copy are 8 to {}", MAX_STACK_COPY.0)
            })?;
            // The kernel takes multiples of 8 only.
            walk(CallGraph::Dwarf(ByteLen(number & !7)))
        }
        _ => Err("stacks are unwound by dwarf, dwarf,BYTES, fp or none".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_within_an_event_are_its_own() {
        let check = |text, expect: &[&str]| assert_eq!(event_names_in(text), expect);
        check("cycles,page-faults:u", &["cycles", "page-faults:u"]);
        check("cpu/event=0xc2,umask=2/u,cycles", &["cpu/event=0xc2,umask=2/u", "cycles"]);
        check(
            "uprobe:/lib/a/b.so:f,cycles,msr/tsc/",
            &["uprobe:/lib/a/b.so:f", "cycles", "msr/tsc/"],
        );
        check("cpu/event=1,x", &["cpu/event=1,x"]);
    }

    #[test]
    fn events_of_nearly_that_name_are_offered() {
        let check = |name: &str, near: &str| {
            let expect = format!("unknown event '{name}'; near it are {near}");
            let error = events(name).unwrap_err();
            assert!(error.starts_with(&expect), "{error}");
        };
        check("page_faults", "page-faults");
        check("contextswitches:u", "context-switches");
        check("cpu_clock", "cpu-clock");
        check("cylces", "cycles");
        check("Page-Faults", "page-faults");
        assert!(events("nothing").unwrap_err().contains("--list-events names all"));
    }

    #[test]
    fn lists_are_separated_by_commas_blanks_and_newlines() {
        let numbers = |text| process_list(text).map(|list| list.0).ok();
        let number = |number| ProcessName::Number(Pid(number));
        assert_eq!(numbers("1,2"), Some(vec![number(1), number(2)]));
        assert_eq!(numbers("1 2\n3\n"), Some(vec![number(1), number(2), number(3)]));
        assert_eq!(numbers("nginx"), Some(vec![ProcessName::Name("nginx".to_owned())]));
        for wrong in ["", " ", ",", "0", "-1", "1,x2,99999999999", "12x"] {
            assert_eq!(numbers(wrong), None, "{wrong:?}");
        }
        assert_eq!(thread_list("7, 8").map(|list| list.0), Ok(vec![Tid(7), Tid(8)]));
    }
}
