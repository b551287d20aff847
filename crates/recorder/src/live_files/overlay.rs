//! Which overlays can be waited for: those that an administrator has mounted, over file systems of the kernel.
//!
//! Whoever is root in a user namespace may mount an overlay there, over anything, and pass its files to any
//! process. Such a mount never appears in flame's own mount namespace, so that is where overlays are looked up.
//! Layers that are named by an absolute path must not lie on FUSE. Relative ones cannot be found again (long
//! lists of container tools); an administrator named them.
//!
//! Sources: proc(5) for mountinfo, overlayfs.rst of Linux.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use nix::libc::{dev_t, major, minor};
use nix::sys::statfs::{FUSE_SUPER_MAGIC, statfs};

/// Options that name layers.
const LAYERS: [&str; 6] = ["lowerdir", "lowerdir+", "datadir+", "upperdir", "workdir", "datadir"];

/// Whether the overlay of that device is one of flame's own mount namespace, over file systems that answer.
pub(super) fn is_known(device: dev_t) -> bool {
    let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mounts = String::from_utf8_lossy(&mounts);
    let Some(options) = options_of(&mounts, device) else { return false };
    layers(options).iter().filter(|layer| layer.is_absolute()).all(|layer| {
        // Whoever cannot see the layer cannot vouch for it.
        statfs(layer).is_ok_and(|system| system.filesystem_type() != FUSE_SUPER_MAGIC)
    })
}

/// The options of an overlay among mounts.
fn options_of(mounts: &str, device: dev_t) -> Option<&str> {
    let wanted = format!("{}:{}", major(device), minor(device));
    mounts.lines().find_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut system = system.split(' ');
        let is_it = mount.split(' ').nth(2) == Some(&wanted) && system.next() == Some("overlay");
        is_it.then(|| system.nth(1)).flatten()
    })
}

/// The directories that the options name.
fn layers(options: &str) -> Vec<PathBuf> {
    let of_option = |option: &str| {
        let (name, value) = option.split_once('=')?;
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
        LAYERS.contains(&name).then(|| split(&unescaped(value.as_bytes())))
    };
    options.split(',').filter_map(of_option).flatten().collect()
}

/// Paths between colons; a backslash takes the meaning of what follows it.
fn split(value: &[u8]) -> Vec<PathBuf> {
    let (mut paths, mut path, mut bytes) = (Vec::new(), Vec::new(), value.iter());
    while let Some(byte) = bytes.next() {
        match byte {
            b':' => paths.push(std::mem::take(&mut path)),
            b'\\' => path.extend(bytes.next()),
            byte => path.push(*byte),
        }
    }
    paths.push(path);
    paths.retain(|path| !path.is_empty());
    paths.into_iter().map(|path| PathBuf::from(OsString::from_vec(path))).collect()
}

/// Without the octal escapes of /proc (`\040`).
fn unescaped(value: &[u8]) -> Vec<u8> {
    let (mut text, mut at) = (Vec::new(), 0);
    while at < value.len() {
        let digits = value.get(at + 1..at + 4).filter(|_| value[at] == b'\\');
        let octal = digits.and_then(|it| u8::from_str_radix(std::str::from_utf8(it).ok()?, 8).ok());
        text.push(octal.unwrap_or(value[at]));
        at += if octal.is_some() { 4 } else { 1 };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::libc::makedev;

    const MOUNTS: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
70 22 0:45 / /var/lib/docker/o\\040v/merged rw - overlay overlay rw,lowerdir=/a\\040b:/c\\134:d::/e,upperdir=l/U,index=off
71 22 0:46 / /mnt rw shared:2 master:3 - fuse.sfs sfs rw,lowerdir=/x
";

    #[test]
    fn layers_of_an_overlay_are_found_by_its_device() {
        let options = options_of(MOUNTS, makedev(0, 45)).unwrap();
        let expect = ["/a b", "/c:d", "/e", "l/U"].map(PathBuf::from);
        assert_eq!(layers(options), expect);
    }

    #[test]
    fn what_is_no_overlay_or_not_mounted_here_is_not_known() {
        assert_eq!(options_of(MOUNTS, makedev(0, 46)), None);
        assert_eq!(options_of(MOUNTS, makedev(0, 47)), None);
        assert!(!is_known(makedev(0, 0xfffff)));
    }
}
