//! Which loop over instructions runs which frames.
//!
//! They are placed as the calls of Lua are: each loop has on the native stack, or in a register, the context that it
//! works on and the control frame that it runs, and frames that begin a loop say so. That proves how deep a frame
//! lies, and not yet which one it is: so each loop has the instruction that is next, too.

use crate::caught::Entry;
use crate::join::{Mismatch, NativeFrame, Placed};
use crate::lua;

/// By how many words the innermost loop may be ahead of what is in memory: that is one instruction.
const AHEAD: u64 = 8;

/// Places the frames of a context in native frames.
pub(crate) fn place(
    entries: &[Entry],
    natives: &[NativeFrame],
    is_whole: bool,
    holds: &dyn Fn(usize, u64) -> bool,
) -> Result<Vec<Placed>, Mismatch> {
    let placed = lua::place::place(entries, natives, is_whole, holds)?;
    for (nth, Placed { native, frames }) in placed.iter().enumerate() {
        let frames = entries.get(frames.clone()).unwrap_or_default();
        let Some(top) = frames.iter().find(|frame| frame.address != 0) else { continue };
        let next = top.code.wrapping_add(8 * top.position);
        // It calls, or returns.
        let is_between = nth == 0 && !holds(*native, top.address);
        let ahead = if nth == 0 { AHEAD } else { 0 };
        let has_next = (0..=ahead).any(|words| holds(*native, next.wrapping_add(8 * words)));
        if !is_between && !has_next {
            return Err(Mismatch::Stack);
        }
    }
    Ok(placed)
}
