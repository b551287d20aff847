//! The interpreter's pieces of code: one for each instruction of the byte code, and some that enter methods.

use crate::blob::Blob;
use crate::layout::Layout;
use crate::memory::{Blocks, size, word};
use crate::x86_64::MakesFrame;

/// More pieces than there are.
const MOST: usize = 4096;

/// The longest description.
const LONGEST: usize = 100;

/// A piece of the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// It runs in a frame that is there already.
    Runs,
    /// It enters a method and makes its frame, in steps at these offsets from its beginning.
    Enters(u64, MakesFrame),
    /// It stands for a method and makes no frame.
    Instead,
}

/// All of them, by their start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Codelets(Vec<(u64, u64, Piece)>);

impl Codelets {
    /// Those of the interpreter.
    pub(crate) fn read(blob: &Blob, layout: &Layout, memory: &Blocks<'_>) -> Option<Codelets> {
        let of = &layout.interpreter;
        let queue = memory.word(of.queue)?;
        let buffer = memory.word(queue.checked_add(of.buffer.into())?)?;
        let len = u64::from(memory.half(queue.checked_add(of.buffer_len.into())?)?);
        let mut codelets = Codelets::default();
        let mut at = buffer;
        let end = buffer.checked_add(len)?.min(blob.code_begin + blob.code.len() as u64);
        while at < end && codelets.0.len() < MOST {
            let code = blob.code_at(at)?;
            let header = code.get(..of.header as usize)?;
            let size = u64::from(size(header, of.size)?);
            if size <= u64::from(of.header) {
                break;
            }
            let text = memory.text(word(header, of.description)?, LONGEST);
            let code = code.get(..usize::try_from(size).ok()?.min(code.len()))?;
            let piece = match text?.starts_with("method entry point") {
                false => Piece::Runs,
                true => MakesFrame::of(code).map_or(Piece::Instead, |made| Piece::Enters(at, made)),
            };
            codelets.0.push((at, at + size, piece));
            at += size;
        }
        Some(codelets)
    }

    /// The one that an address is in.
    pub(crate) fn at(&self, address: u64) -> Option<Piece> {
        let behind = self.0.partition_point(|(start, ..)| *start <= address);
        let (_, end, piece) = self.0.get(behind.checked_sub(1)?)?;
        (address < *end).then_some(*piece)
    }
}
