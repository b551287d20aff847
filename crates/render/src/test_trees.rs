//! Call trees for tests, from literal stacks or from seeded random numbers.

use flame_profile::{CallTree, FrameKind, Location, Profile, StackId, Thread, TreeOptions};
use flame_profile::{ValueType, Weight};

/// A tree of `thread;outermost;...;innermost` stacks; names that end in `_[k]`, `_[i]` or `_[j]`
/// are of that kind.
pub(crate) fn tree_of<S: AsRef<str>>(stacks: &[(S, u64)]) -> CallTree {
    tree_of_value(stacks, ValueType::samples())
}

/// The same, with a value other than samples.
pub(crate) fn tree_of_value<S: AsRef<str>>(stacks: &[(S, u64)], value: ValueType) -> CallTree {
    let mut profile = Profile::new(vec![value]);
    for (text, weight) in stacks {
        let mut names = text.as_ref().split(';');
        let name = profile.intern(names.next().unwrap());
        let thread = profile.add_whole_thread(Thread { name, process: None, pid: None, tid: None });
        let mut stack = StackId::EMPTY;
        for name in names {
            let (name, kind) = kind_of(name);
            let frame = profile.add_frame(name, kind);
            let location = profile.add_location(Location::named(frame));
            stack = profile.push_stack(stack, location);
        }
        profile.add_sample(thread, stack, &[*weight]);
    }
    let tree = CallTree::from_profile(&profile, &TreeOptions::default());
    assert_eq!(tree.total(), stacks.iter().map(|(_, weight)| Weight(*weight)).sum());
    tree
}

fn kind_of(name: &str) -> (&str, FrameKind) {
    let kinds = [FrameKind::Kernel, FrameKind::Inlined, FrameKind::Jit];
    let kind = kinds.into_iter().find(|kind| name.ends_with(kind.annotation()));
    match kind {
        Some(kind) => (&name[..name.len() - 4], kind),
        None if name.starts_with("[truncated") => (name, FrameKind::Mark),
        None => (name, FrameKind::User),
    }
}

/// xorshift64*: the same numbers for the same seed on every machine.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        (high % u64::from(limit)) as u32
    }

    /// Up to `count` stacks with heavy-tailed weights and names that share prefixes.
    pub(crate) fn stacks(&mut self, count: u32) -> Vec<(String, u64)> {
        let names = ["a", "ab", "abc", "b", "std::x<T>::y", "z_[k]", "i_[i]"];
        let count = 1 + self.below(count);
        let mut stacks = Vec::new();
        for _ in 0..count {
            let depth = 1 + self.below(12);
            let frames: Vec<&str> =
                (0..depth).map(|_| names[self.below(names.len() as u32) as usize]).collect();
            let exponent = self.below(20);
            stacks.push((frames.join(";"), 1 + u64::from(self.below(1 << exponent))));
        }
        stacks
    }
}
