//! Whether more of stacks must be copied than is.

use std::collections::{BTreeSet, VecDeque};

use flame_profile::{ByteLen, Nanos, Tid};
use flame_sampler::{CopyOutcome, StackCopyPolicy};

use super::chains::Chains;
use super::cuts::Cut;

/// How many samples a stack waits for others that complete it before it counts as too short, for
/// each thread with stacks that were cut: an activation must be seen some times first (see
/// [`super::cuts`]), and a recording that grows its copies in the first moments would copy far too
/// much of programs whose stacks alternate.
const PATIENCE: usize = 300;

/// It waits so many times longer while at least half of the stacks that were cut are completed: the
/// others most likely will be, too.
const WITH_HOPE: usize = 4;

/// How long it waits at most.
const LONGEST: Nanos = Nanos(10_000_000_000);

/// Stacks in the order of their samples, until it is known how they come out.
#[derive(Debug)]
pub(crate) struct Growth {
    policy: StackCopyPolicy,
    waiting: VecDeque<Waiting>,
}

/// A stack that was copied.
#[derive(Debug)]
struct Waiting {
    time: Nanos,
    thread: Tid,
    /// What is known of it if it was cut.
    cut: Option<Cut>,
}

impl Growth {
    /// Starts with copies of that many bytes.
    pub(crate) fn new(first: ByteLen) -> Growth {
        Growth { policy: StackCopyPolicy::new(first), waiting: VecDeque::new() }
    }

    /// Takes in a stack that was copied, with what is known of it if it was cut.
    pub(crate) fn note(&mut self, time: Nanos, thread: Tid, cut: Option<Cut>) {
        self.waiting.push_back(Waiting { time, thread, cut });
    }

    /// Judges the stacks that have waited long enough by `now`; gives the bytes to copy from now on
    /// if they are more.
    pub(crate) fn due(&mut self, now: Nanos, chains: &Chains) -> Option<ByteLen> {
        let mut grown = None;
        let cut = self.waiting.iter().filter(|stack| stack.cut.is_some());
        let threads = cut.map(|stack| stack.thread).collect::<BTreeSet<_>>().len();
        let patience = PATIENCE * threads.max(1);
        while let Some(Waiting { time, cut, .. }) = self.waiting.front() {
            if self.waiting.len() <= patience && now.saturating_since(*time) < LONGEST {
                break;
            }
            let is_short = cut.is_some_and(|cut| cut.caller(chains).is_err());
            let may_wait =
                self.waiting.len() <= patience * WITH_HOPE && now.saturating_since(*time) < LONGEST;
            if is_short && may_wait && self.has_hope(chains) {
                break;
            }
            self.waiting.pop_front();
            let outcome = if is_short { CopyOutcome::TooShort } else { CopyOutcome::Enough };
            if let Some(copy) = self.policy.observe(outcome) {
                // Those that wait were copied with the old size.
                self.waiting.clear();
                grown = Some(copy);
            }
        }
        grown
    }

    /// Whether at least half of the stacks that were cut are completed by now.
    fn has_hope(&self, chains: &Chains) -> bool {
        let cut = self.waiting.iter().filter_map(|stack| stack.cut);
        let (all, open) = cut.fold((0, 0), |(all, open), cut| {
            (all + 1, open + u32::from(cut.caller(chains).is_err()))
        });
        open * 2 <= all
    }
}

#[cfg(test)]
mod tests {
    use flame_profile::{NotCompleted, Pid, ProcessAddress, StackEnd, Tid};

    use super::super::chains::{KnownFrame, Sight};
    use super::*;
    use crate::location::CodeLocation;

    fn at(seconds: u64) -> Nanos {
        Nanos(seconds * 1_000_000_000)
    }

    /// 200 stacks at 1 s, three of which are cut and never seen with their callers.
    #[test]
    fn stacks_get_their_time_before_they_count_as_too_short() {
        let mut chains = Chains::default();
        let memory = chains.begin_memory(Pid(1), Tid(1));
        let read = Err(NotCompleted::Changed);
        let cut =
            Cut { memory, end: StackEnd::CopyTooShort, outermost: None, read, guessed: false };
        let mut growth = Growth::new(ByteLen(16_384));
        for n in 0..PATIENCE {
            growth.note(at(1), Tid(1), (n < 3).then_some(cut));
        }
        assert_eq!(growth.due(at(2), &chains), None);
        (0..3).for_each(|_| growth.note(at(2), Tid(1), None));
        assert_eq!(growth.due(at(2), &chains), Some(ByteLen(32_768)));
        // The others were copied with the old size and are not judged any more.
        assert_eq!(growth.due(at(9), &chains), None);
        assert!(growth.waiting.is_empty());
    }

    #[test]
    fn rare_samples_are_not_waited_for_without_end() {
        let mut chains = Chains::default();
        let memory = chains.begin_memory(Pid(1), Tid(1));
        let read = Err(NotCompleted::Changed);
        let cut =
            Cut { memory, end: StackEnd::CopyTooShort, outermost: None, read, guessed: false };
        let mut growth = Growth::new(ByteLen(16_384));
        (1..=3).for_each(|thread| growth.note(at(1), Tid(thread), Some(cut)));
        assert_eq!(growth.due(at(10), &chains), None);
        assert_eq!(growth.due(at(11), &chains), Some(ByteLen(32_768)));
    }

    /// Three stacks that nothing completes, beside as many that were read from the process.
    #[test]
    fn while_half_of_the_cut_stacks_are_completed_the_others_get_more_time() {
        let mut chains = Chains::default();
        let memory = chains.begin_memory(Pid(1), Tid(1));
        let frame = |address| KnownFrame {
            stack_pointer: ProcessAddress(0x1000 + address),
            address: ProcessAddress(address),
            location: CodeLocation::Unmapped(ProcessAddress(address)),
        };
        let node =
            chains.learn(memory, &[frame(0x100), frame(0x200)], 1, Sight::Copied, &mut |_| {
                ProcessAddress(0x100)
            });
        let cut = |read| Cut {
            memory,
            end: StackEnd::CopyTooShort,
            outermost: None,
            read,
            guessed: false,
        };
        let (open, done) = (cut(Err(NotCompleted::Changed)), cut(Ok(node.unwrap())));
        let mut growth = Growth::new(ByteLen(16_384));
        for n in 0..PATIENCE * WITH_HOPE {
            let cut = [Some(open), Some(done)].get(n / 3).copied().flatten();
            growth.note(at(1), Tid(1), cut);
        }
        assert_eq!(growth.due(at(2), &chains), None);
        (0..3).for_each(|_| growth.note(at(2), Tid(1), None));
        assert_eq!(growth.due(at(2), &chains), Some(ByteLen(32_768)));
    }

    #[test]
    fn whole_stacks_ask_for_nothing() {
        let mut growth = Growth::new(ByteLen(16_384));
        (0..1000).for_each(|_| growth.note(at(1), Tid(1), None));
        assert_eq!(growth.due(at(9), &Chains::default()), None);
        assert_eq!(growth.waiting.len(), PATIENCE);
    }
}
