//! How many functions a stack has, with those that are inlined: a file or a Java VM can say of each
//! frame that hundreds are, and a stack of a thousand frames would become hundreds of thousands.

use flame_profile::{Location, LocationId, Profile, StackId};
use rustc_hash::FxHashMap;

/// The most functions of a stack; of frames further in only the outermost one is shown. With 1024 frames at
/// most, each may have inlined seven others.
const MOST: usize = 8192;

/// The stacks of a profile that is being made.
#[derive(Debug, Default)]
pub(crate) struct Inlining {
    /// For each stack how many functions it has.
    depths: Vec<usize>,
    /// Locations in place of those that stand for too many functions.
    outermost: FxHashMap<LocationId, LocationId>,
}

impl Inlining {
    /// The stacks of `profile`, of which only the empty one is there.
    pub(crate) fn new() -> Inlining {
        Inlining { depths: vec![0], outermost: FxHashMap::default() }
    }

    /// Adds the stack that is called from `parent` at a location.
    pub(crate) fn push(
        &mut self,
        profile: &mut Profile,
        parent: StackId,
        location: LocationId,
    ) -> StackId {
        let above = self.depths.get(parent.index()).copied().unwrap_or(0);
        let functions = profile.location(location).frames.len();
        let (location, functions) = match functions > 1 && above + functions > MOST {
            true => (self.outermost(profile, location), 1),
            false => (location, functions),
        };
        let stack = profile.push_stack(parent, location);
        if self.depths.len() <= stack.index() {
            self.depths.resize(stack.index() + 1, 0);
        }
        self.depths[stack.index()] = above + functions;
        stack
    }

    fn outermost(&mut self, profile: &mut Profile, location: LocationId) -> LocationId {
        *self.outermost.entry(location).or_insert_with(|| {
            let Location { image, address, frames } = profile.location(location).clone();
            let frames = frames.last().map(|frame| vec![*frame]).unwrap_or_default();
            profile.add_location(Location { image, address, frames })
        })
    }

    /// What has to be said of what was left out.
    pub(crate) fn note(&self) -> Option<String> {
        let note = format!("stacks of more than {MOST} functions: inlined ones were left out");
        (!self.outermost.is_empty()).then_some(note)
    }
}

#[cfg(test)]
mod tests {
    use flame_profile::{FrameKind, ImageAddress, ValueType};

    use super::*;

    #[test]
    fn a_stack_of_too_many_functions_loses_the_inlined_ones_further_in() {
        let mut profile = Profile::new(vec![ValueType::samples()]);
        let frames: Vec<_> = (0..MOST / 4)
            .map(|number| profile.add_frame(&format!("f{number}"), FrameKind::Inlined))
            .collect();
        let function = frames.last().copied().unwrap();
        let many = Location { image: None, address: ImageAddress(1), frames };
        let many = profile.add_location(many);
        let mut inlining = Inlining::new();
        let mut stack = StackId::EMPTY;
        for round in 1..=6 {
            stack = inlining.push(&mut profile, stack, many);
            let location = profile.stacks().entry(stack).unwrap();
            let frames = &profile.location(location).frames;
            assert_eq!(frames.len(), if round <= 4 { MOST / 4 } else { 1 }, "{round}");
            assert_eq!(frames.last(), Some(&function));
            assert_eq!(inlining.note().is_some(), round > 4);
        }
    }
}
