//! What is refused while a session goes on does not end it.
//!
//! A binary of its own, since it takes descriptors away from its whole process.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use flame_events::{EventKind, EventSource};
use flame_profile::{ByteLen, Hz};
use flame_sampler::{CallGraph, Rate, Refused, SamplerConfig, SamplerError, Session, Target};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The stack pointer, the frame pointer and the program counter.
const REGISTERS: u64 = if cfg!(target_arch = "aarch64") { 0x3_ffff_ffff >> 1 } else { 0x1c0 };

/// A session of the whole machine; `None` where that is not allowed, which is said.
fn session() -> Option<Session> {
    let mut config = SamplerConfig::new(Target::System, REGISTERS);
    config.call_graph = CallGraph::Dwarf(ByteLen(8192));
    config.rate = Rate::Frequency(Hz(999));
    match Session::open(&config) {
        Err(error @ SamplerError::Denied { .. }) => {
            let _ = writeln!(std::io::stderr(), "SKIP live: {error}");
            None
        }
        result => Some(result.expect("the whole machine can be sampled")),
    }
}

/// Takes samples until there are some, while this thread keeps its CPU busy.
fn samples(session: &mut Session) -> u64 {
    let mut samples = 0;
    let begin = Instant::now();
    while samples == 0 && begin.elapsed() < Duration::from_secs(60) {
        session.wait(Duration::from_millis(1));
        let mut take = |kind: &EventKind<'_>| {
            samples += u64::from(matches!(kind, EventKind::Sample(_)));
        };
        session.drain(&mut |event| take(&event.kind)).expect("rings can be read");
    }
    samples
}

/// The descriptors that may be open while this lives: no more than there are.
struct NoMoreDescriptors(u64, u64);

impl NoMoreDescriptors {
    fn new() -> NoMoreDescriptors {
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
        // The lowest number that is free is the first that is too high.
        let free = std::fs::File::open("/dev/null").expect("there is one").as_raw_fd();
        setrlimit(Resource::RLIMIT_NOFILE, free as u64, hard).expect("limits may be lowered");
        NoMoreDescriptors(soft, hard)
    }
}

impl Drop for NoMoreDescriptors {
    fn drop(&mut self) {
        setrlimit(Resource::RLIMIT_NOFILE, self.0, self.1).expect("limits may be restored");
    }
}

#[test]
fn events_that_cannot_be_opened_anew_go_on_as_they_were() {
    let Some(mut session) = session() else { return };
    session.begin().expect("the events can be opened");
    assert!(session.may_reopen());
    let limit = NoMoreDescriptors::new();
    assert!(!session.set_stack_copy(ByteLen(32_768)));
    assert!(!session.set_stack_copy(ByteLen(65_528)), "one refusal is enough");
    let refusals = session.refusals();
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    assert_eq!(refusals[0].what, Refused::StackCopy);
    assert!(matches!(refusals[0].error, SamplerError::TooManyFiles { .. }), "{refusals:?}");
    assert_eq!(session.stack_copy(), ByteLen(8192));
    // What came before the refusal is not what is meant.
    samples(&mut session);
    assert!(samples(&mut session) > 0, "sampling ended with the refusal");
    drop(limit);
}
