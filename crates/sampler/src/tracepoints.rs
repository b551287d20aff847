//! The kernel's tracepoints, as tracefs lists them.

use std::fs;
use std::io;
use std::path::Path;

use flame_events::TracepointField;

use crate::probe::first_success;

/// Where tracefs is mounted, the second place being that of old systems.
pub(crate) const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// This many names are offered for one that does not exist.
const OFFERED: usize = 3;

/// A tracepoint cannot be sampled by its name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TracepointError {
    /// Nobody has said where tracepoints are.
    #[error("tracepoints need tracefs: mount -t tracefs tracefs /sys/kernel/tracing")]
    NotMounted,
    /// Others may look.
    #[error("tracepoints are listed in /sys/kernel/tracing, which only root may read")]
    NotReadable,
    /// There is none of that name.
    #[error("this kernel has no tracepoint '{name}'{}", offered(near))]
    Unknown {
        /// What was typed.
        name: String,
        /// What may have been meant.
        near: Vec<String>,
    },
    /// It does not write such a number.
    #[error("{tracepoint} has no numeric field '{field}': it has {}", fields.join(", "))]
    NoField {
        /// Which tracepoint.
        tracepoint: String,
        /// What was typed.
        field: String,
        /// The numbers that it writes.
        fields: Vec<String>,
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
    let unknown = || TracepointError::Unknown { name: name.to_owned(), near: Vec::new() };
    file(name, "id")?.trim().parse().map_err(|_| unknown())
}

/// A field that is a number.
///
/// # Errors
/// See [`TracepointError`].
pub(crate) fn field(tracepoint: &str, name: &str) -> Result<TracepointField, TracepointError> {
    let format = file(tracepoint, "format")?;
    let fields: Vec<(&str, TracepointField)> = format.lines().filter_map(number_in).collect();
    let found = fields.iter().find(|(other, _)| *other == name).map(|(_, field)| *field);
    found.ok_or_else(|| TracepointError::NoField {
        tracepoint: tracepoint.to_owned(),
        field: name.to_owned(),
        fields: fields.iter().map(|(name, _)| (*name).to_owned()).collect(),
    })
}

/// The field that a line of a format declares, if it is a number:
/// `field:long ret;\toffset:16;\tsize:8;\tsigned:1;`.
fn number_in(line: &str) -> Option<(&str, TracepointField)> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?;
    let (kind, name) = declaration.rsplit_once(' ')?;
    if name.starts_with('*') || name.ends_with(']') || kind.contains(['*', '[']) {
        return None;
    }
    let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse::<usize>().ok();
    let (offset, size, signed) = (number("offset:")?, number("size:")?, number("signed:")?);
    let field = TracepointField { offset, size, signed: signed == 1 };
    (matches!(size, 1 | 2 | 4 | 8) && !name.starts_with("common_")).then_some((name, field))
}

/// What tracefs says of a tracepoint in one of its files.
fn file(name: &str, file: &str) -> Result<String, TracepointError> {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-".contains(&c))
    };
    let unknown = || TracepointError::Unknown { name: name.to_owned(), near: Vec::new() };
    let (group, point) = name.split_once(':').ok_or_else(unknown)?;
    if !is_word(group) || !is_word(point) {
        return Err(unknown());
    }
    let read = |tracefs: &str| {
        fs::read_to_string(Path::new(tracefs).join("events").join(group).join(point).join(file))
    };
    match first_success(TRACEFS, read) {
        Ok(text) => Ok(text),
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

/// The names most like one that does not exist, as the end of a message; empty if none is.
pub fn near_names(name: &str, all: &[String]) -> String {
    offered(&nearest(name, all))
}

/// The names most like one that does not exist.
fn nearest(name: &str, all: &[String]) -> Vec<String> {
    let alike = |other: &String| {
        // The name without its group may be what was meant.
        let points = [other.as_str(), other.split_once(':').map_or("", |(_, point)| point)];
        let likeness = points.map(|point| strsim::jaro_winkler(name, point));
        (likeness[0].max(likeness[1]), other.clone())
    };
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
    fn numbers_are_told_from_other_fields() {
        let format = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
                      \tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n\
                      \tfield:unsigned int bytes;\toffset:16;\tsize:4;\tsigned:0;\n\
                      \tfield:char comm[16];\toffset:20;\tsize:16;\tsigned:0;\n\
                      \tfield:const char * name;\toffset:40;\tsize:8;\tsigned:0;\n\
                      \tfield:__data_loc char[] cmd;\toffset:48;\tsize:4;\tsigned:0;\n";
        let found: Vec<_> = format.lines().filter_map(number_in).collect();
        let field = |offset, size, signed| TracepointField { offset, size, signed };
        assert_eq!(found, [("id", field(8, 8, true)), ("bytes", field(16, 4, false))]);
    }

    #[test]
    fn what_may_have_been_meant_is_offered() {
        let all = ["block:block_rq_issue", "sched:sched_switch", "sched:sched_waking"];
        let all = all.map(str::to_owned);
        assert_eq!(nearest("sched:sched_swich", &all)[0], "sched:sched_switch");
        assert_eq!(nearest("sched_switch", &all)[0], "sched:sched_switch");
        assert_eq!(nearest("zzz", &all), Vec::<String>::new());
    }
}
