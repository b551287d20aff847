//! How many functions a stack has, with those that are inlined, and how long their names are: a file or a
//! Java VM can say of each frame that hundreds are, and a stack of a thousand frames would become hundreds of
//! thousands; and folded text spells each of them out.

use flame_profile::{Location, LocationId, Profile, StackId};
use rustc_hash::FxHashMap;

/// The most functions of a stack; of frames further in only the outermost one is shown. With 1024 frames at
/// most, each may have inlined seven others.
const MOST: u32 = 8192;

/// The most bytes that names of a stack have; those of frames further in are cut to this many characters.
const MOST_TEXT: u32 = 512 << 10;
const SHORT: usize = 60;

/// What of a stack is counted.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    functions: u32,
    text: u32,
}

/// The stacks of a profile that is being made.
#[derive(Debug, Default)]
pub(crate) struct Inlining {
    /// For each stack what it has.
    sizes: Vec<Size>,
    /// The same for each location; nothing where that was not asked for.
    of_locations: Vec<Size>,
    /// Locations in place of those that stand for too many functions.
    outermost: FxHashMap<LocationId, LocationId>,
    /// The same with short names.
    short: FxHashMap<LocationId, LocationId>,
}

impl Inlining {
    /// The stacks of `profile`, of which only the empty one is there.
    pub(crate) fn new() -> Inlining {
        Inlining { sizes: vec![Size::default()], ..Inlining::default() }
    }

    /// Adds the stack that is called from `parent` at a location.
    pub(crate) fn push(
        &mut self,
        profile: &mut Profile,
        parent: StackId,
        location: LocationId,
    ) -> StackId {
        let above = self.sizes.get(parent.index()).copied().unwrap_or_default();
        let size = self.size_of(profile, location);
        let location = if above.text.saturating_add(size.text) > MOST_TEXT {
            self.short(profile, location)
        } else if size.functions > 1 && above.functions.saturating_add(size.functions) > MOST {
            self.outermost(profile, location)
        } else {
            location
        };
        let size = self.size_of(profile, location);
        let stack = profile.push_stack(parent, location);
        if self.sizes.len() <= stack.index() {
            self.sizes.resize(stack.index() + 1, Size::default());
        }
        self.sizes[stack.index()] = Size {
            functions: above.functions.saturating_add(size.functions),
            text: above.text.saturating_add(size.text),
        };
        stack
    }

    fn size_of(&mut self, profile: &Profile, location: LocationId) -> Size {
        if self.of_locations.len() <= location.index() {
            self.of_locations.resize(profile.locations().len(), Size::default());
        }
        let known = &mut self.of_locations[location.index()];
        // Each has a function at least.
        if known.functions == 0 {
            *known = size_of(profile, location);
        }
        *known
    }

    fn outermost(&mut self, profile: &mut Profile, location: LocationId) -> LocationId {
        *self.outermost.entry(location).or_insert_with(|| {
            let Location { image, address, frames } = profile.location(location).clone();
            let frames = frames.last().map(|frame| vec![*frame]).unwrap_or_default();
            profile.add_location(Location { image, address, frames })
        })
    }

    fn short(&mut self, profile: &mut Profile, location: LocationId) -> LocationId {
        if let Some(known) = self.short.get(&location) {
            return *known;
        }
        let outermost = self.outermost(profile, location);
        let Location { image, address, mut frames } = profile.location(outermost).clone();
        for id in &mut frames {
            let mut frame = profile.frame(*id);
            let name = profile.text(frame.name);
            if let Some((end, _)) = name.char_indices().nth(SHORT) {
                let name = format!("{}…", &name[..end]);
                frame.name = profile.intern(&name);
                *id = profile.add_whole_frame(frame);
            }
        }
        let short = profile.add_location(Location { image, address, frames });
        self.short.insert(location, short);
        short
    }

    /// What has to be said of what was left out.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let many = format!("stacks of more than {MOST} functions: inlined ones were left out");
        let long = format!(
            "stacks with more than {} KiB of names: inner ones were shortened, and inlined ones \
             left out",
            MOST_TEXT >> 10
        );
        let is_many = self.outermost.len() > self.short.len();
        [(is_many, many), (!self.short.is_empty(), long)]
            .into_iter()
            .filter_map(|(is_so, note)| is_so.then_some(note))
    }
}

fn size_of(profile: &Profile, location: LocationId) -> Size {
    let frames = &profile.location(location).frames;
    let text = frames.iter().map(|frame| profile.text(profile.frame(*frame).name).len() + 1).sum();
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Size { functions: number(frames.len()), text: number(text) }
}

#[cfg(test)]
mod tests {
    use flame_profile::{FrameKind, ImageAddress, ValueType};

    use super::*;

    #[test]
    fn a_stack_of_too_many_functions_loses_the_inlined_ones_further_in() {
        let mut profile = Profile::new(vec![ValueType::samples()]);
        let many_frames = usize::try_from(MOST / 4).unwrap();
        let frames: Vec<_> = (0..many_frames)
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
            assert_eq!(frames.len(), if round <= 4 { many_frames } else { 1 }, "{round}");
            assert_eq!(frames.last(), Some(&function));
            assert_eq!(inlining.notes().count(), usize::from(round > 4));
        }
    }

    #[test]
    fn a_stack_of_too_long_names_has_short_ones_further_in() {
        let mut profile = Profile::new(vec![ValueType::samples()]);
        let mut inlining = Inlining::new();
        let (mut stack, mut lens) = (StackId::EMPTY, Vec::new());
        for number in 0..40 {
            let name = format!("{number}{}", "é".repeat(8 << 10));
            let frame = profile.add_frame(&name, FrameKind::User);
            let location = profile.add_location(Location::named(frame));
            stack = inlining.push(&mut profile, stack, location);
            let shown = &profile.location(profile.stacks().entry(stack).unwrap()).frames;
            lens.push(profile.text(profile.frame(shown[0]).name).chars().count());
        }
        let whole = lens.iter().take_while(|len| **len > 8000).count();
        assert_eq!(whole, 31, "{lens:?}");
        assert!(lens[whole..].iter().all(|len| *len == SHORT + 1), "{lens:?}");
        let notes: Vec<String> = inlining.notes().collect();
        assert!(notes.len() == 1 && notes[0].contains("were shortened"), "{notes:?}");
    }
}
