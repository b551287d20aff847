//! Images: the files whose code was running.

use std::fmt;

use crate::address::{FileOffset, ProcessAddress};

/// The identity that the linker wrote into an image (`.note.gnu.build-id`), usually 20 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId(Box<[u8]>);

impl BuildId {
    /// The id of those bytes; `None` when there are none, which means "no build id".
    pub fn from_bytes(bytes: &[u8]) -> Option<BuildId> {
        if bytes.is_empty() { None } else { Some(BuildId(bytes.into())) }
    }

    /// The raw bytes, never empty.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

/// A file that was mapped as code, with one range where it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The path as the process had it, or a name in brackets such as `[vdso]` or `[kernel]`.
    pub path: String,
    /// The build id, where the image has one that could be read.
    pub build_id: Option<BuildId>,
    /// First address of the first executable mapping seen.
    pub start: ProcessAddress,
    /// End (exclusive) of that mapping.
    pub end: ProcessAddress,
    /// Where in the file that mapping starts.
    pub offset: FileOffset,
}

impl Image {
    /// Its file name, without directories.
    pub fn base_name(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        name.strip_suffix(" (deleted)").unwrap_or(name)
    }

    /// Whether it is a shared library by its name: `libc.so.6`, `foo.so`, `ld-linux.so.2`, `[vdso]`.
    pub fn is_library(&self) -> bool {
        let name = self.base_name();
        name.ends_with(".so") || name.contains(".so.") || name == "[vdso]"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_is_written_in_hex_and_is_never_empty() {
        let id = BuildId::from_bytes(&[0x0a, 0xf1]).unwrap();
        assert_eq!((id.as_bytes(), id.to_string()), (&[0x0a, 0xf1][..], "0af1".to_owned()));
        assert_eq!(format!("{id:?}"), "BuildId(0af1)");
        assert_eq!(BuildId::from_bytes(&[]), None);
    }

    #[test]
    fn a_library_is_known_by_its_base_name() {
        let cases = [
            ("/usr/lib/libc.so.6", "libc.so.6", true),
            ("/opt/app/foo.so (deleted)", "foo.so", true),
            ("[vdso]", "[vdso]", true),
            ("/opt/app.so.d/server", "server", false),
        ];
        for (path, name, is_library) in cases {
            let (start, end) = (ProcessAddress(0x1000), ProcessAddress(0x2000));
            let path = path.to_owned();
            let image = Image { path, build_id: None, start, end, offset: FileOffset(0) };
            assert_eq!((image.base_name(), image.is_library()), (name, is_library));
        }
    }
}
