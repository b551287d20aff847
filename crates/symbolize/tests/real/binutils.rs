//! Names and lines beside those of `addr2line -fiC` and `nm -C`, on 10,000 addresses each of the C
//! library (with Debian's debug file for it), of a C++ program and of a Rust one.
//!
//! The addresses are the same in each run for the same binary. Where the answers differ the
//! difference has to be one of [`Why`], and is looked into as far as that can be done.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flame_image::ImageFile;
use flame_profile::ImageAddress;
use flame_symbolize::{SymbolizeConfig, Symbolized, demangle, symbolize_image};

const ADDRESSES: usize = 10_000;

/// Why an answer is another one than that of binutils 2.40 and right all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    /// No function has the address, as between two of them: binutils names the one before it.
    Outside,
    /// The name is another one of the same function: the plainest alias, or, where the linker
    /// folded equal functions, the name of the other one.
    Alias,
    /// The part of a function that the compiler put elsewhere has the name of the function, and not
    /// that of the symbol with its suffix (`.cold`).
    Suffix,
    /// The name has its scopes where debug information has only the last part of it.
    Scopes,
    /// binutils gives the innermost inlined function without linkage name that of the symbol.
    SymbolForInlined,
    /// Both name the same mangled name, and the demanglers spell it differently.
    Spelling,
    /// binutils takes the source file of the unit for that of an included one, or of code without
    /// lines. llvm-addr2line agrees with flame on all those of libc.
    File,
}

/// One frame: name, file without directories, line or 0.
type Frame = (String, String, u32);

#[test]
fn c_names_are_those_of_binutils() {
    let Some(libc) = libc() else { return };
    // A quarter of the functions have several names: `malloc`, `__libc_malloc`, `__GI___libc_malloc`.
    let limits = [(Why::Outside, 4.0), (Why::Alias, 35.0), (Why::Suffix, 1.0), (Why::File, 8.0)];
    check(&libc.0, &libc.1, &limits);
}

#[test]
fn cpp_names_are_those_of_binutils() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/shapes.cpp");
    let program = scratch("shapes");
    let mut compiler = Command::new("g++");
    compiler.args(["-O2", "-g", "-std=c++17", "-pthread", "-o"]).arg(&program).arg(source);
    if !compiler.status().is_ok_and(|status| status.success()) {
        return skip("no g++");
    }
    let limits = [
        (Why::Outside, 4.0),
        (Why::Suffix, 1.0),
        (Why::Scopes, 15.0),
        (Why::Alias, 4.0),
        (Why::SymbolForInlined, 2.0),
        (Why::Spelling, 3.0),
        (Why::File, 1.0),
    ];
    check(&program, &program, &limits);
    std::fs::remove_file(program).unwrap();
}

#[test]
fn rust_names_are_those_of_binutils() {
    let program = std::env::current_exe().unwrap();
    let limits = [(Why::Outside, 4.0), (Why::Alias, 1.0), (Why::Spelling, 0.5), (Why::File, 2.0)];
    check(&program, &program, &limits);
}

/// With line tables only no function has a linkage name. binutils then gives the innermost inlined
/// function the name of the symbol, and the function around it, `main::{{closure}}`, that of its entry,
/// `{closure#0}`. The entries themselves (`llvm-dwarfdump --lookup`) and llvm-addr2line say what flame says.
#[test]
fn rust_names_with_line_tables_only_are_those_of_binutils() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/closures.rs");
    let program = scratch("closures");
    let mut compiler = Command::new("rustc");
    compiler.args(["-O", "-Cdebuginfo=line-tables-only", "--edition=2024", "-o"]);
    if !compiler.arg(&program).arg(source).status().is_ok_and(|status| status.success()) {
        return skip("no rustc");
    }
    let limits = [
        (Why::Outside, 4.0),
        (Why::Alias, 1.0),
        (Why::Scopes, 2.0),
        (Why::SymbolForInlined, 2.0),
        (Why::Spelling, 0.5),
        (Why::File, 12.0),
    ];
    check(&program, &program, &limits);
    std::fs::remove_file(program).unwrap();
}

/// The C library and the file with its debug information.
fn libc() -> Option<(PathBuf, PathBuf)> {
    let path = PathBuf::from("/lib/x86_64-linux-gnu/libc.so.6");
    let image = ImageFile::open(&path).ok();
    let id = image.as_ref().and_then(|image| image.build_id()).map(ToString::to_string);
    let debug = id.map(|id| format!("/usr/lib/debug/.build-id/{}/{}.debug", &id[..2], &id[2..]));
    match debug.map(PathBuf::from).filter(|debug| debug.exists()) {
        Some(debug) => Some((path, debug)),
        None => {
            skip("no debug file of libc");
            None
        }
    }
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("flame-{name}-{}", std::process::id()))
}

fn skip(reason: &str) {
    eprintln!("SKIP binutils: {reason}");
}

/// Compares the answers for an image; `debug` is the file that binutils reads. Differences are of
/// the kinds in `limits` and no more of each than this many percent of the addresses.
#[track_caller]
fn check(image: &Path, debug: &Path, limits: &[(Why, f64)]) {
    let file = ImageFile::open(image).unwrap();
    let addresses = addresses(&file);
    let Some(theirs) = addr2line(debug, "-afiCe", &addresses) else {
        return skip("no addr2line");
    };
    let mangled = addr2line(debug, "-afie", &addresses).unwrap();
    let symbols = Symbols::read(debug);
    let ours = symbolize_image(&file, &addresses, &SymbolizeConfig::default());
    let mut counts: BTreeMap<Why, usize> = BTreeMap::new();
    let (mut wrong, mut examples) = (0, String::new());
    for (address, ours) in addresses.iter().zip(&ours) {
        let (ours, theirs) = (frames(ours), &theirs[&address.0]);
        let names = symbols.at(address.0);
        let whys = differences(&ours, theirs, &mangled[&address.0], &names);
        match whys {
            Some(whys) => whys.into_iter().for_each(|why| *counts.entry(why).or_default() += 1),
            None => {
                wrong += 1;
                if wrong <= 5 {
                    let _ = writeln!(examples, "{address} of {names:?}");
                    for (ours, theirs) in ours.iter().zip(theirs).filter(|(a, b)| a != b) {
                        let _ = writeln!(examples, "  {ours:?}\n  {theirs:?}");
                    }
                }
            }
        }
    }
    eprintln!("{}: {} addresses, differences: {counts:?}", image.display(), addresses.len());
    assert_eq!(wrong, 0, "{examples}");
    for (why, count) in counts {
        let limit = limits.iter().find(|(known, _)| *known == why).map_or(0.0, |(_, limit)| *limit);
        let percent = count as f64 * 100.0 / addresses.len() as f64;
        assert!(percent <= limit, "{why:?}: {percent} % of {}", image.display());
    }
}

/// Random addresses of the code, sorted; the same in each run.
fn addresses(file: &ImageFile) -> Vec<ImageAddress> {
    let text = file.section(".text").unwrap();
    let (mut state, mut addresses) = (0x2545_f491_4f6c_dd1d_u64, Vec::new());
    for _ in 0..ADDRESSES {
        // Marsaglia's xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        addresses.push(ImageAddress(text.address.0 + state % text.bytes.len() as u64));
    }
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

fn frames(answer: &Symbolized) -> Vec<Frame> {
    let Symbolized::Frames(frames) = answer else { return Vec::new() };
    let frame = |frame: &flame_symbolize::SymbolFrame| {
        let file = frame.file.as_deref().unwrap_or("??");
        (frame.name.to_string(), base_name(file), frame.line.unwrap_or(0))
    };
    frames.iter().map(frame).collect()
}

fn base_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// The answers of binutils by address.
fn addr2line(
    debug: &Path,
    flags: &str,
    addresses: &[ImageAddress],
) -> Option<BTreeMap<u64, Vec<Frame>>> {
    let questions: String = addresses.iter().map(|address| format!("{address}\n")).collect();
    let mut command = Command::new("addr2line");
    let child = command.arg(flags).arg(debug).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.ok()?;
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(questions.as_bytes()));
    let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    writer.join().unwrap().unwrap();
    let mut answers: BTreeMap<u64, Vec<Frame>> = BTreeMap::new();
    let (mut lines, mut address) = (output.lines(), 0);
    while let Some(line) = lines.next() {
        if let Some(digits) = line.strip_prefix("0x") {
            address = u64::from_str_radix(digits, 16).unwrap();
            continue;
        }
        let (file, place) = lines.next().unwrap().rsplit_once(':').unwrap();
        let place = place.split(' ').next().unwrap().parse().unwrap_or(0);
        let frame = (line.to_owned(), base_name(file), place);
        answers.entry(address).or_default().push(frame);
    }
    Some(answers)
}

/// Why two answers differ, for each frame that does; `None` when there is no good reason.
fn differences(
    ours: &[Frame],
    theirs: &[Frame],
    mangled: &[Frame],
    symbols: &[String],
) -> Option<Vec<Why>> {
    if ours.is_empty() {
        return symbols.is_empty().then(|| vec![Why::Outside]);
    }
    if ours.len() != theirs.len() || mangled.len() != ours.len() {
        return None;
    }
    let mut whys = Vec::new();
    for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        if ours.2 != theirs.2 {
            return None;
        }
        if ours.1 != theirs.1 && theirs.1 != "??" && !theirs.1.is_empty() {
            whys.push(Why::File);
        }
        if ours.0 != theirs.0 {
            let inlined = at + 1 < mangled.len();
            whys.push(why(&ours.0, &theirs.0, &mangled[at].0, inlined, symbols)?);
        }
    }
    Some(whys)
}

fn why(ours: &str, theirs: &str, mangled: &str, inlined: bool, symbols: &[String]) -> Option<Why> {
    let is_symbol = |name: &str| {
        let spellings = |symbol: &str| {
            let whole = symbol.split('.').next().unwrap_or(symbol);
            demangle(symbol) == name || demangle(whole) == name
        };
        symbols.iter().any(|symbol| symbol == name || whole(symbol) == name || spellings(symbol))
    };
    let base = theirs.split(" [clone").next().unwrap_or(theirs).split('.').next();
    if demangle(mangled) == ours {
        Some(Why::Spelling)
    } else if ours.strip_suffix(theirs).is_some_and(|scopes| scopes.ends_with("::")) {
        Some(Why::Scopes)
    } else if inlined {
        is_symbol(theirs).then_some(Why::SymbolForInlined)
    } else if is_symbol(ours) && ours.ends_with("::{{closure}}") && is_closure(theirs) {
        Some(Why::Scopes)
    } else if is_symbol(ours) && is_symbol(theirs) {
        Some(Why::Alias)
    } else if base == Some(ours) || base == ours.split('.').next() {
        Some(Why::Suffix)
    } else if is_symbol(ours) && ours.contains(theirs.split('<').next().unwrap_or(theirs)) {
        Some(Why::Scopes)
    } else {
        None
    }
}

/// Whether a name is what debug information alone calls a closure of Rust: `{closure#0}<u8>`.
fn is_closure(name: &str) -> bool {
    name.starts_with("{closure#")
}

/// The name of the function that a symbol with a suffix is a part of.
fn whole(symbol: &str) -> &str {
    symbol.split(" [clone").next().unwrap_or(symbol)
}

/// The functions of a file.
struct Symbols {
    /// First address, first address behind it and name, sorted.
    sorted: Vec<(u64, u64, String)>,
    longest: u64,
}

impl Symbols {
    fn read(path: &Path) -> Symbols {
        let mut sorted = Vec::new();
        for flags in ["-CS", "-S"] {
            let output = Command::new("nm").arg(flags).arg("--defined-only").arg(path).output();
            let output = String::from_utf8(output.unwrap().stdout).unwrap();
            sorted.extend(output.lines().filter_map(|line| {
                let mut words = line.splitn(4, ' ');
                let start = u64::from_str_radix(words.next()?, 16).ok()?;
                let len = u64::from_str_radix(words.next()?, 16).ok()?;
                let is_code = matches!(words.next()?, "T" | "t" | "W" | "w" | "i");
                let name = words.next()?.split('@').next()?.to_owned();
                (is_code && len > 0).then_some((start, start + len, name))
            }));
        }
        sorted.sort();
        let longest = sorted.iter().map(|(start, end, _)| end - start).max().unwrap_or(0);
        Symbols { sorted, longest }
    }

    /// The names, demangled and mangled, of those that have an address.
    fn at(&self, address: u64) -> Vec<String> {
        let first = address.saturating_sub(self.longest);
        let from = self.sorted.partition_point(|(start, ..)| *start < first);
        let near = self.sorted[from..].iter().take_while(|(start, ..)| *start <= address);
        near.filter(|(_, end, _)| address < *end).map(|(.., name)| name.clone()).collect()
    }
}
