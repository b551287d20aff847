//! Turns an address into the start of its function, by the tables that C++ exceptions need: they
//! stay in a file when its symbols are stripped. They say nothing of names.
//!
//! Also finds these tables where section headers were stripped as well. Where the linker sorted
//! them nothing is indexed, and each question costs one search. Where it did not, and for the table
//! that debuggers need instead (`.debug_frame`), an index is made at the first question that it may
//! answer.
//!
//! Sources: LSB 5.0 Core, "Exception Frames"; gimli's documentation of `.eh_frame_hdr`.

use std::ops::Range;
use std::sync::OnceLock;

use flame_profile::ImageAddress;
use gimli::{BaseAddresses, CieOrFde, DebugFrame, EhFrame, EhFrameHdr, EhFrameOffset};
use gimli::{EndianSlice, ParsedEhFrameHdr, RunTimeEndian, UnwindSection};
use object::Object;
use object::elf;
use object::read::elf::{ElfFile, FileHeader, ProgramHeader};

use crate::image::{ImageFile, Section};

/// The smallest entry of the sorted table: two numbers of two bytes.
const MIN_ENTRY_LEN: usize = 4;

/// The tables of an image.
#[derive(Debug)]
pub(crate) struct FunctionTable {
    form: Form,
    sorted: Option<SortedTable>,
    /// `.eh_frame` that nobody sorted.
    unsorted: Option<Section>,
    debug_frame: Option<Section>,
    /// Functions of those two as (start, end), sorted.
    indexed: OnceLock<Vec<(u64, u64)>>,
}

/// `.eh_frame` with the table that the linker sorted.
#[derive(Debug)]
struct SortedTable {
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
    /// `None` when there is no table. Whether they belong together each answer shows anew.
    pub(crate) fn open(image: &ImageFile) -> Option<FunctionTable> {
        let form = Form::of(&image.elf()?);
        let (header, frames) = (image.section(".eh_frame_hdr"), image.section(".eh_frame"));
        let (sorted, unsorted) = match (header, frames) {
            (Some(header), Some(frames)) => (Some(SortedTable { header, frames, form }), None),
            (_, frames) => (None, frames),
        };
        let own = image.section(".debug_frame");
        let debug_frame = own.or_else(|| image.companion()?.section(".debug_frame"));
        let any = sorted.is_some() || unsorted.is_some() || debug_frame.is_some();
        let indexed = OnceLock::new();
        any.then_some(FunctionTable { form, sorted, unsorted, debug_frame, indexed })
    }

    /// Where the function that covers `address` starts and ends. A compiler may have split a
    /// function; then it is that part. All stubs of a procedure linkage table count as one function.
    pub(crate) fn range(&self, address: ImageAddress) -> Option<Range<ImageAddress>> {
        let sorted = self.sorted.as_ref().and_then(|sorted| sorted.range(address));
        sorted.or_else(|| {
            let indexed = self.indexed.get_or_init(|| self.index());
            let after = indexed.partition_point(|(start, _)| *start <= address.0);
            let (start, end) = indexed.get(after.checked_sub(1)?)?;
            (address.0 < *end).then_some(ImageAddress(*start)..ImageAddress(*end))
        })
    }

    fn index(&self) -> Vec<(u64, u64)> {
        let mut functions = Vec::new();
        if let Some(section) = &self.unsorted {
            let bases = BaseAddresses::default().set_eh_frame(section.address.0);
            let mut frames = EhFrame::from(EndianSlice::new(&section.bytes, self.form.endian));
            frames.set_address_size(self.form.address_size);
            add_functions(&frames, &bases, &mut functions);
        }
        if let Some(section) = &self.debug_frame {
            let mut frames = DebugFrame::from(EndianSlice::new(&section.bytes, self.form.endian));
            frames.set_address_size(self.form.address_size);
            add_functions(&frames, &BaseAddresses::default(), &mut functions);
        }
        functions.sort_unstable();
        functions
    }
}

/// Adds the functions that a table describes, as far as it can be read.
fn add_functions<'a, S>(table: &S, bases: &BaseAddresses, functions: &mut Vec<(u64, u64)>)
where
    S: UnwindSection<EndianSlice<'a, RunTimeEndian>>,
{
    let mut entries = table.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(function) = partial.parse(S::cie_from_offset) else { continue };
        let range = (function.initial_address(), function.end_address());
        // What the linker dropped stands at 0.
        if range.0 > 0 && range.0 < range.1 {
            functions.push(range);
        }
    }
}

impl SortedTable {
    fn range(&self, address: ImageAddress) -> Option<Range<ImageAddress>> {
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
        let range = ImageAddress(function.initial_address())..ImageAddress(function.end_address());
        function.contains(address.0).then_some(range)
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
