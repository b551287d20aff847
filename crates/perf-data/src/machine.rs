//! Whether a recording is of this machine, and of the kernel that runs.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};

use flame_image::build_id_of_notes;

use crate::facts::{Facts, KERNEL};
use crate::source::KernelPlace;

const KALLSYMS: &str = "/proc/kallsyms";
/// Lines of the kernel's symbols that are looked at: its start is among the first.
const MAX_LINES: usize = 100_000;

/// Whether the file says that it is of a machine of this name.
pub(crate) fn is_this_machine(facts: &Facts) -> Option<bool> {
    facts.host.as_ref().map(|host| Some(host) == text("/proc/sys/kernel/hostname").as_ref())
}

/// Whether the kernel that was recorded is the one that runs, with its code at the same place: a
/// kernel lies elsewhere after each boot.
pub(crate) fn is_this_kernel(facts: &Facts, place: Option<&KernelPlace>) -> bool {
    if is_this_machine(facts) == Some(false) {
        return false;
    }
    let recorded = facts.build_ids.get(KERNEL).map(|id| id.as_bytes());
    let running = fs::read("/sys/kernel/notes").ok().and_then(|notes| build_id_of_notes(&notes));
    let is_same_build = match (recorded, running) {
        (Some(recorded), Some(running)) => recorded == running.as_bytes(),
        _ => is_this_release(facts),
    };
    is_same_build && place.is_some_and(is_place_of_kernel)
}

/// Whether the kernel that runs here has the version that was recorded; a file that does not say
/// it comes from a pipe, and so from here most likely.
pub(crate) fn is_this_release(facts: &Facts) -> bool {
    let running = text("/proc/sys/kernel/osrelease");
    is_this_machine(facts) != Some(false)
        && facts.release.as_ref().is_none_or(|recorded| Some(recorded) == running.as_ref())
}

/// Whether the running kernel has that symbol there. Where this user is not shown addresses, it is
/// not known, and there are no names anyway.
fn is_place_of_kernel(place: &KernelPlace) -> bool {
    let Ok(file) = File::open(KALLSYMS) else { return true };
    for line in BufReader::new(file).split(b'\n').take(MAX_LINES) {
        let Ok(line) = line else { return true };
        let Ok(line) = std::str::from_utf8(&line) else { continue };
        let mut words = line.split_ascii_whitespace();
        let (address, name) = (words.next(), words.nth(1));
        if name.map(str::as_bytes) == Some(&*place.symbol) {
            let address = address.and_then(|address| u64::from_str_radix(address, 16).ok());
            return address.is_some_and(|found| found == 0 || found == place.address.0);
        }
    }
    false
}

fn text(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim_end().to_owned())
}
