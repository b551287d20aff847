//! Turns an open file into bytes without reading it.
//!
//! A file that another process truncates while it is mapped would end flame with SIGBUS at the next
//! read beyond its new end; a hostile process could so end the profiler that root runs on it. So
//! the signal is caught for the files that are mapped here: the page reads as zeros from then on,
//! which parsers take for damage. Reading files into memory instead would take as much of it as
//! they are long: gigabytes for debug information of which a few pages are looked at.
//!
//! Sources: mmap(2), sigaction(2) for BUS_ADRERR.
#![expect(unsafe_code, reason = "mapping a file, and catching SIGBUS, are unsafe")]

use std::fs::File;
use std::io::{self, Read};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use flame_profile::SharedBytes;
use memmap2::{Mmap, MmapOptions};
use nix::libc::{self, c_int, c_void, siginfo_t};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// How many files may be mapped at once; those beyond are read into memory.
const SLOTS: usize = 4096;

/// The longest file that is read into memory.
const MAX_READ: u64 = 64 << 20;

/// Where files are mapped, for the signal handler, which can take no lock.
static MAPPED: [Slot; SLOTS] = [const { Slot::free() }; SLOTS];

/// What SIGBUS did before: the standard library tells a stack overflow by it.
static BEFORE: OnceLock<SigAction> = OnceLock::new();

/// The length of a page.
static PAGE: AtomicUsize = AtomicUsize::new(4096);

/// The addresses of a mapped file. `start` is 0 when the slot is free; `end` is 0 while it is being
/// taken or given back, so that no address is inside.
struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
}

impl Slot {
    const fn free() -> Slot {
        Slot { start: AtomicUsize::new(0), end: AtomicUsize::new(0) }
    }

    /// Takes a free slot for those bytes.
    fn take(bytes: &[u8]) -> Option<&'static Slot> {
        let start = bytes.as_ptr().addr();
        let take = |slot: &&Slot| {
            slot.start.compare_exchange(0, start, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let slot = MAPPED.iter().find(take)?;
        slot.end.store(start + bytes.len(), Ordering::Release);
        Some(slot)
    }

    fn give_back(&self) {
        self.end.store(0, Ordering::Release);
        self.start.store(0, Ordering::Release);
    }

    fn holds(&self, address: usize) -> bool {
        address < self.end.load(Ordering::Acquire) && address >= self.start.load(Ordering::Acquire)
    }
}

/// A mapped file that may be truncated.
struct GuardedMap {
    map: Mmap,
    slot: &'static Slot,
}

impl AsRef<[u8]> for GuardedMap {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

impl Drop for GuardedMap {
    fn drop(&mut self) {
        self.slot.give_back();
    }
}

/// Maps the whole of a regular file, read-only and private; an empty file gives no bytes.
///
/// What another process cuts off the file later reads as zeros, or as what it was.
///
/// # Errors
/// When the file cannot be examined, mapped or read, and when it is too long to be read with so
/// many others mapped.
pub(crate) fn map_file(file: &File) -> io::Result<SharedBytes> {
    if file.metadata()?.len() == 0 {
        return Ok(SharedBytes::default());
    }
    catch_bus_errors();
    // SAFETY: the mapping is private and read-only, and lives as long as the `SharedBytes`. Bytes
    // that another process changes may show through; nothing that reads them relies on two reads
    // giving the same value for memory safety, since every index is checked when it is used. Bytes
    // that it cuts off are replaced by `on_bus_error`.
    let map = unsafe { MmapOptions::new().map_copy_read_only(file)? };
    match Slot::take(&map) {
        Some(slot) => Ok(SharedBytes::new(GuardedMap { map, slot })),
        None => read_file(file),
    }
}

fn read_file(file: &File) -> io::Result<SharedBytes> {
    if file.metadata()?.len() > MAX_READ {
        return Err(io::Error::other("too many files are mapped already"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_READ).read_to_end(&mut bytes)?;
    Ok(SharedBytes::from(bytes))
}

/// Installs the handler, once.
fn catch_bus_errors() {
    BEFORE.get_or_init(|| {
        // SAFETY: sysconf has no precondition.
        if let Ok(page) = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }) {
            PAGE.store(page, Ordering::Relaxed);
        }
        let handler = SigHandler::SigAction(on_bus_error);
        let action = SigAction::new(handler, SaFlags::SA_ONSTACK, SigSet::empty());
        // SAFETY: `on_bus_error` does nothing but what signal handlers may.
        let before = unsafe { sigaction(Signal::SIGBUS, &action) };
        before.unwrap_or_else(|_| default_action())
    });
}

fn default_action() -> SigAction {
    SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty())
}

/// Puts a page of zeros where a mapped file has lost its own; any other bus error is left to who
/// handled them before, by letting it happen again.
extern "C" fn on_bus_error(_: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel gives a valid `info` to handlers with SA_SIGINFO, which nix sets for this
    // kind of handler; of SIGBUS it has an address.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    if code == libc::BUS_ADRERR && MAPPED.iter().any(|slot| slot.holds(address)) {
        let page = PAGE.load(Ordering::Relaxed);
        let start = std::ptr::without_provenance_mut(address & !(page - 1));
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        // SAFETY: the page is within a mapping of ours, which stays until its owner unmaps it: the
        // thread that faulted holds that owner. mmap is a system call that takes no lock of the
        // process, and sets errno only when it fails.
        let zeros = unsafe { libc::mmap(start, page, libc::PROT_READ, flags, -1, 0) };
        if zeros != libc::MAP_FAILED {
            return;
        }
    }
    let before = BEFORE.get().copied().unwrap_or_else(default_action);
    // SAFETY: it is what was in force before; should that fail, there is no way on but to fault
    // again.
    let _ = unsafe { sigaction(Signal::SIGBUS, &before) };
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;

    const LEN: usize = 1 << 18;

    fn file(name: &str) -> (PathBuf, File) {
        let path = std::env::temp_dir().join(format!("flame-{name}-{}", std::process::id()));
        std::fs::write(&path, vec![0x5a; LEN]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        (path, file)
    }

    #[test]
    fn what_is_cut_off_a_mapped_file_reads_as_zeros() {
        let (path, file) = file("cut");
        let bytes = map_file(&file).unwrap();
        file.set_len(1).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!(bytes.len(), LEN);
        assert_eq!(bytes[0], 0x5a);
        let page = PAGE.load(Ordering::Relaxed);
        let cut = bytes.slice(page..LEN).unwrap();
        assert!(cut.iter().all(|byte| *byte == 0));
        // Several threads fault at the same time, on the same pages and on others.
        let (path, file) = self::file("cut-by-many");
        let bytes = map_file(&file).unwrap();
        file.set_len(0).unwrap();
        std::fs::remove_file(path).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!(bytes.iter().all(|byte| *byte == 0)));
            }
        });
    }

    #[test]
    fn slots_are_given_back() {
        let (path, file) = file("slots");
        for _ in 0..2 * SLOTS {
            let bytes = map_file(&file).unwrap();
            let address = bytes.as_ptr().addr();
            assert!(MAPPED.iter().any(|slot| slot.holds(address)));
        }
        std::fs::remove_file(path).unwrap();
        assert_eq!(&read_file(&file).unwrap()[..], &vec![0x5a; LEN][..]);
    }

    /// Runs itself in a process of its own, which has to end.
    #[test]
    fn a_bus_error_elsewhere_ends_the_process_as_ever() {
        const MARK: &str = "FLAME_TEST_BUS_ERROR";
        if std::env::var_os(MARK).is_some() {
            let (path, file) = file("elsewhere");
            std::fs::remove_file(path).unwrap();
            let guarded = map_file(&file).unwrap();
            // SAFETY: nobody else knows the file; that reading it ends the process is the test.
            let other = unsafe { MmapOptions::new().map(&file).unwrap() };
            file.set_len(0).unwrap();
            assert_eq!(guarded[0], 0);
            assert_eq!(other[0], 0x5a, "not reached");
        }
        let test = "map_file::tests::a_bus_error_elsewhere_ends_the_process_as_ever";
        let mut command = Command::new(std::env::current_exe().unwrap());
        let ended = command.args(["--exact", test]).env(MARK, "1").output().unwrap();
        assert_eq!(ended.status.signal(), Some(libc::SIGBUS), "{ended:?}");
    }
}
