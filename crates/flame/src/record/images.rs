//! The files behind mappings, opened when the first sample hits them.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use flame_events::{FileId, Found, ImageKey, parse_maps};
use flame_profile::{ImageAddress, ImageId, Missing, Pid};
use flame_symbolize::{ImageError, ImageFile};
use flame_unwind::{CfiUnwinder, Code, CodeAddress, ModuleId, Section, UnwindSections};
use rustc_hash::FxHashMap;

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
}

impl Images {
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
            match open_file(key, pid, found) {
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

/// Opens the file of an image: by the path as the process sees it, by the same path as flame sees
/// it, or, where both are gone or another file, through the kernel's link to what is mapped.
pub(crate) fn open_file(key: &ImageKey, pid: Pid, found: &Found) -> Result<ImageFile, Missing> {
    if key.is_vdso() {
        return vdso().ok_or(Missing::FileUnreadable);
    }
    if !key.path.starts_with(b"/") {
        return Err(Missing::FileUnreadable);
    }
    let path = key.path.strip_suffix(b" (deleted)").unwrap_or(&key.path);
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    let (start, end) = (found.mapping.start.0, found.mapping.end.0);
    let in_root =
        PathBuf::from(format!("/proc/{pid}/root")).join(path.strip_prefix("/").unwrap_or(path));
    let candidates = [
        in_root,
        path.to_owned(),
        PathBuf::from(format!("/proc/{pid}/map_files/{start:x}-{end:x}")),
    ];
    let mut reason = Missing::FileUnreadable;
    for candidate in candidates {
        let Ok(status) = fs::metadata(&candidate) else { continue };
        if !is_same_file(key.file, status.ino()) {
            reason = Missing::FileReplaced;
            continue;
        }
        match ImageFile::open(&candidate) {
            Ok(file) => return Ok(file),
            Err(ImageError::Open { .. }) => {}
            Err(error) => return Err(error.missing()),
        }
    }
    Err(reason)
}

/// Devices are not compared: overlay and btrfs file systems report others through stat than the
/// kernel does for a mapping.
fn is_same_file(file: FileId, inode: u64) -> bool {
    match file {
        FileId::None => true,
        FileId::Inode { inode: mapped, .. } => mapped == inode,
    }
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
