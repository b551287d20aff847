//! Links and FIFOs that strangers put where root reads profiles: none is followed or waited for.

use std::fs;
use std::os::unix::fs::{chown, lchown, symlink};

use nix::sys::stat::Mode;

use crate::support::{Ended, Scratch, finish, flame};

const NOBODY: Option<u32> = Some(65534);

/// A folder with a profile, and a secret beside it; `None` for who is not root.
fn scene() -> Option<Scratch> {
    if !nix::unistd::geteuid().is_root() {
        return None;
    }
    let scratch = Scratch::new();
    fs::create_dir(scratch.file("in")).unwrap();
    fs::write(scratch.file("in/a.folded"), "main;read 3\n").unwrap();
    fs::write(scratch.file("secret"), "secret 7\nsecret word\n").unwrap();
    Some(scratch)
}

fn plant(scratch: &Scratch, to: &str, name: &str) {
    symlink(to, scratch.file(name)).unwrap();
    lchown(scratch.file(name), NOBODY, NOBODY).unwrap();
}

#[track_caller]
fn run(scratch: &Scratch, arguments: &[&str]) -> Ended {
    finish(flame().current_dir(scratch.path()).args(arguments).args(["-o", "-"]))
}

#[test]
fn root_reads_no_profile_through_a_strangers_link() {
    let Some(scratch) = scene() else { return };
    plant(&scratch, "secret", "link");
    plant(&scratch, "in", "way");
    let said = "it leads through a link; user nobody put it there";
    for arguments in [
        &["fold", "link"][..],
        &["fold", "in/a.folded", "link"],
        &["fold", "way"],
        &["fold", "way/a.folded"],
        &["render", "--format", "folded", "link"],
        &["diff", "in/a.folded", "link"],
        &["diff", "--before", "in/a.folded", "link", "--after", "in/a.folded"],
    ] {
        let ended = run(&scratch, arguments);
        assert!(!ended.stderr.contains("secret"), "{}", ended.stderr);
        assert!(!ended.stderr.contains("compressed"), "{}", ended.stderr);
        ended.error(1, &["cannot read", said]);
    }
    // root's own are followed.
    symlink("a.folded", scratch.file("in/own")).unwrap();
    assert_eq!(run(&scratch, &["fold", "in/own"]).success().stdout, "main;read 3\n");
}

#[test]
fn strangers_links_of_a_folder_are_left_out_and_said() {
    let Some(scratch) = scene() else { return };
    plant(&scratch, "../secret", "in/s");
    let ended = run(&scratch, &["fold", "in"]).success();
    assert_eq!(ended.stdout, "main;read 3\n");
    let said = "cannot read in/s: it leads through a link; user nobody put it there";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    assert!(!ended.stderr.contains("secret"), "{}", ended.stderr);
    run(&scratch, &["fold", "in", "--strict"]).error(1, &[said, "--strict"]);
}

#[test]
fn links_of_a_folder_to_files_of_the_kernel_are_left_out() {
    let Some(scratch) = scene() else { return };
    // Of root's own, too: /proc/kmsg would be waited for.
    symlink("/proc/kmsg", scratch.file("in/own")).unwrap();
    symlink("/proc/kmsg", scratch.file("in/data")).unwrap();
    fs::write(scratch.file("in/data.0"), "main;read 1\n").unwrap();
    plant(&scratch, "/proc/kmsg", "in/theirs");
    let ended = run(&scratch, &["fold", "in"]).success();
    assert_eq!(ended.stdout, "main;read 4\n");
    let said = "cannot read in/own: it is a link to a file of the kernel";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    assert!(ended.stderr.contains("cannot read in/theirs: it leads through"), "{}", ended.stderr);
}

#[test]
fn root_waits_at_no_fifo_of_a_stranger_and_reads_its_own() {
    let Some(scratch) = scene() else { return };
    let fifo = scratch.file("fifo");
    nix::unistd::mkfifo(fifo.as_str(), Mode::S_IRWXU).unwrap();
    let writer = std::thread::spawn({
        let fifo = fifo.clone();
        move || fs::write(fifo, "main;own 2\n").unwrap()
    });
    assert_eq!(run(&scratch, &["fold", "fifo"]).success().stdout, "main;own 2\n");
    writer.join().unwrap();
    chown(&fifo, NOBODY, NOBODY).unwrap();
    for arguments in [&["fold", "fifo"][..], &["diff", "in/a.folded", "fifo"]] {
        run(&scratch, arguments).error(1, &["cannot read fifo: it is a FIFO; user nobody put it"]);
    }
    let line = "\"$0\" fold <(echo 'main;piped 5') -o -";
    let mut shell = std::process::Command::new("bash");
    let ended = finish(shell.args(["-c", line]).arg(flame().get_program())).success();
    assert_eq!(ended.stdout, "main;piped 5\n");
}
