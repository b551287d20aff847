//! The files behind mappings, opened when the first sample hits them.

use std::fs;
use std::os::unix::fs::FileExt;

use flame_events::{Found, ImageKey, parse_maps};
use flame_image::ImageFile;
use flame_profile::{Bias, ByteLen, ImageAddress, ImageId, Missing, Pid, ProcessAddress};
use flame_unwind::{CfiUnwinder, Code, CodeAddress, ModuleId, UnwindSections};
use rustc_hash::FxHashMap;

use super::debug_places::DebugPlaces;
use super::mapped_files::{MappedFiles, Seen};
use crate::{SharedFiles, SharedMemory};

/// A vdso is two pages; this bounds what is read from a mapping that claims to be one.
const MAX_VDSO: u64 = 1 << 20;

/// How many bytes of memory are compared with a file; a power of two.
const COMPARED: u64 = 4096;

/// An image that samples have hit.
#[derive(Debug)]
pub(super) enum OpenImage {
    /// Its file, and the unwinder's name for it.
    File(ImageFile, ModuleId),
    /// Code without a file.
    Anonymous,
    /// Its file cannot be used.
    Unusable(Missing),
}

/// Whether memory of a process has the bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copied {
    Yes,
    No,
    /// The process is gone, or its memory not for flame to read.
    Unreadable,
}

/// The images of a recording.
#[derive(Debug)]
pub(super) struct Images {
    open: FxHashMap<ImageId, OpenImage>,
    files: SharedFiles,
    mapped: MappedFiles,
    memory: SharedMemory,
}

impl Images {
    /// Opened that way.
    pub(super) fn new(files: SharedFiles, memory: SharedMemory) -> Images {
        let mapped = MappedFiles::new(files.clone());
        Images { open: FxHashMap::default(), files, mapped, memory }
    }

    /// Has debug files looked for there, for images that are opened from now on.
    pub(super) fn look_for_debug_files(&mut self, places: DebugPlaces) {
        self.mapped.look_for_debug_files(places);
    }

    /// What is known of an image; `None` when it was not opened yet.
    pub(super) fn get(&self, id: ImageId) -> Option<&OpenImage> {
        self.open.get(&id)
    }

    /// Opens an image as its process has it, and gives its sections to the unwinder.
    pub(super) fn open(&mut self, key: &ImageKey, seen: Seen<'_>, unwinder: &mut CfiUnwinder) {
        let image = if key.is_anonymous() && !key.is_memfd() {
            OpenImage::Anonymous
        } else {
            let file = match key.is_vdso() {
                true => self.files.vdso().ok_or(Missing::FileUnreadable),
                false => self.mapped.open(key, seen),
            };
            match file {
                Ok(file) => {
                    let module = unwinder.add_module(UnwindSections::from(&file));
                    OpenImage::File(file, module)
                }
                // What is not an executable is code of a runtime.
                Err(_) if key.is_memfd() => OpenImage::Anonymous,
                Err(missing) => OpenImage::Unusable(missing),
            }
        };
        tracing::debug!(path = key.display_path(), ?image, "opened");
        self.open.insert(seen.found.mapping.image, image);
    }

    /// Gives up the files that were written into since they were opened, before names are read from
    /// them.
    #[expect(clippy::iter_over_hash_type, reason = "each image is looked at by itself")]
    pub(super) fn give_up_rewritten(&mut self) {
        for image in self.open.values_mut() {
            if matches!(image, OpenImage::File(file, _) if file.was_rewritten()) {
                *image = OpenImage::Unusable(Missing::FileReplaced);
            }
        }
    }

    /// Memory of processes.
    pub(super) fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    /// Compares the memory of a process around an address with the file that was mapped there.
    pub(super) fn copy_in_memory(&self, pid: Pid, old: &Found) -> Copied {
        let Some(OpenImage::File(file, _)) = self.open.get(&old.mapping.image) else {
            return Copied::No;
        };
        let start = old.mapping.start.0.max(old.address.0 & !(COMPARED - 1));
        let end = old.mapping.end.0.min(start.saturating_add(COMPARED));
        let mut memory = vec![0; usize::try_from(end.saturating_sub(start)).unwrap_or(0)];
        if self.memory.read(pid, ProcessAddress(start), &mut memory).is_err() {
            return Copied::Unreadable;
        }
        let offset = old.mapping.to_file_offset(ProcessAddress(start));
        let stored = file.stored(offset, ByteLen(memory.len() as u64));
        let is_copy = stored.is_some_and(|stored| is_copy(&memory, &stored));
        if is_copy { Copied::Yes } else { Copied::No }
    }

    /// What the unwinder is to know of an address; `None` when its image was not opened yet.
    pub(super) fn code(&self, found: &Found) -> Option<Code> {
        Some(match self.open.get(&found.mapping.image)? {
            OpenImage::File(file, module) => match image_address(file, found) {
                Some(address) => {
                    let bias = Bias::between(found.address, address);
                    Code::Module(CodeAddress::new(*module, found.address, bias))
                }
                None => Code::Executable,
            },
            OpenImage::Anonymous | OpenImage::Unusable(_) => Code::Executable,
        })
    }
}

/// Whether memory has the bytes of a file, as far as anything was written into it. Whoever copies
/// its code gets its memory empty first; what runs meanwhile returns into code that comes back.
fn is_copy(memory: &[u8], file: &[u8]) -> bool {
    let written = memory.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let pairs = memory.iter().zip(file).take(written);
    let same = pairs.filter(|(memory, file)| memory == file).count();
    // Breakpoints and patched jumps change some bytes of what is a copy all the same.
    same * 10 >= written * 9
}

fn image_address(file: &ImageFile, found: &Found) -> Option<ImageAddress> {
    file.to_image_address(found.mapping.to_file_offset(found.address))
}

/// The vdso, which is the same in every process of this kernel: read from this process's memory.
pub(super) fn own_vdso() -> Option<ImageFile> {
    let maps = parse_maps(&fs::read("/proc/self/maps").ok()?);
    let mapping = maps.into_iter().find(|mapping| mapping.path == b"[vdso]")?;
    let len = mapping.end.0.saturating_sub(mapping.start.0).min(MAX_VDSO);
    let mut bytes = vec![0; usize::try_from(len).ok()?];
    let memory = fs::File::open("/proc/self/mem").ok()?;
    memory.read_exact_at(&mut bytes, mapping.start.0).ok()?;
    ImageFile::from_bytes(bytes).ok()
}

/// The name of an image for people: its path, or what the kernel calls it.
pub fn image_name(key: &ImageKey) -> String {
    if key.is_anonymous() { "[anon]".to_owned() } else { key.display_path() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_a_copy_as_far_as_it_is_written() {
        let file = b"ABCDEFGHIJKLMNOPQRST";
        let cases = [
            (&file[..], true),
            (b"ABCDEFGHIJKLMNOPQR..", true),
            (b"ABCDEFGHIJKLMNOPQ...", false),
            (&[0; 20], true),
            (b"ABCDEFGHIJ\0\0\0\0\0\0\0\0\0\0", true),
            (b"xyz\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", false),
            (b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0T", false),
        ];
        for (memory, expect) in cases {
            assert_eq!(is_copy(memory, file), expect, "{memory:?}");
        }
        assert!(!is_copy(b"ABC", b"AB"));
        assert!(is_copy(b"", b""));
    }
}
