//! Registers and stack bytes of a sample become addresses, and how the walk ended.

use std::sync::Arc;

use flame_events::{Found, Rest, SampleEvent};
use flame_interpreters::{Caught, Outcome, RunningTrace};
use flame_profile::{ByteLen, Evidence, Health, NotRead, Pid, ProcessAddress, StackEnd};
use flame_sampler::StackRoots;
use flame_unwind::{
    Architecture, CfiUnwinder, Code, FindCode, FrameAddress, Left, Registers, RuntimeCaller,
    RuntimeFrame, StackCopy, StackLimit,
};

use crate::config::{Options, ScriptFrames, Stream};
use crate::locator::{KERNEL_START, Locator};

/// Walks user stacks.
#[derive(Debug)]
pub(crate) struct Walker {
    register_mask: u64,
    wants_user: bool,
    max_depth: usize,
    stack_asked: ByteLen,
    unwinder: CfiUnwinder,
    /// The user frames of the last sample, innermost first.
    frames: Vec<FrameAddress>,
    /// The registers of each, where somebody wants them.
    registers: Vec<Registers>,
    wants_registers: bool,
    /// The stack pointer of the outermost of them.
    outermost: ProcessAddress,
    roots: Option<Arc<StackRoots>>,
}

impl Walker {
    pub(crate) fn new(stream: &Stream, options: &Options) -> Walker {
        Walker {
            register_mask: stream.user_registers,
            wants_user: stream.has_user,
            max_depth: options.max_depth,
            stack_asked: stream.stack_copy,
            unwinder: CfiUnwinder::new(Architecture::NATIVE),
            frames: Vec::new(),
            registers: Vec::new(),
            wants_registers: !matches!(options.scripts, ScriptFrames::Hidden),
            outermost: ProcessAddress(0),
            roots: options.stack_roots.clone(),
        }
    }

    /// The most frames that a stack has.
    pub(crate) fn max_depth(&self) -> usize {
        self.max_depth
    }

    /// The user frames of the last sample, innermost first, and what learns of images that they meet.
    pub(crate) fn walked(&mut self) -> (&[FrameAddress], &mut CfiUnwinder) {
        (&self.frames, &mut self.unwinder)
    }

    /// Leaves out what was found beyond so many frames.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.frames.truncate(len);
        self.registers.truncate(len);
    }

    /// The registers of each of those frames, as far as they were unwound; nothing where nobody wants them.
    pub(crate) fn registers(&self) -> &[Registers] {
        &self.registers
    }

    /// Fills `self.frames` with the user frames, innermost first; how that ended, and what it rests
    /// on.
    pub(crate) fn walk(
        &mut self,
        sample: &SampleEvent<'_>,
        code: &mut Locator,
        health: &mut Health,
    ) -> (StackEnd, Evidence) {
        self.frames.clear();
        self.registers.clear();
        if !self.wants_user {
            return (StackEnd::NotRecorded, Evidence::Copied);
        }
        if let Some(values) = &sample.user_registers {
            return self.walk_copy(sample, values.iter().copied(), code, health);
        }
        if self.register_mask != 0 {
            // Registers were asked for and there are none: a task without user memory, a kernel
            // thread or one that is exiting. Its stack is the kernel's alone.
            return (StackEnd::Root, Evidence::Copied);
        }
        let chain = sample.user_chain.iter().enumerate();
        self.frames.extend(chain.map(|(index, address)| match index {
            0 => FrameAddress::Instruction(address),
            _ => FrameAddress::Return(address),
        }));
        if self.frames.len() > self.max_depth {
            self.frames.truncate(self.max_depth);
            return (StackEnd::FrameLimit, Evidence::Copied);
        }
        if !self.frames.is_empty() {
            return (StackEnd::ChainEnd, Evidence::Copied);
        }
        if sample.kernel_chain.is_empty() && sample.ip < KERNEL_START {
            self.frames.push(FrameAddress::Instruction(sample.ip));
        }
        (StackEnd::NotRecorded, Evidence::Copied)
    }

    fn walk_copy(
        &mut self,
        sample: &SampleEvent<'_>,
        values: impl IntoIterator<Item = u64>,
        code: &mut Locator,
        health: &mut Health,
    ) -> (StackEnd, Evidence) {
        let registers = Registers::from_perf(Architecture::NATIVE, self.register_mask, values);
        let bytes = sample.user_stack.unwrap_or_default();
        let copied = ByteLen((bytes.head.len() + bytes.tail.len()) as u64);
        health.stack_copies.add(self.stack_asked, copied);
        let start = registers.stack_pointer(Architecture::NATIVE).unwrap_or_default();
        // A copy that stops short need not have come to the end of the stack: the kernel skips
        // pages that are not in memory, such as those of a large array nobody has written to yet.
        let copy = StackCopy::new(start, bytes.head, bytes.tail, StackLimit::CopyFull);
        let end = match self.unwind(sample.pid, &registers, (&copy, trace_of(sample)), code) {
            StackEnd::CopyTooShort => return self.walk_on(sample, &registers, &copy, code, health),
            // The other stack may have been read as well.
            StackEnd::OtherStack => {
                return match sample.user_stack.unwrap_or_default().rest {
                    Rest::NotRead(why) => {
                        self.note_unread(why, health);
                        (StackEnd::OtherStack, Evidence::Copied)
                    }
                    Rest::Read { .. } => self.walk_on(sample, &registers, &copy, code, health),
                };
            }
            // Nothing was copied. In the middle of an exec the registers are those of the old
            // program, whose memory is gone already, its code as well: there is no user stack.
            StackEnd::NotRecorded
                if !sample.kernel_chain.is_empty() && !self.is_in_code(sample.pid, code) =>
            {
                self.frames.clear();
                StackEnd::NotRecorded
            }
            // Code of the program itself ran, or called the kernel, so there is a stack: nobody may have written to
            // its page yet.
            StackEnd::NotRecorded if !self.frames.is_empty() => {
                return self.walk_on(sample, &registers, &copy, code, health);
            }
            end => end,
        };
        let evidence = match end {
            StackEnd::Guessed => Evidence::GuessedFrames,
            _ => Evidence::Copied,
        };
        self.note_root(sample, end, code);
        (end, evidence)
    }

    /// Whether the innermost frame is in code of the process.
    fn is_in_code(&self, pid: Pid, code: &mut Locator) -> bool {
        let found = self.frames.first().map(|frame| code.code(pid, frame.lookup_address()));
        matches!(found, Some(Ok(found)) if found != Code::NotCode)
    }

    /// Tells readers where the stack ended that was walked last. Those of goroutines do not stay where
    /// they are, and say themselves where they end.
    fn note_root(&self, sample: &SampleEvent<'_>, end: StackEnd, code: &mut Locator) {
        // Where nobody reads stacks on, nobody asks for where they end.
        if sample.user_stack.unwrap_or_default().rest == Rest::NotRead(NotRead::NoReader) {
            return;
        }
        let (Some(roots), Some(frame)) = (&self.roots, self.frames.last()) else { return };
        if end == StackEnd::CopyTooShort {
            roots.forget(sample.tid);
        }
        let is_of_go =
            |code| matches!(code, Ok(Code::Module(code)) if self.unwinder.is_of_go(code.module));
        if end == StackEnd::Root && !is_of_go(code.code(sample.pid, frame.lookup_address())) {
            roots.note(sample.tid, self.outermost);
        }
    }

    /// The same of a thread that waits, and of which only that is known. Its stack was read just now.
    pub(crate) fn walk_waiting(
        &mut self,
        pid: Pid,
        (program_counter, start): (ProcessAddress, ProcessAddress),
        bytes: &[u8],
        code: &mut Locator,
    ) -> (StackEnd, Evidence) {
        self.frames.clear();
        self.registers.clear();
        let registers = Registers::at(Architecture::NATIVE, program_counter, start);
        let copy = StackCopy::new(start, bytes, &[], StackLimit::CopyFull);
        match self.unwind(pid, &registers, (&copy, None), code) {
            StackEnd::Guessed => (StackEnd::Guessed, Evidence::GuessedFrames),
            end => (end, Evidence::ReadFromProcess),
        }
    }

    /// Walks a stack that goes on beyond its copy, in what was read of it.
    fn walk_on(
        &mut self,
        sample: &SampleEvent<'_>,
        registers: &Registers,
        copy: &StackCopy<'_>,
        code: &mut Locator,
        health: &mut Health,
    ) -> (StackEnd, Evidence) {
        let bytes = sample.user_stack.unwrap_or_default();
        // Where the stack pointer leads may be nothing to be read.
        let cut = if bytes.reached_limit { StackEnd::CopyTooShort } else { StackEnd::BadValue };
        let whole = match bytes.rest {
            Rest::Read { bytes: &[], interrupted: None, script } => Err(match is_late(script) {
                true => NotRead::Changed,
                false => NotRead::Unreadable,
            }),
            Rest::Read { bytes, interrupted: None, .. } => Ok(copy.with_rest(bytes)),
            Rest::Read { bytes, interrupted: Some(other), .. } => {
                Ok(copy.with_rest(bytes).with_interrupted(other.start, other.bytes))
            }
            Rest::NotRead(why) => Err(why),
        };
        let whole = match whole {
            Ok(whole) => whole,
            Err(why) => {
                self.note_unread(why, health);
                return (cut, Evidence::Copied);
            }
        };
        let end = self.unwind(sample.pid, registers, (&whole, trace_of(sample)), code);
        self.note_root(sample, end, code);
        match end {
            StackEnd::CopyTooShort | StackEnd::NotRecorded => {
                *health.not_read.entry(NotRead::TooDeep).or_default() += 1;
                (cut, Evidence::ReadFromProcess)
            }
            StackEnd::Guessed => (StackEnd::Guessed, Evidence::GuessedFrames),
            end => {
                health.read_on += u64::from(end == StackEnd::Root);
                (end, Evidence::ReadFromProcess)
            }
        }
    }

    /// A stack was not read on; where there are no readers, there will be.
    fn note_unread(&self, why: NotRead, health: &mut Health) {
        *health.not_read.entry(why).or_default() += 1;
        if let (NotRead::NoReader, Some(roots)) = (why, &self.roots) {
            roots.want_readers();
        }
    }

    /// Walks one stack into `self.frames`.
    fn unwind(
        &mut self,
        pid: Pid,
        registers: &Registers,
        (stack, trace): (&StackCopy<'_>, Option<RunningTrace>),
        code: &mut Locator,
    ) -> StackEnd {
        loop {
            // An image that is met for the first time is opened, and the walk begun anew.
            code.begin_walk();
            let mut find = Finder { code, pid, unopened: None, trace };
            let (limit, frames) = (self.max_depth, &mut self.frames);
            self.registers.clear();
            let (wanted, all) = (self.wants_registers, &mut self.registers);
            let outermost = &mut self.outermost;
            let mut watch = |_, registers: &Registers| {
                *outermost = registers.stack_pointer(Architecture::NATIVE).unwrap_or_default();
                if wanted {
                    all.push(*registers);
                }
            };
            let copied = (registers, stack);
            let end = self.unwinder.unwind_watched(&mut find, copied, limit, frames, &mut watch);
            let Some(found) = find.unopened else { return end };
            code.open(pid, &found, &mut self.unwinder);
        }
    }
}

/// Looks up the addresses of a process.
struct Finder<'l> {
    code: &'l mut Locator,
    pid: Pid,
    /// The first place whose image has to be opened.
    unopened: Option<Found>,
    /// What LuaJIT has compiled and the thread runs.
    trace: Option<RunningTrace>,
}

/// The trace that a thread ran when it was sampled.
fn trace_of(sample: &SampleEvent<'_>) -> Option<RunningTrace> {
    match sample.user_stack?.rest {
        Rest::Read { script, .. } if !is_late(script) => {
            Caught::all(script).find(|caught| caught.language() == "luajit")?.trace()
        }
        _ => None,
    }
}

/// Whether what was read of an interpreter is of a later moment.
fn is_late(script: &[u8]) -> bool {
    Caught::parse(script).is_some_and(|caught| caught.outcome() == Outcome::Late)
}

impl FindCode for Finder<'_> {
    fn code(&mut self, address: ProcessAddress) -> Code {
        match self.code.code(self.pid, address) {
            Ok(Code::Executable | Code::Epilogue(_) | Code::Module(_))
                if self.trace.is_some_and(|trace| trace.covers(address.0)) =>
            {
                Code::Runtime
            }
            Ok(code) => code,
            Err(found) => {
                self.unopened.get_or_insert(found);
                Code::NotCode
            }
        }
    }

    fn leave(&mut self, frame: RuntimeFrame<'_>) -> Left {
        let Some(trace) = self.trace.filter(|trace| trace.covers(frame.address.address().0)) else {
            return self.code.leave(self.pid, frame);
        };
        let word = |address| frame.stack.read_u64(address).ok();
        let pointer = frame.registers.stack_pointer(Architecture::NATIVE);
        let caller = pointer.and_then(|pointer| trace.leave(pointer.0, word));
        caller.map_or(Left::Unknown, |caller| {
            Left::Caller(RuntimeCaller {
                address: ProcessAddress(caller.address),
                stack_pointer: ProcessAddress(caller.stack_pointer),
                frame_pointer: Some(caller.frame_pointer),
            })
        })
    }
}
