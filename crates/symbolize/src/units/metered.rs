//! Turns bytes of DWARF into ones that can be read only so often: what addr2line is given.
//!
//! addr2line has no bound on the work that a file can ask for, and it recurses as deep as inlined calls
//! are nested. Both go with what it reads, so the reader counts, and refuses once a unit has had what
//! its size is worth, or the stack has grown too far.

use std::borrow::Cow;
use std::cell::Cell;

use gimli::{EndianSlice, Error, Reader as _, ReaderOffsetId, Result, RunTimeEndian};

use super::map::CodeRanges;
use crate::debug_info::Reader;
use crate::demangle::MAX_NAME_LEN;

/// Bytes that are searched or copied in the time of one read.
const BYTES_A_STEP: usize = 32;

/// How far the stack may grow, in bytes, from where the reading of a unit begins. A call that is nested
/// in another one takes some hundred bytes; compilers stay below 100 of them.
const MAX_STACK: usize = 1 << 20;

/// What may still be read of some sections, by one thread.
#[derive(Debug)]
pub(super) struct Meter<'u> {
    most: usize,
    left: Cell<usize>,
    /// The lowest address that the stack may reach.
    lowest: usize,
    code: &'u CodeRanges,
    /// Whether addresses count only where there is code.
    only_code: Cell<bool>,
}

/// Bytes of DWARF under a meter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metered<'u> {
    bytes: Reader<'u>,
    meter: &'u Meter<'u>,
}

impl<'u> Meter<'u> {
    /// This many reads, from here on the stack.
    pub(super) fn new(reads: usize, code: &'u CodeRanges) -> Meter<'u> {
        let lowest = stack_address().saturating_sub(MAX_STACK);
        Meter { most: reads, left: Cell::new(reads), lowest, code, only_code: Cell::new(false) }
    }

    /// From now on addresses outside of code are read as those of code that the linker dropped.
    /// Many linkers leave 0 there, where the image may have other code.
    pub(super) fn drop_other_addresses(&self) {
        self.only_code.set(true);
    }

    /// How many reads there were.
    pub(super) fn spent(&self) -> usize {
        self.most - self.left.get()
    }

    fn spend(&self, steps: usize) -> Option<()> {
        self.left.set(self.left.get().checked_sub(steps)?);
        (stack_address() >= self.lowest).then_some(())
    }
}

impl<'u> Metered<'u> {
    pub(super) fn new(bytes: Reader<'u>, meter: &'u Meter<'u>) -> Metered<'u> {
        Metered { bytes, meter }
    }

    /// One more read, which goes over this many bytes.
    #[inline]
    fn count(&self, bytes: usize) -> Result<()> {
        let spent = self.meter.spend(1 + bytes / BYTES_A_STEP);
        spent.ok_or(Error::UnexpectedEof(self.offset_id()))
    }

    fn text(&self) -> Result<&'u [u8]> {
        let text = self.bytes.slice();
        let text = &text[..text.len().min(MAX_NAME_LEN)];
        self.count(text.len())?;
        Ok(text)
    }
}

/// About where the stack of this thread ends now. It grows downwards on all that flame is built for.
#[inline]
fn stack_address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(&here).addr()
}

impl gimli::Reader for Metered<'_> {
    type Endian = RunTimeEndian;
    type Offset = usize;

    fn endian(&self) -> RunTimeEndian {
        self.bytes.endian()
    }

    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn empty(&mut self) {
        self.bytes.empty();
    }

    fn truncate(&mut self, len: usize) -> Result<()> {
        self.bytes.truncate(len)
    }

    fn offset_from(&self, base: &Self) -> usize {
        self.bytes.offset_from(base.bytes)
    }

    fn offset_id(&self) -> ReaderOffsetId {
        self.bytes.offset_id()
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        self.bytes.lookup_offset_id(id)
    }

    fn find(&self, byte: u8) -> Result<usize> {
        let found = EndianSlice::find(&self.bytes, byte);
        self.count(found.unwrap_or(self.bytes.len()))?;
        found.ok_or(Error::UnexpectedEof(self.offset_id()))
    }

    fn skip(&mut self, len: usize) -> Result<()> {
        self.count(0)?;
        self.bytes.skip(len)
    }

    fn split(&mut self, len: usize) -> Result<Self> {
        self.count(0)?;
        Ok(Metered { bytes: self.bytes.split(len)?, meter: self.meter })
    }

    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        Ok(Cow::Borrowed(self.text()?))
    }

    fn to_string(&self) -> Result<Cow<'_, str>> {
        str::from_utf8(self.text()?).map(Cow::Borrowed).map_err(|_| Error::BadUtf8)
    }

    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        Ok(String::from_utf8_lossy(self.text()?))
    }

    fn read_slice(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.count(buffer.len())?;
        gimli::Reader::read_slice(&mut self.bytes, buffer)
    }

    // What is read most often costs one step and is read as it is without a meter.
    fn read_u8(&mut self) -> Result<u8> {
        self.count(0)?;
        self.bytes.read_u8()
    }

    fn read_uleb128(&mut self) -> Result<u64> {
        self.count(0)?;
        self.bytes.read_uleb128()
    }

    fn skip_leb128(&mut self) -> Result<()> {
        self.count(0)?;
        self.bytes.skip_leb128()
    }

    fn read_address(&mut self, size: u8) -> Result<u64> {
        self.count(0)?;
        let address = self.bytes.read_address(size)?;
        let counts = !self.meter.only_code.get() || self.meter.code.touches(address);
        Ok(if counts { address } else { u64::MAX >> (64 - 8 * u32::from(size)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_end_when_they_are_used_up() {
        let code = CodeRanges::default();
        let meter = Meter::new(5, &code);
        let mut reader = Metered::new(Reader::new(&[7; 200], RunTimeEndian::Little), &meter);
        assert_eq!(reader.read_u8(), Ok(7));
        assert_eq!(reader.clone().read_u16(), Ok(0x0707));
        assert_eq!(meter.spent(), 2);
        assert!(reader.to_slice().is_err(), "199 bytes cost 7 steps");
        assert!(reader.split(40).unwrap().to_slice().is_ok());
        assert_eq!(meter.spent(), 5);
        assert!(reader.read_u8().is_err() && reader.find(7).is_err() && reader.skip(1).is_err());
    }

    #[test]
    fn reads_end_where_the_stack_has_grown_too_far() {
        fn depth_of(mut reader: Metered<'_>, depth: usize) -> usize {
            let room = std::hint::black_box([depth as u8; 4096]);
            match reader.read_u8() {
                Ok(_) => depth_of(reader, depth + 1) + usize::from(room[7] == 255 && depth == 0),
                Err(_) => depth,
            }
        }
        let code = CodeRanges::default();
        let bytes = vec![7; 1 << 20];
        let look = move || {
            let meter = Meter::new(1 << 20, &code);
            depth_of(Metered::new(Reader::new(&bytes, RunTimeEndian::Little), &meter), 0)
        };
        let thread = std::thread::Builder::new().stack_size(8 * MAX_STACK).spawn(look).unwrap();
        let depth = thread.join().unwrap();
        assert!((50..=MAX_STACK / 4096).contains(&depth), "{depth}");
    }

    #[test]
    fn addresses_of_what_was_dropped_are_those_of_nothing() {
        let code = CodeRanges::one(0x1000..0x2000);
        let meter = Meter::new(100, &code);
        let bytes: Vec<u8> = [0_u64, 0x1000, 0x2000, 0x2001].map(u64::to_le_bytes).concat();
        let read = || {
            let mut reader = Metered::new(Reader::new(&bytes, RunTimeEndian::Little), &meter);
            [0; 4].map(|_| reader.read_address(8).unwrap())
        };
        assert_eq!(read(), [0, 0x1000, 0x2000, 0x2001]);
        meter.drop_other_addresses();
        assert_eq!(read(), [u64::MAX, 0x1000, 0x2000, u64::MAX]);
        let mut narrow = Metered::new(Reader::new(&[9; 4], RunTimeEndian::Little), &meter);
        assert_eq!(narrow.read_address(4), Ok(0xffff_ffff));
    }
}
