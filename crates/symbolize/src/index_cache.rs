//! A directory of indexes: opened with distrust, written whole, bounded in size.
//!
//! Whoever can write an index chooses the names in somebody's profile. So neither the directory nor
//! a file in it counts unless it belongs to the user who runs flame and nobody else may write to
//! it; links are not followed. Files are written under another name and renamed, so that another
//! flame reads the old one or the new one whole.

use std::fs::{self, File, FileTimes, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use flame_profile::{BuildId, ByteLen, SharedBytes};

use crate::files::FileStatus;
use crate::map_file::map_file;

/// How much all indexes take at most: those of some twenty programs with 200 MB of debug information
/// each. The least recently used ones go first.
pub const DEFAULT_INDEX_LIMIT: ByteLen = ByteLen(1 << 30);

/// The ending of an index, with the version of flame before it.
const ENDING: &str = concat!(".", env!("CARGO_PKG_VERSION"), ".index");

/// A file that was being written when flame ended is removed after that time.
const STALE: Duration = Duration::from_secs(3600);

/// How often the time of use is written down; the order of use need not be finer.
const TOUCH: Duration = Duration::from_secs(600);

/// A directory in which the tables made from debug information are kept for the next time.
///
/// ```
/// use flame_symbolize::{IndexCache, SymbolizeConfig};
///
/// let home = std::env::temp_dir().join(format!("flame-doc-{}", std::process::id()));
/// let cache = IndexCache::open(&home.join("flame"))?;
/// let config = SymbolizeConfig { index: Some(cache), ..SymbolizeConfig::default() };
/// # std::fs::remove_dir_all(&home)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct IndexCache {
    directory: PathBuf,
    limit: ByteLen,
}

impl IndexCache {
    /// Opens a directory, which is made with those above it if need be, readable for its owner
    /// only.
    ///
    /// # Errors
    /// When it cannot be made, or could be written by others (`PermissionDenied`).
    pub fn open(directory: &Path) -> io::Result<IndexCache> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        // What is above decides what is found under the name. A link may lead to it from there.
        let parent = directory.parent().map(|parent| match parent.as_os_str().is_empty() {
            true => fs::metadata("."),
            false => fs::metadata(parent),
        });
        let parent = parent.transpose()?;
        let own = fs::symlink_metadata(directory)?;
        let safe_above = parent.is_none_or(|parent| is_own(&parent) || is_of_root(&parent));
        if !own.is_dir() || !is_own(&own) || !safe_above {
            let kind = io::ErrorKind::PermissionDenied;
            return Err(io::Error::new(kind, "it does not belong to this user alone"));
        }
        Ok(IndexCache { directory: directory.to_owned(), limit: DEFAULT_INDEX_LIMIT })
    }

    /// The same with another bound on the size of all indexes.
    #[must_use]
    pub fn with_limit(self, limit: ByteLen) -> IndexCache {
        IndexCache { limit, ..self }
    }

    /// The bytes stored under a name, if there are any that can be trusted.
    pub(crate) fn load(&self, name: &IndexName) -> Option<SharedBytes> {
        let path = self.directory.join(&name.file);
        let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || !is_own(&metadata) {
            tracing::warn!(file = %name.file, "index left alone: others may have written it");
            return None;
        }
        touch(&file, &metadata);
        map_file(&file).ok()
    }

    /// Stores bytes, which come in parts, under a name, in place of those that were there, and
    /// removes the least recently used files beyond the limit.
    ///
    /// # Errors
    /// When they cannot be written; what was there is there still.
    pub(crate) fn save<'a>(
        &self,
        name: &IndexName,
        parts: impl Iterator<Item = &'a [u8]>,
    ) -> io::Result<()> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let temporary = self.directory.join(format!(".{}-{count}.tmp", std::process::id()));
        // One that is left of another process of that number is in nobody's use.
        let _ = fs::remove_file(&temporary);
        let write = || {
            let mut options = OpenOptions::new();
            let options = options.write(true).create_new(true).mode(0o600);
            let mut file = BufWriter::with_capacity(1 << 16, options.open(&temporary)?);
            for part in parts {
                file.write_all(part)?;
            }
            file.flush()?;
            fs::rename(&temporary, self.directory.join(&name.file))
        };
        let written = write();
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        self.clean();
        written
    }

    /// Removes files until the rest is within the limit.
    fn clean(&self) {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        let now = SystemTime::now();
        for entry in entries {
            let path = entry.path();
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let has_ending = |ending| path.extension().is_some_and(|found| found == ending);
            if has_ending("index") {
                files.push((used, metadata.len(), path));
            } else if has_ending("tmp") && now.duration_since(used).is_ok_and(|age| age > STALE) {
                let _ = fs::remove_file(path);
            }
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, len, _)| *len).sum();
        for (_, len, path) in files {
            if total <= self.limit.0 {
                break;
            }
            if fs::remove_file(path).is_ok() {
                total = total.saturating_sub(len);
            }
        }
    }
}

/// What tells an index from all others.
#[derive(Clone, Debug)]
pub(crate) struct IndexName {
    file: String,
    /// Stands in the file as well.
    pub(crate) key: Vec<u8>,
}

impl IndexName {
    /// For the debug information of `debug_len` bytes in a file, which anybody may have given the
    /// build id of another one: so the name holds whose file it is, and root's indexes of system
    /// libraries cannot be made by others. The same user may have several programs of one build id,
    /// too: the key holds which file it is, and when it was changed last.
    pub(crate) fn new(build_id: &BuildId, file: &FileStatus, debug_len: u64) -> IndexName {
        let owner = file.owner;
        let id = build_id.to_string();
        let short: String = id.chars().take(64).collect();
        let version = env!("CARGO_PKG_VERSION");
        let key = format!("{version} {id} {} {debug_len}", identity(file));
        IndexName { file: format!("{short}-{owner}{ENDING}"), key: key.into_bytes() }
    }

    /// The same where part of the debug information is in another file: of that identity, and
    /// `None` while it cannot be found.
    pub(crate) fn with_supplement(mut self, id: &BuildId, file: Option<&FileStatus>) -> IndexName {
        let found = file.map_or_else(|| "missing".to_owned(), identity);
        self.key.extend_from_slice(format!(" with {id} {found}").as_bytes());
        self
    }
}

/// Which file it is, in which state. Nobody can set the time of the last change (ctime) of a file.
fn identity(file: &FileStatus) -> String {
    let place = (file.device, file.inode);
    format!("{} {} {place:?} {:?}", file.owner, file.len, file.changed)
}

/// Whether something belongs to this user and nobody else may write to it.
fn is_own(metadata: &Metadata) -> bool {
    metadata.uid() == nix::unistd::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

/// Whether it is root's, and only those who own what is in it can rename that.
fn is_of_root(metadata: &Metadata) -> bool {
    const STICKY: u32 = 0o1000;
    metadata.uid() == 0 && (metadata.mode() & 0o022 == 0 || metadata.mode() & STICKY != 0)
}

fn touch(file: &File, metadata: &Metadata) {
    let now = SystemTime::now();
    let age = metadata.modified().ok().and_then(|used| now.duration_since(used).ok());
    if age.is_none_or(|age| age > TOUCH) {
        // Without it the index is only taken for older than it is.
        let _ = file.set_times(FileTimes::new().set_modified(now));
    }
}

#[cfg(test)]
mod tests;
