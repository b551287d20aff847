//! Turns an ELF file into its identity, segments and sections.
//!
//! What the file says is not believed: every range is checked when it is used, and a part that
//! makes no sense is as if it were absent. Names for addresses are found elsewhere.
//!
//! Sources: elf(5), the ELF gABI chapters 4 and 5.

use std::fs;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use flame_pclntab::GoTable;
use flame_profile::{BuildId, ByteLen, FileOffset, ImageAddress, Missing, SharedBytes};
use gimli::RunTimeEndian;
use object::{Object, ObjectSection, ObjectSegment, SegmentFlags, elf};

use crate::companion::{find_companion, find_supplement, mini_debug_info};
use crate::debug_search::DebugSearch;
use crate::files::{FileStatus, OpenFile};
use crate::function_table::{self, FunctionTable};
use crate::go;
use crate::map_file::map_file;
use crate::plausible::has_plausible_tables;
use crate::symbol_table::SymbolTable;

/// Mappings start and end at multiples of this in a file, or of a multiple of it.
const PAGE: u64 = 4096;

/// An ELF executable, library or vdso whose headers made sense. Clones share everything.
#[derive(Clone)]
pub struct ImageFile {
    inner: Arc<Inner>,
}

struct Inner {
    bytes: SharedBytes,
    build_id: Option<BuildId>,
    entry: ImageAddress,
    segments: Vec<Segment>,
    /// `None` for one that was in memory.
    file: Option<FoundFile>,
    search: DebugSearch,
    symbols: OnceLock<SymbolTable>,
    functions: OnceLock<FunctionTable>,
    /// `None` in what is not a program of Go.
    go_table: OnceLock<Option<Arc<GoTable>>>,
    /// Set when it is found, and looked for anew until then: it may still be fetched.
    companion: OnceLock<ImageFile>,
    supplement: OnceLock<ImageFile>,
}

/// The file that an image is in.
struct FoundFile {
    /// Where it was opened.
    path: PathBuf,
    /// Where it is when links are followed, as far as the kernel can tell.
    place: Option<PathBuf>,
    status: FileStatus,
}

/// A part of the file that the loader maps (`PT_LOAD`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where its bytes start in the file; not necessarily at a page boundary.
    pub offset: FileOffset,
    /// Where its first byte stands in the image.
    pub address: ImageAddress,
    /// How many bytes of the file it has.
    pub file_len: ByteLen,
    /// How many bytes of memory it takes; what exceeds `file_len` is zero.
    pub memory_len: ByteLen,
    /// Whether its memory is executable.
    pub executable: bool,
}

/// A named part of the file, decompressed where it was compressed.
#[derive(Clone, Debug)]
pub struct Section {
    /// Where it stands in the image; 0 for sections that are not loaded.
    pub address: ImageAddress,
    /// What it holds; empty for sections without bytes in the file (`.bss`).
    pub bytes: SharedBytes,
}

/// Why a file is not an image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The file cannot be opened, examined or mapped.
    #[error("cannot open image {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is a directory, device, FIFO or socket, none of which holds code.
    #[error("image {} is not a regular file", path.display())]
    NotRegular {
        /// The file.
        path: PathBuf,
    },
    /// The bytes are not an ELF image with headers that can be read.
    #[error("not a readable ELF image")]
    NotElf(#[source] object::Error),
    /// It has tables of lengths that no linker writes, and that take for ever to go through.
    #[error("an ELF image with tables of implausible length")]
    ImplausibleTables,
}

impl ImageError {
    /// The reason in the words of a profile's health.
    pub fn missing(&self) -> Missing {
        match self {
            ImageError::Open { .. } => Missing::FileUnreadable,
            ImageError::NotRegular { .. }
            | ImageError::NotElf(_)
            | ImageError::ImplausibleTables => Missing::NotElf,
        }
    }
}

impl ImageFile {
    /// Maps a file and reads its headers. The file stays mapped as long as a clone, or a section
    /// of it, lives. Never blocks on a FIFO and never opens a device.
    ///
    /// # Errors
    /// When the path is not a regular file, cannot be read, or holds no ELF image.
    pub fn open(path: &Path) -> Result<ImageFile, ImageError> {
        ImageFile::open_with(path, DebugSearch::of(path))
    }

    /// The same; what was stripped from it is looked for as `search` says.
    ///
    /// # Errors
    /// As [`ImageFile::open`].
    pub fn open_with(path: &Path, search: DebugSearch) -> Result<ImageFile, ImageError> {
        let opened = search.files.open(path).map_err(|source| match source.kind() {
            io::ErrorKind::InvalidInput => ImageError::NotRegular { path: path.to_owned() },
            _ => ImageError::Open { path: path.to_owned(), source },
        })?;
        ImageFile::of_file(path, &opened, search)
    }

    /// The image in a file that is open already; `path` is where it was found.
    ///
    /// # Errors
    /// When it cannot be mapped, or holds no ELF image.
    pub fn of_file(
        path: &Path,
        opened: &OpenFile,
        search: DebugSearch,
    ) -> Result<ImageFile, ImageError> {
        let failed = |source| ImageError::Open { path: path.to_owned(), source };
        let bytes = map_file(&opened.file).map_err(failed)?;
        // A copy has no place.
        let place = fs::read_link(format!("/proc/self/fd/{}", opened.file.as_raw_fd())).ok();
        // What the link of another mount namespace leads to stands elsewhere in this one.
        let is_here = |place: &PathBuf| {
            !path.starts_with("/proc") && !place.as_os_str().as_bytes().starts_with(b"/memfd:")
        };
        let place = place.filter(is_here);
        let file = FoundFile { path: path.to_owned(), place, status: opened.status };
        ImageFile::from_shared(bytes, Some(file), search)
    }

    /// An image that is in memory already, such as the vdso.
    ///
    /// # Errors
    /// When the bytes are not an ELF image.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<ImageFile, ImageError> {
        ImageFile::from_shared(SharedBytes::from(bytes), None, DebugSearch::of(Path::new("")))
    }

    /// The image in bytes that were unpacked for another one.
    ///
    /// # Errors
    /// When the bytes are not an ELF image.
    pub(crate) fn within(bytes: SharedBytes, outer: &ImageFile) -> Result<ImageFile, ImageError> {
        ImageFile::from_shared(bytes, None, outer.search().clone())
    }

    fn from_shared(
        bytes: SharedBytes,
        file: Option<FoundFile>,
        search: DebugSearch,
    ) -> Result<ImageFile, ImageError> {
        let elf = object::File::parse(&*bytes).map_err(ImageError::NotElf)?;
        if !has_plausible_tables(&elf) {
            return Err(ImageError::ImplausibleTables);
        }
        let build_id = elf.build_id().ok().flatten().and_then(BuildId::from_bytes);
        let segments = elf.segments().map(|segment| read_segment(&segment)).collect();
        let inner = Inner {
            build_id,
            entry: ImageAddress(elf.entry()),
            segments,
            file,
            search,
            symbols: OnceLock::new(),
            functions: OnceLock::new(),
            go_table: OnceLock::new(),
            companion: OnceLock::new(),
            supplement: OnceLock::new(),
            bytes,
        };
        Ok(ImageFile { inner: Arc::new(inner) })
    }

    /// The identity that the linker wrote, where it did.
    pub fn build_id(&self) -> Option<&BuildId> {
        self.inner.build_id.as_ref()
    }

    /// Where the program starts (`e_entry`), or 0. Linkers may give one to a library, too.
    pub fn entry(&self) -> ImageAddress {
        self.inner.entry
    }

    /// The segments that are loaded, in the order of the program headers.
    pub fn segments(&self) -> &[Segment] {
        &self.inner.segments
    }

    /// The image address of a byte of the file, by the segment that holds it; `None` when no
    /// segment does.
    ///
    /// Linkers give each segment a bias of its own (lld does), so the bias of one mapping says
    /// nothing about another. Pass the offset of the instruction itself: the first page of a
    /// mapping may hold the end of the segment before.
    pub fn to_image_address(&self, offset: FileOffset) -> Option<ImageAddress> {
        let segments = || self.inner.segments.iter();
        segments()
            .filter(|segment| segment.executable)
            .find_map(|segment| segment.to_image_address(offset))
            .or_else(|| segments().find_map(|segment| segment.to_image_address(offset)))
            .or_else(|| {
                let mut code = segments().filter(|segment| segment.executable);
                code.find_map(|segment| segment.page_to_image_address(offset))
            })
            .or_else(|| segments().find_map(|segment| segment.page_to_image_address(offset)))
    }

    /// The order of the bytes of its numbers.
    pub fn endian(&self) -> RunTimeEndian {
        let is_big = self.elf().is_some_and(|elf| !elf.is_little_endian());
        if is_big { RunTimeEndian::Big } else { RunTimeEndian::Little }
    }

    /// Whether its addresses have 64 bits.
    pub fn is_64_bit(&self) -> bool {
        self.elf().is_some_and(|elf| elf.is_64())
    }

    /// The code: the bytes of the executable segment that has the most of them in the file.
    pub fn executable(&self) -> Option<Section> {
        let stored = |segment: &Segment| {
            let bytes = self.stored(segment.offset, segment.file_len)?;
            Some(Section { address: segment.address, bytes })
        };
        let code = self.inner.segments.iter().filter(|segment| segment.executable);
        code.filter_map(stored)
            .max_by_key(|section| section.bytes.len())
            .filter(|section| !section.bytes.is_empty())
    }

    /// Where the function that covers an address starts, by the tables for exceptions
    /// (`.eh_frame`), which files without symbols have as well, those for debuggers
    /// (`.debug_frame`), or that of Go (`.gopclntab`); `None` when none of them covers it.
    ///
    /// A part that the compiler put elsewhere (`.cold`) is a function of its own here, and all
    /// stubs of a `.plt` are a single one.
    pub fn function_start(&self, address: ImageAddress) -> Option<ImageAddress> {
        Some(self.function_range(address)?.start)
    }

    /// The same with its end.
    pub fn function_range(&self, address: ImageAddress) -> Option<Range<ImageAddress>> {
        let functions = self.inner.functions.get_or_init(|| FunctionTable::open(self));
        functions
            .range(address)
            .or_else(|| self.go_table()?.function(address).map(|function| function.range()))
    }

    /// The table that programs of Go keep when they are stripped; looked for at the first call.
    pub fn go_table(&self) -> Option<&Arc<GoTable>> {
        let table = self.inner.go_table.get_or_init(|| go::find(self).map(Arc::new));
        table.as_ref()
    }

    /// The 8 bytes at an address as the file has them.
    pub(crate) fn loaded_word(&self, address: u64) -> Option<u64> {
        let section = self.loaded_from(ImageAddress(address))?;
        Some(u64::from_le_bytes(*section.bytes.first_chunk()?))
    }

    /// The section of that name, such as `.eh_frame`; `.debug_*` also finds `.zdebug_*`. `None`
    /// when there is none, or when its bytes are outside of the file or cannot be decompressed.
    ///
    /// `.eh_frame_hdr` and `.eh_frame` are found in files without section headers as well; the
    /// latter then extends to the end of its segment.
    pub fn section(&self, name: &str) -> Option<Section> {
        self.named_section(name).or_else(|| match name {
            ".eh_frame_hdr" => function_table::header_by_segment(self),
            ".eh_frame" => function_table::frames_by_segment(self),
            _ => None,
        })
    }

    fn named_section(&self, name: &str) -> Option<Section> {
        let elf = self.elf()?;
        let section = elf.section_by_name(name)?;
        let address = ImageAddress(section.address());
        let stored = section.compressed_data().ok()?;
        let bytes = if stored.format == object::CompressionFormat::None {
            let (start, len) = section.file_range().unwrap_or((0, 0));
            let start = usize::try_from(start).ok()?;
            let end = start.checked_add(usize::try_from(len).ok()?)?;
            self.inner.bytes.slice(start..end)?
        } else {
            let (packed, len) = (stored.data.len() as u64, stored.uncompressed_size);
            let claim = self.search().budget.claim_unpacked(packed, len)?;
            claim.keep(stored.decompress().ok()?.into_owned())
        };
        Some(Section { address, bytes })
    }

    /// The loaded bytes from an address on to the end of its segment, or of the file.
    pub fn loaded_from(&self, address: ImageAddress) -> Option<Section> {
        let from = |segment: &Segment| {
            let inside = address.0.checked_sub(segment.address.0)?;
            let len = segment.file_len.0.checked_sub(inside).filter(|len| *len > 0)?;
            self.stored(FileOffset(segment.offset.0.checked_add(inside)?), ByteLen(len))
        };
        let bytes = self.inner.segments.iter().find_map(from)?;
        Some(Section { address, bytes })
    }

    /// That many bytes as the file has them, or as many as there are; `None` when it ends before.
    pub fn stored(&self, offset: FileOffset, len: ByteLen) -> Option<SharedBytes> {
        let start = usize::try_from(offset.0).ok()?;
        let end = start.saturating_add(usize::try_from(len.0).ok()?);
        self.inner.bytes.slice(start..end.min(self.inner.bytes.len()))
    }

    /// The headers, parsed anew: it takes microseconds and keeps borrows out of the type.
    pub fn elf(&self) -> Option<object::File<'_>> {
        object::File::parse(&*self.inner.bytes).ok()
    }

    /// The symbols, read at the first call.
    pub fn symbols(&self) -> &SymbolTable {
        self.inner.symbols.get_or_init(|| SymbolTable::read(self))
    }

    /// The file with what was stripped from this one; looked for until it is found.
    pub fn companion(&self) -> Option<&ImageFile> {
        found(&self.inner.companion, || find_companion(self, &self.inner.search))
    }

    /// The file with what `dwz` moved out of this one; looked for until it is found.
    pub fn supplement(&self) -> Option<&ImageFile> {
        found(&self.inner.supplement, || find_supplement(self))
    }

    /// The symbols that are within this file, compressed; decompressed at each call.
    pub(crate) fn mini_debug_info(&self) -> Option<ImageFile> {
        mini_debug_info(self)
    }

    /// Where its debug files are looked for.
    pub fn search(&self) -> &DebugSearch {
        &self.inner.search
    }

    /// Where it was opened; `None` for one that was in memory.
    pub fn path(&self) -> Option<&Path> {
        self.inner.file.as_ref().map(|file| &*file.path)
    }

    /// The same with links followed, where that is known; nothing is asked for it.
    pub(crate) fn place(&self) -> Option<&Path> {
        let file = self.inner.file.as_ref()?;
        Some(file.place.as_deref().unwrap_or(&file.path))
    }

    /// Whether there is a section of that name that is not empty; nothing is decompressed to see.
    pub fn has_section(&self, name: &str) -> bool {
        let elf = self.elf();
        let section = elf.as_ref().and_then(|elf| elf.section_by_name(name));
        section.is_some_and(|section| section.size() > 0)
    }

    /// Where the file with what was stripped from this one is, if it was and there is one.
    pub fn debug_file(&self) -> Option<&Path> {
        self.companion()?.path()
    }

    /// Whether other bytes were written into the file since it was opened: what is read of it from
    /// now on need not be what was mapped. A file that has its path by now is another one, and
    /// changes nothing.
    pub fn was_rewritten(&self) -> bool {
        let (Some(path), Some(then)) = (self.path(), self.status()) else { return false };
        let Ok(OpenFile { status: now, .. }) = self.search().files.open(path) else { return false };
        let file = |status: &FileStatus| (status.device, status.inode);
        let state = |status: &FileStatus| (status.len, status.modified);
        file(&now) == file(then) && state(&now) != state(then)
    }

    /// Whose file it is, and how long; `None` for one that was in memory.
    pub(crate) fn status(&self) -> Option<&FileStatus> {
        self.inner.file.as_ref().map(|file| &file.status)
    }

    /// All bytes of the file.
    pub fn bytes(&self) -> &SharedBytes {
        &self.inner.bytes
    }
}

impl std::fmt::Debug for ImageFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageFile")
            .field("path", &self.path())
            .field("bytes", &self.inner.bytes)
            .field("build_id", &self.inner.build_id)
            .field("segments", &self.inner.segments)
            .finish_non_exhaustive()
    }
}

impl Section {
    /// The bytes before `address`, and those from there on; `None` outside the section.
    pub fn split_at(&self, address: ImageAddress) -> Option<(&[u8], &[u8])> {
        let offset = usize::try_from(address.0.checked_sub(self.address.0)?).ok()?;
        self.bytes.split_at_checked(offset)
    }
}

impl Segment {
    /// The image address of a byte of this segment.
    fn to_image_address(self, offset: FileOffset) -> Option<ImageAddress> {
        let inside = offset.0.checked_sub(self.offset.0)?;
        if inside >= self.file_len.0 {
            return None;
        }
        self.address.0.checked_add(inside).map(ImageAddress)
    }

    /// The same for the rest of the pages that the segment's mapping has to take along.
    fn page_to_image_address(self, offset: FileOffset) -> Option<ImageAddress> {
        let start = self.offset.0 & !(PAGE - 1);
        let end = self.offset.0.checked_add(self.file_len.0)?.checked_next_multiple_of(PAGE)?;
        if !(start..end).contains(&offset.0) {
            return None;
        }
        // The bias, computed modulo 2^64: a segment may stand lower in the image than in the file.
        Some(ImageAddress(offset.0.wrapping_sub(self.offset.0).wrapping_add(self.address.0)))
    }
}

/// What is in a place, put there now if it can be found.
fn found(
    place: &OnceLock<ImageFile>,
    find: impl FnOnce() -> Option<ImageFile>,
) -> Option<&ImageFile> {
    if place.get().is_none() {
        // Of two threads that find it the first one's stays; both are the same file.
        drop(place.set(find()?));
    }
    place.get()
}

fn read_segment<'data>(segment: &impl ObjectSegment<'data>) -> Segment {
    let (offset, file_len) = segment.file_range();
    let flags = match segment.flags() {
        SegmentFlags::Elf { p_flags, .. } => p_flags,
        _ => elf::PF_X,
    };
    Segment {
        offset: FileOffset(offset),
        address: ImageAddress(segment.address()),
        file_len: ByteLen(file_len),
        memory_len: ByteLen(segment.size()),
        executable: flags.contains(elf::PF_X),
    }
}

#[cfg(test)]
mod tests;
