//! Asks a Java VM (HotSpot, 17 or later) to write down its compiled methods, as
//! `jcmd PID Compiler.perfmap` does.
//!
//! jcmd is part of the JDK, which a machine or container that only runs Java does not have, and it
//! must be started within the container. So flame speaks to the VM itself: a file
//! `.attach_pidPID` and SIGQUIT make it listen at `/tmp/.java_pidPID`; there it takes one command
//! a connection, `1\0COMMAND\0ARGUMENT\0ARGUMENT\0ARGUMENT\0`, and answers with a number, 0 for
//! done, and text. SIGQUIT is sent only to processes that have a handler for it.
//!
//! A VM may not be one, and its `/tmp` anything. So all of that is done by a process of its own with
//! the VM's user and no right beyond, on the file system of that `/tmp` alone, and the file is removed
//! even when flame is killed meanwhile.
//!
//! Sources: the documentation of jcmd; what `strace jcmd` shows.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use flame_profile::Pid;
use nix::sys::prctl::set_pdeathsig;
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::live_files::{LiveFiles, answer_of, is_ready, reply};
use crate::proc::{command_line, identity_of};
use crate::process_root::{FoundFile, ProcessRoot};
use crate::target::Identity;

/// How long a VM has for its answer. It stops at a safepoint first, and a map of 100,000 methods
/// takes it a second to write.
pub const JAVA_PATIENCE: Duration = Duration::from_secs(10);

/// How often to look whether a VM listens.
const POLL: Duration = Duration::from_millis(10);

/// The longest answer that is read, in bytes.
const MAX_ANSWER: u64 = 64 << 10;

/// The most letters of a VM's own words that are passed on.
const MAX_REASON: usize = 200;

/// The number of SIGQUIT.
const QUIT: u32 = 3;

/// Makes a process another user, by the numbers of a user and a group.
pub type BecomeUser = fn(u32, u32) -> nix::Result<()>;

/// Why a VM did not write down its methods.
#[derive(Debug)]
pub enum JavaError {
    /// It has ended.
    Ended,
    /// It was told not to listen.
    Deaf,
    /// Nothing came within [`JAVA_PATIENCE`].
    NoAnswer,
    /// It believes only its own user, and root as its own container knows it.
    HungUp,
    /// It is older than the command.
    TooOld,
    /// It answered with an error.
    Refused(String),
    /// The system refused something.
    Io(io::Error),
}

impl From<io::Error> for JavaError {
    fn from(error: io::Error) -> JavaError {
        JavaError::Io(error)
    }
}

/// What a VM said of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JavaAnswer {
    /// Whether its compiled code keeps frame pointers.
    pub has_frame_pointers: bool,
}

/// Asks each VM at the same time to write its methods into its `/tmp/perf-PID.map`.
pub fn write_perf_maps(pids: &[Pid], files: &LiveFiles) -> Vec<Result<JavaAnswer, JavaError>> {
    let jobs: Vec<_> = pids.iter().map(|pid| files.start_job(&pid.0.to_le_bytes())).collect();
    let deadline = Instant::now() + JAVA_PATIENCE + POLL;
    let answer = |job: io::Result<OwnedFd>| {
        let left = deadline.saturating_duration_since(Instant::now());
        match answer_of(&job?, left) {
            Ok(answer) => decode(&answer),
            Err(_) => Err(JavaError::NoAnswer),
        }
    };
    jobs.into_iter().map(answer).collect()
}

/// The other side, a process of its own: it may wait for ever, and becomes the VM's user. It lives
/// on when flame is killed, to remove what it made. `become_user` makes the process that user, of one
/// group, with no right beyond.
pub fn serve_java(asked: &[u8], flame: &OwnedFd, become_user: BecomeUser) {
    let Ok(pid) = asked.try_into().map(u32::from_le_bytes) else { return };
    let _ = set_pdeathsig(None);
    let answer = write_perf_map(Pid(pid), flame, become_user);
    let _ = reply(flame, &encode(&answer));
}

/// A letter, and what goes with it.
fn encode(answer: &Result<JavaAnswer, JavaError>) -> Vec<u8> {
    let (letter, text) = match answer {
        Ok(JavaAnswer { has_frame_pointers: true }) => ("+", String::new()),
        Ok(JavaAnswer { has_frame_pointers: false }) => ("-", String::new()),
        Err(JavaError::Ended) => ("e", String::new()),
        Err(JavaError::Deaf) => ("d", String::new()),
        Err(JavaError::NoAnswer) => ("n", String::new()),
        Err(JavaError::HungUp) => ("h", String::new()),
        Err(JavaError::TooOld) => ("o", String::new()),
        Err(JavaError::Refused(text)) => ("r", text.chars().take(MAX_REASON).collect()),
        Err(JavaError::Io(error)) => ("i", error.raw_os_error().unwrap_or(0).to_string()),
    };
    [letter.as_bytes(), text.as_bytes()].concat()
}

fn decode(answer: &[u8]) -> Result<JavaAnswer, JavaError> {
    let (letter, text) = answer.split_at_checked(1).ok_or(JavaError::NoAnswer)?;
    let text = String::from_utf8_lossy(text).into_owned();
    Err(match letter {
        b"+" => return Ok(JavaAnswer { has_frame_pointers: true }),
        b"-" => return Ok(JavaAnswer { has_frame_pointers: false }),
        b"e" => JavaError::Ended,
        b"d" => JavaError::Deaf,
        b"h" => JavaError::HungUp,
        b"o" => JavaError::TooOld,
        b"r" => JavaError::Refused(text),
        b"i" => JavaError::Io(io::Error::from_raw_os_error(text.parse().unwrap_or(0))),
        _ => JavaError::NoAnswer,
    })
}

fn write_perf_map(
    pid: Pid,
    flame: &OwnedFd,
    become_user: BecomeUser,
) -> Result<JavaAnswer, JavaError> {
    let deadline = Instant::now() + JAVA_PATIENCE;
    let vm = Vm::open(pid, become_user)?;
    let socket = vm.listening(deadline, flame)?;
    let flag = ask(&socket, &["printflag", "PreserveFramePointer"], deadline)?;
    ask(&socket, &["jcmd", "Compiler.perfmap"], deadline)?;
    Ok(JavaAnswer { has_frame_pointers: flag.contains("+PreserveFramePointer") })
}

/// A Java VM, and its `/tmp`.
#[derive(Debug)]
struct Vm {
    /// It stands for this very process, whoever has its number later.
    process: OwnedFd,
    identity: Identity,
    command: String,
    tmp: FoundFile,
}

impl Vm {
    /// Looks at it, and becomes its user with no right beyond that: what flame does in its
    /// directories from then on it could have done itself.
    fn open(pid: Pid, become_user: BecomeUser) -> Result<Vm, JavaError> {
        let number = i32::try_from(pid.0).ok().and_then(rustix::process::Pid::from_raw);
        let process = pidfd_open(number.ok_or(JavaError::Ended)?, PidfdFlags::empty())
            .map_err(|_| JavaError::Ended)?;
        let identity = identity_of(pid);
        let command = command_line(pid, &LiveFiles::default()).ok_or(JavaError::Ended)?;
        let tmp = ProcessRoot::of(pid)?.find(Path::new("/tmp"))?;
        // If it has ended by now, all that may be of another process.
        if has_ended(&process) {
            return Err(JavaError::Ended);
        }
        become_user(identity.user, identity.group).map_err(|_| JavaError::HungUp)?;
        Ok(Vm { process, identity, command, tmp })
    }

    /// The socket at which it listens, when it does.
    fn socket(&self) -> Option<FoundFile> {
        let found = self.tmp.child(&format!(".java_pid{}", self.identity.inner_pid)).ok()?;
        let status = found.metadata().ok()?;
        let is_its = status.uid() == self.identity.user;
        (status.file_type().is_socket() && is_its).then_some(found)
    }

    /// Makes it listen, if it does not yet.
    fn listening(&self, deadline: Instant, flame: &OwnedFd) -> Result<FoundFile, JavaError> {
        if let Some(socket) = self.socket() {
            return Ok(socket);
        }
        let catches_quit = self.identity.caught_signals >> (QUIT - 1) & 1 == 1;
        if !catches_quit || self.command.contains("-XX:+DisableAttachMechanism") {
            return Err(JavaError::Deaf);
        }
        let _trigger = Trigger::create(self)?;
        pidfd_send_signal(&self.process, Signal::QUIT).map_err(io::Error::from)?;
        while Instant::now() < deadline {
            if let Some(socket) = self.socket() {
                return Ok(socket);
            }
            // Nobody waits for it when flame has ended.
            if has_ended(&self.process) || is_ready(flame, Duration::ZERO)? {
                return Err(JavaError::Ended);
            }
            thread::sleep(POLL);
        }
        Err(JavaError::NoAnswer)
    }
}

/// Whether a process has ended, by its descriptor.
fn has_ended(process: &OwnedFd) -> bool {
    is_ready(process, Duration::ZERO).unwrap_or(true)
}

/// The file that tells a VM that SIGQUIT is meant to make it listen; removed on drop.
#[derive(Debug)]
struct Trigger<'v> {
    tmp: &'v FoundFile,
    /// `None` when it was there before.
    name: Option<String>,
}

impl Trigger<'_> {
    fn create(vm: &Vm) -> io::Result<Trigger<'_>> {
        let (tmp, name) = (&vm.tmp, format!(".attach_pid{}", vm.identity.inner_pid));
        match tmp.create(&name) {
            // Another tool is asking, or has left its file behind.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Ok(Trigger { tmp, name: None })
            }
            result => result.map(|_| Trigger { tmp, name: Some(name) }),
        }
    }
}

impl Drop for Trigger<'_> {
    fn drop(&mut self) {
        // The VM may have removed it already.
        self.name.take().map(|name| self.tmp.remove(&name));
    }
}

/// Sends one command and returns the text of the answer.
fn ask(socket: &FoundFile, words: &[&str], deadline: Instant) -> Result<String, JavaError> {
    let mut stream = UnixStream::connect(socket.own_path())?;
    let mut message = b"1\0".to_vec();
    for position in 0..4 {
        message.extend_from_slice(words.get(position).unwrap_or(&"").as_bytes());
        message.push(0);
    }
    stream.write_all(&message)?;
    let mut answer = Vec::new();
    while answer.len() as u64 <= MAX_ANSWER {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(JavaError::NoAnswer);
        }
        stream.set_read_timeout(Some(left))?;
        let mut piece = [0; 4096];
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(len) => answer.extend_from_slice(&piece[..len]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(JavaError::NoAnswer);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    if answer.is_empty() {
        return Err(JavaError::HungUp);
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (code, text) = answer.split_once('\n').unwrap_or((&answer, ""));
    match code.trim() {
        "0" => Ok(text.to_owned()),
        _ if text.contains("Unknown diagnostic command") => Err(JavaError::TooOld),
        code => {
            let line = text.lines().find(|line| !line.is_empty()).unwrap_or(code);
            Err(JavaError::Refused(line.to_owned()))
        }
    }
}
