use super::*;

const SAMPLE: u32 = 9;
const COMM: u32 = 3;
const FORK: u32 = 7;
const MMAP2: u32 = 10;
const EXEC: u16 = 1 << 13;

fn record(filter: &mut Filter, record_type: u32, misc: u16, words: &[u32]) -> bool {
    let head: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let record = RecordBytes { record_type, misc, head: &head, tail: &[] };
    filter.keep(&record)
}

/// A sample at time 100.
fn sample(filter: &mut Filter, pid: u32, tid: u32) -> bool {
    record(filter, SAMPLE, 0, &[0, 0, 0, 0, pid, tid, 100, 0, 0, 0, 0, 0])
}

fn fork(filter: &mut Filter, parent: u32, pid: u32) -> bool {
    record(filter, FORK, 0, &[pid, parent, pid, parent])
}

#[test]
fn a_process_is_followed_with_all_its_threads_and_children() {
    let mut filter = Filter::of_processes(&[Pid(10)], true);
    assert!(sample(&mut filter, 10, 11));
    assert!(!sample(&mut filter, 20, 20));
    assert!(!sample(&mut filter, 0, 0), "the idle task");
    assert!(fork(&mut filter, 10, 12) && fork(&mut filter, 12, 13));
    assert!(sample(&mut filter, 13, 13));
    assert!(record(&mut filter, MMAP2, 0, &[13, 13]));
    assert!(!fork(&mut filter, 20, 21) && !sample(&mut filter, 21, 21));
}

#[test]
fn a_number_that_somebody_else_uses_again_is_no_longer_the_targets() {
    let mut filter = Filter::of_processes(&[Pid(10)], true);
    fork(&mut filter, 10, 12);
    assert!(!fork(&mut filter, 20, 12));
    assert!(!sample(&mut filter, 12, 12));
}

#[test]
fn without_following_only_the_named_threads_count() {
    let mut filter = Filter::of_threads(&[Tid(11)], &[Pid(10)]);
    assert!(sample(&mut filter, 10, 11));
    assert!(!sample(&mut filter, 10, 10));
    assert!(!fork(&mut filter, 10, 12) && !sample(&mut filter, 12, 12));
    assert!(record(&mut filter, MMAP2, 0, &[10, 10]), "its address space is needed");
}

#[test]
fn a_launched_program_counts_from_its_exec_on() {
    let mut filter = Filter::of_launched(Pid(10), true);
    assert!(!sample(&mut filter, 10, 10));
    assert!(record(&mut filter, COMM, 0, &[10, 10]));
    assert!(!sample(&mut filter, 10, 10), "a new name is not a new program");
    assert!(record(&mut filter, COMM, EXEC, &[10, 10]));
    assert!(sample(&mut filter, 10, 10));
}

#[test]
fn a_child_whose_start_was_lost_is_found_by_its_parent() {
    let own = Pid(std::process::id());
    let parent = parent_of(own).unwrap();
    let mut filter = Filter { follow: true, ..Filter::of(&[parent]) };
    assert!(!sample(&mut filter, own.0, own.0));
    let lost = RecordBytes { record_type: 2, misc: 0, head: &[], tail: &[] };
    assert!(filter.keep(&lost));
    filter.fill_gaps();
    assert!(sample(&mut filter, own.0, own.0));
}
