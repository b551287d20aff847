//! Code that the kernel made or removed while it ran: PERF_RECORD_KSYMBOL (Linux 5.1).
//!
//! The records come for events whose attributes ask for them (`ksymbol`). Source:
//! perf_event_open(2), `struct perf_record_ksymbol`.

use flame_profile::{ByteLen, ProcessAddress};

use linux_perf_event_reader::Endianness;

use crate::decode::RecordBytes;
use crate::fields::Fields;

/// The record's number.
pub(crate) const RECORD_TYPE: u32 = 17;

/// Address, length, type and flags stand before the name.
const NAME_AT: usize = 16;

const TYPE_BPF: u16 = 1;
const FLAG_UNREGISTER: u16 = 1;

/// A function that appeared in the kernel or is about to vanish.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KernelSymbolEvent {
    /// Its first address.
    pub start: ProcessAddress,
    /// How long its code is.
    pub len: ByteLen,
    /// Its name as /proc/kallsyms has it; `bpf_prog_TAG_NAME` for a BPF program.
    pub name: Vec<u8>,
    /// Whether it is BPF code; if not, code that the kernel itself made, such as a trampoline.
    pub is_bpf: bool,
    /// Whether it is removed rather than added.
    pub is_removed: bool,
}

impl KernelSymbolEvent {
    /// The event in the body of a record; `None` for one that is cut short.
    ///
    /// The last `trailer_len` bytes say who and when.
    pub(crate) fn parse(
        record: &RecordBytes<'_>,
        trailer_len: u8,
        endian: Endianness,
    ) -> Option<KernelSymbolEvent> {
        let body = [record.head, record.tail].concat();
        let fields = body.get(..body.len().checked_sub(usize::from(trailer_len))?)?;
        let name = fields.get(NAME_AT..)?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or(name);
        let mut numbers = Fields::new(fields, endian);
        let (start, len) = (numbers.u64()?, numbers.u32()?);
        let (kind, flags) = (numbers.u16()?, numbers.u16()?);
        Some(KernelSymbolEvent {
            start: ProcessAddress(start),
            len: ByteLen(len.into()),
            name: name.to_vec(),
            is_bpf: kind == TYPE_BPF,
            is_removed: flags & FLAG_UNREGISTER != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What every record of flame's ends with: pid/tid, time, cpu, identifier.
    const TRAILER_LEN: usize = 32;

    /// A record of a BPF program of 4 KiB that is loaded, with the trailer.
    fn body() -> Vec<u8> {
        let mut body = 0xffff_ffff_c0a0_1000_u64.to_le_bytes().to_vec();
        body.extend(4096_u32.to_le_bytes());
        body.extend([1, 0, 0, 0]);
        body.extend(b"bpf_prog_6deef7357e7b4530_loop\0\0");
        body.extend([7; TRAILER_LEN]);
        body
    }

    fn parse(head: &[u8], tail: &[u8]) -> Option<KernelSymbolEvent> {
        let record = RecordBytes { record_type: RECORD_TYPE, misc: 0, head, tail };
        KernelSymbolEvent::parse(&record, TRAILER_LEN as u8, Endianness::LittleEndian)
    }

    #[test]
    fn a_loaded_program_has_its_name_and_range_wherever_the_ring_ends() {
        let body = body();
        let expect = KernelSymbolEvent {
            start: ProcessAddress(0xffff_ffff_c0a0_1000),
            len: ByteLen(4096),
            name: b"bpf_prog_6deef7357e7b4530_loop".to_vec(),
            is_bpf: true,
            is_removed: false,
        };
        for cut in 0..=body.len() {
            assert_eq!(parse(&body[..cut], &body[cut..]).as_ref(), Some(&expect), "{cut}");
        }
    }

    #[test]
    fn removal_and_other_code_are_told_apart() {
        let mut body = body();
        (body[12], body[14]) = (2, 1);
        let event = parse(&body, &[]).unwrap();
        assert_eq!((event.is_bpf, event.is_removed), (false, true));
    }

    #[test]
    fn a_record_that_ends_before_its_name_is_none() {
        let body = body();
        for len in 0..NAME_AT + TRAILER_LEN {
            assert_eq!(parse(&body[..len], &[]), None, "{len}");
        }
    }
}
