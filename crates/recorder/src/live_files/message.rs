//! What flame and its workers say to each other: one message of a socket each.

use std::ffi::OsStr;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flame_image::FileStatus;
use flame_profile::Pid;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The longest message: a path and what goes with it.
const MAX_LEN: usize = 8 << 10;

/// How a path is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// As flame sees it.
    Path,
    /// The same of a debug file: whoever runs flame may have named its directory.
    Debug,
    /// As a process sees it; no link is followed out of its root, and none at the end.
    InRootOf(Pid),
    /// As flame sees it below a directory, whose path is this many bytes of the whole path: as its root,
    /// out of which no link leads.
    Below { root_len: u64 },
    /// As flame sees it: a file of /proc, whose text is handed over.
    Text,
    /// This many bytes of it from a place on: memory.
    Memory { start: u64, len: u64 },
}

/// What a worker is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) how: How,
    /// The most bytes that are copied.
    pub(super) max_copied: u64,
    pub(super) path: PathBuf,
}

/// What a worker says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is at it: what it copies keeps coming.
    Busy,
    /// The file goes with the message.
    File { status: FileStatus, is_copy: bool },
    /// The system's number of an error.
    Refused(i32),
}

impl Request {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let (how, which) = match self.how {
            How::Path => (0, 0),
            How::InRootOf(pid) => (1, u64::from(pid.0)),
            How::Text => (2, 0),
            How::Memory { start, .. } => (3, start),
            How::Below { root_len } => (4, root_len),
            How::Debug => (5, 0),
        };
        let mut bytes = vec![how];
        bytes.extend(which.to_le_bytes());
        bytes.extend(self.max_copied.to_le_bytes());
        bytes.extend(self.path.as_os_str().as_bytes());
        bytes
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Request> {
        let ([how], rest) = bytes.split_first_chunk()?;
        let (which, rest) = rest.split_first_chunk()?;
        let which = u64::from_le_bytes(*which);
        let (max_copied, path) = rest.split_first_chunk()?;
        let how = match how {
            0 => How::Path,
            1 => How::InRootOf(Pid(u32::try_from(which).ok()?)),
            2 => How::Text,
            3 => How::Memory { start: which, len: u64::from_le_bytes(*max_copied) },
            4 => How::Below { root_len: which },
            5 => How::Debug,
            _ => return None,
        };
        let path = Path::new(OsStr::from_bytes(path)).to_owned();
        let max_copied = u64::from_le_bytes(*max_copied);
        Some(Request { how, max_copied, path })
    }
}

impl Answer {
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let words = match self {
            Answer::Busy => vec![0],
            Answer::Refused(errno) => vec![1, u64::from(errno.unsigned_abs())],
            Answer::File { status, is_copy } => vec![
                2,
                status.device,
                status.inode,
                status.owner.into(),
                status.len,
                to_nanos(status.modified),
                status.changed,
                to_nanos(status.created),
                is_copy.into(),
            ],
        };
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Answer> {
        let words: Vec<u64> =
            bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        Some(match *words {
            [0] => Answer::Busy,
            [1, errno] => Answer::Refused(i32::try_from(errno).ok()?),
            [2, device, inode, owner, len, modified, changed, created, is_copy] => {
                let owner = u32::try_from(owner).ok()?;
                let (modified, created) = (to_time(modified), to_time(created));
                let status = FileStatus { device, inode, owner, len, modified, changed, created };
                Answer::File { status, is_copy: is_copy != 0 }
            }
            _ => return None,
        })
    }
}

/// Nanoseconds since 1970; 0 = not known.
fn to_nanos(time: Option<SystemTime>) -> u64 {
    let since_1970 = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since_1970.and_then(|since| u64::try_from(since.as_nanos()).ok()).unwrap_or(0)
}

fn to_time(nanos: u64) -> Option<SystemTime> {
    (nanos > 0).then(|| UNIX_EPOCH + Duration::from_nanos(nanos))
}

/// Sends a message with a descriptor, or without.
pub(super) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Waits for a message; an empty one when the other side is gone.
pub(super) fn receive(socket: impl AsFd) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut bytes = vec![0; MAX_LEN];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let slices = &mut [IoSliceMut::new(&mut bytes)];
        match recvmsg(&socket, slices, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            result => break result?,
        }
    };
    bytes.truncate(received.bytes);
    let mut descriptor = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            descriptor = descriptors.last().or(descriptor);
        }
    }
    Ok((bytes, descriptor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let memory = How::Memory { start: 0x7fff_0000_1000, len: 7 };
        let below = How::Below { root_len: 4 };
        let all = [How::Path, How::InRootOf(Pid(4242)), How::Text, memory, below, How::Debug];
        for how in all {
            let path = PathBuf::from("/usr/bin/less");
            let request = Request { how, max_copied: 7, path };
            assert_eq!(Request::parse(&request.to_bytes()), Some(request));
        }
        let second = Some(UNIX_EPOCH + Duration::from_nanos(1_700_000_000_123_456_789));
        let (modified, created) = (second, None);
        let (device, inode, owner, len, changed) = (1, 2, 3, 4, 5);
        let status = FileStatus { device, inode, owner, len, modified, changed, created };
        for answer in [Answer::Busy, Answer::Refused(13), Answer::File { status, is_copy: true }] {
            assert_eq!(Answer::parse(&answer.to_bytes()), Some(answer));
        }
        assert_eq!((Request::parse(b"\x07"), Answer::parse(b"12345678")), (None, None));
    }
}
