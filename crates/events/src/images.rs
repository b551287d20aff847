//! Images: the distinct files that were mapped as code, each with one id.

use std::fmt;

use flame_profile::{FileOffset, ImageId, readable};
use rustc_hash::FxHashMap;

/// Which file a mapping was of, so that another file that later has its path is not mistaken for
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileId {
    /// No file: anonymous memory, the vdso.
    None,
    /// A file, by what `stat` would say of it.
    Inode {
        /// Device, major number.
        major: u32,
        /// Device, minor number.
        minor: u32,
        /// The inode.
        inode: u64,
        /// Tells the files apart that have the same inode one after the other. Events have it,
        /// `/proc/PID/maps` has not.
        generation: Option<u64>,
    },
    /// A file, by what its linker wrote into it.
    BuildId(FileBuildId),
}

/// A build ID as a record has it: at most 20 bytes, at least one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileBuildId {
    len: u8,
    bytes: [u8; FileBuildId::MAX_LEN],
}

impl FileBuildId {
    /// The longest that a record has room for.
    pub const MAX_LEN: usize = 20;

    /// The ID of those bytes; `None` when there are none, or more than fit.
    pub fn new(id: &[u8]) -> Option<FileBuildId> {
        let mut bytes = [0; FileBuildId::MAX_LEN];
        bytes.get_mut(..id.len())?.copy_from_slice(id);
        let len = u8::try_from(id.len()).ok().filter(|len| *len > 0)?;
        Some(FileBuildId { len, bytes })
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Debug for FileBuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What makes two mappings be of the same image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ImageKey {
    /// The path as bytes, as the process had it.
    pub path: Box<[u8]>,
    /// The file.
    pub file: FileId,
}

impl FileId {
    /// That of an inode, if it is one.
    pub fn of_inode([major, minor]: [u32; 2], inode: u64, generation: Option<u64>) -> FileId {
        match inode {
            0 => FileId::None,
            inode => FileId::Inode { major, minor, inode, generation },
        }
    }

    /// What tells what is mapped of a file from that of all others; `None` where it may be one that came after it.
    pub fn part_at(self, offset: FileOffset) -> Option<[u64; 4]> {
        let FileId::Inode { major, minor, inode, generation } = self else { return None };
        Some([u64::from(major) << 32 | u64::from(minor), inode, generation?, offset.0])
    }

    /// What `/proc/PID/maps` would say of it.
    fn without_generation(self) -> FileId {
        match self {
            FileId::Inode { major, minor, inode, .. } => {
                FileId::Inode { major, minor, inode, generation: None }
            }
            other => other,
        }
    }
}

impl ImageKey {
    /// Whether this is code without a file behind it: JIT code, shared anonymous memory. The vdso
    /// is not: it has an image, in memory.
    pub fn is_anonymous(&self) -> bool {
        let path = &*self.path;
        path.is_empty()
            || path == b"//anon"
            || path == b"[heap]"
            || path == b"[stack]"
            || path.starts_with(b"[anon:")
            || path.starts_with(b"/anon_hugepage")
            || self.is_memfd()
            || path.starts_with(b"/dev/zero")
            || path.starts_with(b"/SYSV")
    }

    /// Whether this is memory that was made like a file (`memfd_create`): code of a runtime, or an
    /// executable that was written into it.
    pub fn is_memfd(&self) -> bool {
        self.path.starts_with(b"/memfd:")
    }

    /// Whether this is the vdso, which the kernel maps into every process.
    pub fn is_vdso(&self) -> bool {
        &*self.path == b"[vdso]"
    }

    /// The path for people: what is not UTF-8 stands there as `\xNN`.
    pub fn display_path(&self) -> String {
        readable(&self.path).into_owned()
    }
}

/// All images seen; ids count up from 0.
///
/// A key without a generation means the file that was last heard of, and takes on the first
/// generation that is: while a process has the file mapped, nothing else has its inode.
#[derive(Debug, Default)]
pub struct ImageTable {
    keys: Vec<ImageKey>,
    /// Those without generation lead to the last one.
    ids: FxHashMap<ImageKey, ImageId>,
}

impl ImageTable {
    /// The id of an image, new or known.
    pub fn intern(&mut self, key: ImageKey) -> ImageId {
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let plain = ImageKey { path: key.path.clone(), file: key.file.without_generation() };
        let last = self.ids.get(&plain).copied();
        let unsettled = last.filter(|id| self.key(*id) == Some(&plain));
        let id = unsettled.unwrap_or_else(|| ImageId::from_index(self.keys.len()));
        match self.keys.get_mut(id.index()) {
            Some(known) => *known = key.clone(),
            None => self.keys.push(key.clone()),
        }
        self.ids.insert(plain, id);
        self.ids.insert(key, id);
        id
    }

    /// The key of an id of this table.
    pub fn key(&self, id: ImageId) -> Option<&ImageKey> {
        self.keys.get(id.index())
    }

    /// All images with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (ImageId, &ImageKey)> {
        self.keys.iter().enumerate().map(|(index, key)| (ImageId::from_index(index), key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(inode: u64, generation: Option<u64>) -> ImageKey {
        let file = FileId::Inode { major: 0xfe, minor: 1, inode, generation };
        ImageKey { path: b"/bin/a".as_slice().into(), file }
    }

    #[test]
    fn files_that_have_an_inode_one_after_the_other_are_different_images() {
        let mut table = ImageTable::default();
        let asked = [
            (4711, Some(1), 0),
            (4711, Some(2), 1),
            (4711, Some(1), 0),
            (4711, None, 1),
            (4712, None, 2),
            (4712, Some(7), 2),
            (4712, None, 2),
            (4712, Some(8), 3),
        ];
        for (inode, generation, id) in asked {
            let found = table.intern(key(inode, generation));
            assert_eq!(found.index(), id, "{inode} {generation:?}");
        }
        let kept: Vec<ImageKey> = table.iter().map(|(_, key)| key.clone()).collect();
        let expect = [(4711, 1), (4711, 2), (4712, 7), (4712, 8)];
        assert_eq!(kept, expect.map(|(inode, generation)| key(inode, Some(generation))));
    }

    #[test]
    fn code_without_a_file_is_one_image() {
        let mut table = ImageTable::default();
        let key = ImageKey { path: b"//anon".as_slice().into(), file: FileId::None };
        assert_eq!([table.intern(key.clone()), table.intern(key)].map(ImageId::index), [0, 0]);
    }
}
