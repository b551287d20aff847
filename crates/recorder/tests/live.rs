//! Recording programs of this machine.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use flame_profile::{CallTree, Hz, Pid, ProcessAddress, Profile, Tid, TreeOptions};
use flame_recorder::{Recorder, RecorderConfig};
use flame_sampler::{Launched, Rate, Target};

/// The example: cargo builds it for tests, too.
fn example() -> PathBuf {
    let own = std::env::current_exe().expect("tests have a path");
    let target = own.parent().and_then(|deps| deps.parent()).expect("tests are below target");
    target.join("examples/record_child")
}

/// A loop of the shell of some 200 ms.
const LOOP: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done";

/// Whether a failure is that sampling is not allowed here, which is said, and may be no failure.
fn is_skipped(error: &str) -> bool {
    let is_required = std::env::var("FLAME_REQUIRE_PERF").is_ok_and(|value| value == "1");
    let is_refused = !is_required && error.contains("Denied");
    if is_refused {
        let _ = writeln!(std::io::stderr(), "SKIP live: {error}");
    }
    is_refused
}

/// Where the first word of a process's stack lies, the number of its arguments: field 28 of
/// proc_pid_stat(5), which only root may see.
fn start_of_stack(pid: Pid) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.0)).ok()?;
    let behind_name = stat.rsplit_once(") ")?.1;
    behind_name.split(' ').nth(25)?.parse().ok().filter(|start| *start > 1)
}

/// Readers are told where the stack of a thread ends that was unwound to its root.
#[test]
fn where_a_stack_ends_is_told_to_its_reader() {
    let script = "i=0; while [ $i -lt 50000000 ]; do i=$((i + 1)); done";
    let command = ["sh", "-c", script].map(OsString::from);
    let mut child = Launched::launch(&command, None).expect("there is a shell");
    let mut config = RecorderConfig::new(Target::Launched(child.pid()));
    config.sampler.rate = Rate::Frequency(Hz(999));
    let roots = Arc::clone(&config.sampler.stack_roots);
    let mut recorder = match Recorder::start(config) {
        Ok(recorder) => recorder,
        Err(error) => return assert!(is_skipped(&format!("{error:?}")), "{error:?}"),
    };
    let tid = Tid(child.pid().0);
    child.release().expect("it waits");
    // The dynamic linker, which runs first, has no tables that say where the stack ends.
    while recorder.samples() < 30 {
        recorder.poll(Duration::from_millis(20)).expect("rings can be read");
    }
    let start = start_of_stack(child.pid());
    child.terminate();
    recorder.finish().expect("rings can be read");
    while child.try_wait().is_none() {
        std::thread::yield_now();
    }
    let Some(start) = start else { return };
    let end = roots.of(tid, ProcessAddress(start - 4096)).expect("a stack was whole");
    assert!((start..start + 1024).contains(&end.0), "{end:?}, and not {start:#x}");
    roots.forget(tid);
    assert_eq!(roots.of(tid, ProcessAddress(start - 4096)), None);
}

#[test]
fn a_snapshot_of_a_live_recording_is_part_of_its_profile() {
    // Ended as soon as there is enough, and by itself if something goes wrong.
    let script = "i=0; while [ $i -lt 50000000 ]; do i=$((i + 1)); done";
    let command = ["sh", "-c", script].map(OsString::from);
    let mut child = Launched::launch(&command, None).expect("there is a shell");
    let mut config = RecorderConfig::new(Target::Launched(child.pid()));
    config.sampler.rate = Rate::Frequency(Hz(999));
    let mut recorder = match Recorder::start(config) {
        Ok(recorder) => recorder,
        Err(error) => return assert!(is_skipped(&format!("{error:?}")), "{error:?}"),
    };
    child.release().expect("it waits");
    let mut snapshots: Vec<Profile> = Vec::new();
    while snapshots.len() < 3 {
        recorder.poll(Duration::from_millis(20)).expect("rings can be read");
        if recorder.samples() > snapshots.last().map_or(9, |profile| profile.health.samples) {
            snapshots.push(recorder.snapshot().expect("rings can be read"));
        }
    }
    child.terminate();
    let last = recorder.finish().expect("rings can be read");
    while child.try_wait().is_none() {
        std::thread::yield_now();
    }
    let samples: Vec<u64> = snapshots.iter().map(|profile| profile.health.samples).collect();
    assert!(samples.is_sorted() && samples[0] >= 10, "{samples:?}");
    assert!(samples.last() <= Some(&last.health.samples), "{samples:?}");
    let names = |profile: &Profile| -> BTreeSet<String> {
        let options = TreeOptions::default();
        let tree = CallTree::from_profile(profile, &options);
        // What has no name yet may have one later.
        let named = tree.labels().iter().filter(|label| !label.name.starts_with('['));
        named.map(|label| label.name.clone()).collect()
    };
    for snapshot in &snapshots {
        let (seen, all) = (names(snapshot), names(&last));
        assert!(!seen.is_empty());
        assert!(seen.is_subset(&all), "{:?}", seen.difference(&all));
        assert!(snapshot.health.coverage.is_some());
    }
}

#[test]
fn a_busy_command_has_hot_functions() {
    let command = ["sh", "-c", LOOP];
    let output = Command::new(example()).args(command).output().expect("the example is built");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() && is_skipped(&errors) {
        return;
    }
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).expect("names are text");
    let share = |line: &str| line.split_once('%').map(|(share, _)| share.trim().parse::<f64>());
    let shares: Vec<f64> = text.lines().filter_map(share).map(Result::unwrap).collect();
    assert!((2..=10).contains(&shares.len()), "{text}");
    assert!(shares.is_sorted_by(|a, b| a >= b), "{text}");
}
