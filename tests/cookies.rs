//! What readers read beyond the copy of a stack is what the sample saw: a program of which each word of the stack
//! tells to which activation it belongs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use caps::{CapSet, Capability};
use flame_events::{EventKind, EventSource, Rest, StackBytes};
use flame_profile::Hz;
use flame_recorder::RecorderConfig;
use flame_sampler::{Launched, Rate, Sessions, Target};

use crate::support::{live_as_root, program};

/// The upper half of the words that cookies.c writes.
const COOKIE: u64 = 0x636f_6f6b;

/// What the innermost frame says while all of them stand.
const STANDS: u64 = 0x7374_616e_6473_3a29;

/// Words of each of its frames.
const WORDS: usize = 256;

/// What was seen of the stacks that were read beyond their copy.
#[derive(Debug, Default)]
struct Seen {
    /// All words are of one activation, in all of its frames.
    whole: u64,
    /// There are words of another activation.
    mixed: u64,
    /// Some of its frames are missing.
    truncated: u64,
    /// Nothing was read, and why.
    not_read: BTreeMap<String, u64>,
}

impl Seen {
    /// Judges a stack that stood when it was sampled; others are being built or left.
    fn judge(&mut self, stack: &StackBytes<'_>) {
        let words = |bytes: &[u8]| -> Vec<u64> {
            let words = bytes.chunks_exact(8);
            words.map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default())).collect()
        };
        let copied = words(&[stack.head, stack.tail].concat());
        let near = copied.iter().take(64);
        let Some(at) = near.clone().position(|word| *word == STANDS) else { return };
        let (Some(cookie), Some(frames)) = (copied.get(at + 1), copied.get(at + 2)) else { return };
        if cookie >> 32 != COOKIE || *frames > 100 {
            return;
        }
        let rest = match stack.rest {
            Rest::Read { bytes, .. } => bytes,
            Rest::NotRead(why) => {
                *self.not_read.entry(format!("{why:?}")).or_default() += 1;
                return;
            }
        };
        let beyond = words(rest);
        let all = || copied[at + 2..].iter().chain(&beyond);
        let expected = WORDS * usize::try_from(*frames).unwrap_or(0);
        // A word or two of earlier activations are left between frames.
        if all().filter(|word| *word == cookie).count() >= expected {
            self.whole += 1;
        } else if all().filter(|word| **word >> 32 == COOKIE).count() >= expected {
            self.mixed += 1;
        } else {
            self.truncated += 1;
        }
    }
}

/// Records the program at that many samples a second, with this thread's rights.
fn stacks(hertz: u64, arguments: &[&str]) -> Seen {
    let program = program("cookies.c");
    let command: Vec<_> = [&program[..]].iter().chain(arguments).map(Into::into).collect();
    let mut child = Launched::launch(&command, None).expect("the program is there");
    let mut config = RecorderConfig::new(Target::Launched(child.pid())).sampler;
    config.rate = Rate::Frequency(Hz(hertz));
    // Only what is read is of interest here.
    config.copy_may_be_larger = false;
    config.interpreters = Some(Arc::default());
    config.stack_roots.want_readers();
    let mut sessions = Sessions::open(&config, &[]).expect("root may sample");
    sessions.begin().expect("root may sample");
    child.release().expect("it waits");
    let mut seen = Seen::default();
    let mut is_over = false;
    while !is_over {
        is_over = child.try_wait().is_some();
        if is_over {
            sessions.stop();
        } else {
            sessions.wait(Duration::from_millis(20));
        }
        let drained = sessions.drain(&mut |event| {
            if let EventKind::Sample(sample) = &event.kind
                && let Some(stack) = &sample.user_stack
            {
                seen.judge(stack);
            }
        });
        drained.expect("rings can be read");
    }
    seen
}

/// For how many seconds of CPU time each is recorded: more to be surer than a test of each change is.
fn seconds() -> String {
    std::env::var("FLAME_COOKIES_SECONDS").unwrap_or_else(|_| "0.5".to_owned())
}

#[test]
fn what_is_read_beyond_the_copy_is_what_the_sample_saw() {
    if !live_as_root() {
        return;
    }
    let all = [
        (999, "1", "migrate"),
        (999, "1", "user"),
        (999, "2", "user"),
        (999, "1", "kernel"),
        (999, "1", "migrate"),
        (99, "3", "user"),
    ];
    for (hertz, threads, hold) in all {
        let seen = stacks(hertz, &[&seconds(), threads, hold]);
        let what = format!("{hertz} Hz, {threads} threads, {hold}: {seen:?}");
        eprintln!("{what}");
        assert_eq!(seen.mixed, 0, "{what}");
        assert!(seen.whole > hertz / 10 && seen.whole > 20 * seen.truncated, "{what}");
    }
}

/// A user's readers do not go first, and read only where they have the CPU at once.
#[test]
fn what_a_users_readers_read_is_what_the_sample_saw() {
    if !live_as_root() {
        return;
    }
    let mut whole = 0;
    for (hertz, threads, hold) in
        [(999, "1", "user"), (999, "2", "user"), (999, "1", "kernel"), (999, "1", "migrate")]
    {
        // Rights are a thread's own.
        let recorded = std::thread::spawn(move || {
            for right in [
                Capability::CAP_SYS_NICE,
                Capability::CAP_SYS_PTRACE,
                Capability::CAP_PERFMON,
                Capability::CAP_SYS_ADMIN,
            ] {
                caps::drop(None, CapSet::Effective, right).expect("a right may be given up");
            }
            stacks(hertz, &[&seconds(), threads, hold])
        });
        let seen = recorded.join().unwrap();
        let what = format!("{hertz} Hz, {threads} threads, {hold}: {seen:?}");
        eprintln!("{what}");
        assert_eq!(seen.mixed, 0, "{what}");
        whole += seen.whole;
    }
    assert!(whole > 50, "{whole}");
}
