//! How many bytes of stack to copy, as the stacks that come show it.

use flame_profile::ByteLen;

use crate::config::MAX_STACK_COPY;

/// Bytes of user stack copied with each sample at first. Most stacks are shorter, and of those that
/// are not, most are completed by other means; measured in docs/perf-events.md.
pub const FIRST_STACK_COPY: ByteLen = ByteLen(16 * 1024);

/// How many stacks are looked back on.
const WINDOW: u32 = 200;

/// How many of a window's stacks may stay short: one in a hundred.
const TOLERATED: u32 = WINDOW / 100;

/// How a stack that was copied came out, all means of completing it applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyOutcome {
    /// It is whole, by whatever means, or what it lacks is not in the stack's bytes.
    Enough,
    /// It goes on beyond the copy, and nothing tells how.
    TooShort,
}

/// Doubles the stack copy when more than one stack in a hundred of the last two hundred stays
/// short, up to all that the kernel gives. Never shrinks it: a phase of the program that had deep
/// stacks may come again, and a copy takes no more than there is.
///
/// ```
/// use flame_profile::ByteLen;
/// use flame_sampler::{CopyOutcome, StackCopyPolicy};
///
/// let mut policy = StackCopyPolicy::new(ByteLen(16_384));
/// assert_eq!(policy.observe(CopyOutcome::TooShort), None);
/// assert_eq!(policy.observe(CopyOutcome::TooShort), None);
/// // The third of a window is one too many.
/// assert_eq!(policy.observe(CopyOutcome::TooShort), Some(ByteLen(32_768)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackCopyPolicy {
    copy: ByteLen,
    seen: u32,
    short: u32,
}

impl StackCopyPolicy {
    /// A policy that starts with copies of that many bytes.
    pub fn new(first: ByteLen) -> StackCopyPolicy {
        StackCopyPolicy { copy: ByteLen(first.0.min(MAX_STACK_COPY.0)), seen: 0, short: 0 }
    }

    /// The bytes to copy now.
    pub fn copy(&self) -> ByteLen {
        self.copy
    }

    /// Takes in one stack, in the order of the samples; gives the new size when it is time to copy
    /// more. Samples that were taken before the new size was in force may still come: they count as
    /// those of the new window, so that the copy may grow once more than it had to.
    pub fn observe(&mut self, outcome: CopyOutcome) -> Option<ByteLen> {
        self.seen += 1;
        self.short += u32::from(outcome == CopyOutcome::TooShort);
        let grows = self.short > TOLERATED && self.copy < MAX_STACK_COPY;
        if grows || self.seen >= WINDOW {
            (self.seen, self.short) = (0, 0);
        }
        if !grows {
            return None;
        }
        self.copy = ByteLen((self.copy.0 * 2).clamp(4096, MAX_STACK_COPY.0));
        Some(self.copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `count` stacks of which every `nth` stays short; gives the sizes grown to.
    fn grown(first: u64, count: u32, nth: u32) -> Vec<u64> {
        let mut policy = StackCopyPolicy::new(ByteLen(first));
        let outcome = |n: u32| match n % nth {
            0 => CopyOutcome::TooShort,
            _ => CopyOutcome::Enough,
        };
        (1..=count).filter_map(|n| policy.observe(outcome(n))).map(|copy| copy.0).collect()
    }

    #[test]
    fn one_short_stack_in_a_hundred_is_tolerated() {
        assert_eq!(grown(16_384, 100_000, 100), []);
        assert_eq!(grown(16_384, 100_000, 1000), []);
    }

    #[test]
    fn the_copy_doubles_up_to_all_there_is() {
        assert_eq!(grown(16_384, 100_000, 60), [32_768, 65_528]);
        assert_eq!(grown(16_384, 3, 1), [32_768]);
        assert_eq!(grown(8, 9, 1), [4096, 8192, 16_384]);
        assert_eq!(grown(65_528, 1000, 1), []);
        assert_eq!(StackCopyPolicy::new(ByteLen(1 << 40)).copy(), MAX_STACK_COPY);
    }

    #[test]
    fn short_stacks_of_long_ago_do_not_count() {
        // Two at the end of each window, so that never three are among the same two hundred.
        let mut policy = StackCopyPolicy::new(ByteLen(16_384));
        for n in 0..10_000_u32 {
            let short = n % 200 >= 198;
            let outcome = if short { CopyOutcome::TooShort } else { CopyOutcome::Enough };
            assert_eq!(policy.observe(outcome), None, "at {n}");
        }
    }
}
