//! Turns an address into the start of its function, by the tables that C++ exceptions need: they
//! stay in a file when its symbols are stripped. They say nothing of names.
//!
//! Also finds these tables where section headers were stripped as well.
//!
//! Sources: LSB 5.0 Core, "Exception Frames"; gimli's documentation of `.eh_frame_hdr`.

use std::ops::Range;

use flame_profile::{ByteLen, FileOffset, ImageAddress};
use gimli::{BaseAddresses, DebugFrame, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry};
use gimli::{Reader, RunTimeEndian};
use object::elf;
use object::read::elf::{ElfFile, FileHeader, ProgramHeader};

use crate::frame_finder::FrameFinder;
use crate::image::{ImageFile, Section};

/// The tables of an image.
#[derive(Debug)]
pub(crate) struct FunctionTable {
    form: Form,
    eh_frame: Option<(Section, FrameFinder)>,
    debug_frame: Option<(Section, FrameFinder)>,
}

/// How numbers are written in an image.
#[derive(Clone, Copy, Debug)]
struct Form {
    endian: RunTimeEndian,
    /// In bytes.
    address_size: u8,
}

impl FunctionTable {
    /// The tables that there are. Whether they belong together each answer shows anew.
    pub(crate) fn open(image: &ImageFile) -> FunctionTable {
        let eh_frame = image.section(".eh_frame").map(|section| {
            let finder = FrameFinder::new(image.section(".eh_frame_hdr").as_ref(), &section);
            (section, finder)
        });
        let own = image.section(".debug_frame");
        let debug_frame = own.or_else(|| image.companion()?.section(".debug_frame"));
        let debug_frame = debug_frame.map(|section| (section, FrameFinder::default()));
        FunctionTable { form: Form::of(image), eh_frame, debug_frame }
    }

    /// Where the function that covers `address` starts and ends. A compiler may have split a
    /// function; then it is that part. All stubs of a procedure linkage table count as one function.
    pub(crate) fn range(&self, address: ImageAddress) -> Option<Range<ImageAddress>> {
        let Form { endian, address_size } = self.form;
        let by_exceptions = self.eh_frame.as_ref().and_then(|(section, finder)| {
            let bases = BaseAddresses::default().set_eh_frame(section.address.0);
            let mut table = EhFrame::new(&section.bytes, endian);
            table.set_address_size(address_size);
            range_of(&finder.find(&table, &bases, address)?)
        });
        by_exceptions.or_else(|| {
            let (section, finder) = self.debug_frame.as_ref()?;
            let mut table = DebugFrame::new(&section.bytes, endian);
            table.set_address_size(address_size);
            range_of(&finder.find(&table, &BaseAddresses::default(), address)?)
        })
    }
}

/// The function that is described; `None` for what the linker dropped, which stands at 0.
fn range_of<R: Reader>(function: &FrameDescriptionEntry<R>) -> Option<Range<ImageAddress>> {
    let start = Some(function.initial_address()).filter(|start| *start > 0)?;
    Some(ImageAddress(start)..ImageAddress(function.end_address()))
}

/// `.eh_frame_hdr` by its program header (`PT_GNU_EH_FRAME`).
pub(crate) fn header_by_segment(image: &ImageFile) -> Option<Section> {
    match image.elf()? {
        object::File::Elf32(elf) => header_segment(&elf, image),
        object::File::Elf64(elf) => header_segment(&elf, image),
        _ => None,
    }
}

fn header_segment<E: FileHeader>(elf: &ElfFile<'_, E>, image: &ImageFile) -> Option<Section> {
    let endian = elf.endian();
    let mut headers = elf.elf_program_headers().iter();
    let header = headers.find(|header| header.p_type(endian) == elf::PT_GNU_EH_FRAME)?;
    let (offset, len) = header.file_range(endian);
    let address = ImageAddress(header.p_vaddr(endian).into());
    Some(Section { address, bytes: image.stored(FileOffset(offset), ByteLen(len))? })
}

/// `.eh_frame` and whatever comes after it in its segment, where `.eh_frame_hdr` says it is.
pub(crate) fn frames_by_segment(image: &ImageFile) -> Option<Section> {
    let Form { endian, address_size } = Form::of(image);
    let header = image.section(".eh_frame_hdr")?;
    let bases = BaseAddresses::default().set_eh_frame_hdr(header.address.0);
    let bytes = EndianSlice::new(&header.bytes, endian);
    let parsed = EhFrameHdr::from(bytes).parse(&bases, address_size).ok()?;
    image.loaded_from(ImageAddress(parsed.eh_frame_ptr().direct().ok()?))
}

impl Form {
    fn of(image: &ImageFile) -> Form {
        let address_size = if image.is_64_bit() { 8 } else { 4 };
        Form { endian: image.endian(), address_size }
    }
}

#[cfg(test)]
mod tests;
