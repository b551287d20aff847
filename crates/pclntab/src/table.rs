//! A whole table: which function an address is in, and how large its frame is there.

use std::cmp::Ordering as Order;
use std::sync::atomic::{AtomicU64, Ordering};

use flame_profile::{ImageAddress, SharedBytes};

use crate::bytes::{text_at, u32_at, u64_at};
use crate::function::{GoFunction, Record};
use crate::header::{Header, Layout};
use crate::values::{Steps, value_at};

/// How often a function changes the size of its frame at most: real ones do so some ten times.
const MAX_SIZE_STEPS: u64 = 4096;

/// How many steps looking up lines may take in all, per byte of the table, and for small ones. Each
/// address takes some hundred.
const STEPS_PER_BYTE: u64 = 64;
const MIN_STEPS: u64 = 16 << 20;

/// The largest frame that is believed, in bytes. Go's own stacks have 1 GiB at most.
const MAX_FRAME: i32 = 1 << 30;

/// The table of an image.
#[derive(Debug)]
pub struct GoTable {
    pub(crate) bytes: SharedBytes,
    pub(crate) header: Header,
    /// Where the code starts.
    text: u64,
    pub(crate) inlined: Option<InlineTrees>,
    /// How many steps may still be taken to look up lines.
    steps: AtomicU64,
}

/// Where the calls that were inlined are written down, outside of the table itself.
#[derive(Clone, Debug)]
pub struct InlineTrees {
    /// Bytes of the image.
    pub bytes: SharedBytes,
    /// Where they begin in the image.
    pub address: ImageAddress,
    /// What the functions' own places count from: `go.func.*`, or 0 for Go 1.16 and 1.17.
    pub base: u64,
}

impl GoTable {
    /// The table in these bytes; what follows it does no harm. `text` is where the image's Go code
    /// starts; the table's own word is used where it is not 0.
    ///
    /// `None` for bytes that are none, or of a version of Go that is not known.
    pub fn parse(bytes: SharedBytes, text: u64) -> Option<GoTable> {
        let header = Header::parse(&bytes)?;
        let text = if header.text == 0 { text } else { header.text };
        let steps = (bytes.len() as u64).saturating_mul(STEPS_PER_BYTE).saturating_add(MIN_STEPS);
        Some(GoTable { bytes, header, text, inlined: None, steps: AtomicU64::new(steps) })
    }

    /// The same, with the calls that were inlined.
    #[must_use]
    pub fn with_inlined(self, inlined: InlineTrees) -> GoTable {
        GoTable { inlined: Some(inlined), ..self }
    }

    /// How many functions there are.
    pub fn len(&self) -> usize {
        self.header.functions
    }

    /// Whether there are none, which no table says of itself.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The function that covers an address.
    pub fn function(&self, address: ImageAddress) -> Option<GoFunction<'_>> {
        let (mut low, mut high) = (0, self.header.functions);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.entry(middle)?.0.cmp(&address.0) {
                Order::Less | Order::Equal => low = middle + 1,
                Order::Greater => high = middle,
            }
        }
        let (start, record) = self.entry(low.checked_sub(1)?)?;
        // One entry more than functions ends the list.
        let end = self.entry_address(low)?;
        if !(start..end).contains(&address.0) {
            return None;
        }
        let record = Record::parse(self.functions()?, record, self.header.layout)?;
        let name = self.name(record.name).unwrap_or_default();
        Some(GoFunction { start: ImageAddress(start), end: ImageAddress(end), name, record })
    }

    /// How many bytes of its frame a function has on the stack when the instruction at an address is
    /// about to run: from the stack pointer to the return address, or to the caller's frame where
    /// calls leave that in a register. `None` outside of its table.
    pub fn frame_size(&self, function: &GoFunction<'_>, address: ImageAddress) -> Option<u32> {
        let steps = self.steps_of(function.record.stack_sizes)?;
        let offset = address.0.checked_sub(function.start.0)?;
        let size = value_at(steps, offset, &mut { MAX_SIZE_STEPS })?;
        let is_plausible = (0..=MAX_FRAME).contains(&size) && size % 8 == 0;
        if is_plausible { u32::try_from(size).ok() } else { None }
    }

    /// The steps of the table of values at a place; 0 stands for no table.
    pub(crate) fn steps_of(&self, place: u32) -> Option<Steps<'_>> {
        let part = self.bytes.get(self.header.values..self.header.function_table)?;
        let bytes = part.get(usize::try_from(place).ok().filter(|place| *place > 0)?..)?;
        Some(Steps::new(bytes, self.header.quantum))
    }

    /// Takes steps for one lookup from what there is for all; what `look` leaves goes back.
    pub(crate) fn with_steps<T>(&self, look: impl FnOnce(&mut u64) -> T) -> T {
        let before = self.steps.load(Ordering::Relaxed);
        let mut left = before;
        let found = look(&mut left);
        let spent = before.saturating_sub(left);
        // Two threads at once may spend a little more than there was.
        let spend = |steps: u64| Some(steps.saturating_sub(spent));
        let _ = self.steps.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend);
        found
    }

    /// The name at a place in the part of the names.
    pub(crate) fn name(&self, place: u32) -> Option<&[u8]> {
        let names = self.bytes.get(self.header.names..self.header.units)?;
        text_at(names, usize::try_from(place).ok()?)
    }

    /// The part with the list of functions and their records.
    pub(crate) fn functions(&self) -> Option<&[u8]> {
        self.bytes.get(self.header.function_table..)
    }

    /// Where a function starts, and where its record is.
    fn entry(&self, number: usize) -> Option<(u64, usize)> {
        let at = number.checked_mul(self.header.entry_len())?;
        let record = match self.header.layout {
            Layout::Go116 => u64_at(self.functions()?, at.checked_add(8)?)?,
            Layout::Go118 | Layout::Go120 => u32_at(self.functions()?, at.checked_add(4)?)?.into(),
        };
        Some((self.entry_address(number)?, usize::try_from(record).ok()?))
    }

    fn entry_address(&self, number: usize) -> Option<u64> {
        let at = number.checked_mul(self.header.entry_len())?;
        match self.header.layout {
            Layout::Go116 => u64_at(self.functions()?, at),
            Layout::Go118 | Layout::Go120 => {
                self.text.checked_add(u32_at(self.functions()?, at)?.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::StackSwitch;
    use crate::testing::{Sample, TEXT, sample_table};

    #[test]
    fn functions_have_bounds_names_and_frames() {
        for layout in Sample::ALL {
            let table = sample_table(layout).parse();
            assert_eq!(table.len(), 4);
            let at = |offset| table.function(ImageAddress(TEXT + offset));
            let names = [0, 0x3f, 0x40, 0x60, 0x7f].map(|offset| at(offset).unwrap().name);
            let text = names.map(|name| std::str::from_utf8(name).unwrap());
            let outer = "main.outer";
            assert_eq!(text, [outer, outer, "main.leaf", "runtime.goexit", "runtime.systemstack"]);
            assert_eq!(at(0x41).unwrap().range(), ImageAddress(0x1040)..ImageAddress(0x1060));
            assert!(at(0x80).is_none() && table.function(ImageAddress(TEXT - 1)).is_none());
            let size = |offset| table.frame_size(&at(offset).unwrap(), ImageAddress(TEXT + offset));
            assert_eq!([size(0), size(3), size(4), size(0x3b)], [0, 0, 24, 24].map(Some));
            assert_eq!([size(0x3c), size(0x40)], [Some(0), Some(0)], "{layout:?}");
            let switches = [0, 0x60, 0x70].map(|offset| at(offset).unwrap().stack_switch());
            let expect = [StackSwitch::None, StackSwitch::Outermost, StackSwitch::Elsewhere];
            assert_eq!(switches, expect, "{layout:?}");
        }
    }

    #[test]
    fn a_table_cut_or_damaged_anywhere_gives_answers_or_none() {
        for layout in Sample::ALL {
            let whole = sample_table(layout);
            for at in 0..whole.bytes.len() {
                let mut damaged = whole.bytes.clone();
                damaged[at] ^= 0xff;
                for bytes in [whole.bytes[..at].to_vec(), damaged] {
                    let Some(table) = GoTable::parse(SharedBytes::from(bytes), TEXT) else {
                        continue;
                    };
                    let table = table.with_inlined(whole.inlined.clone());
                    for offset in (0..0x90).step_by(8) {
                        let address = ImageAddress(TEXT + offset);
                        table.frames(address, &mut Vec::new());
                        let function = table.function(address);
                        let _ = function.and_then(|found| table.frame_size(&found, address));
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_spent_on_lines_has_an_end() {
        let table = sample_table(Sample::Go120).parse();
        table.with_steps(|left| *left = 0);
        let mut frames = Vec::new();
        table.frames(ImageAddress(TEXT + 0x14), &mut frames);
        assert_eq!(frames.len(), 1, "the name of the function itself takes no steps");
        assert_eq!((frames[0].name, frames[0].line), (&b"main.outer"[..], None));
    }
}
