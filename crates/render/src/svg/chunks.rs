//! The boxes of a picture in chunks, which several threads can make.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::document::Picture;
use super::frames::Frames;
use crate::layout::Cell;

/// Boxes made in one go: text that stays in a core's own cache, and is written past buffers.
const CELLS: usize = 512;
/// Roughly the text of a box.
const BOX_LEN: usize = 256;

/// All boxes, in the order of the file.
pub(super) struct Chunks<'a> {
    chunks: Vec<Chunk<'a>>,
    /// For each graph what makes its boxes.
    frames: Vec<Frames<'a>>,
    /// The chunks that nobody works on.
    open: Mutex<Range<usize>>,
}

struct Chunk<'a> {
    pane: usize,
    cells: &'a [Cell],
    /// Where another thread than the writing one made it.
    text: OnceLock<String>,
}

impl<'a> Chunks<'a> {
    pub(super) fn of(picture: &Picture<'a>) -> Chunks<'a> {
        let panes = &picture.panes.list;
        let of_pane = |pane: usize| {
            let chunk = move |cells| Chunk { pane, cells, text: OnceLock::new() };
            panes[pane].cells.chunks(CELLS).map(chunk)
        };
        let chunks: Vec<Chunk<'a>> = (0..panes.len()).flat_map(of_pane).collect();
        let frames = (0..panes.len()).map(|pane| Frames::new(picture, pane)).collect();
        Chunks { open: Mutex::new(0..chunks.len()), chunks, frames }
    }

    /// Makes chunks, the last ones first, until nobody has to.
    pub(super) fn help(&self) {
        while let Some(at) = self.take(Range::next_back) {
            self.chunks[at].text.get_or_init(|| self.made(at));
        }
    }

    /// Writes all chunks; those that nobody has made until then are made here.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut text = String::new();
        let mut next = 0;
        while let Some(at) = self.take(Range::next) {
            text.clear();
            self.push(at, &mut text);
            out.write_all(text.as_bytes())?;
            next = at + 1;
        }
        for at in next..self.chunks.len() {
            // Waits for a thread that is at it.
            let text = self.chunks[at].text.get_or_init(|| self.made(at));
            out.write_all(text.as_bytes())?;
        }
        Ok(())
    }

    fn take(&self, end: fn(&mut Range<usize>) -> Option<usize>) -> Option<usize> {
        end(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn made(&self, at: usize) -> String {
        let mut text = String::with_capacity(self.chunks[at].cells.len() * BOX_LEN);
        self.push(at, &mut text);
        text
    }

    fn push(&self, at: usize, out: &mut String) {
        let Chunk { pane, cells, .. } = self.chunks[at];
        self.frames[pane].push(cells, out);
    }
}
