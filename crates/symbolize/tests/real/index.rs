//! The index on disk: the same answers with it as without it, whatever has happened to its file.
//!
//! The image is this test program itself, whose debug information is some megabytes.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;

use flame_profile::ImageAddress;
use flame_symbolize::{ImageFile, IndexCache, SymbolizeConfig, Symbolized, symbolize_image};

/// A directory that is removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("flame-{test}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    fn config(&self) -> SymbolizeConfig {
        let index = Some(IndexCache::open(&self.0.join("flame")).unwrap());
        SymbolizeConfig { index, ..SymbolizeConfig::default() }
    }

    /// The only file there is.
    fn file(&self) -> PathBuf {
        let mut files = fs::read_dir(self.0.join("flame")).unwrap();
        let file = files.next().unwrap().unwrap().path();
        assert!(files.next().is_none());
        file
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn image() -> ImageFile {
    ImageFile::open(Path::new("/proc/self/exe")).unwrap()
}

/// Every so many bytes of the code.
fn addresses(image: &ImageFile, step: usize) -> Vec<ImageAddress> {
    let text = image.section(".text").unwrap();
    let offsets = (0..text.bytes.len() as u64).step_by(step);
    offsets.map(|offset| ImageAddress(text.address.0 + offset)).collect()
}

fn with_inlined(answers: &[Symbolized]) -> usize {
    let inlined = |answer: &&Symbolized| matches!(answer, Symbolized::Frames(f) if f.len() > 1);
    answers.iter().filter(inlined).count()
}

/// The number that changes when a file is replaced.
fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

#[test]
fn answers_are_the_same_with_an_index_and_without() {
    let scratch = Scratch::new("same");
    let image = image();
    let addresses = addresses(&image, 1009);
    let plain = symbolize_image(&image, &addresses, &SymbolizeConfig::default());
    assert!(with_inlined(&plain) > addresses.len() / 100, "nothing is inlined in this program");
    assert_eq!(symbolize_image(&image, &addresses, &scratch.config()), plain);
    let written = inode(&scratch.file());
    assert_eq!(symbolize_image(&image, &addresses, &scratch.config()), plain);
    assert_eq!(inode(&scratch.file()), written, "nothing was new");
}

#[test]
fn an_index_grows_with_what_is_asked_for() {
    let scratch = Scratch::new("grow");
    let image = image();
    let addresses = addresses(&image, 1511);
    let plain = symbolize_image(&image, &addresses, &SymbolizeConfig::default());
    let mut len = 0;
    let third = addresses.len().div_ceil(3);
    for (questions, expect) in addresses.chunks(third).zip(plain.chunks(third)) {
        assert_eq!(symbolize_image(&image, questions, &scratch.config()), expect);
        let grown = fs::metadata(scratch.file()).unwrap().len();
        assert!(grown > len, "each third has units of its own: {len} {grown}");
        len = grown;
    }
    assert_eq!(symbolize_image(&image, &addresses, &scratch.config()), plain);
}

#[test]
fn a_damaged_index_changes_no_answer() {
    let scratch = Scratch::new("damage");
    let image = image();
    let addresses = addresses(&image, 40_009);
    let plain = symbolize_image(&image, &addresses, &scratch.config());
    let whole = fs::read(scratch.file()).unwrap();
    let cuts = [0, 100, whole.len() - 1];
    let damages: Vec<Vec<u8>> = (0..10)
        .map(|part| {
            let mut bytes = whole.clone();
            bytes[part * whole.len() / 10] ^= 0x55;
            bytes
        })
        .chain(cuts.iter().map(|len| whole[..*len].to_vec()))
        .collect();
    for bytes in damages {
        // Replaced as others would do it, since it may be mapped.
        let aside = scratch.0.join("aside");
        fs::write(&aside, bytes).unwrap();
        fs::rename(&aside, scratch.file()).unwrap();
        assert_eq!(symbolize_image(&image, &addresses, &scratch.config()), plain);
    }
}

#[test]
fn several_at_once_do_not_disturb_each_other() {
    let scratch = Scratch::new("several");
    let image = image();
    let addresses = addresses(&image, 5003);
    let plain = symbolize_image(&image, &addresses, &SymbolizeConfig::default());
    thread::scope(|scope| {
        for part in 0..4 {
            let (image, addresses, plain, scratch) = (&image, &addresses, &plain, &scratch);
            scope.spawn(move || {
                for round in 0..4 {
                    let quarter = addresses.len() / 4;
                    let range = quarter * ((part + round) % 4)..addresses.len();
                    let answers =
                        symbolize_image(image, &addresses[range.clone()], &scratch.config());
                    assert_eq!(answers, plain[range]);
                }
            });
        }
    });
    // One file is left, which is as good as any.
    let left = scratch.file();
    assert_eq!(symbolize_image(&image, &addresses, &scratch.config()), plain);
    assert_eq!(scratch.file(), left);
}
