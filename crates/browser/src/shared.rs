//! Processes that are used again: a browser takes longer to start than most tests take to look at it.
//!
//! A process serves one [`Browser`](crate::Browser) at a time, each in a context of its own: nothing is
//! shared between contexts, as in private windows. Idle processes are kept while another browser is in
//! use, so that none is left when the last one was dropped.

use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::Error;
use crate::pipe::Pipe;
use crate::process::Process;

static SHARED: Mutex<Shared> = Mutex::new(Shared { in_use: 0, idle: Vec::new() });

struct Shared {
    in_use: usize,
    idle: Vec<Running>,
}

/// A process and the pipe to it.
#[derive(Debug)]
pub(crate) struct Running {
    // Dropped in this order: the closed pipe lets the process end by itself.
    pub(crate) pipe: Pipe,
    _process: Process,
    program: PathBuf,
}

/// A process in use; `None` once it was given back.
#[derive(Debug)]
pub(crate) struct InUse(Option<Running>);

impl InUse {
    /// One that is idle, or a new one.
    pub(crate) fn start(program: &Path, limit: Duration) -> Result<InUse, Error> {
        let idle = {
            let mut shared = shared();
            shared.in_use += 1;
            let at = shared.idle.iter().position(|running| running.program == program);
            at.map(|at| shared.idle.swap_remove(at))
        };
        // From here on dropping it says that it is not in use.
        let mut in_use = InUse(idle);
        match &mut in_use.0 {
            Some(running) => running.pipe.start_anew(limit),
            None => {
                let (process, input, output) = Process::start(program)?;
                let pipe = Pipe::new(input, output, limit);
                let program = program.to_owned();
                in_use.0 = Some(Running { pipe, _process: process, program });
            }
        }
        Ok(in_use)
    }

    pub(crate) fn pipe(&mut self) -> Result<&mut Pipe, Error> {
        let gone = || Error::Gone { waiting_for: "a command".to_owned() };
        self.0.as_mut().map(|running| &mut running.pipe).ok_or_else(gone)
    }

    /// Ends the process: it is not what it was.
    pub(crate) fn end(&mut self) {
        self.0 = None;
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let ended = {
            let mut shared = shared();
            shared.in_use -= 1;
            shared.idle.extend(self.0.take());
            if shared.in_use == 0 { mem::take(&mut shared.idle) } else { Vec::new() }
        };
        drop(ended);
    }
}

fn shared() -> MutexGuard<'static, Shared> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}
