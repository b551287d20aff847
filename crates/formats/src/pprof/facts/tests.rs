use std::collections::BTreeMap;

use super::*;

fn whole_meta() -> Meta {
    Meta {
        event: Some("cpu-clock".to_owned()),
        frequency: Some(Hz(99)),
        period: Some(10_101_010),
        start: Some(Nanos(1_700_000_000_000_000_000)),
        duration: Some(Nanos(30_000_000_000)),
        host: Some("db 1".to_owned()),
        target: Some(String::new()),
        command: Some("flame record -o 'my graph.svg' -- ./prog".to_owned()),
        producer: Some("flame 0.1.0".to_owned()),
    }
}

fn whole_health() -> Health {
    let libfoo = "/opt/my app/libfoo.so".to_owned();
    Health {
        samples: 13_000,
        lost_records: 4,
        lost_samples: 2,
        lost_side_band: 1,
        throttled: 3,
        throttled_time: Nanos(1_500_000),
        multiplexed_time: Nanos(7),
        outside_mappings: 8,
        short_tasks: 9,
        stray_samples: 10,
        undecodable_records: 4,
        idle_samples: 5,
        skipped_lines: 4,
        stack_ends: STACK_ENDS.into_iter().zip(1..).collect(),
        read_on: 21,
        not_read: NotRead::ALL.into_iter().zip(31..).collect(),
        stack_copies: StackCopies { samples: 6, asked: ByteLen(98_304), copied: ByteLen(12_345) },
        scripts: ScriptEnd::ALL
            .into_iter()
            .map(|end| ("python".to_owned(), end))
            .zip(50..)
            .collect(),
        script_value: Some(ValueType::new("a pair", "nanoseconds")),
        no_unwind_info: BTreeMap::from([(libfoo.clone(), 7), (String::new(), 1)]),
        unnamed: MISSINGS.into_iter().map(|m| (libfoo.clone(), m)).zip(8..).collect(),
        coverage: Some(Coverage { sampled: Nanos(990), accounted: Nanos(1000) }),
        standard_error: 12_345,
        occurrences: Some(Occurrences {
            event: 1,
            sampled: 40_000,
            happened: 40_073,
            effective: 900,
        }),
        off_cpu: OffCpuTime::from_numbers(&[9, 1, 2, 3, 4, 5, 6, 7, 8, 4]),
        notes: vec!["ring halved: locked-memory limit".to_owned(), "two\nlines ".to_owned()],
    }
}

#[track_caller]
fn check_round_trip(meta: Meta, health: Health) {
    let lines = comments(&meta, &health);
    let facts = parse(lines.iter().map(String::as_str));
    assert_eq!(facts, Facts { meta: Some(meta), health, has_health: true, ..Facts::default() });
}

#[test]
fn meta_and_health_survive() {
    check_round_trip(whole_meta(), whole_health());
    check_round_trip(Meta::default(), Health::default());
}

#[test]
fn the_lines_are_as_documented() {
    let mut health = Health { samples: 10, notes: vec!["clock changed".to_owned()], ..whole() };
    health.stack_ends.insert(StackEnd::Root, 9);
    health.unnamed.insert(("/bin/a b".to_owned(), Missing::NoSymbol), 1);
    health.unnamed.insert(("/bin/c".to_owned(), Missing::Stripped), 2);
    let meta = Meta { event: Some("cycles".to_owned()), ..Meta::default() };
    let expect = [
        "flame: 10 samples, 100.0 % of stacks complete, 0 lost",
        "flame: clock changed",
        "#flame.format 1",
        "#flame.meta.event cycles",
        "#flame.health.samples 10",
        "#flame.health.stack_end 9 root",
        "#flame.health.unnamed 1 no-symbol /bin/a b",
        "#flame.health.unnamed 2 stripped /bin/c",
        "#flame.health.note clock changed",
    ];
    assert_eq!(comments(&meta, &health), expect);
}

fn whole() -> Health {
    Health::default()
}

#[test]
fn comments_of_other_tools_become_notes() {
    let facts = parse(["built by ci 17", "# internal"]);
    assert_eq!(facts.health.notes, ["built by ci 17", "# internal"]);
    assert_eq!((facts.meta, facts.has_health), (None, false));
}

#[test]
fn merged_files_lose_their_counts_and_say_so() {
    let one = comments(&whole_meta(), &Health { samples: 5, lost_records: 1, ..whole() });
    let two = comments(&whole_meta(), &Health { samples: 6, ..whole() });
    let facts = parse(one.iter().chain(&two).map(String::as_str));
    let note = "several profiles were merged into this one: what was lost in them is not known \
                any more";
    let health = Health { notes: vec![note.to_owned()], ..Health::default() };
    assert_eq!(facts, Facts { health, ..Facts::default() });
}

#[test]
fn facts_that_make_no_sense_are_counted() {
    let lines = [
        "#flame.format 1",
        "#flame.health.samples many",
        "#flame.health.stack_end 3 vanished",
        "#flame.health.coverage 3",
        "#flame.health.completed 3 guessed",
        "#flame.health.stack_copies 3 4",
        "#flame.future 1",
        "#flame.",
    ];
    let facts = parse(lines);
    let note = "7 comments of a newer flame were not understood and left out";
    assert_eq!(facts.health.notes, [note]);
    assert_eq!(facts.meta, Some(Meta::default()));
}
