//! Turns the notes of an image, or of the kernel that runs, into its build id.
//!
//! Sources: the ELF gABI, "Note Section".

use flame_profile::BuildId;
use object::NativeEndian;
use object::elf::{ELF_NOTE_GNU, FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::NoteIterator;

/// The build id among notes of this machine's byte order, such as `/sys/kernel/notes`.
pub fn build_id_of_notes(notes: &[u8]) -> Option<BuildId> {
    let mut notes = NoteIterator::<FileHeader64<NativeEndian>>::new(NativeEndian, 4, notes).ok()?;
    while let Ok(Some(note)) = notes.next() {
        if note.name() == ELF_NOTE_GNU && note.n_type(NativeEndian) == NT_GNU_BUILD_ID {
            return BuildId::from_bytes(note.desc());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        let mut notes = Vec::new();
        for (kind, value) in [(1, &b"abc"[..]), (3, b"01234"), (4, b"x")] {
            for number in [4, value.len() as u32, kind] {
                notes.extend(number.to_ne_bytes());
            }
            notes.extend(b"GNU\0");
            notes.extend(value);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(build_id_of_notes(&notes).unwrap().as_bytes(), b"01234");
        for len in 0..notes.len() {
            build_id_of_notes(&notes[..len]);
        }
    }
}
