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
//! use flame_debuginfod::{FetchConfig, Outcome, Progress, Waiting, fetch};
//! use flame_profile::BuildId;
//!
//! /// Waits for as long as it takes.
//! struct Patient;
//!
//! impl Waiting for Patient {
//!     fn progress(&mut self, _progress: Progress) {}
//!     fn is_over(&mut self) -> bool {
//!         false
//!     }
//! }
//!
//! let id = BuildId::from_bytes(&[0x4f, 0x21, 0x9c, 0x0b]).unwrap();
//! let config = FetchConfig::new(
//!     vec!["https://debuginfod.example.org".to_owned()],
//!     "/home/ann/.cache/debuginfod_client".into(),
//! );
//! let outcomes = fetch(&[id], &config, |_path| None, &mut Patient);
//! assert!(matches!(outcomes[0], Outcome::Failed(_) | Outcome::Absent | Outcome::Fetched(_)));
//! ```
//!
//! Source: debuginfod(8), "WEBAPI"; debuginfod_find_debuginfo(3), "CACHE".

mod cache;
mod download;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use flame_profile::BuildId;

pub use cache::MISS_LIFETIME;
use cache::{Cached, Slot, Unfinished};
use download::{Download, Server};

/// How long all files together may take. Somebody waits for a picture that is complete but for some
/// names; files of a few megabytes, as most libraries have, come within seconds.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);

/// The largest file that is fetched. Browsers have some 1.5 GB.
pub const DEFAULT_MAX_LEN: u64 = 2 << 30;

/// How many files are fetched at once: enough to hide the time that servers take to find a file,
/// few enough not to be a burden to them.
pub const DEFAULT_CONNECTIONS: usize = 4;

/// How often is asked whether anybody still waits.
const LOOK: Duration = Duration::from_millis(100);

/// Why a file is not kept that nobody waits for.
const GIVEN_UP: &str = "nobody waits for it any longer";

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
    /// It was not there yet when nobody waited for it any longer.
    GivenUp,
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
pub type BuildIdOf = fn(&Path) -> Option<BuildId>;

/// What whoever waits for files has to do with it.
pub trait Waiting {
    /// Is told how far all of it is, at most once for each 64 KiB or file.
    fn progress(&mut self, progress: Progress);

    /// Whether not to wait any longer; asked ten times a second.
    fn is_over(&mut self) -> bool;
}

/// Fetches the debug information of those build ids; one outcome for each, in their order.
///
/// Returns when all are done, the deadline is over, or `waiting` is, whatever a server is up to.
pub fn fetch(
    build_ids: &[BuildId],
    config: &FetchConfig,
    build_id_of: BuildIdOf,
    waiting: &mut dyn Waiting,
) -> Vec<Outcome> {
    let (news, received) = mpsc::channel();
    let job = Arc::new(Job {
        build_ids: build_ids.to_vec(),
        config: config.clone(),
        build_id_of,
        servers: config.servers.iter().map(|url| Server::new(url)).collect(),
        until: Instant::now() + config.deadline,
        next: AtomicUsize::new(0),
        given_up: AtomicBool::new(false),
        unfinished: Mutex::default(),
    });
    for _ in 0..config.connections.clamp(1, build_ids.len().max(1)) {
        let (job, news) = (Arc::clone(&job), news.clone());
        // Nobody waits for these threads: they may hang in a read until the deadline.
        thread::spawn(move || job.work(&news));
    }
    // The channel is closed when the last thread has ended.
    drop(news);
    let mut outcomes: Vec<Option<Outcome>> = vec![None; build_ids.len()];
    let mut progress = Progress { done: 0, files: build_ids.len(), bytes: 0 };
    loop {
        match received.recv_timeout(LOOK) {
            Ok(News::Came(bytes)) => progress.bytes += bytes,
            Ok(News::Done(index, outcome)) => {
                outcomes[index] = Some(outcome);
                progress.done += 1;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        waiting.progress(progress);
        if waiting.is_over() {
            job.give_up();
            break;
        }
    }
    outcomes.into_iter().map(|outcome| outcome.unwrap_or(Outcome::GivenUp)).collect()
}

/// What threads tell whoever waits.
enum News {
    /// This many bytes came.
    Came(u64),
    /// What became of the file at that place of the list.
    Done(usize, Outcome),
}

/// One call of [`fetch`], shared by its threads.
struct Job {
    build_ids: Vec<BuildId>,
    config: FetchConfig,
    build_id_of: BuildIdOf,
    servers: Vec<Server>,
    until: Instant,
    next: AtomicUsize,
    given_up: AtomicBool,
    /// Files that are being written, which a thread that hangs cannot remove.
    unfinished: Mutex<Vec<PathBuf>>,
}

impl Job {
    /// Takes one file after the other until none is left.
    fn work(&self, news: &Sender<News>) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(id) = self.build_ids.get(index) else { return };
            let outcome = self.one(id, news);
            tracing::debug!(%id, ?outcome, "asked for debug information");
            if self.is_given_up() || news.send(News::Done(index, outcome)).is_err() {
                return;
            }
        }
    }

    /// Has all threads end as soon as they can, and leaves nothing half done behind.
    fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
        for path in self.unfinished().drain(..) {
            let _ = fs::remove_file(path);
        }
    }

    fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    fn unfinished(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.unfinished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn one(&self, id: &BuildId, news: &Sender<News>) -> Outcome {
        let slot = Slot::new(&self.config.cache, id);
        match slot.look() {
            Cached::File => return Outcome::Fetched(slot.path().to_owned()),
            Cached::KnownAbsent => return Outcome::Absent,
            Cached::Nothing => {}
        }
        let mut failure = None;
        for server in &self.servers {
            match self.from(server, id, &slot, news) {
                Ok(true) => return Outcome::Fetched(slot.path().to_owned()),
                Ok(false) => {}
                Err(why) => failure = failure.or(Some(format!("{}: {why}", server.name()))),
            }
        }
        match failure {
            _ if self.is_given_up() => Outcome::GivenUp,
            Some(why) => Outcome::Failed(why),
            None => {
                slot.note_absence();
                Outcome::Absent
            }
        }
    }

    /// Fetches one file from one server into its slot; `false` when the server does not have it.
    fn from(
        &self,
        server: &Server,
        id: &BuildId,
        slot: &Slot,
        news: &Sender<News>,
    ) -> Result<bool, String> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.out_of_time());
        }
        let Some(body) = server.open(id, left, self.config.max_len)? else { return Ok(false) };
        let mut file = self.begin(slot)?;
        let download = Download { until: self.until, max_len: self.config.max_len };
        // Nobody may be there to hear it any more; then the download ends.
        let came = |bytes| !self.is_given_up() && news.send(News::Came(bytes)).is_ok();
        let copied = download.copy(body, file.writer(), &came);
        if Instant::now() >= self.until {
            return Err(self.out_of_time());
        }
        copied?;
        if (self.build_id_of)(file.path()).as_ref() != Some(id) {
            return Err("it sent a file of another build".to_owned());
        }
        self.keep(file)?;
        Ok(true)
    }

    /// Begins a file that is removed when all is given up.
    fn begin(&self, slot: &Slot) -> Result<Unfinished, String> {
        let mut unfinished = self.unfinished();
        if self.is_given_up() {
            return Err(GIVEN_UP.to_owned());
        }
        let file = slot.begin().map_err(|error| not_written(&error))?;
        unfinished.push(file.path().to_owned());
        Ok(file)
    }

    fn keep(&self, file: Unfinished) -> Result<(), String> {
        let mut unfinished = self.unfinished();
        if self.is_given_up() {
            return Err(GIVEN_UP.to_owned());
        }
        unfinished.retain(|path| path != file.path());
        file.keep().map_err(|error| not_written(&error))
    }

    fn out_of_time(&self) -> String {
        format!("not there after {} s", self.config.deadline.as_secs())
    }
}

fn not_written(error: &io::Error) -> String {
    format!("cannot write the cache: {error}")
}

#[cfg(test)]
mod tests;
