//! Code that runtimes make while they run: which code it was that a sample hit at an address, and
//! its name from the perf map or jitdump of its process.
//!
//! A runtime reuses addresses, so an address alone says little when the recording is over. The logs
//! are read on while recording, only to see which sampled addresses get new code: from then on the
//! address is another [`JitId`]. The names are looked up at the end, once.

mod deferred;
mod process;
mod tables;

use std::time::{Duration, Instant};

use flame_events::{EventKind, Processes};
use flame_profile::{FileOffset, Nanos, Pid, ProcessAddress};
use flame_symbolize::{CodeName, WantedCode};
use flame_unwind::CfiUnwinder;
use rustc_hash::FxHashMap;

use crate::SharedFiles;
use crate::location::JitId;
use crate::runtimes::Runtime;
pub(super) use deferred::{Deferred, DeferredSample};
use process::{JitProcess, KINDS};
use tables::JitModules;
pub(crate) use tables::TableLookup;

/// Between two looks at the logs. More often than that nothing is won, since perf maps say no
/// times, and jitdumps say them whenever they are read.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// How long the last look may take.
const LAST_LOOK: Duration = Duration::from_secs(2);

/// For how long one look reads before the rings are emptied again; the next one goes on with the
/// processes that did not have their turn.
const LOOK_LEN: Duration = Duration::from_millis(20);

/// For how long names are looked up in logs, of all processes.
const NAMING: Duration = Duration::from_secs(10);

/// How many changes of all processes wait at most, 64 bytes each.
const MAX_WAITING: usize = 1 << 20;

/// How many logs are held open at most; those of further processes are opened at the end.
const MAX_OPEN_LOGS: usize = 512;

/// An address with what of the logs counts for it.
#[derive(Clone, Copy, Debug)]
struct Sampled {
    process: usize,
    address: ProcessAddress,
    /// Where its mapping started.
    start: ProcessAddress,
    /// By kind of log: entries from here on are of later code.
    before: [FileOffset; KINDS],
    /// When it was sampled last.
    last: Nanos,
}

/// A process that ran code without a file, for what is said of it at the end.
#[derive(Clone, Debug)]
pub struct JitTarget {
    /// The process.
    pub pid: Pid,
    /// Its runtime, if that is known.
    pub runtime: Option<Runtime>,
    /// Samples whose walk ended in code without a file, for lack of frame pointers.
    pub cut: u64,
    /// Pieces of its code that have no name.
    pub unnamed: usize,
    /// Whether it has not become another program since.
    pub is_current: bool,
    /// Whether its code was read from its memory: then nothing need be asked for.
    pub is_read: bool,
}

/// All code without a file that samples hit.
#[derive(Debug)]
pub(super) struct JitCode {
    processes: Vec<JitProcess>,
    by_pid: FxHashMap<Pid, usize>,
    /// Whose code a forked process has inherited.
    parents: FxHashMap<Pid, Pid>,
    files: SharedFiles,
    sampled: Vec<Sampled>,
    open_logs: usize,
    next_look: Option<Instant>,
    /// Which of the processes has its turn first at the next look.
    turn: usize,
    /// Processes whose logs were not read to their end.
    cut: Vec<Pid>,
    modules: JitModules,
}

impl JitCode {
    /// Of logs that are opened that way.
    pub(super) fn new(files: SharedFiles) -> JitCode {
        JitCode {
            processes: Vec::new(),
            by_pid: FxHashMap::default(),
            parents: FxHashMap::default(),
            files,
            sampled: Vec::new(),
            open_logs: 0,
            next_look: None,
            turn: 0,
            cut: Vec::new(),
            modules: JitModules::default(),
        }
    }

    /// Follows what an event says of processes.
    pub(super) fn apply(&mut self, event: &EventKind<'_>, processes: &Processes) {
        match event {
            EventKind::Mapping(mapping) if process::is_jitdump(&mapping.path) => {
                let process = self.process(mapping.pid, processes);
                self.processes[process].note_dump(&mapping.path, mapping.file);
                self.open_logs += self.processes[process].open_logs(false);
            }
            EventKind::Comm { pid, exec: true, .. } => {
                self.by_pid.remove(pid);
                self.parents.remove(pid);
            }
            EventKind::Fork { pid, parent, .. } if pid != parent => {
                self.by_pid.remove(pid);
                if self.by_pid.contains_key(parent) {
                    self.parents.insert(*pid, *parent);
                }
            }
            _ => {}
        }
    }

    /// The code that stood at an address at a time. Times of one process must not go back.
    pub(super) fn locate(
        &mut self,
        pid: Pid,
        address: ProcessAddress,
        time: Nanos,
        processes: &Processes,
    ) -> JitId {
        let process = self.process(pid, processes);
        self.put_in_force(process, time);
        let current = &mut self.processes[process].current;
        let next = JitId(u32::try_from(self.sampled.len()).unwrap_or(u32::MAX));
        let id = *current.entry(address.0).or_insert(next);
        if id == next {
            let before = [FileOffset(u64::MAX); KINDS];
            let found = processes.find(pid, address);
            let start = found.map_or(address, |found| found.mapping.start);
            self.sampled.push(Sampled { process, address, start, before, last: time });
        } else if let Some(sampled) = self.sampled.get_mut(id.0 as usize) {
            sampled.last = time;
        }
        id
    }

    /// Ends the code at sampled addresses that the logs say other code was put over until a time.
    fn put_in_force(&mut self, process: usize, time: Nanos) {
        let process = &mut self.processes[process];
        while let Some(change) = process.next_change(time) {
            let (start, end) = (change.entry.start.0, change.entry.end.0);
            let covered: Vec<(u64, JitId)> =
                process.current.range(start..end).map(|(at, id)| (*at, *id)).collect();
            for (address, id) in covered {
                let Some(sampled) = self.sampled.get_mut(id.0 as usize) else { continue };
                // What was sampled later than that was this code already; where no time is said, that
                // of the file is rounded down to a clock tick.
                if change.entry.time.is_none() || sampled.last < change.time {
                    sampled.before = process.positions(&change);
                    process.current.remove(&address);
                }
            }
        }
    }

    /// What the unwinder is to know of an address at a time, by the jitdump of its process.
    pub(super) fn table(&self, pid: Pid, address: ProcessAddress, now: Nanos) -> TableLookup {
        let process = self.by_pid.get(&pid).and_then(|index| self.processes.get(*index));
        let Some(process) = process else { return TableLookup::None };
        match process.tables.lookup(address, now) {
            TableLookup::None if process.may_have_tables(now) => TableLookup::Unread,
            found => found,
        }
    }

    /// Gives the unwinder the table of an address, if it can be had now.
    pub(super) fn open_table(
        &mut self,
        pid: Pid,
        address: ProcessAddress,
        now: Nanos,
        unwinder: &mut CfiUnwinder,
    ) {
        let waiting: usize = self.processes.iter().map(JitProcess::waiting).sum();
        let process = self.by_pid.get(&pid).and_then(|index| self.processes.get_mut(*index));
        let Some(process) = process else { return };
        if process.tables.lookup(address, now) == TableLookup::None {
            process.looked_for_tables(now);
            process.read_on(MAX_WAITING.saturating_sub(waiting));
        }
        process.open_table(address, &mut self.modules, unwinder);
    }

    /// The position of a process, new or known.
    fn process(&mut self, pid: Pid, processes: &Processes) -> usize {
        if let Some(known) = self.by_pid.get(&pid) {
            return *known;
        }
        let parent = self.parents.get(&pid).copied();
        let mut new = JitProcess::new(pid, parent, processes, self.files.clone());
        if self.open_logs < MAX_OPEN_LOGS {
            self.open_logs += new.open_logs(true);
        }
        let index = self.processes.len();
        self.processes.push(new);
        self.by_pid.insert(pid, index);
        index
    }

    /// Reads what runtimes have written since the last look, if that was a while ago.
    pub(super) fn look(&mut self) {
        let now = Instant::now();
        if self.by_pid.is_empty() || self.next_look.is_some_and(|next| now < next) {
            return;
        }
        self.next_look = Some(now + LOOK_INTERVAL);
        let _ = self.read_on();
    }

    /// Reads on in all logs; whether there was anything.
    fn read_on(&mut self) -> bool {
        let mut read = false;
        let end = Instant::now() + LOOK_LEN;
        let mut current: Vec<usize> = self.by_pid.values().copied().collect();
        current.sort_unstable();
        let first = current.partition_point(|index| *index < self.turn);
        current.rotate_left(first);
        let mut waiting: usize = self.processes.iter().map(JitProcess::waiting).sum();
        for index in current {
            if Instant::now() >= end {
                self.turn = index;
                return true;
            }
            let process = &mut self.processes[index];
            if self.open_logs < MAX_OPEN_LOGS {
                self.open_logs += process.open_logs(false);
            }
            let before = process.waiting();
            read |= process.read_on(MAX_WAITING.saturating_sub(waiting));
            waiting += process.waiting() - before;
        }
        read
    }

    /// Whether the code of a process that was met at a time may still become known better: its log has times,
    /// and what is written in it so far ends before.
    pub(super) fn is_open(&self, pid: Pid, time: Nanos) -> bool {
        let process = self.by_pid.get(&pid).and_then(|index| self.processes.get(*index));
        process.is_some_and(|process| process.written_until().is_some_and(|until| until < time))
    }

    /// Gets to know a process, if it is not known yet.
    pub(super) fn meet(&mut self, pid: Pid, processes: &Processes) {
        self.process(pid, processes);
    }

    /// Counts a walk that ended in code without a file.
    pub(super) fn count_cut(&mut self, pid: Pid, processes: &Processes) {
        let process = self.process(pid, processes);
        self.processes[process].cut += 1;
    }

    /// The last look, when the recording is over.
    ///
    /// Entries that were written later say nothing about samples; what is written faster than it is
    /// read must not keep flame from ending.
    pub(super) fn finish(&mut self) {
        self.processes.iter_mut().for_each(JitProcess::find_now);
        let deadline = Instant::now() + LAST_LOOK;
        while self.read_on() && Instant::now() < deadline {}
    }

    /// The processes that ran code without a file, in the order in which they were met.
    pub(super) fn targets(&self) -> Vec<JitTarget> {
        let target = |(index, process): (usize, &JitProcess)| JitTarget {
            pid: process.pid,
            runtime: process.runtime,
            cut: process.cut,
            unnamed: process.unnamed,
            is_current: self.by_pid.get(&process.pid) == Some(&index),
            is_read: false,
        };
        self.processes.iter().enumerate().map(target).collect()
    }

    /// The names of everything that was located, by [`JitId`].
    pub(super) fn names(&mut self) -> JitNames {
        let mut wanted: Vec<Vec<(usize, Sampled)>> = vec![Vec::new(); self.processes.len()];
        for (number, sampled) in self.sampled.iter().enumerate() {
            wanted[sampled.process].push((number, *sampled));
        }
        let mut names = vec![None; self.sampled.len()];
        self.cut.clear();
        let end = Instant::now() + NAMING;
        for (process, wanted) in self.processes.iter_mut().zip(&wanted) {
            if wanted.is_empty() {
                continue;
            }
            if Instant::now() >= end {
                self.cut.push(process.pid);
                continue;
            }
            process.prepare_for_names();
            for (kind, log) in process.logs() {
                let before = |sampled: &Sampled| match log.was_rewritten() {
                    true => FileOffset(u64::MAX),
                    false => sampled.before[kind],
                };
                let to_wanted = |(_, sampled): &(usize, Sampled)| WantedCode {
                    address: sampled.address,
                    before: before(sampled),
                };
                let asked: Vec<WantedCode> = wanted.iter().map(to_wanted).collect();
                let (found, is_cut) = log.names(&asked);
                self.cut.extend(is_cut.then_some(process.pid));
                for ((number, _), name) in wanted.iter().zip(found) {
                    names[*number] = names[*number].take().or(name);
                }
            }
            process.unnamed = wanted.iter().filter(|(number, _)| names[*number].is_none()).count();
            if let Some(runtime) = process.runtime {
                for (number, _) in wanted {
                    if let Some(name) = &mut names[*number] {
                        runtime.tidy(name);
                    }
                }
            }
        }
        JitNames { names }
    }

    /// What was there to name the code of processes that has no names, and why it was not believed.
    pub(super) fn refused(&self) -> Vec<String> {
        let unnamed = self.processes.iter().filter(|process| process.unnamed > 0);
        let note = |process: &JitProcess| {
            let why = process.refused()?;
            Some(format!("code that process {} made has no names: {why}", process.pid))
        };
        unnamed.filter_map(note).collect()
    }

    /// What has to be said of logs that were not read to their end.
    pub(super) fn note(&self) -> Option<String> {
        let first = self.cut.first()?;
        let others = self.cut.len() - 1;
        let whose = match others {
            0 => format!("process {first}"),
            _ => format!("process {first} and {others} more"),
        };
        Some(format!("the perf map of {whose} takes too long to read: some names are missing"))
    }

    /// Where an id's code was in its mapping: where that was is the process's own affair.
    pub(super) fn place_in_mapping(&self, id: JitId) -> ProcessAddress {
        let sampled = self.sampled.get(id.0 as usize);
        let offset = sampled.map(|sampled| sampled.address.0.saturating_sub(sampled.start.0));
        ProcessAddress(offset.unwrap_or(0))
    }
}

/// Names by [`JitId`].
#[derive(Debug, Default)]
pub(super) struct JitNames {
    names: Vec<Option<CodeName>>,
}

impl JitNames {
    /// The name of a piece of code.
    pub(super) fn get(&self, id: JitId) -> Option<&CodeName> {
        self.names.get(id.0 as usize)?.as_ref()
    }
}
