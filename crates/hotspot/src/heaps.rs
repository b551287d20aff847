//! Which piece of code an address is in: the VM's heaps of code map segments to the starts of blocks.

use crate::layout::Layout;
use crate::memory::{Memory, size, word};

/// More heaps than there are: at most three, and one for each further kind of code.
const MOST_HEAPS: u32 = 16;

/// How much of a map of segments is looked through for the start of a block: a byte a segment.
const LONGEST_WAY: u64 = 16 << 10;

/// How many steps lead to the start of a block at most.
const MOST_STEPS: u32 = 1 << 14;

/// In the map, a segment that is free.
const FREE: u8 = 0xff;

/// A heap of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heap {
    low: u64,
    high: u64,
    map_low: u64,
    map_high: u64,
    /// A segment has two to the power of this many bytes.
    log_segment: u32,
}

/// The heaps of a VM, as far as they reach now.
pub(crate) fn read(layout: &Layout, memory: &dyn Memory) -> Option<Vec<Heap>> {
    let of = &layout.heaps;
    let mut pointer = [0; 8];
    let mut list = [0; 64];
    let at = memory.read(of.list, &mut pointer).then(|| u64::from_le_bytes(pointer))?;
    if !memory.read(at, &mut list) {
        return None;
    }
    let len = size(&list, of.list_len).filter(|len| *len <= MOST_HEAPS)?;
    let data = word(&list, of.list_data)?;
    let last = [of.low, of.high, of.map_low, of.map_high, of.segment].into_iter().max()?;
    let mut bytes = vec![0; last as usize + 8];
    let mut heaps = Vec::new();
    for number in 0..u64::from(len) {
        if !memory.read(data.checked_add(number * 8)?, &mut pointer) {
            return None;
        }
        if !memory.read(u64::from_le_bytes(pointer), &mut bytes) {
            return None;
        }
        let heap = Heap {
            low: word(&bytes, of.low)?,
            high: word(&bytes, of.high)?,
            map_low: word(&bytes, of.map_low)?,
            map_high: word(&bytes, of.map_high)?,
            log_segment: size(&bytes, of.segment).filter(|log| (3..=16).contains(log))?,
        };
        if heap.low <= heap.high && heap.map_low <= heap.map_high {
            heaps.push(heap);
        }
    }
    Some(heaps)
}

/// The range that all heaps are and will be in.
pub(crate) fn bounds(layout: &Layout, memory: &dyn Memory) -> Option<(u64, u64)> {
    let mut bounds = [0; 2];
    for (bound, at) in bounds.iter_mut().zip(layout.heaps.bounds) {
        let mut bytes = [0; 8];
        if !memory.read(at, &mut bytes) {
            return None;
        }
        *bound = u64::from_le_bytes(bytes);
    }
    (bounds[0] < bounds[1]).then_some((bounds[0], bounds[1]))
}

impl Heap {
    /// Whether an address is in it.
    pub(crate) fn has(&self, address: u64) -> bool {
        (self.low..self.high).contains(&address)
    }

    /// Where the piece of code begins whose block has that address; `None` if no block in use has it.
    pub(crate) fn find(&self, address: u64, layout: &Layout, memory: &dyn Memory) -> Option<u64> {
        let segment = address.checked_sub(self.low)? >> self.log_segment;
        let last = self.map_low.checked_add(segment).filter(|at| *at < self.map_high)?;
        let first = last.saturating_sub(LONGEST_WAY).max(self.map_low);
        let mut map = vec![0; usize::try_from(last - first).ok()? + 1];
        if !memory.read(first, &mut map) {
            return None;
        }
        // Each byte says how many segments to go back, or that the block begins here.
        let mut at = map.len() - 1;
        for _ in 0..MOST_STEPS {
            match *map.get(at)? {
                FREE => return None,
                0 => {
                    let segment = (first - self.map_low).checked_add(at as u64)?;
                    let block = self.low.checked_add(segment << self.log_segment)?;
                    return self.in_use(block, layout, memory);
                }
                back => at = at.checked_sub(usize::from(back))?,
            }
        }
        None
    }

    fn in_use(&self, block: u64, layout: &Layout, memory: &dyn Memory) -> Option<u64> {
        let mut used = [0];
        let is_read = memory.read(block.checked_add(layout.heaps.used.into())?, &mut used);
        (is_read && used == [1]).then(|| block.saturating_add(layout.heaps.header.into()))
    }
}
