//! Where the files may be that hold what was stripped from an image.
//!
//! Paths only: whether a file belongs to an image is decided in [`crate::companion`].
//!
//! Sources: GDB's manual, "Debugging Information in Separate Files"; debuginfod(8), "Cache".

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use flame_profile::BuildId;

use crate::budget::Budget;
use crate::files::Files;

/// Where packages of debug information put their files.
const DEBUG_ROOT: &str = "usr/lib/debug";

/// Where the debug files of one image are looked for, besides its own directory.
///
/// ```
/// use std::path::Path;
/// use flame_image::DebugSearch;
///
/// let search = DebugSearch::of("/usr/bin/less".as_ref());
/// assert_eq!(search.root, Path::new("/"));
/// assert!(search.directories.is_empty() && search.cache.is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugSearch {
    /// The image's path as its process has it; empty for an image without one.
    pub path: PathBuf,
    /// Where the `/` of that process stands for flame: `/`, or `/proc/PID/root`.
    pub root: PathBuf,
    /// Directories that are looked into first, laid out like `/usr/lib/debug` or flat.
    pub directories: Vec<PathBuf>,
    /// debuginfod's cache, with a directory for each build id. Default: none is looked into.
    pub cache: Option<PathBuf>,
    /// How the files are opened, and the image itself. Default: as the system does.
    pub files: Files,
    /// What unpacking may cost. Default: a budget of its own for each search that is made.
    pub budget: Budget,
}

impl DebugSearch {
    /// The search for an image at that path of flame's own file system, in `/usr/lib/debug` alone.
    pub fn of(path: &Path) -> DebugSearch {
        let (path, root) = (path.to_owned(), PathBuf::from("/"));
        let (files, budget) = (Files::default(), Budget::default());
        DebugSearch { path, root, directories: Vec::new(), cache: None, files, budget }
    }

    /// The file that debuginfod's clients keep for a build id.
    pub(crate) fn cached(&self, id: &BuildId) -> Option<PathBuf> {
        Some(self.cache.as_ref()?.join(id.to_string()).join("debuginfo"))
    }

    /// The paths for a build id, in the order in which they are tried.
    pub(crate) fn by_build_id(&self, id: &BuildId) -> Vec<PathBuf> {
        let text = id.to_string();
        let mut paths = Vec::new();
        if let Some((directory, file)) = text.split_at_checked(2).filter(|(_, f)| !f.is_empty()) {
            let name = Path::new(".build-id").join(directory).join(format!("{file}.debug"));
            paths.extend(self.debug_roots().iter().map(|root| root.join(&name)));
        }
        paths.extend(self.cached(id));
        paths
    }

    /// The paths for the name in `.gnu_debuglink`, which is a name and never a path that leads
    /// elsewhere.
    pub(crate) fn by_link(&self, link: &OsStr) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        if Path::new(link).file_name() != Some(link) {
            return paths;
        }
        let directory = self.path.parent().and_then(|directory| directory.strip_prefix("/").ok());
        if let Some(directory) = directory {
            let beside = self.root.join(directory);
            paths.extend([beside.join(link), beside.join(".debug").join(link)]);
            paths.extend(self.debug_roots().iter().map(|root| root.join(directory).join(link)));
        }
        paths.extend(self.directories.iter().map(|root| root.join(link)));
        paths
    }

    /// The paths for the file with what `dwz` found to be common to several debug files. A link that
    /// leads elsewhere than into a directory of debug files, or beside the image, is not followed:
    /// it is text that anybody may have written. `holder`
    /// is the file that names it, with links followed.
    pub(crate) fn by_alternate_link(
        &self,
        link: &Path,
        holder: &Path,
        id: &BuildId,
    ) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        match link.strip_prefix("/") {
            Ok(below) => paths.extend([self.root.join(below), link.to_owned()]),
            // The link is relative to the debug file itself and not to what points at it.
            Err(_) => {
                paths.extend(holder.parent().map(|directory| directory.join(link)));
            }
        }
        let mut paths: Vec<PathBuf> = paths.iter().filter_map(|path| plain(path)).collect();
        let places = self.alternate_places();
        let beside = self.image_path();
        let beside = beside.parent().filter(|_| self.path.is_absolute());
        let beside =
            beside.map(|folder| [folder.to_owned(), folder.join(".debug"), folder.join(".dwz")]);
        paths.retain(|path| {
            let is_beside =
                || beside.iter().flatten().any(|folder| path.parent() == Some(&**folder));
            places.iter().any(|place| path.starts_with(place)) || is_beside()
        });
        if let Some(name) = link.file_name() {
            let dirs = self.directories.iter();
            paths.extend(dirs.flat_map(|dir| [dir.join(".dwz").join(name), dir.join(name)]));
        }
        paths.extend(self.by_build_id(id));
        paths
    }

    /// Directories of debug files, also as they are called when links are followed.
    fn alternate_places(&self) -> Vec<PathBuf> {
        let mut places = self.debug_roots();
        let followed: Vec<PathBuf> =
            places.iter().filter_map(|place| place.canonicalize().ok()).collect();
        places.extend(followed);
        // A directory that was named as `.` has no name to begin with.
        places.retain(|place| place.is_absolute());
        places
    }

    /// The image's own place, as flame reaches it.
    pub fn image_path(&self) -> PathBuf {
        self.path.strip_prefix("/").map_or_else(|_| self.path.clone(), |path| self.root.join(path))
    }

    /// Directories that are laid out by build id and by path: those that were named, that of the
    /// process, and flame's own.
    fn debug_roots(&self) -> Vec<PathBuf> {
        let mut roots = self.directories.clone();
        roots.push(self.root.join(DEBUG_ROOT));
        if self.root != Path::new("/") {
            roots.push(Path::new("/").join(DEBUG_ROOT));
        }
        roots
    }
}

/// A path without `..`, which would lead out of the directory that it begins with; `None` for one
/// that leads above `/`.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if !plain.pop() => return None,
            Component::ParentDir | Component::CurDir => {}
            part => plain.push(part),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(paths: &[PathBuf], expect: &[&str]) {
        assert_eq!(paths, expect.iter().map(PathBuf::from).collect::<Vec<_>>());
    }

    fn id() -> BuildId {
        BuildId::from_bytes(&[0xab, 0xcd, 0xef]).unwrap()
    }

    fn everywhere() -> DebugSearch {
        DebugSearch {
            path: PathBuf::from("/usr/bin/less"),
            root: PathBuf::from("/proc/7/root"),
            directories: vec![PathBuf::from("/srv/debug")],
            cache: Some(PathBuf::from("/home/ann/.cache/debuginfod_client")),
            files: Files::default(),
            budget: Budget::default(),
        }
    }

    #[test]
    fn files_by_build_id_are_where_packages_and_clients_put_them() {
        check(
            &DebugSearch::of("/usr/bin/less".as_ref()).by_build_id(&id()),
            &["/usr/lib/debug/.build-id/ab/cdef.debug"],
        );
        check(
            &everywhere().by_build_id(&id()),
            &[
                "/srv/debug/.build-id/ab/cdef.debug",
                "/proc/7/root/usr/lib/debug/.build-id/ab/cdef.debug",
                "/usr/lib/debug/.build-id/ab/cdef.debug",
                "/home/ann/.cache/debuginfod_client/abcdef/debuginfo",
            ],
        );
        let short = BuildId::from_bytes(&[0xab]).unwrap();
        check(&DebugSearch::of("/usr/bin/less".as_ref()).by_build_id(&short), &[]);
    }

    #[test]
    fn files_by_link_are_where_gdb_looks() {
        check(
            &everywhere().by_link(OsStr::new("less.debug")),
            &[
                "/proc/7/root/usr/bin/less.debug",
                "/proc/7/root/usr/bin/.debug/less.debug",
                "/srv/debug/usr/bin/less.debug",
                "/proc/7/root/usr/lib/debug/usr/bin/less.debug",
                "/usr/lib/debug/usr/bin/less.debug",
                "/srv/debug/less.debug",
            ],
        );
        for link in ["../../etc/shadow", "/etc/shadow", "..", ""] {
            check(&everywhere().by_link(OsStr::new(link)), &[]);
        }
    }

    #[test]
    fn alternate_links_are_relative_to_the_file_that_has_them() {
        let search = DebugSearch::of("/usr/bin/less".as_ref());
        let holder = Path::new("/usr/lib/debug/nowhere/less.debug");
        let by_id = "/usr/lib/debug/.build-id/ab/cdef.debug";
        check(
            &search.by_alternate_link("../.dwz/common".as_ref(), holder, &id()),
            &["/usr/lib/debug/.dwz/common", by_id],
        );
        check(
            &search.by_alternate_link("common".as_ref(), "/usr/bin/less".as_ref(), &id()),
            &["/usr/bin/common", by_id],
        );
        let search = DebugSearch { cache: None, ..everywhere() };
        check(
            &search.by_alternate_link("/usr/lib/debug/.dwz/common".as_ref(), holder, &id())[..4],
            &[
                "/proc/7/root/usr/lib/debug/.dwz/common",
                "/usr/lib/debug/.dwz/common",
                "/srv/debug/.dwz/common",
                "/srv/debug/common",
            ],
        );
    }

    #[test]
    fn alternate_links_lead_nowhere_else() {
        let search = DebugSearch::of("/usr/bin/less".as_ref());
        let holder = Path::new("/usr/lib/debug/nowhere/less.debug");
        let links = [
            "/etc/shadow",
            "/usr/lib/debug/../../../etc/shadow",
            "../../../../etc/shadow",
            "../../../../../../../../etc/shadow",
            "/usr/bin/deeper/file",
            "/usr/lib/debugger",
        ];
        for link in links {
            let paths = search.by_alternate_link(link.as_ref(), holder, &id());
            check(&paths, &["/usr/lib/debug/.build-id/ab/cdef.debug"]);
        }
    }
}
