use std::io::Write;
use std::path::PathBuf;

use super::*;
use crate::testing::elf::TestElf;

const BUILD_ID: &[u8] = b"\x04\0\0\0\x04\0\0\0\x03\0\0\0GNU\0\xde\xad\xbe\xef";

/// A path of this test alone, below the directory for temporary files.
fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("flame-symbolize-{}-{name}", std::process::id()))
}

#[test]
fn each_segment_has_its_own_bias() {
    // The layout of lld: each segment stands one page further from its place in the file.
    let segments = [(0, 0, 0x740, 4), (0x740, 0x1740, 0x3c0, 5), (0xb00, 0x2b00, 0x100, 6)];
    let image =
        ImageFile::from_bytes(TestElf { segments: &segments, ..TestElf::default() }.to_bytes());
    let image = image.unwrap();
    let cases = [
        (0x10, Some(0x10)),
        (0x73f, Some(0x73f)),
        (0x740, Some(0x1740)),
        (0xaff, Some(0x1aff)),
        (0xb00, Some(0x2b00)),
        // The rest of the last page belongs to the mapping of code, though no segment says so.
        (0xc00, Some(0x1c00)),
        (0x1000, None),
        (u64::MAX, None),
    ];
    for (offset, expect) in cases {
        let address = image.to_image_address(FileOffset(offset));
        assert_eq!(address, expect.map(ImageAddress), "{offset:#x}");
    }
    assert_eq!(
        image.segments()[1],
        Segment {
            offset: FileOffset(0x740),
            address: ImageAddress(0x1740),
            file_len: ByteLen(0x3c0),
            memory_len: ByteLen(0x3c0),
            executable: true,
        }
    );
}

#[test]
fn the_build_id_is_that_of_the_note() {
    let sections = [(".note.gnu.build-id", 2, BUILD_ID)];
    let bytes = TestElf { sections: &sections, ..TestElf::default() }.to_bytes();
    let image = ImageFile::from_bytes(bytes).unwrap();
    assert_eq!(image.build_id().map(|id| id.to_string()).as_deref(), Some("deadbeef"));
    let without = ImageFile::from_bytes(TestElf::default().to_bytes()).unwrap();
    assert_eq!(without.build_id(), None);
}

#[test]
fn sections_are_parts_of_the_file() {
    let sections = [(".eh_frame", 2, &b"unwind rules"[..])];
    let bytes = TestElf { sections: &sections, ..TestElf::default() }.to_bytes();
    let image = ImageFile::from_bytes(bytes).unwrap();
    let section = image.section(".eh_frame").unwrap();
    assert_eq!(&*section.bytes, b"unwind rules");
    let file = image.bytes().as_ptr_range();
    assert!(file.contains(&section.bytes.as_ptr()), "the bytes were copied");
    assert_eq!(image.section(".text").unwrap().address, ImageAddress(crate::testing::elf::TEXT));
    assert!(image.section(".eh_frame_hdr").is_none());
}

#[test]
fn the_code_is_the_larger_executable_segment_as_far_as_the_file_has_it() {
    let elf = |segments: &[(u64, u64, u64, u32)]| {
        ImageFile::from_bytes(TestElf { segments, ..TestElf::default() }.to_bytes()).unwrap()
    };
    let code = |segments: &[(u64, u64, u64, u32)]| {
        let section = elf(segments).executable()?;
        Some((section.address.0, section.bytes.len()))
    };
    assert_eq!(code(&[]), None);
    assert_eq!(code(&[(0, 0, 0x800, 4)]), None);
    assert_eq!(code(&[(0, 0, 0x800, 4), (0x100, 0x5100, 0x10, 5)]), Some((0x5100, 0x10)));
    let two = [(0x100, 0x5100, 0x10, 5), (0x200, 0x6200, 0x20, 5), (0, 0, 0x800, 4)];
    assert_eq!(code(&two), Some((0x6200, 0x20)));
    let beyond = [(0x100, 0x5100, u64::MAX, 5)];
    let len = elf(&beyond).bytes().len();
    assert_eq!(code(&beyond), Some((0x5100, len - 0x100)));
    assert_eq!(code(&[(u64::MAX, 0, 0x10, 5), (0x100, 0x5100, 0x10, 5)]), Some((0x5100, 0x10)));
    assert_eq!(code(&[(0x100, 0x5100, 0, 5)]), None);
    assert_eq!(code(&[(0, 0x5000, 0x800, 4), (0x100, 0x5100, 0x10, 5)]), Some((0x5100, 0x10)));
    let image = elf(&two);
    let start = image.executable().unwrap().bytes.as_ptr();
    assert_eq!(start, image.bytes()[0x200..].as_ptr(), "the bytes were copied");
    assert_eq!(image.entry(), ImageAddress(crate::testing::elf::TEXT));
}

/// A section in the compressed form of the gABI: type, size and alignment, then a zlib stream.
fn compressed(promised_len: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = [1_u64.to_le_bytes(), promised_len.to_le_bytes(), 1_u64.to_le_bytes()].concat();
    let mut encoder = flate2::write::ZlibEncoder::new(&mut bytes, flate2::Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap();
    bytes
}

#[test]
fn compressed_sections_come_out_whole_or_not_at_all() {
    let content = b"abcabcabcabcabcabc".repeat(20);
    let len = content.len() as u64;
    // A header that promises too little gives that much: no more memory was asked for.
    let cases = [(len, 360), (len - 1, 359), (len + 1, 0), (u64::MAX, 0), (2 << 30, 0)];
    for (promised_len, expect) in cases {
        let bytes = compressed(promised_len, &content);
        let sections = [(".debug_frame", 0x800, &bytes[..])];
        let elf = TestElf { sections: &sections, ..TestElf::default() }.to_bytes();
        let section = ImageFile::from_bytes(elf).unwrap().section(".debug_frame");
        let bytes = section.map(|section| section.bytes).unwrap_or_default();
        assert_eq!(bytes[..], content[..expect], "{promised_len}");
    }
}

#[test]
fn a_mapped_file_reads_like_its_bytes() {
    let path = temporary("image");
    let bytes = TestElf::default().to_bytes();
    std::fs::write(&path, &bytes).unwrap();
    let image = ImageFile::open(&path);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(image.unwrap().bytes()[..], bytes[..]);
}

#[test]
fn what_is_no_regular_file_is_refused_without_waiting() {
    let fifo = temporary("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    let mut paths = vec![PathBuf::from("/dev/zero"), PathBuf::from("/")];
    if made.is_ok_and(|status| status.success()) {
        paths.push(fifo.clone());
    }
    for path in &paths {
        let error = ImageFile::open(path).unwrap_err();
        assert!(matches!(error, ImageError::NotRegular { .. }), "{error}");
        assert_eq!(error.missing(), Missing::NotElf);
    }
    let _ = std::fs::remove_file(fifo);
    let gone = ImageFile::open(&temporary("gone")).unwrap_err();
    assert_eq!(gone.missing(), Missing::FileUnreadable);
}

#[test]
fn files_of_other_kinds_are_no_images() {
    for bytes in [&b""[..], b"#!/bin/sh\n", b"\x7fELF", b"MZ\x90\0", &[0; 4096]] {
        let error = ImageFile::from_bytes(bytes.to_vec()).unwrap_err();
        assert_eq!(error.missing(), Missing::NotElf);
    }
}

#[test]
fn a_file_damaged_at_any_byte_ends_no_process() {
    let symbols = [("main", 0x2010, 16, crate::testing::elf::GLOBAL_FUNC)];
    let sections = [(".note.gnu.build-id", 2, BUILD_ID), (".zdebug_info", 0, b"ZLIB\0\0\0\x7f")];
    let segments = [(0, 0, 0x1000, 5)];
    let elf = TestElf {
        symbols: &symbols,
        sections: &sections,
        segments: &segments,
        ..TestElf::default()
    };
    let bytes = elf.to_bytes();
    let mut same_name = 0;
    for at in 0..bytes.len() {
        for value in [0, 0x7f, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            let Ok(image) = ImageFile::from_bytes(bytes) else { continue };
            let name = image.symbols().lookup(ImageAddress(0x2010)).map(|symbol| symbol.name);
            same_name += u32::from(name == Some(b"main"));
            image.to_image_address(FileOffset(0x123));
            image.section(".debug_info");
            image.section(".note.gnu.build-id");
        }
    }
    // The code itself, most of the file, does not matter to names.
    assert!(same_name > 3 * crate::testing::elf::TEXT_LEN as u32, "{same_name}");
}

#[test]
fn a_file_cut_at_any_byte_gives_an_error_or_less() {
    let symbols = [("main", 0x2010, 16, crate::testing::elf::GLOBAL_FUNC)];
    let sections = [(".note.gnu.build-id", 2, BUILD_ID)];
    let segments = [(0, 0, 0x1000, 5)];
    let elf = TestElf {
        symbols: &symbols,
        sections: &sections,
        segments: &segments,
        ..TestElf::default()
    };
    let bytes = elf.to_bytes();
    let mut images = 0;
    for len in 0..bytes.len() {
        let Ok(image) = ImageFile::from_bytes(bytes[..len].to_vec()) else { continue };
        images += 1;
        let name = image.symbols().lookup(ImageAddress(0x2010)).map(|symbol| symbol.name);
        assert!(matches!(name, None | Some(b"main")), "{len}");
        assert!(image.section(".text").is_none_or(|text| text.bytes.len() <= len));
    }
    // The section headers are the end of the file: without them there is nothing to read.
    assert_eq!(images, 0);
}

#[test]
fn a_segment_at_the_end_of_all_addresses_is_looked_through() {
    let sections = [(".go.buildinfo", 0, &[0_u8; 16][..])];
    let segments = [(64, u64::MAX - 2, 0x100, 4)];
    let elf = TestElf { sections: &sections, segments: &segments, ..TestElf::default() };
    let image = ImageFile::from_bytes(elf.to_bytes()).unwrap();
    assert_eq!(image.function_start(ImageAddress(u64::MAX - 1)), None);
}
