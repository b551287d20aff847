//! `flame uboot`: the real binary on small traces; what it writes is read back.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use roxmltree::Document;

use crate::support::{Ended, Scratch, finish, flame};

const MAP: &str = "\
0000000080000000 T _start
0000000080000040 T initf_dm
0000000080000080 T dm_init
00000000800000c0 t puts
0000000080000100 T do_trace
0000000080000140 D data
";

const INIT: u32 = 0x40;
const DM: u32 = 0x80;
const PUTS: u32 = 0xc0;
const DO_TRACE: u32 = 0x100;

/// Entries are of type 1, exits of type 0: function, type, microseconds.
type Event = (u32, u32, u32);

/// dm_init takes 30 us, of which puts has 10; then the trace is paused for a second.
const BOOT: [Event; 9] = [
    (DO_TRACE, 0, 90),
    (INIT, 1, 100),
    (DM, 1, 105),
    (PUTS, 1, 115),
    (PUTS, 0, 125),
    (DM, 0, 135),
    (DO_TRACE, 1, 136),
    (DO_TRACE, 0, 1_000_136),
    (INIT, 0, 1_000_140),
];

/// A calls chunk of the current version.
fn trace(events: &[Event]) -> Vec<u8> {
    let header = [1, 1, events.len() as u32, 0, 0x8000_0000, 0, 0, 0];
    let record = |(function, kind, time): &Event| [*function, 0x50, kind << 30 | time];
    let words = header.into_iter().chain(events.iter().flat_map(record));
    words.flat_map(u32::to_le_bytes).collect()
}

/// A scratch directory with `trace` and `System.map`.
fn boot() -> Scratch {
    let scratch = Scratch::new();
    fs::write(scratch.file("trace"), trace(&BOOT)).unwrap();
    fs::write(scratch.file("System.map"), MAP).unwrap();
    scratch
}

#[track_caller]
fn uboot(scratch: &Scratch, arguments: &[&str]) -> Ended {
    finish(flame().current_dir(scratch.path()).arg("uboot").args(arguments))
}

fn read(scratch: &Scratch, name: &str) -> String {
    fs::read_to_string(scratch.file(name)).unwrap()
}

const TIMES: &str =
    "[paused] 1000000\ninitf_dm 10\ninitf_dm;dm_init 20\ninitf_dm;dm_init;puts 10\n";
const CALLS: &str =
    "initf_dm 1\ninitf_dm;dm_init 1\ninitf_dm;dm_init;puts 1\ninitf_dm;do_trace 1\n";

#[test]
fn calls_and_times_come_in_every_format() {
    let scratch = boot();
    let outputs = ["svg", "svgz", "folded", "txt", "pb.gz", "json", "csv", "md"];
    let names: Vec<String> = outputs.iter().map(|ending| format!("out.{ending}")).collect();
    for (command, expect, all) in [("timing", TIMES, "1.00 s"), ("calls", CALLS, "4 calls")] {
        let mut arguments = vec![command, "-t", "trace"];
        names.iter().for_each(|name| arguments.extend(["-o", name]));
        let ended = uboot(&scratch, &arguments).success();
        assert!(ended.stderr.contains("9 records, 4 calls in 1.00 s"), "{}", ended.stderr);
        assert_eq!(read(&scratch, "out.folded"), expect);
        let svg = read(&scratch, "out.svg");
        let picture = Document::parse(&svg).unwrap();
        let has = |name: &str| {
            picture.descendants().any(|node| node.text().is_some_and(|text| text.starts_with(name)))
        };
        assert!(has(&format!("all ({all}")) && has("from trace, System.map, flame "), "{command}");
        for name in ["out.txt", "out.json", "out.csv", "out.md"] {
            assert!(read(&scratch, name).contains("puts"), "{name}");
        }
        let again = finish(flame().current_dir(scratch.path()).args([
            "render",
            "out.pb.gz",
            "--format",
            "folded",
            "-o",
            "-",
        ]));
        let below: String = expect.lines().map(|line| format!("U-Boot;{line}\n")).collect();
        assert_eq!(again.success().stdout, below);
    }
    let value = ["render", "out.pb.gz", "--value", "time", "--format", "folded", "-o", "-"];
    let times = finish(flame().current_dir(scratch.path()).args(value)).success().stdout;
    assert!(times.contains("U-Boot;initf_dm;dm_init 20\n"), "both values are kept: {times}");
}

#[test]
fn a_flame_chart_has_time_from_left_to_right() {
    let scratch = boot();
    let events = [
        (INIT, 1, 0),
        (PUTS, 1, 100),
        (PUTS, 0, 200),
        (PUTS, 1, 300),
        (PUTS, 0, 400),
        (INIT, 0, 500),
    ];
    fs::write(scratch.file("trace"), trace(&events)).unwrap();
    let arguments = ["timing", "-t", "trace", "--flamechart", "--width", "1020", "-o", "c.svg"];
    let ended = uboot(&scratch, &arguments).success();
    assert!(!ended.stderr.contains("warning"), "{}", ended.stderr);
    let svg = read(&scratch, "c.svg");
    let picture = Document::parse(&svg).unwrap();
    let box_of = |node: roxmltree::Node<'_, '_>| {
        let title = node.children().find(|child| child.has_tag_name("title"))?.text()?;
        let rect = node.children().find(|child| child.has_tag_name("rect"))?;
        let x = rect.attribute("x")?.parse::<f64>().ok()?;
        title.starts_with("puts (100").then_some(x)
    };
    let boxes: Vec<f64> = picture.descendants().filter_map(box_of).collect();
    // A thousand pixels for 500 us, from x = 10 on.
    assert_eq!(boxes, [210.0, 610.0]);
    let calls = uboot(&scratch, &["calls", "-t", "trace", "--flamechart", "-o", "c.svg"]);
    calls.error(2, &["cannot draw a flame chart of calls", "try: flame uboot timing"]);
}

#[test]
fn two_boots_are_compared() {
    let scratch = boot();
    uboot(&scratch, &["timing", "-t", "trace", "-o", "before.folded"]).success();
    let mut slower = BOOT;
    slower[5..].iter_mut().for_each(|event| event.2 += 500);
    fs::write(scratch.file("trace"), trace(&slower)).unwrap();
    uboot(&scratch, &["timing", "-t", "trace", "-o", "after.folded"]).success();
    let diff = ["diff", "before.folded", "after.folded", "--no-normalize", "-o", "d.folded"];
    finish(flame().current_dir(scratch.path()).args(diff)).success();
    assert!(read(&scratch, "d.folded").contains("initf_dm;dm_init 20 520\n"));
}

#[test]
fn what_cannot_be_done_is_said_and_leaves_nothing_behind() {
    let scratch = boot();
    fs::write(scratch.file("data.map"), "80000000 D data\n80000010 B bss\n").unwrap();
    fs::write(scratch.file("other.map"), "10 T a\n4321 T b\n").unwrap();
    fs::write(scratch.file("text"), "U-Boot 2026.10\nHit any key to stop autoboot\n").unwrap();
    fs::write(scratch.file("none"), "").unwrap();
    fs::write(scratch.file("no-calls"), trace(&[])).unwrap();
    fs::write(scratch.file("long.cfg"), "x".repeat(300)).unwrap();
    fs::write(scratch.file("odd"), trace(&[(PUTS, 3, 5)])).unwrap();
    fs::write(scratch.file("puts"), trace(&[(PUTS, 1, 5)])).unwrap();
    fs::write(scratch.file("bad.cfg"), "exclude-func a\\(b\n").unwrap();
    let before = scratch.names();
    let cases: [(&[&str], &[&str]); 10] = [
        (&["-t", "trace", "-m", "none.map"], &["cannot read none.map: no such file", "try: -m"]),
        (&["-t", "trace", "-m", "data.map"], &["cannot use the map data.map", "no text symbol"]),
        (&["-t", "trace", "-m", "other.map"], &["none of the 4 functions", "another build"]),
        (&["-t", "puts", "-m", "other.map"], &["the only function of the trace is not in other"]),
        (&["-t", "nowhere"], &["cannot read nowhere: no such file"]),
        (&["-t", "text"], &["cannot read text as a U-Boot trace", "does not start with a chunk"]),
        (&["-t", "none"], &["cannot read none as a U-Boot trace", "it is empty"]),
        (&["-t", "trace", "-c", "bad.cfg"], &["cannot use the rules of bad.cfg", "line 1", "\\("]),
        (
            &["-t", "trace", "-c", "long.cfg"],
            &["line 1: xxx", "xxx... is neither include-func nor"],
        ),
        (&["-t", "trace", "--chunk", "2"], &["there is no calls chunk 2: the file has 1"]),
    ];
    for (arguments, message) in cases {
        for command in [&["timing", "-o", "out.svg"][..], &["ftrace", "-o", "trace.dat"]] {
            uboot(&scratch, &[command, arguments].concat()).error(1, message);
        }
    }
    uboot(&scratch, &["calls", "-t", "no-calls", "-o", "out.svg"])
        .error(1, &["no calls in no-calls", "its calls chunk has no records"]);
    uboot(&scratch, &["calls", "-t", "odd", "-o", "out.svg"])
        .error(1, &["no calls in odd", "neither entries nor exits"]);
    uboot(&scratch, &["ftrace", "-t", "trace", "-o", "out.svg"])
        .error(2, &["out.svg: ftrace writes trace.dat", "flame uboot timing -o out.svg"]);
    let unwritable = ["timing", "-t", "trace", "-o", "/no/such/folder/out.svg"];
    uboot(&scratch, &unwritable).error(1, &["cannot write /no/such/folder/out.svg"]);
    let unwritable = ["ftrace", "-t", "trace", "-o", "/no/such/folder/trace.dat"];
    uboot(&scratch, &unwritable).error(1, &["cannot write /no/such/folder/trace.dat"]);
    let picture = ["timing", "-t", "trace", "--compat", "-o", "out.svg"];
    uboot(&scratch, &picture).error(2, &["--compat writes folded text only"]);
    for option in [["--grep", "main"], ["--base", "main"], ["--chunk", "1"]] {
        let arguments = ["timing", "-t", "trace", "--compat", "-o", "out.folded"];
        uboot(&scratch, &[&arguments[..], &option].concat()).error(2, &["--compat", option[0]]);
    }
    assert_eq!(scratch.names(), before);
}

#[test]
fn what_is_missing_of_a_file_is_said_and_the_rest_is_used() {
    let scratch = boot();
    let whole = trace(&BOOT);
    fs::write(scratch.file("trace"), &whole[..whole.len() - 13]).unwrap();
    let ended =
        uboot(&scratch, &["timing", "-t", "trace", "-o", "-", "--format", "folded"]).success();
    assert_eq!(ended.stdout, "initf_dm 6\ninitf_dm;dm_init 20\ninitf_dm;dm_init;puts 10\n");
    let expect = "warning: the file is truncated: 2 records are missing of its 9\n";
    assert!(ended.stderr.starts_with(expect), "{}", ended.stderr);
    uboot(&scratch, &["timing", "-t", "trace", "--compat", "-o", "out.folded"])
        .error(1, &["cannot read trace as proftool does", "without --compat"]);
    fs::write(scratch.file("trace"), [trace(&BOOT[..3]), trace(&BOOT)].concat()).unwrap();
    let ended =
        uboot(&scratch, &["calls", "-t", "trace", "-o", "-", "--format", "folded"]).success();
    assert_eq!(ended.stdout, CALLS);
    assert!(ended.stderr.contains("1 other calls chunk is left out: --chunk"), "{}", ended.stderr);
    fs::write(scratch.file("part.map"), MAP.replace("T dm_init", "D dm_init")).unwrap();
    let ended = uboot(&scratch, &["calls", "-t", "trace", "-m", "part.map", "-o", "c.folded"]);
    assert!(ended.success().stderr.contains("1 of 4 functions (2 records) are not in part.map"));
    assert!(read(&scratch, "c.folded").contains("initf_dm;[unknown 0x80000080];puts 1\n"));
}

#[track_caller]
fn shell(scratch: &Scratch, script: &str) -> Ended {
    let mut command = Command::new("sh");
    command.args(["-c", script]).env("FLAME", env!("CARGO_BIN_EXE_flame"));
    finish(command.current_dir(scratch.path()))
}

#[test]
fn a_trace_may_come_from_a_pipe_or_be_packed() {
    let scratch = boot();
    fs::write(scratch.file("rules"), "exclude-func nothing\n").unwrap();
    let timing = "\"$FLAME\" uboot timing -q -o - --format folded";
    for script in [
        format!("cat trace | {timing} -t -"),
        format!("gzip -c trace | {timing} -t -"),
        format!("cat System.map | {timing} -t trace -m -"),
        format!("gzip -k System.map trace; {timing} -t trace.gz -m System.map.gz"),
        format!("cat rules | {timing} -t trace -c - --apply-filter"),
    ] {
        let ended = shell(&scratch, &script).success();
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (TIMES, ""), "{script}");
    }
    for twice in ["timing -t - -m -", "ftrace -t - -m - -o x.dat", "info -t - -m -"] {
        let words: Vec<&str> = twice.split(' ').collect();
        uboot(&scratch, &words).error(2, &["stdin can be read only once"]);
    }
}

#[test]
fn a_packed_trace_that_is_cut_off_is_used_as_far_as_it_goes() {
    let scratch = boot();
    let events: Vec<Event> =
        (0..60_000).map(|at| if at % 2 == 0 { (INIT, 1, at) } else { (INIT, 0, at) }).collect();
    fs::write(scratch.file("trace"), trace(&events)).unwrap();
    shell(&scratch, "gzip -c trace > whole.gz; head -c 40000 whole.gz > cut.gz").success();
    let ended = uboot(&scratch, &["calls", "-t", "cut.gz", "-o", "c.folded"]).success();
    assert!(
        ended.stderr.contains("its compressed data is damaged or truncated"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("records are missing of its 60,000"), "{}", ended.stderr);
    let calls = read(&scratch, "c.folded");
    let calls: u64 = calls.trim_end().strip_prefix("initf_dm ").unwrap().parse().unwrap();
    assert!((1_000..30_000).contains(&calls), "{calls}");
    uboot(&scratch, &["calls", "-t", "cut.gz", "--compat", "-o", "d.folded"])
        .error(1, &["cannot read cut.gz", "damaged or truncated", "without --compat"]);
}

#[test]
fn a_reader_that_goes_away_is_no_reason_to_complain() {
    let scratch = boot();
    let many: Vec<Event> = (0..10_000).map(|time| (PUTS, 1, time)).collect();
    fs::write(scratch.file("trace"), trace(&many)).unwrap();
    // The pipe holds less than what is written, so flame is still at it when its reader ends.
    let ended = shell(&scratch, "\"$FLAME\" uboot ftrace -t trace -o - | head -c 20 > start");
    assert!(!ended.stderr.contains("no events"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("error"), "{}", ended.stderr);
    assert_eq!(fs::read(scratch.file("start")).unwrap().len(), 20);
}

#[test]
fn paths_that_would_fill_a_disk_are_not_written() {
    let scratch = boot();
    let deep: Vec<Event> = (0..50_000).map(|time| (PUTS, 1, time)).collect();
    fs::write(scratch.file("trace"), trace(&deep)).unwrap();
    for name in ["o.folded", "o.txt", "o.md", "o.pb.gz"] {
        uboot(&scratch, &["calls", "-t", "trace", "-o", name])
            .error(1, &["the calls are 50,000 levels deep", "take 5 GB", "FILE.svg"]);
        assert!(!Path::new(&scratch.file(name)).exists(), "{name}");
    }
    uboot(&scratch, &["calls", "-t", "trace", "-o", "o.svg", "-o", "o.csv"]).success();
    assert!(read(&scratch, "o.csv").contains("puts"));
}

#[test]
fn rules_apply_to_flame_graphs_only_if_asked_to() {
    let scratch = boot();
    fs::write(scratch.file("rules"), "exclude-func .\ninclude-func ^\\(initf\\|put\\)\n").unwrap();
    let timing = ["timing", "-t", "trace", "-c", "rules", "-o", "o.folded"];
    let ended = uboot(&scratch, &timing).success();
    assert!(ended.stderr.contains("warning: --config changes nothing here"), "{}", ended.stderr);
    assert_eq!(read(&scratch, "o.folded"), TIMES);
    uboot(&scratch, &[&timing[..], &["--apply-filter"]].concat()).success();
    let expect = "[paused] 1000000\ninitf_dm 30\ninitf_dm;puts 10\n";
    assert_eq!(read(&scratch, "o.folded"), expect);
    uboot(&scratch, &["timing", "-t", "trace", "--apply-filter"]).error(2, &["--config"]);
}

#[test]
fn info_says_what_is_in_a_trace() {
    let scratch = boot();
    let list = [0, 0, 2, 0, 0, 0, 0, 0, DM, 3, PUTS, 4].map(u32::to_le_bytes).concat();
    fs::write(scratch.file("trace"), [list, trace(&BOOT), vec![7; 5]].concat()).unwrap();
    let ended = uboot(&scratch, &["info", "-t", "trace", "-m", "System.map"]).success();
    let expect = "\
file       trace, 193 bytes
format     version 1 (U-Boot 2023.04 and later), little-endian, sites of 16 bytes
chunk      functions: 2 records
chunk      calls 1: 9 records, text base 0x80000000
records    9 records: 4 entries, 5 exits
unmatched  1 exit without its entry, 0 calls open at the end
time       1.00 s, from 0.000090 s to 1.000140 s
gap        1.00 s at most, before record 8
paused     1.00 s in 1 pause
depth      3 levels at most
dropped    3 calls of 7, too deep, or when the buffer was full
note       5 bytes after the last chunk left out: no chunk starts there
functions  4 functions, 0 not in the map; 2 of 3 calls come from inside the caller that it names
";
    assert_eq!(ended.stdout, expect);
}

#[test]
fn compat_writes_what_proftool_writes() {
    let scratch = boot();
    let timing = ["timing", "-t", "trace", "--compat"];
    let ended = uboot(&scratch, &[&timing[..], &["-o", "-"]].concat()).success();
    let expect =
        "initf_dm 10\ninitf_dm;dm_init 20\ninitf_dm;dm_init;puts 10\ninitf_dm;do_trace 1000000\n";
    assert_eq!(ended.stdout, expect);
    // Nine seconds are more than proftool can write: it leaves a file that is not whole.
    let mut long = BOOT;
    (long[7].2, long[8].2) = (9_000_136, 9_000_140);
    fs::write(scratch.file("trace"), trace(&long)).unwrap();
    let ftrace = ["ftrace", "-t", "trace", "-o", "trace.dat"];
    uboot(&scratch, &[&ftrace[..], &["--compat"]].concat())
        .error(1, &["trace.dat is incomplete", "cannot represent time delta", "without --compat"]);
    uboot(&scratch, &ftrace).success();
}

/// Whether trace-cmd is there; if not, says so, or fails with `FLAME_REQUIRE_TRACE_CMD=1`.
fn has_trace_cmd() -> bool {
    let found = Command::new("trace-cmd").arg("--version").output().is_ok();
    let required = std::env::var("FLAME_REQUIRE_TRACE_CMD").is_ok_and(|value| value == "1");
    assert!(found || !required, "FLAME_REQUIRE_TRACE_CMD=1, but there is no trace-cmd");
    if !found {
        skip("there is no trace-cmd");
    }
    found
}

fn skip(why: &str) {
    // The harness shows only what failing tests print.
    let _ = writeln!(std::io::stderr(), "SKIP uboot: {why}");
}

/// The lines of a trace.dat, without the names of plugins that trace-cmd cannot load.
fn report(scratch: &Scratch, name: &str) -> Vec<String> {
    let mut command = Command::new("trace-cmd");
    let output = command.arg("report").arg(scratch.file(name)).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn trace_cmd_reads_the_events() {
    if !has_trace_cmd() {
        return;
    }
    let scratch = boot();
    uboot(&scratch, &["ftrace", "-t", "trace", "-o", "function.dat"]).success();
    let lines = report(&scratch, "function.dat");
    assert_eq!(lines[0], "cpus=1");
    assert_eq!(lines.len(), 10);
    let has = |line: &str, parts: &[&str]| parts.iter().all(|part| line.contains(part));
    assert!(
        has(&lines[2], &["u-boot-1", "[000]", "0.000100", "function:", "initf_dm"]),
        "{lines:#?}"
    );
    uboot(&scratch, &["ftrace", "-t", "trace", "-f", "funcgraph", "-o", "graph.dat"]).success();
    let lines = report(&scratch, "graph.dat");
    let leaf = lines.iter().find(|line| line.contains("puts();")).unwrap();
    assert!(has(leaf, &["0.000115", "funcgraph_entry:", "10.000 us"]), "{leaf}");
    fs::write(scratch.file("all"), "exclude-func .\n").unwrap();
    let ended =
        uboot(&scratch, &["ftrace", "-t", "trace", "-c", "all", "-o", "none.dat"]).success();
    assert!(ended.stderr.contains("warning: no events"), "{}", ended.stderr);
    assert_eq!(report(&scratch, "none.dat"), ["cpus=1"]);
}

/// What `trace-cmd report` printed for proftool's files, where these have no mistakes.
#[test]
fn trace_cmd_prints_the_same_for_real_traces() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/uboot");
    if !data.is_dir() {
        return skip(&format!("there are no traces at {}", data.display()));
    }
    if !has_trace_cmd() {
        return;
    }
    let scratch = Scratch::new();
    let traces = [
        ("tiny-version", "mini"),
        ("cmds-medium", "mini"),
        ("unbalanced", "mini"),
        ("small-overflow", "minismall"),
        ("deep-dmtree", "minideep"),
    ];
    for (name, map) in traces {
        for kind in ["function", "funcgraph"] {
            let path = data.join(format!("proftool/mini-{name}/{kind}.report.txt"));
            let shell = r#"cat "$1" 2>/dev/null || xz -dc "$1.xz""#;
            let expect = Command::new("sh").args(["-c", shell, "sh"]).arg(&path).output().unwrap();
            let expect = String::from_utf8(expect.stdout).unwrap();
            assert!(expect.lines().count() > 700, "{}", path.display());
            let trace = data.join(format!("traces/{name}.trace"));
            let map = data.join(format!("maps/System.map.{map}"));
            let (trace, map) = (trace.display().to_string(), map.display().to_string());
            uboot(&scratch, &["ftrace", "-f", kind, "-t", &trace, "-m", &map, "-o", "o.dat"])
                .success();
            let found = report(&scratch, "o.dat");
            assert!(found.iter().eq(expect.lines()), "{name}: {kind} differs");
        }
    }
}
