//! `flame render --open`: the browser that is there, with the picture.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::render::{FOLDED, render, scratch_with, titles};
use crate::support::{Scratch, finish, flame, wait_until};

/// A program of that name in the directory that writes its last argument to the file `opened`.
fn fake_browser(scratch: &Scratch, name: &str) -> String {
    let (path, opened) = (scratch.file(name), scratch.file("opened"));
    let script = format!(
        "#!/bin/sh\nfor last; do :; done\n/bin/echo $# $last >'{opened}.new'\n\
         /bin/mv '{opened}.new' '{opened}'\n"
    );
    fs::write(scratch.file("script"), script).unwrap();
    // Not written here: while another test forks, a file that is open for writing cannot be run.
    let install = Command::new("install").args(["-m755", &scratch.file("script"), &path]).status();
    assert!(install.unwrap().success());
    path
}

#[test]
fn open_shows_the_picture_in_the_browser_that_is_there() {
    let opens = |variable: &str, value: &str, program: &str, options: &[&str], expect: &str| {
        let scratch = scratch_with(FOLDED);
        let browser = fake_browser(&scratch, program);
        let mut command = flame();
        // What was set elsewhere must not count, nor what is installed here.
        command.current_dir(scratch.path()).env_remove("BROWSER").env("PATH", "/nonexistent");
        command.env(variable, value.replace("HERE", scratch.path().to_str().unwrap()));
        finish(command.args(["render", "in.folded", "--open"]).args(options)).success();
        wait_until("the browser to be started", || Path::new(&scratch.file("opened")).exists());
        let opened = fs::read_to_string(scratch.file("opened")).unwrap();
        let expect = expect.replace("HERE", scratch.path().to_str().unwrap());
        assert_eq!(opened.trim_end(), expect, "{browser}");
        let (_, picture) = expect.split_once(' ').unwrap();
        assert_eq!(titles(&fs::read_to_string(picture).unwrap()).len(), 6);
    };
    opens("BROWSER", "HERE/mine", "mine", &[], "1 HERE/flame.svg");
    opens("BROWSER", "/no/such:HERE/mine -x %s", "mine", &[], "2 HERE/flame.svg");
    opens("PATH", "HERE", "xdg-open", &["-o", "a b.svg"], "1 HERE/a b.svg");
}

#[test]
fn what_cannot_be_opened_is_said() {
    let scratch = scratch_with(FOLDED);
    let mut command = flame();
    command.current_dir(scratch.path()).env_remove("BROWSER").env("PATH", "/nonexistent");
    finish(command.args(["render", "in.folded", "--open", "-o", "out.svg"]))
        .error(1, &["cannot open out.svg: no browser was found", "try: firefox out.svg"]);
    assert!(fs::exists(scratch.file("out.svg")).unwrap());
    for output in ["-", "out.txt"] {
        render(&scratch, &["--open", "-o", output])
            .error(2, &["there is no picture to open", "try: -o flame.svg"]);
    }
    fs::write(scratch.file("flame.svg"), "mine").unwrap();
    render(&scratch, &["--open"]).error(1, &["cannot write flame.svg: it exists already"]);
}
