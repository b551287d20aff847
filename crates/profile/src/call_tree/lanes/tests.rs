use super::*;
use crate::Location;
use crate::timeline::{TimedSample, Timeline};

/// Two recursions of different functions in turn, which share nothing.
fn in_turn(depth: usize, times: u64) -> (Profile, Vec<Piece>) {
    let mut profile = Profile::new(vec![ValueType::samples()]);
    let stacks = ["even", "odd"].map(|name| {
        let frame = profile.add_frame(name, FrameKind::User);
        let location = profile.add_location(Location::named(frame));
        (0..depth).fold(StackId::EMPTY, |stack, _| profile.push_stack(stack, location))
    });
    let piece = |at: u64| (Nanos(at)..Nanos(at + 1), stacks[at as usize % 2]);
    (profile, (0..times).map(piece).collect())
}

fn bounded(depth: usize, times: u64, most: usize) -> (usize, Option<usize>, Weight) {
    let (profile, pieces) = in_turn(depth, times);
    let labels = vec![Vec::new(); profile.locations().len()];
    let mut grower = Grower { profile: &profile, labels };
    let (tree, depth) = grower.bounded_tree(&pieces, Nanos(times + 1), most);
    (tree.nodes().len(), depth, tree.total())
}

#[test]
fn stacks_are_cut_where_all_would_be_too_many_boxes() {
    // The root, the boxes, and the nanosecond behind them.
    assert_eq!(bounded(64, 100, 10_000), (6402, None, Weight(101)));
    assert_eq!(bounded(64, 100, 2000), (1602, Some(16), Weight(101)));
    assert_eq!(bounded(64, 100, 10), (2, Some(0), Weight(101)));
    // Whether there are too many is asked before each stack: the root and two stacks are 129.
    assert_eq!(bounded(64, 3, 129), (194, None, Weight(4)));
    assert_eq!(bounded(64, 3, 128), (98, Some(32), Weight(4)));
}

/// Moments of two stacks in turn.
fn moments(times: &[u64]) -> Vec<Moment> {
    let (_, pieces) = in_turn(1, 2);
    times.iter().enumerate().map(|(at, time)| (Nanos(*time), pieces[at % 2].1)).collect()
}

fn ranges(ranges: &[(u64, u64)]) -> Vec<Range<Nanos>> {
    ranges.iter().map(|(start, end)| Nanos(*start)..Nanos(*end)).collect()
}

fn times(pieces: &[Piece]) -> Vec<(u64, u64)> {
    pieces.iter().map(|(time, _)| (time.start.0, time.end.0)).collect()
}

#[test]
fn samples_go_half_way_to_each_other_and_no_further_than_they_reach() {
    let moments = moments(&[10, 20, 100]);
    let pieces = around(&moments, Nanos(15), Nanos(200));
    assert_eq!(times(&pieces), [(0, 15), (15, 35), (85, 115)]);
    assert!(pieces.iter().zip(&moments).all(|((_, one), (_, other))| one == other));
    assert_eq!(times(&around(&moments, Nanos(90), Nanos(110))), [(0, 15), (15, 60), (60, 110)]);
    assert_eq!(times(&around(&moments[2..], Nanos(15), Nanos(200))), [(85, 115)]);
}

#[test]
fn samples_share_the_time_in_which_their_thread_ran() {
    let runs = ranges(&[(0, 50), (100, 150), (160, 170)]);
    let pieces = within(&moments(&[5, 25, 60, 100, 150]), &runs);
    assert_eq!(times(&pieces), [(0, 15), (15, 50), (100, 125), (125, 150)]);
}

#[test]
fn runs_are_one_where_the_break_is_shorter_than_what_is_shown() {
    let runs = ranges(&[(30, 40), (0, 10), (12, 20)]);
    assert_eq!(merged(&runs, Nanos(3)), ranges(&[(0, 20), (30, 40)]));
    assert_eq!(merged(&runs, Nanos(2)), ranges(&[(0, 10), (12, 20), (30, 40)]));
    assert_eq!(merged(&ranges(&[(0, 30), (5, 10)]), Nanos(1)), ranges(&[(0, 30)]));
}

#[test]
fn samples_reach_three_times_as_far_as_they_mostly_stand_apart() {
    let mut threads = [moments(&[30, 0, 10]), moments(&[5, 12])];
    // 7, 10 and 20 nanoseconds.
    assert_eq!(reach(threads.iter_mut()), Nanos(30));
    assert_eq!(threads[0].iter().map(|(time, _)| time.0).collect::<Vec<_>>(), [0, 10, 30]);
    assert_eq!(reach([moments(&[7])].iter_mut()), Nanos(1_000_000), "one sample has no distance");
}

#[test]
fn time_that_pieces_share_counts_once() {
    let pieces = |of: &[(u64, u64)]| -> Vec<Piece> {
        ranges(of).into_iter().map(|time| (time, StackId::EMPTY)).collect()
    };
    assert_eq!(busy(&pieces(&[(0, 10), (5, 20), (30, 40)])), 30);
    assert_eq!(busy(&pieces(&[(5, 20), (6, 10), (8, 22)])), 17);
}

/// A thread that changes its name, and another one: milliseconds, thread and event of each sample.
fn recorded(events: usize, samples: &[(u64, usize, usize)], runs: &[(u32, u64, u64)]) -> Profile {
    let mut profile = Profile::new(vec![ValueType::samples(); 2 * events]);
    let frame = profile.add_frame("work", FrameKind::User);
    let location = profile.add_location(Location::named(frame));
    let stack = profile.push_stack(StackId::EMPTY, location);
    for (name, tid) in [("one", 1), ("renamed", 1), ("other", 2)] {
        let thread = profile.add_thread(name, Pid(1), Tid(tid));
        profile.add_sample(thread, stack, &vec![1; 2 * events]);
    }
    let mut timeline = Timeline::default();
    for (time, row, event) in samples {
        let time = Nanos(time * 1_000_000);
        timeline.push(TimedSample { time, row: *row, cpu: None, event: *event, weight: 1 });
    }
    profile.timeline = Some(timeline);
    let run = |(tid, from, until): &(u32, u64, u64)| {
        let [from, until] = [from, until].map(|millis| Nanos(millis * 1_000_000));
        Run { pid: Pid(1), tid: Tid(*tid), from, until }
    };
    profile.runs = (!runs.is_empty()).then(|| runs.iter().map(run).collect());
    profile
}

/// For each lane its name, how many samples have no box, and its boxes in milliseconds.
fn lanes(profile: &Profile, event: usize, most: usize) -> (Vec<(String, usize, String)>, usize) {
    let (lanes, left_out) = Lane::busiest(profile, event, Nanos(1_000_000), most);
    let described = |lane: Lane| {
        let name = profile.text(profile.thread(lane.thread).name).to_owned();
        let boxes = lane.tree.nodes()[1..]
            .iter()
            .map(|node| format!("{} {}", lane.tree.label(node).name, node.total.0 as f64 / 1e6));
        (name, lane.unplaced, boxes.collect::<Vec<_>>().join(","))
    };
    (lanes.into_iter().map(described).collect(), left_out)
}

fn lane(name: &str, unplaced: usize, boxes: &str) -> (String, usize, String) {
    (name.to_owned(), unplaced, boxes.to_owned())
}

#[test]
fn a_thread_has_one_lane_of_the_time_in_which_it_ran() {
    let samples = [(4, 0, 0), (10, 1, 0), (20, 1, 0), (9, 2, 0), (29, 2, 0)];
    let runs = [(1, 0, 12), (1, 35, 36), (2, 8, 30)];
    let profile = recorded(1, &samples, &runs);
    let renamed = lane("renamed", 1, "work 12, 24");
    let other = lane("other", 0, " 8,work 22, 6");
    assert_eq!(lanes(&profile, 0, 2), (vec![renamed, other.clone()], 0));
    assert_eq!(lanes(&profile, 0, 1), (vec![other], 1), "the one that ran longer");
    assert_eq!(lanes(&profile, 1, 2), (vec![], 0));
}

#[test]
fn a_lane_ends_with_the_recording() {
    // Nothing is known of switches, and samples stand 4 ms apart.
    let samples = [(2, 0, 0), (6, 1, 9), (2, 2, 0)];
    let mut profile = recorded(1, &samples, &[]);
    profile.meta.duration = Some(Nanos(30_000_000));
    let renamed = lane("renamed", 0, "work 18, 12");
    assert_eq!(lanes(&profile, 0, 1), (vec![renamed], 1));
    // At the last sample, where it is not said how long it was.
    profile.meta.duration = None;
    let expect = vec![lane("renamed", 0, "work 6.000001"), lane("other", 0, "work 6.000001")];
    assert_eq!(lanes(&profile, 0, 9), (expect, 0));
}

#[test]
fn a_thread_whose_switches_are_not_known_is_drawn_by_its_samples() {
    let profile = recorded(1, &[(2, 0, 0), (6, 0, 0), (2, 2, 0)], &[(2, 1, 3), (2, 8, 9)]);
    let expect = vec![lane("one", 0, "work 9"), lane("other", 0, " 1,work 2, 6")];
    assert_eq!(lanes(&profile, 0, 9), (expect, 0));
}

#[test]
fn each_event_has_its_own_lanes() {
    let profile = recorded(2, &[(2, 0, 0), (3, 2, 1), (4, 2, 7)], &[(1, 0, 9), (2, 0, 9)]);
    assert_eq!(lanes(&profile, 0, 9), (vec![lane("one", 0, "work 9")], 0));
    // An event beyond the last is the last.
    assert_eq!(lanes(&profile, 1, 9), (vec![lane("other", 0, "work 9")], 0));
}
