//! Threads that wait are looked at: they do not move, so their stacks can be read.
//!
//! That shows where a thread waits that did so before the recording, or whose switch was not sampled
//! among too many. It counts only if no switch record says that the thread ran meanwhile, see
//! [`OffCpu`](crate::off_cpu::OffCpu).

use std::sync::Arc;
use std::time::{Duration, Instant};

use flame_events::{Addresses, Rest, SampleEvent, StackBytes};
use flame_profile::{Nanos, NotRead, Pid, ProcessAddress, ScriptEnd, StackEnd, Tid};

use super::Collector;
use crate::aggregator::Wait;
use crate::off_cpu::{LONG_WAIT, OffCpu};
use crate::spans::Spans;
use crate::waiting_scripts::WaitingScripts;

/// For how long threads are looked at, at a time, while all are that wait when the recording begins.
const LOOK_AT_ALL: Duration = Duration::from_millis(5);

/// The same of those that have waited for long since.
const LOOK: Duration = Duration::from_micros(500);

/// How often it is asked which threads have waited for long.
const BETWEEN_LISTS: Nanos = Nanos(8_000_000);

/// A wait that lasts this long without a sample is looked at: soon enough that it is when it has lasted for [`LONG_WAIT`],
/// though the session comes here each 10 ms only.
const LONG: Nanos = Nanos(8_000_000);

const _: () = assert!(LONG_WAIT.0 >= LONG.0 + BETWEEN_LISTS.0 + 10_000_000);

/// Who is to be looked at.
#[derive(Debug, Default)]
pub(super) struct Looks {
    waiting: Vec<(Pid, Tid)>,
    /// When it was last asked; never while those are looked at that wait when the recording begins.
    listed: Nanos,
    scripts: WaitingScripts,
}

impl Looks {
    /// The recording begins, while these threads wait.
    pub(super) fn begin(&mut self, waiting: Vec<(Pid, Tid)>) {
        self.waiting = waiting;
    }
}

impl Collector {
    /// Looks where threads wait of which that is not known, for a little while: events come meanwhile, and
    /// are to be taken in.
    pub(crate) fn look_at_waiting(&mut self, clock: impl Fn() -> Nanos) {
        let are_alone = self.wakings.as_ref().is_some_and(|wakings| wakings.are_alone);
        let now = clock();
        let is_due = now.saturating_since(self.looks.listed) >= BETWEEN_LISTS;
        if is_due && !are_alone && self.looks.waiting.is_empty() {
            let Some(away) = self.away() else { return };
            self.looks.waiting = away.wait_somewhere(now, LONG, lacks_callers);
            // There may be no time for all of them, always.
            fastrand::shuffle(&mut self.looks.waiting);
            self.looks.listed = now;
        }
        let is_first = self.looks.listed == Nanos(0);
        let deadline = Instant::now() + if is_first { LOOK_AT_ALL } else { LOOK };
        while Instant::now() < deadline {
            let Some((pid, tid)) = self.looks.waiting.pop() else { return };
            if self.away().is_some_and(|away| away.is_to_be_looked_at(tid, lacks_callers)) {
                self.look_at(pid, tid, &clock);
            }
        }
    }

    /// Threads that are off their CPUs, or in calls.
    fn away(&mut self) -> Option<&mut OffCpu<Wait>> {
        self.spans.as_mut().map(Spans::between).or(self.off_cpu.as_mut())
    }

    /// Finds out where a thread waits.
    fn look_at(&mut self, pid: Pid, tid: Tid, clock: impl Fn() -> Nanos) {
        let files = self.locator.files();
        let text = files.text(pid, &format!("task/{tid}/syscall")).unwrap_or_default();
        let Some((stack, program_counter)) = place_of(&text) else { return };
        let bytes = self.locator.read_stack(pid, stack);
        // Threads of the kernel have none.
        if bytes.is_empty() {
            return;
        }
        let (known, memory) = (self.scripts.known(), self.locator.images.memory());
        let script = known.and_then(|known| {
            let thread = (pid, tid, stack);
            Some(self.looks.scripts.read(&known, thread, &**memory)?.to_vec())
        });
        let rest = match &script {
            Some(script) => Rest::Read { bytes: &[], interrupted: None, script },
            None => Rest::NotRead(NotRead::Late),
        };
        let looked_at = clock();
        self.locator.advance_to(looked_at);
        let place = (program_counter, stack);
        let walked = self.walker.walk_waiting(pid, place, &bytes, &mut self.locator);
        let wait = Wait::default();
        if let Some(away) = self.away() {
            away.looked_at(looked_at, tid, Arc::clone(&wait));
        }
        let sample = SampleEvent {
            event: self.events - 1,
            pid,
            tid,
            cpu: None,
            period: 0,
            tracepoint: None,
            interrupt: None,
            ip: program_counter,
            kernel_chain: Addresses::default(),
            user_chain: Addresses::default(),
            user_registers: Some(Vec::new()),
            user_stack: Some(StackBytes { head: &bytes, rest, ..StackBytes::default() }),
        };
        self.take_walked(looked_at, &sample, walked, Some(wait));
    }
}

/// Whether its stack goes on beyond its copy, or nobody could read in time what runs in an interpreter: the thread of a
/// long wait can be read later, too.
pub(super) fn lacks_callers(wait: &Wait) -> bool {
    let Some(seen) = wait.get() else { return false };
    // Also where the copy ends before a page that was never written, such as one of a buffer.
    matches!(seen.end.0, StackEnd::CopyTooShort | StackEnd::BadValue)
        || seen.script.is_some_and(|(_, end)| {
            matches!(
                end,
                ScriptEnd::NotRead | ScriptEnd::Early | ScriptEnd::NoThread | ScriptEnd::Unnamed
            )
        })
}

/// Where a thread's stack ends and where its code is, if it waits in a system call: its number, six
/// arguments, and those two.
fn place_of(syscall: &[u8]) -> Option<(ProcessAddress, ProcessAddress)> {
    let text = std::str::from_utf8(syscall).ok()?;
    let mut words = text.split_ascii_whitespace().rev();
    let mut address = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let (code, stack) = (address()?, address()?);
    Some((ProcessAddress(stack), ProcessAddress(code)))
}
