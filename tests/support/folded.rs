//! Folded text read back: each line's frames, outermost first, and its weight.

use std::collections::BTreeMap;
use std::fmt;

/// A folded profile.
#[derive(Clone, Default)]
pub(crate) struct Folded {
    stacks: BTreeMap<Vec<String>, u64>,
}

impl Folded {
    /// Reads folded text; any line that is not `frames WEIGHT`, out of order or there twice fails.
    #[track_caller]
    pub(crate) fn parse(text: &str) -> Folded {
        let mut stacks = BTreeMap::new();
        let mut last = "";
        for line in text.lines() {
            let (path, weight) = line.rsplit_once(' ').unwrap_or_else(|| panic!("line: {line}"));
            let weight = weight.parse().unwrap_or_else(|_| panic!("weight: {line}"));
            assert!(last < path, "lines out of order:\n  {last}\n  {path}");
            last = path;
            stacks.insert(path.split(';').map(str::to_owned).collect(), weight);
        }
        Folded { stacks }
    }

    /// The stacks with the thread's name first and their weights.
    pub(crate) fn stacks(&self) -> impl Iterator<Item = (&[String], u64)> {
        self.stacks.iter().map(|(frames, weight)| (frames.as_slice(), *weight))
    }

    pub(crate) fn total(&self) -> u64 {
        self.stacks.values().sum()
    }

    /// The weight of the stacks that hold these frames, directly one below the other.
    pub(crate) fn with(&self, run: &[&str]) -> u64 {
        let holds = |frames: &[String]| frames.windows(run.len()).any(|window| window == run);
        self.stacks().filter(|(frames, _)| holds(frames)).map(|(_, weight)| weight).sum()
    }

    /// The weight of the stacks that have those frames in this order, with or without others between.
    pub(crate) fn with_in_order(&self, names: &[&str]) -> u64 {
        let holds = |frames: &[String]| {
            let mut frames = frames.iter();
            names.iter().all(|name| frames.any(|frame| frame == name))
        };
        self.stacks().filter(|(frames, _)| holds(frames)).map(|(_, weight)| weight).sum()
    }

    /// The weight of the stacks that have a frame for which `test` holds.
    pub(crate) fn with_any(&self, test: impl Fn(&str) -> bool) -> u64 {
        let holds = |frames: &[String]| frames.iter().any(|frame| test(frame));
        self.stacks().filter(|(frames, _)| holds(frames)).map(|(_, weight)| weight).sum()
    }

    /// Only the stacks with that root frame.
    pub(crate) fn of(&self, root: &str) -> Folded {
        let stacks = self.stacks.iter().filter(|(frames, _)| frames[0] == root);
        Folded { stacks: stacks.map(|(frames, weight)| (frames.clone(), *weight)).collect() }
    }

    /// The root frames, each once, sorted.
    pub(crate) fn roots(&self) -> Vec<&str> {
        let mut roots: Vec<&str> = self.stacks.keys().map(|frames| frames[0].as_str()).collect();
        roots.dedup();
        roots
    }

    /// The same without that of a thread which only waits, and of those that have given up their number when they end:
    /// both may or may not have been seen.
    pub(crate) fn roots_besides(&self, idle: &str) -> Vec<&str> {
        let mut roots = self.roots();
        roots.retain(|root| ![idle, "[exiting]"].contains(root));
        roots
    }

    /// The root frames that start with one of `names`.
    pub(crate) fn of_roots(&self, names: &[&str]) -> impl Iterator<Item = &str> {
        let roots = self.roots().into_iter();
        roots.filter(|root| names.iter().any(|name| root.starts_with(name)))
    }
}

impl fmt::Debug for Folded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (frames, weight) in self.stacks() {
            writeln!(f, "{} {weight}", frames.join(";"))?;
        }
        Ok(())
    }
}
