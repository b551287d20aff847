//! Images: any bytes give errors, or segments, sections, function starts and names.
#![no_main]

use std::alloc::System;
use std::num::NonZeroUsize;

use cap::Cap;
use flame_fuzz::MAX_MEMORY;
use flame_image::ImageFile;
use flame_profile::{FileOffset, ImageAddress};
use flame_symbolize::{SymbolizeConfig, fuzzing, symbolize_image};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, MAX_MEMORY);

/// The sections that reading DWARF takes steps for.
const DWARF: [&str; 5] =
    [".debug_info", ".debug_abbrev", ".debug_line", ".debug_ranges", ".debug_rnglists"];

/// How many bytes there are to take steps for.
fn unpacked_len(image: &ImageFile) -> usize {
    let sections = DWARF.iter().filter_map(|name| image.section(name));
    sections.map(|section| section.bytes.len()).sum()
}

const SECTIONS: &[&str] = &[".eh_frame_hdr", ".eh_frame", ".debug_frame", ".text", ".debug_info"];

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Ok(image) = ImageFile::from_bytes(input.to_vec()) else {
        return;
    };
    let mut addresses = vec![image.entry(), ImageAddress(0), ImageAddress(u64::MAX)];
    for segment in image.segments().iter().take(8) {
        let _ = image.to_image_address(FileOffset(segment.offset.0));
        let near = [0, 0x10, 0x100].map(|by| ImageAddress(segment.address.0.wrapping_add(by)));
        addresses.extend(near);
    }
    for name in SECTIONS {
        addresses.extend(image.section(name).map(|section| section.address));
    }
    let _ = image.executable();
    for address in &addresses {
        let _ = image.function_start(*address);
    }
    let config = SymbolizeConfig { threads: NonZeroUsize::new(1), ..SymbolizeConfig::default() };
    let before = fuzzing::steps();
    let answers = symbolize_image(&image, &addresses, &config);
    assert_eq!(answers.len(), addresses.len());
    // Packed sections become longer than the input, within the room that they have.
    let steps = fuzzing::steps() - before;
    assert!(steps <= fuzzing::most_steps(unpacked_len(&image)), "{steps} steps");
});
