//! Ctrl-C and SIGTERM: the first ends what is going on (the recording, then the fetching of debug
//! information), a second one flame.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::io_failure;
use crate::message::Failure;

/// Whether a signal asked for the end of what is going on.
#[derive(Debug)]
pub(super) struct StopSignals {
    arrived: Arc<AtomicBool>,
    /// Whether it was SIGINT, which a terminal sends to the launched program, too.
    interrupted: Arc<AtomicBool>,
}

impl StopSignals {
    /// Takes over the signals.
    pub(super) fn install() -> Result<StopSignals, Failure> {
        let arrived = Arc::new(AtomicBool::new(false));
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: the first signal finds the flag not set, and sets it.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&arrived))
                .and_then(|_| flag::register(signal, Arc::clone(&arrived)))
                .map_err(|error| io_failure("handle signals", &error))?;
        }
        flag::register(SIGINT, Arc::clone(&interrupted))
            .map_err(|error| io_failure("handle signals", &error))?;
        Ok(StopSignals { arrived, interrupted })
    }

    /// Whether one has arrived.
    pub(super) fn arrived(&self) -> bool {
        self.arrived.load(Ordering::Relaxed)
    }

    /// Whether Ctrl-C was pressed.
    pub(super) fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Forgets those that arrived: the next one asks for the end of what begins now, and the one
    /// after it ends flame.
    #[cfg(feature = "debuginfod")]
    pub(super) fn listen_anew(&self) {
        self.arrived.store(false, Ordering::Relaxed);
    }
}
