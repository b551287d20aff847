//! What a sample's stack rests on, as a label: `evidence` with one of a few words; none where the
//! stack was copied with the sample.

use flame_profile::Evidence;

use super::proto;

/// The label's key.
pub(super) const KEY: &str = "evidence";

/// Written into files: never changes.
fn word(evidence: Evidence) -> Option<&'static str> {
    match evidence {
        Evidence::Copied => None,
        Evidence::ReadFromProcess => Some("read-from-process"),
        Evidence::GuessedFrames => Some("guessed-frames"),
    }
}

/// The label of a sample. `string` gives the index of a string.
pub(super) fn label(
    evidence: Evidence,
    string: &mut impl FnMut(&str) -> i64,
) -> Option<proto::Label> {
    let word = word(evidence)?;
    Some(proto::Label { key: string(KEY), text: string(word), number: 0 })
}

/// What that text of a label says; `None` for one that flame never writes.
pub(super) fn of_word(text: &str) -> Option<Evidence> {
    Evidence::ALL.into_iter().find(|evidence| word(*evidence) == Some(text))
}
