//! What frames are called, each distinct one once.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// How many are kept at most.
const MOST: usize = 1 << 20;

/// What a frame is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shown {
    /// Methods, innermost first: the last one is the frame's own, those before are inlined in it.
    pub methods: Vec<Arc<str>>,
    /// Whether it is interpreted.
    pub is_interpreted: bool,
}

/// All that were shown, of all VMs.
#[derive(Debug, Default)]
pub struct Names {
    numbers: FxHashMap<Arc<Shown>, u32>,
    shown: Vec<Arc<Shown>>,
}

impl Names {
    /// The number of what a frame is called; `None` where there are too many.
    pub(crate) fn number(&mut self, shown: Shown) -> Option<u32> {
        if let Some(known) = self.numbers.get(&shown) {
            return Some(*known);
        }
        let number = u32::try_from(self.shown.len()).ok().filter(|_| self.shown.len() < MOST)?;
        let shown = Arc::new(shown);
        self.shown.push(Arc::clone(&shown));
        self.numbers.insert(shown, number);
        Some(number)
    }

    /// What the frame of a number is called.
    pub fn get(&self, number: u32) -> Option<&Shown> {
        self.shown.get(usize::try_from(number).ok()?).map(Arc::as_ref)
    }
}
