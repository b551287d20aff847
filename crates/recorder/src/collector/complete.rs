//! What the collector does with a stack that goes on beyond its copy; see
//! [`super::super::completion`].

use std::mem;

use flame_events::{Processes, SampleEvent};
use flame_profile::{Completion, Evidence, NotCompleted, Pid, ProcessAddress, StackEnd};
use flame_unwind::{
    Architecture, CallBefore, CfiUnwinder, Code, FrameAddress, Registers, StackCopy,
};

use super::super::completion::{
    Activation, CopyThenProcess, Cut, KnownFrame, MUST_AGREE, MemoryId, NodeId, Reader, Sight,
};
use super::super::images::Images;
use super::Collector;
use crate::config::Complete;

/// What is known of a user stack after all that can be done at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walked {
    /// It ends like that, and rests on that.
    Ended(StackEnd, Evidence),
    /// Its copy was too short.
    Cut(Cut),
}

impl Walked {
    /// Ended in its copy.
    pub(super) fn copied(end: StackEnd) -> Walked {
        Walked::Ended(
            end,
            match end {
                StackEnd::Guessed => Evidence::GuessedFrames,
                _ => Evidence::Copied,
            },
        )
    }
}

/// The code of one process, to ask about addresses.
struct ProcessCode<'a> {
    unwinder: &'a CfiUnwinder,
    processes: &'a Processes,
    images: &'a Images,
    pid: Pid,
}

impl ProcessCode<'_> {
    fn code(&self, address: ProcessAddress) -> Code {
        let found = self.processes.find(self.pid, address);
        found.and_then(|found| self.images.code(&found)).unwrap_or(Code::NotCode)
    }

    /// The start of the function that a frame is in, where tables name one.
    fn function(&self, frame: FrameAddress) -> Option<ProcessAddress> {
        match self.code(frame.lookup_address()) {
            Code::Module(code) => self.unwinder.function_start(code),
            Code::Executable | Code::NotCode => None,
        }
    }

    /// Whether one frame can have called the other, by the bytes before its return address.
    fn call_of(
        &self,
        callee: FrameAddress,
        caller: FrameAddress,
        word_of_process: &dyn Fn(ProcessAddress) -> Option<u64>,
    ) -> Call {
        // A signal interrupted the caller.
        let FrameAddress::Return(address) = caller else { return Call::OfThis };
        let code = self.code(caller.lookup_address());
        let function = self.function(callee).unwrap_or(callee.address());
        let target = match self.unwinder.call_before(code, address) {
            CallBefore::NoCall => return Call::Impossible,
            CallBefore::Indirect | CallBefore::Unseen => return Call::Open(address, function),
            CallBefore::Direct(target) => Some(target),
            CallBefore::Through(word) => word_of_process(word).map(ProcessAddress),
        };
        match self.function(callee) {
            Some(function) if Some(function) == target => Call::OfThis,
            Some(function) => Call::OfOther(address, function),
            None => Call::Open(address, function),
        }
    }
}

/// Whether one frame can have been called by the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// The call before the return address is of the very function.
    OfThis,
    /// A call stands before this return address, which may be of this function as of any other.
    Open(ProcessAddress, ProcessAddress),
    /// No call stands before the return address.
    Impossible,
    /// The call before this return address is of another function than this one: either that has
    /// jumped to it instead of calling, or the frames do not belong together.
    OfOther(ProcessAddress, ProcessAddress),
}

/// What of a stack that was read could be compared with its copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compared {
    /// Fewer frames than must agree.
    Little,
    /// As many as that.
    Enough,
    /// The registers of a frame that a signal has interrupted, whose handler has a stack of its own.
    SignalFrame,
}

impl Collector {
    fn code_of(&self, pid: Pid) -> ProcessCode<'_> {
        let (unwinder, processes) = (&self.unwinder, &self.processes);
        ProcessCode { unwinder, processes, images: &self.collected.images, pid }
    }

    /// Goes on in the memory of the process where the copy ended. `self.frames` has what the copy
    /// shows, and keeps that unless the stack ends for good; `cut_end` is how it ends without more.
    pub(super) fn read_on(
        &mut self,
        sample: &SampleEvent<'_>,
        registers: &Registers,
        copy: StackCopy<'_>,
        cut_end: StackEnd,
    ) -> Walked {
        let pid = sample.pid;
        let start = registers.stack_pointer(Architecture::NATIVE).unwrap_or_default();
        let memory = self.chains.begin_memory(pid, sample.tid);
        let outermost = self.outermost(pid);
        if self.chains.completes() == Complete::Off {
            let read = Err(NotCompleted::NotAsked);
            return Walked::Cut(Cut { memory, end: cut_end, outermost, read, guessed: false });
        }
        let copied = mem::take(&mut self.frames);
        let mut live = mem::take(&mut self.live);
        let source = CopyThenProcess::new(copy, Reader { pid, tid: sample.tid }, &mut live);
        let end = self.unwind(pid, registers, &StackCopy::of_source(start, &source));
        let ends_well = matches!(end, StackEnd::Root | StackEnd::Guessed | StackEnd::FrameLimit);
        let stack_pointers = self.unwinder.stack_pointers();
        let compared = match copied.len() > MUST_AGREE {
            _ if source.leaves_signal_stack(&copied, stack_pointers) => Compared::SignalFrame,
            true => Compared::Enough,
            false => Compared::Little,
        };
        // An interrupted frame has nothing in the copy of another stack.
        let of_copy = copied.len() - usize::from(compared == Compared::SignalFrame);
        let stands = ends_well
            && self.frames.starts_with(&copied)
            && source.still_agrees(&stack_pointers[..of_copy]);
        let word = |address| source.word_of_process(address);
        let doubtful =
            if stands { self.doubtful_calls(pid, copied.len(), compared, &word) } else { None };
        let evidence = match end {
            StackEnd::Guessed => Evidence::GuessedFrames,
            _ => Evidence::ReadFromProcess,
        };
        let why_not = source.why_not();
        self.live = live;
        let read = match (end, doubtful) {
            (_, None) => Err(why_not),
            (StackEnd::Root | StackEnd::Guessed, Some(doubtful)) => {
                self.locate_frames(pid);
                match self.learn(memory, pid, copied.len(), Sight::Read { doubtful }) {
                    _ if compared == Compared::Little => Err(why_not),
                    Some(node) => Ok(node),
                    None => {
                        let completed = &mut self.collected.health.completed;
                        *completed.entry(Completion::ReadFromProcess).or_default() += 1;
                        return Walked::Ended(end, evidence);
                    }
                }
            }
            (end, Some(_)) => return Walked::Ended(end, evidence),
        };
        self.frames = copied;
        let guessed = end == StackEnd::Guessed;
        Walked::Cut(Cut { memory, end: cut_end, outermost, read, guessed })
    }

    /// The last frame of a walk whose copy was too short.
    fn outermost(&self, pid: Pid) -> Option<Activation> {
        let end = self.unwinder.caller_stack_pointer()?;
        let frame = *self.frames.last()?;
        let function = self.code_of(pid).function(frame).unwrap_or(frame.address());
        Some(Activation { end, function })
    }

    /// Whether the frames from the last of `copied` on can have called each other: how many of the
    /// inner frames are in doubt, or `None` if they cannot. The bytes of the code tell a stack that
    /// has partly been written over from one that stands, where they say whom they call; where they
    /// do not, only a call that was seen in a copy is beyond doubt.
    ///
    /// Where the copy has so few frames that little could be compared, the first call must be of the
    /// very function.
    fn doubtful_calls(
        &self,
        pid: Pid,
        copied: usize,
        compared: Compared,
        word_of_process: &dyn Fn(ProcessAddress) -> Option<u64>,
    ) -> Option<usize> {
        let code = self.code_of(pid);
        let last = copied.saturating_sub(1);
        let mut doubtful = 0;
        for (index, pair) in self.frames.windows(2).enumerate().skip(last) {
            let call = code.call_of(pair[0], pair[1], word_of_process);
            if index == last && compared == Compared::Little && call != Call::OfThis {
                return None;
            }
            match call {
                Call::OfThis => {}
                Call::Impossible => return None,
                Call::OfOther(address, function) if compared != Compared::SignalFrame => {
                    self.chains.knows_call(pid, address, function).then_some(())?;
                }
                Call::Open(address, function) | Call::OfOther(address, function) => {
                    if !self.chains.knows_call(pid, address, function) {
                        doubtful = index + 1;
                    }
                }
            }
        }
        Some(doubtful)
    }

    /// Remembers a stack that was copied whole, if the thread has ever had one that was not.
    pub(super) fn learn_copied(&mut self, sample: &SampleEvent<'_>) {
        if let Some(memory) = self.chains.memory(sample.pid, sample.tid) {
            self.learn(memory, sample.pid, usize::MAX, Sight::Copied);
        }
    }

    /// Remembers the complete stack in `self.frames` and `self.locations`; returns the node of the
    /// frame at index `wanted`. Calls are noted only of stacks that were copied whole.
    fn learn(&mut self, memory: MemoryId, pid: Pid, wanted: usize, sight: Sight) -> Option<NodeId> {
        let stack_pointers = self.unwinder.stack_pointers();
        let frames = self.frames.iter().zip(stack_pointers).zip(&self.locations);
        let known = frames.map(|((frame, stack_pointer), location)| KnownFrame {
            stack_pointer: *stack_pointer,
            address: frame.address(),
            location: *location,
        });
        self.known.clear();
        self.known.extend(known);
        let code = ProcessCode {
            unwinder: &self.unwinder,
            processes: &self.processes,
            images: &self.collected.images,
            pid,
        };
        let mut calls = Vec::new();
        let frames = &self.frames;
        let mut function = |index: usize| {
            let Some(frame) = frames.get(index).copied() else { return ProcessAddress(0) };
            if sight == Sight::Copied
                && let Some(caller) = frames.get(index + 1)
                // Calls through words that nobody looks up here are noted as well.
                && let Call::OfOther(address, function) | Call::Open(address, function) =
                    code.call_of(frame, *caller, &|_| None)
            {
                calls.push((address, function));
            }
            code.function(frame).unwrap_or(frame.address())
        };
        let node = self.chains.learn(memory, &self.known, wanted, sight, &mut function);
        for (address, function) in calls {
            self.chains.note_call(pid, address, function);
        }
        node
    }
}
