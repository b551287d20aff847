//! Ctrl-C, SIGTERM and SIGHUP: the first ends what is going on (the recording, then the fetching of debug
//! information), a later one flame.
//!
//! Signals within a second are one: timeout(1) sends its signal to flame and to flame's group, and of a terminal
//! that goes away both the kernel and the shell tell. SIGHUP that was ignored stays ignored, as nohup(1) has it.

use std::fs;
use std::io::{self, Read};
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::libc::c_int;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use crate::message::Failure;
use crate::{io_failure, message, privileges, terminal};

/// How long signals are one.
const ONE: Duration = Duration::from_secs(1);

/// Whether a signal asked for the end of what is going on.
#[derive(Debug)]
pub(super) struct StopSignals {
    heard: Arc<Heard>,
    /// Whether it was SIGINT, which a terminal sends to the launched program, too.
    interrupted: Arc<AtomicBool>,
    /// How many had been heard before what goes on began.
    before: AtomicU32,
}

#[derive(Debug, Default)]
struct Heard {
    /// How often flame was asked to end what goes on.
    count: AtomicU32,
    /// From this one on flame ends.
    last: AtomicU32,
    /// Whether the outputs are written.
    written: AtomicBool,
    /// The signal that came last.
    signal: Arc<AtomicUsize>,
}

impl StopSignals {
    /// Takes over the signals.
    pub(super) fn install() -> Result<StopSignals, Failure> {
        let failure = |error: io::Error| io_failure("handle signals", &error);
        let interrupted = Arc::new(AtomicBool::new(false));
        flag::register(SIGINT, Arc::clone(&interrupted)).map_err(failure)?;
        let heard = Arc::new(Heard { last: AtomicU32::new(2), ..Heard::default() });
        let (listener, speaker) = UnixStream::pair().map_err(failure)?;
        // One descriptor for all signals, open as long as flame runs.
        let speaker = speaker.into_raw_fd();
        let watched = Arc::clone(&heard);
        let watch = move || {
            privileges::drop_all();
            watched.listen(listener);
        };
        thread::Builder::new().name("signals".to_owned()).spawn(watch).map_err(failure)?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if signal == SIGHUP && is_in_mask("self", "SigIgn", SIGHUP) {
                continue;
            }
            let number = usize::try_from(signal).unwrap_or_default();
            flag::register_usize(signal, Arc::clone(&heard.signal), number).map_err(failure)?;
            low_level::pipe::register_raw(signal, speaker).map_err(failure)?;
        }
        Ok(StopSignals { heard, interrupted, before: AtomicU32::new(0) })
    }

    /// Whether one has arrived.
    pub(super) fn arrived(&self) -> bool {
        self.heard.count.load(Ordering::Relaxed) > self.before.load(Ordering::Relaxed)
    }

    /// Whether Ctrl-C was pressed.
    pub(super) fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// The outputs are written: nothing is lost when flame ends.
    pub(super) fn all_is_written(&self) {
        self.heard.written.store(true, Ordering::Relaxed);
    }

    /// Forgets those that arrived: the next one asks for the end of what begins now, and the one
    /// after it ends flame.
    #[cfg(feature = "debuginfod")]
    pub(super) fn listen_anew(&self) {
        let count = self.heard.count.load(Ordering::Relaxed);
        self.before.store(count, Ordering::Relaxed);
        self.heard.last.store(count + 2, Ordering::Relaxed);
    }
}

impl Heard {
    /// Counts what arrives, until it is too much.
    fn listen(&self, mut listener: UnixStream) {
        let mut last: Option<Instant> = None;
        loop {
            match listener.read(&mut [0; 64]) {
                Ok(0) => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
                Ok(_) => {}
            }
            let now = Instant::now();
            if last.is_some_and(|last| now.duration_since(last) < ONE) {
                continue;
            }
            last = Some(now);
            let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
            if count >= self.last.load(Ordering::Relaxed) {
                self.end();
            }
        }
    }

    /// Ends flame.
    fn end(&self) {
        if !self.written.load(Ordering::Relaxed) {
            let failure = Failure::new("nothing was written")
                .why("a second signal told flame to end before the names were found");
            message::print(&failure, terminal::Color::Never);
        }
        let signal = c_int::try_from(self.signal.load(Ordering::Relaxed)).unwrap_or(SIGINT);
        low_level::exit(128 + signal);
    }
}

/// Whether a signal is in a set that /proc/PID/status shows.
pub(super) fn is_in_mask(pid: &str, set: &str, signal: c_int) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix(set)?.strip_prefix(':'));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}
