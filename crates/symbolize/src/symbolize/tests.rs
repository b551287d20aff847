//! What compilers write, against what binutils read from it. Programs are built by the tests; where
//! a compiler or a tool is missing the test says so and passes.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use object::{Object, ObjectSection, ObjectSymbol};

use super::*;
use flame_image::testing::build::Workshop;

mod companions;
mod entry;
mod made;

const C_SOURCE: &str = r#"
static inline __attribute__((always_inline)) int twist(int x) {
    __asm__ volatile("nop");
    return x * 3 + 1;
}
static inline __attribute__((always_inline)) int turn(int x) {
    return twist(x) ^ 5;
}
__attribute__((noinline)) int work(int x) {
    return turn(x) + 7;
}
int main(int argc, char **argv) { return work(argc) & 0; }
"#;

const CPP_SOURCE: &str = r#"
#include <new>
namespace {
struct Point { long x; template <typename T> Point(const char *name, T t); };
template <typename T> __attribute__((noinline)) Point::Point(const char *name, T t) : x(*name + t) {}
__attribute__((noinline)) long helper(const Point *p) { return p->x; }
}
template <typename T, unsigned long N> struct Array {
    T items[N];
    __attribute__((noinline)) T *operator->() { return items; }
    template <bool B> __attribute__((noinline)) T sum() const { return items[N - 1] + B; }
};
template <typename F> __attribute__((noinline)) long call(F f) { return f(2); }
int main(int argc, char **argv) {
    Point p(argv[0], argc);
    Array<Point *, 3> points = {&p, &p, &p};
    Array<long, 2> numbers = {1, 2};
    auto add = [&](long n) __attribute__((noinline)) { return n + argc; };
    return (*points.operator->())->x + helper(&p) + numbers.sum<true>() + call(add);
}
"#;

const RUST_SOURCE: &str = r#"
mod engine {
    #[inline(always)]
    fn spin<T: Copy + Into<u64>>(turns: T) -> u64 {
        std::hint::black_box(turns.into()) * 3
    }
    #[inline(never)]
    pub fn start(turns: u32) -> u64 {
        spin(turns) + 1
    }
}
fn main() {
    std::process::exit((engine::start(std::env::args().count() as u32) == 0) as i32);
}
"#;

/// Builds a program; `None`, with a message, where that is not possible.
fn build(test: &str, command: &[&str], ending: &str, source: &str) -> Option<PathBuf> {
    let directory = std::env::temp_dir().join(format!("flame-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (file, program) = (directory.join(format!("a.{ending}")), directory.join("a.out"));
    std::fs::write(&file, source).unwrap();
    let mut compiler = Command::new(command[0]);
    compiler.args(&command[1..]).arg("-o").arg(&program).arg(&file);
    let built = compiler.status().is_ok_and(|status| status.success());
    if !built {
        eprintln!("SKIP {test}: cannot run {command:?}");
        std::fs::remove_dir_all(&directory).unwrap();
    }
    built.then_some(program)
}

fn remove(program: &Path) {
    std::fs::remove_dir_all(program.parent().unwrap()).unwrap();
}

/// What a program prints; `None`, with a message, where it is not installed.
fn run(command: &mut Command, input: &str) -> Option<String> {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        eprintln!("SKIP: cannot run {command:?}");
        return None;
    };
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    Some(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap())
}

/// The functions that nm lists with a size, as (address, size, demangled name).
fn functions(program: &Path) -> Option<Vec<(u64, u64, String)>> {
    let output = run(Command::new("nm").args(["-C", "-S", "--defined-only"]).arg(program), "")?;
    let parse = |line: &str| {
        let mut words = line.splitn(4, ' ');
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let size = u64::from_str_radix(words.next()?, 16).ok()?;
        let is_code = matches!(words.next()?, "T" | "t" | "W");
        Some((address, size, words.next()?.to_owned())).filter(|_| is_code && size > 0)
    };
    Some(output.lines().filter_map(parse).collect())
}

/// One answer as (name, line) for each frame; no frame where there is no name.
fn shape(answer: &Symbolized) -> Vec<(String, u32)> {
    let Symbolized::Frames(frames) = answer else { return Vec::new() };
    frames.iter().map(|frame| (frame.name.to_string(), frame.line.unwrap_or(0))).collect()
}

/// The same from addr2line, by address.
fn addr2line(
    program: &Path,
    addresses: &[ImageAddress],
) -> Option<BTreeMap<u64, Vec<(String, u32)>>> {
    let input: String = addresses.iter().map(|address| format!("{address}\n")).collect();
    let output = run(Command::new("addr2line").arg("-afiCe").arg(program), &input)?;
    let mut answers: BTreeMap<u64, Vec<(String, u32)>> = BTreeMap::new();
    let mut lines = output.lines();
    let mut address = 0;
    while let Some(line) = lines.next() {
        if let Some(digits) = line.strip_prefix("0x") {
            address = u64::from_str_radix(digits, 16).unwrap();
            continue;
        }
        let place = lines.next().unwrap().split(" (").next().unwrap();
        let number = place.rsplit(':').next().unwrap().parse().unwrap_or(0);
        answers.entry(address).or_default().push((line.to_owned(), number));
    }
    Some(answers)
}

fn check_against_addr2line(flags: &[&str], test: &str) {
    let command = [&["gcc", "-O2", "-g"], flags].concat();
    let Some(program) = build(test, &command, "c", C_SOURCE) else { return };
    let image = ImageFile::open(&program).unwrap();
    let Some(functions) = functions(&program) else { return remove(&program) };
    let (start, size, _) = functions.iter().find(|(_, _, name)| name == "work").unwrap();
    let addresses: Vec<ImageAddress> = (*start..start + size).map(ImageAddress).collect();
    let answers = symbolize_image(&image, &addresses, &SymbolizeConfig::default());
    let expect = addr2line(&program, &addresses);
    remove(&program);
    let Some(expect) = expect else { return };
    for (address, answer) in addresses.iter().zip(&answers) {
        assert_eq!(shape(answer), expect[&address.0], "{address}");
    }
    let inlined = [("twist", 3), ("turn", 7), ("work", 10)];
    let inlined = inlined.map(|(name, line)| (name.to_owned(), line));
    let deepest = answers.iter().find(|answer| shape(answer) == inlined);
    let Some(Symbolized::Frames(frames)) = deepest else { panic!("twist was not inlined") };
    assert_eq!(frames.iter().map(|frame| frame.inlined).collect::<Vec<_>>(), [true, true, false]);
    assert!(frames.iter().all(|frame| frame.file.as_ref().unwrap().ends_with("a.c")));
}

#[test]
fn inlined_frames_are_those_of_addr2line() {
    check_against_addr2line(&["-gdwarf-5"], "dwarf5");
    check_against_addr2line(&["-gdwarf-4"], "dwarf4");
}

#[test]
fn the_plainest_alias_is_preferred_to_the_name_in_debug_information() {
    let source = "__attribute__((noinline)) int __internal_work(int x) { return x * 3; }\n\
        int work(int) __attribute__((alias(\"__internal_work\")));\n\
        int main(int argc, char **argv) { return work(argc); }";
    let Some(program) = build("alias", &["gcc", "-O1", "-g"], "c", source) else { return };
    let image = ImageFile::open(&program).unwrap();
    let functions = functions(&program);
    remove(&program);
    let Some(functions) = functions else { return };
    let (start, _, _) = functions.iter().find(|(_, _, name)| name == "work").unwrap();
    let answers = symbolize_image(&image, &[ImageAddress(*start)], &SymbolizeConfig::default());
    assert_eq!(shape(&answers[0]), [("work".to_owned(), 1)]);
}

#[test]
fn compressed_debug_information_is_read() {
    check_against_addr2line(&["-gz=zlib"], "zlib");
}

#[test]
fn cpp_names_are_those_of_nm() {
    for flags in [&["g++", "-O1"][..], &["g++", "-O1", "-g"]] {
        let Some(program) = build(&format!("cpp{}", flags.len()), flags, "cpp", CPP_SOURCE) else {
            return;
        };
        let image = ImageFile::open(&program).unwrap();
        let functions = functions(&program);
        remove(&program);
        let Some(mut functions) = functions else { return };
        functions.sort();
        functions.dedup_by_key(|(address, _, _)| *address);
        assert!(functions.len() >= 7, "{functions:?}");
        let addresses: Vec<_> =
            functions.iter().map(|(address, _, _)| ImageAddress(*address)).collect();
        let answers = symbolize_image(&image, &addresses, &SymbolizeConfig::default());
        for (answer, (_, _, name)) in answers.iter().zip(&functions) {
            let frames = shape(answer);
            assert_eq!(frames.last().map(|(name, _)| name), Some(name));
        }
    }
}

#[test]
fn rust_names_have_no_hash_in_either_mangling() {
    let default = ["rustc", "-g", "-Copt-level=2"];
    let v0 = [&default[..], &["-Csymbol-mangling-version=v0"]].concat();
    for (mangling, flags) in [("default", &default[..]), ("v0", &v0)] {
        let Some(program) = build(&format!("rust-{mangling}"), flags, "rs", RUST_SOURCE) else {
            return;
        };
        let image = ImageFile::open(&program).unwrap();
        let functions = functions(&program);
        remove(&program);
        let Some(functions) = functions else { return };
        let is_start = |name: &str| name.starts_with("a::engine::start");
        let (start, size, _) = functions.iter().find(|(_, _, name)| is_start(name)).unwrap();
        let addresses: Vec<ImageAddress> = (*start..start + size).map(ImageAddress).collect();
        let answers = symbolize_image(&image, &addresses, &SymbolizeConfig::default());
        let frames: Vec<_> = answers.iter().map(shape).collect();
        assert!(frames.iter().all(|frames| frames.last().unwrap().0 == "a::engine::start"));
        let has_spin = frames.iter().flatten().find(|(name, _)| name.contains("spin")).unwrap();
        let spin = ["a::engine::spin", "a::engine::spin::<u32>"];
        assert!(spin.contains(&&*has_spin.0), "{has_spin:?}");
    }
}

#[test]
fn stubs_have_the_names_of_objdump() {
    let source = "#include <stdio.h>\n#include <stdlib.h>\n\
        int main(int argc, char **argv) { puts(argv[0]); return atoi(argv[0]) + rand(); }";
    for (test, flag) in
        [("plt-lazy", "-Wl,-z,lazy"), ("plt-now", "-Wl,-z,now"), ("plt-ibt", "-fcf-protection")]
    {
        let Some(program) = build(test, &["gcc", "-O1", flag], "c", source) else { return };
        let listing = run(Command::new("objdump").arg("-d").arg(&program), "");
        let image = ImageFile::open(&program).unwrap();
        remove(&program);
        let Some(listing) = listing else { return };
        let mut stubs = 0;
        for line in listing.lines().filter(|line| line.ends_with("@plt>:")) {
            let (address, name) = line.split_once(" <").unwrap();
            let address = u64::from_str_radix(address, 16).unwrap();
            let questions = [address, address + 5].map(ImageAddress);
            let name = name.strip_suffix(">:").unwrap();
            for answer in symbolize_image(&image, &questions, &SymbolizeConfig::default()) {
                assert_eq!(shape(&answer), [(name.to_owned(), 0)], "{test}");
            }
            stubs += 1;
        }
        assert!(stubs >= 3, "{listing}");
    }
}

#[test]
fn stubs_of_functions_that_are_chosen_when_loaded_have_their_names() {
    let source = "static int once(int x) { return x * 2; }\n\
        static int (*choose(void))(int) { return once; }\n\
        int __twice(int x) __attribute__((ifunc(\"choose\")));\n\
        extern int twice(int) __attribute__((alias(\"__twice\")));\n\
        extern int also(int) __attribute__((weak, alias(\"__twice\")));\n\
        extern int own(int) __attribute__((visibility(\"hidden\"), alias(\"__twice\")));\n\
        int work(int x) { return own(x) + 1; }";
    let flags = ["gcc", "-O1", "-shared", "-fPIC"];
    let Some(library) = build("plt-ifunc", &flags, "c", source) else { return };
    let stripped = Command::new("strip").arg(&library).status();
    let listing = run(Command::new("objdump").arg("-d").arg(&library), "");
    let image = ImageFile::open(&library).unwrap();
    remove(&library);
    let (Some(listing), Ok(_)) = (listing, stripped) else { return };
    let stubs =
        listing.lines().filter(|line| line.contains("*ABS*+0x") && line.ends_with("@plt>:"));
    let addresses: Vec<ImageAddress> = stubs
        .map(|line| u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap())
        .map(ImageAddress)
        .collect();
    let answers = symbolize_image(&image, &addresses, &SymbolizeConfig::default());
    let names: Vec<_> = answers.iter().map(shape).collect();
    assert_eq!(names, [[("twice@plt".to_owned(), 0)]], "{listing}");
}

#[test]
fn what_was_stripped_is_found_beside_the_image() {
    let command = ["gcc", "-O2", "-g", "-Wl,--build-id=sha1"];
    let Some(program) = build("stripped", &command, "c", C_SOURCE) else { return };
    let debug = program.with_file_name("a.debug");
    let objcopy = |arguments: &[&str], files: &[&Path]| {
        Command::new("objcopy").args(arguments).args(files).status().is_ok_and(|s| s.success())
    };
    let whole = ImageFile::open(&program).unwrap();
    let Some(functions) = functions(&program) else { return remove(&program) };
    let link = format!("--add-gnu-debuglink={}", debug.display());
    // The tool writes a new file, so that what is mapped above stays.
    let stripped_program = program.with_file_name("stripped");
    let is_stripped = objcopy(&["--only-keep-debug"], &[&program, &debug])
        && objcopy(&["--strip-all", &link], &[&program, &stripped_program]);
    if !is_stripped {
        eprintln!("SKIP: cannot run objcopy");
        return remove(&program);
    }
    // Code that is there tells of all but `work`; only x86-64's is understood.
    let lost = |name: &str| name == "work" || !cfg!(target_arch = "x86_64");
    let addresses: Vec<_> = functions.iter().map(|(start, _, _)| ImageAddress(*start)).collect();
    let config = SymbolizeConfig::default();
    let expect = symbolize_image(&whole, &addresses, &config);
    let stripped = ImageFile::open(&stripped_program).unwrap();
    let found = symbolize_image(&stripped, &addresses, &config);
    std::fs::rename(&debug, program.with_file_name("elsewhere")).unwrap();
    let bare = ImageFile::open(&stripped_program).unwrap();
    let missing = symbolize_image(&bare, &addresses, &config);
    // A program of another build is not believed.
    std::fs::copy("/proc/self/exe", &debug).unwrap();
    let foreign =
        symbolize_image(&ImageFile::open(&stripped_program).unwrap(), &addresses, &config);
    remove(&program);
    assert_eq!(found, expect);
    assert_eq!(missing, foreign);
    for (answer, (_, _, name)) in missing.iter().zip(&functions) {
        match lost(name) {
            true => assert_eq!(*answer, Symbolized::Unknown(Missing::Stripped)),
            false => assert_eq!(shape(answer), [(name.clone(), 0)]),
        }
    }
    assert!(functions.iter().any(|(_, _, name)| name == "work"));
}

#[test]
fn inlined_frames_and_lines_can_be_left_out() {
    let Some(program) = build("options", &["gcc", "-O2", "-g"], "c", C_SOURCE) else { return };
    let image = ImageFile::open(&program).unwrap();
    let work = functions(&program);
    remove(&program);
    let Some(work) = work else { return };
    let (start, size, _) = work.iter().find(|(_, _, name)| name == "work").unwrap();
    let addresses: Vec<ImageAddress> = (*start..start + size).map(ImageAddress).collect();
    let config = SymbolizeConfig { inlined: false, lines: false, ..SymbolizeConfig::default() };
    for answer in symbolize_image(&image, &addresses, &config) {
        assert_eq!(shape(&answer), [("work".to_owned(), 0)]);
    }
}

#[test]
fn damaged_debug_information_ends_no_process() {
    let Some(program) = build("damage", &["gcc", "-O2", "-g"], "c", C_SOURCE) else { return };
    let bytes = std::fs::read(&program).unwrap();
    let image = ImageFile::open(&program).unwrap();
    let work = functions(&program);
    remove(&program);
    let Some(work) = work else { return };
    let addresses: Vec<_> = work.iter().map(|(start, _, _)| ImageAddress(*start + 1)).collect();
    let elf = image.elf().unwrap();
    let (mut asked, mut renamed) = (0, 0);
    for name in [".debug_info", ".debug_abbrev", ".debug_line", ".debug_aranges", ".debug_rnglists"]
    {
        let Some((offset, len)) = elf.section_by_name(name).and_then(|s| s.file_range()) else {
            continue;
        };
        for at in offset..offset + len {
            let mut bytes = bytes.clone();
            bytes[at as usize] ^= 0xff;
            let image = ImageFile::from_bytes(bytes).unwrap();
            let answers = symbolize_image(&image, &addresses, &SymbolizeConfig::default());
            assert_eq!(answers.len(), addresses.len());
            // Symbols are not damaged, and name what debug information no longer does.
            for (answer, (_, _, function)) in answers.iter().zip(&work) {
                let (name_found, _) = shape(answer).pop().expect("there is a symbol");
                asked += 1;
                renamed += usize::from(name_found != *function);
                assert!(name_found == *function || name == ".debug_info", "{name} at {at}");
            }
        }
    }
    // The bytes that say where the name of a function stands.
    assert!(asked > 1000 && renamed * 100 <= asked, "{renamed} of {asked}");
}

/// Two methods of one name, of which debug information with lines only says no more than `go`.
const TRAIT_SOURCE: &str = r#"
#![no_main]
trait T { fn go(&self, x: u64) -> u64; }
struct A(u64);
struct B(u64);
impl T for A { #[inline(never)] fn go(&self, x: u64) -> u64 { x.rotate_left(3) ^ self.0 } }
impl T for B { #[inline(never)] fn go(&self, x: u64) -> u64 { x.rotate_left(5) + self.0 } }
#[unsafe(no_mangle)]
pub extern "C" fn main(count: i32) -> i32 {
    let both: [&dyn T; 2] = [&A(7), &B(9)];
    let both = std::hint::black_box(both);
    both.iter().map(|t| t.go(count as u64)).sum::<u64>() as i32
}
"#;

#[test]
fn methods_of_one_name_are_told_apart_where_there_are_lines_only() {
    let shop = Workshop::new("scopes");
    shop.write("rr.rs", TRAIT_SOURCE);
    let command = "rustc --edition 2024 -Copt-level=2 -Cdebuginfo=line-tables-only -o rr rr.rs";
    if !shop.run_all(command) {
        return;
    }
    let image = ImageFile::open(&shop.path("rr")).unwrap();
    let file = std::fs::read(shop.path("rr")).unwrap();
    let elf = object::File::parse(&*file).unwrap();
    let mut names: Vec<String> = elf
        .symbols()
        .filter(|symbol| symbol.name().is_ok_and(|name| name.contains("2go17h")))
        .flat_map(|symbol| crate::test_frames::frames(&image, ImageAddress(symbol.address())))
        .collect();
    names.sort();
    assert_eq!(names, ["<rr::A as rr::T>::go", "<rr::B as rr::T>::go"]);
}
