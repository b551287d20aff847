//! Memory of a VM, as whoever can read it gives it; and numbers in bytes of it.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

/// How much is read at once of what lies scattered, in bytes.
const BLOCK: usize = 16 << 10;

/// The same where less than that is there.
const PAGE: usize = 4 << 10;

/// How many blocks are kept at most.
const MOST_BLOCKS: usize = 1024;

/// Memory of a process.
pub trait Memory {
    /// Fills `into` with what stands at an address now; whether all of it could be read.
    fn read(&self, address: u64, into: &mut [u8]) -> bool;
}

/// Memory that was read a short while ago, block by block: what is needed of it lies close together.
pub(crate) struct Blocks<'m> {
    memory: &'m dyn Memory,
    read: &'m Kept,
}

/// What was read of a process.
#[derive(Debug, Default)]
pub(crate) struct Kept(RefCell<FxHashMap<u64, Box<[u8]>>>);

impl Kept {
    /// What stands there may have changed.
    pub(crate) fn clear(&self) {
        self.0.borrow_mut().clear();
    }

    /// How many bytes it takes here.
    pub(crate) fn size(&self) -> usize {
        self.0.borrow().len() * PAGE
    }
}

impl<'m> Blocks<'m> {
    pub(crate) fn new(memory: &'m dyn Memory, read: &'m Kept) -> Blocks<'m> {
        Blocks { memory, read }
    }

    /// Fills `into` with what stood at an address when its block was read first; whether it could be.
    pub(crate) fn fill(&self, address: u64, into: &mut [u8]) -> bool {
        let mut at = address;
        let mut rest = into;
        while !rest.is_empty() {
            let within = at % PAGE as u64;
            let start = at - within;
            let mut kept = self.read.0.borrow_mut();
            if !kept.contains_key(&start) {
                if kept.len() >= MOST_BLOCKS {
                    kept.clear();
                }
                if !self.load(at, &mut kept) {
                    return false;
                }
            }
            let Some(page) = kept.get(&start) else { return false };
            let within = usize::try_from(within).unwrap_or(PAGE);
            let Some(from) = page.get(within..) else { return false };
            let len = from.len().min(rest.len());
            rest[..len].copy_from_slice(&from[..len]);
            rest = &mut rest[len..];
            let Some(next) = at.checked_add(len as u64) else { return rest.is_empty() };
            at = next;
        }
        true
    }

    /// Reads the pages around an address: as many as one reading gets.
    fn load(&self, address: u64, kept: &mut FxHashMap<u64, Box<[u8]>>) -> bool {
        for len in [BLOCK, PAGE] {
            let start = address - address % len as u64;
            let mut bytes = vec![0; len];
            if self.memory.read(start, &mut bytes) {
                let pages = (start..).step_by(PAGE).zip(bytes.chunks_exact(PAGE));
                kept.extend(pages.map(|(start, page)| (start, page.into())));
                return true;
            }
        }
        false
    }

    /// The word of eight bytes at an address.
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.fill(address, &mut bytes).then(|| u64::from_le_bytes(bytes))
    }

    /// The word of four bytes at an address.
    pub(crate) fn half(&self, address: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.fill(address, &mut bytes).then(|| u32::from_le_bytes(bytes))
    }

    /// The word of two bytes at an address.
    pub(crate) fn short(&self, address: u64) -> Option<u16> {
        let mut bytes = [0; 2];
        self.fill(address, &mut bytes).then(|| u16::from_le_bytes(bytes))
    }

    /// The text at an address that ends with a zero byte, if it is no longer than `most` and has nothing
    /// but ASCII.
    pub(crate) fn text(&self, address: u64, most: usize) -> Option<String> {
        let mut text = Vec::new();
        let mut at = address;
        // A page at a time: what follows the text need not be there.
        while address != 0 && text.len() <= most {
            let in_page = PAGE - usize::try_from(at % PAGE as u64).ok()?;
            let start = text.len();
            text.resize(start + in_page.min(most + 1 - start), 0);
            if !self.fill(at, &mut text[start..]) {
                return None;
            }
            if let Some(end) = text[start..].iter().position(|byte| *byte == 0) {
                text.truncate(start + end);
                let is_shown = |byte: &u8| byte.is_ascii() && !byte.is_ascii_control();
                return text.iter().all(is_shown).then(|| String::from_utf8(text).ok())?;
            }
            at = at.checked_add(in_page as u64)?;
        }
        None
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

/// The same, if it is not negative.
pub(crate) fn size(bytes: &[u8], at: u32) -> Option<u32> {
    half(bytes, at).filter(|number| !number.cast_signed().is_negative())
}

/// The word of two bytes there.
pub(crate) fn short(bytes: &[u8], at: u32) -> Option<u16> {
    let bytes = bytes.get(usize::try_from(at).ok()?..)?.first_chunk()?;
    Some(u16::from_le_bytes(*bytes))
}
