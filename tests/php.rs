//! PHP programs: their functions stand where they ran, called by who called them.

use std::fs;
use std::process::Command;

use crate::support::callers::may_call;
use crate::support::callers::php::{LEGAL, MORE, SPINNERS};
use crate::support::scripts::{
    self, has, newer, record, record_newer, record_whole, script, scripted, whole_share,
};
use crate::support::{
    Build, Folded, Scratch, Target, assert_share, finish, flame, live, live_as_root, program_built,
};

/// Debian's: stripped of its symbols.
const PHP: &str = "/usr/bin/php";

/// PHP without the machine's extensions.
fn php() -> Command {
    let mut command = Command::new(PHP);
    command.env("PHP_INI_SCAN_DIR", "");
    command
}

/// The function of a frame of a script: internal ones have no line.
fn function(frame: &str) -> Option<&str> {
    let internal = || frame.strip_suffix(" ([internal])_[s]");
    let name = scripted(frame).map(|(name, _)| name).or_else(internal)?;
    // From 8.4 on closures have the place of their definition in their names.
    Some(if name.starts_with("{closure:") { "{closure}" } else { name })
}

fn is_legal(caller: Option<&&str>, name: &str) -> bool {
    match (caller, name) {
        (None, _) => name == "<main>",
        (Some(caller), _) if name.starts_with("made_inside_") => *caller == "{closure}",
        (Some(caller), _) => {
            may_call(LEGAL, SPINNERS, caller, name) || may_call(MORE, &[], caller, name)
        }
    }
}

/// Holds each stack against who may call whom.
#[track_caller]
fn check_chains(folded: &Folded) {
    scripts::check_chains(folded, function, |caller, name| is_legal(caller, name));
}

#[track_caller]
fn record_script(what: &str, options: &[&str]) -> (Folded, String) {
    let script = script("script.php");
    let command = ["--", PHP, script.to_str().unwrap(), what, "2"];
    record(&[options, &command].concat())
}

/// Records a part of the program, holds its chains against the truth, and requires that nearly all are whole.
fn recorded(what: &str) -> Option<Folded> {
    if !live_as_root() || !has(PHP) {
        return None;
    }
    let (folded, _) = record_whole(97.0, || {
        let (folded, said) = record_script(what, &[]);
        check_chains(&folded);
        (folded, said)
    });
    Some(folded)
}

#[test]
fn newer_php_is_read() {
    let Some(command) = newer("/usr/bin/php8.4", "script.php").filter(|_| live_as_root()) else {
        return;
    };
    for what in ["shares", "callbacks", "generators", "fibers", "deep", "churn"] {
        record_newer(&command, what, check_chains);
    }
}

/// Samples in which one function calls another.
fn calls(folded: &Folded, caller: &str, callee: &str) -> u64 {
    scripts::calls(folded, function, caller, callee)
}

#[test]
fn functions_have_the_shares_that_they_take() {
    let Some(folded) = recorded("shares") else { return };
    for caller in ["one", "other"] {
        let each = ["half", "third", "fifth"].map(|of| calls(&folded, caller, of));
        let all = each.iter().sum();
        for (weight, share) in each.into_iter().zip([0.5, 0.3, 0.2]) {
            assert_share(weight, all, share, 0.02);
        }
    }
    let all = calls(&folded, "until_end", "shares");
    assert_share(calls(&folded, "shares", "one"), all, 0.5, 0.02);
}

#[test]
fn what_php_calls_by_itself_stands_where_it_was_called() {
    let Some(folded) = recorded("callbacks") else { return };
    // The caller, the function in C between, the function.
    let cases = [
        ("order (script.php:", "usort ([internal])_[s]", "by_key (script.php:"),
        ("texts (script.php:", "preg_replace_callback ([internal])_[s]", "replace (script.php:"),
        ("closures (script.php:", "array_map ([internal])_[s]", "{closure} (script.php:"),
        ("closures (script.php:", "array_filter ([internal])_[s]", "{closure} (script.php:"),
        ("magic (script.php:", "zend_std_read_property", "Number::__get (script.php:"),
        // The function whose variable it was has given its place to the caller by then.
        ("objects (script.php:", "zend_objects_store_del", "Ended::__destruct (script.php:"),
    ];
    for (caller, between, callee) in cases {
        let stands = |stack: &[String]| {
            let at = |start: &str| stack.iter().position(|frame| frame.starts_with(start));
            at(caller).is_some() && at(caller) < at(between) && at(between) < at(callee)
        };
        let any = folded.stacks().any(|(stack, _)| stands(stack));
        assert!(any, "{caller} {between} {callee}");
    }
    let pairs = [
        ("magic", "Number::__call"),
        ("magic", "Number::__callStatic"),
        ("magic", "Number::__toString"),
        ("uses_local", "Ended::made"),
        ("objects", "class@anonymous::method"),
        ("passes", "throws"),
        ("passes", "spin"),
        ("guarded", "spin"),
        ("files", "<main>"),
        ("<main>", "included"),
    ];
    for (caller, callee) in pairs {
        assert!(calls(&folded, caller, callee) > 0, "{caller} {callee}");
    }
    assert!(folded.with_any(|frame| frame == "included (included.php:5)_[s]") > 0);
}

#[test]
fn lines_are_those_that_ran() {
    if !live_as_root() || !has(PHP) {
        return;
    }
    let text = fs::read_to_string(script("script.php")).unwrap();
    let line_of = |start: &str| text.lines().position(|line| line.starts_with(start)).unwrap() + 1;
    let (loops, adds) = (line_of("    for ($i = 0; $i < 40"), line_of("        $total = $total +"));
    let scratch = Scratch::new();
    let (profile, folded) = (scratch.file("out.pb.gz"), scratch.file("out.folded"));
    let mut command = flame();
    command.args(["record", "-F", "999", "-o", &profile, "--", PHP]).arg(script("script.php"));
    finish(command.args(["lines", "2"])).success();
    finish(flame().args(["render", "--lines", &profile, "-o", &folded])).success();
    let folded = Folded::parse(&fs::read_to_string(&folded).unwrap());
    let at = |line: usize| {
        let frame = format!("spin (script.php:{line})_[s]");
        folded.with_any(|found| found == frame)
    };
    let all = folded.with_any(|frame| frame.starts_with("spin (script.php:"));
    let of_loop = at(loops) + at(adds);
    // A call took up to 5.7 % of the time with 80 of these lines; here it has 8,000.
    assert_share(of_loop, all, 0.99, 0.01);
    assert!(at(adds) * 4 > all && at(loops) * 20 > all, "{} {}", at(adds), at(loops));
}

/// A generator that has its values from another one stands outside of that, though nothing runs it meanwhile.
#[test]
fn generators_stand_below_who_asks_for_their_values() {
    let Some(folded) = recorded("generators") else { return };
    let through = calls(&folded, "between", "leaf");
    assert!(through * 6 > folded.total(), "{through} of {}", folded.total());
    assert_eq!(through, folded.with_any(|frame| frame.starts_with("leaf (")));
    for (caller, callee) in [("delegates", "between"), ("between", "spin"), ("delegates", "spin")] {
        assert!(calls(&folded, caller, callee) > 0, "{caller} {callee}");
    }
}

/// A fiber has a native stack of its own, and stands below who has resumed it.
#[test]
fn fibers_stand_where_they_are_resumed() {
    let Some(folded) = recorded("fibers") else { return };
    let suspends = folded.with_any(|frame| frame.starts_with("suspends ("));
    assert!(suspends * 3 > folded.total(), "{suspends} of {}", folded.total());
    let [started, resumed] =
        ["Fiber::start", "Fiber::resume"].map(|caller| calls(&folded, caller, "inside"));
    assert!(started > 0 && resumed * 10 > suspends * 8, "{started} {resumed}");
    let outside = |stack: &[String]| {
        let at = |start: &str| stack.iter().position(|frame| frame.starts_with(start));
        at("suspends (").is_some() && at("fibers (").is_none()
    };
    let lost: u64 =
        folded.stacks().filter(|(stack, _)| outside(stack)).map(|(_, weight)| weight).sum();
    assert!(lost * 50 <= suspends, "{lost} of {suspends}");
}

#[test]
fn a_recursion_of_500_has_all_its_frames() {
    let Some(folded) = recorded("deep") else { return };
    let depth =
        |stack: &[String]| stack.iter().filter(|frame| frame.starts_with("recurse (")).count();
    let mut all = 0;
    for (stack, weight) in folded.stacks() {
        if stack.iter().any(|frame| frame.starts_with("spin (")) {
            assert!([21, 501].contains(&depth(stack)), "{}", depth(stack));
            all += weight;
        }
    }
    assert!(all >= 20, "{all}");
}

#[test]
fn functions_that_are_made_and_dropped_are_not_mixed_up() {
    let Some(folded) = recorded("churn") else { return };
    let made = |frame: &str| frame.starts_with("made_inside_");
    assert!(folded.with_any(made) * 20 > folded.total());
    // The closure that calls one is of the text of an eval, as its file says.
    for (stack, _) in folded.stacks() {
        let Some(at) = stack.iter().position(|frame| made(frame)) else { continue };
        let caller = stack[..at].iter().rev().find(|frame| function(frame).is_some());
        let is_of_eval = caller.is_some_and(|frame| frame.starts_with("{closure} (script.php("));
        assert!(is_of_eval, "{stack:?}");
    }
}

#[test]
fn a_php_that_runs_already_is_read_too() {
    if !live_as_root() || !has(PHP) {
        return;
    }
    let target = Target::spawn(php().arg(script("script.php")).args(["callbacks", "60"]));
    target.wait_for_cpu(0.3);
    let (folded, said) = record(&["-p", &target.pid_text(), "-d", "2s"]);
    check_chains(&folded);
    assert!(whole_share(&said) >= 97.0, "{said}");
}

/// In mount and PID namespaces of its own.
#[test]
fn a_php_in_a_container_is_read_too() {
    if !live_as_root() || !has(PHP) {
        return;
    }
    let script = script("script.php");
    // Opened before /tmp is hidden, which the checkout may lie below.
    let inside = format!(
        "exec 3<\"$0\" && mount -t tmpfs none /tmp && cat <&3 >/tmp/inside.php \
         && cp $(readlink -f {PHP}) /tmp/program && exec /tmp/program /tmp/inside.php shares 60"
    );
    let mut command = Command::new("unshare");
    command.env("PHP_INI_SCAN_DIR", "");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", &inside]).arg(&script);
    let target = Target::spawn(&mut command);
    let children = format!("/proc/{0}/task/{0}/children", target.pid());
    let mut pid = String::new();
    crate::support::wait_until("PHP in its namespaces", || {
        pid = fs::read_to_string(&children).unwrap_or_default().trim().to_owned();
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim() == "program"
    });
    let (folded, said) = record(&["-p", &pid, "-d", "2s"]);
    check_chains(&folded);
    assert!(folded.with_any(|frame| frame.starts_with("half (inside.php:")) > 0, "{said}");
    assert!(whole_share(&said) >= 97.0, "{said}");
}

#[test]
fn frames_of_php_itself_are_shown_where_they_are_asked_for() {
    if !live() || !has(PHP) {
        return;
    }
    let (folded, said) = record_script("shares", &["--no-script"]);
    let is_script = |frame: &str| frame.ends_with("_[s]") || frame.starts_with("[php:");
    assert_eq!(folded.with_any(is_script), 0);
    assert!(!said.contains("script stacks"), "{said}");
    if live_as_root() {
        let (folded, _) = record_script("shares", &["--native"]);
        check_chains(&folded);
        let both = |stack: &[String]| {
            stack
                .windows(2)
                .any(|pair| pair[0] == "execute_ex" && pair[1] == "<main> (script.php:1)_[s]")
        };
        let both: u64 =
            folded.stacks().filter(|(stack, _)| both(stack)).map(|(_, weight)| weight).sum();
        assert!(both * 10 > folded.total() * 9, "{both} of {}", folded.total());
    }
}

/// What a program says that only claims to be an interpreter is bounded, and harms nothing.
#[test]
fn false_phps_are_survived() {
    if !live_as_root() {
        return;
    }
    let program = program_built("false_php.c", Build::Exporting);
    let (folded, said) = record(&["--", &program, "circle", "1"]);
    let marked = folded.with_any(|frame| frame == "[php: not read in time]");
    assert!(marked * 2 > folded.total(), "{said}");
    let (folded, said) = record(&["--", &program, "names", "1"]);
    let longest = folded.stacks().flat_map(|(stack, _)| stack).map(String::len).max();
    assert!(longest.is_some_and(|len| (400..8192).contains(&len)), "{longest:?}: {said}");
    assert_eq!(folded.with_any(|frame| frame.contains(char::is_control)), 0);
}

/// PCRE compiles regular expressions whether or not PHP compiles functions.
#[test]
fn the_doctor_tells_regular_expressions_from_compiled_functions() {
    if !live() || !has(PHP) {
        return;
    }
    let script = script("script.php");
    let mut command = php();
    let target = Target::spawn(command.arg("-n").arg(script).args(["callbacks", "60"]));
    target.wait_for_cpu(0.3);
    let said = finish(flame().args(["doctor", "-p", &target.pid_text()])).stdout;
    assert!(said.contains("regular expressions that PCRE has compiled"), "{said}");
    assert!(!said.contains("functions that PHP compiled"), "{said}");
}
