//! Asks a Java VM (HotSpot, 17 or later) to write down its compiled methods, as
//! `jcmd PID Compiler.perfmap` does, and brings its names into the usual form.
//!
//! jcmd is part of the JDK, which a machine or container that only runs Java does not have, and it
//! must be started within the container. So flame speaks to the VM itself: a file
//! `.attach_pidPID` and SIGQUIT make it listen at `/tmp/.java_pidPID`; there it takes one command
//! a connection, `1\0COMMAND\0ARGUMENT\0ARGUMENT\0ARGUMENT\0`, and answers with a number, 0 for
//! done, and text. SIGQUIT is sent only to processes that have a handler for it.
//!
//! Sources: the documentation of jcmd; what `strace jcmd` shows.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use flame_profile::Pid;
use nix::sys::signal::{Signal, kill};

use crate::message::reason;
use crate::proc::{self, Identity};
use crate::process_root::{FoundFile, ProcessRoot};

/// How long a VM has for its answer. It stops at a safepoint first, and a map of 100,000 methods
/// takes it a second to write.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often to look whether a VM listens.
const POLL: Duration = Duration::from_millis(10);

/// The longest answer that is read, in bytes.
const MAX_ANSWER: u64 = 64 << 10;

/// The root user may have left its own files.
const ROOT: u32 = 0;

/// Why a VM did not write down its methods.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JavaError {
    /// It has ended.
    #[error("it has ended")]
    Ended,
    /// It was told not to listen.
    #[error("it runs with -XX:+DisableAttachMechanism or -Xrs")]
    Deaf,
    /// Nothing came in time.
    #[error("it did not answer within {} s", PATIENCE.as_secs())]
    NoAnswer,
    /// It believes only its own user, and root as its own container knows it.
    #[error("it does not speak to this user")]
    HungUp,
    /// It is older than the command.
    #[error("it is older than Java 17")]
    TooOld,
    /// It answered with an error.
    #[error("it says: {0}")]
    Refused(String),
    /// The system refused something.
    #[error("{}", reason(.0))]
    Io(#[from] io::Error),
}

/// What a VM said of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Whether its compiled code keeps frame pointers.
    pub(crate) has_frame_pointers: bool,
}

/// Asks each VM at the same time to write its methods into its `/tmp/perf-PID.map`.
pub(crate) fn write_perf_maps(pids: &[Pid]) -> Vec<Result<Answer, JavaError>> {
    let (sender, receiver) = mpsc::channel();
    for (number, pid) in pids.iter().copied().enumerate() {
        let sender = sender.clone();
        // Not waited for: connecting to a VM whose queue is full has no time limit.
        thread::spawn(move || sender.send((number, write_perf_map(pid))));
    }
    drop(sender);
    let mut answers: Vec<_> = pids.iter().map(|_| Err(JavaError::NoAnswer)).collect();
    let deadline = Instant::now() + PATIENCE + POLL;
    loop {
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok((number, answer)) => answers[number] = answer,
            Err(_) => return answers,
        }
    }
}

fn write_perf_map(pid: Pid) -> Result<Answer, JavaError> {
    let deadline = Instant::now() + PATIENCE;
    let root = ProcessRoot::of(pid).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => JavaError::Ended,
        _ => JavaError::Io(error),
    })?;
    let vm = Vm { pid, identity: Identity::of(pid), root };
    let socket = vm.listening(deadline)?;
    let flag = ask(&socket, &["printflag", "PreserveFramePointer"], deadline)?;
    ask(&socket, &["jcmd", "Compiler.perfmap"], deadline)?;
    Ok(Answer { has_frame_pointers: flag.contains("+PreserveFramePointer") })
}

/// A Java VM.
#[derive(Debug)]
struct Vm {
    pid: Pid,
    identity: Identity,
    root: ProcessRoot,
}

impl Vm {
    /// The socket at which it listens, when it does.
    fn socket(&self) -> Option<FoundFile> {
        let path = PathBuf::from(format!("/tmp/.java_pid{}", self.identity.inner_pid));
        let found = self.root.find(&path).ok()?;
        let status = found.metadata().ok()?;
        let is_its = [self.identity.user, ROOT].contains(&status.uid());
        (status.file_type().is_socket() && is_its).then_some(found)
    }

    /// Makes it listen, if it does not yet.
    fn listening(&self, deadline: Instant) -> Result<FoundFile, JavaError> {
        if let Some(socket) = self.socket() {
            return Ok(socket);
        }
        let catches_quit = self.identity.caught_signals >> (Signal::SIGQUIT as i32 - 1) & 1 == 1;
        let command = proc::command_line(self.pid).ok_or(JavaError::Ended)?;
        if !catches_quit || command.contains("-XX:+DisableAttachMechanism") {
            return Err(JavaError::Deaf);
        }
        let _trigger = Trigger::create(self)?;
        kill(nix::unistd::Pid::from_raw(self.pid.0 as i32), Signal::SIGQUIT)
            .map_err(io::Error::from)?;
        while Instant::now() < deadline {
            if let Some(socket) = self.socket() {
                return Ok(socket);
            }
            if Identity::of(self.pid).caught_signals == 0 {
                return Err(JavaError::Ended);
            }
            thread::sleep(POLL);
        }
        Err(JavaError::NoAnswer)
    }
}

/// The file that tells a VM that SIGQUIT is meant to make it listen; removed on drop.
#[derive(Debug)]
struct Trigger {
    /// Below `/proc/self/fd`, so it names the file as long as `_tmp` is open.
    path: Option<PathBuf>,
    _tmp: FoundFile,
}

impl Trigger {
    fn create(vm: &Vm) -> io::Result<Trigger> {
        let tmp = vm.root.find(Path::new("/tmp"))?;
        let name = format!(".attach_pid{}", vm.identity.inner_pid);
        let path = PathBuf::from(tmp.own_path()).join(name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600).custom_flags(nix::libc::O_NOFOLLOW);
        let file: File = match options.open(&path) {
            // Another tool is asking, or has left its file behind.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Ok(Trigger { path: None, _tmp: tmp });
            }
            result => result?,
        };
        let trigger = Trigger { path: Some(path), _tmp: tmp };
        // The VM believes only its own user, and root.
        if file.metadata()?.uid() != vm.identity.user {
            std::os::unix::fs::fchown(&file, Some(vm.identity.user), None)?;
        }
        Ok(trigger)
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        // The VM may have removed it already.
        self.path.take().map(std::fs::remove_file);
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

/// `Lpkg/Class;::method` for `int pkg.Class.method(int, long)`, the form that flame graphs of Java
/// have had since perf-map-agent; `None` for what is no method. Hidden classes lose their address,
/// which is another one in each run.
pub(crate) fn tidy_name(name: &str) -> Option<String> {
    let (head, _arguments) = name.strip_suffix(')')?.split_once('(')?;
    let (_result, path) = head.rsplit_once(' ')?;
    let (class, method) = path.rsplit_once('.')?;
    let class =
        ["/0x", "+0x"].iter().find_map(|mark| Some(class.split_once(mark)?.0)).unwrap_or(class);
    let is_name = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    if !is_name(class) || !is_name(method) {
        return None;
    }
    Some(format!("L{};::{method}", class.replace('.', "/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_have_the_form_of_java_flame_graphs() {
        let cases = [
            ("long Work.alpha(long)", Some("LWork;::alpha")),
            ("void java.lang.String.<init>(byte[], byte)", Some("Ljava/lang/String;::<init>")),
            ("java.lang.Object a.b.C$D.get(java.lang.Object, long)", Some("La/b/C$D;::get")),
            ("void Work$$Lambda$14/0x0000000800c03000.run()", Some("LWork$$Lambda$14;::run")),
            ("void Work$$Lambda+0x00007f8a2c001000.run()", Some("LWork$$Lambda;::run")),
            ("StubRoutines (1)", None),
            ("Interpreter", None),
            ("vtable stub", None),
            ("LWork;::alpha", None),
            ("f()", None),
            ("a .(b)", None),
        ];
        for (name, expect) in cases {
            assert_eq!(tidy_name(name).as_deref(), expect, "{name}");
        }
    }
}
