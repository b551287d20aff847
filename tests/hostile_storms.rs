//! All that a machine full of hostile programs does at once, under `-a`: flame stays small, ends in
//! time and writes what it saw. For two minutes with `FLAME_STORM_SECONDS=120`, as `.ci/nightly` runs
//! it; for a moment otherwise.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::hostile_files::StuckFs;
use crate::support::{Folded, Running, Scratch, Target, flame, live_as_root, program, wait_within};

/// What flame may take of memory that is its own, in KiB.
const MAX_MEMORY_KIB: u64 = 300 << 10;

/// How long it may take beyond the time of the recording: the machine has all those programs to run,
/// and flame to read the debug information of whatever else does.
const PATIENCE: Duration = Duration::from_secs(600);

/// A storm, whose perf map is removed with it.
struct Storm(Target);

impl Storm {
    fn start(arguments: &[&str]) -> Storm {
        Storm(Target::start(&program("storm.c"), arguments))
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        let _ = fs::remove_file(format!("/tmp/perf-{}.map", self.0.pid()));
    }
}

/// A program with packed symbols that would become 250 MiB, and a debug file that is a hole.
fn packed_program(scratch: &Scratch, number: usize) -> Option<Target> {
    let zeros = scratch.file("zeros");
    if number == 0 {
        fs::File::create(&zeros).unwrap().set_len(250 << 20).unwrap();
        let packed = Command::new("xz").args(["-0", &zeros]).status();
        packed.is_ok_and(|status| status.success()).then_some(())?;
        let hole = fs::File::create(scratch.file("hole.debug")).unwrap();
        (36..=42).rev().find(|bits| hole.set_len(1 << bits).is_ok())?;
    }
    let path = scratch.file(&format!("packed-{number}"));
    let section = format!(".gnu_debugdata={zeros}.xz");
    let mut objcopy = Command::new("objcopy");
    objcopy.args(["-S", "--add-section", &section, &program("shares.c"), &path]);
    assert!(objcopy.status().unwrap().success());
    Some(Target::spawn(Command::new(path).arg("600")))
}

#[test]
fn a_machine_full_of_storms_is_recorded_in_bounded_memory() {
    if !live_as_root() {
        return;
    }
    let seconds = std::env::var("FLAME_STORM_SECONDS").ok().and_then(|text| text.parse().ok());
    let (seconds, threads) = seconds.map_or((2_u64, "1000"), |seconds| (seconds, "20000"));
    let scratch = Scratch::new();
    let modes: [&[&str]; 5] = [&["comm"], &["exec"], &["mmap"], &["threads", threads], &["map"]];
    let storms: Vec<Storm> = modes.into_iter().map(Storm::start).collect();
    let packed: Vec<Target> = (0..4).map_while(|n| packed_program(&scratch, n)).collect();
    let mut files = StuckFs::mount(&scratch, &program("shares.c"));
    let stuck = files.as_mut().map(|files| {
        let target = Target::spawn(Command::new(files.program()).arg("600"));
        target.wait_for_cpu(0.05);
        files.stop();
        target
    });
    let output = scratch.file("out.folded");
    let mut command = flame();
    let duration = format!("{seconds}s");
    command.args(["record", "-a", "-F", "199", "-d", &duration, "-o", &output]);
    let run = Running::new(&mut command);
    let mut most = 0;
    wait_within(Duration::from_secs(seconds) + PATIENCE, "flame to write its output", || {
        most = most.max(run.status_kib("RssAnon") + run.status_kib("RssShmem"));
        fs::exists(&output).unwrap()
    });
    let ended = run.end_within(PATIENCE).success();
    drop((storms, packed, stuck, files));
    let folded = Folded::parse(&fs::read_to_string(output).unwrap());
    assert!(folded.total() > 20, "{}", ended.stderr);
    assert!(most < MAX_MEMORY_KIB, "{most} KiB\n{}", ended.stderr);
    eprintln!("{seconds} s of storms: {} samples, {most} KiB at most", folded.total());
}
