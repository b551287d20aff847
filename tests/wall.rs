//! Time of threads, on CPU and off: all of it, and several events in one recording.

use std::fs;
use std::process::Command;

use crate::support::{
    Folded, Scratch, Target, finish, flame, live_as_root, program, run, wait_until,
};

#[test]
fn each_thread_has_all_the_time_that_passed() {
    if !live_as_root() {
        return;
    }
    let target = Target::spawn(&mut Command::new(program("wall.c")));
    let has_begun = || target.threads_named("never").len() == 1 && target.cpu_seconds() > 0.1;
    wait_until("five threads", has_begun);
    let scratch = Scratch::new();
    let [wall, waits, profile] =
        ["wall.folded", "waits.folded", "all.pb.gz"].map(|name| scratch.file(name));
    let pid = target.pid_text();
    let recording =
        ["record", "--mode", "wall", "-p", &pid, "-d", "2", "-o", &wall, "-o", &profile];
    let said = run(&recording).success().stderr;
    let value = ["--value", "off-cpu", "-o", &waits];
    run(&[&["render", &profile][..], &value].concat()).success();
    let [wall, waits] = [wall, waits].map(|path| Folded::parse(&fs::read_to_string(path).unwrap()));
    assert!(said.contains("lost      0 records"), "{said}");
    let names = ["never", "often", "runs", "seldom", "turns", "wall"];
    assert_eq!(wall.roots(), names);
    let times = names.map(|name| wall.of(name).total());
    // They are the same clock's, and the recording's.
    let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    assert!(most - least <= most / 100, "{times:?}\n{said}");
    assert!((1_990_000_000..3_000_000_000).contains(most), "{times:?}\n{said}");
    let recorded = said.split_once(" for ").and_then(|(_, rest)| rest.split_once(" s "));
    let recorded: f64 = recorded.unwrap().0.parse().unwrap();
    let of_recording = *most as f64 / (recorded * 1e9);
    assert!((of_recording - 1.0).abs() < 0.03, "{times:?}\n{said}");
    // What is in the kernel for its waits stands in the functions that wait.
    for (name, function, least) in [("often", "often", 0.7), ("seldom", "nap", 0.5)] {
        let share = waits.of(name).with(&[function]) as f64 / wall.of(name).total() as f64;
        assert!(share > least, "{share} of {name} in {function}\n{said}");
    }
    let idle = |name| waits.of(name).total();
    assert_eq!(idle("never"), wall.of("never").total());
    assert!(idle("runs") < wall.of("runs").total());
    assert_eq!(waits.with(&["without_end", "nap"]), 0);
}

#[test]
fn nothing_is_said_of_shares_of_next_to_no_time() {
    if !live_as_root() {
        return;
    }
    // It sleeps for 20 ms again and again, and does next to nothing in between.
    let target = Target::spawn(Command::new(program("wakes.c")).args(["give", "/dev/null", "60"]));
    let pid = target.pid_text();
    let said =
        run(&["record", "--mode", "wall", "-p", &pid, "-d", "1", "--format", "folded", "-o", "-"]);
    let said = said.success().stderr;
    assert!(!said.contains("CPU time was not seen"), "{said}");
}

#[test]
fn each_of_several_events_is_a_value() {
    if !live_as_root() {
        return;
    }
    let scratch = Scratch::new();
    let [profile, drawn] = ["all.pb.gz", "drawn.folded"].map(|name| scratch.file(name));
    let mut command = flame();
    command.args(["record", "-e", "task-clock,page-faults", "-o", &profile, "-o", &drawn, "--"]);
    let said = finish(command.arg(program("events.c")).args(["3000", "0"])).success().stderr;
    let of = |value: &str| {
        let folded = run(&["render", &profile, "--value", value, "--format", "folded", "-o", "-"]);
        Folded::parse(&folded.success().stdout)
    };
    let faults = of("page-faults");
    assert!((3000..4500).contains(&faults.total()), "{said}");
    let time = of("task-clock");
    assert!((1_000_000..60_000_000_000).contains(&time.total()), "{said}");
    // The first event's samples are drawn where nothing else is asked for.
    let drawn = Folded::parse(&fs::read_to_string(drawn).unwrap());
    assert_eq!(drawn.total(), of("samples").total());
    assert!(said.contains(" samples of task-clock, page-faults"), "{said}");
    assert!(said.contains("  shown     task-clock alone"), "{said}");
    let refused = run(&["record", "-e", "page-faults,page-faults", "--", "true"]);
    assert_eq!(refused.code(), 2);
    assert!(refused.stderr.contains("page-faults stands there twice"), "{}", refused.stderr);
}
