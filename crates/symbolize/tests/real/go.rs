//! Names, inlined calls and lines of a stripped Go program beside those of the same program with its
//! debug information.

use std::path::{Path, PathBuf};
use std::process::Command;

use flame_image::ImageFile;
use flame_profile::ImageAddress;
use flame_symbolize::{SymbolizeConfig, Symbolized, symbolize_image};

const ADDRESSES: u64 = 20_000;

/// The program that the end-to-end tests record; most of it is Go's runtime.
const SOURCE: &str = "../../tests/programs/rounds.go";

/// One frame: name, whether it is inlined, file, line.
type Frame = (String, bool, String, u32);

#[test]
fn a_stripped_program_has_the_frames_that_its_debug_information_had() {
    let dir = std::env::temp_dir().join(format!("flame-go-names-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let built = [("whole", ""), ("lines", "-w"), ("bare", "-s -w")]
        .map(|(name, flags)| build(&dir, name, &["-ldflags", flags]));
    let [Some(whole), Some(lines), Some(bare)] = built else {
        eprintln!("SKIP go: no go");
        return;
    };
    let debug = frames(&whole);
    for path in [lines, bare] {
        let table = frames(&path);
        let pairs = debug.iter().zip(&table);
        let different: Vec<_> = pairs.filter(|(debug, table)| debug != table).collect();
        // What is generated for interfaces: there is no debug information of calls inlined into it,
        // and the table leaves out lengths of arrays.
        let share = different.len() as f64 / debug.len() as f64;
        assert!(share < 0.005, "{}: {share} {:#?}", path.display(), different.first());
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

fn build(dir: &Path, name: &str, options: &[&str]) -> Option<PathBuf> {
    let path = dir.join(name);
    let mut go = Command::new("go");
    go.env("GOCACHE", dir.join("cache")).env("GO111MODULE", "off").env("GOFLAGS", "");
    go.arg("build").args(options).arg("-o").arg(&path);
    go.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(SOURCE));
    go.status().is_ok_and(|status| status.success()).then_some(path)
}

/// The frames at addresses all over the code.
fn frames(path: &Path) -> Vec<Vec<Frame>> {
    let image = ImageFile::open(path).unwrap();
    let text = image.section(".text").unwrap();
    let step = text.bytes.len() as u64 / ADDRESSES;
    let at = |index| ImageAddress(text.address.0 + index * step);
    let addresses: Vec<ImageAddress> = (0..ADDRESSES).map(at).collect();
    let answers = symbolize_image(&image, &addresses, &SymbolizeConfig::default());
    let frames = answers.into_iter().map(|answer| match answer {
        Symbolized::Unknown(_) => Vec::new(),
        Symbolized::Frames(frames) => frames.into_iter().map(frame).collect(),
    });
    frames.collect()
}

fn frame(frame: flame_symbolize::SymbolFrame) -> Frame {
    let file = frame.file.as_deref().unwrap_or_default();
    // Debug information has it in the directory of the compiler.
    let file = file.trim_start_matches("./").to_owned();
    (frame.name.to_string(), frame.inlined, file, frame.line.unwrap_or(0))
}
