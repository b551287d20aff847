//! Perl programs: their subs stand where they ran, called by who called them.

use std::process::Command;

use crate::support::callers::may_call;
use crate::support::scripts::{
    self, has, newer, record, record_newer, record_whole, script, scripted,
};
use crate::support::{Build, Folded, Target, assert_share, live, live_as_root, program_built};

/// Debian's: with threads, static, and stripped of its symbols.
const PERL: &str = "/usr/bin/perl";

/// Who may call whom in `programs/script.pl`.
const LEGAL: [(&str, &[&str]); 37] = [
    ("run", &["<script>"]),
    ("forks", &["run"]),
    ("until_end", &["run", "forks"]),
    ("now", &["run", "forks", "until_end"]),
    ("shares", &["until_end"]),
    ("one", &["shares"]),
    ("other", &["shares"]),
    ("half", &["one", "other"]),
    ("third", &["one", "other"]),
    ("fifth", &["one", "other"]),
    ("callbacks", &["until_end"]),
    ("order", &["callbacks"]),
    ("by_key", &["order"]),
    ("tied_values", &["callbacks"]),
    ("Tied::TIESCALAR", &["tied_values"]),
    ("Tied::FETCH", &["tied_values"]),
    ("Tied::STORE", &["tied_values"]),
    ("numbers", &["callbacks"]),
    ("Number::new", &["numbers", "Number::plus"]),
    ("Number::plus", &["numbers"]),
    ("Number::text", &["numbers"]),
    ("Number::__ANON__", &["numbers"]),
    // Whoever drops the last reference, which is done at the next statement of a caller, too.
    ("Number::DESTROY", &["numbers", "Number::plus", "callbacks", "until_end"]),
    ("nested_eval", &["callbacks"]),
    ("caught", &["(eval)"]),
    ("order_and_catch", &["callbacks"]),
    ("catching", &["order_and_catch"]),
    ("(eval)", &["caught", "nested_eval", "catching", "churn"]),
    ("from_regex", &["callbacks"]),
    ("closures", &["callbacks"]),
    ("__ANON__", &["closures"]),
    ("deep", &["until_end"]),
    ("recurse", &["deep", "recurse"]),
    ("churn", &["until_end"]),
    ("Made::__ANON__", &["churn", "Made::__ANON__"]),
    ("BEGIN", &["BEGIN"]),
    ("Number::BEGIN", &["BEGIN"]),
];

/// Who may call `spin`.
const SPINNERS: [&str; 16] = [
    "half",
    "third",
    "fifth",
    "by_key",
    "Tied::FETCH",
    "Tied::STORE",
    "Number::__ANON__",
    "Number::plus",
    "Number::text",
    "Number::DESTROY",
    "(eval)",
    "caught",
    "from_regex",
    "__ANON__",
    "recurse",
    "Made::__ANON__",
];

/// The sub and the file of a frame of a script; packages that are made are one.
fn sub(frame: &str) -> Option<(String, &str)> {
    let (name, file) = scripted(frame)?;
    let made = name.strip_prefix("Made").map(|rest| rest.trim_start_matches(char::is_numeric));
    Some((made.map_or_else(|| name.to_owned(), |rest| format!("Made{rest}")), file))
}

/// Holds each stack against who may call whom.
#[track_caller]
fn check_chains(folded: &Folded) {
    scripts::check_chains(folded, sub, |caller, (name, file)| match caller {
        _ if !["script.pl", "(eval)"].contains(file) => true,
        // Modules are loaded, and packages set up, before the script runs.
        None => name == "<script>" || name.ends_with("BEGIN"),
        Some((caller, _)) if name.starts_with("require ") => caller.ends_with("BEGIN"),
        Some((caller, _)) => may_call(&LEGAL, &SPINNERS, caller, name),
    });
}

#[track_caller]
fn record_script(what: &str, options: &[&str]) -> (Folded, String) {
    let script = script("script.pl");
    let command = ["--", PERL, script.to_str().unwrap(), what, "2"];
    record(&[options, &command].concat())
}

/// Records a part of the program, holds its chains against the truth, and requires that nearly all are
/// whole.
#[track_caller]
fn check(what: &str) -> Option<Folded> {
    if !live_as_root() || !has(PERL) {
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
fn newer_perl_is_read() {
    let Some(command) = newer("/usr/bin/perl", "script.pl").filter(|_| live_as_root()) else {
        return;
    };
    for what in ["shares", "callbacks", "deep", "churn"] {
        record_newer(&command, what, check_chains);
    }
}

/// Samples in which one sub calls another.
fn calls(folded: &Folded, caller: &str, callee: &str) -> u64 {
    scripts::calls(folded, |frame| Some(sub(frame)?.0), caller, callee)
}

#[test]
fn subs_have_the_shares_that_they_take() {
    let Some(folded) = check("shares") else { return };
    for caller in ["one", "other"] {
        let all: u64 = ["half", "third", "fifth"].map(|of| calls(&folded, caller, of)).iter().sum();
        for (callee, share) in [("half", 0.5), ("third", 0.3), ("fifth", 0.2)] {
            assert_share(calls(&folded, caller, callee), all, share, 0.02);
        }
    }
    let all = calls(&folded, "until_end", "shares");
    assert_share(calls(&folded, "shares", "one"), all, 0.5, 0.02);
}

#[test]
fn what_perl_calls_by_itself_stands_where_it_was_called() {
    let Some(folded) = check("callbacks") else { return };
    // Sub by sub: the caller, the function of perl's own between, the sub.
    let cases = [
        ("order (", "Perl_pp_sort", "by_key ("),
        ("tied_values (", "Perl_magic_getpack", "Tied::FETCH ("),
        ("numbers (", "Perl_amagic_call", "Number::plus ("),
        ("from_regex (", "Perl_pp_match", "spin ("),
        ("order_and_catch (", "Perl_pp_sort", "(eval) ("),
    ];
    for (caller, native, callee) in cases {
        let stands = |stack: &[String]| {
            let at = |start: &str| stack.iter().position(|frame| frame.starts_with(start));
            at(caller).is_some() && at(caller) < at(native) && at(native) < at(callee)
        };
        assert!(folded.stacks().any(|(stack, _)| stands(stack)), "{caller} {native} {callee}");
    }
    // What only runs operations is replaced.
    let run = |frame: &str| frame == "Perl_runops_standard" || frame == "Perl_call_sv";
    assert!(folded.with_any(run) * 50 < folded.total());
}

#[test]
fn a_recursion_of_500_has_all_its_frames() {
    let Some(folded) = check("deep") else { return };
    let depth =
        |stack: &[String]| stack.iter().filter(|frame| frame.starts_with("recurse (")).count();
    let spins = |stack: &[String]| stack.iter().any(|frame| frame.starts_with("spin ("));
    let at_end = folded.stacks().filter(|(stack, _)| spins(stack));
    let (mut all, mut whole) = (0, 0);
    for (stack, weight) in at_end {
        all += weight;
        whole += if depth(stack) == 501 { weight } else { 0 };
    }
    assert!(all >= 20 && whole == all, "{whole} of {all}");
}

#[test]
fn subs_that_are_made_and_dropped_are_not_mixed_up() {
    let Some(folded) = check("churn") else { return };
    assert!(calls(&folded, "Made::__ANON__", "spin") * 20 > folded.total());
}

#[test]
fn forked_scripts_have_the_interpreter_of_their_parent() {
    // Children live for 50 ms and become other programs. Measured: 98.8 to 99.4 %.
    let Some(folded) = check("forks") else { return };
    assert!(calls(&folded, "forks", "until_end") * 2 > folded.total());
}

/// Programs of a few milliseconds: they are compiled for most of that time.
#[test]
fn short_scripts_are_read_too() {
    if !live_as_root() || !has(PERL) {
        return;
    }
    let run =
        "for i in $(seq 40); do perl -e 'sub f { my $t = 0; $t += $_ for 1 .. 4e5 } f()'; done";
    let (folded, said) = record(&["--", "/bin/sh", "-c", run]);
    let called = folded.with_any(|frame| frame.starts_with("f (-e:1)"));
    // Measured: 67 to 76 % of all; in the rest perl starts or ends, for the most part. Of what runs 92 to 100 % are read.
    let unread = folded.with_any(|frame| frame.starts_with("[perl:"));
    assert!(called * 2 > folded.total(), "{called} of {}: {said}", folded.total());
    assert!(called > unread * 5, "{called} read, {unread} not: {said}");
}

#[test]
fn a_perl_that_runs_already_is_read_too() {
    if !live_as_root() || !has(PERL) {
        return;
    }
    let target =
        Target::spawn(Command::new(PERL).arg(script("script.pl")).args(["callbacks", "60"]));
    target.wait_for_cpu(0.2);
    let record = || record(&["-p", &target.pid_text(), "-d", "2s"]);
    let (folded, _) = record_whole(97.0, record);
    check_chains(&folded);
}

/// Those of the others are not read, and that is what is said.
#[test]
fn threads_are_other_interpreters() {
    if !live_as_root() || !has(PERL) {
        return;
    }
    let run = "use threads; threads->create(sub { my $t = 0; $t += $_ for 1 .. 3e7 })->join";
    let (folded, said) = record(&["--", PERL, "-e", run]);
    let marked = folded.with_any(|frame| frame == "[perl: not read in time]");
    assert!(marked * 2 > folded.total(), "{marked} of {}: {said}", folded.total());
    assert!(said.contains("of another interpreter of the process"), "{said}");
    // A sample may hit the first thread while it starts the other.
    let amid = said.split(" amid a call").next().filter(|before| before.len() < said.len());
    let amid = amid.and_then(|before| before.rsplit(' ').next()?.parse::<u64>().ok());
    assert!(amid.unwrap_or(0) * 50 < folded.total(), "{said}");
}

#[test]
fn frames_of_perl_itself_are_shown_where_they_are_asked_for() {
    if !live() || !has(PERL) {
        return;
    }
    let (folded, said) = record_script("shares", &["--no-script"]);
    let is_script = |frame: &str| frame.ends_with("_[s]") || frame.starts_with("[perl:");
    assert_eq!(folded.with_any(is_script), 0);
    let native = folded.with_any(|frame| frame == "Perl_runops_standard");
    assert!(native * 2 > folded.total() && !said.contains("script stacks"), "{said}");
    if live_as_root() {
        let (folded, _) = record_script("shares", &["--native"]);
        check_chains(&folded);
        let both = |stack: &[String]| {
            stack.windows(2).any(|pair| {
                pair[0] == "Perl_runops_standard" && pair[1] == "<script> (script.pl:1)_[s]"
            })
        };
        let both: u64 =
            folded.stacks().filter(|(stack, _)| both(stack)).map(|(_, weight)| weight).sum();
        assert!(both * 10 > folded.total() * 9, "{both} of {}", folded.total());
    }
}

/// What a program says that only claims to be an interpreter is bounded, and harms nothing.
#[test]
fn false_perls_are_survived() {
    if !live_as_root() {
        return;
    }
    let program = program_built("false_perl.c", Build::Exporting);
    let (folded, said) = record(&["--", &program, "circle", "1"]);
    let marked = folded.with_any(|frame| frame == "[perl: not read in time]");
    assert!(marked * 2 > folded.total(), "{said}");
    let (folded, said) = record(&["--", &program, "names", "1"]);
    let longest = folded.stacks().flat_map(|(stack, _)| stack).map(String::len).max();
    assert!(longest.is_some_and(|len| (1000..8192).contains(&len)), "{longest:?}: {said}");
    assert_eq!(folded.with_any(|frame| frame.contains(char::is_control)), 0);
}
