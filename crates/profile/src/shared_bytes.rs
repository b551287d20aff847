//! Bytes that several owners read without copying them: a mapped file, a section of it, or a buffer
//! that was decompressed.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A part of some bytes that stay alive as long as any of their parts does.
///
/// Cloning and slicing cost a reference count, never a copy. The bytes of an owner must not move
/// or change in number while it lives. Only shared references to it are given out, which ensures that
/// for `Vec<u8>`, boxed slices, statics and memory maps.
///
/// ```
/// use flame_profile::SharedBytes;
///
/// let file = SharedBytes::from(b"\x7fELF\x02\x01\x01".to_vec());
/// let magic = file.slice(0..4).unwrap();
/// drop(file);
/// assert_eq!(&magic[..], b"\x7fELF");
/// assert!(magic.slice(3..5).is_none());
/// ```
#[derive(Clone)]
pub struct SharedBytes {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
    /// Within the owner's bytes.
    range: Range<usize>,
}

impl SharedBytes {
    /// All bytes of an owner, such as a memory map.
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> SharedBytes {
        let range = 0..owner.as_ref().len();
        SharedBytes { owner: Arc::new(owner), range }
    }

    /// The part at `range`, counted in bytes from the start of this part; `None` when it is not
    /// wholly inside or ends before it starts.
    pub fn slice(&self, range: Range<usize>) -> Option<SharedBytes> {
        if range.start > range.end || range.end > self.range.len() {
            return None;
        }
        let start = self.range.start + range.start;
        let end = self.range.start + range.end;
        Some(SharedBytes { owner: Arc::clone(&self.owner), range: start..end })
    }
}

impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> SharedBytes {
        SharedBytes::new(bytes)
    }
}

impl Default for SharedBytes {
    /// No bytes.
    fn default() -> SharedBytes {
        SharedBytes::new([])
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // An owner that gave fewer bytes than at first would be a broken one; it gets no panic.
        (*self.owner).as_ref().get(self.range.clone()).unwrap_or(&[])
    }
}

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedBytes({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_part_counts_from_its_own_start() {
        let whole = SharedBytes::from((0..10).collect::<Vec<u8>>());
        let part = whole.slice(2..8).unwrap().slice(1..3).unwrap();
        assert_eq!((&part[..], part.as_ref()), (&[3, 4][..], &[3, 4][..]));
        assert_eq!(part.as_ptr(), whole[3..].as_ptr());
    }

    #[test]
    fn parts_outside_are_refused() {
        let part = SharedBytes::from(vec![0; 10]).slice(4..8).unwrap();
        let (start, end) = (3, 2);
        assert!(part.slice(start..end).is_none());
        assert!(part.slice(0..5).is_none());
        assert!(part.slice(usize::MAX..usize::MAX).is_none());
        assert_eq!(part.slice(4..4).map(|empty| empty.len()), Some(0));
    }
}
