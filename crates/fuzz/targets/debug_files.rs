//! Debug files: any bytes in the place of what belongs to a program give names, or none. The parts
//! of an input are the program, its package of split units, a split unit and dwz's file.
#![no_main]

use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::OnceLock;

use flame_image::{DebugSearch, ImageFile};
use flame_profile::ImageAddress;
use flame_symbolize::{Sources, SymbolizeConfig, symbolize_image};

/// Files of the parts, in their order: those that the seeds' programs refer to.
const FILES: [&str; 4] = ["prog", "prog.dwp", "a.dwo", "common.debug"];

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    let directory = DIRECTORY.get_or_init(|| {
        // Files are written for each input; this directory is in memory where it exists.
        let base = PathBuf::from("/dev/shm");
        let base = if base.is_dir() { base } else { std::env::temp_dir() };
        let directory = base.join(format!("flame-fuzz-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("the directory can be made");
        directory
    });
    let mut parts = flame_fuzz::parts(input);
    for name in FILES {
        let part = parts.next().unwrap_or_default();
        fs::write(directory.join(name), part).expect("the file can be written");
    }
    let path = directory.join(FILES[0]);
    let mut search = DebugSearch::of(&path);
    search.directories.push(directory.clone());
    let Ok(image) = ImageFile::open_with(&path, search) else {
        return;
    };
    let mut addresses = vec![image.entry()];
    for segment in image.segments().iter().take(8) {
        addresses.extend(
            [0, 0x10, 0x40, 0x100].map(|by| ImageAddress(segment.address.0.wrapping_add(by))),
        );
    }
    let config = SymbolizeConfig { threads: NonZeroUsize::new(1), ..SymbolizeConfig::default() };
    let answers = symbolize_image(&image, &addresses, &config);
    assert_eq!(answers.len(), addresses.len());
    let _ = Sources::of(&image);
});
