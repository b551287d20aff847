//! Whether live tests can run here.

use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;

use super::{Scratch, finish, flame, program};

/// Whether perf_event works here. Where it does not, says so once a test on the real stderr (the
/// test harness shows only what failing tests print), or fails with `FLAME_REQUIRE_PERF=1`.
#[track_caller]
pub(crate) fn live() -> bool {
    static REFUSED: OnceLock<Option<String>> = OnceLock::new();
    let Some(reason) = REFUSED.get_or_init(refusal) else {
        return true;
    };
    let required = std::env::var("FLAME_REQUIRE_PERF").is_ok_and(|value| value == "1");
    assert!(!required, "FLAME_REQUIRE_PERF=1, but: {reason}");
    skip(reason);
    false
}

/// The same for tests that need kernel stacks, or to become another user.
#[track_caller]
pub(crate) fn live_as_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        skip("this test needs root");
    }
    root && live()
}

fn skip(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("?");
    let _ = writeln!(std::io::stderr(), "SKIP live: {reason} ({test})");
}

/// Why perf_event is refused. Only what the environment can be at fault for counts: any other
/// failure of flame fails the tests that meet it.
fn refusal() -> Option<String> {
    if std::env::var("FLAME_SKIP_LIVE").is_ok_and(|value| value == "1") {
        return Some("FLAME_SKIP_LIVE is 1".to_owned());
    }
    if !Path::new("/proc/sys/kernel/perf_event_paranoid").exists() {
        return Some("this kernel has no perf_event".to_owned());
    }
    let scratch = Scratch::new();
    let output = scratch.file("probe.folded");
    let program = program("exitcode.c");
    let ended =
        finish(flame().args(["record", "-F", "999", "-o", &output, "--", &program, "0.1", "0"]));
    let refused = ["permission denied", "operation not permitted", "function not implemented"];
    let message = ended.stderr.to_lowercase();
    let refused = !ended.status.success() && refused.iter().any(|reason| message.contains(reason));
    refused.then(|| ended.stderr.lines().next().unwrap_or("perf_event is refused").to_owned())
}
