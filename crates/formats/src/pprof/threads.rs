//! Threads as labels of samples: `thread` and `process` (texts), `pid` and `tid` (numbers).

use std::collections::{BTreeSet, HashMap};

use flame_profile::{Evidence, Pid, Profile, Thread, ThreadId, Tid};

use super::error::PprofError;
use super::tables::Tables;
use super::{evidence, proto};

/// What a label says about the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The thread's name.
    Thread,
    /// The name of its process.
    Process,
    /// The process id.
    Pid,
    /// The thread id.
    Tid,
    /// What the stack rests on.
    Evidence,
}

/// Keys by role. The first five are what flame writes; the others are of perf_to_profile and of
/// the libraries that write labels for continuous profilers.
const KEYS: [(&str, Role); 13] = [
    ("thread", Role::Thread),
    ("process", Role::Process),
    ("pid", Role::Pid),
    ("tid", Role::Tid),
    (evidence::KEY, Role::Evidence),
    ("thread_comm", Role::Thread),
    ("thread_name", Role::Thread),
    ("thread name", Role::Thread),
    ("comm", Role::Process),
    ("process_name", Role::Process),
    ("process_id", Role::Pid),
    ("thread_id", Role::Tid),
    ("thread id", Role::Tid),
];

/// What a label with that key says about the thread.
pub(crate) fn role_of(key: &[u8]) -> Option<Role> {
    KEYS.iter().find(|(known, _)| known.as_bytes() == key).map(|(_, role)| *role)
}

/// The labels of a thread; what is not known has none. `string` gives the index of a string.
pub(super) fn labels(
    profile: &Profile,
    thread: ThreadId,
    string: &mut impl FnMut(&str) -> i64,
) -> Vec<proto::Label> {
    let thread = profile.thread(thread);
    let mut text = |key, value: &str| {
        let (key, text) = (string(key), string(value));
        proto::Label { key, text, number: 0 }
    };
    let mut labels = vec![text("thread", profile.text(thread.name))];
    labels.extend(thread.process.map(|process| text("process", profile.text(process))));
    let mut number =
        |key, value: u32| proto::Label { key: string(key), text: 0, number: i64::from(value) };
    labels.extend(thread.pid.map(|Pid(pid)| number("pid", pid)));
    labels.extend(thread.tid.map(|Tid(tid)| number("tid", tid)));
    labels
}

/// Finds threads in labels.
#[derive(Debug)]
pub(super) struct ThreadReader {
    /// By index of the key's string.
    roles: HashMap<i64, Role>,
    /// The name of samples that say none.
    fallback: String,
}

impl ThreadReader {
    /// For a file with these strings; samples without a name are of thread `fallback`.
    pub(super) fn new(strings: &[&[u8]], fallback: String) -> ThreadReader {
        let roles = strings.iter().zip(0..).filter_map(|(text, i)| Some((i, role_of(text)?)));
        ThreadReader { roles: roles.collect(), fallback }
    }

    /// The thread that the labels tell of, and what the stack rests on; of several labels in one
    /// role the first counts. `unused` gets the keys of labels that tell nothing of these.
    ///
    /// # Errors
    /// When a label refers to a string that is not there.
    pub(super) fn thread(
        &self,
        labels: &[proto::Label],
        tables: &Tables<'_>,
        profile: &mut Profile,
        unused: &mut BTreeSet<i64>,
    ) -> Result<(ThreadId, Evidence), PprofError> {
        let (mut name, mut process, mut pid, mut tid) = (None, None, None, None);
        let mut evidence = None;
        for label in labels {
            match self.roles.get(&label.key) {
                Some(Role::Thread) if name.is_none() => name = Some(tables.string(label.text)?),
                Some(Role::Process) if process.is_none() => {
                    process = Some(tables.string(label.text)?);
                }
                Some(Role::Pid) if pid.is_none() => pid = number(label, tables)?,
                Some(Role::Tid) if tid.is_none() => tid = number(label, tables)?,
                Some(Role::Evidence) if evidence.is_none() => {
                    evidence = evidence::of_word(&tables.string(label.text)?);
                    if evidence.is_none() {
                        unused.insert(label.key);
                    }
                }
                Some(_) => {}
                None => {
                    unused.insert(label.key);
                }
            }
        }
        let fallback = process.as_deref().unwrap_or(&self.fallback);
        let name = profile.intern(name.as_deref().unwrap_or(fallback));
        let process = process.map(|process| profile.intern(&process));
        let thread = Thread { name, process, pid: pid.map(Pid), tid: tid.map(Tid) };
        Ok((profile.add_whole_thread(thread), evidence.unwrap_or_default()))
    }
}

/// The number of a label; some tools write ids as texts. `None` for what is not an id.
fn number(label: &proto::Label, tables: &Tables<'_>) -> Result<Option<u32>, PprofError> {
    if label.text == 0 {
        return Ok(u32::try_from(label.number).ok());
    }
    Ok(tables.string(label.text)?.parse().ok())
}
