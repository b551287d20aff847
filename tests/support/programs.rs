//! Builds the programs of `tests/programs`, each once, whoever asks first.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

/// How a program is built; each way has a directory of its own, since the file's name is what the
/// kernel calls the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Build {
    /// As distributions do: no frame pointers, no debug information, dynamic.
    Plain,
    /// With frame pointers and nothing else to unwind by in the program itself.
    FramePointers,
    /// With frame pointers and tables that count from them, as some distributions do; large frames are touched page by page.
    CountedFromPointers,
    /// With debug information.
    Debug,
    /// Linked statically, so that the C library's own functions have names.
    Static,
    /// A shared object.
    Shared,
    /// With all its functions and data for others to link to.
    Exporting,
}

impl Build {
    fn dir(self) -> &'static str {
        match self {
            Build::Plain => "plain",
            Build::FramePointers => "fp",
            Build::CountedFromPointers => "fp_tables",
            Build::Debug => "debug",
            Build::Static => "static",
            Build::Shared => "shared",
            Build::Exporting => "exporting",
        }
    }

    fn flags(self) -> &'static [&'static str] {
        match self {
            Build::Plain => &["-fomit-frame-pointer"],
            Build::FramePointers => &[
                "-fno-omit-frame-pointer",
                "-fno-asynchronous-unwind-tables",
                "-fno-unwind-tables",
            ],
            Build::CountedFromPointers => {
                &["-fno-omit-frame-pointer", "-fstack-clash-protection", "-fstack-protector-strong"]
            }
            Build::Debug => &["-fomit-frame-pointer", "-g"],
            Build::Static => &["-fomit-frame-pointer", "-static"],
            Build::Shared => &["-fomit-frame-pointer", "-shared", "-fPIC"],
            Build::Exporting => &["-fomit-frame-pointer", "-rdynamic"],
        }
    }
}

/// The path of `tests/programs/SOURCE` built as [`Build::Plain`]; called by the name of the
/// source, without its ending.
pub(crate) fn program(source: &str) -> String {
    program_built(source, Build::Plain)
}

/// The path of `tests/programs/SOURCE` built that way.
pub(crate) fn program_built(source: &str, build: Build) -> String {
    static BUILT: OnceLock<Mutex<HashMap<(String, Build), PathBuf>>> = OnceLock::new();
    let built = BUILT.get_or_init(Mutex::default);
    let mut built = built.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (source.to_owned(), build);
    let path = built.entry(key).or_insert_with(|| make(source, build));
    path.to_str().unwrap().to_owned()
}

fn make(source: &str, build: Build) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
    let source = sources.join(source);
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs").join(build.dir());
    fs::create_dir_all(&dir).unwrap();
    let output = dir.join(source.file_stem().unwrap());
    let rust = source.extension().is_some_and(|ending| ending == "rs");
    let output = if rust { output.with_file_name("inlining_rs") } else { output };
    let newest = modified(&source).max(modified(&sources.join("cpu.h")));
    if output.exists() && modified(&output) > newest {
        return output;
    }
    // Built beside and renamed, because another run of the tests may be using the old one.
    let temporary = output.with_extension(format!("{}.new", process::id()));
    let mut command = compiler(&source, build);
    let status = command.arg("-o").arg(&temporary).arg(&source).status();
    let status = status.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
    fs::rename(&temporary, &output).unwrap();
    output
}

fn compiler(source: &Path, build: Build) -> Command {
    match source.extension().and_then(|ending| ending.to_str()) {
        Some("rs") => {
            let mut command = Command::new("rustc");
            command.args(["--edition", "2024", "-Copt-level=2", "-g"]);
            command
        }
        ending => {
            let mut command = Command::new(if ending == Some("cpp") { "g++" } else { "gcc" });
            command.args(["-O2", "-Wall", "-pthread"]).args(build.flags());
            command
        }
    }
}

fn modified(path: &Path) -> SystemTime {
    let metadata = fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    metadata.modified().unwrap()
}
