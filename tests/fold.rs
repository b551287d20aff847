//! `flame fold`: the real binary on the output of other tools.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use crate::support::{Ended, Scratch, finish, flame};

const PERF: &str = "\
server 40/41 [000] 10.000000:     100 cycles:u: 
	    55d2 parse (/usr/bin/server)
	    55d0 main (/usr/bin/server)

server 40/42 [001] 11.500000:     200 cycles:k: 
	ffffffff81 do_read ([kernel.kallsyms])
	    55d1 read (/usr/lib/libc.so.6)
	    55d0 main (/usr/bin/server)

client 50/50 [001] 12.000000:     400 cycles:u: 
	    55d3 send (/usr/bin/client)

server 40/41 [000] 13.000000:     800 instructions:u: 
	    55d0 main (/usr/bin/server)
";

fn scratch_with(name: &str, text: impl AsRef<[u8]>) -> Scratch {
    let scratch = Scratch::new();
    fs::write(scratch.file(name), text).unwrap();
    scratch
}

fn fold(scratch: &Scratch, arguments: &[&str]) -> Ended {
    finish(flame().current_dir(scratch.path()).arg("fold").args(arguments))
}

/// Asserts that a message has all these parts.
#[track_caller]
fn says(ended: &Ended, parts: &[&str]) {
    for part in parts {
        assert!(ended.stderr.contains(part), "no {part:?} in:\n{}", ended.stderr);
    }
}

/// What `flame fold in.perf OPTIONS` prints.
#[track_caller]
fn check(options: &[&str], expect: &str) {
    let scratch = scratch_with("in.perf", PERF);
    let ended = fold(&scratch, &[&["in.perf"], options].concat()).success();
    assert_eq!(ended.stdout, expect, "{options:?}");
}

#[test]
fn samples_are_folded_named_and_chosen_as_asked() {
    let all = "client;send 400\nserver;main;parse 100\nserver;main;read;do_read 200\n";
    check(&[], all);
    check(&["--kernel"], &all.replace("do_read", "do_read_[k]"));
    check(&["--event", "cycles"], all);
    check(&["--event", "cycles:u"], "client;send 400\nserver;main;parse 100\n");
    check(&["--event", "instructions"], "server;main 800\n");
    check(
        &["--value", "samples"],
        "client;send 1\nserver;main;parse 1\nserver;main;read;do_read 1\n",
    );
    check(
        &["--pid"],
        "client-50;send 400\nserver-40;main;parse 100\nserver-40;main;read;do_read 200\n",
    );
    check(
        &["--process", "40", "--tid"],
        "server-40/41;main;parse 100\nserver-40/42;main;read;do_read 200\n",
    );
    check(&["--comm", "client"], "client;send 400\n");
    check(&["--thread", "42"], "server;main;read;do_read 200\n");
    check(&["--cpu", "0"], "server;main;parse 100\n");
    check(&["--time", "1.5..2"], "server;main;read;do_read 200\n");
    check(&["--time", "..1"], "server;main;parse 100\n");
    check(&["--skip-after", "read"], "client;send 400\nread;do_read 200\nserver;main;parse 100\n");
}

#[test]
fn what_leaves_no_sample_is_told_with_how_long_the_recording_is() {
    let scratch = scratch_with("in.perf", PERF);
    let check = |options: &[&str], why: &str| {
        let ended = fold(&scratch, &[&["in.perf"], options].concat());
        ended.error(1, &["no stacks in in.perf\n", "why: ", &format!("{why}\n")]);
    };
    check(
        &["--time", "1.6..1.7"],
        "no sample matches --time 1.6..1.7; the recording is 2.000 s long",
    );
    let other = ["--time", "2..", "--comm", "server"];
    check(&other, "no sample matches the options; the recording is 2.000 s long");
    check(&["--process", "7"], "no sample matches the options");
}

#[test]
fn folded_text_says_the_kind_of_code_where_it_is_asked_to_whatever_else_is_written() {
    let scratch = scratch_with("in.perf", PERF);
    for options in [&[][..], &["--kernel"], &["--all"]] {
        let alone = fold(&scratch, &[&["in.perf"], options].concat()).success().stdout;
        assert_eq!(alone.contains("do_read_[k]"), !options.is_empty(), "{alone}");
        let outputs = ["in.perf", "-o", "out.folded", "-o", "out.svg", "-o", "other.folded"];
        fold(&scratch, &[&outputs, options].concat()).success();
        for file in ["out.folded", "other.folded"] {
            assert_eq!(fs::read_to_string(scratch.file(file)).unwrap(), alone, "{options:?}");
        }
        // The picture's colours tell the kernel apart in any case.
        let render = finish(flame().current_dir(scratch.path()).args(["render", "in.perf"]));
        let drawn = |svg: &str| -> Vec<String> {
            svg.lines().filter(|line| line.contains("do_read")).map(str::to_owned).collect()
        };
        let svg = fs::read_to_string(scratch.file("out.svg")).unwrap();
        assert_eq!(drawn(&svg), drawn(&render.success().stdout));
    }
    // What names say themselves stays, also beside an input that does not.
    fs::write(scratch.file("in.folded"), "server;main;read;do_read_[k] 1\n").unwrap();
    let expect = "server;main;read;do_read_[k] 1\n";
    assert_eq!(fold(&scratch, &["in.folded"]).success().stdout, expect);
    let expect = "client;send 1\nserver;main;parse 1\nserver;main;read;do_read_[k] 2\n";
    for inputs in [["in.folded", "in.perf"], ["in.perf", "in.folded"]] {
        let ended = fold(&scratch, &[&inputs[..], &["--value", "samples"]].concat()).success();
        assert_eq!(ended.stdout, expect);
    }
}

#[test]
fn stacks_are_filtered_cut_and_turned() {
    check(
        &["--grep", "^read$", "--grep", "send"],
        "client;send 400\nserver;main;read;do_read 200\n",
    );
    check(&["--exclude", "read"], "client;send 400\nserver;main;parse 100\n");
    check(&["--hide", "^(main|read)$"], "client;send 400\nserver;do_read 200\nserver;parse 100\n");
    check(&["--trim-root", "2"], "parse 100\nread;do_read 200\n");
    check(&["--min-weight", "200"], "client;send 400\nserver;main;read;do_read 200\n");
    check(&["--focus", "main"], "main;parse 100\nmain;read;do_read 200\n");
    check(&["--reverse"], "do_read;read;main;server 200\nparse;main;server 100\nsend;client 400\n");
    let scratch = scratch_with("in.perf", PERF);
    fold(&scratch, &["in.perf", "--grep", "("]).error(2, &["--grep ( is not a regular expression"]);
    fs::write(scratch.file("loop.folded"), "t;a;b;a;b;c 3\nt;f;f;f 2\n").unwrap();
    let ended = fold(&scratch, &["loop.folded", "--recursive"]).success();
    assert_eq!(ended.stdout, "t;a;b;c 3\nt;f 2\n");
}

#[test]
fn stacks_of_which_filters_leave_no_frame_are_said_with_their_weight() {
    let scratch = scratch_with("in.folded", "a;b;c 5\na 7.5\na;b 0.5\n");
    let trimmed = fold(&scratch, &["in.folded", "--trim-root", "1"]).success();
    assert_eq!(trimmed.stdout, "b 0.5\nb;c 5\n");
    let expect = "warning: --trim-root left no frame of stacks that weigh 7.50 of 13.00 samples: \
                  they are left out\n";
    assert_eq!(trimmed.stderr, expect);
    let hidden = fold(&scratch, &["in.folded", "--hide", "^[ab]$"]).success();
    assert!(
        hidden.stderr.contains("--hide left no frame of stacks that weigh 8.00"),
        "{}",
        hidden.stderr
    );
    assert_eq!(fold(&scratch, &["in.folded", "--hide", "b"]).success().stderr, "");
    // Nothing is no picture of anything.
    let none =
        &["no stack is left by the filters", "--trim-root left no frame of stacks that weigh 13"];
    fold(&scratch, &["in.folded", "--trim-root", "9"]).error(1, none);
    fold(&scratch, &["in.folded", "--hide", "."]).error(1, &["--hide left no frame"]);
    fold(&scratch, &["in.folded", "--grep", "none"]).error(1, &["none is one that they ask for"]);
    let render =
        flame().current_dir(scratch.path()).args(["render", "--hide", ".", "in.folded"]).output();
    assert_eq!(render.unwrap().status.code(), Some(1));
}

#[test]
fn an_input_that_cannot_be_read_takes_none_of_the_others_away() {
    let scratch = scratch_with("a.folded", "t;a 1\n");
    fs::create_dir_all(scratch.file("many")).unwrap();
    fs::write(scratch.file("many/a.folded"), "t;a 1\n").unwrap();
    fs::write(scratch.file("many/b"), b"\x00\x01\x02\x03 no profile").unwrap();
    fs::write(scratch.file("many/c.html"), "<html>").unwrap();
    fs::write(scratch.file("many/d.folded"), "t;d 2\n").unwrap();
    for inputs in [&["many"][..], &["many/c.html", "many/d.folded", "a.folded", "many/b"]] {
        let ended = fold(&scratch, inputs).success();
        assert_eq!(ended.stdout, "t;a 1\nt;d 2\n");
        for name in ["many/b: ", "many/c.html as a profile"] {
            let expect = format!("warning: left out: cannot read {name}");
            assert!(ended.stderr.contains(&expect), "{}", ended.stderr);
        }
        let strict = fold(&scratch, &[inputs, &["--strict"]].concat());
        strict.error(1, &["cannot read many/"]);
    }
    fs::write(scratch.file("large.folded"), "t;a 10000000000000000000\n").unwrap();
    let expect = "the sum of the weights in large.folded, large.folded does not fit into 64 bits";
    fold(&scratch, &["large.folded", "large.folded"]).error(1, &[expect, "why: 2^64"]);
    fold(&scratch, &["many/b", "many/c.html"]).error(1, &["cannot read many/b"]);
    fold(&scratch, &["a.folded", "nowhere"]).error(1, &["cannot read nowhere"]);
}

/// Empty files, and links that lead nowhere, had no stacks and so took nothing away.
#[test]
fn inputs_that_are_empty_or_lead_nowhere_are_said() {
    let scratch = scratch_with("a.folded", "t;a 1\n");
    fs::create_dir_all(scratch.file("many")).unwrap();
    fs::write(scratch.file("many/a.folded"), "t;a 1\n").unwrap();
    for (name, text) in [("empty", ""), ("many/blank", " \n\n"), ("many/empty", "")] {
        fs::write(scratch.file(name), text).unwrap();
    }
    symlink("gone", scratch.file("many/link")).unwrap();
    let cases = [
        (&["a.folded", "empty"][..], &["empty: it is empty"][..]),
        (&["many"], &["many/blank: it is empty", "many/empty: it is empty", "many/link: "]),
    ];
    for (inputs, left_out) in cases {
        let ended = fold(&scratch, inputs).success();
        assert_eq!(ended.stdout, "t;a 1\n");
        let said: Vec<&str> = ended.stderr.lines().collect();
        assert_eq!(said.len(), left_out.len(), "{said:?}");
        for (said, left_out) in said.iter().zip(left_out) {
            let expect = format!("warning: left out: cannot read {left_out}");
            assert!(said.starts_with(&expect), "{said}");
        }
        let first = format!("cannot read {}", left_out[0]);
        let strict = fold(&scratch, &[inputs, &["--strict"]].concat());
        strict.error(1, &[&first, "why: --strict"]);
    }
    fold(&scratch, &["empty", "many/empty"]).error(1, &["cannot read empty: it is empty"]);
    // Named, as a file that is not there.
    fold(&scratch, &["a.folded", "many/link"]).error(1, &["cannot read many/link: "]);
}

#[test]
fn what_was_left_out_is_said() {
    let scratch = scratch_with("in.perf", PERF);
    let ended = fold(&scratch, &["in.perf"]).success();
    let note = "samples of cycles only; left out: instructions:u (1); --event takes another";
    assert_eq!(ended.stderr, format!("warning: {note}\n"));
    let missing = fold(&scratch, &["in.perf", "--event", "faults"]);
    missing.error(
        1,
        &["it has no sample of faults, but of cycles:k (1), cycles:u (2), instructions:u (1)"],
    );
    fs::write(scratch.file("odd.perf"), PERF.replace("    55d3", "    what")).unwrap();
    let odd = fold(&scratch, &["odd.perf"]).success();
    let expect = "warning: 1 line left out: it cannot be read\n  \
                  odd.perf, line 11: it is not a frame of a stack: what send (/usr/bin/client)\n";
    assert!(odd.stderr.starts_with(expect), "{}", odd.stderr);
    fold(&scratch, &["odd.perf", "--strict"]).error(1, &["cannot read odd.perf: line 11: "]);
}

#[test]
fn inputs_are_files_folders_and_pipes_packed_or_not() {
    let scratch = scratch_with("in.perf", PERF);
    let expect = fold(&scratch, &["in.perf"]).success().stdout;
    for tool in ["gzip", "xz", "zstd"] {
        let packed = Command::new(tool).args(["-k", "-q", &scratch.file("in.perf")]).status();
        // xz and zstd may not be there.
        if packed.is_ok_and(|status| status.success()) {
            let ending = match tool {
                "gzip" => "gz",
                "zstd" => "zst",
                _ => "xz",
            };
            let ended = fold(&scratch, &[&format!("in.perf.{ending}")]).success();
            assert_eq!(ended.stdout, expect, "{tool}");
        }
    }
    fs::create_dir_all(scratch.file("many/more")).unwrap();
    fs::write(scratch.file("many/a.folded"), "t;a 1\n").unwrap();
    fs::write(scratch.file("many/more/b.folded"), b"\xff\xfet\0;\0a\0 \x002\0\n\0").unwrap();
    assert_eq!(fold(&scratch, &["many"]).success().stdout, "t;a 3\n");
    for arguments in
        [&["fold"][..], &["fold", "-"], &["render", "--format", "folded", "--no-annotate"]]
    {
        let mut child =
            flame().args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(PERF.as_bytes()).unwrap();
        let ended = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8(ended.stdout).unwrap(), expect, "{arguments:?}");
    }
    assert_eq!(finish(flame().arg("fold").stdin(Stdio::null())).code(), 2);
}

#[test]
fn packed_text_that_breaks_off_is_read_nearly_to_the_break() {
    let number = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let text: String = (0..200_000).map(|at| format!("t;f{} 1\n", number(at))).collect();
    let scratch = scratch_with("in.folded", &text);
    for tool in ["gzip", "xz", "zstd"] {
        let packed = Command::new(tool).args(["-c", "-q", &scratch.file("in.folded")]).output();
        // xz and zstd may not be there.
        let Ok(packed) = packed.map(|packed| packed.stdout) else { continue };
        fs::write(scratch.file("cut"), &packed[..packed.len() * 9 / 10]).unwrap();
        let ended = fold(&scratch, &["cut"]).success();
        let sum: u64 = ended
            .stdout
            .lines()
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .sum();
        // Of xz a chunk is lost, 64 KiB packed.
        assert!((150_000..182_000).contains(&sum), "{tool}: {sum}");
        assert!(ended.stderr.contains("is damaged or truncated"), "{}", ended.stderr);
        fold(&scratch, &["cut", "--strict"]).error(1, &["cannot read cut"]);
    }
}

#[test]
fn every_sample_gives_the_same_through_a_pipe_in_pieces_packed_or_not() {
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../formats/tests/samples");
    let mut count = 0;
    for entry in fs::read_dir(samples).unwrap() {
        for entry in fs::read_dir(entry.unwrap().path()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|ending| ending != "in") {
                continue;
            }
            let expect = finish(flame().arg("fold").arg(&path)).success().stdout;
            let bytes = fs::read(&path).unwrap();
            let gzip = Command::new("gzip").arg("-c").arg(&path).output().unwrap().stdout;
            for bytes in [bytes, gzip] {
                let mut child = flame()
                    .arg("fold")
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap();
                let mut stdin = child.stdin.take().unwrap();
                bytes.chunks(113).for_each(|piece| stdin.write_all(piece).unwrap());
                drop(stdin);
                let found = child.wait_with_output().unwrap().stdout;
                assert_eq!(String::from_utf8(found).unwrap(), expect, "{}", path.display());
            }
            count += 1;
        }
    }
    assert!(count > 30, "{count} samples");
}

#[test]
fn packages_of_java_are_frames_where_that_is_asked() {
    let text =
        "java;com/example/Server.run;java/util/HashMap.get 3\njava;com/example/Pool.take 2\n";
    let scratch = scratch_with("in.folded", text);
    let ended = fold(&scratch, &["in.folded", "--packages"]).success();
    let expect = "java;com;example;Pool.take 2\n\
                  java;com;example;Server.run;java;util;HashMap.get 3\n";
    assert_eq!(ended.stdout, expect);
}

#[test]
fn source_lines_that_perf_printed_are_said_where_that_is_asked() {
    let text = "\
server 40/41 [000] 10.0: 100 cycles:u:
	    55d2 parse+0x2 (/usr/bin/server)
  parse.c:12
	    55d0 main (/usr/bin/server)
  main.c:3

server 40/41 [000] 10.1: 100 cycles:u:
	    55d4 parse+0x4 (/usr/bin/server)
  parse.c:14
	    55d0 main (/usr/bin/server)
  main.c:3
";
    let scratch = scratch_with("in.perf", text);
    let plain = fold(&scratch, &["in.perf"]).success().stdout;
    assert_eq!(plain, "server;main;parse 200\n");
    let lines = fold(&scratch, &["in.perf", "--context", "--srcline"]).success().stdout;
    let expect = "server;main:main.c:3;parse:parse.c:12 100\n\
                  server;main:main.c:3;parse:parse.c:14 100\n";
    assert_eq!(lines, expect);
}

#[test]
fn files_of_folders_are_stacks_of_what_they_take() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.file("top/a/b")).unwrap();
    fs::write(scratch.file("top/a/one"), vec![b'x'; 10_000]).unwrap();
    fs::write(scratch.file("top/a/b/odd; name 7"), b"xyz").unwrap();
    fs::hard_link(scratch.file("top/a/one"), scratch.file("top/a/second")).unwrap();
    std::os::unix::fs::symlink("..", scratch.file("top/a/loop")).unwrap();
    let sizes = fold(&scratch, &["--files", "top", "--value", "size"]).success();
    let expect = "top;a;b;odd: name 7; 3\ntop;a;loop 2\ntop;a;one 10000\n";
    assert_eq!(sizes.stdout, expect);
    assert!(
        sizes.stderr.contains("further names of files that were already counted: 1"),
        "{}",
        sizes.stderr
    );
    let count = fold(&scratch, &["--files", "top", "--value", "files"]).success().stdout;
    assert_eq!(count.lines().count(), 3, "{count}");
    // What du says, folders and all.
    let disk = fold(&scratch, &["--files", "top"]).success().stdout;
    let sum: u64 = disk.lines().filter_map(|l| l.rsplit(' ').next()?.parse::<u64>().ok()).sum();
    let du = Command::new("du").args(["-s", "-B1", &scratch.file("top")]).output().unwrap().stdout;
    let du = String::from_utf8(du).unwrap();
    assert_eq!(du.split('\t').next().unwrap().parse(), Ok(sum), "{disk}");
    fold(&scratch, &["--files", "top/a/loop/nothing"]).error(1, &["cannot read"]);
    fold(&scratch, &["--files"]).error(2, &["no folder to look into"]);
}

#[test]
fn the_formats_are_listed_and_can_be_named() {
    let scratch = scratch_with("in.perf", PERF);
    let list = fold(&scratch, &["--list-formats"]).success().stdout;
    for name in ["perf-script", "dtrace", "pprof", "folded"] {
        assert!(list.lines().any(|line| line.starts_with(name)), "{list}");
    }
    fold(&scratch, &["in.perf", "--from", "perf-script"]).success();
    fold(&scratch, &["in.perf", "--from", "folded"]).error(1, &["no stacks in in.perf"]);
    fold(&scratch, &["in.perf", "--from", "nonsense"]).code();
    let other = scratch_with("in.zip", "PK\u{3}\u{4}xxxx");
    fold(&other, &["in.zip"]).error(1, &["cannot read in.zip", "why: it is a zip archive"]);
}

#[test]
fn any_output_can_be_named() {
    let scratch = scratch_with("in.perf", PERF);
    fold(&scratch, &["in.perf", "-o", "out.svg", "-o", "out.pb.gz"]).success();
    let svg = fs::read_to_string(scratch.file("out.svg")).unwrap();
    assert!(svg.contains("do_read"));
    let again = fold(&scratch, &["out.pb.gz"]).success();
    assert_eq!(again.stdout, fold(&scratch, &["in.perf", "--kernel"]).success().stdout);
}

#[test]
fn threads_are_chosen_by_names_with_blanks_and_commas() {
    let text = "wk 1;x 4/5 1.0: 7 cycles:\n\t55d0 main (/x)\n\n\
                a b,c 4/6 1.5: 2 cycles:\n\t55d0 main (/x)\n\n";
    let scratch = scratch_with("in.perf", text);
    fold(&scratch, &["in.perf", "-o", "in.pb.gz"]).success();
    for file in ["in.perf", "in.pb.gz"] {
        for option in ["--thread", "--comm"] {
            for (name, expect) in [
                ("wk 1;x", "wk_1:x;main 7\n"),
                ("wk_1:x", "wk_1:x;main 7\n"),
                (r"a b\,c", "a_b,c;main 2\n"),
                (r"a b\,c,wk 1;x", "a_b,c;main 2\nwk_1:x;main 7\n"),
            ] {
                let chosen = fold(&scratch, &[file, option, name]).success();
                assert_eq!(chosen.stdout, expect, "{file} {option} {name}");
            }
            fold(&scratch, &[file, option, "a b"]).error(1, &["no sample matches the options"]);
        }
    }
}

#[test]
fn what_rounding_takes_from_weights_in_pprof_is_said() {
    let scratch = scratch_with("in.folded", "a;b 0.4\na;c 1.6\na;d 2\n");
    let said = "pprof has whole numbers only: 2 weights are rounded, and 1 stack is left out";
    let ended = fold(&scratch, &["in.folded", "-o", "out.pb.gz"]).success();
    says(&ended, &[said, "4.00 samples in all become 4", "--factor 10 keeps all"]);
    assert_eq!(fold(&scratch, &["out.pb.gz"]).success().stdout, "a;c 2\na;d 2\n");
    let strict = ["in.folded", "-o", "x.pb.gz", "--strict"];
    fold(&scratch, &strict).error(1, &[said, "--strict makes that an error"]);
    let kept = fold(&scratch, &[&strict[..], &["--factor", "10"]].concat()).success();
    assert!(!kept.stderr.contains("warning"), "{}", kept.stderr);
    let kept = fold(&scratch, &["x.pb.gz"]).success();
    assert_eq!(kept.stdout, "a;b 4\na;c 16\na;d 20\n");
    let scaled = fold(&scratch, &["in.folded", "--factor", "0.3", "-o", "y.pb.gz"]).success();
    says(&scaled, &["a --factor 100 times as large keeps all"]);
}

#[test]
fn weights_of_speedscope_that_are_no_whole_numbers_are_said() {
    let file = |weights: &str| {
        format!(
            "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\
             \"shared\":{{\"frames\":[{{\"name\":\"a\"}},{{\"name\":\"b\"}}]}},\"profiles\":[{{\
             \"type\":\"sampled\",\"name\":\"t\",\"unit\":\"none\",\"startValue\":0,\"endValue\":3,\
             \"samples\":[[0],[1]],\"weights\":[{weights}]}}]}}"
        )
    };
    let scratch = scratch_with("in.json", file("1.6,0.4"));
    let said = "weights that are no whole numbers were rounded: 2, 1 of them to nothing; \
                together they weigh 2, not 2.00";
    let ended = fold(&scratch, &["in.json"]).success();
    says(&ended, &[said]);
    assert_eq!(ended.stdout, "a 2\n");
    fold(&scratch, &["in.json", "--strict"]).error(1, &[said]);
    fs::write(scratch.file("in.json"), file("0.4,0.4")).unwrap();
    fold(&scratch, &["in.json"]).error(1, &["they weigh 0, not 0.80"]);
}

#[test]
fn what_is_no_profile_is_refused_and_named() {
    let mut tar = [&b"a.folded"[..], &[0; 249], b"ustar", &[0; 250], b"a;b 1\n"].concat();
    tar.resize(10_240, 0);
    let scratch = scratch_with("in.tar", tar);
    let refused = ["in.tar as a profile", "is a tar archive; unpack it first"];
    fold(&scratch, &["in.tar"]).error(1, &refused);
    fs::create_dir_all(scratch.file("folder/empty")).unwrap();
    fold(&scratch, &["folder/empty"]).error(1, &["no files in folder/empty"]);
    fs::write(scratch.file("folder/a.folded"), "a;b 1\n").unwrap();
    symlink("empty", scratch.file("folder/link")).unwrap();
    let ended = fold(&scratch, &["folder"]).success();
    says(&ended, &["left out: cannot read folder/link: is a directory"]);
    assert_eq!(ended.stdout, "a;b 1\n");
    fold(&scratch, &["folder", "--strict"]).error(1, &["folder/link: is a directory"]);
}

#[test]
fn a_line_that_lost_its_second_count_is_said() {
    let lines: String = (0..20).map(|at| format!("a;b{at} 1 2\n")).collect();
    let scratch = scratch_with("in.folded", format!("{lines}a;c 3\n"));
    let ended = fold(&scratch, &["in.folded"]).success();
    says(&ended, &["20 of the first 21 lines have two counts, but not every line has"]);
    fold(&scratch, &["in.folded", "--strict"]).error(1, &["not every line ends with two counts"]);
    fs::write(scratch.file("in.folded"), "main;thread 1 12\nmain;f 3\n").unwrap();
    let ended = fold(&scratch, &["in.folded", "--strict"]).success();
    assert_eq!((&*ended.stdout, &*ended.stderr), ("main;f 3\nmain;thread 1; 12\n", ""));
}
