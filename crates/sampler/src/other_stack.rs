//! Where the stack of a caller goes on that has its callees run on another one, as programs of Go do:
//! much of their runtime, and calls of C, run on a stack of the thread instead of the goroutine's.
//!
//! Such code leaves the frame pointer alone when it changes stacks, so the chain of frame pointers
//! leads from the one to the other. Here it is only followed to read that stack as well; whether there
//! is a caller, and which, is said by unwind information. So a register that merely looks like a frame
//! pointer costs a reading, and puts nothing into a stack.
//!
//! ```text
//!   stack pointer              frame pointers                    copied
//!   | ............ | saved | ........ | saved | ................. |       ... | saved | ...
//!                      `------------------^ `-----------------------------------^ elsewhere
//! ```

use flame_profile::ProcessAddress;

/// How many frames are followed at most.
const MOST_FRAMES: usize = 256;

/// A frame pointer that does not lie in a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) frame_pointer: ProcessAddress,
    /// The last one before it that does; nothing if there is none, and any number may be in the register.
    pub(crate) saved_at: Option<ProcessAddress>,
}

/// The first frame pointer that does not lie in the copy (`head`, then `tail`, from `stack_pointer`
/// upwards). It lies on another stack, or further out on this one.
pub(crate) fn find(
    (head, tail): (&[u8], &[u8]),
    stack_pointer: ProcessAddress,
    frame_pointer: u64,
) -> Option<Found> {
    let word = |address: u64| {
        let at = usize::try_from(address.checked_sub(stack_pointer.0)?).ok()?;
        let bytes = match at.checked_sub(head.len()) {
            Some(at) => tail.get(at..)?.first_chunk()?,
            None => head.get(at..)?.first_chunk()?,
        };
        Some(u64::from_ne_bytes(*bytes))
    };
    let mut at = frame_pointer;
    let mut saved_at = None;
    for _ in 0..MOST_FRAMES {
        let Some(next) = word(at) else {
            let is_address = at.is_multiple_of(8) && at != 0 && at >> 47 == 0;
            return is_address.then_some(Found { frame_pointer: ProcessAddress(at), saved_at });
        };
        // Callers stand higher on the same stack.
        if next <= at && word(next).is_some() {
            return None;
        }
        saved_at = Some(ProcessAddress(at));
        at = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const SP: u64 = 0x7f00_0000_1000;

    /// Words of a stack at `SP` that was copied in two parts, and a frame pointer.
    #[track_caller]
    fn check(words: &[u64], frame_pointer: u64, expect: Option<(u64, u64)>) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        for cut in [0, 8, bytes.len()] {
            let parts = bytes.split_at(cut);
            let found = find(parts, ProcessAddress(SP), frame_pointer);
            let found = found.map(|found| {
                (found.saved_at.map_or(0, |saved_at| saved_at.0), found.frame_pointer.0)
            });
            assert_eq!(found, expect, "{words:x?} {cut}");
        }
    }

    #[test]
    fn the_chain_of_frame_pointers_leads_out_of_the_copy() {
        let other = 0xc0_0123_4560;
        check(&[1, other, 0], SP + 8, Some((SP + 8, other)));
        check(&[SP + 16, 7, other], SP, Some((SP + 16, other)));
        // Further out, and below the copied stack.
        check(&[1, SP + 0x800, 0], SP + 8, Some((SP + 8, SP + 0x800)));
        check(&[1, SP - 0x1_0000, 0], SP + 8, Some((SP + 8, SP - 0x1_0000)));
        // Only the register leads there.
        check(&[1, 0xc0_0123_4560, 0], 0xc0_0123_4560, Some((0, 0xc0_0123_4560)));
    }

    #[test]
    fn other_registers_lead_nowhere() {
        check(&[1, 0, 0], SP + 8, None);
        check(&[1, 0x1235_4321, 0], SP + 8, None);
        check(&[1, 0xffff_8000_0000_0000, 0], SP + 8, None);
        check(&[1, SP + 8, 0], SP + 8, None);
        check(&[SP + 8, SP, 0], SP, None);
    }
}
