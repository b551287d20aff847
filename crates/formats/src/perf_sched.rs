//! `perf script` of scheduler events as time off CPU: `perf record -g -e sched:sched_switch`, with or
//! without `sched:sched_stat_sleep` and its like, and `perf sched record -g`.
//!
//! ```text
//! server  4242 [000]  10.000100: sched:sched_switch: prev_comm=server prev_pid=4242 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
//!         ffffffff81a0 schedule ([kernel.kallsyms])
//!                 55d2 wait_for_input (/usr/bin/server)
//! ```
//!
//! A thread waits with the stack of its switch until an event says that it runs again. Where only the
//! threads of one program were recorded, their switches back are in nobody's events: the kernel's own
//! figure of the wait, in `sched_stat_*`, counts then, which leaves out the time to get a CPU.

use std::collections::HashMap;

use flame_profile::{FrameKind, Nanos, ValueType};
use rustc_hash::FxBuildHasher;

use crate::ReadError;
use crate::head::Head;
use crate::input::Input;
use crate::names::{number, rfind};
use crate::perf_script::{self, Event};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sample, Sink, TaskIndex, TaskName};

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "perf-sched",
    description: "time off CPU of perf script's sched:sched_switch (and sched_stat_*) events",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        // Switches alone may be meant to be counted.
        head.contains(b" sched:sched_switch: ")
            && [&b" sched:sched_stat_sleep: "[..], b" sched:sched_stat_blocked: "]
                .iter()
                .any(|event| head.contains(event))
    },
    reader: Reader::Stacks(read),
};

/// A thread that has left its CPU.
#[derive(Debug)]
struct Waiting {
    since: Nanos,
    /// Outermost first.
    stack: Vec<FrameIndex>,
    task: Option<TaskIndex>,
    cpu: Option<u32>,
    /// What the kernel says of the wait.
    said: Option<u64>,
}

/// Who waits, by the thread's number.
#[derive(Debug, Default)]
struct Waits {
    waiting: HashMap<u32, Waiting, FxBuildHasher>,
    without_next: u64,
    without_end: u64,
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    sink.set_values(vec![
        ValueType::new("off-cpu", "nanoseconds"),
        ValueType::new("waits", "count"),
    ]);
    let preempted = sink.frame(b"[preempted]", FrameKind::Mark);
    let mut waits = Waits::default();
    perf_script::for_each(input, sink, &mut |sink, event, stack| {
        waits.take(sink, event, stack, preempted);
    })?;
    waits.finish(sink);
    Ok(())
}

impl Waits {
    fn take(
        &mut self,
        sink: &mut Sink,
        event: &Event<'_>,
        stack: &[FrameIndex],
        preempted: FrameIndex,
    ) {
        let Some(kind) = event.name.strip_prefix(b"sched:") else { return };
        let Some(time) = event.time else { return };
        if kind.starts_with(b"sched_stat_") && kind != b"sched_stat_runtime" {
            let waiting = argument(event.arguments, b"pid=").and_then(number::<u32>);
            let waiting = waiting.and_then(|tid| self.waiting.get_mut(&tid));
            let delay = argument(event.arguments, b"delay=").and_then(number::<u64>);
            if let (Some(waiting), Some(delay)) = (waiting, delay) {
                waiting.said = Some(waiting.said.unwrap_or(0).saturating_add(delay));
            }
            return;
        }
        if kind != b"sched_switch" {
            return;
        }
        let (before, behind) = match memchr::memmem::find(event.arguments, b"==>") {
            Some(at) => event.arguments.split_at(at),
            None => (event.arguments, &b""[..]),
        };
        match next(behind) {
            Some(next) => {
                if let Some(waiting) = self.waiting.remove(&next) {
                    let length = time.saturating_since(waiting.since).0;
                    add(sink, &waiting, length);
                }
            }
            None => self.without_next += 1,
        }
        // A thread that ends has no number any more in the line of its last switches: `:-1 -1`.
        let said = argument(before, b"prev_pid=").and_then(number);
        // Nothing waits for CPUs that have nothing to do.
        let Some(tid) = said.or(event.tid).filter(|tid| *tid != 0) else { return };
        let task = match event.tid {
            None => named(sink, before, tid).or(event.task),
            Some(_) => event.task,
        };
        let mut stack = stack.to_vec();
        match state(before).first() {
            Some(b'R') => stack.push(preempted),
            // It ends.
            Some(b'X' | b'Z' | b'x') => return,
            _ => {}
        }
        let waiting = Waiting { since: time, stack, task, cpu: event.cpu, said: None };
        if let Some(before) = self.waiting.insert(tid, waiting) {
            self.end(sink, &before);
        }
    }

    /// A wait whose end was not seen.
    fn end(&mut self, sink: &mut Sink, waiting: &Waiting) {
        match waiting.said {
            Some(said) => add(sink, waiting, said),
            None => self.without_end += 1,
        }
    }

    fn finish(mut self, sink: &mut Sink) {
        let mut left: Vec<_> = self.waiting.drain().collect();
        left.sort_unstable_by_key(|(tid, _)| *tid);
        left.iter().for_each(|(_, waiting)| self.end(sink, waiting));
        if self.without_end > 0 {
            sink.note(format!(
                "waits whose end is not in the file: {}; left out",
                self.without_end
            ));
        }
        if self.without_next > 0 {
            let count = self.without_next;
            sink.note(format!(
                "switches that do not name the next thread: {count}; use perf script -F +trace"
            ));
        }
    }
}

fn add(sink: &mut Sink, waiting: &Waiting, length: u64) {
    let Waiting { stack, task, cpu, since, .. } = waiting;
    let (task, cpu, time) = (*task, *cpu, Some(*since));
    sink.add(&Sample { task, cpu, time, ..Sample::new(stack, &[length, 1]) });
}

/// What stands behind a name: `next_pid=` in `next_comm=a b next_pid=7 next_prio=120`.
fn argument<'a>(arguments: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let at = rfind(arguments, name)? + name.len();
    let end = arguments[at..].iter().position(|byte| !byte.is_ascii_alphanumeric());
    Some(&arguments[at..end.map_or(arguments.len(), |end| at + end)])
}

/// The thread by the name that the switch has: `prev_comm=two words prev_pid=`.
fn named(sink: &mut Sink, before: &[u8], tid: u32) -> Option<TaskIndex> {
    let rest = before.strip_prefix(b"prev_comm=")?;
    let end = rfind(rest, b" prev_pid=")?;
    let shown = |byte: &u8| if *byte == b' ' { b'_' } else { *byte };
    let name: Vec<u8> = rest[..end].iter().map(shown).collect();
    Some(sink.task(TaskName { name: &name, tid: Some(tid), ..TaskName::default() }))
}

/// The number of the thread that runs now: `==> next_comm=x next_pid=7 next_prio=120`, or, where perf
/// was built with plugins, `==> x:7 [120]`.
fn next(behind: &[u8]) -> Option<u32> {
    if let Some(pid) = argument(behind, b"next_pid=") {
        return number(pid);
    }
    let end = rfind(behind, b" [")?;
    let start = memchr::memrchr(b':', &behind[..end])? + 1;
    number(&behind[start..end])
}

/// Why a thread left its CPU: `S` of `prev_state=S`, or of `server:7 [120] S`; `R` where it could have gone
/// on.
fn state(before: &[u8]) -> &[u8] {
    let last = || before.trim_ascii().rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    argument(before, b"prev_state=").unwrap_or_else(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_write_a_switch_are_read() {
        let plain = b"prev_comm=a b prev_pid=5 prev_prio=120 prev_state=R+ ";
        assert_eq!((state(plain), state(b"a b:5 [120] R+ ")), (&b"R"[..], &b"R+"[..]));
        assert_eq!(state(b"R:5 [120] S "), b"S");
        assert_eq!(state(b""), b"");
        assert_eq!(next(b"==> next_comm=x next_pid=9 y next_pid=7 next_prio=120"), Some(7));
        assert_eq!(next(b"==> swapper/0:0 [120]"), Some(0));
        assert_eq!(next(b"==> a: [1] b:12 [98]"), Some(12));
        assert_eq!((next(b""), next(b"==> x [120]")), (None, None));
    }
}
