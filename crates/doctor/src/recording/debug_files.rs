//! A word about debug files that are missing or of another build although their image names them.

use flame_message::Note;
use flame_profile::Weight;
use flame_recorder::{SeenImage, image_name};
use flame_symbolize::Sources;

use crate::image_advice::mend_debug_files;

/// The share of samples from which on an image's debug files are worth a note.
const MIN_SHARE: f64 = 0.01;

/// A note on each image with enough samples whose debug information is torn.
pub fn torn_debug_files(images: &[SeenImage<'_>], samples: u64) -> Vec<Note> {
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
