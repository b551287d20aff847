//! What programs that tests built are symbolized as.

use flame_image::testing::build::Workshop;
use flame_image::{DebugSearch, ImageFile};
use flame_profile::ImageAddress;

use crate::{SymbolizeConfig, Symbolized, symbolize_image};

/// The names of frames, innermost first; none where an address has no name.
pub(crate) trait Frames {
    /// At an address of a program.
    fn frames(&self, program: &str, at: ImageAddress) -> Vec<String> {
        self.frames_with(program, at, |_| ())
    }

    /// The same with debug files looked for elsewhere, too.
    fn frames_with(
        &self,
        program: &str,
        at: ImageAddress,
        change: impl FnOnce(&mut DebugSearch),
    ) -> Vec<String>;
}

impl Frames for Workshop {
    fn frames_with(
        &self,
        program: &str,
        at: ImageAddress,
        change: impl FnOnce(&mut DebugSearch),
    ) -> Vec<String> {
        let path = self.path(program);
        let mut search = DebugSearch::of(&path);
        change(&mut search);
        frames(&ImageFile::open_with(&path, search).unwrap(), at)
    }
}

/// Those at an address of an image.
pub(crate) fn frames(image: &ImageFile, at: ImageAddress) -> Vec<String> {
    match &symbolize_image(image, &[at], &SymbolizeConfig::default())[0] {
        Symbolized::Frames(frames) => frames.iter().map(|frame| frame.name.to_string()).collect(),
        Symbolized::Unknown(_) => Vec::new(),
    }
}
