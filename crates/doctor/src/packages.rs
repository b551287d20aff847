//! Which package a file belongs to, and which one brings its debug information.
//!
//! dpkg's database is read here: `dpkg -S` reads the same lists, and takes a process a path.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rustc_hash::FxHashSet;

use crate::rights::by_root;
use flame_message::quoted;

/// Where dpkg keeps a list of files a package.
const LISTS: &str = "/var/lib/dpkg/info";

/// Packages whose debug information has a name of its own.
const SPECIAL: &[(&str, &str)] = &[("libc6", "libc6-dbg"), ("libc6-i386", "libc6-dbg")];

/// The packages of some files.
#[derive(Debug, Default)]
pub struct Packages(BTreeMap<String, String>);

/// Where apt keeps the indices of the archives that it knows, one file each.
const ARCHIVES: &str = "/var/lib/apt/lists";

impl Packages {
    /// Looks for the packages of those files.
    pub fn owning<'a>(paths: impl Iterator<Item = &'a str>) -> Packages {
        let wanted: FxHashSet<&str> = paths.map(without_usr).collect();
        let mut owners = BTreeMap::new();
        if wanted.is_empty() {
            return Packages(owners);
        }
        for entry in fs::read_dir(LISTS).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(package) = name.to_str().and_then(|name| name.strip_suffix(".list")) else {
                continue;
            };
            let files = fs::read_to_string(entry.path()).unwrap_or_default();
            let package = package.split(':').next().unwrap_or(package);
            for file in files.lines().map(without_usr).filter(|file| wanted.contains(file)) {
                owners.insert(file.to_owned(), package.to_owned());
            }
        }
        Packages(owners)
    }

    /// The package with a file's debug information, after Debian's rule.
    pub fn debug_package(&self, path: &str) -> Option<String> {
        let package = self.0.get(without_usr(path))?;
        let special = SPECIAL.iter().find(|(name, _)| name == package);
        Some(special.map_or_else(|| format!("{package}-dbgsym"), |(_, debug)| (*debug).to_owned()))
    }

    /// Whether apt knows an archive of `-dbgsym` packages: Debian's and Ubuntu's have `debug` or
    /// `ddebs` in their names.
    pub fn has_debug_archive(&self) -> bool {
        let names = fs::read_dir(ARCHIVES).into_iter().flatten().flatten();
        names.filter_map(|entry| entry.file_name().into_string().ok()).any(|name| {
            let is_index = name.contains("_Packages");
            is_index && (name.contains("-debug_") || name.contains("ddebs"))
        })
    }

    /// The package of a file, and the command that installs its debug information.
    pub fn debug_command(&self, path: &str) -> Option<(String, String)> {
        if let Some((package, debug)) = self.0.get(without_usr(path)).zip(self.debug_package(path))
        {
            return Some((package.clone(), by_root(&format!("{INSTALL}{debug}"))));
        }
        let by_rpm = Path::new("/usr/bin/dnf").exists() && path.starts_with("/usr/");
        by_rpm.then(|| {
            let command = format!("dnf debuginfo-install $(rpm -qf {})", quoted(path));
            ("of a package".to_owned(), by_root(&command))
        })
    }
}

/// What installs packages, up to their names.
const INSTALL: &str = "apt-get install ";

/// The commands, each once and in their order; those that install packages become one.
pub fn joined(commands: &[&str]) -> Vec<String> {
    let install = by_root(INSTALL);
    let mut joined: Vec<String> = Vec::new();
    for command in commands {
        if joined.iter().any(|known| known == command) {
            continue;
        }
        let earlier = joined.iter_mut().find(|earlier| earlier.starts_with(&install));
        match (command.strip_prefix(install.as_str()), earlier) {
            (Some(package), Some(earlier)) => {
                if !earlier[install.len()..].split(' ').any(|known| known == package) {
                    *earlier = format!("{earlier} {package}");
                }
            }
            _ => joined.push((*command).to_owned()),
        }
    }
    joined
}

/// Packages may list a file by the directory that is a link into /usr now.
fn without_usr(path: &str) -> &str {
    path.strip_prefix("/usr").filter(|rest| rest.starts_with('/')).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_either_path() {
        assert_eq!(without_usr("/usr/lib/libc.so.6"), "/lib/libc.so.6");
        assert_eq!(without_usr("/lib/libc.so.6"), "/lib/libc.so.6");
        assert_eq!(without_usr("/usrlocal/x"), "/usrlocal/x");
    }

    #[test]
    fn debug_packages_have_the_names_that_distributions_give_them() {
        let owners = [("/lib/libc.so.6", "libc6"), ("/bin/less", "less")];
        let owners = owners.map(|(path, package)| (path.to_owned(), package.to_owned()));
        let packages = Packages(BTreeMap::from(owners));
        let debug = |path: &str| packages.debug_package(path);
        assert_eq!(debug("/usr/lib/libc.so.6").as_deref(), Some("libc6-dbg"));
        assert_eq!(debug("/bin/less").as_deref(), Some("less-dbgsym"));
        assert_eq!(debug("/home/me/prog"), None);
    }

    #[test]
    fn packages_are_installed_by_one_command() {
        let install = |package: &str| by_root(&format!("{INSTALL}{package}"));
        let (less, libc) = (install("less-dbgsym"), install("libc6-dbg"));
        let commands = [&*less, "sudo sysctl a=1", &*libc, &*less, "sudo sysctl a=1"];
        let one = format!("{less} libc6-dbg");
        assert_eq!(joined(&commands), [one.as_str(), "sudo sysctl a=1"]);
    }
}
