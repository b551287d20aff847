//! Memory of a process, for tests.

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::memory::{Memory, Part};

/// A process, piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Process {
    pub(crate) pieces: BTreeMap<u64, Vec<u8>>,
    pub(crate) reads: Cell<usize>,
}

impl Memory for Process {
    fn read(&self, parts: &[Part], into: &mut [u8]) -> usize {
        self.reads.set(self.reads.get() + 1);
        let mut len = 0;
        for part in parts {
            let Some((start, bytes)) = self.pieces.range(..=part.address).next_back() else {
                break;
            };
            let from = (part.address - start) as usize;
            // As the kernel does it: what is there of the part that ends somewhere is read.
            let Some(found) = bytes.get(from..bytes.len().min(from + part.len)) else { break };
            into[len..len + found.len()].copy_from_slice(found);
            len += found.len();
            if found.len() < part.len {
                break;
            }
        }
        len
    }
}

impl Process {
    pub(crate) fn piece(&mut self, at: u64, len: usize) {
        self.pieces.insert(at, vec![0; len]);
    }

    pub(crate) fn put(&mut self, at: u64, value: u64) {
        let (start, bytes) = self.pieces.range_mut(..=at).next_back().unwrap();
        let from = (at - start) as usize;
        bytes[from..from + 8].copy_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn put_byte(&mut self, at: u64, value: u8) {
        let (start, bytes) = self.pieces.range_mut(..=at).next_back().unwrap();
        bytes[(at - start) as usize] = value;
    }
}

/// Memory in which every word may be anything, most of it a place in it.
pub(crate) struct Noise {
    last: Cell<u64>,
    often: u64,
    places: u64,
}

impl Noise {
    /// One of so many, with a number that is often there, and places from there on.
    pub(crate) fn of(seed: u64, [often, places]: [u64; 2]) -> Noise {
        Noise { last: Cell::new(seed * 7919 + 1), often, places }
    }
}

impl Memory for Noise {
    fn read(&self, parts: &[Part], into: &mut [u8]) -> usize {
        let len: usize = parts.iter().map(|part| part.len).sum();
        for to in into[..len].chunks_mut(8) {
            let next = self.last.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            self.last.set(next);
            let word = match next >> 61 {
                0 => 0,
                1 => next,
                2 => self.often,
                3 => u64::MAX - (next >> 50),
                _ => self.places + (next >> 40) % 0x4000,
            };
            to.copy_from_slice(&word.to_le_bytes()[..to.len()]);
        }
        len
    }
}
