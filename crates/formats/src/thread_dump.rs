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
//! `jhsdb jstack` writes ` - com.example.Server.run() @bci=12, line=33 (Interpreted frame)` for a frame.
//!
//! `jcmd PID Thread.dump_to_file`, which has virtual threads too, begins a thread with `#22 "name" virtual`, from
//! Java 24 on with its state, and its frames are indented only. A carrier's stack goes on with that of the
//! virtual thread that is mounted on it.
//!
//! Threads that are runnable count once each; those that wait for the network are runnable for the
//! VM, and left out with the others. Pools count as one thread: the number at the end of a name
//! goes.

use std::borrow::Cow;

use flame_profile::FrameKind;

use crate::ReadError;
use crate::foreign::Foreign;
use crate::head::Head;
use crate::input::Input;
use crate::names::is_decimal;
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sample, Sink, TaskName};

pub(crate) const JSTACK: InputFormat = InputFormat {
    name: "jstack",
    description: "Java thread dumps (jstack PID, kill -QUIT PID)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        head.contains(b"   java.lang.Thread.State: ")
            || (head.lines().any(|line| of_file(line).is_some())
                && head.lines().any(|line| frame_of_file(line).is_some()))
    },
    reader: Reader::Stacks(|input, sink| read(input, sink, JSTACK.name, jstack_line)),
};

pub(crate) const JAVACORE: InputFormat = InputFormat {
    name: "javacore",
    description: "Java cores of OpenJ9 and IBM VMs (javacore.*.txt)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        head.lines().any(|line| line.starts_with(b"3XMTHREADINFO "))
            || (head.contains(b"TITLE subcomponent dump routine") && head.contains(b"1TISIGINFO"))
    },
    reader: Reader::Stacks(|input, sink| read(input, sink, JAVACORE.name, javacore_line)),
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
    /// The frames of a virtual thread follow, which those before have called.
    Mounted,
    Frame(Cow<'l, [u8]>),
    /// The thread ends.
    End,
    /// Stacks of threads follow that stand above already.
    Repetition,
    /// A dump begins.
    Dump,
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
    if let Some((name, runs)) = of_file(line) {
        return Says::Thread { name, runs: Some(runs) };
    }
    if let Some(state) = text.strip_prefix(b"java.lang.Thread.State: ") {
        return Says::State { runs: state.starts_with(b"RUNNABLE") };
    }
    if text.starts_with(b"Carrying virtual thread") {
        return Says::State { runs: true };
    }
    if text.starts_with(b"Mounted virtual thread") {
        return Says::Mounted;
    }
    if line.starts_with(b"Java stack information for the threads listed above") {
        return Says::Repetition;
    }
    if line.starts_with(b"Full thread dump") {
        return Says::Dump;
    }
    // `- locked <0x76ab> (a java.lang.Object)` has no such place.
    let of_jhsdb = || {
        let method = text.strip_prefix(b"- ")?;
        memchr::memmem::find(method, b" @bci=").map(|at| &method[..at])
    };
    let method = text.strip_prefix(b"at ").or_else(of_jhsdb).or_else(|| frame_of_file(line));
    method.map_or(Says::Nothing, |method| Says::Frame(method_name(method)))
}

/// `#22 "name" virtual`, `#1 "main" RUNNABLE 2026-07-24T13:02:19.482300Z`: the name, and whether it runs. Where no
/// state is said, all do.
fn of_file(line: &[u8]) -> Option<(&[u8], bool)> {
    let rest = line.strip_prefix(b"#")?;
    let end = memchr::memchr(b' ', rest).filter(|end| is_decimal(&rest[..*end]))?;
    let name = rest[end..].strip_prefix(b" \"")?;
    let quote = memchr::memrchr(b'"', name)?;
    let mut words = name[quote + 1..].split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let states = [&b"WAITING"[..], b"TIMED_WAITING", b"BLOCKED", b"NEW", b"TERMINATED"];
    Some((&name[..quote], !words.any(|word| states.contains(&word))))
}

/// `      java.base/java.lang.Thread.run(Thread.java:1583)`
fn frame_of_file(line: &[u8]) -> Option<&[u8]> {
    let text = line.strip_prefix(b"    ")?.trim_ascii();
    let name = &text[..memchr::memchr(b'(', text)?];
    let is_method = !name.contains(&b' ') && name.contains(&b'.') && text.ends_with(b")");
    is_method.then_some(text)
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
        return method.map_or(Says::Nothing, |method| Says::Frame(without_place(method).into()));
    }
    if line.starts_with(b"NULL") || line.starts_with(b"3XMTHREADINFO3") {
        return Says::Nothing;
    }
    if line.starts_with(b"1") { Says::End } else { Says::Nothing }
}

/// Methods in which a runnable thread waits for somebody else.
const WAITS: [&[u8]; 14] = [
    b".epollWait",
    b"EPoll.wait",
    b".socketAccept",
    b"accept0",
    b".socketRead0",
    b".kevent",
    // Of Java 11 and later.
    b"nio.ch.Net.accept",
    b"nio.ch.Net.poll",
    b"nio.ch.SocketDispatcher.read0",
    b"nio.ch.KQueue.poll",
    b"nio.ch.WEPoll.wait",
    b"nio.ch.Iocp.getQueuedCompletionStatus",
    // The VM's own, which wait for garbage and for other processes.
    b"ref.Reference.waitForReferencePendingList",
    b".waitForProcessExit0",
];

/// Threads of the VM itself.
const OF_THE_VM: [&[u8]; 4] =
    [b"Attach Listener", b"Signal Dispatcher", b"Service Thread", b"CompilerThread"];

#[derive(Default)]
struct Thread {
    name: Vec<u8>,
    runs: bool,
    /// Innermost first.
    stack: Vec<FrameIndex>,
    /// The frames of the carrier, where those above are a virtual thread's.
    carrier: Vec<FrameIndex>,
    waits: bool,
}

fn read(
    input: &mut Input<'_>,
    sink: &mut Sink,
    own: &'static str,
    says: fn(&[u8]) -> Says<'_>,
) -> Result<(), ReadError> {
    let mut lines = input.lines();
    let mut thread = Thread::default();
    let mut waiting = 0_u64;
    let mut is_repetition = false;
    let mut foreign = Foreign::to_log(own);
    loop {
        let line = lines.next_line()?;
        if let Some(line) = &line
            && foreign.takes(line, sink)?
        {
            waiting += u64::from(!thread.end(sink));
            continue;
        }
        let what = line.map_or(Says::End, |line| says(line.text));
        if is_repetition && line.is_some() && !matches!(what, Says::Dump) {
            continue;
        }
        if !matches!(what, Says::State { .. } | Says::Mounted | Says::Frame(_) | Says::Nothing) {
            waiting += u64::from(!thread.end(sink));
        }
        match what {
            Says::Thread { name, runs } => {
                thread.name = pool_name(name).to_vec();
                thread.runs = runs.unwrap_or_default();
            }
            Says::State { runs } => thread.runs = runs,
            Says::Mounted => thread.carrier = std::mem::take(&mut thread.stack),
            Says::Frame(name) => {
                if thread.stack.is_empty() {
                    thread.waits = WAITS.iter().any(|wait| name.ends_with(wait));
                }
                let kind = FrameKind::User;
                thread.stack.push(sink.frame(&name, kind));
            }
            Says::Repetition => is_repetition = true,
            Says::Dump => is_repetition = false,
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
        let mut thread = std::mem::take(self);
        thread.stack.append(&mut thread.carrier);
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
///
/// Classes that the VM has made of lambdas have a number or an address behind a slash, which differs
/// from run to run: `Server$$Lambda$14/0x0000000800c03000.run`, `Server$$Lambda/1828972342.run`;
/// `jhsdb` writes a `+`.
pub(crate) fn method_name(text: &[u8]) -> Cow<'_, [u8]> {
    let name = without_place(text);
    let of_jhsdb = || {
        let at = memchr::memmem::find(name, b"+0x")?;
        memchr::memmem::find(&name[..at], b"$$").map(|_| at)
    };
    let at = memchr::memrchr(b'/', name).or_else(of_jhsdb);
    let Some(at) = at else { return Cow::Borrowed(name) };
    let (class, behind) = (&name[..at], &name[at + 1..]);
    let digits = behind.strip_prefix(b"0x").unwrap_or(behind);
    let len = digits.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(digits.len());
    let is_number = len > 0 && digits.get(len) == Some(&b'.');
    if !is_number || memchr::memmem::find(class, b"$$").is_none() {
        return Cow::Borrowed(behind);
    }
    let class = memchr::memrchr(b'/', class).map_or(class, |at| &class[at + 1..]);
    Cow::Owned([class, &digits[len..]].concat())
}

/// The name of a thread without its number.
fn pool_name(name: &[u8]) -> &[u8] {
    // Virtual threads have no name most of the time.
    if name.is_empty() {
        return b"(unnamed)";
    }
    match memchr::memrchr(b'-', name) {
        Some(at) if at > 0 && is_decimal(&name[at + 1..]) => &name[..at],
        _ => name,
    }
}
