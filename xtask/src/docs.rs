//! `cargo xtask docs`: the pictures of the documentation, from real recordings in a real browser.
//!
//! Each run records anew, so the pictures differ a little from run to run. They are to be looked at
//! before they are committed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use flame_browser::{Browser, Launch};

use crate::bench;

const WORDS: &str = include_str!("docs/Words.java");
/// Distinct stacks of the input that flame is recorded with.
const STACKS: u64 = 200_000;
const WIDTH: u32 = 1300;
/// Higher graphs show their lower part, as they do in a window.
const HEIGHT: u32 = 900;

/// How a picture is taken.
struct Shot {
    /// The file in `docs/`.
    name: &'static str,
    /// The graph.
    svg: PathBuf,
    scripts: bool,
    dark: bool,
    /// Typed into the search.
    search: &'static str,
}

/// Records, draws and takes all pictures.
pub(crate) fn run() -> Result<()> {
    ensure!(flame_browser::find_browser().is_some(), "{}", flame_browser::Error::NotFound);
    let directory = std::env::temp_dir().join(format!("flame-docs-{}", std::process::id()));
    fs::create_dir(&directory).with_context(|| directory.display().to_string())?;
    let result = take_all(&directory);
    let _ = fs::remove_dir_all(&directory);
    result
}

fn take_all(directory: &Path) -> Result<()> {
    let flame = bench::build_flame()?;
    // What is recorded is flame itself: Rust, with inlined functions, libraries and the kernel.
    let mut input = fs::File::create(directory.join("stacks.folded"))?;
    bench::stacks::write(STACKS, &mut input)?;
    let mut render = Command::new(&flame);
    // Called by its name alone, so that the title is what people type.
    let path = std::env::var("PATH").unwrap_or_default();
    let own = flame.parent().unwrap_or(Path::new("."));
    render.current_dir(directory).env("PATH", format!("{}:{path}", own.display()));
    render.args(["record", "-q", "-F", "4999", "-o", "cpu.svg"]);
    render.args(["-o", "cpu.folded", "--", "flame"]);
    succeed(render.args(["render", "stacks.folded", "-o", "stacks.svg"]))?;
    record_java(&flame, directory)?;
    let mut invert = Command::new(&flame);
    invert.current_dir(directory).args(["render", "cpu.folded", "-o", "icicle.svg"]);
    succeed(invert.args(["--inverted", "--title", "flame render, as an icicle"]))?;
    let shot = |name, svg: &str| {
        let svg = directory.join(svg);
        Shot { name, svg, scripts: true, dark: false, search: "" }
    };
    let shots = [
        shot("cpu.png", "cpu.svg"),
        shot("java.png", "java.svg"),
        shot("icicle.png", "icicle.svg"),
        Shot { dark: true, search: "java.util", ..shot("dark.png", "java.svg") },
        Shot { scripts: false, ..shot("still.png", "cpu.svg") },
    ];
    shots.iter().try_for_each(take)
}

fn record_java(flame: &Path, directory: &Path) -> Result<()> {
    fs::write(directory.join("Words.java"), WORDS)?;
    succeed(Command::new("javac").arg("Words.java").current_dir(directory))
        .context("a JDK is needed: sudo apt-get install default-jdk-headless")?;
    let mut record = Command::new(flame);
    let options = "-XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions \
                   -XX:+DumpPerfMapAtExit";
    record.current_dir(directory).env("JAVA_TOOL_OPTIONS", options);
    succeed(record.args(["record", "-q", "-F", "499", "-o", "java.svg", "--", "java", "Words"]))
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

/// The width that a picture was written with.
fn flame_width(browser: &mut Browser) -> Result<u32> {
    let width = browser.eval("+document.documentElement.getAttribute('width')")?;
    Ok(width.as_u64().and_then(|width| u32::try_from(width).ok()).unwrap_or(WIDTH))
}

fn take(shot: &Shot) -> Result<()> {
    let limit = Duration::from_secs(120);
    let launch = Launch { width: WIDTH, height: HEIGHT, limit, ..Launch::default() };
    let mut browser = Browser::launch(&launch)?;
    browser.allow_scripts(shot.scripts)?;
    if shot.dark {
        browser.emulate_media("prefers-color-scheme", "dark")?;
    }
    browser.open_file(&shot.svg)?;
    if shot.scripts {
        browser.eval(
            "new Promise(done => (function look() { \
             if (document.querySelector('[data-ready]')) requestAnimationFrame(done); \
             else setTimeout(look, 20); })()).then(() => 0)",
        )?;
    }
    if !shot.search.is_empty() {
        browser.press_control("f")?;
        browser.type_text(shot.search)?;
        browser.eval("document.activeElement.blur()")?;
    }
    // A low graph needs no blank space below it.
    let height = browser.eval("+document.documentElement.getAttribute('height')")?;
    let height = height.as_u64().and_then(|height| u32::try_from(height).ok()).unwrap_or(HEIGHT);
    // A still picture keeps its size, and is shown whole.
    let (width, height) = match shot.scripts {
        true => (WIDTH, height.min(HEIGHT)),
        false => (flame_width(&mut browser)?, height),
    };
    browser.resize(width, height)?;
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    browser.screenshot(&docs.join(shot.name))?;
    println!("docs/{}", shot.name);
    Ok(())
}
