//! What stands over a picture.

use std::borrow::Cow;

use flame_profile::ValueType;

/// A title says what boxes weigh, where that is not what people take for granted.
pub fn titled<'t>(title: &'t str, value: &ValueType) -> Cow<'t, str> {
    let what = match (value.name.as_str(), value.unit.as_str()) {
        ("off-cpu", _) => "off-CPU time",
        ("wakeup", _) => "who wakes, by how long was waited",
        ("offwake", _) => "off-CPU time, with who ended it",
        ("wall", _) => "wall-clock time of each thread",
        ("alloc", _) => "bytes asked for",
        ("live", _) => "bytes not freed",
        ("io" | "block-io" | "syscalls" | "mmap" | "locks", unit) => {
            let what = match unit {
                "nanoseconds" => "time from entry to return",
                "bytes" => "bytes",
                _ => "calls",
            };
            return Cow::Owned(format!("{title}, {}: {what}", value.name));
        }
        _ => return Cow::Borrowed(title),
    };
    Cow::Owned(format!("{title}, {what}"))
}
