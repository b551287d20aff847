use object::{Object, ObjectSymbol};

use super::*;
use crate::testing::build::{SOURCE, Workshop};
use crate::testing::elf::TestElf;

/// Where the tables are in the file, and where they are loaded.
const HDR_OFFSET: u64 = 0x3000;
const HDR: u64 = 0x1_3000;
const FRAMES_DISTANCE: u64 = 0x40;
const FRAMES: u64 = HDR + FRAMES_DISTANCE;
/// Functions as (start, length), with a gap after the second.
const FUNCTIONS: [(u64, u32); 3] = [(0x2000, 0x40), (0x2040, 0x10), (0x2060, 0x20)];

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// `.eh_frame_hdr` and `.eh_frame` of [`FUNCTIONS`], as GNU ld writes them.
fn tables() -> Vec<u8> {
    // A CIE of 20 bytes: version 1, "zR", factors 1 and -8, return address in 16, pcrel|sdata4,
    // then the rows (none: padding).
    let mut frames = words(&[16, 0]);
    frames.extend(b"\x01zR\0\x01\x78\x10\x01\x1b\0\0\0");
    let mut table = Vec::new();
    for (start, len) in FUNCTIONS {
        let at = frames.len() as u32;
        let place = FRAMES + u64::from(at) + 8;
        frames.extend(words(&[16, at + 4, start.wrapping_sub(place) as u32, len, 0]));
        table.extend([start.wrapping_sub(HDR) as u32, FRAMES_DISTANCE as u32 + at]);
    }
    frames.extend([0; 4]);
    let mut bytes = words(&[0x3b03_1b01, FRAMES_DISTANCE as u32 - 4, FUNCTIONS.len() as u32]);
    bytes.extend(words(&table));
    bytes.resize(FRAMES_DISTANCE as usize, 0);
    bytes.extend(frames);
    bytes
}

/// A file without section headers whose last part are the tables.
fn stripped(tables: &[u8]) -> Vec<u8> {
    let len = HDR_OFFSET + tables.len() as u64;
    let segments = [(0, 0, 0x2000, 4), (HDR_OFFSET, HDR, len - HDR_OFFSET, 4)];
    let elf = TestElf {
        segments: &segments,
        eh_frame_hdr: Some((HDR_OFFSET, HDR, FRAMES_DISTANCE)),
        ..TestElf::default()
    };
    let mut bytes = elf.to_bytes();
    // e_shoff; e_shnum and e_shstrndx.
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    bytes.resize(HDR_OFFSET as usize, 0);
    bytes.extend(tables);
    bytes
}

fn image(tables: &[u8]) -> ImageFile {
    ImageFile::from_bytes(stripped(tables)).unwrap()
}

#[test]
fn tables_are_found_without_section_headers() {
    let tables = tables();
    let image = image(&tables);
    assert!(image.section(".text").is_none());
    let header = image.section(".eh_frame_hdr").unwrap();
    assert_eq!(header.address, ImageAddress(HDR));
    assert_eq!(header.bytes[..], tables[..FRAMES_DISTANCE as usize]);
    let frames = image.section(".eh_frame").unwrap();
    assert_eq!(frames.address, ImageAddress(FRAMES));
    assert_eq!(frames.bytes[..], tables[FRAMES_DISTANCE as usize..]);
    assert!(image.bytes().as_ptr_range().contains(&frames.bytes.as_ptr()), "copied");
}

#[test]
fn each_address_of_a_function_has_its_start() {
    let image = image(&tables());
    let cases = [
        (0, None),
        (0x1fff, None),
        (0x2000, Some(0x2000)),
        (0x203f, Some(0x2000)),
        (0x2040, Some(0x2040)),
        (0x204f, Some(0x2040)),
        (0x2050, None),
        (0x205f, None),
        (0x2060, Some(0x2060)),
        (0x207f, Some(0x2060)),
        (0x2080, None),
        (u64::MAX, None),
    ];
    for (address, expect) in cases {
        let start = image.function_start(ImageAddress(address));
        assert_eq!(start, expect.map(ImageAddress), "{address:#x}");
    }
}

#[test]
fn a_file_without_tables_knows_no_starts() {
    let image = ImageFile::from_bytes(TestElf::default().to_bytes()).unwrap();
    assert_eq!(image.function_start(ImageAddress(0x2010)), None);
}

#[test]
fn numbers_that_cannot_be_right_are_not_believed() {
    let last = tables().len() - 4;
    // (place, bytes): the count; a table of 8-byte numbers with a count that overflows when
    // multiplied; frames elsewhere; the frame of the second function before .eh_frame, and at the
    // end of it; that function's CIE after it, and its range.
    let huge = [[0x04; 1].as_slice(), &[0x3c], &[0x3c, 0, 0, 0], &[0xff; 8]].concat();
    let second = FRAMES_DISTANCE as usize + 20 + 20;
    // What only the sorted table has wrong the descriptions themselves tell.
    let right = Some(ImageAddress(0x2040));
    let cases: [(usize, &[u8], _); 7] = [
        (8, &[0xff; 4], right),
        (2, &huge, right),
        (4, &[0x44], None),
        (24, &[0; 4], None),
        (24, &(last as u32).to_le_bytes(), right),
        (second + 4, &[0xff; 4], None),
        (second + 12, &[0; 4], None),
    ];
    for (at, replacement, expect) in cases {
        let mut tables = tables();
        tables[at..at + replacement.len()].copy_from_slice(replacement);
        let start = image(&tables).function_start(ImageAddress(0x2048));
        assert_eq!(start, expect, "{replacement:x?} at {at}");
    }
}

#[test]
fn tables_damaged_at_any_byte_end_no_process() {
    let intact = tables();
    let mut same = 0;
    for at in 0..intact.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut tables = intact.clone();
            tables[at] = value;
            let image = image(&tables);
            for address in [0, 0x2048, u64::MAX] {
                let start = image.function_start(ImageAddress(address));
                same += usize::from(start == Some(ImageAddress(0x2040)));
            }
        }
    }
    // The frames of the other functions alone do not matter to this one.
    assert!(same > 2 * 20 * 5, "{same}");
}

#[test]
fn tables_cut_at_any_byte_give_the_start_or_none() {
    let bytes = stripped(&tables());
    let end_of_second = HDR_OFFSET as usize + FRAMES_DISTANCE as usize + 20 + 2 * 20;
    for len in HDR_OFFSET as usize..bytes.len() {
        let image = ImageFile::from_bytes(bytes[..len].to_vec()).unwrap();
        let start = image.function_start(ImageAddress(0x2048));
        let expect = (len >= end_of_second).then_some(ImageAddress(0x2040));
        assert_eq!(start, expect, "cut at {len}");
    }
}

/// Where `hidden` starts and ends in a program with symbols.
fn hidden(image: &ImageFile) -> (u64, u64) {
    let elf = image.elf().unwrap();
    let symbol = elf.symbols().find(|symbol| symbol.name() == Ok("hidden")).unwrap();
    (symbol.address(), symbol.address() + symbol.size())
}

#[test]
fn functions_that_debuggers_alone_have_tables_of_have_their_start() {
    let shop = Workshop::new("debug-frame");
    shop.write("a.c", SOURCE);
    let built = shop.run_all(
        "gcc -O2 -g -fno-asynchronous-unwind-tables -fno-unwind-tables -o whole a.c
         objcopy -S --keep-section=.debug_frame whole nameless
         objcopy --only-keep-debug whole kept.debug
         objcopy -S --add-gnu-debuglink=kept.debug whole stripped",
    );
    if !built {
        return;
    }
    let open = |name: &str| ImageFile::open(&shop.path(name)).unwrap();
    let (start, end) = hidden(&open("whole"));
    assert!(open("nameless").symbols().lookup(ImageAddress(start)).is_none());
    for name in ["nameless", "stripped"] {
        let image = open(name);
        let found =
            [start - 1, start, end - 1, end].map(|at| image.function_start(ImageAddress(at)));
        let inside = Some(ImageAddress(start));
        assert_eq!(found[1..3], [inside, inside], "{name}");
        assert!(found[0] != inside && found[3] != inside, "{name}: {found:?}");
    }
    // Without the file that has the table nothing is known.
    shop.remove("kept.debug");
    assert_eq!(open("stripped").function_start(ImageAddress(start)), None);
}

#[test]
fn tables_that_nobody_sorted_are_searched_as_well() {
    let shop = Workshop::new("unsorted-frames");
    shop.write("a.c", SOURCE);
    let flags = "-O2 -static -Wl,--no-eh-frame-hdr";
    let built = shop.run_all(&format!("gcc {flags} -o whole a.c\nobjcopy -S whole stripped"));
    if !built {
        return;
    }
    let open = |name: &str| ImageFile::open(&shop.path(name)).unwrap();
    let image = open("stripped");
    assert!(image.section(".eh_frame_hdr").is_none() && image.section(".eh_frame").is_some());
    let (start, end) = hidden(&open("whole"));
    let found = [start, end - 1].map(|at| image.function_start(ImageAddress(at)));
    assert_eq!(found, [Some(ImageAddress(start)); 2]);
}
