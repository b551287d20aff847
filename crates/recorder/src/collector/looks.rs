//! Threads that wait are looked at: they do not move, so their stacks can be read.
//!
//! That shows where a thread waits that did so before the recording, or whose switch was not sampled
//! among too many. It counts only if no switch record says that the thread ran meanwhile, see
//! [`OffCpu`](crate::off_cpu::OffCpu).

use std::sync::Arc;
use std::time::{Duration, Instant};

use flame_events::{Addresses, Rest, SampleEvent, StackBytes};
use flame_profile::{Evidence, Nanos, NotRead, Pid, ProcessAddress, ScriptEnd, StackEnd, Tid};

use super::Collector;
use crate::aggregator::Wait;
use crate::off_cpu::{LONG_WAIT, OffCpu};
use crate::spans::Spans;
use crate::waiting_scripts::WaitingScripts;

/// For how long threads are looked at, at a time, while all are that wait when the recording begins.
const LOOK_AT_ALL: Duration = Duration::from_millis(5);

/// The same of those that have waited for long since.
const LOOK: Duration = Duration::from_micros(500);

/// It rests for so many times as long as it looked: a tenth of a CPU is what looks take at most. Those that have a sample, of
/// which only a part is missing, wait for twice as long, and nobody for them.
const REST_PER_LOOK: u32 = 9;
const REST_OF_SAMPLED: u32 = 19;

/// How much is read of the stack of a thread that waits: of most threads the former is all.
const SHORT_STACK: usize = 32 << 10;
const LONG_STACK: usize = 512 << 10;

/// How soon the session comes here while waits go unsampled.
pub(crate) const SOON: Duration = Duration::from_millis(2);

/// For so long after waits went unsampled.
const LATELY: Duration = Duration::from_secs(1);

/// What was written less than that ago is not known yet.
const SETTLE: Duration = Duration::from_millis(1);

/// A wait that lasts this long without a sample is looked at: as soon as it is known, mostly.
const LONG: Nanos = Nanos(1_000_000);

/// When a wait is looked at that takes [`LONG_WAIT`], as long as looks are not too many and flame has its CPU.
const _: () = assert!(LONG_WAIT.0 as u128 > (SOON.as_nanos() + SETTLE.as_nanos()) * 3 / 2);

/// Who is to be looked at.
#[derive(Debug, Default)]
pub(super) struct Looks {
    waiting: Vec<(Pid, Tid)>,
    /// When it was last asked; never while those are looked at that wait when the recording begins.
    listed: Nanos,
    rests_until: Option<Instant>,
    /// The same for those that have a sample.
    rests_of_sampled: Option<Instant>,
    /// How many waits were not sampled when that changed last, and when that was.
    unsampled: (u64, Option<Instant>),
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
        let is_first = self.looks.listed == Nanos(0) && !self.looks.waiting.is_empty();
        let begun = Instant::now();
        if !is_first && self.looks.rests_until.is_some_and(|until| begun < until) {
            return;
        }
        if !is_first {
            self.list_waiting(clock());
        }
        let deadline = begun + if is_first { LOOK_AT_ALL } else { LOOK };
        while Instant::now() < deadline {
            let Some((pid, tid)) = self.looks.waiting.pop() else { break };
            let Some(away) = self.away() else { break };
            let (is_sampled, now) = (away.is_sampled(tid), Instant::now());
            let rests = self.looks.rests_of_sampled.filter(|_| is_sampled && !is_first);
            // All that come behind it have a sample, too.
            if rests.is_some_and(|until| now < until) {
                break;
            }
            if self.away().is_some_and(|away| away.is_to_be_looked_at(tid, lacks_callers)) {
                self.look_at(pid, tid, &clock);
                let (took, end) = (now.elapsed(), Instant::now());
                match is_sampled {
                    true => self.looks.rests_of_sampled = Some(end + took * REST_OF_SAMPLED),
                    false => self.looks.rests_until = Some(end + took * REST_PER_LOOK),
                }
            }
        }
    }

    /// Lists who waits now and is to be looked at, those without any sample last, which are looked at first.
    fn list_waiting(&mut self, now: Nanos) {
        if self.wakings.as_ref().is_some_and(|wakings| wakings.are_alone) {
            return;
        }
        let Some(away) = self.away() else { return };
        let mut waiting = away.wait_somewhere(now, LONG, lacks_callers);
        // There may be no time for all of them, always.
        fastrand::shuffle(&mut waiting);
        waiting.sort_by_key(|(_, tid)| !away.is_sampled(*tid));
        (self.looks.waiting, self.looks.listed) = (waiting, now);
    }

    /// Whether waits went unsampled lately: long ones among those to come are to be looked at.
    pub(crate) fn is_to_look_soon(&mut self) -> bool {
        let waits = self.away().map_or(0, |away| away.unsampled_waits());
        let (before, since) = &mut self.looks.unsampled;
        if *before != waits {
            (*before, *since) = (waits, Some(Instant::now()));
        }
        since.is_some_and(|since| since.elapsed() < LATELY)
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
        let (known, memory) = (self.scripts.known(), self.locator.images.memory());
        let script = known.and_then(|known| {
            let thread = (pid, tid, stack);
            Some(self.looks.scripts.read(&known, thread, &**memory)?.to_vec())
        });
        // What counts is when the last of it was read.
        let place = (program_counter, stack);
        let Some((bytes, looked_at, walked)) = self.walk_waiting(pid, place, &clock) else {
            return;
        };
        let rest = match &script {
            Some(script) => Rest::Read { bytes: &[], interrupted: None, script },
            None => Rest::NotRead(NotRead::Late),
        };
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

    /// Reads and walks the stack of a thread that waits there: what was read, when, and how the walk ended. Threads of the
    /// kernel have none.
    fn walk_waiting(
        &mut self,
        pid: Pid,
        place: (ProcessAddress, ProcessAddress),
        clock: impl Fn() -> Nanos,
    ) -> Option<(Vec<u8>, Nanos, (StackEnd, Evidence))> {
        let mut last = None;
        for most in [SHORT_STACK, LONG_STACK] {
            let bytes = self.locator.read_stack(pid, place.1, most);
            if bytes.is_empty() {
                break;
            }
            let looked_at = clock();
            self.locator.advance_to(looked_at);
            let walked = self.walker.walk_waiting(pid, place, &bytes, &mut self.locator);
            let is_short = walked.0 == StackEnd::CopyTooShort;
            last = Some((bytes, looked_at, walked));
            if !is_short {
                break;
            }
        }
        last
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
