//! Turns an address into the start of its function, by the tables that C++ exceptions need: they
//! stay in a file when its symbols are stripped. They say nothing of names.
//!
//! Also finds these tables where section headers were stripped as well. Nothing is indexed; each
//! question costs one search in the table that the linker sorted.
//!
//! Sources: LSB 5.0 Core, "Exception Frames"; gimli's documentation of `.eh_frame_hdr`.

use flame_profile::ImageAddress;
use gimli::{BaseAddresses, EhFrame, EhFrameHdr, EhFrameOffset, ParsedEhFrameHdr};
use gimli::{EndianSlice, RunTimeEndian, UnwindSection};
use object::Object;
use object::elf;
use object::read::elf::{ElfFile, FileHeader, ProgramHeader};

use crate::image::{ImageFile, Section};

/// The smallest entry of the sorted table: two numbers of two bytes.
const MIN_ENTRY_LEN: usize = 4;

/// The tables of an image.
#[derive(Debug)]
pub(crate) struct FunctionTable {
    header: Section,
    frames: Section,
    form: Form,
}

/// How numbers are written in an image.
#[derive(Clone, Copy, Debug)]
struct Form {
    endian: RunTimeEndian,
    /// In bytes.
    address_size: u8,
}

impl FunctionTable {
    /// `None` when a table is missing. Whether they belong together each answer shows anew.
    pub(crate) fn open(image: &ImageFile) -> Option<FunctionTable> {
        let form = Form::of(&image.elf()?);
        let header = image.section(".eh_frame_hdr")?;
        let frames = image.section(".eh_frame")?;
        Some(FunctionTable { header, frames, form })
    }

    /// Where the function that covers `address` starts. A compiler may have split a function; then
    /// it is where that part starts. All stubs of a procedure linkage table count as one function.
    pub(crate) fn start(&self, address: ImageAddress) -> Option<ImageAddress> {
        let bases = bases(&self.header).set_eh_frame(self.frames.address.0);
        let header = self.form.parse(&self.header)?;
        let table = header.table()?;
        // The search multiplies the count that the file states, and does not check it.
        if table.iter(&bases).size_hint().0 > self.header.bytes.len() / MIN_ENTRY_LEN {
            return None;
        }
        let found = table.lookup(address.0, &bases).ok()?.direct().ok()?;
        let offset = usize::try_from(found.checked_sub(self.frames.address.0)?).ok()?;
        let mut frames = EhFrame::from(EndianSlice::new(&self.frames.bytes, self.form.endian));
        frames.set_address_size(self.form.address_size);
        let offset = EhFrameOffset(offset);
        let function = frames.fde_from_offset(&bases, offset, EhFrame::cie_from_offset).ok()?;
        function.contains(address.0).then(|| ImageAddress(function.initial_address()))
    }
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
    Some(Section { address, bytes: image.stored(offset, len)? })
}

/// `.eh_frame` and whatever comes after it in its segment, where `.eh_frame_hdr` says it is.
pub(crate) fn frames_by_segment(image: &ImageFile) -> Option<Section> {
    let form = Form::of(&image.elf()?);
    let address = form.frames_address(&image.section(".eh_frame_hdr")?)?;
    image.loaded_from(address)
}

impl Form {
    fn of(elf: &object::File<'_>) -> Form {
        let is_little = elf.is_little_endian();
        Form {
            endian: if is_little { RunTimeEndian::Little } else { RunTimeEndian::Big },
            address_size: if elf.is_64() { 8 } else { 4 },
        }
    }

    fn parse<'a>(
        self,
        header: &'a Section,
    ) -> Option<ParsedEhFrameHdr<EndianSlice<'a, RunTimeEndian>>> {
        let bytes = EndianSlice::new(&header.bytes, self.endian);
        EhFrameHdr::from(bytes).parse(&bases(header), self.address_size).ok()
    }

    /// Where `.eh_frame` stands, as `.eh_frame_hdr` says.
    fn frames_address(self, header: &Section) -> Option<ImageAddress> {
        self.parse(header)?.eh_frame_ptr().direct().ok().map(ImageAddress)
    }
}

fn bases(header: &Section) -> BaseAddresses {
    BaseAddresses::default().set_eh_frame_hdr(header.address.0)
}

#[cfg(test)]
mod tests;
