//! The kernel's tracepoints, as tracefs lists them.

use std::fs;
use std::io;
use std::path::Path;

use crate::probe::first_success;

/// Where tracefs is mounted, the second place being that of old systems.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// So many names are offered for one that does not exist.
const OFFERED: usize = 3;

/// A tracepoint cannot be sampled by its name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TracepointError {
    /// Nobody has said where tracepoints are.
    #[error("tracepoints need tracefs: mount -t tracefs tracefs /sys/kernel/tracing")]
    NotMounted,
    /// Others may look.
    #[error("tracepoints are listed in /sys/kernel/tracing, which is not readable for you")]
    NotReadable,
    /// There is none of that name.
    #[error("this kernel has no tracepoint '{name}'{}", offered(near))]
    Unknown {
        /// What was typed.
        name: String,
        /// What may have been meant.
        near: Vec<String>,
    },
}

fn offered(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; near it are {}", near.join(", ")) }
}

/// The number of a tracepoint, `GROUP:NAME`.
///
/// # Errors
/// See [`TracepointError`].
pub(crate) fn number(name: &str) -> Result<u64, TracepointError> {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-".contains(&c))
    };
    let unknown = || TracepointError::Unknown { name: name.to_owned(), near: Vec::new() };
    let (group, point) = name.split_once(':').ok_or_else(unknown)?;
    if !is_word(group) || !is_word(point) {
        return Err(unknown());
    }
    let read = |tracefs: &str| {
        fs::read_to_string(Path::new(tracefs).join("events").join(group).join(point).join("id"))
    };
    match first_success(TRACEFS, read) {
        Ok(text) => text.trim().parse().map_err(|_| unknown()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(TracepointError::NotReadable)
        }
        Err(_) => {
            let all = tracepoints()?;
            Err(TracepointError::Unknown { name: name.to_owned(), near: nearest(name, &all) })
        }
    }
}

/// All tracepoints of this kernel, `GROUP:NAME`, in order.
///
/// # Errors
/// tracefs is not there, or not to be read.
pub fn tracepoints() -> Result<Vec<String>, TracepointError> {
    let listed = first_success(TRACEFS, |tracefs| {
        fs::read_to_string(Path::new(tracefs).join("available_events"))
    });
    match listed {
        Ok(text) => {
            let mut all: Vec<String> = text.lines().map(str::to_owned).collect();
            all.sort_unstable();
            Ok(all)
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(TracepointError::NotReadable)
        }
        Err(_) => Err(TracepointError::NotMounted),
    }
}

/// The names most like one that does not exist.
fn nearest(name: &str, all: &[String]) -> Vec<String> {
    let alike = |other: &String| (strsim::jaro_winkler(name, other), other.clone());
    let mut alike: Vec<(f64, String)> = all.iter().map(alike).collect();
    alike.retain(|(likeness, _)| *likeness > 0.8);
    alike.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    alike.into_iter().take(OFFERED).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_names_open_no_file() {
        for name in ["", "sched", "../..:x", "sched:", ":x", "a/b:c", "sched:.."] {
            assert!(matches!(number(name), Err(TracepointError::Unknown { .. })), "{name}");
        }
    }

    #[test]
    fn what_may_have_been_meant_is_offered() {
        let all = ["block:block_rq_issue", "sched:sched_switch", "sched:sched_waking"];
        let all = all.map(str::to_owned);
        assert_eq!(nearest("sched:sched_swich", &all)[0], "sched:sched_switch");
        assert_eq!(nearest("zzz", &all), Vec::<String>::new());
    }
}
