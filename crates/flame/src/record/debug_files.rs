//! Debug files: the fetching of those that are nowhere, and a word about those that are missing or of
//! another build although their image names them.
//!
//! Servers are asked only when DEBUGINFOD_URLS names some, and only for images that enough samples
//! are in: a download takes seconds, and nobody looks for the names of a thousandth.

#[cfg(feature = "debuginfod")]
mod fetching;

#[cfg(feature = "debuginfod")]
pub(super) use fetching::fetch_missing;

use flame_doctor::mend_debug_files;
use flame_profile::Weight;
use flame_recorder::{SeenImage, image_name};
use flame_symbolize::Sources;

use crate::message::Note;

/// The share of samples from which on an image's debug files are worth a note.
const MIN_SHARE: f64 = 0.01;

/// A note on each image with enough samples whose debug information is torn.
pub(super) fn notes(images: &[SeenImage<'_>], samples: u64) -> Vec<Note> {
    let visible = images.iter().filter(|image| {
        Weight(image.samples).share_of(Weight(samples)) >= MIN_SHARE && !image.key.is_vdso()
    });
    let mut notes: Vec<Note> = visible.filter_map(note).collect();
    notes.sort_by(|a, b| a.text().cmp(b.text()));
    notes
}

fn note(image: &SeenImage<'_>) -> Option<Note> {
    let sources = Sources::of(image.file?);
    let mend = mend_debug_files(&sources)?;
    let name = image_name(image.key);
    let text = match (&sources.refused, &sources.split) {
        (Some(path), _) => {
            format!("the debug file of {name} is not used: {} is of another build", path.display())
        }
        (None, Some(file)) => {
            format!("inlined functions of {name} have no names: {file} is not found")
        }
        (None, None) => return None,
    };
    Some(Note::new(text, mend))
}

/// Without the feature nothing is fetched.
#[cfg(not(feature = "debuginfod"))]
pub(super) fn fetch_missing(
    _: &[flame_recorder::SeenImage<'_>],
    _samples: u64,
    _quiet: bool,
    _: crate::terminal::Paint,
    _: &super::signals::StopSignals,
) -> Option<String> {
    None
}
