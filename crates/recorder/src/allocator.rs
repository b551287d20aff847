//! `--mode alloc`: what is asked of malloc and its like, by the calls' arguments.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;

use flame_image::{DebugSearch, ImageFile};
use flame_profile::{ByteLen, Hz, Pid, ValueType};
use flame_sampler::{CallGraph, EventSpec, EventType, Rate, Target};

use crate::arguments::Argument;
use crate::calls::SIZES;
use crate::config::{BlockEvents, RecorderConfig};
use crate::functions::calls_of;
use crate::live_files::LiveFiles;
use crate::target::TargetFiles;

/// The functions, and which of their arguments says how many bytes are asked for.
const FUNCTIONS: &[(&str, Argument)] = &[
    ("malloc", Argument::One(0)),
    ("calloc", Argument::Product(0, 1)),
    ("realloc", Argument::One(1)),
    ("aligned_alloc", Argument::One(1)),
    ("memalign", Argument::One(1)),
    ("posix_memalign", Argument::One(2)),
];

/// Those whose result says where the block is: the other one writes that into memory.
const RETURN_ADDRESSES: &[&str] = &["malloc", "calloc", "realloc", "aligned_alloc", "memalign"];

/// Functions that free what they are called with, those of allocators beside the C library too.
const FREE: &[&str] =
    &["free", "realloc", "free_sized", "free_aligned_sized", "dallocx", "sdallocx"];

/// Allocators that programs are linked with instead of the C library's.
const OTHERS: [&str; 3] = ["jemalloc", "tcmalloc", "mimalloc"];

/// What the C library's file is called.
const C_LIBRARIES: [&str; 3] = ["libc.so", "libc-2", "ld-musl"];

/// Bytes of ring a CPU at least and at most, and on all CPUs: each function has rings of its own. A program
/// that starts allocates a thousand blocks within milliseconds, before their rate can be lowered.
const RING: [u64; 2] = [512 << 10, 8 << 20];
const RINGS: u64 = 512 << 20;

/// An allocator: how the kernel is told of it, and what it is.
struct Allocator {
    path: PathBuf,
    image: ImageFile,
    is_c_library: bool,
}

/// Which allocations are recorded.
#[derive(Clone, Copy, Debug)]
pub struct Allocations<'a> {
    /// The file of the allocator; `None` = the one that the target uses.
    pub file: Option<&'a Path>,
    /// The program that is launched, if the target is one.
    pub program: Option<&'a Path>,
    /// Whether only what is not freed counts.
    pub live: bool,
    /// How often all functions together are sampled; `None` = as one event is.
    pub rate: Option<Rate>,
}

/// No function malloc was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAllocator {
    /// The name of a file that has it, but lies where the kernel must not look: on a file system that
    /// a user has mounted.
    pub on_user_file_system: Option<String>,
}

/// Samples the calls of the target's allocator, or of the one that is named.
///
/// # Errors
/// There is none.
pub fn set_allocations(
    config: &mut RecorderConfig,
    of: &Allocations<'_>,
    files: &LiveFiles,
) -> Result<(), NoAllocator> {
    let mut copied = None;
    let mut of_process = |pid: Pid| of_process(pid, files, &mut copied);
    let allocator = match (of.file, &config.sampler.target) {
        (Some(path), _) => of_file(path, path),
        (None, Target::Processes(pids)) => pids.first().and_then(|pid| of_process(*pid)),
        (None, Target::Threads(tids)) => tids.first().and_then(|tid| of_process(Pid(tid.0))),
        (None, _) => of.program.map_or_else(of_this_machine, of_program),
    };
    let allocator = allocator.ok_or(NoAllocator { on_user_file_system: copied })?;
    let events = functions_of(&allocator, of.live);
    let functions = events.len();
    // Together they are to be sampled as often as one event is.
    let rate = match of.rate.unwrap_or_else(|| Rate::usual(events.first().map(|(event, _)| event)))
    {
        Rate::Frequency(hz) => Rate::Frequency(Hz((hz.0 / functions as u64).max(1))),
        period @ Rate::Period(_) => period,
    };
    let returns: Vec<EventType> = match of.live {
        true => events.iter().map(|(event, _)| event.clone().at_return()).collect(),
        false => Vec::new(),
    };
    let (by_size, arguments, function_of) = by_size(events);
    let allocating = by_size.len();
    let mut events = by_size.into_iter();
    let (name, frees) = match of.live {
        true => ("live", frees(&allocator)),
        false => ("alloc", Vec::new()),
    };
    config.options.value = Some(ValueType::new(name, "bytes"));
    config.options.arguments = arguments;
    config.options.adds_up = true;
    config.options.blocks = of.live.then_some(BlockEvents { function_of });
    let rings = (allocating + returns.len() + frees.len()) as u64 * cpus();
    config.sampler.ring = Some(ByteLen((RINGS / rings).clamp(RING[0], RING[1])));
    config.sampler.event = events.next();
    config.sampler.rate = rate;
    config.others = events.map(|event| EventSpec::new(event, rate)).collect();
    // Each of them: of a block that was sampled it is to be known where it is, and when it is freed.
    let each = |event| EventSpec {
        call_graph: Some(CallGraph::Registers),
        ..EventSpec::new(event, Rate::Period(1))
    };
    config.others.extend(returns.into_iter().chain(frees).map(each));
    Ok(())
}

/// Calls of its functions that allocate, and which arguments say how many bytes.
fn functions_of(allocator: &Allocator, live: bool) -> Vec<(EventType, Argument)> {
    let mut starts = Vec::new();
    let mut events = Vec::new();
    let is_meant = |function: &str| !live || RETURN_ADDRESSES.contains(&function);
    for (function, argument) in FUNCTIONS.iter().filter(|(function, _)| is_meant(function)) {
        let start = allocator.image.offset_of_function(function);
        // Two names of one function are one event.
        if start.is_none() || starts.contains(&start) {
            continue;
        }
        starts.push(start);
        let event = calls_of(function, function, &allocator.path, &allocator.image);
        let argument = match (*function, allocator.is_c_library) {
            ("realloc", true) => Argument::Resize(0, 1),
            _ => *argument,
        };
        events.extend(event.map(|event| (event, argument)));
    }
    events
}

/// For each function an event of each of the sizes that are sampled apart, with its argument, and which function it is of.
fn by_size(events: Vec<(EventType, Argument)>) -> (Vec<EventType>, Vec<Argument>, Vec<usize>) {
    let (mut by_size, mut arguments, mut function_of) = (Vec::new(), Vec::new(), Vec::new());
    for (function, (event, argument)) in events.into_iter().enumerate() {
        for (least, end) in SIZES {
            let mut event = event.clone();
            event.filter = Some(argument.filter(least, end));
            event.is_rare = end.is_none();
            by_size.push(event);
            arguments.push(argument);
            function_of.push(function);
        }
    }
    (by_size, arguments, function_of)
}

/// Calls that free blocks.
fn frees(allocator: &Allocator) -> Vec<EventType> {
    let calls = |function| calls_of(function, function, &allocator.path, &allocator.image);
    FREE.iter().filter_map(|function| calls(function)).collect()
}

fn cpus() -> u64 {
    thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64)
}

/// That of a process, which may be in a container: the file that it has mapped, whatever it is called.
/// `copied` becomes the name of one that cannot be used, for lack of another.
fn of_process(pid: Pid, files: &LiveFiles, copied: &mut Option<String>) -> Option<Allocator> {
    let process = files.of(pid);
    let maps = files.text(pid, "maps").ok()?;
    let maps = String::from_utf8_lossy(&maps);
    let mut code: Vec<Mapped<'_>> = maps.lines().filter_map(Mapped::of_code).collect();
    // Who is linked with another allocator than the C library's calls that one; so does a program that
    // has one itself, and its code comes first.
    code.sort_by_key(|mapped| match mapped.name {
        name if OTHERS.iter().any(|other| name.contains(other)) => 0,
        name if is_c_library(name) => 2,
        _ => 1,
    });
    code.iter().find_map(|mapped| {
        let path = PathBuf::from(format!("/proc/{pid}/map_files/{}", mapped.link()?));
        let opened = match process.open(&path) {
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                copied.get_or_insert_with(|| mapped.name.to_owned());
                return None;
            }
            opened => opened.ok()?,
        };
        let image = ImageFile::of_file(&path, &opened, DebugSearch::of(&path)).ok()?;
        image.offset_of_function("malloc")?;
        // What a program of its owner answers for was copied into memory, and the copy runs nowhere.
        let status = opened.file.metadata().ok()?;
        if (status.dev(), status.ino()) != (opened.status.device, opened.status.inode) {
            copied.get_or_insert_with(|| mapped.name.to_owned());
            return None;
        }
        // The kernel is told of the file that was looked at: by now another one may be mapped there, on a
        // file system that does not answer. It stays open while flame runs.
        let path = PathBuf::from(format!("/proc/self/fd/{}", opened.file.into_raw_fd()));
        Some(Allocator { path, image, is_c_library: is_c_library(mapped.name) })
    })
}

/// A file that a process runs code of.
struct Mapped<'m> {
    range: &'m str,
    name: &'m str,
}

impl<'m> Mapped<'m> {
    /// By a line of /proc/PID/maps: `START-END r-xp OFFSET DEVICE INODE  PATH`.
    fn of_code(line: &'m str) -> Option<Mapped<'m>> {
        let mut fields = line.splitn(6, ' ');
        let (range, rights) = (fields.next()?, fields.next()?);
        let inode = fields.nth(2)?;
        let path = fields.next()?.trim_start();
        let name = path.rsplit('/').next()?;
        let is_code = rights.contains('x') && inode != "0";
        is_code.then_some(Mapped { range, name })
    }

    /// What the kernel calls its link, which has no zeros in front, as the line of a program at a low
    /// address has.
    fn link(&self) -> Option<String> {
        let (start, end) = self.range.split_once('-')?;
        Some(format!("{}-{}", start.trim_start_matches('0'), end.trim_start_matches('0')))
    }
}

/// That of a program that will be started: its own, or that of its C library. A script's is that of what
/// runs it, which has the C library of this machine.
fn of_program(program: &Path) -> Option<Allocator> {
    let Ok(image) = ImageFile::open(program) else { return of_this_machine() };
    of_file(program, program).or_else(|| {
        // Without one it is linked statically: no library has what it calls.
        let interpreter = image.section(".interp")?;
        let path = interpreter.bytes.split(|byte| *byte == 0).next()?;
        let path = Path::new(std::str::from_utf8(path).ok()?);
        // musl's loader is its C library.
        of_file(path, path).or_else(of_this_machine)
    })
}

/// The C library that flame itself runs with.
fn of_this_machine() -> Option<Allocator> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let paths = maps.lines().filter_map(|line| line.split_once('/').map(|(_, path)| path));
    let path = paths.map(|path| PathBuf::from(format!("/{path}")));
    path.into_iter().find_map(|path| of_file(&path, &path).filter(|found| found.is_c_library))
}

fn of_file(path: &Path, called: &Path) -> Option<Allocator> {
    let image = ImageFile::open(path).ok()?;
    image.offset_of_function("malloc")?;
    let name = called.file_name()?.to_string_lossy();
    Some(Allocator { path: path.to_owned(), is_c_library: is_c_library(&name), image })
}

fn is_c_library(name: &str) -> bool {
    C_LIBRARIES.iter().any(|library| name.contains(library))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_code_are_found_among_mappings() {
        let line = "7f0d8a428000-7f0d8a57e000 r-xp 00026000 fe:00 1234      /usr/lib/a b/libc.so.6";
        let mapped = Mapped::of_code(line).unwrap();
        assert_eq!(mapped.range, "7f0d8a428000-7f0d8a57e000");
        assert_eq!(mapped.name, "libc.so.6");
        assert_eq!(mapped.link().as_deref(), Some(mapped.range));
        let low = Mapped::of_code("00401000-00479000 r-xp 00001000 fe:00 1234  /tmp/a").unwrap();
        assert_eq!(low.link().as_deref(), Some("401000-479000"));
        for other in [
            "7ffd1000-7ffd2000 r-xp 00000000 00:00 0      [vdso]",
            "7f0d8a400000-7f0d8a428000 r--p 00000000 fe:00 1234      /usr/lib/libc.so.6",
            "",
        ] {
            assert!(Mapped::of_code(other).is_none(), "{other}");
        }
    }

    #[test]
    fn this_machine_has_an_allocator() {
        let found = of_this_machine().unwrap();
        let start = |name| found.image.offset_of_function(name);
        assert!(start("malloc").is_some() && start("no_such_function").is_none());
        assert_ne!(start("malloc"), start("calloc"));
    }
}
