//! The programs of the matrix: `tests/programs/rooted`, built in many ways.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// A program, ready to run.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// What the kernel calls its process.
    pub(super) comm: &'static str,
    /// What calls what, from the outermost function on.
    pub(super) chain: [&'static str; 3],
    /// Outermost functions besides those of C.
    pub(super) roots: &'static [&'static str],
    /// The command, in which `SECONDS` is to be replaced.
    pub(super) command: Vec<OsString>,
}

impl Kind {
    /// The command for a run of that many seconds.
    pub(super) fn command(&self, seconds: u64) -> Vec<OsString> {
        let word = |word: &OsString| match word.to_str() {
            Some("SECONDS") => seconds.to_string().into(),
            _ => word.clone(),
        };
        self.command.iter().map(word).collect()
    }
}

/// How a program is made, and run; `SOURCE`, `OUTPUT` and `DIRECTORY` are paths.
struct Recipe {
    name: &'static str,
    /// The file in `tests/programs/rooted`.
    source: &'static str,
    /// Commands that make `OUTPUT`; none for scripts.
    build: &'static [&'static [&'static str]],
    run: &'static [&'static str],
    comm: &'static str,
    chain: [&'static str; 3],
    roots: &'static [&'static str],
}

const C: [&str; 3] = ["main", "outer", "inner"];
const SCRIPT: [&str; 3] = ["start", "outer", "inner"];
/// The last two are where a thread's own stack begins anew when a goroutine leaves its stack.
const GO: &[&str] =
    &["runtime.goexit", "runtime.rt0_go", "_rt0_amd64_linux", "runtime.mstart", "runtime.mcall"];

const fn c(
    name: &'static str,
    build: &'static [&'static [&'static str]],
    way: &'static [&'static str],
) -> Recipe {
    Recipe { name, source: "rooted.c", build, run: way, comm: "rooted", chain: C, roots: &[] }
}

/// As distributions build C.
const PLAIN: &[&[&str]] = &[&["gcc", "-O2", "-o", "OUTPUT", "SOURCE"]];

const RECIPES: &[Recipe] = &[
    c("C, -O2", PLAIN, &["OUTPUT", "SECONDS"]),
    c(
        "C, frame pointers and no tables",
        &[&[
            "gcc",
            "-O2",
            "-fno-omit-frame-pointer",
            "-fno-asynchronous-unwind-tables",
            "-fno-unwind-tables",
            "-o",
            "OUTPUT",
            "SOURCE",
        ]],
        &["OUTPUT", "SECONDS"],
    ),
    c(
        "C, stripped",
        &[&["gcc", "-O2", "-rdynamic", "-s", "-o", "OUTPUT", "SOURCE"]],
        &["OUTPUT", "SECONDS"],
    ),
    c(
        "C, static glibc",
        &[&["gcc", "-O2", "-static", "-o", "OUTPUT", "SOURCE"]],
        &["OUTPUT", "SECONDS"],
    ),
    c(
        "C, static musl",
        &[&["musl-gcc", "-O2", "-static", "-o", "OUTPUT", "SOURCE"]],
        &["OUTPUT", "SECONDS"],
    ),
    c("C, 32 bits", &[&["gcc", "-m32", "-O2", "-o", "OUTPUT", "SOURCE"]], &["OUTPUT", "SECONDS"]),
    c("C, in a signal handler", PLAIN, &["OUTPUT", "SECONDS", "signal"]),
    c("C, in a handler on another stack", PLAIN, &["OUTPUT", "SECONDS", "alternate"]),
    c("C, below assembly without tables", PLAIN, &["OUTPUT", "SECONDS", "bare"]),
    c("C, below 500 levels of recursion", PLAIN, &["OUTPUT", "SECONDS", "deep"]),
    Recipe {
        name: "C++, while an exception passes",
        source: "rooted.cpp",
        build: &[&["g++", "-O2", "-o", "OUTPUT", "SOURCE"]],
        run: &["OUTPUT", "SECONDS"],
        comm: "rooted",
        chain: C,
        roots: &[],
    },
    Recipe {
        name: "Rust",
        source: "rooted.rs",
        build: &[&["rustc", "--edition=2024", "-Copt-level=2", "-o", "OUTPUT", "SOURCE"]],
        run: &["OUTPUT", "SECONDS"],
        comm: "rooted",
        chain: C,
        roots: &[],
    },
    Recipe {
        name: "Go",
        source: "rooted.go",
        build: &[&["go", "build", "-o", "OUTPUT", "SOURCE"]],
        run: &["OUTPUT", "SECONDS"],
        comm: "rooted",
        chain: C,
        roots: GO,
    },
    Recipe {
        name: "Go, stripped",
        source: "rooted.go",
        build: &[&["go", "build", "-ldflags=-s -w", "-o", "OUTPUT", "SOURCE"]],
        run: &["OUTPUT", "SECONDS"],
        comm: "rooted",
        chain: C,
        roots: GO,
    },
    Recipe {
        name: "Java",
        source: "Rooted.java",
        build: &[&["javac", "-d", "DIRECTORY", "SOURCE"]],
        run: &["java", "-cp", "DIRECTORY", "Rooted", "SECONDS"],
        comm: "java",
        chain: C,
        roots: &[],
    },
    Recipe {
        name: "Node.js",
        source: "rooted.js",
        build: &[],
        run: &["node", "SOURCE", "SECONDS"],
        comm: "node",
        chain: SCRIPT,
        roots: &[],
    },
    Recipe {
        name: "Python",
        source: "rooted.py",
        build: &[],
        run: &["python3", "SOURCE", "SECONDS"],
        comm: "python3",
        chain: SCRIPT,
        roots: &[],
    },
    Recipe {
        name: "Perl",
        source: "rooted.pl",
        build: &[],
        run: &["perl", "SOURCE", "SECONDS"],
        comm: "perl",
        chain: SCRIPT,
        roots: &[],
    },
];

/// Builds those whose name contains `only`; also says which could not be built, and why.
pub(super) fn build(
    directory: &Path,
    only: Option<&str>,
) -> Result<(Vec<Kind>, Vec<&'static str>)> {
    let (mut kinds, mut missing) = (Vec::new(), Vec::new());
    let wanted = |recipe: &&Recipe| only.is_none_or(|only| recipe.name.contains(only));
    for (at, recipe) in RECIPES.iter().enumerate().filter(|(_, recipe)| wanted(recipe)) {
        let place = directory.join(format!("kind-{at}"));
        match make(recipe, &place) {
            Ok(kind) => kinds.push(kind),
            Err(error) => {
                eprintln!("{}: {error:#}", recipe.name);
                missing.push(recipe.name);
            }
        }
    }
    Ok((kinds, missing))
}

fn make(recipe: &Recipe, place: &Path) -> Result<Kind> {
    std::fs::create_dir(place).with_context(|| place.display().to_string())?;
    // A copy: users who may not look into this tree run the scripts, too.
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs");
    let source = place.join(recipe.source);
    std::fs::copy(sources.join("rooted").join(recipe.source), &source).context(recipe.source)?;
    std::fs::copy(sources.join("cpu.h"), place.join("../cpu.h")).context("cpu.h")?;
    let word = |word: &&str| -> OsString {
        match *word {
            "SOURCE" => source.clone().into(),
            "OUTPUT" => place.join("rooted").into(),
            "DIRECTORY" => place.into(),
            other => other.into(),
        }
    };
    for command in recipe.build {
        let words: Vec<OsString> = command.iter().map(word).collect();
        let (program, arguments) = words.split_first().context("a command")?;
        let mut command = Command::new(program);
        command.args(arguments).env("GOCACHE", place.join("../go"));
        super::rooted::stdout(&mut command)?;
    }
    let mut command: Vec<OsString> = recipe.run.iter().map(word).collect();
    // By its path: what stands for an interpreter in the caller's environment is not for others.
    if let Some(program) = command.first_mut().filter(|word| !Path::new(word).is_absolute()) {
        *program = interpreter(program)?.into();
    }
    let Recipe { name, comm, chain, roots, .. } = *recipe;
    Ok(Kind { name, comm, chain, roots, command })
}

/// Where the system has a program that users may run.
fn interpreter(name: &OsString) -> Result<PathBuf> {
    let path = Path::new("/usr/bin").join(name);
    std::fs::canonicalize(&path).map(|_| path).with_context(|| format!("no {}", name.display()))
}
