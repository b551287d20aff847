//! How sure it is that a change is not chance.

/// How sure a change is: the chance that one like it, or a larger one, comes up anywhere in the
/// comparison although nothing changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    p: f32,
    is_real: bool,
}

impl Evidence {
    /// No sign of a change.
    pub const NONE: Evidence = Evidence { p: 1.0, is_real: false };

    pub(crate) fn new(p: f64, is_real: bool) -> Evidence {
        Evidence { p: p as f32, is_real }
    }

    /// The same with the p-value that it has, and not called real.
    pub(crate) fn not_real(self) -> Evidence {
        Evidence { is_real: false, ..self }
    }

    /// The p-value, corrected for all that was tested; 1 for what could be noise by itself.
    pub fn p(self) -> f64 {
        f64::from(self.p)
    }

    /// Whether the change is called real: its p-value is at most [`crate::DiffTree::alpha`]. Of one
    /// recording a side ([`crate::DiffTree::is_one_run_a_side`]) it only says that the recordings
    /// differ, by [`crate::ONE_RUN_LEAST`] points at least and not in what interrupts brought.
    pub fn is_real(self) -> bool {
        self.is_real
    }
}
