//! Labels of samples below their lines: `process:[server] thread:[main]`, and numbers as `pid:[4242]`.

use std::collections::BTreeSet;

use crate::pprof::{Role, role_of};
use crate::sink::{Sink, TaskIndex, TaskName};

/// How many keys of labels that tell nothing of threads are named.
const NAMED: usize = 8;

/// The labels of one sample, in as many lines as they come, and which others there were before.
#[derive(Debug, Default)]
pub(super) struct Labels {
    thread: Option<Vec<u8>>,
    process: Option<Vec<u8>>,
    pid: Option<u32>,
    tid: Option<u32>,
    unused: BTreeSet<String>,
}

impl Labels {
    /// Takes a line in; false if it has no labels. Of several labels in one role the first counts, as in
    /// profiles that are not text.
    pub(super) fn take(&mut self, text: &[u8]) -> bool {
        let mut rest = text;
        while let Some((key, value, behind)) = first_label(rest) {
            self.take_one(key, value);
            rest = behind;
        }
        rest.len() < text.len()
    }

    fn take_one(&mut self, key: &[u8], value: &[u8]) {
        // A number may have a unit behind it.
        let number = || {
            let word = value.split(|byte| *byte == b' ').next()?;
            str::from_utf8(word).ok()?.parse().ok()
        };
        match role_of(key) {
            Some(Role::Thread) => drop(self.thread.get_or_insert_with(|| value.to_vec())),
            Some(Role::Process) => drop(self.process.get_or_insert_with(|| value.to_vec())),
            Some(Role::Pid) => self.pid = self.pid.or_else(number),
            Some(Role::Tid) => self.tid = self.tid.or_else(number),
            Some(Role::Evidence) | None => {
                self.unused.insert(String::from_utf8_lossy(key).into_owned());
            }
        }
    }

    /// The thread of the sample whose labels were taken in, if they name it; the next sample starts anew.
    pub(super) fn end_sample(&mut self, sink: &mut Sink) -> Option<TaskIndex> {
        let (thread, process) = (self.thread.take(), self.process.take());
        let (pid, tid) = (self.pid.take(), self.tid.take());
        let name = thread.as_ref().or(process.as_ref())?;
        Some(sink.task(TaskName { name, process: process.as_deref(), pid, tid }))
    }

    /// What is said of labels that tell nothing of threads.
    pub(super) fn note(&self) -> Option<String> {
        let keys: Vec<&str> = self.unused.iter().take(NAMED).map(String::as_str).collect();
        let more = if self.unused.len() > keys.len() { ", ..." } else { "" };
        (!keys.is_empty()).then(|| format!("labels were left out: {}{more}", keys.join(", ")))
    }
}

/// The first label of a line, its key and its value, and what stands behind it. Values may hold blanks and
/// brackets: one ends where another label begins, or with the line.
fn first_label(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let find = |text, part: &[u8]| memchr::memmem::find(text, part);
    let at = find(text, b":[")?;
    let behind = &text[at + 2..];
    let next = find(behind, b"] ").filter(|end| find(&behind[*end..], b":[").is_some());
    let end = next.or_else(|| memchr::memrchr(b']', behind))?;
    Some((text[..at].trim_ascii(), &behind[..end], &behind[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_hold_blanks_and_brackets() {
        let text = b"process:[a [b]] thread name:[x y] bytes:[512 kilobytes]";
        let (key, value, rest) = first_label(text).unwrap();
        assert_eq!((key, value), (&b"process"[..], &b"a [b]"[..]));
        let (key, value, rest) = first_label(rest).unwrap();
        assert_eq!((key, value), (&b"thread name"[..], &b"x y"[..]));
        let (key, value, rest) = first_label(rest).unwrap();
        assert_eq!((key, value, rest), (&b"bytes"[..], &b"512 kilobytes"[..], &b""[..]));
        assert!(first_label(b"no label").is_none() && first_label(b"x:[y").is_none());
    }
}
