//! Turns an open file into bytes without reading it.
#![expect(unsafe_code, reason = "mapping a file is unsafe: others can change it")]

use std::fs::File;
use std::io;

use flame_profile::SharedBytes;
use memmap2::MmapOptions;

/// Maps the whole of a regular file, read-only and private; an empty file gives no bytes.
///
/// A file that another process truncates while it is mapped ends flame with SIGBUS, as it ends the
/// processes that run it. The kernel lets nobody truncate a running executable, and package
/// managers replace libraries by renaming.
pub(crate) fn map_file(file: &File) -> io::Result<SharedBytes> {
    if file.metadata()?.len() == 0 {
        return Ok(SharedBytes::default());
    }
    // SAFETY: the mapping is private and read-only, and lives as long as the `SharedBytes`. Bytes
    // that another process changes may show through; nothing that reads them relies on two reads
    // giving the same value for memory safety, since every index is checked when it is used.
    let map = unsafe { MmapOptions::new().map_copy_read_only(file)? };
    Ok(SharedBytes::new(map))
}
