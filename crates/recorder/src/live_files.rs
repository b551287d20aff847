//! Files of processes of this machine that can be read without waiting.
//!
//! A target chooses what its files lie on: a program of its own may be the file system (FUSE), and
//! take a request that it never answers. Whoever waits for that in the kernel cannot be ended, and
//! neither can a process that has such a thread: it is there until the file system is gone. So
//! flame asks another process, which it can leave behind:
//!
//! ```text
//!   flame ── socket of a new worker ──▶ keeper ── fork ──▶ worker
//!     │ ── path ──────────────────────────────────────────▶ opens, looks, copies
//!     ◀ ── descriptor ────────────────────────────────────── │
//! ```
//!
//! What lies on a file system of the kernel is handed over open, to be mapped. What lies on a program
//! of somebody's is handed over as a copy in memory, with a limit. The answer has a deadline, and the
//! files of each user together have one: then those of others are recorded as ever, and the profile
//! says which were not waited for.
//!
//! Memory of a target comes the same way, since it may be such a file, mapped.
//!
//! Limits: a file system of the kernel may still stop answering after its file was opened (a
//! network that breaks down meanwhile).
//!
//! Sources: fuse(4) of Linux (`request_wait_answer` waits uninterruptibly once a request is read),
//! unix(7) for SCM_RIGHTS, mount_namespaces(7).

mod hooks;
mod message;
mod overlay;
mod patience;
mod worker;

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flame_image::{FileAccess, Files, ImageFile, OpenFile};
use flame_profile::{Pid, ProcessAddress, Tid};
use flame_sampler::{fork_apart, live_task_of, may_read_others, threads_of};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::images::own_vdso;
use crate::proc;
use crate::process_root::ProcessRoot;
use crate::target::{Identity, Namespace, TargetFiles, TargetMemory};
pub use hooks::{Duty, Hooks, Job};
use message::{Answer, How, Request, receive, send};
use patience::{Patience, User};

/// How long a file may take as a whole.
const LONGEST: Duration = Duration::from_secs(5);

/// How many bytes of files are copied in a recording. Most that lie on FUSE are those of an
/// AppImage: some 100 MB at most.
const MAX_COPIED: u64 = 128 << 20;

/// The longest text of /proc that is read: 400,000 mappings.
const MAX_TEXT: u64 = 64 << 20;

/// Files and memory of processes of this machine. The default opens files in this process, and waits for them: where there is no
/// target that means ill, as in a test.
///
/// ```
/// use std::path::Path;
///
/// use flame_profile::Pid;
/// use flame_recorder::{LiveFiles, TargetFiles};
///
/// // In a process with one thread: LiveFiles::start(Hooks::default()).
/// let files = LiveFiles::default();
/// let own = Pid(std::process::id());
/// assert_eq!(files.text(own, "comm")?, std::fs::read("/proc/self/comm")?);
/// // A directory is not a regular file.
/// assert!(files.open_in_root(Some(own), Path::new("/proc"), own).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct LiveFiles(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    keeper: OwnedFd,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    worker: Option<OwnedFd>,
    patience: Patience,
    copied: u64,
    /// What the profile has to say.
    notes: Vec<String>,
}

/// Files of one process.
#[derive(Debug)]
struct ProcessFiles {
    files: LiveFiles,
    user: User,
    /// How they are opened.
    how: How,
}

impl LiveFiles {
    /// Starts the other process. There must be only one thread at this time; where there are more,
    /// or no process can be had, files are opened in this one.
    pub fn start(hooks: Hooks) -> LiveFiles {
        let start = || -> io::Result<OwnedFd> {
            let kind = (AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC);
            let (ours, theirs) = socketpair(kind.0, kind.1, kind.2, None)?;
            // The machine itself needs what these lie on.
            let own = ["/", "/usr", "/proc/self/exe"].into_iter();
            let own: Vec<u64> =
                own.filter_map(|path| Some(fs::metadata(path).ok()?.dev())).collect();
            let sockets = (ours, theirs);
            fork_apart(|| {
                let (ours, theirs) = &sockets;
                // Its end is how the keeper sees that flame has ended.
                let _ = nix::unistd::close(std::os::fd::AsRawFd::as_raw_fd(ours));
                worker::keep(theirs, &own, hooks);
            })?;
            Ok(sockets.0)
        };
        match start() {
            Ok(keeper) => LiveFiles(Some(Arc::new(Shared { keeper, state: Mutex::default() }))),
            Err(error) => {
                tracing::warn!(%error, "there is no deadline for files of targets");
                LiveFiles(None)
            }
        }
    }

    fn of_process(&self, pid: Pid) -> ProcessFiles {
        let inode = |path: String| fs::metadata(path).ok().map(|link| link.ino());
        let other = |name: &str| {
            let theirs = inode(format!("/proc/{pid}/ns/{name}"));
            theirs.filter(|theirs| Some(*theirs) != inode(format!("/proc/self/ns/{name}")))
        };
        let user = User { id: proc::owner_of(pid), mounts: other("mnt") };
        ProcessFiles { files: self.clone(), user, how: How::Path }
    }

    /// What no process is the reason for.
    fn of_nobody(&self) -> ProcessFiles {
        let user = User { id: None, mounts: None };
        ProcessFiles { files: self.clone(), user, how: How::Path }
    }

    /// Opens the regular file at a path of this machine, whatever its processes.
    ///
    /// # Errors
    /// There is none, it is none, or it was not waited for.
    pub fn open(&self, path: &Path) -> io::Result<OpenFile> {
        self.of_nobody().open(path)
    }

    /// The same at an absolute path below a directory, as if that were the root: no link leads out.
    ///
    /// # Errors
    /// As [`LiveFiles::open`].
    pub fn open_below(&self, root: &Path, path: &Path) -> io::Result<OpenFile> {
        let Some(shared) = &self.0 else { return ProcessRoot::at(root)?.follow(path)?.open() };
        let how = How::Below { root_len: root.as_os_str().len() as u64 };
        let mut whole = root.as_os_str().to_owned();
        whole.push(path);
        shared.ask(&self.of_nobody(), how, Path::new(&whole))
    }

    /// The same at an absolute path of this machine, if no link stands there.
    ///
    /// # Errors
    /// As [`LiveFiles::open`].
    pub fn open_unlinked(&self, path: &Path) -> io::Result<OpenFile> {
        match &self.0 {
            Some(shared) => shared.ask(&self.of_nobody(), How::InRootOf(Pid(0)), path),
            None => ProcessRoot::own()?.open(path),
        }
    }

    /// Starts a worker for [`Hooks::job`]; the socket of its answer.
    pub fn start_job(&self, asked: &[u8]) -> io::Result<OwnedFd> {
        let Some(shared) = &self.0 else { return Err(Errno::EOPNOTSUPP.into()) };
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        send(&shared.keeper, &[worker::JOB, asked].concat(), Some(theirs.as_fd()))?;
        Ok(ours)
    }

    /// What was not waited for, as sentences.
    pub fn notes(&self) -> Vec<String> {
        self.0.as_ref().map_or_else(Vec::new, |shared| shared.state().notes.clone())
    }
}

impl TargetFiles for LiveFiles {
    fn of(&self, pid: Pid) -> Files {
        match self.0 {
            None => Files::default(),
            Some(_) => Files::new(self.of_process(pid)),
        }
    }

    fn debug_files_of(&self, pid: Pid) -> Files {
        match self.0 {
            None => Files::default(),
            Some(_) => Files::new(ProcessFiles { how: How::Debug, ..self.of_process(pid) }),
        }
    }

    fn open_in_root(&self, root: Option<Pid>, path: &Path, pid: Pid) -> io::Result<File> {
        let Some(shared) = &self.0 else {
            let root = root.map_or_else(ProcessRoot::own, ProcessRoot::of)?;
            return Ok(root.open(path)?.file);
        };
        let process = self.of_process(pid);
        let how = How::InRootOf(root.unwrap_or(Pid(0)));
        Ok(shared.ask(&process, how, path)?.file)
    }

    fn text(&self, pid: Pid, name: &str) -> io::Result<Vec<u8>> {
        let path = PathBuf::from(format!("/proc/{}/{name}", live_task_of(pid)));
        let Some(shared) = &self.0 else { return fs::read(path) };
        let opened = shared.ask(&self.of_process(pid), How::Text, &path)?;
        let mut text = Vec::new();
        opened.file.take(MAX_TEXT).read_to_end(&mut text)?;
        Ok(text)
    }

    fn threads(&self, pid: Pid) -> Vec<(Tid, Vec<u8>)> {
        let named = |tid| (tid, proc::name_of(pid, tid));
        threads_of(pid).into_iter().map(named).collect()
    }

    fn identity(&self, pid: Pid) -> Identity {
        proc::identity_of(pid)
    }

    fn namespace(&self, pid: Pid) -> Namespace {
        proc::namespace(pid)
    }

    fn vdso(&self) -> Option<ImageFile> {
        own_vdso()
    }

    fn recording_is_over(&self) {
        if let Some(shared) = &self.0 {
            let _ = send(&shared.keeper, worker::OVER, None);
            shared.state().worker = None;
        }
    }
}

impl TargetMemory for LiveFiles {
    fn read(&self, pid: Pid, address: ProcessAddress, bytes: &mut [u8]) -> io::Result<()> {
        let main = Tid(pid.0);
        match self.read_by(main, address, bytes) {
            // The memory is there, and nothing is mapped at this address.
            Err(error) if error.raw_os_error() == Some(Errno::EIO as i32) => Err(error),
            // Where the main thread has ended before the others, the memory is not shown there.
            Err(error) => match live_task_of(pid) {
                task if task == main => Err(error),
                task => self.read_by(task, address, bytes),
            },
            read => read,
        }
    }
}

impl LiveFiles {
    fn read_by(&self, task: Tid, address: ProcessAddress, bytes: &mut [u8]) -> io::Result<()> {
        let path = PathBuf::from(format!("/proc/{task}/mem"));
        // Root's own need not be asked for by another process, which may have to wait for a CPU first: on
        // a busy machine that costs a VM that starts some of its stacks.
        if proc::is_roots(task) {
            return File::open(path)?.read_exact_at(bytes, address.0);
        }
        let how = How::Memory { start: address.0, len: bytes.len() as u64 };
        let ask = |shared: &Arc<Shared>| shared.ask(&self.of_process(Pid(task.0)), how, &path);
        let asked = self.0.as_ref().map(ask);
        match asked {
            Some(Ok(copy)) => copy.file.read_exact_at(bytes, 0),
            Some(Err(error))
                if error.kind() != io::ErrorKind::PermissionDenied || may_read_others() =>
            {
                Err(error)
            }
            // Whoever has no rights reads own processes only; and where Yama restricts ptrace, those
            // that flame launched, which the worker did not.
            _ => File::open(path)?.read_exact_at(bytes, address.0),
        }
    }
}

impl FileAccess for ProcessFiles {
    fn open(&self, path: &Path) -> io::Result<OpenFile> {
        match &self.files.0 {
            Some(shared) => shared.ask(self, self.how, path),
            None => Files::default().open(path),
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, process: &ProcessFiles, how: How, path: &Path) -> io::Result<OpenFile> {
        let mut state = self.state();
        let Some(silence) = state.patience.silence(process.user, Instant::now()) else {
            let error = Errno::EBUSY.into();
            note(&mut state.notes, process.user.id, path, &error);
            return Err(error);
        };
        let max_copied = match how {
            How::Text => MAX_TEXT,
            How::Memory { len, .. } => len,
            _ => MAX_COPIED.saturating_sub(state.copied),
        };
        let request = Request { how, max_copied, path: path.to_owned() };
        let start = Instant::now();
        let result = self.ask_worker(&mut state, &request, silence);
        state.patience.add(process.user, start.elapsed());
        if let Err(error) = &result {
            // It may be in that call for ever.
            if error.kind() == io::ErrorKind::TimedOut {
                state.worker = None;
            }
            note(&mut state.notes, process.user.id, path, error);
        }
        result
    }

    fn ask_worker(
        &self,
        state: &mut State,
        request: &Request,
        silence: Duration,
    ) -> io::Result<OpenFile> {
        if state.worker.is_none() {
            state.worker = Some(self.new_worker()?);
        }
        let Some(worker) = &state.worker else { return Err(Errno::ETIMEDOUT.into()) };
        send(worker, &request.to_bytes(), None)?;
        let end = Instant::now() + LONGEST;
        loop {
            let left = end.saturating_duration_since(Instant::now()).min(silence);
            if !is_ready(worker, left)? {
                return Err(Errno::ETIMEDOUT.into());
            }
            let (message, file) = receive(worker)?;
            match (Answer::parse(&message), file) {
                (Some(Answer::Busy), _) => {}
                (Some(Answer::Refused(errno)), _) => {
                    return Err(io::Error::from_raw_os_error(errno));
                }
                (Some(Answer::File { status, is_copy }), Some(file)) => {
                    let file = File::from(file);
                    if is_copy && matches!(request.how, How::Path | How::Debug | How::Below { .. })
                    {
                        state.copied = state.copied.saturating_add(file.metadata()?.len());
                    }
                    return Ok(OpenFile { file, status });
                }
                _ => {
                    state.worker = None;
                    return Err(Errno::EIO.into());
                }
            }
        }
    }

    fn new_worker(&self) -> io::Result<OwnedFd> {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        send(&self.keeper, worker::FILES, Some(theirs.as_fd()))?;
        Ok(ours)
    }
}

/// The answer of a job, if it comes in time.
pub(crate) fn answer_of(job: &OwnedFd, patience: Duration) -> io::Result<Vec<u8>> {
    if !is_ready(job, patience)? {
        return Err(Errno::ETIMEDOUT.into());
    }
    Ok(receive(job)?.0)
}

/// The answer of this job.
pub(crate) fn reply(socket: &OwnedFd, answer: &[u8]) -> io::Result<()> {
    send(socket, answer, None)
}

/// Whether a message comes in time, or the end of the other side.
pub(crate) fn is_ready(socket: &OwnedFd, patience: Duration) -> io::Result<bool> {
    let end = Instant::now() + patience;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Notes what the reader of a profile has to know; the first few files only, since a target may have
/// any number of them.
fn note(notes: &mut Vec<String>, user: Option<u32>, path: &Path, error: &io::Error) {
    const MAX_NOTES: usize = 5;
    let why = match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ETIMEDOUT) => "was not waited for: its file system does not answer",
        Some(Errno::EBUSY) => "was left out: files of this user took too long already",
        Some(Errno::EFBIG) => {
            "was left out: too large to be copied from a file system in user space"
        }
        Some(Errno::EOPNOTSUPP) => "was left out: it lies on a file system in user space",
        _ => return,
    };
    let whose = user.map_or_else(String::new, |user| format!(" (of user {user})"));
    let note = format!("{}{whose} {why}", path.display());
    if notes.len() < MAX_NOTES && !notes.contains(&note) {
        notes.push(note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_another_process_files_are_opened_in_this_one() {
        let files = LiveFiles::default();
        let own = Pid(std::process::id());
        let opened = files.of(own).open(Path::new("/proc/self/exe")).unwrap();
        assert_eq!(opened.status.inode, fs::metadata("/proc/self/exe").unwrap().ino());
        assert!(
            files.text(own, "maps").unwrap().starts_with(b"5") || cfg!(not(target_arch = "x86_64"))
        );
        assert!(files.open_in_root(Some(own), Path::new("/etc"), own).is_err());
        assert_eq!(files.notes(), Vec::<String>::new());
    }

    #[test]
    fn what_was_not_waited_for_is_said_of_a_few_files() {
        let mut notes = Vec::new();
        for number in 0..20 {
            let path = format!("/mnt/{}", number / 2);
            note(&mut notes, Some(1000), path.as_ref(), &Errno::ETIMEDOUT.into());
        }
        note(&mut notes, None, "/gone".as_ref(), &Errno::ENOENT.into());
        assert_eq!(notes.len(), 5);
        let expect = "/mnt/0 (of user 1000) was not waited for: its file system does not answer";
        assert_eq!(notes[0], expect);
    }
}
