//! The logs of one process: opened when they appear, and read on for changes.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use flame_events::{FileId, Processes};
use flame_profile::{FileOffset, Nanos, Pid, ProcessAddress};
use flame_symbolize::{CodeEntry, CodeLog, CodeLogKind, CodeName, WantedCode};
use flame_unwind::CfiUnwinder;

use super::tables::{JitModules, JitTables};
use crate::SharedFiles;
use crate::clock::to_monotonic;
use crate::location::JitId;
use crate::runtimes::Runtime;
use crate::target::Identity;

/// How many kinds of logs there are.
pub(super) const KINDS: usize = 2;
/// In the order in which they are believed: a jitdump says times and lines.
const KIND_ORDER: [CodeLogKind; KINDS] = [CodeLogKind::JitDump, CodeLogKind::PerfMap];

/// How much of a log one look reads, in bytes, so that the rings are not left to overflow.
const MAX_LOOK_LEN: u64 = 2 << 20;

/// How far before a map's end its last line is looked for, in bytes.
const LAST_LINE_LEN: u64 = 32 << 10;

/// For how long logs are looked for at each look, and how often afterwards.
const EAGER: Duration = Duration::from_secs(5);
const FIND_INTERVAL: Duration = Duration::from_millis(500);

/// How many changes of a process wait at most until a sample shows that their time has come.
const MAX_CHANGES: usize = 256 << 10;

/// How often a log is read for the table of code that a sample hit, at most.
const TABLES_INTERVAL: Nanos = Nanos(5_000_000);

/// A process that runs code without a file.
#[derive(Debug)]
pub(super) struct JitProcess {
    pub(super) pid: Pid,
    pub(super) runtime: Option<Runtime>,
    pub(super) cut: u64,
    pub(super) unnamed: usize,
    /// The current code at each sampled address.
    pub(super) current: BTreeMap<u64, JitId>,
    /// Who it is, and who it was forked from.
    identity: Identity,
    forked_from: Option<Identity>,
    dump: Option<Dump>,
    logs: [Option<Log>; KINDS],
    changes: VecDeque<Change>,
    /// Of its jitdump.
    pub(super) tables: JitTables,
    /// The time of the sample for which the log was last read, to find tables.
    tables_read: Nanos,
    /// Why a log was not believed: the first reason.
    refused: OnceLock<String>,
    files: SharedFiles,
    met: Instant,
    /// When to look for logs again; `None` = whenever it is asked for.
    next_find: Option<Instant>,
}

/// A jitdump that a process has mapped.
#[derive(Debug)]
struct Dump {
    path: PathBuf,
    id: FileId,
    /// Open as soon as it was found: many runtimes write the first byte of it much later.
    file: Option<File>,
}

/// Code that a log says came to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) time: Nanos,
    kind: usize,
    pub(super) entry: CodeEntry,
}

/// An open log and how far it was read.
#[derive(Debug)]
pub(super) struct Log {
    log: CodeLog,
    read_to: FileOffset,
    /// The bytes before `read_to`, to notice a file that is written anew.
    seen: Vec<u8>,
    rewritten: bool,
    /// The time of the last entry.
    written_until: Nanos,
}

/// Whether the kernel's name of a mapping is that of a jitdump, which runtimes map as executable
/// for no other reason than to be found.
pub(super) fn is_jitdump(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let number = name.strip_prefix(b"jit-").and_then(|rest| rest.strip_suffix(b".dump"));
    number.is_some_and(|n| !n.is_empty() && n.iter().all(u8::is_ascii_digit))
}

impl JitProcess {
    pub(super) fn new(
        pid: Pid,
        forked_from: Option<Pid>,
        processes: &Processes,
        files: SharedFiles,
    ) -> JitProcess {
        let mut dump = None;
        let mut runtime = None;
        for mapping in processes.space(pid).into_iter().flat_map(|space| space.iter()) {
            let Some(image) = processes.image(mapping.image) else { continue };
            runtime = runtime.or_else(|| Runtime::of_image(&image.path));
            if is_jitdump(&image.path) {
                dump = Some(Dump::new(&image.path, image.file));
            }
        }
        JitProcess {
            pid,
            runtime,
            cut: 0,
            unnamed: 0,
            current: BTreeMap::new(),
            identity: files.identity(pid),
            forked_from: forked_from.map(|parent| files.identity(parent)),
            dump,
            logs: [const { None }; KINDS],
            changes: VecDeque::new(),
            tables: JitTables::default(),
            tables_read: Nanos(0),
            refused: OnceLock::new(),
            files,
            met: Instant::now(),
            next_find: None,
        }
    }

    /// Remembers the jitdump that the process has mapped.
    pub(super) fn note_dump(&mut self, path: &[u8], file: FileId) {
        self.find_now();
        self.dump = Some(Dump::new(path, file));
    }

    /// Has logs looked for at the next look, whenever the last one was.
    pub(super) fn find_now(&mut self) {
        self.next_find = None;
    }

    /// Opens the logs that there are and were not before; how many. `is_new` says that no sample
    /// of the process was taken before: then what a map already has counts from the start.
    pub(super) fn open_logs(&mut self, is_new: bool) -> usize {
        let now = Instant::now();
        if self.next_find.is_some_and(|next| now < next) {
            return 0;
        }
        // Most runtimes that write a map have one soon.
        self.next_find = (now > self.met + EAGER).then_some(now + FIND_INTERVAL);
        if let Some(dump) = &mut self.dump {
            dump.find(self.pid, &self.files);
        }
        let mut opened = 0;
        for (kind, which) in KIND_ORDER.iter().enumerate() {
            if self.logs[kind].is_some() {
                continue;
            }
            let Some(log) = self.find(*which) else { continue };
            let read_to = match (is_new, which) {
                (true, CodeLogKind::PerfMap) => end_of_lines(&log),
                _ => FileOffset(0),
            };
            let seen = log.fingerprint(read_to);
            let written_until = Nanos(0);
            self.logs[kind] = Some(Log { log, read_to, seen, rewritten: false, written_until });
            opened += 1;
        }
        opened
    }

    /// The log of that kind where the process has it, or where flame would see it.
    fn find(&self, kind: CodeLogKind) -> Option<CodeLog> {
        let path_of = |number| Path::new("/tmp").join(format!("perf-{number}.map"));
        let open = |root, number, writer: &Identity| {
            let path = path_of(number);
            match self.files.open_in_root(root, &path, self.pid) {
                Ok(file) => self.open_map(file, &path, writer),
                Err(error) => {
                    if error.kind() == io::ErrorKind::InvalidInput {
                        self.refuse(format!("{} is a link or no regular file", path.display()));
                    }
                    None
                }
            }
        };
        match kind {
            CodeLogKind::JitDump => {
                let dump = self.dump.as_ref()?;
                self.open(dump.file.as_ref()?.try_clone().ok()?, &dump.path, kind)
            }
            CodeLogKind::PerfMap => {
                let (own, parent) = (&self.identity, self.forked_from.as_ref());
                open(Some(self.pid), own.inner_pid, own)
                    .or_else(|| open(None, self.pid.0, own))
                    .or_else(|| parent.and_then(|it| open(Some(self.pid), it.inner_pid, it)))
            }
        }
    }

    /// Opens a map, but not what an earlier process of its writer's number has left behind.
    fn open_map(&self, file: File, path: &Path, writer: &Identity) -> Option<CodeLog> {
        let modified = file.metadata().ok()?.modified().ok();
        if writer.started.is_some_and(|start| modified.is_some_and(|time| time < start)) {
            self.refuse(format!("{} is older than its process", path.display()));
            return None;
        }
        self.open(file, path, CodeLogKind::PerfMap)
    }

    /// Opens a log of the process's own user. Root's are believed of root's processes only: whoever
    /// can mount something has files of root's that he may not read appear under the name of a log.
    fn open(&self, file: File, path: &Path, kind: CodeLogKind) -> Option<CodeLog> {
        let opened = CodeLog::open(file, path, &[self.identity.user], kind);
        opened.inspect_err(|error| self.refuse(error.to_string())).ok()
    }

    /// Remembers why a log is not believed: the first reason.
    fn refuse(&self, why: String) {
        tracing::info!(%why, "code log left out");
        let _ = self.refused.set(why);
    }

    /// Why the process has no log that is believed, although there is one.
    pub(super) fn refused(&self) -> Option<&str> {
        let has_log = self.logs.iter().any(Option::is_some);
        self.refused.get().map(String::as_str).filter(|_| !has_log)
    }

    /// How many changes wait.
    pub(super) fn waiting(&self) -> usize {
        self.changes.len()
    }

    /// Reads what was appended to the logs, and keeps no more than `most` of it; whether there was
    /// anything.
    pub(super) fn read_on(&mut self, most: usize) -> bool {
        let known = self.changes.len();
        for (kind, log) in self.logs.iter_mut().enumerate() {
            let Some(log) = log else { continue };
            let room = MAX_CHANGES.saturating_sub(self.changes.len()).min(most);
            let changes = log.read_on(room);
            if KIND_ORDER[kind] == CodeLogKind::JitDump {
                changes.iter().for_each(|(_, entry)| self.tables.note(*entry));
                if log.rewritten {
                    self.tables.clear();
                }
            }
            let changes = changes.into_iter();
            self.changes.extend(changes.map(|(time, entry)| Change { time, kind, entry }));
        }
        // Two logs of one process are rare; then the queue has two runs in time order.
        self.changes.make_contiguous().sort_by_key(|change| change.time);
        self.changes.len() > known
    }

    /// Whether the log is worth another look for the tables of what a sample hit.
    pub(super) fn may_have_tables(&self, now: Nanos) -> bool {
        !self.tables.is_empty() && now.0.saturating_sub(self.tables_read.0) >= TABLES_INTERVAL.0
    }

    /// Notes that it was looked at.
    pub(super) fn looked_for_tables(&mut self, now: Nanos) {
        self.tables_read = now;
    }

    /// Gives the table of an address to the unwinder.
    pub(super) fn open_table(
        &mut self,
        address: ProcessAddress,
        modules: &mut JitModules,
        unwinder: &mut CfiUnwinder,
    ) {
        let dumps = self.logs.iter().flatten().map(|log| &log.log);
        let dump = dumps.into_iter().find(|log| log.kind() == CodeLogKind::JitDump);
        let read = |entry: &CodeEntry| dump.and_then(|dump| dump.unwinding(entry));
        self.tables.open(address, read, modules, unwinder);
    }

    /// Until when the code of the process is known; `None` where no log says times.
    pub(super) fn written_until(&self) -> Option<Nanos> {
        self.dump.as_ref()?;
        let log = self.logs.iter().flatten().find(|log| log.log.kind() == CodeLogKind::JitDump);
        Some(log.map_or(Nanos(0), |log| log.written_until))
    }

    /// The next change up to a time.
    pub(super) fn next_change(&mut self, time: Nanos) -> Option<Change> {
        let next = self.changes.front().copied().filter(|change| change.time <= time);
        if next.is_some() {
            self.changes.pop_front();
        }
        next
    }

    /// From where on the logs no longer speak of the code that a change ends.
    pub(super) fn positions(&self, change: &Change) -> [FileOffset; KINDS] {
        let read_to = |log: &Option<Log>| log.as_ref().map(|log| log.read_to);
        let mut positions =
            self.logs.each_ref().map(|log| read_to(log).unwrap_or(FileOffset(u64::MAX)));
        positions[change.kind] = change.entry.at;
        positions
    }

    /// Opens what has been written only now, and sees whether a log is another one than before.
    pub(super) fn prepare_for_names(&mut self) {
        self.find_now();
        self.open_logs(false);
        for (kind, which) in KIND_ORDER.iter().enumerate() {
            let newest = self.find(*which);
            let Some(log) = &mut self.logs[kind] else { continue };
            log.notice_rewriting();
            if let Some(newest) = newest.filter(|newest| !newest.is_same_file(&log.log)) {
                (log.log, log.rewritten) = (newest, true);
            }
        }
    }

    /// The logs with the number of their kind, those first that are believed first.
    pub(super) fn logs(&self) -> impl Iterator<Item = (usize, &Log)> {
        self.logs.iter().enumerate().filter_map(|(kind, log)| Some((kind, log.as_ref()?)))
    }
}

impl Dump {
    fn new(path: &[u8], id: FileId) -> Dump {
        let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
        Dump { path: PathBuf::from(OsStr::from_bytes(path)), id, file: None }
    }

    /// Opens the very file that is mapped, where the process sees it or where flame does.
    fn find(&mut self, pid: Pid, files: &SharedFiles) {
        let is_it = |file: &File| match self.id {
            FileId::Inode { inode, .. } => file.metadata().is_ok_and(|data| data.ino() == inode),
            FileId::None | FileId::BuildId(_) => false,
        };
        let open = |root| files.open_in_root(root, &self.path, pid).ok();
        if self.file.is_none() {
            self.file = open(Some(pid)).filter(is_it);
            self.file = self.file.take().or_else(|| open(None).filter(is_it));
        }
    }
}

impl Log {
    /// The entries that were appended, with the times from which on they hold.
    fn read_on(&mut self, room: usize) -> Vec<(Nanos, CodeEntry)> {
        let Ok((len, modified)) = self.log.state() else { return Vec::new() };
        if len == self.read_to {
            return Vec::new();
        }
        self.notice_rewriting();
        if self.rewritten || room == 0 {
            return Vec::new();
        }
        // A line says no time; most lines of one look are written in one go, at the last.
        let modified = to_monotonic(modified).max(self.written_until);
        let until = FileOffset(len.0.min(self.read_to.0.saturating_add(MAX_LOOK_LEN)));
        let mut found = Vec::new();
        let mut each = |entry: CodeEntry| found.push((entry.time.unwrap_or(modified), entry));
        let Ok(scanned) = self.log.scan(self.read_to, until, &mut each) else { return Vec::new() };
        found.retain(|(_, entry)| entry.at < scanned.next);
        tracing::debug!(entries = found.len(), ?modified, ?scanned, "code log grew");
        self.read_to = scanned.next;
        self.seen = self.log.fingerprint(scanned.next);
        let last = found.iter().map(|(time, _)| *time).max();
        self.written_until = last.unwrap_or_default().max(self.written_until);
        found
    }

    /// A log that was not only appended to says nothing about the past any more.
    fn notice_rewriting(&mut self) {
        self.rewritten |= self.log.fingerprint(self.read_to) != self.seen;
    }

    /// Whether that is so.
    pub(super) fn was_rewritten(&self) -> bool {
        self.rewritten
    }

    /// A name, or none, for each address; and whether not all of the log could be read.
    pub(super) fn names(&self, wanted: &[WantedCode]) -> (Vec<Option<CodeName>>, bool) {
        match self.log.names(wanted) {
            Ok(found) => {
                tracing::info!(skipped = found.skipped, found.is_cut, "code log read");
                (found.names, found.is_cut)
            }
            Err(error) => {
                tracing::warn!(%error, "code log cannot be read");
                (vec![None; wanted.len()], false)
            }
        }
    }
}

/// Where the first line of a map begins that is not written to its end.
fn end_of_lines(log: &CodeLog) -> FileOffset {
    let len = log.state().map_or(FileOffset(0), |(len, _)| len);
    let near = FileOffset(len.0.saturating_sub(LAST_LINE_LEN));
    log.scan(near, len, &mut |_| {}).map_or(len, |scanned| scanned.next)
}
