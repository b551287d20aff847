//! What had to give way, said once on stderr and kept with the profile.

use std::io::{self, Write};

use flame_sampler::{Concession, Session};

use crate::message::sampler::{paranoid, setcap_command};
use crate::terminal::Paint;

/// A note for the user.
#[derive(Clone, Debug)]
pub(super) struct Note {
    /// What happened.
    pub(super) text: String,
    /// What would mend it.
    mend: Option<String>,
}

impl Note {
    /// A note on something that nothing can be done about here.
    pub(super) fn new(text: String) -> Note {
        Note { text, mend: None }
    }

    /// Prints it to stderr.
    pub(super) fn print(&self, paint: Paint) {
        let mut text = format!("{} {}\n", paint.yellow("note:"), self.text);
        if let Some(mend) = &self.mend {
            text += &format!("  {} {mend}\n", paint.bold("try:"));
        }
        // There is nowhere to complain that stderr is gone.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

/// The notes on a session that was opened.
pub(super) fn of_session(session: &Session) -> Vec<Note> {
    let note = |concession: &Concession| match concession {
        Concession::NoPmu => Note {
            text: "no hardware counters on this machine: sampling cpu-clock instead of cycles"
                .to_owned(),
            mend: None,
        },
        Concession::UserOnly => Note {
            text: format!("no permission for kernel code ({}): user code only", paranoid()),
            mend: Some(format!(
                "sudo sysctl kernel.perf_event_paranoid=1, or {}",
                setcap_command()
            )),
        },
        Concession::SmallerRing { ring, wanted } => Note {
            text: format!(
                "not allowed to lock more memory: rings of {} KiB a CPU, samples may be lost",
                ring.0 / 1024
            ),
            mend: Some(format!("sudo sysctl kernel.perf_event_mlock_kb={}", wanted.0 / 1024 + 4)),
        },
    };
    session.concessions().iter().map(note).collect()
}
