//! Users who put files, links and FIFOs where flame writes and reads: nothing of anybody else's is
//! lost or read for them, nothing waits for them, and no recording is lost.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::process::Command;

use nix::sys::signal::Signal;
use nix::sys::stat::Mode;

use crate::support::{Ended, Folded, Running, Scratch, Target, finish, flame, live, program};

const NOBODY: Option<u32> = Some(65534);

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// A directory with a small profile, whose names a target might have chosen, and a file of
/// somebody's that is to stay as it is.
fn scene() -> Scratch {
    let scratch = Scratch::new();
    fs::write(scratch.file("in.folded"), "main;* * * * * root id 3\n").unwrap();
    fs::write(scratch.file("victim"), "precious").unwrap();
    scratch
}

/// Draws that profile with more options.
#[track_caller]
fn render(scratch: &Scratch, options: &[&str]) -> Ended {
    let arguments = ["render", "in.folded", "-o", "out.svg"];
    finish(flame().current_dir(scratch.path()).args(arguments).args(options))
}

#[track_caller]
fn assert_unharmed(scratch: &Scratch) {
    assert_eq!(fs::read_to_string(scratch.file("victim")).unwrap(), "precious");
}

#[test]
fn colours_are_not_written_through_a_link() {
    let scratch = scene();
    let palette = scratch.file("palette.map");
    symlink("victim", &palette).unwrap();
    let ended = render(&scratch, &["--cp"]).success();
    assert!(ended.stderr.contains("1 line of palette.map left out"), "{}", ended.stderr);
    assert_unharmed(&scratch);
    // An own link gives way to the file, as that of an output does.
    let text = fs::read_to_string(&palette).unwrap();
    assert!(text.contains("* * * * * root id->rgb("), "{text}");
    assert!(fs::symlink_metadata(&palette).unwrap().is_file());
}

#[test]
fn colours_of_sudo_belong_to_who_called_it() {
    if !is_root() {
        return;
    }
    let scratch = scene();
    let mut run = flame();
    run.envs([("SUDO_UID", "65534"), ("SUDO_GID", "65534")]);
    let arguments = ["render", "in.folded", "-o", "out.svg", "--cp"];
    finish(run.current_dir(scratch.path()).args(arguments)).success();
    let owner = fs::metadata(scratch.file("palette.map")).unwrap().uid();
    assert_eq!(Some(owner), NOBODY);
}

#[test]
fn root_neither_reads_nor_writes_colours_through_a_strangers_link() {
    if !is_root() {
        return;
    }
    let scratch = scene();
    let palette = scratch.file("palette.map");
    symlink("victim", &palette).unwrap();
    lchown(&palette, NOBODY, NOBODY).unwrap();
    render(&scratch, &["--cp"]).error(1, &["palette.map", "user nobody put it there"]);
    assert_unharmed(&scratch);
    assert!(fs::symlink_metadata(&palette).unwrap().is_symlink());
    // Nor where the link is one of the directories on the way.
    symlink(".", scratch.file("way")).unwrap();
    lchown(scratch.file("way"), NOBODY, NOBODY).unwrap();
    render(&scratch, &["--cp=way/new.map"]).error(1, &["new.map", "user nobody put it there"]);
    render(&scratch, &["-o", "way/other.svg"]).error(1, &["other.svg", "user nobody put it"]);
}

#[test]
fn files_beside_a_profile_are_regular_and_not_waited_for() {
    let scratch = scene();
    for options in [["--cp=planted", "-q"], ["--nameattr", "planted"]] {
        let planted = scratch.file("planted");
        nix::unistd::mkfifo(planted.as_str(), Mode::S_IRWXU).unwrap();
        render(&scratch, &options).error(1, &["planted", "not a regular file"]);
        fs::remove_file(&planted).unwrap();
        symlink("/dev/zero", &planted).unwrap();
        render(&scratch, &options).error(1, &["planted", "not a regular file"]);
        fs::remove_file(&planted).unwrap();
        // A hole costs nothing to make.
        fs::File::create(&planted).unwrap().set_len(1 << 40).unwrap();
        render(&scratch, &options).error(1, &["planted", "larger than 64 MB"]);
        fs::remove_file(&planted).unwrap();
    }
}

#[test]
fn every_link_on_the_way_to_a_device_has_to_be_trusted() {
    if !is_root() {
        return;
    }
    let scratch = scene();
    symlink("theirs", scratch.file("ours.svg")).unwrap();
    symlink("/dev/null", scratch.file("theirs")).unwrap();
    render(&scratch, &["-o", "ours.svg"]).success();
    lchown(scratch.file("theirs"), NOBODY, NOBODY).unwrap();
    render(&scratch, &["-o", "ours.svg"]).error(1, &["ours.svg", "user nobody put it there"]);
}

#[test]
fn what_stdout_is_redirected_to_is_written_and_not_replaced() {
    let scratch = scene();
    let into = fs::File::create(scratch.file("into")).unwrap();
    let mut run = flame();
    run.args(["render", &scratch.file("in.folded"), "--format", "folded", "-o", "/dev/stdout"]);
    assert!(run.stdout(into).status().unwrap().success());
    let text = fs::read_to_string(scratch.file("into")).unwrap();
    assert_eq!(text, "main;* * * * * root id 3\n");
    assert!(fs::symlink_metadata("/dev/stdout").unwrap().is_symlink());
}

#[test]
fn names_that_steer_or_turn_text_are_shown_in_every_format() {
    let scratch = Scratch::new();
    let name = "gpj.\u{202e}exe\u{2066}\u{9b}31m";
    fs::write(scratch.file("in.folded"), format!("main;{name} 3\nmain;=1+1 1\n")).unwrap();
    let formats = ["svg", "folded", "txt", "term", "json", "csv", "md"];
    for format in formats {
        let arguments = ["render", "in.folded", "--format", format, "-o", "-", "--color", "never"];
        let ended = finish(flame().current_dir(scratch.path()).args(arguments)).success();
        let steers = |c: char| {
            c.is_control() && !"\r\n".contains(c) || ('\u{202a}'..='\u{2069}').contains(&c)
        };
        assert!(!ended.stdout.contains(steers), "{format}: {:?}", ended.stdout);
        let escape =
            if format == "json" { r"gpj.\u202eexe\u2066" } else { r"gpj.\u{202e}exe\u{2066}" };
        // Markdown has its own signs before brackets.
        let text = ended.stdout.replace(r"\\u", r"\u");
        assert!(text.contains(escape), "{format}: {text}");
        assert_eq!(format == "csv", text.contains("\"'=1+1\""), "{text}");
    }
    let arguments = ["diff", "in.folded", "in.folded", "--format", "json", "-o", "-"];
    let ended = finish(flame().current_dir(scratch.path()).args(arguments)).success();
    assert!(ended.stdout.contains(r"gpj.\u202eexe\u2066\u009b31m"), "{}", ended.stdout);
}

/// A recording of a program that runs, until the signal comes.
fn recording(scratch: &Scratch, target: &Target, output: &str) -> Running {
    let mut command: Command = flame();
    command.env("TMPDIR", scratch.path());
    let output = scratch.file(output);
    command.args(["record", "-F", "999", "-o", &output, "-p", &target.pid_text()]);
    let mut flame = Running::new(&mut command);
    flame.wait_for_events(1);
    target.wait_for_cpu(0.1);
    flame
}

#[test]
fn a_stranger_who_takes_temporary_names_costs_nothing_and_loses_nothing() {
    if !live() {
        return;
    }
    let target = Target::start(&program("hostile.c"), &["none", "600"]);
    let scratch = Scratch::new();
    let flame = recording(&scratch, &target, "out.folded");
    let names = [format!(".out.folded.{}.tmp", flame.pid()), ".flame-.tmp".to_owned()];
    for name in &names {
        fs::write(scratch.file(name), "theirs").unwrap();
    }
    flame.signal(Signal::SIGINT);
    flame.end().success();
    let folded = Folded::parse(&fs::read_to_string(scratch.file("out.folded")).unwrap());
    assert!(folded.with_any(|frame| frame == "run_code") > 0, "{folded:?}");
    for name in &names {
        assert_eq!(fs::read_to_string(scratch.file(name)).unwrap(), "theirs");
    }
    assert_eq!(scratch.names().len(), 3, "{:?}", scratch.names());
}

#[test]
fn a_recording_whose_place_is_gone_is_saved_elsewhere() {
    if !live() {
        return;
    }
    let target = Target::start(&program("hostile.c"), &["none", "600"]);
    let scratch = Scratch::new();
    fs::create_dir(scratch.file("place")).unwrap();
    let flame = recording(&scratch, &target, "place/out.folded");
    fs::remove_dir_all(scratch.file("place")).unwrap();
    flame.signal(Signal::SIGINT);
    let ended = flame.end();
    let names = scratch.names();
    let [saved] = &names[..] else { panic!("{names:?}: {}", ended.stderr) };
    let saved = scratch.file(saved);
    assert!(saved.ends_with("-out.folded"), "{saved}");
    ended.error(1, &["place/out.folded", "no such file", "why:", &saved]);
    let status = fs::metadata(&saved).unwrap();
    assert_eq!(status.permissions().mode() & 0o777, 0o600);
    let folded = Folded::parse(&fs::read_to_string(&saved).unwrap());
    assert!(folded.with_any(|frame| frame == "run_code") > 0, "{folded:?}");
}

#[test]
fn a_recording_is_not_lost_to_a_stranger_who_blocks_its_place() {
    if !live() || !is_root() {
        return;
    }
    let target = Target::start(&program("hostile.c"), &["none", "600"]);
    let scratch = Scratch::new();
    let flame = recording(&scratch, &target, "out.folded");
    // A directory cannot be replaced by a file.
    fs::create_dir(scratch.file("out.folded")).unwrap();
    chown(scratch.file("out.folded"), NOBODY, NOBODY).unwrap();
    flame.signal(Signal::SIGINT);
    let ended = flame.end();
    ended.error(1, &["out.folded", "why:", "-out.folded instead"]);
    assert_eq!(scratch.names().len(), 2, "{:?}", scratch.names());
}
