//! Thread dumps of Java VMs: HotSpot's `jstack PID`, and the javacore files of OpenJ9 and IBM.
//!
//! ```text
//! "pool-1-thread-3" #12 prio=5 os_prio=0 tid=0x7f01 nid=0x1b03 runnable [0x7f02]
//!    java.lang.Thread.State: RUNNABLE
//!     at java.net.SocketInputStream.read(SocketInputStream.java:150)
//!     - locked <0x76ab> (a java.lang.Object)
//!     at com.example.Server.run(Server.java:33)
//! ```
//!
//! Threads that are runnable count once each; those that wait for the network are runnable for the
//! VM, and left out with the others. Pools count as one thread: the number at the end of a name
//! goes.

use flame_profile::FrameKind;

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::names::is_decimal;
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sample, Sink, TaskName};

pub(crate) const JSTACK: InputFormat = InputFormat {
    name: "jstack",
    description: "Java thread dumps (jstack PID, kill -QUIT PID)",
    content: Content::Text,
    detect: |head: &Head<'_>| head.contains(b"   java.lang.Thread.State: "),
    reader: Reader::Stacks(|input, sink| read(input, sink, jstack_line)),
};

pub(crate) const JAVACORE: InputFormat = InputFormat {
    name: "javacore",
    description: "Java cores of OpenJ9 and IBM VMs (javacore.*.txt)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        head.lines().any(|line| line.starts_with(b"3XMTHREADINFO "))
            || (head.contains(b"TITLE subcomponent dump routine") && head.contains(b"1TISIGINFO"))
    },
    reader: Reader::Stacks(|input, sink| read(input, sink, javacore_line)),
};

/// What a line of a dump says.
enum Says<'l> {
    /// A thread begins; whether it runs may be known already.
    Thread {
        name: &'l [u8],
        runs: Option<bool>,
    },
    State {
        runs: bool,
    },
    Frame(&'l [u8]),
    /// The thread ends.
    End,
    Nothing,
}

fn jstack_line(line: &[u8]) -> Says<'_> {
    let text = line.trim_ascii();
    if text.is_empty() {
        return Says::End;
    }
    if let Some(rest) = line.strip_prefix(b"\"") {
        let end = memchr::memrchr(b'"', rest).unwrap_or(rest.len());
        return Says::Thread { name: &rest[..end], runs: None };
    }
    if let Some(state) = text.strip_prefix(b"java.lang.Thread.State: ") {
        return Says::State { runs: state.starts_with(b"RUNNABLE") };
    }
    text.strip_prefix(b"at ").map_or(Says::Nothing, |method| Says::Frame(method_name(method)))
}

/// `3XMTHREADINFO      "main" J9VMThread:0x1, j9thread_t:0x2, java/lang/Thread:0x3, state:R, prio=5`
/// and `4XESTACKTRACE                at java/lang/Object.wait(Native Method)`.
fn javacore_line(line: &[u8]) -> Says<'_> {
    if let Some(rest) = line.strip_prefix(b"3XMTHREADINFO ") {
        let rest = rest.trim_ascii_start();
        let Some(rest) = rest.strip_prefix(b"\"") else { return Says::End };
        let end = memchr::memmem::find(rest, b"\" ").unwrap_or(rest.len());
        let runs = memchr::memmem::find(rest, b" state:R").is_some();
        return Says::Thread { name: &rest[..end], runs: Some(runs) };
    }
    if let Some(rest) = line.strip_prefix(b"4XESTACKTRACE") {
        let method = rest.trim_ascii_start().strip_prefix(b"at ");
        return method.map_or(Says::Nothing, |method| Says::Frame(without_place(method)));
    }
    if line.starts_with(b"NULL") || line.starts_with(b"3XMTHREADINFO3") {
        return Says::Nothing;
    }
    if line.starts_with(b"1") { Says::End } else { Says::Nothing }
}

/// Methods in which a runnable thread waits for somebody else.
const WAITS: [&[u8]; 6] =
    [b".epollWait", b"EPoll.wait", b".socketAccept", b"accept0", b".socketRead0", b".kevent"];

/// Threads of the VM itself.
const OF_THE_VM: [&[u8]; 4] =
    [b"Attach Listener", b"Signal Dispatcher", b"Service Thread", b"CompilerThread"];

#[derive(Default)]
struct Thread {
    name: Vec<u8>,
    runs: bool,
    /// Innermost first.
    stack: Vec<FrameIndex>,
    waits: bool,
}

fn read(
    input: &mut Input<'_>,
    sink: &mut Sink,
    says: fn(&[u8]) -> Says<'_>,
) -> Result<(), ReadError> {
    let mut lines = input.lines();
    let mut thread = Thread::default();
    let mut waiting = 0_u64;
    loop {
        let line = lines.next_line()?;
        let what = line.map_or(Says::End, |line| says(line.text));
        if let Says::Thread { .. } | Says::End = what {
            waiting += u64::from(!thread.end(sink));
        }
        match what {
            Says::Thread { name, runs } => {
                thread.name = pool_name(name).to_vec();
                thread.runs = runs.unwrap_or_default();
            }
            Says::State { runs } => thread.runs = runs,
            Says::Frame(name) => {
                if thread.stack.is_empty() {
                    thread.waits = WAITS.iter().any(|wait| name.ends_with(wait));
                }
                let kind = FrameKind::User;
                thread.stack.push(sink.frame(name, kind));
            }
            Says::End | Says::Nothing => {}
        }
        if line.is_none() {
            break;
        }
    }
    if waiting > 0 {
        sink.note(format!("{waiting} threads were not running, and are left out"));
    }
    Ok(())
}

impl Thread {
    /// Adds the thread, if it runs; false if it waits.
    fn end(&mut self, sink: &mut Sink) -> bool {
        let thread = std::mem::take(self);
        if thread.stack.is_empty() {
            return true;
        }
        let is_of_vm =
            OF_THE_VM.iter().any(|name| memchr::memmem::find(&thread.name, name).is_some());
        if !thread.runs || thread.waits || is_of_vm {
            return false;
        }
        let stack: Vec<FrameIndex> = thread.stack.iter().rev().copied().collect();
        let task = sink.task(TaskName { name: &thread.name, ..TaskName::default() });
        sink.add(&Sample { task: Some(task), ..Sample::new(&stack, &[1]) });
        true
    }
}

/// `com.example.Server.run(Server.java:33)` without the place.
fn without_place(text: &[u8]) -> &[u8] {
    text[..memchr::memchr(b'(', text).unwrap_or(text.len())].trim_ascii()
}

/// The same, also without a module and its version before it:
/// `java.base@17.0.1/java.lang.Thread.run(Thread.java:833)`.
pub(crate) fn method_name(text: &[u8]) -> &[u8] {
    let name = without_place(text);
    memchr::memrchr(b'/', name).map_or(name, |at| &name[at + 1..])
}

/// The name of a thread without its number.
fn pool_name(name: &[u8]) -> &[u8] {
    match memchr::memrchr(b'-', name) {
        Some(at) if at > 0 && is_decimal(&name[at + 1..]) => &name[..at],
        _ => name,
    }
}
