//! What a stack has beyond its copy, read while the thread that was sampled cannot go on.
//!
//! ```text
//!   stack pointer                    copied                           end of the stack
//!   | copy in the sample ..... |known| rest ............................ |
//!                              ^ read from here: what was copied must still stand there
//! ```
//!
//! Who reads runs on the CPU that was sampled and goes before the target, so the stack stands as the
//! sample saw it: of 105,032 stacks that were read so, each was. Whether that holds for a stack is
//! checked all the same: the thread must not be of a class that goes before the reader, and the last
//! words of the copy must be what is read.

use std::io::IoSliceMut;
use std::ops::Range;

use flame_events::{RecordBytes, RecordLayout};
use flame_interpreters::SampledRegisters;
use flame_profile::{Nanos, NotRead, ProcessAddress, Tid};
use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};

use crate::other_stack::{self, Found};
use crate::realtime;
use crate::scripts::Scripts;
use crate::signal_frame;

/// How much is read at most of a stack. Those that go further stay truncated.
pub(crate) const MOST: usize = 1 << 20;

/// How much is read at most of a stack that a signal has interrupted.
const MOST_INTERRUPTED: usize = 256 * 1024;

/// How much is read at most of the stack of a caller elsewhere.
const MOST_ELSEWHERE: usize = 64 * 1024;

/// How much is read below a caller's frame pointer there: the rest of its own frame.
const BELOW_FRAME_POINTER: u64 = 4096;

/// The most bytes that one sample needs.
pub(crate) const SCRATCH: usize = MOST + MOST_INTERRUPTED + Scripts::MOST;

/// The smallest page that there is: those of a stack are looked for by it.
const PAGE: u64 = 4096;

/// More than nearly all stacks have.
const LARGE: usize = 64 * 1024;

/// How many bytes of the copy are read once more, to compare them.
const KNOWN: usize = 64;

/// How many of its first bytes are, where the thread may have gone on: nearly all that runs changes some of them.
const TOP: usize = 256;

/// The bit of the stack pointer among the registers (PERF_REG_X86_SP, PERF_REG_ARM64_SP).
const STACK_POINTER: u32 = if cfg!(target_arch = "aarch64") { 31 } else { 7 };

/// The same of the frame pointer (PERF_REG_X86_BP, PERF_REG_ARM64_X29).
const FRAME_POINTER: u32 = if cfg!(target_arch = "aarch64") { 29 } else { 6 };

/// Those that an interpreter in assembler is read by: the instruction pointer, rbx and rdx (PERF_REG_X86_IP,
/// PERF_REG_X86_BX, PERF_REG_X86_DX); and that which points to the goroutine that runs (PERF_REG_X86_R14,
/// PERF_REG_ARM64_X28).
const OTHERS: [u32; 4] = [8, 1, 3, if cfg!(target_arch = "aarch64") { 28 } else { 22 }];

/// A stack to be read on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    time: Nanos,
    tid: Tid,
    /// The stack pointer.
    start: ProcessAddress,
    /// Registers by which an interpreter is read.
    registers: SampledRegisters,
    /// The first byte that was not copied.
    from: ProcessAddress,
    /// How much there can be from there on; nothing where the whole stack was copied.
    most: usize,
    /// Where the bounds of the stack stand, if a goroutine runs.
    goroutine: u64,
    /// The last bytes that were, the first `known` of them.
    last: [u8; KNOWN],
    known: usize,
    /// The first bytes that were copied.
    first: [u8; TOP],
    /// Other stacks that this one may go on.
    others: [Option<Other>; 2],
}

/// Where a stack may go on behind its own end: on that which a signal has interrupted, or that which the
/// caller of code on this one has.
#[derive(Clone, Copy, Debug)]
struct Other {
    start: ProcessAddress,
    /// How much of it is read at most.
    most: usize,
    /// The first address that is known to lie on it.
    holds: ProcessAddress,
    /// Whether `holds` may just as well lie further out on the same stack.
    may_be_same: bool,
    /// The last address of this stack that leads there; nothing if a register does.
    led_by: Option<ProcessAddress>,
    /// Whether it is only looked for where a goroutine runs: else the register may have any number.
    is_of_go: bool,
}

impl Other {
    fn interrupted(signal_frame: ProcessAddress, start: ProcessAddress) -> Other {
        let (most, led_by) = (MOST_INTERRUPTED, Some(signal_frame));
        Other { start, most, holds: start, may_be_same: false, led_by, is_of_go: false }
    }

    fn behind(inner: &Range<u64>) -> Other {
        let (start, most) = (ProcessAddress(inner.end), MOST_ELSEWHERE);
        Other { start, most, holds: start, may_be_same: false, led_by: None, is_of_go: false }
    }

    /// That of a caller, whose frame pointer is known.
    fn of_caller(Found { frame_pointer, saved_at }: Found) -> Option<Other> {
        let start = ProcessAddress(frame_pointer.0.checked_sub(BELOW_FRAME_POINTER)?);
        let (most, led_by, is_of_go) = (MOST_ELSEWHERE, saved_at, saved_at.is_none());
        Some(Other { start, most, holds: frame_pointer, may_be_same: true, led_by, is_of_go })
    }

    /// Whether it is not just what lies up to there on the same stack.
    fn is_beyond(&self, stack: Range<u64>) -> bool {
        !self.may_be_same || !stack.contains(&self.holds.0)
    }
}

/// What was read of a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Read {
    /// How many bytes follow the copy.
    pub(crate) rest: usize,
    /// Where the interrupted stack starts, and how many bytes of it follow `rest`.
    pub(crate) interrupted: Option<(ProcessAddress, usize)>,
    /// How many bytes of an interpreter follow those.
    pub(crate) script: usize,
    /// When all was read.
    pub(crate) until: Nanos,
    /// Whether the thread may have gone on before.
    pub(crate) went_on: bool,
}

impl Read {
    /// How many bytes of stacks there are.
    pub(crate) fn stacks(&self) -> usize {
        self.rest + self.interrupted.map_or(0, |(_, len)| len)
    }
}

impl Wanted {
    /// The stack of a sample; `None` where there is none to be read on. `end_of` says where the stack
    /// of a thread with that stack pointer ends.
    pub(crate) fn of(
        record: &RecordBytes<'_>,
        layout: &RecordLayout,
        end_of: impl FnOnce(Tid, ProcessAddress) -> Option<ProcessAddress>,
    ) -> Option<Wanted> {
        let stack = layout.copied_stack(record, (STACK_POINTER, FRAME_POINTER), OTHERS)?;
        let (head, tail) = (stack.bytes.head, stack.bytes.tail);
        let len = head.len() + tail.len();
        let known = len.min(KNOWN);
        let (mut last, mut first) = ([0; KNOWN], [0; TOP]);
        let end = head.iter().chain(tail).skip(len - known);
        last.iter_mut().zip(end).for_each(|(to, from)| *to = *from);
        let (of_head, of_tail) = first.split_at_mut(head.len().min(TOP));
        of_head.copy_from_slice(&head[..of_head.len()]);
        let of_tail = &mut of_tail[..tail.len().min(TOP - of_head.len())];
        of_tail.copy_from_slice(&tail[..of_tail.len()]);
        let sp = stack.stack_pointer;
        let signal = [(head, 0), (tail, head.len())].into_iter().find_map(|(part, before)| {
            let (at, start) = signal_frame::find(part, sp)?;
            Some(Other::interrupted(ProcessAddress(sp.0.checked_add((before + at) as u64)?), start))
        });
        let from = ProcessAddress(sp.0.checked_add(len as u64)?);
        let most = match end_of(stack.tid, sp) {
            Some(end) => MOST.min(usize::try_from(end.0.saturating_sub(from.0)).unwrap_or(MOST)),
            None => MOST,
        };
        let caller = stack.frame_pointer.and_then(|at| other_stack::find((head, tail), sp, at));
        let others = [signal, caller.and_then(Other::of_caller)];
        let (time, tid) = (stack.time, stack.tid);
        let [instruction, next, base, goroutine] = stack.others;
        // arm64 has another one there.
        let frame = if cfg!(target_arch = "aarch64") { 0 } else { goroutine };
        let registers = SampledRegisters { instruction, next, base, frame };
        let start = sp;
        let wanted = Wanted {
            time,
            tid,
            start,
            registers,
            from,
            most,
            goroutine,
            last,
            known,
            first,
            others,
        };
        Some(wanted)
    }

    /// When the sample was taken.
    pub(crate) fn time(&self) -> Nanos {
        self.time
    }

    /// The thread.
    pub(crate) fn tid(&self) -> Tid {
        self.tid
    }

    /// Registers by which an interpreter is read.
    pub(crate) fn registers(&self) -> SampledRegisters {
        self.registers
    }

    /// Where the stack ended.
    pub(crate) fn start(&self) -> ProcessAddress {
        self.start
    }

    /// Whether it was copied as a whole.
    pub(crate) fn is_whole(&self) -> bool {
        self.most == 0 && self.others.iter().all(Option::is_none)
    }

    /// Whether its copy lacks something that lies elsewhere, as far as can be told without a look.
    pub(crate) fn lacks_some(&self) -> bool {
        let copied = self.start.0..self.from.0;
        let leads = |other: &Other| !other.is_of_go && other.is_beyond(copied.clone());
        self.most > 0 || self.others.iter().flatten().any(leads)
    }

    /// Whether a goroutine runs, of which there may be a stack elsewhere.
    pub(crate) fn is_of_goroutine(&self) -> bool {
        let may_be = self.others.iter().flatten().any(|other| other.is_of_go);
        may_be && self.end_of_goroutine().is_some()
    }

    /// Whether the first bytes are still those that were copied.
    pub(crate) fn stands(&self) -> bool {
        let mut now = [0; TOP];
        let copied = usize::try_from(self.from.0.saturating_sub(self.start.0)).unwrap_or(TOP);
        let now = &mut now[..copied.min(TOP)];
        let len = now.len();
        self.read_at(self.start, now) == Ok(len) && self.first.get(..len) == Some(now)
    }

    /// Whether it has far more than most.
    pub(crate) fn is_long(&self) -> bool {
        self.most > LARGE
    }

    /// The same without memory that lies within it: it goes on behind that as another stack would.
    pub(crate) fn around(&self, inner: Range<u64>) -> Wanted {
        let before = usize::try_from(inner.start.saturating_sub(self.from.0)).unwrap_or(usize::MAX);
        let behind = inner.end.saturating_sub(self.from.0);
        let all = self.start.0..self.from.0.saturating_add(self.most as u64);
        let leads = |other: &Other| !other.is_of_go && other.is_beyond(all.clone());
        let leads_elsewhere = self.others.iter().flatten().any(leads);
        if leads_elsewhere || before >= self.most || behind == 0 {
            return *self;
        }
        Wanted { most: before, others: [Some(Other::behind(&inner)), None], ..*self }
    }

    /// Reads it into `scratch`, of at least [`SCRATCH`] bytes.
    ///
    /// # Errors
    /// Why it was not read.
    pub(crate) fn read(&self, scratch: &mut [u8]) -> Result<Read, NotRead> {
        if realtime::is_ahead(self.tid) {
            return Err(NotRead::RealTime);
        }
        let (first, second) = scratch.split_at_mut(MOST);
        let of_go = self.end_of_goroutine();
        let end = of_go.unwrap_or(self.from.0.saturating_add(self.most as u64));
        let most = usize::try_from(end.saturating_sub(self.from.0)).unwrap_or(MOST).min(self.most);
        let rest = match most {
            0 => 0,
            most => self.read_rest(&mut first[..(most + self.known).min(MOST)])?,
        };
        // What was copied beyond the end is of other stacks.
        let own = self.start.0..self.from.0.saturating_add(rest as u64).min(end);
        let leads = |other: &&Other| {
            let is_led = other.led_by.is_none_or(|at| at.0 < end);
            is_led && (of_go.is_some() || !other.is_of_go) && other.is_beyond(own.clone())
        };
        let other = self.others.iter().flatten().filter(leads).find_map(|other| {
            let into = second.get_mut(..other.most)?;
            Some((other.start, self.read_at(other.start, into).ok()?))
        });
        if let Some((_, len)) = other {
            scratch.copy_within(MOST..MOST + len, rest);
        }
        Ok(Read { rest, interrupted: other, ..Read::default() })
    }

    /// Reads what follows the copy, and the end of that, which must stand there still.
    fn read_rest(&self, into: &mut [u8]) -> Result<usize, NotRead> {
        let base = ProcessAddress(self.from.0.saturating_sub(self.known as u64));
        let read = match self.read_at(base, into) {
            Err(NotRead::Unreadable) if self.known == 0 => self.read_behind_gap(into)?,
            read => read?,
        };
        if into.get(..self.known.min(read)) != self.last.get(..self.known) {
            return Err(NotRead::Changed);
        }
        into.copy_within(self.known..read, 0);
        Ok(read - self.known)
    }

    /// The same of a stack whose first pages are not there yet, since nobody has written to them: as zeros. The kernel adds
    /// them when somebody does.
    fn read_behind_gap(&self, into: &mut [u8]) -> Result<usize, NotRead> {
        // A program may have put any number there.
        if self.from.0 >= 1 << 56 {
            return Err(NotRead::Unreadable);
        }
        let is_there = |gap: u64| self.read_at(ProcessAddress(self.from.0 + gap), &mut [0]).is_ok();
        let to_page = self.from.0.next_multiple_of(PAGE) - self.from.0;
        let mut pages = 1;
        while !is_there(to_page + pages * PAGE) {
            pages *= 2;
            if pages * PAGE >= into.len() as u64 {
                return Err(NotRead::Unreadable);
            }
        }
        // The first of the pages that are there lies in the second half of those.
        let (mut missing, mut there) = (pages / 2, pages);
        while missing + 1 < there {
            let middle = missing.midpoint(there);
            if is_there(to_page + middle * PAGE) { there = middle } else { missing = middle }
        }
        let first = if is_there(to_page) { 0 } else { there };
        let gap = usize::try_from(to_page + first * PAGE).unwrap_or(usize::MAX).min(into.len());
        let (zeros, rest) = into.split_at_mut(gap);
        zeros.fill(0);
        Ok(gap + self.read_at(ProcessAddress(self.from.0 + gap as u64), rest)?)
    }

    /// Where the stack of a goroutine ends, if one runs. The memory that goroutines have their stacks in does
    /// not end with one of them; where each does stands in front of what the runtime of Go knows of it.
    fn end_of_goroutine(&self) -> Option<u64> {
        let mut bounds = [0; 16];
        let is_wanted = self.is_long() || self.others.iter().flatten().any(|other| other.is_of_go);
        // The register has any number in programs that are not of Go; user space lies in this half.
        let is_address =
            (1 << 16..1 << 48).contains(&self.goroutine) && self.goroutine.is_multiple_of(8);
        let is_read = is_wanted
            && is_address
            && self.read_at(ProcessAddress(self.goroutine), &mut bounds) == Ok(bounds.len());
        let [low, high] = [0, 8].map(|at| {
            let word = bounds.get(at..).and_then(<[u8]>::first_chunk);
            word.map_or(0, |word| u64::from_ne_bytes(*word))
        });
        (is_read && (low..high).contains(&self.start.0)).then_some(high)
    }

    fn read_at(&self, base: ProcessAddress, into: &mut [u8]) -> Result<usize, NotRead> {
        let base = usize::try_from(base.0).map_err(|_| NotRead::Unreadable)?;
        let remote = [RemoteIoVec { base, len: into.len() }];
        // Numbers of tasks are below 2^22.
        let tid = nix::unistd::Pid::from_raw(i32::try_from(self.tid.0).unwrap_or(0));
        process_vm_readv(tid, &mut [IoSliceMut::new(into)], &remote).map_err(|errno| match errno {
            Errno::EPERM => NotRead::Denied,
            _ => NotRead::Unreadable,
        })
    }
}

#[cfg(test)]
mod tests;
