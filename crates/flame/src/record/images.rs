//! The files behind mappings, opened when the first sample hits them.

use std::fs;
use std::os::unix::fs::FileExt;

use flame_events::{Found, ImageKey, parse_maps};
use flame_profile::{ImageAddress, ImageId, Missing, Pid};
use flame_symbolize::ImageFile;
use flame_unwind::{CfiUnwinder, Code, CodeAddress, ModuleId, Section, UnwindSections};
use rustc_hash::FxHashMap;

use super::debug_files::DebugPlaces;
use super::mapped_files::MappedFiles;

/// A vdso is two pages; this bounds what is read from a mapping that claims to be one.
const MAX_VDSO: u64 = 1 << 20;

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

/// The images of a recording.
#[derive(Debug, Default)]
pub(super) struct Images {
    open: FxHashMap<ImageId, OpenImage>,
    files: MappedFiles,
}

impl Images {
    /// Has debug files looked for there, for images that are opened from now on.
    pub(super) fn look_for_debug_files(&mut self, places: DebugPlaces) {
        self.files.look_for_debug_files(places);
    }

    /// What is known of an image; `None` when it was not opened yet.
    pub(super) fn get(&self, id: ImageId) -> Option<&OpenImage> {
        self.open.get(&id)
    }

    /// Opens an image as that process has it, and gives its sections to the unwinder.
    pub(super) fn open(
        &mut self,
        key: &ImageKey,
        pid: Pid,
        found: &Found,
        unwinder: &mut CfiUnwinder,
    ) {
        let image = if key.is_anonymous() {
            OpenImage::Anonymous
        } else {
            let file = match key.is_vdso() {
                true => vdso().ok_or(Missing::FileUnreadable),
                false => self.files.open(key, pid, found),
            };
            match file {
                Ok(file) => {
                    let module = unwinder.add_module(sections(&file));
                    OpenImage::File(file, module)
                }
                Err(missing) => OpenImage::Unusable(missing),
            }
        };
        tracing::debug!(path = key.display_path(), ?image, "opened");
        self.open.insert(found.mapping.image, image);
    }

    /// What the unwinder is to know of an address; `None` when its image was not opened yet.
    pub(super) fn code(&self, found: &Found) -> Option<Code> {
        Some(match self.open.get(&found.mapping.image)? {
            OpenImage::File(file, module) => match image_address(file, found) {
                Some(address) => {
                    let bias = found.address.0.wrapping_sub(address.0);
                    Code::Module(CodeAddress::new(*module, found.address, bias))
                }
                None => Code::Executable,
            },
            OpenImage::Anonymous | OpenImage::Unusable(_) => Code::Executable,
        })
    }
}

fn image_address(file: &ImageFile, found: &Found) -> Option<ImageAddress> {
    file.to_image_address(found.mapping.to_file_offset(found.address))
}

/// The vdso, which is the same in every process of this kernel: read from flame's own memory.
fn vdso() -> Option<ImageFile> {
    let maps = parse_maps(&fs::read("/proc/self/maps").ok()?);
    let mapping = maps.into_iter().find(|mapping| mapping.path == b"[vdso]")?;
    let len = mapping.end.0.saturating_sub(mapping.start.0).min(MAX_VDSO);
    let mut bytes = vec![0; usize::try_from(len).ok()?];
    let memory = fs::File::open("/proc/self/mem").ok()?;
    memory.read_exact_at(&mut bytes, mapping.start.0).ok()?;
    ImageFile::from_bytes(bytes).ok()
}

fn sections(file: &ImageFile) -> UnwindSections {
    let section = |section: flame_symbolize::Section| Section {
        address: section.address,
        bytes: section.bytes,
    };
    UnwindSections {
        eh_frame_hdr: file.section(".eh_frame_hdr").map(section),
        eh_frame: file.section(".eh_frame").map(section),
        debug_frame: file.section(".debug_frame").map(section),
        text: file.executable().map(section),
        entry: Some(file.entry()),
    }
}
