//! Every format against its samples: `tests/samples/FORMAT/CASE.in`, and beside it `CASE.folded`
//! with the stacks that are in it and, where something cannot be read, `CASE.skipped` with a line
//! for each such part.
//!
//! `FLAME_BLESS=1` writes what is missing, to be read before it is committed.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail with their tests")]

use std::fs;
use std::path::{Path, PathBuf};

use flame_formats::{Content, FORMATS, InputContent, InputFormat, ReadInput, ReadOptions, Source};
use flame_formats::{ReadError, read_input};
use flame_profile::{Annotations, SiblingOrder, TreeOptions, ValueType, write_folded};

/// Those that have tests of their own.
const OWN_TESTS: [&str; 3] = ["pprof", "folded", "perf-data"];

struct Case {
    format: &'static InputFormat,
    path: PathBuf,
    bytes: Vec<u8>,
}

fn cases() -> Vec<Case> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let mut cases = Vec::new();
    for folder in fs::read_dir(top).unwrap().map(|entry| entry.unwrap().path()) {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let format = InputFormat::named(name).unwrap_or_else(|| panic!("no format {name}"));
        let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        for path in files.filter(|path| path.extension().is_some_and(|ending| ending == "in")) {
            let bytes = fs::read(&path).unwrap();
            cases.push(Case { format, path, bytes });
        }
    }
    cases.sort_by(|a, b| a.path.cmp(&b.path));
    cases
}

fn read(
    bytes: &[u8],
    format: Option<&'static InputFormat>,
    threads: usize,
) -> Result<ReadInput, ReadError> {
    let options = ReadOptions { format, threads, ..ReadOptions::default() };
    read_input(Source::of_bytes(bytes.to_vec())?, &options)
}

fn folded(read: &ReadInput) -> String {
    let InputContent::Stacks(stacks) = &read.content else { panic!("stacks are expected") };
    let builder = stacks.to_builder(&TreeOptions::default());
    let tree = builder.finish(ValueType::samples(), SiblingOrder::Name);
    let mut text = Vec::new();
    write_folded(&tree, Annotations::Write, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn skipped(read: &ReadInput) -> String {
    let parts = read.skipped.first().iter();
    let mut lines: Vec<String> =
        parts.map(|part| format!("{}: {}: {}\n", part.place, part.reason, part.text)).collect();
    let more = read.skipped.count() - lines.len() as u64;
    if more > 0 {
        lines.push(format!("and {more} more\n"));
    }
    lines.concat()
}

#[track_caller]
fn check(path: &Path, found: &str) {
    if std::env::var_os("FLAME_BLESS").is_some() && !path.exists() && !found.is_empty() {
        fs::write(path, found).unwrap();
    }
    let expect = fs::read_to_string(path).unwrap_or_default();
    assert!(found == expect, "{}:\n{found}", path.display());
}

#[test]
fn every_format_has_samples() {
    let cases = cases();
    for format in FORMATS.iter().filter(|format| !OWN_TESTS.contains(&format.name)) {
        assert!(cases.iter().any(|case| case.format.name == format.name), "{}", format.name);
    }
}

#[test]
fn samples_are_recognised_and_have_the_stacks_that_they_should() {
    for Case { path, bytes, format } in cases() {
        let read = read(&bytes, None, 1).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        assert_eq!(read.format.name, format.name, "{path:?} is taken for another format");
        check(&path.with_extension("folded"), &folded(&read));
        check(&path.with_extension("skipped"), &skipped(&read));
    }
}

#[test]
fn line_ends_and_the_number_of_threads_change_nothing() {
    for Case { path, bytes, format } in cases() {
        let expect = read(&bytes, Some(format), 1).unwrap();
        let expect = (folded(&expect), skipped(&expect));
        let same = |bytes: &[u8], threads| {
            let read = read(bytes, Some(format), threads).unwrap();
            assert_eq!((folded(&read), skipped(&read)), expect, "{path:?}");
        };
        same(&bytes, 4);
        if format.content == Content::Text {
            let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
            same(text.replace('\n', "\r\n").as_bytes(), 2);
            same(text.trim_end_matches('\n').as_bytes(), 2);
        }
    }
}

#[test]
fn samples_that_are_cut_off_anywhere_are_read_as_far_as_they_go() {
    for Case { bytes, format, .. } in cases() {
        for cut in 0..bytes.len() {
            // Whether there is something to read, or that is said to be broken.
            if let Ok(read) = read(&bytes[..cut], Some(format), 1) {
                let _ = folded(&read);
            }
            let _ = InputFormat::detect(&bytes[..cut]);
        }
    }
}

#[test]
fn another_format_than_that_of_the_input_harms_nothing() {
    for Case { bytes, .. } in cases() {
        for format in FORMATS {
            let _ = read(&bytes, Some(format), 2);
        }
    }
}
