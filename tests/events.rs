//! What triggers a sample and what it weighs.

use std::fs;

use crate::support::{
    Ended, Folded, Scratch, assert_count, assert_share, finish, flame, live, live_as_root, program,
    record, record_nowhere, run,
};

#[test]
fn frequency_is_the_number_of_samples_a_second_of_cpu_time() {
    if !live() {
        return;
    }
    for (frequency, slack) in [("99", 0.12), ("499", 0.08), ("1999", 0.1)] {
        let folded = record(&["-F", frequency, "--", &program("exitcode.c"), "0.5", "0"]);
        assert_count(folded.total(), frequency.parse::<f64>().unwrap() * 0.5, slack);
    }
}

#[test]
fn default_frequency_is_99() {
    if !live() {
        return;
    }
    let folded = record(&["--", &program("exitcode.c"), "1", "0"]);
    assert_count(folded.total(), 99.0, 0.1);
}

#[test]
fn frequency_max_is_what_the_kernel_allows() {
    if !live() {
        return;
    }
    let most = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate").unwrap();
    let most: f64 = most.trim().parse().unwrap();
    let folded = record(&["-F", "max", "--", &program("exitcode.c"), "0.05", "0"]);
    // A timer cannot fire as fast as the limit in every virtual machine; ten times the highest
    // frequency that people ask for is enough to know that `max` was understood.
    let expected = 0.05 * most.min(10_000.0) * 0.5;
    assert!(folded.total() as f64 >= expected, "{} samples, not {expected}", folded.total());
}

#[test]
fn period_of_a_clock_is_in_nanoseconds() {
    if !live() {
        return;
    }
    let program = program("exitcode.c");
    let folded = record(&["-e", "task-clock", "-c", "2000000", "--", &program, "0.5", "0"]);
    assert_count(folded.total(), 250.0, 0.1);
}

#[test]
fn both_clocks_can_be_named() {
    if !live() {
        return;
    }
    for event in ["cpu-clock", "task-clock"] {
        let arguments = ["-e", event, "-F", "999", "--", &program("shares.c"), "0.3"];
        let folded = record(&arguments);
        assert_count(folded.total(), 0.3 * 999.0, 0.15);
        assert_share(folded.with(&["main", "work", "alpha"]), folded.total(), 0.5, 0.01);
    }
}

/// The event counts what the program did exactly, and each occurrence is a sample.
#[test]
fn page_faults_are_counted_one_by_one_where_they_happen() {
    if !live() {
        return;
    }
    let program = program("events.c");
    let every = ["-e", "page-faults", "-c", "1", "--call-graph", "dwarf,8192"];
    let folded = record(&[&every[..], &["--", &program, "500", "0"]].concat());
    assert_eq!(folded.with(&["main", "touch_pages"]), 500);
    // The same event in the words of the kernel's devices.
    let every = ["-e", "software/config=2/", "-c", "1", "--call-graph", "dwarf,8192"];
    let folded = record(&[&every[..], &["--", &program, "500", "0"]].concat());
    assert_eq!(folded.with(&["main", "touch_pages"]), 500);
}

#[test]
fn modes_name_what_is_measured_and_pictures_have_its_colours() {
    if !live() {
        return;
    }
    let scratch = Scratch::new();
    let (text, whole) = (scratch.file("out.folded"), scratch.file("out.pb.gz"));
    let program = program("events.c");
    let options = ["record", "--mode", "faults", "-c", "1", "-o", &text, "-o", &whole, "--"];
    run(&[&options[..], &[&program, "500", "0"]].concat()).success();
    let folded = Folded::parse(&fs::read_to_string(&text).unwrap());
    assert_eq!(folded.with(&["main", "touch_pages"]), 500);
    let drawn = |options: &[&str]| {
        let path = scratch.file("out.svg");
        run(&[&["render", &whole, "-o", &path], options].concat()).success();
        fs::read_to_string(&path).unwrap()
    };
    assert_eq!(drawn(&[]), drawn(&["--colors", "mem"]));
    assert_ne!(drawn(&[]), drawn(&["--colors", "hot"]));
    assert_ne!(drawn(&["--value", "samples"]), drawn(&[]));
}

#[test]
fn weight_of_an_event_is_its_own_count_and_value_picks_samples() {
    if !live() {
        return;
    }
    let program = program("events.c");
    let with = |value: &[&str]| {
        let every_tenth = ["-e", "page-faults", "-c", "10", "--call-graph", "dwarf,8192"];
        let folded = record(&[&every_tenth[..], value, &["--", &program, "1000", "0"]].concat());
        folded.with(&["main", "touch_pages"])
    };
    // The first sample comes somewhere within the first ten.
    assert!((990..=1010).contains(&with(&[])));
    assert!((990..=1010).contains(&with(&["--value", "page-faults"])));
    assert!((99..=101).contains(&with(&["--value", "samples"])));
}

#[test]
fn value_of_a_clock_is_samples_or_nanoseconds() {
    if !live() {
        return;
    }
    let program = program("exitcode.c");
    let arguments = ["-F", "1000", "--value", "cpu", "--", &program, "0.5", "0"];
    let folded = record(&arguments);
    assert_count(folded.total(), 0.5e9, 0.1);
    assert!(folded.stacks().all(|(_, weight)| weight % 1_000_000 == 0), "{folded:?}");
}

#[test]
fn unknown_value_is_refused_before_anything_runs() {
    let scratch = Scratch::new();
    let (output, touched) = (scratch.file("out.folded"), scratch.file("touched"));
    let ended = run(&["record", "--value", "cups", "-o", &output, "--", "touch", &touched]);
    ended.error(2, &["cups"]);
    assert_eq!(scratch.names(), [""; 0]);
}

#[test]
fn context_switches_are_counted_where_the_program_gave_up_the_cpu() {
    if !live_as_root() {
        return;
    }
    let program = program("events.c");
    let folded = record(&["-e", "context-switches", "-c", "1", "--", &program, "0", "200"]);
    let naps = folded.with(&["main", "take_naps"]);
    // Each nap is one; a preemption may add to them.
    assert!((200..=230).contains(&naps), "{naps} switches in 200 naps");
}

/// Records `syscalls`, which is nearly all kernel, and counts samples in kernel and in all.
fn kernel_and_all(arguments: &[&str], program_source: &str) -> (u64, u64) {
    let program = program(program_source);
    let folded = record(&[&["-F", "999"], arguments, &["--", &program, "0.3"]].concat());
    (folded.with_any(|frame| frame.ends_with("_[k]")), folded.total())
}

#[test]
fn user_modifier_and_user_stacks_hold_no_kernel_frame() {
    if !live() {
        return;
    }
    for arguments in [&["-e", "cpu-clock:u"][..], &["-u"]] {
        let (kernel, all) = kernel_and_all(arguments, "shares.c");
        assert_eq!(kernel, 0, "{arguments:?}");
        assert!(all >= 250, "{all} samples with {arguments:?}");
    }
}

#[test]
fn kernel_modifier_leaves_out_samples_of_user_code() {
    if !live_as_root() {
        return;
    }
    let (kernel, all) = kernel_and_all(&["-e", "cpu-clock:k"], "syscalls.c");
    assert_eq!(kernel, all);
    assert!(all >= 200, "{all} samples");
}

#[test]
fn kernel_stacks_hold_no_user_frame() {
    if !live_as_root() {
        return;
    }
    let folded = record(&["-F", "999", "-k", "--", &program("syscalls.c"), "0.3"]);
    assert_eq!(folded.with(&["main"]) + folded.with(&["fill_from_kernel"]), 0);
    let kernel = folded.with_any(|frame| frame.ends_with("_[k]"));
    assert!(kernel >= 200, "{kernel} samples of the kernel in\n{folded:?}");
}

/// Runs flame with an event on a machine that may lack it.
fn with_event(event: &str) -> (Ended, Option<Folded>) {
    let scratch = Scratch::new();
    let path = scratch.file("out.folded");
    let program = program("exitcode.c");
    let arguments = ["record", "-e", event, "-o", &path, "--", &program, "0.2", "0"];
    let ended = finish(flame().args(arguments));
    let folded = std::fs::read_to_string(&path).ok().map(|text| Folded::parse(&text));
    (ended, folded)
}

/// With a PMU the event is counted; without one flame says so, and names one that works.
#[test]
fn hardware_events_work_or_say_that_there_is_no_pmu() {
    if !live() {
        return;
    }
    for event in ["cycles", "instructions", "cache-misses", "branch-misses", "r00c0", "cycles:u"] {
        let (ended, folded) = with_event(event);
        if ended.status.success() {
            let folded = folded.expect("success means that the output is there");
            assert_eq!(folded.roots(), ["exitcode"], "{event}");
        } else {
            ended.error(1, &[event.split(':').next().unwrap(), "try:", "cpu-clock"]);
        }
    }
}

#[test]
fn fallback_from_cycles_to_the_clock_is_said() {
    if !live() {
        return;
    }
    let (named, _) = with_event("cycles");
    let program = program("exitcode.c");
    let ended = record_nowhere(&["--", &program, "0.2", "0"]).success();
    assert_eq!(ended.stderr.contains("cpu-clock"), !named.status.success(), "{}", ended.stderr);
}

#[test]
fn unknown_event_is_a_usage_error_that_lists_the_known_ones() {
    run(&["record", "-e", "cylces", "--", "true"]).error(2, &["cylces", "cycles"]);
    let no_device = ["'nosuch' that counts events: it has ", "software"];
    run(&["record", "-e", "nosuch/event=1,umask=2/u", "--", "true"]).error(2, &no_device);
    let no_term = "software has neither a term nor an event 'umask'";
    run(&["record", "-e", "cpu-clock,software/umask=2/", "--", "true"]).error(2, &[no_term]);
}
