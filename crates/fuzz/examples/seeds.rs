//! `seeds DIRECTORY`: writes small valid inputs of every target, in a directory for each.

use std::fs;
use std::io::{Error, Read, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

use flame_fuzz::join;
use flame_image::ImageFile;
use flame_pclntab::testing::{Sample, TEXT, sample_table};
use flame_profile::{FrameKind, Location, Pid, Profile, StackId, Tid, ValueType};
use flate2::read::GzDecoder;

/// The largest program that is worth mutating, in bytes.
const MAX_PROGRAM: usize = 100_000;

/// A program with inlined functions, a loop and a frame of variable size.
const SOURCE: &str = "\
static inline __attribute__((always_inline)) int twice(int n) { return n + n; }
__attribute__((noinline)) int sum(int n) { int s = 0; while (n) s += twice(n--); return s; }
int main(int argc, char **argv) { volatile int a[argc]; a[0] = sum(argc); return a[0]; }
void _start(void) { main(1, 0); for (;;) {} }
";

const MAPS: &[u8] = b"\
55d200000000-55d200021000 r-xp 00001000 08:01 1234567   /usr/bin/a b\\012c (deleted)
7f3a10000000-7f3a10400000 rwxp 00000000 00:00 0
7ffd7a1f2000-7ffd7a1f4000 r-xp 00000000 00:00 0          [vdso]
";

const PERF_MAP: &[u8] = b"\
7f3a10000000 40 Interpreter
0x7f3a10000040 80 LFib;::fib
7f3a10000020 40 later one wins
";

const FOLDED: &[u8] = b"\
\x10server;main;parse 600\r
server;main;read;sys_read_[k] 1.5e2
# a comment 12
  <[u8; 8] as x>::y;\xff\xfe;;z\t7
redis 7 12
nonsense
";

const FOLDED_TWO: &[u8] = b"\x10a;b 5 7\na;c 10 0\na 0 1\n";

const KALLSYMS: &[u8] = b"\
ffffffff81000000 T _stext
ffffffff81000040 t do_idle
ffffffff81000040 T do_idle_alias
ffffffffc0000000 t ext4_read\t[ext4]
ffffffffc0010000 t bpf_prog_6deef7357e7b4530_x\t[bpf]
ffffffff82000000 D data
";

const NAMES: &[&[u8]] = &[
    b"_ZNSt6vectorIiSaIiEE9push_backERKi",
    b"_ZZN4main4loop17h0123456789abcdefEvENKUlT_E_clIiEEDaS0_",
    b"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.llvm.42",
    b"_RNvMs0_NtCs1234_7mycrate3fooINtB5_3BarpE3baz",
];

fn main() -> Result<()> {
    let directory = std::env::args_os().nth(1).map(PathBuf::from);
    let directory = directory.ok_or_else(|| Error::other("usage: seeds DIRECTORY"))?;
    write(&directory)
}

fn write(directory: &Path) -> Result<()> {
    save(directory, "maps", "hand-made", MAPS)?;
    save(directory, "perf_map", "hand-made", PERF_MAP)?;
    save(directory, "jitdump", "hand-made", &jitdump())?;
    let lua = |minor: u8, release: u8| (release << 3 | minor) << 2 | 3;
    for (name, number) in [
        ("python", 11 << 2),
        ("perl", 36 << 2 | 1),
        ("perl-plain", 36 << 2 | 2),
        ("lua-5.1", lua(1, 5)),
        ("lua-5.2", lua(2, 4)),
        ("lua-5.3", lua(3, 6)),
        ("lua-5.4", lua(4, 4)),
        ("php", 13 << 2 | 3),
    ] {
        save(directory, "interpreters", name, &interpreter(number))?;
    }
    for version in [17, 21] {
        save(directory, "hotspot", &format!("version-{version}"), &[version, 0, 0, 9, 0, 4, 1])?;
    }
    for layout in Sample::ALL {
        let sample = sample_table(layout);
        let trees = [&sample.inlined.base.to_le_bytes()[..], &sample.inlined.bytes].concat();
        save(directory, "pclntab", &format!("{layout:?}"), &join(&[&sample.bytes, &trees]))?;
        save(directory, "unwind", &format!("{layout:?}"), &go_stack(&sample.bytes))?;
    }
    save(directory, "folded", "one", FOLDED)?;
    save(directory, "folded", "two", FOLDED_TWO)?;
    formats(directory)?;
    save(directory, "kallsyms", "hand-made", KALLSYMS)?;
    for (number, name) in NAMES.iter().enumerate() {
        save(directory, "demangle", &format!("name-{number}"), name)?;
    }
    save(directory, "records", "hand-made", &records())?;
    save(directory, "perf_data", "stream", &perf_data())?;
    save(directory, "pprof", "raw", &pprof()?)?;
    for (name, input) in uboot() {
        save(directory, "uboot", name, &input)?;
    }
    let program = directory.join("program");
    for (name, flags) in [("plain", "-O1"), ("packed", "-gz"), ("debug-frame", "-O2")] {
        let elf = compile(&program, flags)?;
        save(directory, "elf", name, &elf)?;
        save(directory, "unwind", name, &sections(elf))?;
    }
    // Old tools cannot pack sections that way.
    let options = ["--compress-debug-sections=zstd", "program", "zstd"];
    if run(directory, "objcopy", &options).is_ok() {
        save(directory, "elf", "packed-zstd", &fs::read(directory.join("zstd"))?)?;
    }
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        save(directory, "debug_files", &format!("split{version}"), &split(directory, version)?)?;
    }
    save(directory, "debug_files", "mini", &with_mini_symbols(directory)?)?;
    match fs::read("/bin/true") {
        Ok(bytes) if bytes.len() <= MAX_PROGRAM => {
            save(directory, "elf", "true", &bytes)?;
            save(directory, "unwind", "true", &sections(bytes))
        }
        _ => Ok(()),
    }
}

/// The samples of all formats, each behind the number of its format.
fn formats(directory: &Path) -> Result<()> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/samples");
    for (number, format) in flame_formats::FORMATS.iter().enumerate() {
        let Ok(entries) = fs::read_dir(samples.join(format.name)) else { continue };
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == "in") {
                let bytes = [&[number as u8][..], &fs::read(&path)?].concat();
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                save(directory, "formats", &format!("{}-{name}", format.name), &bytes)?;
            }
        }
    }
    Ok(())
}

/// A stack in `runtime.systemstack` of the sample of a program of Go, called by `main.outer`.
fn go_stack(table: &[u8]) -> Vec<u8> {
    let bytes = |words: &[u64]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
    let mut code = vec![0x90; 0x80];
    code[0x20..0x25].copy_from_slice(&[0xe8, 0x4b, 0, 0, 0]);
    let text = [bytes(&[TEXT]), code].concat();
    let sp = 0x7ffc_0000;
    // ax to di, bp, sp and ip.
    let registers = bytes(&[0, 0, 0, 0, 0, 0, sp + 40, sp, TEXT + 0x75]);
    let stack = bytes(&[7, 7, TEXT + 0x25, 1, 2, 0, TEXT + 0x61, 0]);
    join(&[&[0], &[], &[], &[], &text, &registers, &stack, &[], table])
}

/// Traces of U-Boot with their map and rules: of the current version, and an old big-endian one.
fn uboot() -> [(&'static str, Vec<u8>); 2] {
    const MAP: &[u8] = b"80000000 T _start\n80000040 T do_trace\n80000080 t puts\n";
    const RULES: &[u8] = b"exclude-func \\(put\\)[a-s]\\{1,2\\}$\n";
    let entry = 1 << 30;
    let records: [u32; 15] =
        [0x40, 0, 7, 0x80, 0x10, entry | 8, 0x40, 0x80, entry | 9, 0x40, 0x80, 99, 0x80, 0x10, 100];
    let header = [1, 1, 5, 0, 0x8000_0000, 0, 0, 0];
    let list = [0, 1, 1, 0, 0, 0, 0, 0, 0x80, 3];
    let current: Vec<u8> =
        list.iter().chain(&header).chain(&records).flat_map(|word| word.to_le_bytes()).collect();
    let old = [1, 6, 0, 0, 1 << 31];
    let old: Vec<u8> = old.iter().chain(&records).flat_map(|word| word.to_be_bytes()).collect();
    [("current", join(&[&current, MAP, RULES])), ("old", join(&[&old, MAP, RULES]))]
}

fn save(directory: &Path, target: &str, name: &str, bytes: &[u8]) -> Result<()> {
    let directory = directory.join(target);
    fs::create_dir_all(&directory)?;
    fs::write(directory.join(name), bytes)
}

/// A program without libc, a few kilobytes, with debug information and both tables of frames.
fn compile(program: &Path, flags: &str) -> Result<Vec<u8>> {
    let source = program.with_extension("c");
    fs::write(&source, SOURCE)?;
    let mut gcc = Command::new("gcc");
    gcc.args(["-g", "-nostdlib", "-static", "-Wl,--eh-frame-hdr", "-Wl,-z,noseparate-code"]);
    if flags == "-O2" {
        gcc.arg("-fno-asynchronous-unwind-tables");
    }
    let output = gcc.arg(flags).arg("-o").arg(program).arg(&source).output()?;
    if !output.status.success() {
        return Err(Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    fs::read(program)
}

/// The parts of the target `debug_files`: a program with split debug information and its unit, and,
/// where binutils have a tool that can, the unit once more in a package.
fn split(directory: &Path, version: &str) -> Result<Vec<u8>> {
    fs::write(directory.join("a.c"), SOURCE)?;
    let flags = ["-g", "-O1", "-gsplit-dwarf", version, "-c", "a.c"];
    run(directory, "gcc", &flags)?;
    let flags = ["-nostdlib", "-static", "-Wl,-z,noseparate-code", "-o", "prog", "a.o"];
    run(directory, "gcc", &flags)?;
    // The packer of binutils 2.40 knows DWARF 4 only.
    let package = match version == "-gdwarf-4" && run(directory, "dwp", &["-e", "prog"]).is_ok() {
        true => fs::read(directory.join("prog.dwp"))?,
        false => Vec::new(),
    };
    let (program, unit) = (fs::read(directory.join("prog"))?, fs::read(directory.join("a.dwo"))?);
    Ok(join(&[&program, &package, &unit]))
}

/// The same for a program with compressed symbols within it.
fn with_mini_symbols(directory: &Path) -> Result<Vec<u8>> {
    compile(&directory.join("program"), "-O1")?;
    run(directory, "objcopy", &["--strip-debug", "program", "mini"])?;
    run(directory, "xz", &["-f", "mini"])?;
    run(directory, "strip", &["program", "-o", "prog"])?;
    run(directory, "objcopy", &["--add-section=.gnu_debugdata=mini.xz", "prog"])?;
    Ok(join(&[&fs::read(directory.join("prog"))?]))
}

fn run(directory: &Path, program: &str, arguments: &[&str]) -> Result<()> {
    let output = Command::new(program).args(arguments).current_dir(directory).output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

/// The parts of the target `unwind`: four sections, registers and a stack full of code addresses.
fn sections(elf: Vec<u8>) -> Vec<u8> {
    let Ok(image) = ImageFile::from_bytes(elf) else {
        return Vec::new();
    };
    let mut parts = vec![vec![0]];
    for name in [".eh_frame_hdr", ".eh_frame", ".debug_frame", ".text"] {
        let section = image.section(name);
        let address = section.as_ref().map_or(0, |section| section.address.0);
        let mut part = address.to_le_bytes().to_vec();
        part.extend(section.iter().flat_map(|section| section.bytes.iter()));
        parts.push(part);
    }
    let text = image.section(".text").map_or(0, |section| section.address.0);
    let registers = (0..18).map(|number| match number {
        6 | 7 => 0x7ffc_0000,
        8 => text + 8,
        other => other,
    });
    parts.push(registers.flat_map(u64::to_le_bytes).collect());
    let stack = (0..32).map(|number| if number % 2 == 0 { 0x7ffc_0080 } else { text + number });
    parts.push(stack.flat_map(u64::to_le_bytes).collect());
    join(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// An interpreter of that number, whose memory leads from one place of it to another.
fn interpreter(number: u8) -> Vec<u8> {
    let places = (0..64_u64).flat_map(|index| (0x1000 + index * 56 % 512).to_le_bytes());
    [number, 12, 0b1001].into_iter().chain(places).collect()
}

/// A jitdump with source lines, two pieces of code, one of which is moved, and a close.
fn jitdump() -> Vec<u8> {
    let machine: u32 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    let mut dump = b"DTiJ".to_vec();
    dump.extend([1, 40, machine, 0, 4242, 0, 0, 0, 0].iter().flat_map(|word| word.to_le_bytes()));
    let mut record = |id: u32, time: u64, values: &[u64], rest: &[u8]| {
        let len = (16 + 8 * values.len() + rest.len()) as u32;
        dump.extend([id, len].iter().flat_map(|word| word.to_le_bytes()));
        dump.extend([time].iter().chain(values).flat_map(|word| word.to_le_bytes()));
        dump.extend_from_slice(rest);
    };
    let ids = 4242 | 4243 << 32;
    record(2, 1, &[0x1000, 2, 0x1000, 7], b"a.js\0\x08\x10\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\xff\0");
    record(0, 2, &[ids, 0x1000, 0x1000, 16, 1], b"JS:*fib a.js:7:1\0----------------");
    record(0, 3, &[ids, 0x2000, 0x2000, 16, 2], b"Builtin:Call\0----------------");
    record(1, 4, &[ids, 0x3000, 0x1000, 0x3000, 16, 1], b"");
    record(3, 5, &[], b"");
    dump
}

/// The parts of the target `records`: the layout, then records with type, misc and body.
fn records() -> Vec<u8> {
    let record = |record_type: u8, values: &[u64], rest: &[u8], trailer: &[u64]| {
        let mut record = vec![record_type, 0, 0, 4];
        record.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        record.extend_from_slice(rest);
        record.extend(trailer.iter().flat_map(|value| value.to_le_bytes()));
        record
    };
    let ids = 42 | 43 << 32;
    let trailer = [ids, 1_000, 1, 7];
    let context = |number: i64| number as u64;
    let sample = [7, 0x40_1000, ids, 2_000, 1, 10_101, 4, context(-128), 0xffff_0001]
        .into_iter()
        .chain([context(-512), 0x40_1000, 2, 0x7ffe_0000, 0x40_1000, 16, 1, 2, 16]);
    let sample: Vec<u64> = sample.collect();
    join(&[
        &[3],
        &record(10, &[ids, 0x40_0000, 0x2000, 0, 8, 99, 1, 5], b"/bin/a\0\0", &trailer),
        &record(3, &[ids], b"server\0\0", &trailer),
        &record(7, &[ids, ids, 1_000], b"", &trailer),
        &record(9, &sample, b"", &[]),
        &record(2, &[7, 12], b"", &trailer),
        &record(4, &[ids, ids, 3_000], b"", &trailer),
    ])
}

/// What `perf record -o -` writes: two events, two samples of a process, a round, and AUX data.
fn perf_data() -> Vec<u8> {
    let record = |kind: u32, parts: &[&[u64]], rest: &[u8]| {
        let len = 8 + rest.len() + 8 * parts.iter().map(|part| part.len()).sum::<usize>();
        let mut record = (u64::from(kind) | (len as u64) << 48).to_le_bytes().to_vec();
        record.extend(parts.iter().flat_map(|p| p.iter()).flat_map(|word| word.to_le_bytes()));
        record.extend_from_slice(rest);
        record
    };
    // Software events with IP, TID, TIME, CALLCHAIN, ID and PERIOD, and all records with ids.
    let attributes = |config: u64| [1 | 64 << 32, config, 1000, 0x167, 0, 1 << 18, 0, 0];
    let (ids, context) = (42 | 43 << 32, -512_i64 as u64);
    let chain = [7, 3, context, 0x40_1000, 0x40_2000];
    let sample = |id, time| record(9, &[&[0x40_1000, ids, time, id], &chain], b"");
    let mut file = b"PERFILE2".to_vec();
    file.extend(16_u64.to_le_bytes());
    file.extend(record(64, &[&attributes(0), &[1]], b""));
    file.extend(record(64, &[&attributes(2), &[2]], b""));
    file.extend(record(80, &[&[3]], b"\x08\0\0\0machine\0\0\0\0\0"));
    file.extend(record(10, &[&[ids, 0x40_0000, 0x4000, 0, 8, 99, 1, 5]], b"/bin/a\0\0"));
    file.extend(sample(1, 50));
    file.extend(sample(1, 40));
    file.extend(record(68, &[], b""));
    file.extend(sample(2, 45));
    file.extend(record(71, &[&[16, 0, 0, 0, 0]], b""));
    file.extend([0; 16]);
    file.extend(record(68, &[], b""));
    file
}

/// A profile as pprof, not compressed, so that mutations reach what is read.
fn pprof() -> Result<Vec<u8>> {
    let mut profile = Profile::new(vec![ValueType::samples()]);
    let main = profile.add_frame("main", FrameKind::User);
    let read = profile.add_frame("vfs_read", FrameKind::Kernel);
    let outer = profile.add_location(Location::named(main));
    let inner = profile.add_location(Location::named(read));
    let stack = profile.push_stack(StackId::EMPTY, outer);
    let stack = profile.push_stack(stack, inner);
    let thread = profile.add_thread("server", Pid(4242), Tid(4243));
    profile.add_sample(thread, stack, &[7]);
    let mut packed = Vec::new();
    flame_formats::write_pprof(&profile, &mut packed)?;
    let mut raw = Vec::new();
    GzDecoder::new(packed.as_slice()).read_to_end(&mut raw)?;
    Ok(raw)
}
