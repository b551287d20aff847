//! Build ids in, files of debug information out: fetched from debuginfod servers, several at once,
//! into the cache that debuginfod's own clients use.
//!
//! [`fetch`] asks for a list of files within one deadline. A server is not trusted: what it sends is
//! bounded in size and time, and a file is kept only when whoever calls finds in it the build id
//! that was asked for. It is put into the cache by a rename, so that no other client sees half of
//! it. What no server has is remembered there, too, for [`MISS_LIFETIME`].
//!
//! It knows neither environment nor ELF files: servers, cache and the reader of build ids are
//! given. Nothing else of flame talks to a network.
//!
//! ```no_run
//! use std::time::Duration;
//! use flame_debuginfod::{FetchConfig, Outcome, fetch};
//! use flame_profile::BuildId;
//!
//! let id = BuildId::from_bytes(&[0x4f, 0x21, 0x9c, 0x0b]).unwrap();
//! let config = FetchConfig::new(
//!     vec!["https://debuginfod.example.org".to_owned()],
//!     "/home/ann/.cache/debuginfod_client".into(),
//! );
//! let build_id_of = |_path: &std::path::Path| None;
//! let outcomes = fetch(&[id], &config, &build_id_of, &|_progress| {});
//! assert!(matches!(outcomes[0], Outcome::Failed(_) | Outcome::Absent | Outcome::Fetched(_)));
//! ```
//!
//! Source: debuginfod(8), "WEBAPI"; debuginfod_find_debuginfo(3), "CACHE".

mod cache;
mod download;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use flame_profile::BuildId;

pub use cache::MISS_LIFETIME;
use cache::{Cached, Slot};
use download::{Download, Server};

/// How long all files together may take. Somebody waits for a picture that is complete but for some
/// names; files of a few megabytes, as most libraries have, come within seconds.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);

/// The largest file that is fetched. Browsers have some 1.5 GB.
pub const DEFAULT_MAX_LEN: u64 = 2 << 30;

/// How many files are fetched at once: enough to hide the time that servers take to find a file,
/// few enough not to be a burden to them.
pub const DEFAULT_CONNECTIONS: usize = 4;

/// From where, to where, and how much at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchConfig {
    /// Base URLs, `http:` or `https:`, in the order in which they are asked.
    pub servers: Vec<String>,
    /// The cache's directory; made when the first file comes.
    pub cache: PathBuf,
    /// For all files together. Default: [`DEFAULT_DEADLINE`].
    pub deadline: Duration,
    /// Of one file, in bytes. Default: [`DEFAULT_MAX_LEN`].
    pub max_len: u64,
    /// At least 1. Default: [`DEFAULT_CONNECTIONS`].
    pub connections: usize,
}

impl FetchConfig {
    /// With the defaults for what is not given.
    pub fn new(servers: Vec<String>, cache: PathBuf) -> FetchConfig {
        FetchConfig {
            servers,
            cache,
            deadline: DEFAULT_DEADLINE,
            max_len: DEFAULT_MAX_LEN,
            connections: DEFAULT_CONNECTIONS,
        }
    }
}

/// What became of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is in the cache, at this path: just fetched, or there before.
    Fetched(PathBuf),
    /// No server has it.
    Absent,
    /// It could not be had, and why: lower case, no full stop.
    Failed(String),
}

/// How far all of it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Files that are done, whatever became of them.
    pub done: usize,
    /// Files that were asked for.
    pub files: usize,
    /// Bytes that came so far.
    pub bytes: u64,
}

/// Reads the build id of a file that was fetched.
pub type BuildIdOf<'a> = &'a (dyn Fn(&Path) -> Option<BuildId> + Sync);

/// Fetches the debug information of those build ids; one outcome for each, in their order.
///
/// `progress` is called from several threads, at most once for each 64 KiB or file. Returns when
/// all are done or the deadline is over.
pub fn fetch(
    build_ids: &[BuildId],
    config: &FetchConfig,
    build_id_of: BuildIdOf<'_>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Vec<Outcome> {
    let job = Job {
        build_ids,
        config,
        build_id_of,
        progress,
        servers: config.servers.iter().map(|url| Server::new(url)).collect(),
        until: Instant::now() + config.deadline,
        next: AtomicUsize::new(0),
        done: AtomicUsize::new(0),
        bytes: AtomicU64::new(0),
    };
    let threads = config.connections.clamp(1, build_ids.len().max(1));
    let mut outcomes: Vec<Option<Outcome>> = vec![None; build_ids.len()];
    let finished = thread::scope(|scope| {
        let workers: Vec<_> = (1..threads).map(|_| scope.spawn(|| job.work())).collect();
        let mut finished = job.work();
        finished.extend(workers.into_iter().filter_map(|worker| worker.join().ok()).flatten());
        finished
    });
    for (index, outcome) in finished {
        outcomes[index] = Some(outcome);
    }
    let lost = || Outcome::Failed("the download was given up".to_owned());
    outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(lost)).collect()
}

/// One call of [`fetch`], shared by its threads.
struct Job<'a> {
    build_ids: &'a [BuildId],
    config: &'a FetchConfig,
    build_id_of: BuildIdOf<'a>,
    progress: &'a (dyn Fn(Progress) + Sync),
    servers: Vec<Server>,
    until: Instant,
    next: AtomicUsize,
    done: AtomicUsize,
    bytes: AtomicU64,
}

impl Job<'_> {
    /// Takes one file after the other until none is left.
    fn work(&self) -> Vec<(usize, Outcome)> {
        let mut finished = Vec::new();
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(id) = self.build_ids.get(index) else { return finished };
            let outcome = self.one(id);
            tracing::debug!(%id, ?outcome, "asked for debug information");
            finished.push((index, outcome));
            self.done.fetch_add(1, Ordering::Relaxed);
            self.report(0);
        }
    }

    fn report(&self, bytes: u64) {
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let (done, files) = (self.done.load(Ordering::Relaxed), self.build_ids.len());
        (self.progress)(Progress { done, files, bytes });
    }

    fn one(&self, id: &BuildId) -> Outcome {
        let slot = Slot::new(&self.config.cache, id);
        match slot.look() {
            Cached::File => return Outcome::Fetched(slot.path().to_owned()),
            Cached::KnownAbsent => return Outcome::Absent,
            Cached::Nothing => {}
        }
        let mut failure = None;
        for server in &self.servers {
            match self.from(server, id, &slot) {
                Ok(true) => return Outcome::Fetched(slot.path().to_owned()),
                Ok(false) => {}
                Err(why) => failure = failure.or(Some(format!("{}: {why}", server.name()))),
            }
        }
        match failure {
            Some(why) => Outcome::Failed(why),
            None => {
                slot.note_absence();
                Outcome::Absent
            }
        }
    }

    /// Fetches one file from one server into its slot; `false` when the server does not have it.
    fn from(&self, server: &Server, id: &BuildId, slot: &Slot) -> Result<bool, String> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.out_of_time());
        }
        let Some(body) = server.open(id, left, self.config.max_len)? else { return Ok(false) };
        let mut file = slot.begin().map_err(|error| format!("cannot write the cache: {error}"))?;
        let download = Download { until: self.until, max_len: self.config.max_len };
        let copied = download.copy(body, file.writer(), &|bytes| self.report(bytes));
        if Instant::now() >= self.until {
            return Err(self.out_of_time());
        }
        copied?;
        if (self.build_id_of)(file.path()).as_ref() != Some(id) {
            return Err("it sent a file of another build".to_owned());
        }
        file.keep().map_err(|error| format!("cannot write the cache: {error}"))?;
        Ok(true)
    }

    fn out_of_time(&self) -> String {
        format!("not there after {} s", self.config.deadline.as_secs())
    }
}

#[cfg(test)]
mod tests;
