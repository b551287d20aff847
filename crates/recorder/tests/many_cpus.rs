//! Rings of 128 CPUs, merged and summed up by one thread: nothing is lost, and how many samples a second that is.
//!
//! `cargo test --release -p flame-recorder --test many_cpus -- --nocapture` prints it; docs/perf-events.md says how many they were.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use flame_events::{
    Event, EventSource, Horizon, RecordBytes, RecordLayout, RecordQueue, SampleFields,
    drain_in_order,
};
use flame_profile::{ByteLen, ValueType};
use flame_recorder::{Absent, EVENT_VALUE, Options, Recorder, Stream};

const CPUS: u64 = 128;

/// A second at 999 Hz; less where nothing is optimized.
const SAMPLES_OF_A_CPU: u64 = if cfg!(debug_assertions) { 50 } else { 999 };

const PERIOD: u64 = 1_001_001;
const FRAMES: u64 = 40;
const STACKS: u64 = 4096;
const PROCESSES: u64 = 64;

/// PERF_RECORD_SAMPLE, of user code.
const SAMPLE: (u32, u16) = (9, 2);

/// What stands in a call chain before addresses of user code (PERF_CONTEXT_USER).
const USER: u64 = 0u64.wrapping_sub(512);

/// The ring of one CPU, with samples at a rhythm of its own.
struct Ring {
    cpu: u64,
    next: u64,
    record: Vec<u8>,
}

impl Ring {
    fn new(cpu: u64) -> Ring {
        let mut ring = Ring { cpu, next: 0, record: Vec::new() };
        ring.write();
        ring
    }

    fn write(&mut self) {
        let stack = stack_of(self.next * CPUS + self.cpu);
        let process = 1000 + stack % PROCESSES;
        let time = 1 + self.next * PERIOD + self.cpu * (PERIOD / CPUS);
        let address = |depth: u64| 0x40_0000 + depth * 4096 + (stack >> (depth / 4)) * 16;
        let head =
            [0, address(0), process << 32 | process, time, self.cpu, PERIOD, FRAMES + 1, USER];
        let words = head.into_iter().chain((0..FRAMES).map(address));
        self.record.clear();
        self.record.extend(words.flat_map(u64::to_le_bytes));
    }
}

/// Which of some thousand stacks a sample has; most of their frames are common to many.
fn stack_of(sample: u64) -> u64 {
    sample.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 & (STACKS - 1)
}

impl RecordQueue for Ring {
    fn peek(&self) -> Option<RecordBytes<'_>> {
        let (record_type, misc) = SAMPLE;
        let is_over = self.next == SAMPLES_OF_A_CPU;
        (!is_over).then_some(RecordBytes { record_type, misc, head: &self.record, tail: &[] })
    }

    fn advance(&mut self) {
        self.next += 1;
        self.write();
    }
}

/// All rings, as a session merges them.
struct Machine {
    rings: Vec<Ring>,
    layout: RecordLayout,
}

impl EventSource for Machine {
    type Error = Infallible;

    fn drain(&mut self, sink: &mut dyn FnMut(Event<'_>)) -> Result<(), Infallible> {
        drain_in_order(&mut self.rings, &self.layout, Horizon::End, sink);
        Ok(())
    }
}

#[test]
fn samples_of_128_cpus_are_merged_and_summed_up() {
    let layout = RecordLayout::new(SampleFields { callchain: true, ..SampleFields::default() });
    let source = Machine { rings: (0..CPUS).map(Ring::new).collect(), layout };
    let stream = Stream {
        value: ValueType::new("cpu", "nanoseconds"),
        others: Vec::new(),
        is_clock: true,
        has_user: true,
        user_registers: 0,
        stack_copy: ByteLen(0),
    };
    let (files, memory) = (Arc::new(Absent), Arc::new(Absent));
    let options = Options { files, memory, keeps_times: true, ..Options::default() };
    let start = Instant::now();
    let mut recorder = Recorder::of_source(source, stream, options);
    recorder.poll(std::time::Duration::ZERO).unwrap();
    let took = start.elapsed();
    let Ok(profile) = recorder.finish();
    let all = CPUS * SAMPLES_OF_A_CPU;
    assert_eq!(profile.health.samples, all);
    assert_eq!(profile.total(EVENT_VALUE).0, all * PERIOD);
    let stacks: BTreeSet<u64> = (0..all).map(stack_of).collect();
    assert_eq!(profile.samples().count(), stacks.len());
    let timeline = profile.timeline.expect("times are kept");
    assert_eq!(timeline.len() as u64, all);
    assert!(timeline.iter().zip(timeline.iter().skip(1)).all(|(a, b)| a.time <= b.time));
    let rate = all as f64 / took.as_secs_f64();
    let _ = writeln!(std::io::stderr(), "{all} samples of {CPUS} CPUs: {rate:.0} a second");
}
