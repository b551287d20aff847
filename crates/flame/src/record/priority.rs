//! Flame's own place among the programs that want to run.
//!
//! On a machine with more to do than CPUs, who empties the rings must not wait its turn for a second,
//! or samples are lost. It needs little CPU time: while it records, it goes first, where it may. What
//! it launched was started before, and keeps its own priority.

use rustix::process::{getpriority_process, setpriority_process};

/// The nice value while recording: well ahead of everything that did not ask for more, behind what
/// did.
const RAISED: i32 = -10;

/// Flame goes first for as long as this lives.
#[derive(Debug)]
pub(super) struct Raised {
    before: Option<i32>,
}

impl Raised {
    /// Raises the priority; without the right to (CAP_SYS_NICE), leaves it as it is.
    pub(super) fn begin() -> Raised {
        let before = getpriority_process(None).ok().filter(|before| *before > RAISED);
        let raised = before.filter(|_| setpriority_process(None, RAISED).is_ok());
        Raised { before: raised }
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // Lowering it again is everybody's right.
            let _ = setpriority_process(None, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_priority_is_as_before_in_the_end() {
        let before = getpriority_process(None).unwrap();
        let raised = Raised::begin();
        let during = getpriority_process(None).unwrap();
        assert_eq!(during, if raised.before.is_some() { RAISED } else { before });
        drop(raised);
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
