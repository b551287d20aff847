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

    /// The number of the thread that it is read for, in the thread's own PID namespace; `None` = that is not known.
    fn own_number(&self) -> Option<u32> {
        None
    }

    /// Whether all of one part could be read.
    fn fill(&self, address: u64, into: &mut [u8]) -> bool {
        let part = Part { address, len: into.len() };
        self.read(&[part], into) == part.len
    }
}

/// How many parts are read at once.
pub(crate) const BATCH: usize = 64;

/// How many parts may be missing before the rest is not asked for: each takes a reading.
const MOST_MISSING: usize = 32;

/// Reads so many bytes for each item that has an address other than 0, through a buffer for [`BATCH`] of
/// them; those that cannot be read are passed over.
pub(crate) fn read_each<T>(
    memory: &dyn Memory,
    items: &mut [T],
    (len, buffer): (usize, &mut [u8]),
    address: impl Fn(&T) -> u64,
    mut found: impl FnMut(&mut T, &[u8]),
) {
    let (mut from, mut missing) = (0, 0);
    while missing < MOST_MISSING {
        let (mut parts, mut places) = ([Part::default(); BATCH], [0; BATCH]);
        let wanted = items.iter().enumerate().skip(from).filter(|(_, item)| address(item) != 0);
        let mut count = 0;
        for ((part, to), (place, item)) in parts.iter_mut().zip(&mut places).zip(wanted) {
            (*part, *to) = (Part { address: address(item), len }, place);
            count += 1;
        }
        let places = places.get(..count).unwrap_or_default();
        let Some(last) = places.last() else { return };
        let read = memory.read(parts.get(..count).unwrap_or_default(), buffer) / len.max(1);
        for (bytes, place) in buffer.chunks_exact(len.max(1)).zip(places).take(read) {
            if let Some(item) = items.get_mut(*place) {
                found(item, bytes);
            }
        }
        missing += usize::from(read < count);
        from = places.get(read).unwrap_or(last) + 1;
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
