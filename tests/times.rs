//! When samples were taken: heat maps of recordings and of perf.data.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::perf_data::has_perf;
use crate::support::{Scratch, finish, flame, live, program, run};

/// Seconds of the slices of a map, and what each has.
fn slices(svg: &str) -> Vec<(f64, u64)> {
    let titles = svg.split("<title>").skip(1).filter_map(|rest| rest.split_once("</title>"));
    let slice = |(title, _): (&str, &str)| {
        let (start, rest) = title.split_once("s..")?;
        let (_, amount) = rest.split_once(": ")?;
        let count = amount.split(' ').next()?.replace(',', "");
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    titles.filter_map(slice).collect()
}

/// Seconds of CPU time of each of the two bursts.
const BURST: f64 = 0.2;

/// Whether a pause is as long as the sleep between the bursts, and fits beside them into how long all took: however
/// late a busy machine starts what comes next.
fn is_pause(seconds: f64, took: Duration) -> bool {
    (0.8..=took.as_secs_f64() - 2.0 * BURST).contains(&seconds)
}

/// Runs for 0.2 s, rests for a second, and runs again.
fn bursts() -> [String; 3] {
    let program = program("shares.c");
    ["sh".to_owned(), "-c".to_owned(), format!("'{program}' {BURST}; sleep 1; '{program}' {BURST}")]
}

#[track_caller]
fn check_bursts(svg: &str, took: Duration) {
    let slices = slices(svg);
    let all: u64 = slices.iter().map(|(_, count)| count).sum();
    assert!(all > 100, "{svg}");
    // However long the bursts take on a busy machine, there is a second of nothing between them.
    let starts: Vec<f64> = slices.iter().filter(|(_, n)| *n > 0).map(|(start, _)| *start).collect();
    let longest = starts.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
    assert!(is_pause(longest, took), "{took:?}: {starts:?}");
}

#[test]
fn bursts_and_pauses_of_a_recording_are_seen() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let (map, folded) = (scratch.file("out.heatmap.svg"), scratch.file("out.folded"));
    let mut command = flame();
    command.args(["record", "-F", "999", "-o", &map, "-o", &folded, "--"]).args(bursts());
    let start = Instant::now();
    finish(&mut command).success();
    let took = start.elapsed();
    let svg = fs::read_to_string(&map).unwrap();
    check_bursts(&svg, took);
    let all: u64 = slices(&svg).iter().map(|(_, count)| count).sum();
    let text = fs::read_to_string(&folded).unwrap();
    assert_eq!(crate::support::Folded::parse(&text).total(), all);
}

/// What was saved knows when samples were taken, if that was asked for.
#[test]
fn a_saved_recording_keeps_times() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let (saved, plain) = (scratch.file("out.pb.gz"), scratch.file("plain.pb.gz"));
    let mut command = flame();
    let start = Instant::now();
    finish(command.args(["record", "--times", "-F", "999", "-o", &saved, "--"]).args(bursts()))
        .success();
    let took = start.elapsed();
    let map = scratch.file("saved.svg");
    run(&["render", &saved, "--heatmap", "-o", &map]).success();
    check_bursts(&fs::read_to_string(&map).unwrap(), took);
    let total = |options: &[&str]| {
        let mut command = flame();
        let ended = finish(command.args(["fold", &saved, "-o", "-"]).args(options)).success();
        crate::support::Folded::parse(&ended.stdout).total()
    };
    // The second burst comes after a pause of a second.
    let (first, second) = (total(&["--time", "0..0.8"]), total(&["--time", "0.8.."]));
    assert_eq!(first + second, total(&[]));
    assert!(first.min(second) > 100, "{first} {second}");
    finish(flame().args(["record", "-o", &plain, "--", &program("shares.c"), "0.3"])).success();
    let unknown = |options: &[&str], why: &str| {
        run(&[&["fold", "-o", "-"], options].concat()).error(2, &["cannot choose samples", why]);
    };
    unknown(&[&plain, "--time", "0..1"], "flame record --times");
    unknown(&[&saved, "--cpu", "7"], "on which CPUs");
    // The shell and what it sleeps with use next to nothing.
    let (shares, shell) =
        (total(&["--comm", "shares"]), total(&["--comm", "sh", "--comm", "shares"]));
    assert!(shares > 100 && shares <= shell && shell <= total(&[]), "{shares} {shell}");
    let silence = ["fold", &saved, "-o", "-", "--time", "50..60"];
    run(&silence).error(1, &["no sample matches --time 50..60; the recording is "]);
    let nobody = run(&["fold", &saved, "-o", "-", "--process", "1"]);
    assert!(nobody.stdout.is_empty(), "{}", nobody.stdout);
    run(&["render", &plain, "--heatmap", "-o", &map]).error(2, &["cannot draw a heat map of this"]);
    run(&["record", "--times", "-o", &map, "--", "true"])
        .error(2, &["--times is for saved recordings", "-o recording.pb.gz"]);
    run(&["record", "--mode", "off-cpu", "--times", "-o", &plain, "--", "true"])
        .error(2, &["cannot keep times of waits"]);
}

/// Folded text has nothing to choose by: all of it would be a wrong number.
#[test]
fn nothing_is_chosen_from_folded_text() {
    let scratch = Scratch::new();
    let folded = scratch.file("out.folded");
    fs::write(&folded, "main;parse 7\nmain;read 3\n").unwrap();
    for choice in ["--time=0..1", "--cpu=0", "--process=1", "--thread=main", "--comm=main"] {
        let option = choice.split('=').next().unwrap();
        let what = format!("by {option}");
        run(&["fold", &folded, "-o", "-", choice]).error(2, &[&what, "folded text has only names"]);
    }
    for choice in ["--event=cycles", "--skip-after=main"] {
        run(&["fold", &folded, "-o", "-", choice]).error(2, &["folded text has only names"]);
    }
}

/// A lane of a chart: its name, for how many milliseconds its thread ran, and the parts of the whole in which
/// boxes of `main` begin and end.
type Lane = (String, f64, Vec<(f64, f64)>);

fn lanes(svg: &str) -> Vec<Lane> {
    let attribute = |text: &str, name: &str| -> Option<f64> {
        let (_, rest) = text.split_once(&format!(" {name}=\""))?;
        rest.split('"').next()?.parse().ok()
    };
    let lane = |text: &str| {
        let name = text.split_once("data-all")?.1.split_once('>')?.1.split('<').next()?;
        let ran = text.split_once("on a CPU for ")?.1.split(" ms").next()?.parse().unwrap_or(0.0);
        let inner = text.split_once("viewBox=\"0 0 ")?.1.split(' ').next()?.parse::<f64>().ok()?;
        let main =
            text.split("<rect").filter(|rect| rect.contains("<title>main\n")).filter_map(|rect| {
                let (x, width) = (attribute(rect, "x")?, attribute(rect, "width")?);
                Some((x / inner, (x + width) / inner))
            });
        Some((name.to_owned(), ran, main.collect()))
    };
    svg.split("<g class=\"lane\"").skip(1).filter_map(lane).collect()
}

/// Each process has a lane, with boxes where it ran and nothing where it did not yet, or no more.
#[test]
fn charts_show_what_each_thread_did_when() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let chart = scratch.file("out.svg");
    let mut command = flame();
    let started = Instant::now();
    finish(
        command.args(["record", "-F", "499", "--flamechart", "-o", &chart, "--"]).args(bursts()),
    )
    .success();
    let took = started.elapsed();
    let svg = fs::read_to_string(&chart).unwrap();
    let lanes = lanes(&svg);
    let of_shares: Vec<_> = lanes.iter().filter(|(name, ..)| name.starts_with("shares")).collect();
    let [(_, first_ran, first), (_, second_ran, second)] = of_shares[..] else {
        panic!("{lanes:?}")
    };
    // Each takes 0.2 s of CPU time, besides what starting takes: beside others up to half as much.
    for ran in [first_ran, second_ran] {
        assert!((200.0..400.0).contains(ran), "{lanes:?}");
    }
    let ends = |boxes: &[(f64, f64)]| (boxes[0].0, boxes[boxes.len() - 1].1);
    let ((start, end), (again, whole)) = (ends(first), ends(second));
    assert!(start < end && end < again && again < whole, "{lanes:?}");
    let (_, rest) = svg.split_once("data-duration=\"").unwrap();
    let duration: f64 = rest.split('"').next().unwrap().parse().unwrap();
    let between = (again - end) * duration / 1e9;
    assert!(is_pause(between, took), "{between} of {took:?}: {lanes:?}");
    run(&["record", "--flamechart", "-o", &scratch.file("out.folded"), "--", "true"])
        .error(2, &["--flamechart is for pictures"]);
    run(&["record", "--mode", "off-cpu", "--flamechart", "-o", &chart, "--", "sleep", "1"])
        .error(2, &["cannot draw a flame chart of waits"]);
}

#[test]
fn perf_data_has_times_and_other_files_do_not() {
    if !has_perf() {
        return;
    }
    let scratch = Scratch::new();
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-F", "999", "-e", "cpu-clock", "-o", "perf.data", "--"]);
    let start = Instant::now();
    assert!(perf.args(bursts()).current_dir(scratch.path()).status().unwrap().success());
    let took = start.elapsed();
    let (data, map) = (scratch.file("perf.data"), scratch.file("out.heatmap.svg"));
    run(&["fold", &data, "-o", &map]).success();
    check_bursts(&fs::read_to_string(&map).unwrap(), took);
    let chart = scratch.file("out.flamechart.svg");
    run(&["fold", &data, "-o", &chart]).success();
    assert!(fs::read_to_string(&chart).unwrap().contains("is shown as not running"));
    let folded = scratch.file("out.folded");
    fs::write(&folded, "main;work 3\n").unwrap();
    run(&["render", &folded, "-o", &map])
        .error(2, &["cannot draw a heat map", "when samples were taken"]);
}

/// A wait is not a moment; calls of several functions of an allocator are one value.
#[test]
fn waits_have_no_heat_map_and_functions_have_one_together() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let map = scratch.file("out.heatmap.svg");
    run(&["record", "--mode", "off-cpu", "-o", &map, "--", "sleep", "1"])
        .error(2, &["cannot draw a heat map of waits"]);
    let folded = scratch.file("out.folded");
    let python = "for _ in range(60): x = [[0] * (j % 300) for j in range(3000)]";
    // Each call is sampled; or few are, and what they stand for is held against how many there were.
    for command in [vec![program("allocations.c"), "50".to_owned()], python_command(python)] {
        let mut flame = flame();
        flame.args(["record", "--mode", "alloc", "-o", &map, "-o", &folded, "--"]);
        finish(flame.args(&command)).success();
        let svg = fs::read_to_string(&map).unwrap();
        let bytes: f64 = svg.split("<title>").filter_map(bytes_of).sum();
        let text = fs::read_to_string(&folded).unwrap();
        let share = bytes / crate::support::Folded::parse(&text).total() as f64;
        assert!((0.995..1.005).contains(&share), "{share}: {command:?} {svg}");
    }
}

/// Python with a script where it is there, or else a program that is.
fn python_command(script: &str) -> Vec<String> {
    match crate::support::scripts::has("/usr/bin/python3") {
        true => ["/usr/bin/python3", "-c", script].map(str::to_owned).to_vec(),
        false => vec![program("allocations.c"), "50".to_owned()],
    }
}

/// What the title of a slice says, in bytes.
fn bytes_of(title: &str) -> Option<f64> {
    let (amount, unit) = title.split_once("</title>")?.0.split_once(": ")?.1.split_once(' ')?;
    let units = [("B", 1.0), ("KiB", 1024.0), ("MiB", 1048576.0), ("GiB", 1073741824.0)];
    let (_, unit) = units.iter().find(|(name, _)| *name == unit)?;
    Some(amount.replace(',', "").parse::<f64>().ok()? * unit)
}
