//! Call stacks as a CPU's registers of last branches have them (`perf record --call-graph lbr`).
//!
//! ```text
//!   A calls B, B calls C, and the sample is taken in C:
//!   number, [index], from B to C, flags, from A to B, flags
//! ```
//!
//! Source: PERF_SAMPLE_BRANCH_STACK in perf_event_open(2).

use flame_profile::ProcessAddress;
use linux_perf_event_reader::{BranchSampleFormat, RecordParseInfo, SampleFormat};

use super::{RecordBytes, RecordLayout, start_of_chain};
use crate::addresses::Addresses;
use crate::fields::Fields;

impl RecordLayout {
    /// The user's frames of a sample whose event had calls kept in registers: where it was taken, then the
    /// calls, innermost first, as the return addresses behind them. `None` of other events, and where
    /// nothing was kept: the kernel follows frame pointers as well.
    pub(super) fn branch_chain(
        &self,
        record: &RecordBytes<'_>,
        chain: &Addresses<'_>,
    ) -> Option<Addresses<'static>> {
        let RecordParseInfo { sample_format: format, endian, .. } = self.parse_info;
        let branches = self.parse_info.branch_sample_format;
        let is_kept = format.contains(SampleFormat::BRANCH_STACK)
            && branches.contains(BranchSampleFormat::CALL_STACK);
        if !is_kept || !record.tail.is_empty() {
            return None;
        }
        let counts = self.counts.map_or(Some(0), |counts| counts.len(record.head, endian))?;
        let start = start_of_chain(format).checked_add(counts)?;
        let mut fields = Fields::new(record.head.get(start..)?, endian);
        if format.contains(SampleFormat::CALLCHAIN) {
            let len = usize::try_from(fields.u64()?).ok()?;
            fields.bytes(len.checked_mul(8)?)?;
        }
        if format.contains(SampleFormat::RAW) {
            let len = usize::try_from(fields.u32()?).ok()?;
            fields.bytes(len)?;
        }
        let number = fields.u64()?;
        if branches.contains(BranchSampleFormat::HW_INDEX) {
            fields.u64()?;
        }
        let mut first_target = None;
        let mut calls = Vec::new();
        for _ in 0..number {
            let (from, to, _flags) = (fields.u64()?, fields.u64()?, fields.u64()?);
            first_target.get_or_insert(to);
            calls.push(from.saturating_add(1));
        }
        // A chain of frame pointers is right about its first frame.
        let first = chain.iter().next().map(|address| address.0).or(first_target);
        first_target?;
        Some(first.into_iter().chain(calls).map(ProcessAddress).collect())
    }
}

#[cfg(test)]
mod tests {
    use linux_perf_event_reader::Endianness;

    use crate::{Attributes, EventKind, RecordBytes};

    const CALL_STACK: u64 = 1 << 11;
    const HW_INDEX: u64 = 1 << 17;
    const USER: u64 = -512i64 as u64;
    const KERNEL: u64 = -128i64 as u64;

    /// The kernel's and the user's frames of a sample with IP, TID, TIME, CALLCHAIN, PERIOD and branches.
    fn decode(branch_flags: u64, chain: &[u64], branches: &[u64], big: bool) -> [Vec<u64>; 2] {
        let endian = if big { Endianness::BigEndian } else { Endianness::LittleEndian };
        let word = |word: &u64| if big { word.to_be_bytes() } else { word.to_le_bytes() };
        let half = |half: u32| if big { half.to_be_bytes() } else { half.to_le_bytes() };
        let mut attributes = [half(1), half(80)].concat();
        let sample_type = 0x1 | 0x2 | 0x4 | 0x20 | 0x100 | 0x800;
        let rest = [0, 1000, sample_type, 0, 0, 0, 0, 0, branch_flags];
        attributes.extend(rest.iter().flat_map(word));
        let layout = Attributes::parse(&attributes, endian).unwrap().layout(endian);
        let mut body = vec![0x5000, 0, 9_000, 12, chain.len() as u64];
        body.extend(chain.iter().chain(branches));
        let body: Vec<u8> = body.iter().flat_map(word).collect();
        for len in 0..body.len() {
            let record = RecordBytes { record_type: 9, misc: 2, head: &body[..len], tail: &[] };
            assert!(layout.decode(&record).is_err(), "{len}");
        }
        let record = RecordBytes { record_type: 9, misc: 2, head: &body, tail: &[] };
        let EventKind::Sample(sample) = layout.decode(&record).unwrap().kind else {
            panic!("no sample")
        };
        [sample.kernel_chain, sample.user_chain]
            .map(|chain| chain.iter().map(|address| address.0).collect())
    }

    #[test]
    fn calls_that_were_kept_in_registers_are_the_users_frames() {
        let calls = [0x4010, 0x5000, 0, 0x3020, 0x4000, 0, 0x2030, 0x3000, 0];
        let with = |head: &[u64]| [head, &calls].concat();
        for big in [false, true] {
            // The sample was taken at 0x5008; frame pointers led astray from there on.
            let chain = [KERNEL, 0xffff_ffff_8000_0000, USER, 0x5008, 0x17];
            let expect = [vec![0xffff_ffff_8000_0000], vec![0x5008, 0x4011, 0x3021, 0x2031]];
            assert_eq!(decode(CALL_STACK, &chain, &with(&[3]), big), expect);
            assert_eq!(decode(CALL_STACK | HW_INDEX, &chain, &with(&[3, 77]), big), expect);
            // Without a user part, the innermost function is known by its start.
            let expect = [vec![], vec![0x5000, 0x4011, 0x3021, 0x2031]];
            assert_eq!(decode(CALL_STACK, &[], &with(&[3]), big), expect);
            // Nothing was kept, or not calls but all branches (`perf record -b`).
            let expect = [vec![0xffff_ffff_8000_0000], vec![0x5008, 0x17]];
            assert_eq!(decode(CALL_STACK, &chain, &[0], big), expect);
            assert_eq!(decode(0, &chain, &with(&[3]), big), expect);
        }
    }
}
