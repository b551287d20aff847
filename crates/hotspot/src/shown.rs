//! What frames are called, each distinct one once.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// How much memory they may take, in bytes: some 200,000 of five methods each. Methods that many frames
/// share count for each of them.
const MOST_BYTES: usize = 64 << 20;

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
    bytes: usize,
    was_full: bool,
}

impl Shown {
    fn size(&self) -> usize {
        let methods = self.methods.iter().map(|method| method.len() + size_of_val(method));
        methods.sum::<usize>() + 128
    }
}

impl Names {
    /// The number of what a frame is called; `None` where there are too many.
    pub(crate) fn number(&mut self, shown: Shown) -> Option<u32> {
        if let Some(known) = self.numbers.get(&shown) {
            return Some(*known);
        }
        let bytes = self.bytes + shown.size();
        if bytes > MOST_BYTES {
            self.was_full = true;
            return None;
        }
        let number = u32::try_from(self.shown.len()).ok()?;
        self.bytes = bytes;
        let shown = Arc::new(shown);
        self.shown.push(Arc::clone(&shown));
        self.numbers.insert(shown, number);
        Some(number)
    }

    /// Whether some were not kept, since they take more memory than they may.
    pub fn were_too_many(&self) -> bool {
        self.was_full
    }

    /// What the frame of a number is called.
    pub fn get(&self, number: u32) -> Option<&Shown> {
        self.shown.get(usize::try_from(number).ok()?).map(Arc::as_ref)
    }
}
