//! A control group by its path or by the id of a container.
//!
//! What people have at hand is `system.slice/nginx.service`, a whole path below /sys/fs/cgroup, or
//! the id that a container's runtime printed. All of them become the directory that the kernel
//! knows the group by. Events can be bound to groups of the hierarchy that the perf_event
//! controller is in: the one of version 2 unless a mount of version 1 has it.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flame_profile::{Nanos, Pid};

/// The shortest part of a container's id that is looked for: what runtimes print in lists.
const SHORTEST_ID: usize = 8;

/// How deep below the mount a container's group is looked for.
const DEPTH: usize = 12;

/// A control group that exists.
#[derive(Clone, Debug)]
pub struct Cgroup {
    path: PathBuf,
    directory: Arc<File>,
}

impl PartialEq for Cgroup {
    fn eq(&self, other: &Cgroup) -> bool {
        self.path == other.path
    }
}

impl Eq for Cgroup {}

/// The text names no control group.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CgroupError {
    /// No hierarchy is mounted that events can be bound to.
    #[error("no cgroup file system is mounted that has the perf_event controller")]
    NotMounted,
    /// No group has that path, and no container that id.
    #[error("no control group {name} below {}", mount.display())]
    NotFound {
        /// What was asked for.
        name: String,
        /// Where it was looked for.
        mount: PathBuf,
    },
    /// The id is the beginning of several containers' ids.
    #[error("{name} names several control groups: {}", groups.join(", "))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// Their paths below the mount.
        groups: Vec<String>,
    },
    /// The group's directory cannot be opened.
    #[error("cannot open control group {}", path.display())]
    Unreadable {
        /// Its directory.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl Cgroup {
    /// Finds the group of that path (whole, or below the mount) or of the container whose id that
    /// is or begins with.
    ///
    /// # Errors
    /// See [`CgroupError`].
    pub fn find(name: &str) -> Result<Cgroup, CgroupError> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let mount = hierarchy(&mounts).ok_or(CgroupError::NotMounted)?;
        Cgroup::find_below(&mount, name)
    }

    fn find_below(mount: &Path, name: &str) -> Result<Cgroup, CgroupError> {
        let typed = Path::new(name);
        let below = mount.join(name.trim_start_matches('/'));
        // `..` would lead out of the mount.
        let plain = !typed.components().any(|part| part == std::path::Component::ParentDir);
        let paths = [below, typed.to_owned()];
        if let Some(path) = paths.iter().find(|path| plain && is_group(mount, path)) {
            return Cgroup::open(path);
        }
        let mut found = Vec::new();
        let is_id = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        if name.len() >= SHORTEST_ID && name.bytes().all(is_id) {
            containers(mount, name, DEPTH, &mut found);
        }
        match found.as_slice() {
            [path] => Cgroup::open(path),
            [] => Err(CgroupError::NotFound { name: name.to_owned(), mount: mount.to_owned() }),
            several => Err(CgroupError::Ambiguous {
                name: name.to_owned(),
                groups: several.iter().map(|path| shown(mount, path)).collect(),
            }),
        }
    }

    fn open(path: &Path) -> Result<Cgroup, CgroupError> {
        let unreadable = |source| CgroupError::Unreadable { path: path.to_owned(), source };
        let directory = Arc::new(File::open(path).map_err(unreadable)?);
        Ok(Cgroup { path: path.to_owned(), directory })
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn directory(&self) -> &File {
        &self.directory
    }

    /// The processes in it and in the groups below, ascending.
    pub fn processes(&self) -> Vec<Pid> {
        let mut pids = Vec::new();
        collect_processes(&self.path, DEPTH, &mut pids);
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// The CPU time that its tasks used since it was made; `None` where the kernel does not count.
    pub(crate) fn cpu_time(&self) -> Option<Nanos> {
        let stat = fs::read_to_string(self.path.join("cpu.stat")).ok()?;
        let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
        usage.trim().parse::<u64>().ok().map(|micros| Nanos(micros.saturating_mul(1000)))
    }
}

impl AsFd for Cgroup {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

/// Where the hierarchy with the perf_event controller is mounted, from /proc/self/mounts: a mount
/// of version 1 that names it takes it away from version 2.
fn hierarchy(mounts: &str) -> Option<PathBuf> {
    let mut version_2 = None;
    for line in mounts.lines() {
        let mut fields = line.split(' ').skip(1);
        let (path, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        match kind {
            "cgroup" if options.split(',').any(|option| option == "perf_event") => {
                return Some(PathBuf::from(path));
            }
            "cgroup2" if version_2.is_none() => version_2 = Some(PathBuf::from(path)),
            _ => {}
        }
    }
    version_2
}

fn is_group(mount: &Path, path: &Path) -> bool {
    path.starts_with(mount) && path.join("cgroup.procs").is_file()
}

/// Groups that runtimes name by a container's id: `ID`, `docker-ID.scope`, `cri-containerd-ID.scope`.
fn containers(directory: &Path, id: &str, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.is_dir());
    paths.sort();
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let name = name.strip_suffix(".scope").unwrap_or(name);
        let own_id = name.rsplit_once('-').map_or(name, |(_, own_id)| own_id);
        if own_id.starts_with(id) {
            found.push(path);
        } else if depth > 0 {
            containers(&path, id, depth - 1, found);
        }
    }
}

fn shown(mount: &Path, path: &Path) -> String {
    path.strip_prefix(mount).unwrap_or(path).display().to_string()
}

fn collect_processes(directory: &Path, depth: usize, pids: &mut Vec<Pid>) {
    let listed = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    pids.extend(listed.lines().filter_map(|line| line.parse().ok().map(Pid)));
    let below = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        if depth > 0 {
            collect_processes(&entry.path(), depth - 1, pids);
        }
    }
}

#[cfg(test)]
mod tests;
