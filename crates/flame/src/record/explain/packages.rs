//! Which package of the distribution a file is of, as `dpkg-query -S` says, where that is there.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

/// Packages by the paths of their files.
#[derive(Debug, Default)]
pub(super) struct Packages(BTreeMap<String, String>);

impl Packages {
    /// Asks once for all files; knows nothing where there is no dpkg.
    pub(super) fn of<'a>(paths: impl Iterator<Item = &'a str>) -> Packages {
        let mut asked: Vec<String> = paths.flat_map(spellings).collect();
        asked.sort();
        asked.dedup();
        if asked.is_empty() {
            return Packages::default();
        }
        let mut command = Command::new("dpkg-query");
        command.arg("-S").arg("--").args(&asked).env("LC_ALL", "C");
        let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
        // It fails when it does not know one of them, and prints the others all the same.
        let text = output.map(|output| output.stdout).unwrap_or_default();
        Packages::parse(&String::from_utf8_lossy(&text))
    }

    /// Reads lines such as `libc6:amd64: /lib/x86_64-linux-gnu/libc.so.6`.
    fn parse(text: &str) -> Packages {
        let line = |line: &str| {
            let (packages, path) = line.split_once(": /")?;
            let package = packages.split(", ").next()?.split(':').next()?;
            Some((format!("/{path}"), package.to_owned()))
        };
        Packages(text.lines().filter_map(line).collect())
    }

    /// The package with a file's debug information, after Debian's rule.
    pub(super) fn debug_package(&self, path: &str) -> Option<String> {
        let package = spellings(path).iter().find_map(|path| self.0.get(path))?;
        Some(match package.as_str() {
            // Older than the rule.
            "libc6" => "libc6-dbg".to_owned(),
            package => format!("{package}-dbgsym"),
        })
    }
}

/// The ways in which dpkg may know a path: /lib is the same directory as /usr/lib, and its files
/// are listed as the package has them. Patterns, which it takes as well, are left out.
fn spellings(path: &str) -> Vec<String> {
    if !path.starts_with('/') || path.contains(['*', '?', '[', '\\']) {
        return Vec::new();
    }
    match path.strip_prefix("/usr") {
        Some(short) if short.starts_with("/lib") || short.starts_with("/bin") => {
            vec![path.to_owned(), short.to_owned()]
        }
        _ => vec![path.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_known_by_both_spellings_of_a_path() {
        let packages = Packages::parse(
            "libc6:amd64: /lib/x86_64-linux-gnu/libc.so.6\n\
             python3.11-minimal: /usr/bin/python3.11\n\
             gcc-12, cpp-12: /usr/share/doc/x y\n\
             diversion by dash from: /bin/sh\n",
        );
        let cases = [
            ("/usr/lib/x86_64-linux-gnu/libc.so.6", Some("libc6-dbg")),
            ("/lib/x86_64-linux-gnu/libc.so.6", Some("libc6-dbg")),
            ("/usr/bin/python3.11", Some("python3.11-minimal-dbgsym")),
            ("/usr/share/doc/x y", Some("gcc-12-dbgsym")),
            ("/usr/bin/perl", None),
            ("[vdso]", None),
            ("/tmp/*", None),
        ];
        for (path, expect) in cases {
            assert_eq!(packages.debug_package(path).as_deref(), expect, "{path}");
        }
    }
}
