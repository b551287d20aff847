//! Images: the distinct files that were mapped as code, each with one id.

use flame_profile::ImageId;
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
    },
}

/// What makes two mappings be of the same image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ImageKey {
    /// The path as bytes, as the process had it.
    pub path: Box<[u8]>,
    /// The file.
    pub file: FileId,
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
            || path.starts_with(b"/memfd:")
            || path.starts_with(b"/dev/zero")
            || path.starts_with(b"/SYSV")
    }

    /// Whether this is the vdso, which the kernel maps into every process.
    pub fn is_vdso(&self) -> bool {
        &*self.path == b"[vdso]"
    }

    /// The path for people: invalid UTF-8 replaced.
    pub fn display_path(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }
}

/// All images seen; ids count up from 0.
#[derive(Debug, Default)]
pub struct ImageTable {
    keys: Vec<ImageKey>,
    ids: FxHashMap<ImageKey, ImageId>,
}

impl ImageTable {
    /// The id of an image, new or known.
    pub fn intern(&mut self, key: ImageKey) -> ImageId {
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let id = ImageId::from_index(self.keys.len());
        self.keys.push(key.clone());
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
