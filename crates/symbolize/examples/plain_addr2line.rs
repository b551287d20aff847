//! `plain_addr2line IMAGE < ADDRESSES`: the same as the example `names`, by the addr2line crate as
//! it comes. It exists for `cargo xtask bench symbols` to measure.

use std::error::Error;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use addr2line::Context;
use flame_image::ImageFile;
use gimli::{DwarfSections, EndianSlice, RunTimeEndian, SectionId};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: plain_addr2line IMAGE < ADDRESSES")?;
    // Only the mapping of sections is flame's.
    let image = ImageFile::open(Path::new(&path))?;
    let load = |id: SectionId| -> Result<_, gimli::Error> {
        Ok(image.section(id.name()).map(|section| section.bytes).unwrap_or_default())
    };
    let sections = DwarfSections::load(load)?;
    let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, RunTimeEndian::Little));
    let context = Context::from_dwarf(dwarf)?;
    let mut out = BufWriter::new(io::stdout().lock());
    for line in io::read_to_string(io::stdin())?.lines() {
        let address = u64::from_str_radix(line.trim().trim_start_matches("0x"), 16)?;
        writeln!(out, "0x{address:016x}")?;
        let mut frames = context.find_frames(address).skip_all_loads()?;
        while let Some(frame) = frames.next()? {
            let name = frame.function.as_ref().and_then(|name| name.demangle().ok());
            let place = frame.location.as_ref();
            let file = place.and_then(|place| place.file).unwrap_or("??");
            let line = place.and_then(|place| place.line).unwrap_or(0);
            writeln!(out, "{}\n{file}:{line}", name.as_deref().unwrap_or("??"))?;
        }
    }
    Ok(out.flush()?)
}
