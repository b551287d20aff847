//! Bytes from files and processes may be anything: walks end, and nothing panics.

use flame_image::Section;
use flame_profile::{SharedBytes, StackEnd};

use crate::StackLimit;
use crate::testing::{
    AARCH64, BIAS, MAIN, SP, START, Sample, TESTED, X86_64, X86_64_SIGNAL, debug_section,
};

const RBP: u8 = 6;
const RSP: u8 = 7;
const RIP: u8 = 16;

const PC: u64 = BIAS + TESTED + 0x10;
const WORDS: [u64; 4] = [BIAS + MAIN + 0x20, 0, 0, BIAS + START + 0x30];

/// CFA=rsp+8; rbp=[rbp+0] (breg6 0)
const ROWS: [u8; 5] = [0x10, 6, 2, 0x76, 0];

fn cut(section: &Option<Section>, len: usize) -> Option<Section> {
    let section = section.as_ref()?;
    Some(Section { address: section.address, bytes: section.bytes.slice(0..len)? })
}

#[test]
fn tables_cut_anywhere_give_a_true_prefix_of_the_stack() {
    let registers = [(RSP, SP), (RBP, SP), (RIP, PC)];
    let mut sample = Sample::of(X86_64, &ROWS, &registers, &WORDS);
    let whole = sample.sections.clone();
    let (all, end) = sample.walk();
    assert_eq!((all.len(), end), (3, StackEnd::Root));
    for len in 0..whole.eh_frame.as_ref().map_or(0, |section| section.bytes.len()) {
        for with_table in [true, false] {
            sample.sections.eh_frame = cut(&whole.eh_frame, len);
            sample.sections.eh_frame_hdr = whole.eh_frame_hdr.clone().filter(|_| with_table);
            let (frames, _) = sample.walk();
            assert!(all.starts_with(&frames), "cut at {len}: {frames:?}");
        }
    }
}

#[test]
fn a_search_table_cut_anywhere_loses_nothing_that_it_still_names() {
    let registers = [(RSP, SP), (RBP, SP), (RIP, PC)];
    let mut sample = Sample::of(X86_64, &ROWS, &registers, &WORDS);
    let whole = sample.sections.eh_frame_hdr.clone();
    // 12 bytes of header, 8 for each function.
    for len in 0..36 {
        sample.sections.eh_frame_hdr = cut(&whole, len);
        let (frames, end) = sample.walk();
        let expect = match len {
            // Without a usable table an index takes its place.
            0..20 => (3, StackEnd::Root),
            20..28 => (2, StackEnd::NoUnwindInfo),
            _ => (3, StackEnd::NoUnwindInfo),
        };
        assert_eq!((frames.len(), end), expect, "cut at {len}");
    }
}

#[test]
fn a_stack_cut_anywhere_loses_its_outer_frames_only() {
    let registers = [(RSP, SP), (RIP, PC)];
    let mut sample = Sample::of(X86_64, &[], &registers, &WORDS);
    sample.limit = StackLimit::CopyFull;
    for len in 0..WORDS.len() {
        sample.words = &WORDS[..len];
        let (frames, end) = sample.walk();
        let expect = match len {
            0 => (1, StackEnd::NotRecorded),
            _ => (2, StackEnd::CopyTooShort),
        };
        assert_eq!((frames.len(), end), expect, "{len} words");
    }
}

/// Marsaglia's xorshift64: the same numbers in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number that is likely to lead on: an address of code or stack, or something small.
    fn word(&mut self) -> u64 {
        match self.next() % 8 {
            0 | 1 => SP + self.next() % 256,
            2..5 => BIAS + TESTED + self.next() % 0x2100,
            5 => self.next() % 64,
            6 => u64::MAX - self.next() % 64,
            _ => self.next(),
        }
    }

    fn bytes(&mut self, len: u64) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }

    /// The bytes with some of them changed.
    fn damage(&mut self, section: &mut Section) {
        let mut bytes = section.bytes.to_vec();
        for _ in 0..self.next() % 4 {
            let index = self.next() as usize % bytes.len();
            bytes[index] = self.next() as u8;
        }
        section.bytes = SharedBytes::from(bytes);
    }
}

#[test]
fn random_tables_registers_and_stacks_are_walked_to_an_end() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut ends = std::collections::BTreeSet::new();
    for round in 0..20_000 {
        let len = random.next() % 24;
        let rows = random.bytes(len);
        let count = if round % 2 == 0 { 17 } else { 33 };
        let mut registers: Vec<(u8, u64)> = (0..count).map(|n| (n, random.word())).collect();
        let (cie, sp, pc) = match round % 4 {
            0 => (X86_64, RSP, RIP),
            2 => (X86_64_SIGNAL, RSP, RIP),
            _ => (AARCH64, 31, 32),
        };
        registers.push((sp, SP));
        registers.push((pc, PC));
        let words: Vec<u64> = (0..32).map(|_| random.word()).collect();
        let mut sample = Sample::of(cie, &rows, &registers, &words);
        sample.limit = if round % 3 == 0 { StackLimit::CopyFull } else { StackLimit::StackEnded };
        if let Some(section) = &mut sample.sections.eh_frame {
            random.damage(section);
        }
        if let Some(section) = &mut sample.sections.eh_frame_hdr {
            random.damage(section);
        }
        if round % 5 == 0 {
            let mut section = debug_section(TESTED, &rows);
            random.damage(&mut section);
            sample.sections.eh_frame = None;
            sample.sections.debug_frame = Some(section);
        }
        let (frames, end) = sample.walk();
        assert!((1..=sample.frame_limit).contains(&frames.len()), "round {round}");
        ends.insert(end);
    }
    // All ends but NotRecorded and those of coroutines were met, so the bytes were not all refused at the door.
    let met: Vec<String> = ends.iter().map(ToString::to_string).collect();
    assert_eq!(met.len(), 6, "{met:?}");
}
