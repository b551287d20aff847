//! Where the stack goes on that a signal has interrupted, when its handler runs on another one.
//!
//! The kernel writes a `ucontext` onto the handler's stack: which alternate stack the thread has, and
//! all registers of what was interrupted. Here it is only looked for, to read that stack as well;
//! which frames it has is said by unwind information. So bytes that merely look like one cost a
//! reading, and put nothing into a stack.
//!
//! ```text
//!   uc_flags | uc_link = 0 | ss_sp | ss_flags | ss_size | ... sp ...      words of eight bytes
//! ```
//!
//! Sources: struct rt_sigframe in arch/x86/include/asm/sigframe.h and arch/arm64/kernel/signal.c,
//! sigaltstack(2).

use flame_profile::ProcessAddress;

/// The word of the start of the alternate stack.
const START: usize = 2;

/// The word of the interrupted stack pointer.
const STACK_POINTER: usize = if cfg!(target_arch = "aarch64") { 54 } else { 20 };

/// The largest value of uc_flags.
const FLAGS: u64 = 0xff;

/// No stack lies further down.
const LOWEST: u64 = 0x1_0000;

/// The largest alternate stack that is believed.
const LARGEST: u64 = 1 << 30;

/// Where in these bytes of a stack (from `stack_pointer` or above upwards) the frame of a handler on an
/// alternate stack stands, and the stack pointer of what it has interrupted, if that is elsewhere.
pub(crate) fn find(bytes: &[u8], stack_pointer: ProcessAddress) -> Option<(usize, ProcessAddress)> {
    let (words, _) = bytes.as_chunks();
    let word = |at: usize| Some(u64::from_ne_bytes(*words.get(at)?));
    let is_within = |address: u64, start: u64, len: u64| {
        address.checked_sub(start).is_some_and(|offset| offset < len)
    };
    // Each sample is searched: hardly a word of a stack points to what lies just before its stack pointer.
    let starts =
        words.iter().enumerate().skip(START).filter(|(_, start)| {
            stack_pointer.0.wrapping_sub(u64::from_ne_bytes(**start)) < LARGEST
        });
    starts.map(|(at, start)| (at - START, u64::from_ne_bytes(*start))).find_map(|(at, start)| {
        let (flags, link, len) = (word(at)?, word(at + 1)?, word(at + 4)?);
        let interrupted = word(at + STACK_POINTER)?;
        let is_frame = link == 0 && flags <= FLAGS && len <= LARGEST;
        let is_stack = interrupted.is_multiple_of(8) && interrupted > LOWEST;
        let leaves = is_within(stack_pointer.0, start, len) && !is_within(interrupted, start, len);
        (is_frame && is_stack && leaves).then_some((8 * at, ProcessAddress(interrupted)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACK: u64 = 0x7000_0000;

    /// A frame behind some words, of a handler that interrupted a stack at that address.
    fn bytes(interrupted: u64, len: u64) -> Vec<u8> {
        let mut words = vec![5; 12];
        words.extend([7, 0, STACK, 0, len]);
        words.resize(12 + STACK_POINTER, 1);
        words.push(interrupted);
        words.push(2);
        words.into_iter().flat_map(u64::to_ne_bytes).collect()
    }

    #[test]
    fn the_interrupted_stack_is_found_if_it_is_another() {
        let sp = ProcessAddress(STACK + 0x800);
        let found = |interrupted, len| find(&bytes(interrupted, len), sp);
        assert_eq!(found(0x7ffe_0000, 0x2000), Some((96, ProcessAddress(0x7ffe_0000))));
        assert_eq!([8, 0x7ffe_0001].map(|no_stack| found(no_stack, 0x2000)), [None, None]);
        // The handler's own, a thread without an alternate stack, one that the handler is not on.
        assert_eq!(found(STACK + 0x900, 0x2000), None);
        assert_eq!(found(0x7ffe_0000, 0), None);
        assert_eq!(found(0x7ffe_0000, 0x800), None);
    }

    #[test]
    fn frames_that_are_not_whole_are_none() {
        let all = bytes(0x7ffe_0000, 0x2000);
        for len in 0..all.len() - 8 {
            assert_eq!(find(&all[..len], ProcessAddress(STACK)), None, "{len}");
        }
    }
}
