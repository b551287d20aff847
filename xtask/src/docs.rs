//! `cargo xtask docs [PART]`: the pictures of the documentation, from real recordings in a real
//! browser; all of them, or those of `du`, `cpu`, `java`, `python`, `nginx`, `chart`, `diff` or
//! `terminal`. nginx with Lua's module is where `FLAME_NGINX` says; `.ci/run` unpacks it.
//!
//! Each run records anew, so the pictures differ a little from run to run. They are to be looked at
//! before they are committed.

mod terminal;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use flame_browser::{Browser, Launch};

use crate::bench;

const WORDS: &str = include_str!("docs/Words.java");
/// A service in Python, and its load.
const ORDERS: &str = include_str!("docs/orders.py");
/// A server with pages in Lua, as the tests have it, and who asks it for them.
const SHOP: &str = include_str!("../../tests/programs/shop.lua");
const SHOP_CONF: &str = include_str!("../../tests/programs/shop.conf");
const SHOP_PORT: &str = "8099";
const CUSTOMERS: &str = "
import http.client, sys
while True:
    shop = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))
    shop.request('GET', '/shop')
    shop.getresponse().read()
";
/// Stages of a program, side by side.
const STAGES: &str = include_str!("docs/stages.py");
/// A program in two versions, one of which has a regression.
const REQUESTS: &str = include_str!("docs/requests.c");
/// About two seconds of it.
const ROUNDS: &str = "100000";
/// Distinct stacks of the input that flame is recorded with.
const STACKS: u64 = 200_000;
/// The function whose callers and callees are shown.
const AROUND: &str = "flame_profile::folded::read::FoldedReader::read_lines";
const WIDTH: u32 = 1300;
const PHONE: (u32, u32) = (390, 800);
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
    /// The function that the mouse points at.
    point_at: &'static str,
    /// On the screen of a phone.
    phone: bool,
}

/// Records, draws and takes all pictures, or those of a part.
pub(crate) fn run(part: Option<&str>) -> Result<()> {
    ensure!(flame_browser::find_browser().is_some(), "{}", flame_browser::Error::NotFound);
    let directory = std::env::temp_dir().join(format!("flame-docs-{}", std::process::id()));
    fs::create_dir(&directory).with_context(|| directory.display().to_string())?;
    let result = take_parts(part, &directory);
    let _ = fs::remove_dir_all(&directory);
    result
}

fn take_parts(part: Option<&str>, directory: &Path) -> Result<()> {
    type Part = fn(&Path, &Path) -> Result<Vec<Shot>>;
    let parts: [(&str, Part); 8] = [
        ("du", record_du),
        ("cpu", record_cpu),
        ("java", record_java),
        ("python", record_python),
        ("nginx", record_nginx),
        ("chart", record_chart),
        ("diff", compare),
        ("terminal", print_on_terminal),
    ];
    let chosen = parts.iter().filter(|(name, _)| part.is_none_or(|part| part == *name));
    let chosen: Vec<_> = chosen.collect();
    ensure!(!chosen.is_empty(), "parts are du, cpu, java, python, nginx, chart, diff and terminal");
    let flame = bench::build_flame()?;
    for (_, record) in chosen {
        record(&flame, directory)?.iter().try_for_each(take)?;
    }
    Ok(())
}

fn shot(name: &'static str, directory: &Path, svg: &str) -> Shot {
    let svg = directory.join(svg);
    Shot { name, svg, scripts: true, dark: false, search: "", point_at: "", phone: false }
}

/// A first picture: a program that everybody has.
fn record_du(flame: &Path, directory: &Path) -> Result<Vec<Shot>> {
    let mut record = Command::new(flame);
    record.current_dir(directory).args(["record", "-q", "-F", "999", "-o", "du.svg", "--"]);
    succeed(record.args(["du", "-sh", "/usr"]))?;
    Ok(vec![shot("flame.png", directory, "du.svg")])
}

fn record_cpu(flame: &Path, directory: &Path) -> Result<Vec<Shot>> {
    // What is recorded is flame itself: Rust, with inlined functions, libraries and the kernel.
    let mut input = fs::File::create(directory.join("stacks.folded"))?;
    bench::stacks::write(STACKS, &mut input)?;
    let mut render = Command::new(flame);
    // Called by its name alone, so that the title is what people type.
    let path = std::env::var("PATH").unwrap_or_default();
    let own = flame.parent().unwrap_or(Path::new("."));
    render.current_dir(directory).env("PATH", format!("{}:{path}", own.display()));
    render.args(["record", "-q", "-F", "4999", "-o", "cpu.svg"]);
    render.args(["-o", "cpu.folded", "--", "flame"]);
    succeed(render.args(["render", "stacks.folded", "-o", "stacks.svg"]))?;
    let mut invert = Command::new(flame);
    invert.current_dir(directory).args(["render", "cpu.folded", "-o", "icicle.svg"]);
    succeed(invert.args(["--inverted", "--title", "flame render, as an icicle"]))?;
    let mut around = Command::new(flame);
    around.current_dir(directory).args(["render", "cpu.folded", "-o", "around.svg"]);
    succeed(around.args(["--around", AROUND, "--title", "flame render, around one function"]))?;
    // Deep stacks: higher than any window.
    let frames: Vec<String> = (0..150).map(|n| format!("visit_{}", n * 7 % 41)).collect();
    let deep: String = (20..150)
        .map(|depth| format!("parser;{} {}\n", frames[..depth].join(";"), 1 + depth * 7 % 13))
        .collect();
    fs::write(directory.join("deep.folded"), deep)?;
    let mut render = Command::new(flame);
    render.current_dir(directory).args(["render", "deep.folded", "-o", "tall.svg"]);
    succeed(render.args(["--title", "a recursive parser"]))?;
    fs::create_dir(directory.join("builds"))?;
    for (from, to) in [("cpu", "build-41"), ("icicle", "build-41-icicle"), ("tall", "parser")] {
        let to = format!("builds/{to}.svg");
        fs::copy(directory.join(format!("{from}.svg")), directory.join(to))?;
    }
    succeed(Command::new(flame).args(["render", "--index"]).arg(directory.join("builds")))?;
    Ok(vec![
        shot("cpu.png", directory, "cpu.svg"),
        Shot { phone: true, point_at: AROUND, ..shot("phone.png", directory, "cpu.svg") },
        Shot { search: "read|fold", ..shot("search.png", directory, "cpu.svg") },
        shot("around.png", directory, "around.svg"),
        shot("tall.png", directory, "tall.svg"),
        Shot { scripts: false, ..shot("index.png", directory, "builds/index.html") },
        shot("icicle.png", directory, "icicle.svg"),
        Shot { scripts: false, ..shot("still.png", directory, "cpu.svg") },
    ])
}

fn record_java(flame: &Path, directory: &Path) -> Result<Vec<Shot>> {
    fs::write(directory.join("Words.java"), WORDS)?;
    succeed(Command::new("javac").arg("Words.java").current_dir(directory))
        .context("a JDK is needed: sudo apt-get install default-jdk-headless")?;
    let mut record = Command::new(flame);
    let options = "-XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions \
                   -XX:+DumpPerfMapAtExit";
    record.current_dir(directory).env("JAVA_TOOL_OPTIONS", options);
    succeed(record.args(["record", "-q", "-F", "499", "-o", "java.svg", "--", "java", "Words"]))?;
    Ok(vec![
        shot("java.png", directory, "java.svg"),
        Shot { dark: true, search: "java.util", ..shot("dark.png", directory, "java.svg") },
    ])
}

/// A service under load, without the process that makes it.
fn record_python(flame: &Path, directory: &Path) -> Result<Vec<Shot>> {
    fs::write(directory.join("orders.py"), ORDERS)?;
    let mut server = Command::new("/usr/bin/python3").arg(directory.join("orders.py")).spawn()?;
    let pid = server.id().to_string();
    // It starts, and another process that is not to be in the picture.
    thread::sleep(Duration::from_secs(2));
    let mut record = Command::new(flame);
    record.current_dir(directory).args(["record", "-q", "-F", "999", "-o", "python.svg"]);
    record.args(["--title", "a service in Python", "--no-children", "-p", &pid, "-d", "4s"]);
    let recorded = succeed(&mut record);
    server.kill()?;
    server.wait()?;
    recorded?;
    Ok(vec![Shot { point_at: "Report.ranked", ..shot("python.png", directory, "python.svg") }])
}

/// A web server that has its pages written by Lua.
fn record_nginx(flame: &Path, directory: &Path) -> Result<Vec<Shot>> {
    let packages = std::env::var("FLAME_NGINX").context("FLAME_NGINX says no place of nginx")?;
    let place = directory.to_str().context("a path in UTF-8")?;
    let configuration = SHOP_CONF.replace("PACKAGES", &packages).replace("PLACE", place);
    fs::write(directory.join("nginx.conf"), configuration.replace("PORT", SHOP_PORT))?;
    fs::write(directory.join("shop.lua"), SHOP)?;
    let libraries = format!("{packages}/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let mut server = Command::new(format!("{packages}/usr/sbin/nginx"));
    server.current_dir(directory).args(["-p", ".", "-c", "nginx.conf"]);
    let mut server = server.env("LD_LIBRARY_PATH", libraries).spawn()?;
    let pid = server.id().to_string();
    thread::sleep(Duration::from_secs(1));
    let mut customers = Command::new("python3").args(["-c", CUSTOMERS, SHOP_PORT]).spawn()?;
    thread::sleep(Duration::from_secs(1));
    let mut record = Command::new(flame);
    record.current_dir(directory).args(["record", "-q", "-F", "999", "-o", "nginx.svg"]);
    record.args(["--title", "nginx, and pages in Lua", "-p", &pid, "-d", "6s"]);
    let recorded = succeed(&mut record);
    for process in [&mut customers, &mut server] {
        process.kill()?;
        process.wait()?;
    }
    recorded?;
    Ok(vec![Shot { point_at: "render (shop.lua:27)", ..shot("nginx.png", directory, "nginx.svg") }])
}

/// What each thread of a program does when.
fn record_chart(flame: &Path, directory: &Path) -> Result<Vec<Shot>> {
    fs::write(directory.join("stages.py"), STAGES)?;
    let mut record = Command::new(flame);
    record.current_dir(directory).args(["record", "-q", "-F", "999", "--flamechart", "-o"]);
    record.args(["chart.svg", "--", "/usr/bin/python3"]);
    succeed(record.arg(directory.join("stages.py")))?;
    Ok(vec![Shot { scripts: false, ..shot("chart.png", directory, "chart.svg") }])
}

/// Both versions of a program recorded, and the difference drawn.
fn compare(flame: &Path, directory: &Path) -> Result<Vec<Shot>> {
    for version in ["1", "2"] {
        record_requests(flame, directory, version, &format!("v{version}.pb.gz"))?;
    }
    for (view, svg) in [("union", "diff.svg"), ("both", "diff-both.svg")] {
        let mut diff = Command::new(flame);
        diff.current_dir(directory).args(["diff", "v1.pb.gz", "v2.pb.gz", "-q", "--view", view]);
        succeed(diff.args(["--title", "requests: version 1 to version 2", "-o", svg]))?;
    }
    Ok(vec![
        Shot { point_at: "escape_html", ..shot("diff.png", directory, "diff.svg") },
        Shot { point_at: "run_query", ..shot("diff-both.png", directory, "diff-both.svg") },
    ])
}

/// A version of the program, built in a directory of its own and recorded.
fn record_requests(flame: &Path, directory: &Path, version: &str, output: &str) -> Result<()> {
    fs::write(directory.join("requests.c"), REQUESTS)?;
    let built = directory.join(format!("built-{output}"));
    fs::create_dir(&built)?;
    let mut gcc = Command::new("gcc");
    gcc.current_dir(&built).args(["-O1", "-g", &format!("-DVERSION={version}")]);
    succeed(gcc.args(["../requests.c", "-o", "requests"]))?;
    let mut record = Command::new(flame);
    record.current_dir(directory).args(["record", "-q", "-F", "1999", "-o", output, "--"]);
    succeed(record.arg(built.join("requests")).arg(ROUNDS))
}

/// A graph and a call tree as a terminal shows them. No shots: they are taken here.
fn print_on_terminal(flame: &Path, directory: &Path) -> Result<Vec<Shot>> {
    record_requests(flame, directory, "1", "requests.pb.gz")?;
    let print = |options: &[&str]| -> Result<String> {
        let mut render = Command::new(flame);
        render.current_dir(directory).env("COLUMNS", "128").env("COLORTERM", "truecolor");
        render.args(["render", "requests.pb.gz", "--color", "always"]).args(options);
        let output = render.output().with_context(|| format!("{render:?}"))?;
        ensure!(output.status.success(), "{render:?}: {}", output.status);
        Ok(String::from_utf8(output.stdout)?)
    };
    let named = ["--title", "requests"];
    let graph = print(&[&named[..], &["--format", "term"]].concat())?;
    let report = print(&[&named[..], &["--min-share", "4", "--format", "txt"]].concat())?;
    // The command line that recorded it names the directory for pictures.
    let report: Vec<&str> = report.lines().filter(|line| !line.contains("flame-docs")).collect();
    let report = report.join("\n");
    let printed = format!(
        "$ flame render requests.pb.gz --title requests\n{graph}\n\
         $ flame render requests.pb.gz --title requests --min-share 4 --format txt\n{report}"
    );
    let page = directory.join("terminal.html");
    fs::write(&page, terminal::page(&printed))?;
    let mut browser = Browser::launch(&Launch { width: WIDTH, height: 400, ..Launch::default() })?;
    browser.open_file(&page)?;
    let height = browser.eval("document.documentElement.getBoundingClientRect().height")?;
    let size = browser.eval(
        "(range => { range.selectNodeContents(document.querySelector('pre')); \
         return Math.ceil(range.getBoundingClientRect().width) + 36; })(document.createRange())",
    )?;
    let number = |value: serde_json::Value| value.as_f64().context("a size").map(|v| v as u32);
    browser.resize(number(size)?, number(height)?)?;
    browser.screenshot(&docs().join("terminal.png"))?;
    println!("docs/terminal.png");
    Ok(Vec::new())
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
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

/// Moves the mouse to the first box of a function, or taps on it.
fn point(browser: &mut Browser, function: &str, by_finger: bool) -> Result<()> {
    let at = browser.eval(&format!(
        "(r => [r.x + r.width / 2, r.y + r.height / 2])(Array.from(document.querySelectorAll(\
         '#frames g')).find(g => g.firstChild.textContent.startsWith('{function} (')).\
         querySelector('rect').getBoundingClientRect())"
    ))?;
    let of = |index: usize| at[index].as_f64().context("no such box");
    match by_finger {
        true => Ok(browser.tap(of(0)?, of(1)?)?),
        false => Ok(browser.move_to(of(0)?, of(1)?)?),
    }
}

fn take(shot: &Shot) -> Result<()> {
    let limit = Duration::from_secs(120);
    let launch = Launch { width: WIDTH, height: HEIGHT, limit, ..Launch::default() };
    let mut browser = Browser::launch(&launch)?;
    browser.allow_scripts(shot.scripts)?;
    if shot.dark {
        browser.emulate_media("prefers-color-scheme", "dark")?;
    }
    if shot.phone {
        browser.emulate_phone(PHONE.0, PHONE.1, 2)?;
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
    if !shot.point_at.is_empty() {
        point(&mut browser, shot.point_at, shot.phone)?;
    }
    if shot.phone {
        browser.screenshot(&docs().join(shot.name))?;
        println!("docs/{}", shot.name);
        return Ok(());
    }
    // A low graph needs no blank space below it.
    let height = browser.eval(
        "Math.ceil(+document.documentElement.getAttribute('height') || document.documentElement.scrollHeight)",
    )?;
    let height = height.as_u64().and_then(|height| u32::try_from(height).ok()).unwrap_or(HEIGHT);
    // A still picture keeps its size, and is shown whole.
    let (width, height) = match shot.scripts {
        true => (WIDTH, height.min(HEIGHT)),
        false => (flame_width(&mut browser)?, height),
    };
    browser.resize(width, height)?;
    browser.screenshot(&docs().join(shot.name))?;
    println!("docs/{}", shot.name);
    Ok(())
}
