//! perf.data: any bytes are read or refused, and a stream has what a file of the same bytes has.
#![no_main]

use flame_events::{EventKind, EventSource, Processes};
use flame_perf_data::{Forward, Left, PerfData, ReadAt, recognise};

/// How many samples and other events there are, and what was left out; `None` = refused.
fn drain(input: Box<dyn ReadAt + '_>) -> Option<(u64, u64, Left)> {
    let mut file = PerfData::open(input).ok()?;
    let (mut samples, mut others) = (0, 0);
    let mut processes = Processes::default();
    file.drain(&mut |event| {
        match &event.kind {
            EventKind::Sample(_) => samples += 1,
            _ => others += 1,
        }
        processes.apply(event.time, &event.kind);
    })
    .ok()?;
    let all: u64 = file.events().map(|(event, _)| event.samples).sum();
    assert!(samples <= all, "more samples than records of them");
    Some((samples, others, file.left()))
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let of_file = drain(Box::new(input));
    if recognise(input) == Some(true) {
        assert_eq!(drain(Box::new(Forward::new(input))), of_file);
    }
});
