//! The same stacks as many tools would write them, so that what readers make of them is known.

use std::fmt::Write;

use flame_formats::write_pprof;
use flame_profile::{FrameKind, Location, Pid, Profile, StackId, Tid, ValueType};

/// A stack of a thread: its frames, outermost first, and how many samples it stands for.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    pub(crate) thread: &'static str,
    pub(crate) frames: Vec<&'static str>,
    pub(crate) weight: u64,
}

impl Stack {
    fn innermost_first(&self) -> impl Iterator<Item = &&'static str> {
        self.frames.iter().rev()
    }
}

/// How a tool writes stacks.
pub(crate) struct Writer {
    /// The name of the format.
    pub(crate) format: &'static str,
    pub(crate) write: fn(&[Stack]) -> Vec<u8>,
    /// What a reader calls a frame of that name.
    pub(crate) frame: fn(&str) -> String,
    /// Whether the file says which thread a stack is of.
    pub(crate) has_threads: bool,
    /// What a sample weighs when it is read.
    pub(crate) unit: u64,
    /// Whether one file behind another is a file of both.
    pub(crate) is_stream: bool,
}

const PLAIN: Writer = Writer {
    format: "folded",
    write: folded,
    frame: str::to_owned,
    has_threads: true,
    unit: 1,
    is_stream: true,
};

/// All of them.
pub(crate) const WRITERS: &[Writer] = &[
    PLAIN,
    Writer { format: "perf-script", write: perf_script, ..PLAIN },
    Writer { format: "bcc", write: bcc, ..PLAIN },
    Writer {
        format: "dtrace",
        write: dtrace,
        frame: |name| format!("a.out`{name}"),
        has_threads: false,
        is_stream: false,
        ..PLAIN
    },
    Writer { format: "systemtap", write: systemtap, has_threads: false, ..PLAIN },
    Writer { format: "bpftrace", write: bpftrace, ..PLAIN },
    Writer {
        format: "ktap",
        write: ktap,
        frame: |name| format!("{name}_[k]"),
        has_threads: false,
        ..PLAIN
    },
    Writer { format: "ljp", write: ljp, has_threads: false, is_stream: false, ..PLAIN },
    Writer { format: "gdb", write: gdb, ..PLAIN },
    Writer { format: "eu-stack", write: eu_stack, has_threads: false, ..PLAIN },
    Writer { format: "jstack", write: jstack, frame: |name| format!("app.Main.{name}"), ..PLAIN },
    Writer {
        format: "faulthandler",
        write: faulthandler,
        frame: |name| format!("{name} (app.py)"),
        has_threads: false,
        ..PLAIN
    },
    Writer {
        format: "wall-clock-profiler",
        write: wall_clock_profiler,
        has_threads: false,
        is_stream: false,
        ..PLAIN
    },
    Writer { format: "go-raw", write: go_raw, has_threads: false, is_stream: false, ..PLAIN },
    Writer { format: "speedscope", write: speedscope, is_stream: false, ..PLAIN },
    Writer { format: "chrome-trace", write: chrome_trace, unit: 1_000, is_stream: false, ..PLAIN },
    Writer { format: "pprof", write: pprof, is_stream: false, ..PLAIN },
];

/// One text a stack.
fn text(stacks: &[Stack], one: impl Fn(&mut String, &Stack)) -> Vec<u8> {
    let mut text = String::new();
    stacks.iter().for_each(|stack| one(&mut text, stack));
    text.into_bytes()
}

/// One text a sample, for tools that print each.
fn each(stacks: &[Stack], one: impl Fn(&mut String, &Stack)) -> Vec<u8> {
    text(stacks, |out, stack| (0..stack.weight).for_each(|_| one(out, stack)))
}

fn line(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("memory takes any text");
    out.push('\n');
}

fn folded(stacks: &[Stack]) -> Vec<u8> {
    text(stacks, |out, stack| {
        line(out, format_args!("{};{} {}", stack.thread, stack.frames.join(";"), stack.weight));
    })
}

fn perf_script(stacks: &[Stack]) -> Vec<u8> {
    text(stacks, |out, stack| {
        let Stack { thread, weight, .. } = stack;
        line(out, format_args!("{thread} 40/41 [000] 10.000001: {weight:>8} cycles:u: "));
        for frame in stack.innermost_first() {
            line(out, format_args!("\t    55d2 {frame}+0x1f (/usr/bin/a.out)"));
        }
        out.push('\n');
    })
}

fn bcc(stacks: &[Stack]) -> Vec<u8> {
    text(stacks, |out, stack| {
        stack.innermost_first().for_each(|frame| line(out, format_args!("    {frame}")));
        line(out, format_args!("    {:<16} {} (4242)", "-", stack.thread));
        line(out, format_args!("        {}\n", stack.weight));
    })
}

fn dtrace(stacks: &[Stack]) -> Vec<u8> {
    let header = "CPU     ID                    FUNCTION:NAME\n  1  80391    :tick-30s \n\n\n";
    let stacks = text(stacks, |out, stack| {
        for frame in stack.innermost_first() {
            line(out, format_args!("              a.out`{frame}+0x1f"));
        }
        line(out, format_args!("                {}\n", stack.weight));
    });
    [header.as_bytes(), &stacks].concat()
}

fn systemtap(stacks: &[Stack]) -> Vec<u8> {
    text(stacks, |out, stack| {
        for frame in stack.innermost_first() {
            line(out, format_args!(" 0x401000 : {frame}+0xd/0x80 [/usr/bin/a.out]"));
        }
        line(out, format_args!("\t{}", stack.weight));
    })
}

fn bpftrace(stacks: &[Stack]) -> Vec<u8> {
    text(stacks, |out, stack| {
        out.push_str("@[\n");
        stack.innermost_first().for_each(|frame| line(out, format_args!("    {frame}+12")));
        line(out, format_args!(", {}]: {}", stack.thread, stack.weight));
    })
}

fn ktap(stacks: &[Stack]) -> Vec<u8> {
    text(stacks, |out, stack| {
        out.push('\n');
        stack.innermost_first().for_each(|frame| line(out, format_args!("\t{frame}+0x4f")));
        line(out, format_args!("\t{}", stack.weight));
    })
}

fn ljp(stacks: &[Stack]) -> Vec<u8> {
    let mut traces = text(stacks, |out, stack| {
        write!(out, "{} {} ", stack.weight, stack.frames.len()).expect("memory takes any text");
        stack.innermost_first().for_each(|frame| line(out, format_args!("{frame}(M.java:3)")));
        out.push('\n');
    });
    traces
        .extend(format!("Total trace count = {}, Total method count = 9\n", stacks.len()).bytes());
    traces
}

fn gdb(stacks: &[Stack]) -> Vec<u8> {
    each(stacks, |out, stack| {
        line(out, format_args!("Thread 1 (Thread 0x7f01 (LWP 4243) \"{}\"):", stack.thread));
        for (at, frame) in stack.innermost_first().enumerate() {
            line(out, format_args!("#{at}  0x0000401136 in {frame} (n=1) at wait.cc:12"));
        }
        out.push('\n');
    })
}

fn eu_stack(stacks: &[Stack]) -> Vec<u8> {
    each(stacks, |out, stack| {
        out.push_str("PID 4242 - process\nTID 4242:\n");
        for (at, frame) in stack.innermost_first().enumerate() {
            line(out, format_args!("#{at}  0x0000000000401136 {frame}"));
        }
    })
}

fn jstack(stacks: &[Stack]) -> Vec<u8> {
    each(stacks, |out, stack| {
        out.push_str("2024-05-01 12:00:00\nFull thread dump OpenJDK 64-Bit Server VM (17):\n\n");
        line(out, format_args!("\"{}\" #12 prio=5 tid=0x7f01 nid=0x1b03 runnable", stack.thread));
        out.push_str("   java.lang.Thread.State: RUNNABLE\n");
        for frame in stack.innermost_first() {
            line(out, format_args!("\tat app.Main.{frame}(Main.java:338)"));
        }
        out.push('\n');
    })
}

fn faulthandler(stacks: &[Stack]) -> Vec<u8> {
    each(stacks, |out, stack| {
        out.push_str("Current thread 0x00007f01 (most recent call first):\n");
        for frame in stack.innermost_first() {
            line(out, format_args!("  File \"/srv/app.py\", line 12 in {frame}"));
        }
        out.push('\n');
    })
}

fn wall_clock_profiler(stacks: &[Stack]) -> Vec<u8> {
    let body = text(stacks, |out, stack| {
        line(out, format_args!(" 60.000% =======  ({} samples)", stack.weight));
        for (at, frame) in stack.innermost_first().enumerate() {
            line(out, format_args!("       {}: {frame}   (at poll.c:29)", at + 1));
        }
        out.push('\n');
    });
    [&b"Functions (sorted by samples):\n 100.000% ==== main\n\nFull stacks:\n\n"[..], &body]
        .concat()
}

/// The names of all frames, each once, in their order.
fn names(stacks: &[Stack]) -> Vec<&'static str> {
    let mut names: Vec<_> = stacks.iter().flat_map(|stack| stack.frames.clone()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The positions of frames among the names, outermost first.
fn positions(stack: &Stack, names: &[&str]) -> Vec<usize> {
    let of = |frame: &&str| names.binary_search(frame).expect("all frames are there");
    stack.frames.iter().map(of).collect()
}

fn go_raw(stacks: &[Stack]) -> Vec<u8> {
    let names = names(stacks);
    let mut out =
        "PeriodType: cpu nanoseconds\nPeriod: 10000000\nSamples:\nsamples/count\n".to_owned();
    for stack in stacks {
        let ids: Vec<String> =
            positions(stack, &names).iter().rev().map(|at| (at + 1).to_string()).collect();
        line(&mut out, format_args!("{:>11}: {}", stack.weight, ids.join(" ")));
    }
    out.push_str("Locations\n");
    for (at, name) in names.iter().enumerate() {
        let id = at + 1;
        line(&mut out, format_args!("{id:>6}: 0x48dc53 M=1 {name} /src/main.go:12:0 s=10"));
    }
    out.push_str("Mappings\n1: 0x400000/0x4c9000/0x0 /usr/bin/server 5f3a [FN]\n");
    out.into_bytes()
}

fn threads(stacks: &[Stack]) -> Vec<&'static str> {
    let mut threads: Vec<_> = stacks.iter().map(|stack| stack.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    threads
}

fn speedscope(stacks: &[Stack]) -> Vec<u8> {
    let names = names(stacks);
    let frames: Vec<String> =
        names.iter().map(|name| format!("{{\"name\": \"{name}\"}}")).collect();
    let profile = |thread: &str| {
        let of_thread = || stacks.iter().filter(|stack| stack.thread == thread);
        let samples: Vec<String> =
            of_thread().map(|stack| format!("{:?}", positions(stack, &names))).collect();
        let weights: Vec<String> = of_thread().map(|stack| stack.weight.to_string()).collect();
        let end: u64 = of_thread().map(|stack| stack.weight).sum();
        format!(
            "{{\"type\": \"sampled\", \"name\": \"{thread}\", \"unit\": \"none\", \"startValue\": 0, \
             \"endValue\": {end}, \"samples\": [{}], \"weights\": [{}]}}",
            samples.join(", "),
            weights.join(", ")
        )
    };
    let mut profiles: Vec<String> = threads(stacks).into_iter().map(profile).collect();
    // The threads are roots where there are several.
    profiles.push(
        "{\"type\": \"sampled\", \"name\": \"idle\", \"unit\": \"none\", \"startValue\": 0, \
         \"endValue\": 0, \"samples\": [], \"weights\": []}"
            .to_owned(),
    );
    let schema = "https://www.speedscope.app/file-format-schema.json";
    let (frames, profiles) = (frames.join(", "), profiles.join(",\n"));
    format!(
        "{{\"$schema\": \"{schema}\", \"shared\": {{\"frames\": [{frames}]}},\n\"profiles\": [{profiles}]}}\n"
    )
    .into_bytes()
}

fn chrome_trace(stacks: &[Stack]) -> Vec<u8> {
    let mut events = Vec::new();
    for (at, thread) in threads(stacks).into_iter().enumerate() {
        let tid = at + 1;
        events.push(format!(
            "{{\"ph\": \"M\", \"pid\": 1, \"tid\": {tid}, \"name\": \"thread_name\", \"args\": {{\"name\": \"{thread}\"}}}}"
        ));
        let mut time = 0;
        for stack in stacks.iter().filter(|stack| stack.thread == thread) {
            for frame in &stack.frames {
                let dur = stack.weight;
                events.push(format!(
                    "{{\"ph\": \"X\", \"pid\": 1, \"tid\": {tid}, \"ts\": {time}, \"dur\": {dur}, \"name\": \"{frame}\"}}"
                ));
            }
            time += stack.weight;
        }
    }
    format!("{{\"traceEvents\": [\n{}\n]}}\n", events.join(",\n")).into_bytes()
}

fn pprof(stacks: &[Stack]) -> Vec<u8> {
    let mut profile = Profile::new(vec![ValueType::samples()]);
    for stack in stacks {
        let mut id = StackId::EMPTY;
        for name in &stack.frames {
            let frame = profile.add_frame(name, FrameKind::User);
            let location = profile.add_location(Location::named(frame));
            id = profile.push_stack(id, location);
        }
        let thread = profile.add_thread(stack.thread, Pid(40), Tid(41));
        profile.add_sample(thread, id, &[stack.weight]);
    }
    let mut file = Vec::new();
    write_pprof(&profile, &mut file).expect("memory takes any bytes");
    file
}
