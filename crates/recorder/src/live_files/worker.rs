//! The other side: opens what it is asked for, and copies what must not be waited for later.
//!
//! It may stay in a call for ever; nothing else is done by its process then, and nobody waits for
//! it.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use flame_image::{FileStatus, OpenFile, open_found};
use flame_sampler::fork_below;
use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::statfs::{FUSE_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, fstatfs};
use nix::unistd::{Whence, lseek};
use rustix::process::setpriority_process;

use super::hooks::{Duty, Hooks};
use super::message::{Answer, How, Request, receive, send};
use super::overlay;
use crate::process_root::ProcessRoot;

/// What the keeper is told: to start a worker for files, or for a job, whose question follows, each
/// with its socket; and that the recording is over.
pub(super) const FILES: &[u8] = b"files";
pub(super) const JOB: &[u8] = b"job:";
pub(super) const OVER: &[u8] = b"over";

/// The nice value: that of flame while it records.
const PRIORITY: i32 = -10;

/// How much is copied at a time, in bytes.
const PIECE: usize = 256 << 10;

/// How often flame hears that a copy goes on.
const SIGN_OF_LIFE: Duration = Duration::from_millis(100);

/// Makes a worker for each socket that comes, until the other side is gone.
pub(super) fn keep(control: &OwnedFd, own_devices: &[u64], hooks: Hooks) {
    // Flame waits for it while it records, when it goes first itself.
    let _ = setpriority_process(None, PRIORITY);
    let job = hooks.job;
    (hooks.keep_rights_for)(if job.is_some() { Duty::FilesAndJob } else { Duty::Files });
    close_terminal();
    let mut is_over = false;
    while let Ok((message, socket)) = receive(control) {
        // Where no process can be had, the other side hears that the socket is closed.
        let _ = match (message.strip_prefix(JOB), job, socket) {
            (Some(asked), Some(job), Some(socket)) => fork_below(|| job(asked, &socket)),
            (None, _, Some(socket)) => fork_below(|| {
                if !is_over {
                    (hooks.keep_rights_for)(Duty::Files);
                }
                serve(&socket, own_devices, hooks);
            }),
            _ if message == OVER => {
                is_over = true;
                (hooks.keep_rights_for)(Duty::DebugFiles);
                Ok(())
            }
            _ => return,
        };
    }
}

/// Whoever reads flame's output waits for its end, and must not wait for this process.
fn close_terminal() {
    if let Ok(null) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = nix::unistd::dup2_stdin(&null);
        let _ = nix::unistd::dup2_stdout(&null);
        let _ = nix::unistd::dup2_stderr(&null);
    }
    let _ = nix::unistd::chdir("/");
}

fn serve(socket: &OwnedFd, own_devices: &[u64], hooks: Hooks) {
    while let Ok((message, _)) = receive(socket) {
        let Some(request) = Request::parse(&message) else { return };
        let mut answered = Err(Errno::EIO.into());
        let mut answer = || answered = answer(&request, socket, own_devices);
        match request.how {
            How::Debug => (hooks.open_debug_file)(&mut answer),
            _ => answer(),
        }
        let answered = match answered {
            Ok((opened, is_copy)) => {
                let answer = Answer::File { status: opened.status, is_copy };
                send(socket, &answer.to_bytes(), Some(opened.file.as_fd()))
            }
            Err(error) => {
                let errno = match error.kind() {
                    io::ErrorKind::InvalidInput => Errno::EINVAL as i32,
                    _ => error.raw_os_error().unwrap_or(Errno::EIO as i32),
                };
                send(socket, &Answer::Refused(errno).to_bytes(), None)
            }
        };
        if answered.is_err() {
            return;
        }
    }
}

/// The file, and whether it is a copy.
fn answer(
    request: &Request,
    socket: &OwnedFd,
    own_devices: &[u64],
) -> io::Result<(OpenFile, bool)> {
    let mut is_named = false;
    let mut opened = match request.how {
        // flame's own names of files of /proc.
        How::Text | How::Memory { .. } => {
            let file = File::open(&request.path)?;
            let status = FileStatus::from(&file.metadata()?);
            OpenFile { file, status }
        }
        How::Path | How::Debug => {
            let flags = nix::libc::O_PATH | nix::libc::O_CLOEXEC;
            let found = OpenOptions::new().read(true).custom_flags(flags).open(&request.path)?;
            open_found(&found)?
        }
        How::InRootOf(pid) => {
            let root = if pid.0 == 0 { ProcessRoot::own() } else { ProcessRoot::of(pid) };
            root?.open(&request.path)?
        }
        How::Below { root_len } => {
            let (root, path) = parts(&request.path, root_len)?;
            let root = ProcessRoot::at(root)?;
            let opened = root.follow(path)?.open()?;
            // Whoever names a directory waits for the file system that it is on.
            is_named = opened.status.device == root.device()?;
            opened
        }
    };
    let is_own = is_named || own_devices.contains(&opened.file.metadata()?.dev());
    let may_hang = !is_own && is_others_work(&opened.file)?;
    match request.how {
        // What grows cannot be copied.
        How::InRootOf(_) if may_hang => Err(Errno::EOPNOTSUPP.into()),
        How::Path | How::Debug | How::Below { .. } if !may_hang => {
            // A server that is gone shows here, where that does no harm.
            opened.file.read_at(&mut [0], 0)?;
            Ok((opened, false))
        }
        How::InRootOf(_) => Ok((opened, false)),
        How::Path | How::Debug | How::Below { .. } | How::Text => {
            opened.file = copy(&opened.file, request.max_copied, socket)?;
            Ok((opened, true))
        }
        How::Memory { start, len } => {
            opened.file = copy_at(&opened.file, start, len)?;
            Ok((opened, true))
        }
    }
}

/// The path of a directory, this many bytes of the whole, and what is below it.
fn parts(whole: &Path, root_len: u64) -> io::Result<(&Path, &Path)> {
    let bytes = whole.as_os_str().as_bytes();
    let (root, path) = usize::try_from(root_len)
        .ok()
        .and_then(|len| bytes.split_at_checked(len))
        .ok_or(Errno::EINVAL)?;
    Ok((Path::new(OsStr::from_bytes(root)), Path::new(OsStr::from_bytes(path))))
}

/// Whether a file system is, or may be on top of, a program of some user's. The file itself decides: it
/// may have come to its process as a descriptor, from any namespace.
fn is_others_work(file: &File) -> io::Result<bool> {
    let kind = fstatfs(file)?.filesystem_type();
    let device = file.metadata()?.dev();
    let is_known = || overlay::is_known(device);
    Ok(kind == FUSE_SUPER_MAGIC || (kind == OVERLAYFS_SUPER_MAGIC && !is_known()))
}

/// A new file in memory.
fn file_in_memory() -> io::Result<File> {
    let name = c"flame: file of a target";
    Ok(File::from(memfd_create(name, MFdFlags::MFD_CLOEXEC)?))
}

/// A copy of this many bytes from a place on.
fn copy_at(file: &File, start: u64, len: u64) -> io::Result<File> {
    let mut bytes = vec![0; usize::try_from(len).map_err(|_| Errno::EFBIG)?];
    file.read_exact_at(&mut bytes, start)?;
    let copy = file_in_memory()?;
    copy.write_all_at(&bytes, 0)?;
    Ok(copy)
}

/// A copy in memory.
fn copy(file: &File, max_len: u64, socket: &OwnedFd) -> io::Result<File> {
    let mut copy = file_in_memory()?;
    let (mut buffer, mut position, mut copied) = (vec![0; PIECE], 0, 0);
    let mut last_sign = Instant::now();
    loop {
        let len = file.read_at(&mut buffer, position)?;
        if len == 0 {
            break;
        }
        copied += len as u64;
        if copied > max_len {
            return Err(Errno::EFBIG.into());
        }
        copy.write_all(&buffer[..len])?;
        position += len as u64;
        if last_sign.elapsed() >= SIGN_OF_LIFE {
            last_sign = Instant::now();
            send(socket, &Answer::Busy.to_bytes(), None)?;
        }
    }
    lseek(&copy, 0, Whence::SeekSet)?;
    Ok(copy)
}
