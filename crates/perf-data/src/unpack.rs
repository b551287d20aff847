//! Records that perf packed with zstd (`perf record -z`), unpacked as they come.
//!
//! All packed records of a file are parts of one zstd frame, which has no end: perf flushes it and
//! leaves it open. Source: RFC 8878 for frames and blocks; tools/perf/util/zstd.c for what is
//! written.

use std::fmt;

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The longest header of a frame.
const MAX_FRAME_HEADER: usize = 18;
const BLOCK_HEADER: usize = 3;
const RLE: u32 = 1;
/// The end of a frame: a last block with nothing in it.
const LAST_BLOCK: [u8; BLOCK_HEADER] = [1, 0, 0];
/// How far back a frame may refer; perf's go back 8 MiB at most.
const MAX_WINDOW: u64 = 64 << 20;

/// Unpacks one frame.
pub(crate) struct Unpacker {
    decoder: FrameDecoder,
    has_begun: bool,
    /// What is not a whole block yet.
    packed: Vec<u8>,
    /// Whether nothing more can be unpacked.
    is_broken: bool,
}

impl fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unpacker").field("is_broken", &self.is_broken).finish_non_exhaustive()
    }
}

impl Unpacker {
    pub(crate) fn new() -> Unpacker {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW);
        Unpacker { decoder, has_begun: false, packed: Vec::new(), is_broken: false }
    }

    /// Whether what was packed breaks the rules.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Takes in packed bytes.
    pub(crate) fn push(&mut self, packed: &[u8]) {
        if !self.is_broken {
            self.packed.extend_from_slice(packed);
        }
    }

    /// Unpacks the next block; what is to be had then, which may be nothing: the decoder keeps as
    /// much as later blocks may refer to. `None` when there is no whole block.
    pub(crate) fn unpack(&mut self) -> Option<Vec<u8>> {
        if self.is_broken || !self.begin() {
            return None;
        }
        let header = self.packed.first_chunk::<BLOCK_HEADER>()?;
        let header = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        let len = if header >> 1 & 3 == RLE { 1 } else { (header >> 3) as usize };
        let end = BLOCK_HEADER + len;
        let block = self.packed.get(..end)?;
        let decoded = self.decoder.decode_blocks(block, BlockDecodingStrategy::UptoBlocks(1));
        self.is_broken = decoded.is_err();
        self.packed.drain(..end);
        if header & 1 == 1 {
            // Another frame may follow; the checksum of this one is of no interest.
            self.has_begun = false;
        }
        Some(self.decoder.collect().unwrap_or_default())
    }

    /// What the decoder has kept, when nothing more comes.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        if self.is_broken || !self.has_begun {
            return Vec::new();
        }
        let ended = self.decoder.decode_blocks(&LAST_BLOCK[..], BlockDecodingStrategy::All);
        self.is_broken = ended.is_err();
        self.has_begun = false;
        self.decoder.collect().unwrap_or_default()
    }

    /// Reads the header of a frame, where that is next; whether blocks are.
    fn begin(&mut self) -> bool {
        if self.has_begun {
            return true;
        }
        if self.packed.is_empty() {
            return false;
        }
        let mut rest = &self.packed[..];
        match self.decoder.reset(&mut rest) {
            Ok(()) => {
                let len = self.packed.len() - rest.len();
                self.packed.drain(..len);
                self.has_begun = true;
            }
            Err(_) => self.is_broken = self.packed.len() >= MAX_FRAME_HEADER,
        }
        self.has_begun
    }
}
