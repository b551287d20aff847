//! The words of a stack: those that were copied, and from the process those that were not.

use std::cell::{Cell, RefCell};

use flame_profile::{NotCompleted, ProcessAddress};
use flame_unwind::{FrameAddress, StackCopy, StackSource, Unreadable};

use super::live::{LiveMemory, Reader, Unread};

/// How many frames must still stand as they were copied for a reading to be believed by itself: the
/// outermost ones, which are the last to go. Of those further in one or the other is gone in nearly
/// every stack by the time it is read, since the thread runs on.
///
/// Of gcc, copied whole to know the truth and cut at 4 KiB, no reading was wrong of 669 with more
/// than four copied frames of which two agreed, 2 of 200 with three or four, and 1 in 8 of those
/// that had nothing to compare. So stacks with fewer frames in their copy are taken as a sight of
/// their callers, and no more.
pub(crate) const MUST_AGREE: usize = 3;

/// A copied stack that goes on in the memory of its process. Notes what the walk takes from the
/// copy, to compare it with the memory afterwards.
#[derive(Debug)]
pub(crate) struct CopyThenProcess<'a> {
    copy: StackCopy<'a>,
    reader: Reader,
    live: RefCell<&'a mut LiveMemory>,
    taken: RefCell<Vec<(ProcessAddress, u64)>>,
    denied: Cell<bool>,
}

impl<'a> CopyThenProcess<'a> {
    pub(crate) fn new(
        copy: StackCopy<'a>,
        reader: Reader,
        live: &'a mut LiveMemory,
    ) -> CopyThenProcess<'a> {
        let live = RefCell::new(live);
        CopyThenProcess { copy, reader, live, taken: RefCell::default(), denied: Cell::new(false) }
    }

    /// Whether the process still has what the walk took from the outermost copied frames: their
    /// return addresses and saved registers. `stack_pointers` are those of the frames whose
    /// addresses were in the copy.
    ///
    /// To be asked after the walk: a stack goes from the inside out, so what holds for these
    /// frames held for their callers when those were read, a moment before.
    pub(crate) fn still_agrees(&self, stack_pointers: &[ProcessAddress]) -> bool {
        let first = stack_pointers.len().saturating_sub(MUST_AGREE + 1);
        let Some(from) = stack_pointers.get(first) else { return false };
        let taken = self.taken.borrow();
        let outer: Vec<_> = taken.iter().copied().filter(|(address, _)| address >= from).collect();
        self.live.borrow().has_now(self.reader, &outer)
    }

    /// Whether the last copied frame was interrupted by a signal whose handler has a stack of its
    /// own, which is the one that was copied. Then the handler's frame holds all registers of the
    /// interrupted one, and its stack stands for as long as the handler runs. That these words still
    /// agree is evidence enough, however few frames there are, and a call that does not fit is a tail
    /// call.
    pub(crate) fn leaves_signal_stack(
        &self,
        copied: &[FrameAddress],
        stack_pointers: &[ProcessAddress],
    ) -> bool {
        let last = copied.last().zip(stack_pointers.get(copied.len().saturating_sub(1)));
        last.is_some_and(|(frame, sp)| {
            let is_interrupted = matches!(frame, FrameAddress::Instruction(_)) && copied.len() > 1;
            is_interrupted && self.copy.read_u64(sp.0).is_err()
        })
    }

    /// A word of the process that is not on the stack.
    pub(crate) fn word_of_process(&self, address: ProcessAddress) -> Option<u64> {
        self.live.borrow_mut().word(self.reader, address).ok()
    }

    /// Why the stack could not be read to its end.
    pub(crate) fn why_not(&self) -> NotCompleted {
        if self.denied.get() { NotCompleted::Unreadable } else { NotCompleted::Changed }
    }
}

impl StackSource for CopyThenProcess<'_> {
    fn word(&self, address: ProcessAddress) -> Result<u64, Unreadable> {
        match self.copy.read_u64(address.0) {
            Ok(word) => {
                self.taken.borrow_mut().push((address, word));
                Ok(word)
            }
            // What the copy takes for no address of the stack may be one of the stack that a signal
            // interrupted.
            Err(Unreadable::NotCopied | Unreadable::OutsideStack) => {
                let word = self.live.borrow_mut().word(self.reader, address);
                word.map_err(|unread| {
                    self.denied.set(self.denied.get() || unread == Unread::Denied);
                    Unreadable::NotCopied
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flame_profile::{Pid, Tid};
    use flame_unwind::StackLimit;

    use super::*;

    /// A stack of eight words in this process; the copy has the first four.
    #[test]
    fn words_come_from_the_copy_first_and_only_outer_ones_must_agree() {
        let mut stack: Box<[u64; 8]> = Box::new([10, 11, 12, 13, 14, 15, 16, 17]);
        let at = |index: usize, stack: &[u64; 8]| {
            ProcessAddress(stack.as_ptr() as u64 + index as u64 * 8)
        };
        let copied: Vec<u8> = stack[..4].iter().flat_map(|word| word.to_le_bytes()).collect();
        let copy = StackCopy::new(at(0, &stack), &copied, &[], StackLimit::CopyFull);
        let pid = std::process::id();
        let reader = Reader { pid: Pid(pid), tid: Tid(pid) };
        let mut live = LiveMemory::default();
        // The innermost frame is gone: its word has another value now.
        stack[0] = 99;
        let source = CopyThenProcess::new(copy, reader, &mut live);
        let word = |index| source.word(at(index, &stack));
        assert_eq!([word(0), word(1), word(2), word(3)], [Ok(10), Ok(11), Ok(12), Ok(13)]);
        assert_eq!([word(4), word(7)], [Ok(14), Ok(17)]);
        let pointers = [0, 1, 2, 3, 4].map(|index| at(index, &stack));
        assert!(source.still_agrees(&pointers));
        assert!(!source.still_agrees(&pointers[..4]));
        stack[2] = 98;
        assert!(!source.still_agrees(&pointers));
        assert_eq!(source.word(ProcessAddress(8)), Err(Unreadable::NotCopied));
        assert_eq!(source.why_not(), NotCompleted::Changed);
    }
}
