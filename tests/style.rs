//! What the house style asks of every source file and no compiler checks.

use std::fs;
use std::path::{Path, PathBuf};

/// The most lines of a file, its tests left out.
const MAX_LINES: usize = 500;

/// All Rust sources of the workspace, sorted.
fn sources() -> Vec<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut directories = vec![top.join("crates"), top.join("xtask"), top.join("tests")];
    let mut sources = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("the directory can be read") {
            let path = entry.expect("the entry can be read").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                sources.push(path);
            }
        }
    }
    sources.sort();
    assert!(sources.len() >= 50, "only {} sources found", sources.len());
    sources
}

/// The files for which `test` holds, as one text a file and line.
fn offenders(test: impl Fn(&Path, &str) -> Option<String>) -> Vec<String> {
    let check = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("sources are text");
        test(&path, &text).map(|what| format!("{}: {what}", path.display()))
    };
    sources().into_iter().filter_map(check).collect()
}

/// Whether a file is nothing but tests: it is below a `tests`, or `tests.rs` beside what it tests.
fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs")
}

#[test]
fn every_file_says_first_what_it_is_for() {
    let silent = offenders(|path, text| {
        let says = text.starts_with("//!") || is_test(path);
        (!says).then(|| "does not start with a module doc".to_owned())
    });
    assert!(silent.is_empty(), "{silent:#?}");
}

#[test]
fn files_are_short() {
    let long = offenders(|path, text| {
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
        let lines = if is_test(path) { 0 } else { code.lines().count() };
        (lines > MAX_LINES).then(|| format!("{lines} lines without its tests"))
    });
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn lints_are_expected_with_a_reason_and_never_allowed() {
    let bare = offenders(|_, text| {
        let attribute = |line: &&str| {
            let line = line.trim_start();
            let allows = line.starts_with("#[allow(") || line.starts_with("#![allow(");
            let expects = line.starts_with("#[expect(") || line.starts_with("#![expect(");
            let one_line = line.ends_with(")]");
            allows || (expects && one_line && !line.contains("reason = "))
        };
        text.lines().find(attribute).map(str::to_owned)
    });
    assert!(bare.is_empty(), "{bare:#?}");
}
