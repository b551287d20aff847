//! Names of events, and which of them are the same.
//!
//! `cycles:u` and `cycles:k` are parts of one event, and so are `cpu_core/cycles/` and
//! `cpu_atom/cycles/` of a processor that has two kinds of cores. `sched:sched_switch` is whole.

/// An event without its modifiers and without the kind of core.
pub fn base_name(event: &[u8]) -> &[u8] {
    let core = [&b"cpu_core/"[..], b"cpu_atom/", b"cpu/"].into_iter();
    for prefix in core {
        if let Some(rest) = event.strip_prefix(prefix) {
            let end = rest.iter().rposition(|byte| *byte == b'/').unwrap_or(rest.len());
            return &rest[..end];
        }
    }
    // `page-faults/period=1/u`: what follows says how often, not what.
    if let Some(at) = event.iter().position(|byte| *byte == b'/') {
        const SETTINGS: [&[u8]; 5] =
            [b"freq=", b"period=", b"call-graph=", b"stack-size=", b"max-stack="];
        if SETTINGS.iter().any(|setting| event[at + 1..].starts_with(setting)) {
            return &event[..at];
        }
    }
    match event.iter().rposition(|byte| *byte == b':') {
        Some(at) if at > 0 && is_modifiers(&event[at + 1..]) => &event[..at],
        _ => event,
    }
}

/// The letters behind the last colon: user, kernel, precise and so on.
fn is_modifiers(text: &[u8]) -> bool {
    text.iter().all(|byte| b"ukhGHIpPSDWeb".contains(byte))
}

/// Whether a sample of `event` is meant by somebody who asks for `asked`: `cycles` means all that
/// have it as their base, `cycles:u` that one.
pub fn is_meant(asked: &[u8], event: &[u8]) -> bool {
    asked == event || asked == base_name(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_one_event_have_one_base() {
        for (event, expect) in [
            ("cycles", "cycles"),
            ("cycles:u", "cycles"),
            ("cycles:ppp", "cycles"),
            ("cpu_core/cycles/", "cycles"),
            ("cpu_atom/cycles/u", "cycles"),
            ("cpu_core/cycles:u/", "cycles:u"),
            ("cpu/event=0x3c,umask=0x1/ppp", "event=0x3c,umask=0x1"),
            ("sched:sched_switch", "sched:sched_switch"),
            ("power/energy-pkg/", "power/energy-pkg/"),
            ("page-faults/period=1/u", "page-faults"),
            (":", ":"),
        ] {
            assert_eq!(base_name(event.as_bytes()), expect.as_bytes(), "{event}");
        }
        assert!(is_meant(b"cycles", b"cycles:k") && is_meant(b"cycles:k", b"cycles:k"));
        assert!(!is_meant(b"cycles:u", b"cycles:k") && !is_meant(b"cycles", b"instructions"));
    }
}
