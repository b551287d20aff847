//! What is shown of a sample's native frames where they run programs of an interpreter.

use flame_profile::ScriptEnd;

use crate::location::CodeLocation;

/// The language of a sample's script, and what is known of its frames.
pub(crate) type EndOfScript = (&'static str, ScriptEnd);

/// What is to be shown of a sample's native frames.
#[derive(Debug, Default)]
pub(crate) struct Scripted {
    /// The frames that a native frame is replaced by, innermost first, with its position.
    pub(crate) frames: Vec<(usize, Vec<CodeLocation>)>,
    /// The positions of native frames that are left out: what an interpreter does to call.
    pub(crate) hidden: Vec<usize>,
    /// Whether native frames that run others stay beside those.
    pub(crate) keeps_native: bool,
    /// Nothing where no script runs, and where nobody was to read one.
    pub(crate) end: Option<EndOfScript>,
}

impl Scripted {
    /// Puts frames, outermost first, in place of a native one.
    pub(crate) fn put(&mut self, native: usize, mut frames: Vec<CodeLocation>) {
        frames.reverse();
        self.frames.push((native, frames));
    }

    /// Puts a mark in place of native frames that run others: one for those that follow each other.
    pub(crate) fn mark(&mut self, runs: &[bool], mark: CodeLocation) {
        let mut last = None;
        for (index, _) in runs.iter().enumerate().filter(|(_, runs)| **runs) {
            let follows = last.is_some_and(|last: usize| last + 1 == index);
            self.frames.push((index, if follows { Vec::new() } else { vec![mark] }));
            last = Some(index);
        }
    }

    /// Marks that callers are missing: in native frames that run others further out than one, and, if the frames of that
    /// one are cut, outside of those.
    pub(crate) fn mark_callers(&mut self, (outermost, is_cut): (usize, bool), runs: &[bool]) {
        let mark = CodeLocation::ScriptCallersNotRead;
        if is_cut && let Some((_, frames)) = self.frames.last_mut() {
            frames.push(mark);
        }
        let beyond = runs.iter().enumerate().map(|(index, runs)| *runs && index > outermost);
        self.mark(&beyond.collect::<Vec<_>>(), mark);
    }

    /// What stands for a native frame, outermost first.
    pub(crate) fn of_native(
        &self,
        index: usize,
        native: CodeLocation,
    ) -> impl Iterator<Item = CodeLocation> + '_ {
        let found = self.frames.iter().find(|(position, _)| *position == index);
        let is_hidden = !self.keeps_native && (found.is_some() || self.hidden.contains(&index));
        let frames = found.map_or(&[][..], |(_, frames)| frames);
        (!is_hidden).then_some(native).into_iter().chain(frames.iter().rev().copied())
    }
}
