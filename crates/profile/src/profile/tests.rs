use super::*;
use crate::timeline::TimedSample;

/// Two threads with a stack each, whose samples were taken at these milliseconds; they stand for
/// twice as much now as when they were taken.
fn profile(samples: &[(u64, usize)]) -> Profile {
    let time = ValueType::new("cpu", "nanoseconds");
    let mut profile = Profile::new(vec![ValueType::samples(), time]);
    let mut timeline = Timeline::default();
    for tid in 0..2 {
        let thread = profile.add_thread("worker", Pid(1), Tid(tid));
        let of_thread = samples.iter().filter(|(_, row)| *row == tid as usize).count() as u64;
        profile.add_sample(thread, StackId::EMPTY, &[of_thread, of_thread * 20]);
    }
    for (millis, row) in samples {
        let time = Nanos(millis * 1_000_000);
        timeline.push(TimedSample { time, row: *row, cpu: None, event: 0, weight: 10 });
    }
    profile.timeline = Some(timeline);
    profile
}

#[test]
fn samples_of_a_time_and_of_some_threads_are_left() {
    let samples = [(0, 0), (10, 1), (20, 0), (30, 1), (40, 0)];
    let values = |profile: &Profile| -> Vec<Vec<u64>> {
        profile.samples().map(|sample| sample.values.to_vec()).collect()
    };
    let mut part = profile(&samples);
    part.meta.duration = Some(Nanos(50_000_000));
    assert!(part.keep(Nanos(10_000_000)..Nanos(40_000_000), |_| true));
    assert_eq!(part.meta.duration, Some(Nanos(30_000_000)));
    assert_eq!(values(&part), [[1, 20], [2, 40]]);
    let times = part.timeline.iter().flat_map(Timeline::iter).map(|sample| sample.time.0);
    assert_eq!(times.collect::<Vec<_>>(), [10_000_000, 20_000_000, 30_000_000]);

    let mut of_one = profile(&samples);
    of_one.meta.duration = Some(Nanos(50_000_000));
    let first = of_one.samples().next().unwrap().thread;
    assert!(of_one.keep(Nanos(0)..Nanos(u64::MAX), |thread| thread == first));
    assert_eq!(values(&of_one), [[3, 60], [0, 0]]);
    assert_eq!(of_one.meta.duration, Some(Nanos(50_000_000)));

    let mut without = profile(&samples);
    without.timeline = None;
    assert!(!without.keep(Nanos(0)..Nanos(1), |_| true));
    assert_eq!(values(&without), [[3, 60], [2, 40]]);
}

/// Files may say anything.
#[test]
fn weights_without_bounds_overflow_nothing() {
    let mut profile = profile(&[(0, 0), (10, 1)]);
    let mut timeline = Timeline::default();
    for row in [0, 1, 1] {
        let (cpu, event) = (None, usize::MAX);
        timeline.push(TimedSample { time: Nanos(0), row, cpu, event, weight: u64::MAX });
    }
    profile.timeline = Some(timeline);
    profile.values.fill(u64::MAX);
    let mut of_threads = profile.clone();
    of_threads.keep_threads(|_| true);
    assert_eq!(of_threads.health.samples, u64::MAX);
    assert!(profile.keep(Nanos(0)..Nanos(1), |_| true));
    let values: Vec<_> = profile.samples().map(|sample| sample.values.to_vec()).collect();
    assert_eq!(values, [[1, u64::MAX], [2, 0]]);
}

#[test]
fn profiles_with_one_value_keep_what_each_row_has() {
    let mut profile = Profile::new(vec![ValueType::samples()]);
    let mut timeline = Timeline::default();
    for row in 0..2 {
        let thread = profile.add_thread("worker", Pid(1), Tid(row as u32));
        profile.add_sample(thread, StackId::EMPTY, &[1]);
        let (time, cpu, event) = (Nanos(0), None, 0);
        timeline.push(TimedSample { time, row, cpu, event, weight: 1000 });
    }
    profile.timeline = Some(timeline);
    assert!(profile.keep(Nanos(0)..Nanos(1), |_| true));
    assert_eq!(profile.values, [1, 1]);
}

/// Threads whose samples have these values of two events, each a number and what it stands for.
fn of_two_events(values: &[[u64; 4]]) -> Profile {
    let types = ["samples", "cycles", "samples", "misses"];
    let types = types.map(|name| ValueType::new(name, "count")).to_vec();
    let mut profile = Profile::new(types);
    for (tid, values) in (0..).zip(values) {
        let thread = profile.add_thread("worker", Pid(1), Tid(tid));
        let row = profile.add_sample_of(thread, StackId::EMPTY, Evidence::default(), values);
        assert_eq!(row, tid as usize);
    }
    profile
}

fn values(profile: &Profile) -> Vec<Vec<u64>> {
    profile.samples().map(|sample| sample.values.to_vec()).collect()
}

#[test]
fn each_event_keeps_what_its_own_samples_stand_for() {
    let mut profile = of_two_events(&[[2, 40, 1, 300], [1, 20, 2, 600]]);
    let mut timeline = Timeline::default();
    // An event beyond the last is the last. Of the second, samples stand for three times as much
    // now, of the first for twice.
    let taken = [(0, 0, 0), (1, 0, 0), (1, 0, 1), (0, 1, 0), (0, 1, 1), (1, 1, 7)];
    for (time, row, event) in taken {
        let weight = if event == 0 { 10 } else { 100 };
        let time = Nanos(time * 1000);
        timeline.push(TimedSample { time, row, cpu: None, event, weight });
    }
    profile.timeline = Some(timeline);
    assert!(profile.keep(Nanos(1000)..Nanos(2000), |_| true));
    assert_eq!(values(&profile), [[1, 20, 1, 300], [0, 0, 1, 300]]);
    assert_eq!(profile.health.samples, 3);
}

#[test]
fn samples_of_one_stack_are_one_row() {
    let mut profile = of_two_events(&[[1, 10, 2, 20], [3, 30, 4, 40], [5, 50, 6, 60]]);
    let second = profile.samples().nth(1).unwrap().thread;
    profile.add_sample(second, StackId::EMPTY, &[100, u64::MAX, 300, 400]);
    let expect = [[1, 10, 2, 20], [103, u64::MAX, 304, 440], [5, 50, 6, 60]];
    assert_eq!(values(&profile), expect);
    assert_eq!(profile.total(2), Weight(312));
}

#[test]
fn threads_that_are_not_kept_have_no_weight() {
    let mut profile = of_two_events(&[[1, 10, 2, 20], [3, 30, 4, 40]]);
    let second = profile.samples().nth(1).unwrap().thread;
    profile.keep_threads(|thread| thread == second);
    assert_eq!(values(&profile), [[0, 0, 0, 0], [3, 30, 4, 40]]);
    assert_eq!(profile.health.samples, 3);
}

#[test]
fn a_value_is_scaled_to_a_sum_and_the_others_stay() {
    let mut profile = of_two_events(&[[1, 10, 0, 1], [1, 10, 0, 0], [1, 20, 0, 0]]);
    profile.scale(0, 10);
    profile.scale(1, 4);
    profile.scale(2, 7);
    assert_eq!(values(&profile), [[3, 1, 0, 1], [3, 1, 0, 0], [4, 2, 0, 0]]);
}

#[test]
fn pairs_of_values_add_up_to_the_first() {
    let mut profile = of_two_events(&[[1, 10, 2, 20], [3, 30, 4, u64::MAX]]);
    profile.add_up_pairs();
    assert_eq!(values(&profile), [[3, 30], [7, u64::MAX]]);
    assert_eq!(profile.value_types().len(), 2);
}

#[test]
fn values_and_processes_can_be_given_names() {
    let mut profile = of_two_events(&[]);
    assert_eq!((profile.value_named("misses"), profile.value_named("faults")), (Some(3), None));
    profile.rename_value(2, "faults");
    profile.rename_value(9, "misses");
    assert_eq!((profile.value_named("faults"), profile.value_named("cycles")), (Some(2), Some(1)));
    profile.set_title(Pid(7), "nginx: worker process");
    assert_eq!(profile.title(Pid(7)), Some("nginx: worker process"));
    assert_eq!(profile.title(Pid(8)), None);
    let name = profile.intern("handle");
    assert_eq!((profile.text(name), profile.strings().text(name)), ("handle", "handle"));
}
