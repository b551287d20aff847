//! Memory of a process, as whoever can read it gives it; and numbers in bytes of it.

/// A piece of memory that is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Where it starts.
    pub address: u64,
    /// How many bytes.
    pub len: usize,
}

/// Memory of a process.
pub trait Memory {
    /// Reads parts, at most 64, one behind the other into `into`, until one of them cannot be read: how
    /// many bytes were read. What stands behind those is not to be used.
    fn read(&self, parts: &[Part], into: &mut [u8]) -> usize;

    /// Whether all of one part could be read.
    fn fill(&self, address: u64, into: &mut [u8]) -> bool {
        let part = Part { address, len: into.len() };
        self.read(&[part], into) == part.len
    }
}

/// The word of eight bytes there.
pub(crate) fn word(bytes: &[u8], at: u32) -> Option<u64> {
    let bytes = bytes.get(usize::try_from(at).ok()?..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

/// The word of four bytes there.
pub(crate) fn half(bytes: &[u8], at: u32) -> Option<u32> {
    let bytes = bytes.get(usize::try_from(at).ok()?..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

/// The byte there.
pub(crate) fn byte(bytes: &[u8], at: u32) -> Option<u8> {
    bytes.get(usize::try_from(at).ok()?).copied()
}

/// Pieces of memory that were read already.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window<'b> {
    pub(crate) start: u64,
    pub(crate) bytes: &'b [u8],
}

impl<'b> Window<'b> {
    /// So many bytes at an address, if all of them are there.
    pub(crate) fn get(&self, address: u64, len: usize) -> Option<&'b [u8]> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        self.bytes.get(at..at.checked_add(len)?)
    }
}
