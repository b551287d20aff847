//! What stands over a picture.

use std::borrow::Cow;

use flame_profile::ValueType;

/// A title says what boxes weigh, where that is not what people take for granted: time on a CPU.
pub fn titled<'t>(title: &'t str, value: &ValueType) -> Cow<'t, str> {
    let what = match (value.name.as_str(), value.unit.as_str()) {
        ("samples" | "cpu-clock" | "task-clock" | "cycles", _) => return Cow::Borrowed(title),
        ("page-faults", _) => "page faults",
        ("off-cpu", _) => "off-CPU time",
        ("wakeup", _) => "who wakes, by how long was waited",
        ("offwake", _) => "off-CPU time, with who ended it",
        ("wall", _) => "wall-clock time of each thread",
        ("alloc", _) => "bytes asked for",
        ("live", _) => "bytes not freed",
        ("io" | "block-io" | "syscalls" | "mmap" | "brk" | "locks", unit) => {
            let what = match unit {
                "nanoseconds" => "time from entry to return",
                "bytes" => "bytes",
                _ => "calls",
            };
            return Cow::Owned(format!("{title}, {}: {what}", value.name));
        }
        (name, _) => name,
    };
    Cow::Owned(format!("{title}, {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_time_on_a_cpu_is_named() {
        let check = |name: &str, unit: &str, expect: &str| {
            assert_eq!(titled("redis", &ValueType::new(name, unit)), expect);
        };
        check("samples", "count", "redis");
        check("cpu-clock", "nanoseconds", "redis");
        check("page-faults", "count", "redis, page faults");
        check("brk", "bytes", "redis, brk: bytes");
        check("block:block_rq_issue", "count", "redis, block:block_rq_issue");
    }
}
