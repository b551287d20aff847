//! What the outermost boxes are called after.

use crate::support::{Folded, Scratch, Target, finish, flame, live, program, run};

/// The outermost frames of a recording of `pool.c`, and the way to its stacks.
fn roots_of(target: &Target, options: &[&str]) -> Vec<String> {
    let (pid, scratch) = (target.pid_text(), Scratch::new());
    let path = scratch.file("out.folded");
    let mut command = flame();
    command.args(["record", "-F", "499", "-d", "500ms", "-p", &pid, "-o", &path]).args(options);
    finish(&mut command).success();
    let folded = Folded::parse(&std::fs::read_to_string(&path).unwrap());
    let mut roots: Vec<String> = folded.roots().into_iter().map(str::to_owned).collect();
    roots.sort();
    roots
}

#[test]
fn a_pool_is_one_box_unless_each_thread_is_asked_for() {
    if !live() {
        return;
    }
    let target = Target::start(&program("pool.c"), &[]);
    let pool = "pool-1-thread".to_owned();
    let threads: Vec<String> = (1..=4).map(|number| format!("{pool}-{number}")).collect();
    let roots = |options: &[&str]| roots_of(&target, options);
    assert_eq!(roots(&[]), [pool.clone(), "server: busy".to_owned()]);
    let comm: Vec<String> = ["pool".to_owned()].into_iter().chain(threads.clone()).collect();
    assert_eq!(roots(&["--by", "comm"]), comm);
    assert_eq!(roots(&["--by", "process"]), ["pool"]);
    assert_eq!(roots(&["--by", "title"]), ["server: busy"]);
    let numbered = roots(&["--by", "thread"]);
    let mut names: Vec<&str> =
        numbered.iter().filter_map(|name| Some(name.rsplit_once('-')?.0)).collect();
    names.sort_unstable();
    assert_eq!(names, comm);
    let none = roots(&["--by", "none"]);
    assert!(none.iter().all(|name| !name.contains("pool") && !name.contains("busy")), "{none:?}");
    assert!(!none.is_empty());
}

#[test]
fn folded_text_has_no_threads_to_be_called_after() {
    let scratch = Scratch::new();
    let path = scratch.file("in.folded");
    std::fs::write(&path, "a;b 1\n").unwrap();
    run(&["render", &path, "--by", "process"]).error(2, &["no threads in", "why:", "try:"]);
}
