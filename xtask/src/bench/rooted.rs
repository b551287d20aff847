//! How many samples of a recording reach the root of their thread, by one rule for all profilers.
//!
//! A stack is rooted when its outermost frame is the first code of a program (`_start`, by name or
//! as what the ELF header names as the entry point, since stripped programs have no names), of a
//! thread (`clone3`, `start_thread`) or of a kernel thread; or when it is the kernel's alone and a
//! task has no user stack at that time, which is so in `execve` and `exit`. Thread roots of a
//! library without names are not recognised: the compiler that is recorded has one thread.
//!
//! perf 6.1 with DWARF ends nearly every stack of some recordings in `__libc_start_call_main`, two
//! frames short of `_start`, and none of others; the same recording always gives the same. Its
//! number near zero is one of those: it is what a user gets, but repeat it before quoting it.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::profiler::Profiler;

/// Names of outermost functions.
const ROOTS: &[&str] = &[
    "_start",
    "_dl_start",
    "_dl_start_user",
    "clone",
    "__clone",
    "clone3",
    "__clone3",
    "start_thread",
    "ret_from_fork",
    "ret_from_fork_asm",
];

/// What a kernel stack without user frames passes through when the task has no user stack.
const NO_USER_STACK: &[&str] = &["execve", "do_exit", "exit_group", "ret_from_fork"];

/// How far from the entry point an address within `_start` is: nothing where frames are shown by
/// their function's start; else the return address of its call, on x86-64 (without and with
/// endbr64) and on aarch64, or one less, as some profilers look it up.
const START_CALL: [u64; 7] = [0, 0x20, 0x21, 0x24, 0x25, 0x30, 0x34];

/// Position-independent programs are mapped above this address; their places in a page stay.
const PIE_BASE: u64 = 0x5000_0000_0000;
const PAGE_MASK: u64 = 0xfff;

/// Samples in a recording, and those that are rooted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rooted {
    pub(crate) samples: u64,
    pub(crate) rooted: u64,
}

impl Rooted {
    /// The share in percent; `None` of no samples.
    pub(crate) fn percent(self) -> Option<f64> {
        (self.samples > 0).then(|| self.rooted as f64 * 100.0 / self.samples as f64)
    }

    fn add(&mut self, rooted: bool, weight: u64) {
        self.samples += weight;
        self.rooted += if rooted { weight } else { 0 };
    }
}

/// Reads what a profiler wrote about a compilation.
pub(crate) fn count(profiler: &Profiler, directory: &Path) -> Result<Rooted> {
    let output = profiler.output(directory);
    let mut entries = Entries::of_compiler();
    match profiler {
        Profiler::Flame(_) => {
            let text = fs::read_to_string(&output).with_context(|| output.display().to_string())?;
            Ok(flame(&text, &mut entries))
        }
        Profiler::Perf(perf, _) => {
            let mut command = Command::new(perf);
            command.args(["script", "--no-inline", "-F", "comm,ip,sym,dso", "-i"]).arg(&output);
            Ok(perf_script(&stdout(&mut command)?, &mut entries))
        }
        Profiler::Samply(_) => {
            let json = stdout(Command::new("gzip").arg("-dc").arg(&output))?;
            let profile = serde_json::from_str(&json).context("samply's JSON")?;
            samply(&profile, &mut entries).context("samply's profile has another shape")
        }
    }
}

pub(super) fn stdout(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Where a program's code starts: the entry point, and the address that its file is stated for
/// (0 for position-independent ones).
#[derive(Clone, Copy, Debug)]
struct Entry {
    point: u64,
    base: u64,
}

/// Entries of ELF files, by path or file name.
#[derive(Debug, Default)]
struct Entries(HashMap<String, Option<Entry>>);

impl Entries {
    /// With the programs that gcc runs, since flame names images without their directory.
    fn of_compiler() -> Entries {
        let mut entries = Entries::default();
        for program in ["cc1", "as", "collect2", "gcc"] {
            let path = stdout(Command::new("gcc").arg(format!("-print-prog-name={program}")));
            let path = path.unwrap_or_default();
            for path in [Path::new(path.trim()), &Path::new("/usr/bin").join(program)] {
                if let Ok(path) = fs::canonicalize(path) {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    entries.0.insert(name.into_owned(), entry(&path));
                }
            }
        }
        entries
    }

    /// Whether an address, stated, relative to the image or in the process, is the call in `_start`.
    fn is_start(&mut self, image: &str, address: u64) -> bool {
        let read = || entry(&PathBuf::from(image));
        let Some(entry) = *self.0.entry(image.to_owned()).or_insert_with(read) else {
            return false;
        };
        START_CALL.iter().map(|distance| entry.point + distance).any(|call| {
            let mapped = address >= PIE_BASE && (address ^ call) & PAGE_MASK == 0;
            address == call || address == call - entry.base || mapped
        })
    }
}

/// The entry of a 64-bit little-endian ELF file.
fn entry(path: &Path) -> Option<Entry> {
    let bytes = fs::read(path).ok()?;
    bytes.strip_prefix(b"\x7fELF\x02\x01")?;
    let point = u64::from_le_bytes(bytes.get(24..32)?.try_into().ok()?);
    let kind = u16::from_le_bytes(bytes.get(16..18)?.try_into().ok()?);
    // ET_EXEC programs are linked for this address on x86-64 and aarch64.
    let base = if kind == 2 { 0x40_0000 } else { 0 };
    Some(Entry { point, base })
}

pub(super) fn is_root_name(name: &str) -> bool {
    ROOTS.contains(&name.split('@').next().unwrap_or(name))
}

pub(super) fn has_no_user_stack<'a>(mut kernel_names: impl Iterator<Item = &'a str>) -> bool {
    kernel_names.any(|name| NO_USER_STACK.iter().any(|part| name.contains(part)))
}

fn flame(folded: &str, entries: &mut Entries) -> Rooted {
    let mut count = Rooted::default();
    for (path, weight) in folded.lines().filter_map(|line| line.rsplit_once(' ')) {
        let mut frames = path.split(';').skip(1);
        let outermost = frames.next().unwrap_or_default();
        let rooted = if outermost.ends_with("_[k]") {
            has_no_user_stack(path.split(';').skip(1))
        } else if let Some((image, address)) = unnamed(outermost) {
            entries.is_start(image, address)
        } else {
            is_root_name(outermost)
        };
        count.add(rooted, weight.parse().unwrap_or(0));
    }
    count
}

/// `[image+0xoffset]` in its parts.
fn unnamed(frame: &str) -> Option<(&str, u64)> {
    let (image, address) = frame.strip_prefix('[')?.strip_suffix(']')?.split_once("+0x")?;
    Some((image, u64::from_str_radix(address, 16).ok()?))
}

/// `perf script -F comm,ip,sym,dso`: a line with the name, then a line a frame, innermost first,
/// then an empty line.
fn perf_script(text: &str, entries: &mut Entries) -> Rooted {
    let mut count = Rooted::default();
    for sample in text.split("\n\n").filter(|sample| !sample.trim().is_empty()) {
        let frames: Vec<(u64, &str, &str)> = sample.lines().filter_map(perf_frame).collect();
        let rooted = frames.last().is_some_and(|(address, name, image)| {
            if image.starts_with("[kernel") || image.starts_with("[guest") {
                has_no_user_stack(frames.iter().map(|frame| frame.1))
            } else {
                is_root_name(name) || entries.is_start(image, *address)
            }
        });
        count.add(rooted, 1);
    }
    count
}

/// `   55d0c0ffee name (image)`.
pub(super) fn perf_frame(line: &str) -> Option<(u64, &str, &str)> {
    let (address, rest) = line.strip_prefix(['\t', ' '])?.trim_start().split_once(' ')?;
    let (name, image) = rest.trim_end().strip_suffix(')')?.rsplit_once(" (")?;
    Some((u64::from_str_radix(address, 16).ok()?, name, image))
}

/// The processed profile format of the Firefox profiler, as samply 0.13 writes it.
fn samply(profile: &Value, entries: &mut Entries) -> Option<Rooted> {
    let mut count = Rooted::default();
    for thread in profile["threads"].as_array()? {
        let number = |table: &str, column: &str, at: u64| {
            thread[table][column].get(usize::try_from(at).ok()?)?.as_u64()
        };
        let samples = &thread["samples"];
        for (at, stack) in samples["stack"].as_array()?.iter().enumerate() {
            // A weight of 0 marks a stretch without samples.
            let weight = samples["weight"].get(at).and_then(Value::as_u64).unwrap_or(1);
            let Some(mut stack) = stack.as_u64() else {
                count.add(false, weight);
                continue;
            };
            while let Some(parent) = number("stackTable", "prefix", stack) {
                stack = parent;
            }
            let rooted = number("stackTable", "frame", stack).and_then(|frame| {
                let function = number("frameTable", "func", frame)?;
                let resource = number("funcTable", "resource", function)?;
                let library = number("resourceTable", "lib", resource)?;
                let library = profile["libs"].get(usize::try_from(library).ok()?)?;
                let address = number("frameTable", "address", frame)?;
                Some(entries.is_start(library["path"].as_str()?, address))
            });
            count.add(rooted == Some(true), weight);
        }
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Entries {
        let cc1 = Entry { point: 0x67_6680, base: 0x40_0000 };
        Entries(HashMap::from([("cc1".to_owned(), Some(cc1))]))
    }

    #[test]
    fn flame_is_rooted_at_start_by_name_or_by_address() {
        let folded = "cc1;[cc1+0x2766a1];main 5\ncc1;[cc1+0x2766f1];main 1\ncc1;_start;main 7\n\
                      cc1;[truncated stack];f 2\ncc1;entry_[k];do_exit_[k] 3\ncc1;entry_[k] 4\n";
        assert_eq!(flame(folded, &mut entries()), Rooted { samples: 22, rooted: 15 });
    }

    #[test]
    fn perf_is_rooted_by_the_last_line_of_a_sample() {
        let text = "cc1 \n\t  5500 f (cc1)\n\t  6766a1 [unknown] (cc1)\n\n\
                    cc1 \n\t  5500 f (cc1)\n\n\
                    gcc \n\t ffff8 do_exit ([kernel.kallsyms])\n\n\
                    gcc \n\t ffff8 do_read ([kernel.kallsyms])\n\t 7 _start (/usr/bin/gcc)\n\n";
        assert_eq!(perf_script(text, &mut entries()), Rooted { samples: 4, rooted: 3 });
    }

    #[test]
    fn samply_is_rooted_by_the_stack_without_a_prefix() {
        let profile = serde_json::json!({
            "libs": [{"path": "cc1"}],
            "threads": [{
                "samples": {"stack": [1, 2, null], "weight": [3, 1, 0]},
                "stackTable": {"prefix": [null, 0, null], "frame": [0, 1, 1]},
                "frameTable": {"func": [0, 0], "address": [0x27_66a0, 0x1000]},
                "funcTable": {"resource": [0]},
                "resourceTable": {"lib": [0]},
            }],
        });
        assert_eq!(samply(&profile, &mut entries()), Some(Rooted { samples: 4, rooted: 3 }));
    }
}
