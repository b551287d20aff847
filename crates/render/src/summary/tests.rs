use flame_profile::{Coverage, NotRead};

use super::*;

#[test]
fn samples_of_uneven_weight_are_said_to_tell_less() {
    let text = |effective| {
        let seen = Occurrences { event: 0, sampled: 6000, happened: 6024, effective };
        occurrences(seen, "that happened", 1700, Paint(false))
    };
    let even = "6,024 that happened; samples alone add up to 99.6 % of that";
    assert_eq!(text(900), even);
    let uneven = "; weights differ: as precise as 420 samples of equal weight";
    assert_eq!(text(420), format!("{even}{uneven}"));
}

#[test]
fn of_no_time_there_is_no_share() {
    let shown = |sampled, accounted| {
        let coverage = Some(Coverage { sampled: Nanos(sampled), accounted: Nanos(accounted) });
        let of_it = Health { coverage, ..Health::default() };
        health(&of_it, Shown::default(), Paint(false)).contains("coverage")
    };
    assert!(!shown(0, 0) && !shown(0, 4_999_999));
    assert!(shown(0, 5_000_000) && shown(1, 4_999_999));
}

#[test]
fn how_far_shares_of_waits_may_be_off_is_said_with_advice_where_it_is_much() {
    let off_cpu = OffCpuTime { deviation: Nanos(15_000_000), ..OffCpuTime::default() };
    let text = |share| shares_of_waits(&off_cpu, share, Paint(false));
    let said = "each within some 0.015 s, 3 % of that time (one standard deviation): not all waits were sampled";
    assert_eq!(text(0.03), said);
    assert_eq!(text(0.2).replace("20", "3"), format!("{said}; a higher -F samples more of them"));
}

#[test]
fn few_stacks_that_stand_for_much_are_said() {
    let stack_ends = [(StackEnd::Root, 9998), (StackEnd::BadValue, 2)].into();
    let of = Health { stack_ends, ..Health::default() };
    let text = |truncated| {
        let shares = Shares { truncated, ..Shares::default() };
        health(&of, Shown { shares, ..Shown::default() }, Paint(false))
    };
    let said = "            33.3 % of what is shown is below [truncated stack]\n";
    assert!(text(0.333).contains(said), "{}", text(0.333));
    let shares = Shares { guessed: 0.412, ..Shares::default() };
    let guessed = health(&of, Shown { shares, ..Shown::default() }, Paint(false));
    assert!(guessed.contains("41.2 % of what is shown has guessed frames\n"), "{guessed}");
    assert!(!text(0.0002).contains("what is shown"));
}

#[test]
fn it_is_said_what_is_missing_of_stacks_that_were_not_read() {
    let mut health = Health { read_on: 1, ..Health::default() };
    health.stack_ends.insert(StackEnd::Root, 2);
    let read = "0.0 of 0 KiB a stack on average, 50.0 % read on from the process";
    assert_eq!(beyond_copies(&health).as_deref(), Some(read));
    health.not_read.insert(NotRead::NoReader, 1132);
    health.not_read.insert(NotRead::Late, 52);
    let why = "; stacks without the callers beyond their copy: 1,132 could not be read at the \
               moment of the sample, 52 would have been read too late";
    let text = |part: &str| Some(format!("{read}{why}{part}"));
    assert_eq!(beyond_copies(&health), text("; none of these is shown"));
    health.stack_ends = [(StackEnd::Root, 200), (StackEnd::CopyTooShort, 200)].into();
    health.read_on = 200;
    assert_eq!(beyond_copies(&health), text("; 200 of these are shown"));
    health.read_on = 401;
    let more = beyond_copies(&health).unwrap();
    assert!(more.contains(" 401 stacks read on from the process"), "{more}");
    *health.stack_ends.entry(StackEnd::CopyTooShort).or_default() = 1184;
    health.read_on = 692;
    assert_eq!(beyond_copies(&health), text(""));
}

#[test]
fn samples_that_are_left_out_are_counted() {
    let left_out = Health { samples: 5, stray_samples: 1219, ..Health::default() };
    let text = health(&left_out, Shown::default(), Paint(false));
    let why = "1,219 samples, left out at random where timers fired more often than asked for; no \
               time is missing";
    assert!(text.contains(&format!("\n  surplus   {why}\n")), "{text}");
}

#[test]
fn lost_records_are_told_apart_as_far_as_the_kernel_does() {
    let text = |lost_records, lost_samples, lost_side_band| {
        let health = Health { lost_records, lost_samples, lost_side_band, ..Health::default() };
        lost(&health, Paint(false))
    };
    assert_eq!(text(0, 0, 0), "0 records");
    let neither = "3,817 records, the buffer was full: 3,817 samples or records of processes, \
                   threads and mappings (the kernel does not say)";
    assert_eq!(text(3817, 0, 0), neither);
    let both = "3,817 records, the buffer was full: 3,800 samples of any process, 17 records \
                of processes, threads and mappings";
    assert_eq!(text(3817, 3800, 17), both);
    let some = "3,817 records, the buffer was full: 3,800 samples of any process, 17 samples \
                or records of processes, threads and mappings (the kernel does not say)";
    assert_eq!(text(3817, 3800, 0), some);
}

/// What is said of this many samples of images without names, of 20,000 in all.
#[track_caller]
fn check_unnamed(images: &[(&str, Missing, u64)], expect: &[&str]) {
    let mut health = Health { samples: 20_000, ..Health::default() };
    for (image, reason, count) in images {
        health.unnamed.insert(((*image).to_owned(), *reason), *count);
    }
    let text = unnamed(&health).unwrap_or_default();
    assert_eq!(text, expect.join("\n            "));
}

#[test]
fn every_unnamed_frame_has_its_reason() {
    use Missing::{FileReplaced, NoPerfMap, NoSymbol, Stripped};
    check_unnamed(
        &[
            ("/a", Stripped, 10_000),
            ("[anon]", NoPerfMap, 5000),
            ("/c", NoSymbol, 2000),
            ("/d", NoSymbol, 1000),
            ("/e", NoSymbol, 1),
            ("/f", FileReplaced, 800),
        ],
        &[
            "50.0 % have frames in /a: stripped of its symbols",
            "25.0 % have frames in [anon]: anonymous memory without a perf map",
            "10.0 % have frames in /c: no symbol covers the address",
            "and in 1 more image: file replaced since it was mapped",
            "and in 2 more images: no symbol covers the address",
        ],
    );
}

#[test]
fn a_few_unnamed_frames_are_not_worth_a_line() {
    use Missing::{NoPerfMap, Stripped};
    check_unnamed(&[], &[]);
    check_unnamed(&[("/a", Stripped, 19), ("[anon]", NoPerfMap, 19)], &[]);
    let few = "0.1 % have frames in /a: stripped of its symbols";
    check_unnamed(&[("/a", Stripped, 20), ("[anon]", NoPerfMap, 19)], &[few]);
    // Many of them are.
    let together = "frames in 2 images: stripped of its symbols";
    check_unnamed(&[("/a", Stripped, 10), ("/b", Stripped, 10)], &[together]);
}

#[test]
fn the_image_is_named_in_which_most_walks_ended() {
    let mut health = Health::default();
    health.stack_ends.insert(StackEnd::Root, 5);
    health.stack_ends.insert(StackEnd::NoUnwindInfo, 3);
    health.stack_ends.insert(StackEnd::BadValue, 1);
    assert_eq!(cut(&health), " (3 no unwind information, 1 unreadable stack)");
    health.no_unwind_info.insert("/lib/libmusl.so".to_owned(), 2);
    health.no_unwind_info.insert("/bin/a".to_owned(), 1);
    let expect = " (3 no unwind information, most in libmusl.so, 1 unreadable stack)";
    assert_eq!(cut(&health), expect);
}

#[test]
fn only_a_whole_is_a_hundred_percent() {
    assert_eq!(floor_percent(0.99999), "99.99 %");
    assert_eq!(floor_percent(1.0), "100 %");
}
