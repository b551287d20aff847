//! The /tmp/perf-PID.map files of processes that ran code without a file.

use std::path::PathBuf;

use flame_profile::{Pid, ProcessAddress};
use flame_symbolize::PerfMap;
use nix::unistd::Uid;
use rustc_hash::FxHashMap;

use crate::proc;

/// Root may write anybody's map.
const ROOT: u32 = 0;

/// Who owned each process that ran code without a file: only their maps, and root's, are believed.
#[derive(Debug, Default)]
pub(super) struct Owners(FxHashMap<Pid, u32>);

impl Owners {
    /// Remembers the owner of a process while it runs.
    pub(super) fn note(&mut self, pid: Pid) {
        self.0
            .entry(pid)
            .or_insert_with(|| proc::owner_of(pid).unwrap_or_else(|| Uid::effective().as_raw()));
    }

    /// The maps of those processes that have one.
    pub(super) fn open_maps(&self) -> Maps {
        let mut maps = FxHashMap::default();
        let mut pids: Vec<(&Pid, &u32)> = self.0.iter().collect();
        pids.sort();
        for (pid, owner) in pids {
            let path = PathBuf::from(format!("/tmp/perf-{pid}.map"));
            match PerfMap::open(&path, &[*owner, ROOT]) {
                Ok(map) => drop(maps.insert(*pid, map)),
                Err(error) => tracing::info!(%error, "no perf map"),
            }
        }
        Maps(maps)
    }
}

/// Maps by process.
#[derive(Debug)]
pub(super) struct Maps(FxHashMap<Pid, PerfMap>);

impl Maps {
    /// The name of the function at an address.
    pub(super) fn lookup(&self, pid: Pid, address: ProcessAddress) -> Option<&str> {
        self.0.get(&pid)?.lookup(address)
    }
}
