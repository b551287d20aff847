//! Launching the program to profile: forked, held back until its events are open, then let go.
//!
//! ```text
//!   flame                                  child
//!   launch: fork ────────────────────────▶ restores signals, becomes the invoking user
//!   opens events for the child's pid       read(gate) blocks
//!   release: write(gate) ────────────────▶ exec ── succeeds: report closes (close-on-exec)
//!   read(report): end of file, or errno ◀─┘  fails: errno written to report, exit 127
//! ```
//!
//! Also services: copies of flame that do for it what it must not wait for itself.
#![expect(unsafe_code, reason = "fork")]

use std::ffi::{CString, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitStatus;

use flame_profile::Pid;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, kill, signal, sigprocmask};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Gid, Uid, fork, getgrouplist, pipe2, setgid, setsid, setuid};

use crate::error::SamplerError;

/// What a shell says when it cannot run a program.
const CANNOT_RUN: i32 = 127;

/// The user that a launched program runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The user id.
    pub uid: u32,
    /// The group id.
    pub gid: u32,
    /// The user's name, whose groups are taken; only the one group without.
    pub name: Option<String>,
    /// Variables that the program has instead of flame's; `None` for those that it does not have.
    pub environment: Vec<(&'static str, Option<OsString>)>,
}

/// A program that was started and waits to be let go, or runs. It is not ended by dropping this,
/// but without [`Launched::release`] it never runs.
#[derive(Debug)]
pub struct Launched {
    pid: Pid,
    program: String,
    gate: Option<File>,
    report: Option<File>,
}

/// How a launched program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitReport(ExitStatus);

impl ExitReport {
    /// The status as the system gives it.
    pub fn status(self) -> ExitStatus {
        self.0
    }

    /// The status as a shell would pass it on: 128 + the signal for a program that a signal ended.
    pub fn code(self) -> u8 {
        let code = self.0.code().or_else(|| self.0.signal().map(|signal| 128 + signal));
        code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
    }
}

impl Launched {
    /// Starts `command` (a program and its arguments) up to the point before its exec.
    ///
    /// Whatever the child needs memory for is made before it is forked, so that this process may have
    /// other threads, whose locks would stay locked in the child for ever.
    ///
    /// # Errors
    /// [`SamplerError::ProgramNotFound`] for an empty command or one with a zero byte,
    /// [`SamplerError::Io`] when the system has no room for another process.
    pub fn launch(
        command: &[OsString],
        credentials: Option<&Credentials>,
    ) -> Result<Launched, SamplerError> {
        let io = |doing: &str, error: Errno| SamplerError::Io {
            doing: doing.to_owned(),
            source: error.into(),
        };
        let program =
            command.first().map_or_else(String::new, |p| p.to_string_lossy().into_owned());
        let arguments: Result<Vec<CString>, _> =
            command.iter().map(|argument| CString::new(argument.as_bytes())).collect();
        let Some(arguments) = arguments.ok().filter(|arguments| !arguments.is_empty()) else {
            return Err(SamplerError::ProgramNotFound { program });
        };
        let plan = Program::new(arguments, environment(credentials), credentials)
            .map_err(|e| io("look up groups", e))?;
        let (gate, gate_write) = pipe2(OFlag::O_CLOEXEC).map_err(|e| io("make a pipe", e))?;
        let (report, report_write) = pipe2(OFlag::O_CLOEXEC).map_err(|e| io("make a pipe", e))?;
        // SAFETY: the child makes system calls and nothing else: it allocates no memory and takes no
        // lock, which another thread may hold.
        match unsafe { fork() }.map_err(|e| io("start another process", e))? {
            ForkResult::Child => {
                drop((gate_write, report));
                become_program(&plan, &gate, &report_write)
            }
            ForkResult::Parent { child } => Ok(Launched {
                pid: Pid(child.as_raw().cast_unsigned()),
                program,
                gate: Some(File::from(gate_write)),
                report: Some(File::from(report)),
            }),
        }
    }

    /// Its process id.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Lets the program go, and waits until it runs or has failed to.
    ///
    /// # Errors
    /// [`SamplerError::ProgramNotFound`], [`SamplerError::ProgramNotRunnable`].
    pub fn release(&mut self) -> Result<(), SamplerError> {
        let program = self.program.clone();
        let mut answer = Vec::new();
        let result = (|| {
            if let Some(mut gate) = self.gate.take() {
                gate.write_all(&[1])?;
            }
            self.report.take().map_or(Ok(0), |mut report| report.read_to_end(&mut answer))
        })();
        if let Err(source) = result {
            return Err(SamplerError::ProgramNotRunnable { program, source });
        }
        let Ok(errno) = <[u8; 4]>::try_from(&*answer) else {
            return Ok(());
        };
        let source = io::Error::from_raw_os_error(i32::from_ne_bytes(errno));
        // Nothing ran; the zombie is of no interest.
        let _ = waitpid(self.nix_pid(), None);
        Err(match source.kind() {
            io::ErrorKind::NotFound => SamplerError::ProgramNotFound { program },
            _ => SamplerError::ProgramNotRunnable { program, source },
        })
    }

    /// Ends a program that was never let go; one that runs is left alone.
    pub fn abandon(mut self) {
        if self.gate.take().is_some() {
            // The child sees the gate close without a byte, and exits.
            let _ = waitpid(self.nix_pid(), None);
        }
    }

    /// How it ended, if it has.
    pub fn try_wait(&mut self) -> Option<ExitReport> {
        self.wait_with(Some(WaitPidFlag::WNOHANG))
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> Option<ExitReport> {
        self.wait_with(None)
    }

    fn wait_with(&mut self, flags: Option<WaitPidFlag>) -> Option<ExitReport> {
        match waitpid(self.nix_pid(), flags) {
            Ok(WaitStatus::Exited(_, code)) => Some(ExitReport(ExitStatus::from_raw(code << 8))),
            Ok(WaitStatus::Signaled(_, signal, core)) => {
                let core = if core { 0x80 } else { 0 };
                Some(ExitReport(ExitStatus::from_raw(signal as i32 | core)))
            }
            _ => None,
        }
    }

    /// Asks the program to end (SIGTERM).
    pub fn terminate(&self) {
        // It may have ended by itself.
        let _ = kill(self.nix_pid(), Signal::SIGTERM);
    }

    fn nix_pid(&self) -> nix::unistd::Pid {
        nix::unistd::Pid::from_raw(self.pid.0.cast_signed())
    }
}

/// flame's own environment with what belongs to the user; `NAME=VALUE` each.
fn environment(credentials: Option<&Credentials>) -> Vec<CString> {
    let users = credentials.map_or(&[][..], |credentials| &credentials.environment);
    let own = std::env::vars_os().filter(|(name, _)| users.iter().all(|(other, _)| name != other));
    let users = users.iter().filter_map(|(name, value)| Some((name.into(), value.clone()?)));
    let text = |(name, value): (OsString, OsString)| {
        // No value that comes from the system has a zero byte.
        CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
    };
    own.chain(users).filter_map(text).collect()
}

/// Runs `serve` in a process that has a copy of all that this one has: in a session of its own, which
/// no key of the terminal reaches, and nobody's child that would have to be waited for. Signals that end
/// a recording are not for it: who stops a service sends them to each of its processes.
///
/// # Errors
/// When this process has more than one thread, whose locks nobody would give back in the copy, or
/// the system has no room for another process.
pub fn fork_apart(serve: impl FnOnce()) -> io::Result<()> {
    let child = fork_to(|| {
        let _ = setsid();
        let _ = fork_to(|| {
            ignore_endings();
            serve();
        });
    })?;
    waitpid(child, None)?;
    Ok(())
}

/// The same in a child, which is killed when this process ends; nobody waits for it.
///
/// # Errors
/// As [`fork_apart`].
pub fn fork_below(serve: impl FnOnce()) -> io::Result<()> {
    // What nobody waits for leaves nothing behind then.
    // SAFETY: the default of SIGCHLD runs no code of ours, and neither does ignoring it.
    unsafe { signal(Signal::SIGCHLD, SigHandler::SigIgn) }?;
    fork_to(|| {
        let _ = set_pdeathsig(Signal::SIGKILL);
        serve();
    })?;
    Ok(())
}

/// Ignores the signals that end a recording, in a process that ends with flame.
pub(crate) fn ignore_endings() {
    for which in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: ignoring a signal runs no code of ours.
        let _ = unsafe { signal(which, SigHandler::SigIgn) };
    }
}

/// Runs `work` in a child, which ends with it.
fn fork_to(work: impl FnOnce()) -> io::Result<nix::unistd::Pid> {
    if fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("this process has several threads"));
    }
    // SAFETY: there is one thread, so the child may use everything.
    match unsafe { fork() }? {
        ForkResult::Child => {
            // The stack above is that of flame, which another process goes on with.
            let _ = catch_unwind(AssertUnwindSafe(work));
            // SAFETY: `_exit` ends the process without running handlers that belong to flame.
            unsafe { nix::libc::_exit(0) }
        }
        ForkResult::Parent { child } => Ok(child),
    }
}

/// All that the child needs, made before it exists.
struct Program {
    /// The program and its arguments, and its environment.
    words: Pointers,
    environment: Pointers,
    /// The user and the groups that it runs as.
    identity: Option<(Uid, Gid, Vec<Gid>)>,
}

/// Words as exec takes them.
struct Pointers {
    /// What `pointers` point into.
    _words: Vec<CString>,
    /// One to each word, and a null pointer.
    pointers: Vec<*const libc::c_char>,
}

impl Pointers {
    fn to(words: Vec<CString>) -> Pointers {
        let pointers = words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect();
        Pointers { _words: words, pointers }
    }
}

impl Program {
    fn new(
        words: Vec<CString>,
        environment: Vec<CString>,
        credentials: Option<&Credentials>,
    ) -> nix::Result<Program> {
        let identity = credentials.map(|credentials| {
            let gid = Gid::from_raw(credentials.gid);
            let name = credentials.name.as_deref().and_then(|name| CString::new(name).ok());
            let groups = name.map_or(Ok(vec![gid]), |name| getgrouplist(&name, gid))?;
            Ok((Uid::from_raw(credentials.uid), gid, groups))
        });
        let (words, environment) = (Pointers::to(words), Pointers::to(environment));
        Ok(Program { words, environment, identity: identity.transpose()? })
    }

    /// Returns only when it cannot run, with the reason.
    fn exec(&self) -> Errno {
        let (words, environment) = (&self.words.pointers, &self.environment.pointers);
        // It is looked for in flame's own PATH, which the program has, too.
        // SAFETY: the pointers are those of the words, which live as long as `self`, all of them end
        // with a zero byte, and the last pointer of each list is null.
        unsafe { libc::execvpe(words[0], words.as_ptr(), environment.as_ptr()) };
        Errno::last()
    }
}

/// The child's side; never returns.
fn become_program(program: &Program, gate: &OwnedFd, report: &OwnedFd) -> ! {
    if let Some(error) = prepare_and_exec(program, gate) {
        // Nobody to tell if that fails.
        let _ = nix::unistd::write(report, &(error as i32).to_ne_bytes());
    }
    // SAFETY: `_exit` ends the process without running handlers that belong to flame.
    unsafe { libc::_exit(CANNOT_RUN) }
}

/// Returns only when there is nothing to run: with the reason, or without when flame gave up.
fn prepare_and_exec(program: &Program, gate: &OwnedFd) -> Option<Errno> {
    if let Err(error) = restore_signals().and_then(|()| assume(program.identity.as_ref())) {
        return Some(error);
    }
    let mut go = [0];
    loop {
        match nix::unistd::read(gate, &mut go) {
            Ok(1) => return Some(program.exec()),
            Err(Errno::EINTR) => {}
            _ => return None,
        }
    }
}

/// Rust ignores SIGPIPE, and flame handles others; a program expects the defaults. nohup(1) ignores SIGHUP
/// for all that it starts.
fn restore_signals() -> nix::Result<()> {
    for which in [Signal::SIGPIPE, Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the default action runs no code of ours.
        let before = unsafe { signal(which, SigHandler::SigDfl) }?;
        if which == Signal::SIGHUP && matches!(before, SigHandler::SigIgn) {
            // SAFETY: ignoring a signal runs no code of ours.
            unsafe { signal(which, before) }?;
        }
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
}

/// Groups first, then the group, then the user: each needs the rights that the last gives up.
fn assume(identity: Option<&(Uid, Gid, Vec<Gid>)>) -> nix::Result<()> {
    let Some((uid, gid, groups)) = identity else { return Ok(()) };
    nix::unistd::setgroups(groups)?;
    setgid(*gid)?;
    setuid(*uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: &[&str]) -> Result<u8, SamplerError> {
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        let mut launched = Launched::launch(&command, None)?;
        launched.release()?;
        Ok(launched.wait().map_or(0, ExitReport::code))
    }

    #[test]
    fn the_exit_status_is_that_of_the_program() {
        assert_eq!(run(&["sh", "-c", "exit 7"]).unwrap(), 7);
        assert_eq!(run(&["sh", "-c", "kill -TERM $$"]).unwrap(), 128 + 15);
    }

    #[test]
    fn a_program_that_does_not_exist_is_told_from_one_that_cannot_run() {
        let missing = run(&["/no/such/program"]);
        assert!(matches!(missing, Err(SamplerError::ProgramNotFound { .. })), "{missing:?}");
        let folder = run(&["/"]);
        assert!(matches!(folder, Err(SamplerError::ProgramNotRunnable { .. })), "{folder:?}");
    }

    #[test]
    fn variables_of_the_user_stand_instead_of_flames() {
        let environment = vec![("HOME", Some("/home/ann".into())), ("PATH", None)];
        let credentials = Credentials { uid: 0, gid: 0, name: None, environment };
        let of = |credentials, name: &str| {
            let all = super::environment(credentials);
            let found = all.iter().filter(|text| text.to_bytes().starts_with(name.as_bytes()));
            found.map(|text| text.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(of(Some(&credentials), "HOME="), ["HOME=/home/ann"]);
        assert_eq!(of(Some(&credentials), "PATH="), [""; 0]);
        assert_eq!(of(None, "PATH="), [format!("PATH={}", std::env::var("PATH").unwrap())]);
    }

    #[test]
    fn programs_are_launched_beside_threads_that_allocate() {
        let stop = std::sync::atomic::AtomicBool::new(false);
        let is_over = || stop.load(std::sync::atomic::Ordering::Relaxed);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !is_over() {
                        std::hint::black_box(vec![1_u8; 5000]);
                    }
                });
            }
            for _ in 0..50 {
                assert_eq!(run(&["true"]).unwrap(), 0);
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }

    #[test]
    fn an_abandoned_program_never_runs() {
        let marker = std::env::temp_dir().join(format!("flame-abandoned-{}", std::process::id()));
        let command = [OsString::from("touch"), marker.clone().into()];
        Launched::launch(&command, None).unwrap().abandon();
        assert!(!marker.exists());
    }
}
