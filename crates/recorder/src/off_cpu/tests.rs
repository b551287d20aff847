use super::lengths::BATCH;
use super::*;

const PID: Pid = Pid(7);
const TID: Tid = Tid(8);

fn begun_at(now: u64, waiting: &[Tid]) -> OffCpu<&'static str> {
    let mut all = OffCpu::new(Waits::default());
    all.begin(Nanos(now), waiting.iter().map(|tid| (PID, *tid, Some(7))));
    all
}

fn spell(duration: u64, stack: SpellStack<&'static str>) -> Vec<Spell<&'static str>> {
    vec![Spell {
        pid: PID,
        tid: TID,
        duration: Nanos(duration),
        preempted: false,
        is_over: false,
        stack,
    }]
}

fn sampled(stack: &'static str) -> SpellStack<&'static str> {
    SpellStack::Sampled(Seen { stack: Some(stack), waker: None })
}

/// A sample that lacks what its thread ran.
fn lacks(sample: &&str) -> bool {
    *sample == "not read"
}

fn before(stack: Option<&'static str>) -> SpellStack<&'static str> {
    SpellStack::Before(Seen { stack, waker: None })
}

fn not_over(duration: u64, stack: &'static str) -> Vec<Spell<&'static str>> {
    spell(duration, sampled(stack)).into_iter().map(|all| Spell { is_over: true, ..all }).collect()
}

#[test]
fn a_sample_stands_for_the_time_until_its_thread_runs_again() {
    let mut all = begun_at(10, &[]);
    all.sampled(PID, TID, "read");
    all.left(Nanos(20), PID, TID, false);
    assert_eq!(all.came_back(Nanos(50), TID), spell(30, sampled("read")));
    all.sampled(PID, TID, "loop");
    all.left(Nanos(60), PID, TID, true);
    let preempted = all.came_back(Nanos(61), TID);
    assert!(preempted[0].preempted);
    assert_eq!(preempted[0].stack, sampled("loop"));
    assert_eq!(all.came_back(Nanos(70), TID), []);
    let OffCpuTime { time, preempted, waits, sampled, unpaired, .. } = all.sums();
    assert_eq!((time, preempted, waits, sampled, unpaired), (Nanos(31), Nanos(1), 2, 2, 0));
}

/// A thread may leave its CPU while the recording is set up: the kernel samples it if it is to be shown.
#[test]
fn who_left_before_the_beginning_counts_in_the_states_that_are_asked_for() {
    let states = States::of_letters("D");
    let mut all = OffCpu::new(Waits { states, ..Waits::default() });
    let found = Tid(9);
    all.begin(Nanos(100), [(PID, found, None)]);
    all.left(Nanos(90), PID, TID, false);
    all.left(Nanos(90), PID, found, false);
    assert_eq!(all.came_back(Nanos(150), TID), []);
    assert_eq!(all.came_back(Nanos(150), found)[0].stack, before(None));
    all.left(Nanos(160), PID, found, false);
    assert_eq!(all.came_back(Nanos(170), found), []);
    assert_eq!(all.sums().time, Nanos(50));
}

#[test]
fn what_was_not_sampled_is_shared_out_among_those_of_its_length() {
    let mut all = begun_at(0, &[]);
    let mut wait = |start: u64, duration, sample: Option<&'static str>| {
        sample.into_iter().for_each(|sample| all.sampled(PID, TID, sample));
        all.left(Nanos(start), PID, TID, false);
        all.came_back(Nanos(start + duration), TID)
    };
    assert_eq!(wait(10, 70, Some("first")), spell(70, sampled("first")));
    assert_eq!(wait(100, 90, None), []);
    assert_eq!(wait(200, 5000, None), []);
    assert_eq!(wait(6000, 80, Some("short")), []);
    assert_eq!(wait(7000, 160, Some("twice")), []);
    assert_eq!(wait(8000, 150, None), []);
    let left = all.finish(Nanos(9000), |_, _| None);
    // By its own time alone a short sample would have too much, see `unbiased_parts`.
    let expect = [("short", 120), ("twice", 360)].map(|(name, time)| (time, sampled(name)));
    let expect = expect.into_iter().chain([(5000, SpellStack::NotSampled)]);
    let expect: Vec<_> = expect.flat_map(|(time, stack)| spell(time, stack)).collect();
    assert_eq!(left, expect);
    let OffCpuTime { time, waits, sampled, .. } = all.sums();
    assert_eq!((time, waits, sampled), (Nanos(5550), 6, 3));
}

/// What a thread did first, when all of that length was sampled, is not what it does later.
#[test]
fn a_sample_stands_for_what_was_not_sampled_before_it_and_not_for_what_comes_later() {
    let mut all = begun_at(0, &[]);
    let mut wait = |start: u64, duration, sample: Option<&'static str>| {
        sample.into_iter().for_each(|sample| all.sampled(PID, TID, sample));
        all.left(Nanos(start), PID, TID, false);
        all.came_back(Nanos(start + duration), TID)
    };
    assert_eq!(wait(10, 2, None), []);
    assert_eq!(wait(1000, 600, Some("first")), spell(600, sampled("first")));
    assert_eq!(wait(2000, 700, Some("first")), spell(700, sampled("first")));
    assert_eq!(wait(3000, 900, None), []);
    assert_eq!(wait(4000, 900, Some("later")), []);
    let mut expect = spell(1800, sampled("later"));
    expect.extend(spell(2, SpellStack::NotSampled));
    assert_eq!(all.ended(TID), expect);
}

#[test]
fn a_full_batch_is_handed_out_at_once_and_its_last_stands_for_the_end() {
    let mut all = begun_at(0, &[]);
    all.left(Nanos(1), PID, TID, false);
    assert_eq!(all.came_back(Nanos(20), TID), []);
    let mut spells = Vec::new();
    for at in 1..=BATCH as u64 {
        all.sampled(PID, TID, "read");
        all.left(Nanos(100 * at), PID, TID, false);
        spells.extend(all.came_back(Nanos(100 * at + 19), TID));
    }
    assert_eq!(spells.len(), BATCH);
    let sum: u64 = spells.iter().map(|spell| spell.duration.0).sum();
    assert_eq!(sum, 19 * (BATCH as u64 + 1));
    all.left(Nanos(5000), PID, TID, false);
    assert_eq!(all.came_back(Nanos(5020), TID), []);
    assert_eq!(all.ended(TID), spell(20, sampled("read")));
}

#[test]
fn what_began_before_the_recording_counts_from_its_beginning() {
    let mut all = begun_at(10, &[TID]);
    assert_eq!(all.came_back(Nanos(15), TID), spell(5, before(None)));
    let mut all = begun_at(10, &[]);
    all.left(Nanos(2), PID, TID, false);
    assert_eq!(all.came_back(Nanos(15), TID), spell(5, before(None)));
    // It was over before.
    let mut all = begun_at(10, &[]);
    all.left(Nanos(2), PID, TID, false);
    assert_eq!(all.came_back(Nanos(9), TID), []);
    // It was looked at, while it waited or later.
    for (at, seen) in [(14, Some("poll")), (15, None)] {
        let mut all = begun_at(10, &[TID]);
        assert!(all.is_to_be_looked_at(TID, lacks));
        all.looked_at(Nanos(at), TID, "poll");
        assert_eq!(all.came_back(Nanos(15), TID), spell(5, before(seen)));
    }
    // It was about to wait when it was looked at.
    let mut all = begun_at(10, &[TID]);
    all.sampled(PID, TID, "read");
    all.left(Nanos(12), PID, TID, false);
    assert_eq!(all.came_back(Nanos(15), TID), spell(3, sampled("read")));
    assert_eq!(all.sums().unpaired, 0);
}

/// Its switch was not sampled, but where it waits can be seen, once, as long as it does.
#[test]
fn who_waits_for_long_without_a_sample_is_looked_at() {
    let at = |ms: u64| Nanos(ms * 1_000_000);
    let for_ms = |ms: u64, stack| spell(ms * 1_000_000, stack);
    let mut all = begun_at(10, &[]);
    let long = |all: &OffCpu<_>, now| all.wait_somewhere(at(now), at(50), lacks);
    all.left(at(20), PID, TID, false);
    assert_eq!((long(&all, 69), long(&all, 70)), (vec![], vec![(PID, TID)]));
    assert!(all.is_to_be_looked_at(TID, lacks) && !all.is_to_be_looked_at(TID, lacks));
    assert_eq!(long(&all, 99), []);
    all.looked_at(at(75), TID, "poll");
    assert_eq!(all.came_back(at(120), TID), for_ms(100, sampled("poll")));
    // The same, of a sample that says too little.
    all.sampled(PID, TID, "not read");
    all.left(at(130), PID, TID, false);
    assert_eq!(long(&all, 180), [(PID, TID)]);
    assert!(all.is_to_be_looked_at(TID, lacks));
    all.looked_at(at(185), TID, "read");
    assert_eq!(all.came_back(at(190), TID), for_ms(60, sampled("read")));
    // It ran before it was looked at, as the records say later.
    all.left(at(200), PID, TID, false);
    assert!(all.is_to_be_looked_at(TID, lacks));
    all.looked_at(at(300), TID, "write");
    assert_eq!(all.came_back(at(300), TID), []);
    assert_eq!(all.ended(TID), for_ms(100, SpellStack::NotSampled));
    // What lasted less is not known by that.
    let other = Tid(11);
    all.left(at(310), PID, other, false);
    assert!(all.is_to_be_looked_at(other, lacks));
    all.looked_at(at(312), other, "poll");
    assert_eq!(all.came_back(at(314), other), []);
    // Who could go on, was sampled, or waits in a state that nobody asks for is not looked at.
    let (preempted, known) = (Tid(9), Tid(10));
    all.left(at(400), PID, preempted, true);
    all.sampled(PID, known, "read");
    all.left(at(400), PID, known, false);
    assert_eq!(long(&all, 900), []);
    assert!(!all.is_to_be_looked_at(preempted, lacks) && !all.is_to_be_looked_at(known, lacks));
    let mut all = OffCpu::new(Waits { states: States::of_letters("D"), ..Waits::default() });
    all.begin(at(10), []);
    all.left(at(20), PID, TID, false);
    assert_eq!(long(&all, 900), []);
}

/// Where there is no time to look at all in time, who waits longer is more likely looked at, and must not stand for the others.
#[test]
fn looks_do_not_favour_the_longer_of_two_waits() {
    let mut random = fastrand::Rng::with_seed(7);
    for lengths in [[22, 38], [45, 75], [60, 250]] {
        let mut all = begun_at(10, &[]);
        let (mut now, mut waited, mut seen) = (20, [0; 2], [0; 2]);
        let mut take = |spells: Vec<Spell<&'static str>>| {
            for Spell { duration, stack, .. } in spells {
                let Some(at) = ["a", "b"].iter().position(|name| stack == sampled(name)) else {
                    panic!("{stack:?}")
                };
                seen[at] += duration.0;
            }
        };
        for _ in 0..60_000 {
            let which = random.usize(..2);
            let length = lengths[which] * 1_000_000;
            all.left(Nanos(now), PID, TID, false);
            all.looked_at(Nanos(now + random.u64(8_000_000..150_000_000)), TID, ["a", "b"][which]);
            now += length;
            waited[which] += length;
            take(all.came_back(Nanos(now), TID));
        }
        take(all.ended(TID));
        let error = seen[0] as f64 / waited[0] as f64 - 1.0;
        assert!(error.abs() < 0.05, "{lengths:?}: {error:.3}");
    }
}

#[test]
fn who_still_waits_at_the_end_has_waited_until_then_and_the_dead_do_not() {
    let mut all = begun_at(10, &[]);
    all.sampled(PID, TID, "read");
    all.left(Nanos(20), PID, TID, false);
    let dead = Tid(9);
    assert_eq!(all.ended(dead), []);
    all.sampled(PID, dead, "exit");
    all.left(Nanos(20), PID, dead, false);
    assert_eq!(all.finish(Nanos(90), |_, _| None), not_over(70, "read"));
    all.started(dead);
    all.sampled(PID, dead, "born again");
    all.left(Nanos(95), PID, dead, false);
    assert_eq!(all.finish(Nanos(99), |_, _| None).len(), 1);
}

#[test]
fn lost_records_make_no_long_waits() {
    let mut all = begun_at(10, &[]);
    all.sampled(PID, TID, "read");
    all.left(Nanos(20), PID, TID, false);
    all.lost();
    assert_eq!(all.came_back(Nanos(5000), TID), []);
    // A return that was not seen, in front of another switch.
    all.sampled(PID, TID, "read");
    all.left(Nanos(6000), PID, TID, false);
    all.sampled(PID, TID, "write");
    all.left(Nanos(7000), PID, TID, false);
    assert_eq!(all.came_back(Nanos(7001), TID), spell(1, sampled("write")));
    assert_eq!((all.sums().unpaired, all.sums().time), (2, Nanos(1)));
    // The same, of switches that were not sampled.
    all.left(Nanos(8000), PID, TID, false);
    all.left(Nanos(9000), PID, TID, false);
    assert_eq!(all.came_back(Nanos(9007), TID), []);
    assert_eq!((all.sums().unpaired, all.sums().time), (3, Nanos(8)));
    // So much of them may have been waits; who did not show up again counts until the end.
    assert_eq!(all.sums().missed, Nanos(4980 + 1000 + 1000));
    all.left(Nanos(9100), PID, TID, false);
    all.lost();
    assert_eq!(all.finish(Nanos(9150), |_, _| None).len(), 1);
    assert_eq!((all.sums().unpaired, all.sums().missed), (4, Nanos(6980 + 50)));
}

#[test]
fn idle_tasks_do_not_wait_and_limits_leave_out() {
    let (shortest, longest) = (Nanos(5), Nanos(10));
    let kept = Waits { shortest, longest, ..Waits::default() };
    let mut all = OffCpu::new(kept);
    for (tid, duration) in [(1, 4), (2, 5), (3, 10), (4, 11)] {
        let pid = Pid(tid);
        all.sampled(pid, Tid(tid), "read");
        all.left(Nanos(100), pid, Tid(tid), false);
        let shown = !all.came_back(Nanos(100 + duration), Tid(tid)).is_empty();
        assert_eq!(shown, (5..=10).contains(&duration));
    }
    assert_eq!(all.sums().left_out, 2);
    all.sampled(Pid(0), Tid(0), "idle");
    all.left(Nanos(200), Pid(0), Tid(0), false);
    assert_eq!(all.came_back(Nanos(207), Tid(0)), []);
}

fn with_wakers(wakers: Wakers) -> OffCpu<&'static str> {
    let mut all = OffCpu::new(Waits { wakers, ..Waits::default() });
    all.begin(Nanos(0), []);
    all
}

/// A wait of that length from a time on, woken half-way by a thread; how it is shown.
fn waited(
    all: &mut OffCpu<&'static str>,
    (start, length): (u64, u64),
    (stack, waker): (Option<&'static str>, Option<&'static str>),
) -> Vec<(u64, SpellStack<&'static str>)> {
    stack.into_iter().for_each(|stack| all.sampled(PID, TID, stack));
    all.left(Nanos(start), PID, TID, false);
    assert!(all.waits(TID));
    if let Some(waker) = waker {
        all.woken(Nanos(start + length / 2), TID, waker);
        assert!(!all.waits(TID));
    }
    let spells = all.came_back(Nanos(start + length), TID).into_iter();
    spells.map(|spell| (spell.duration.0, spell.stack)).collect()
}

#[test]
fn who_wakes_gets_the_time_until_it_does() {
    let mut all = with_wakers(Wakers::Alone);
    let by = |waker| SpellStack::Sampled(Seen { stack: None, waker });
    assert_eq!(waited(&mut all, (10, 70), (None, Some("write"))), [(35, by(Some("write")))]);
    // What is not sampled is shared out among those of its length, of which half was sleep.
    assert_eq!(waited(&mut all, (100, 80), (None, None)), []);
    assert_eq!(waited(&mut all, (200, 100), (None, Some("unlock"))), []);
    // Who was preempted could have gone on.
    all.left(Nanos(400), PID, TID, true);
    assert!(!all.waits(TID));
    assert_eq!(all.came_back(Nanos(500), TID), []);
    all.left(Nanos(600), PID, TID, false);
    let left: Vec<_> =
        all.finish(Nanos(630), |_, _| None).into_iter().map(|s| (s.duration.0, s.stack)).collect();
    assert_eq!(left, [(30, by(None)), (90, by(Some("unlock")))]);
    assert_eq!(all.sums().time, Nanos(70 + 80 + 100 + 30));
}

#[test]
fn waits_without_a_sample_of_their_waker_are_shared_out_among_those_with_both() {
    let mut all = with_wakers(Wakers::Above);
    let both = |stack, waker| SpellStack::Sampled(Seen { stack: Some(stack), waker });
    let first = waited(&mut all, (10, 70), (Some("read"), Some("write")));
    assert_eq!(first, [(70, both("read", Some("write")))]);
    assert_eq!(waited(&mut all, (100, 80), (Some("read"), None)), []);
    assert_eq!(waited(&mut all, (200, 80), (Some("lock"), Some("unlock"))), []);
    // Of another length, of which no waker was sampled at all.
    assert_eq!(waited(&mut all, (1000, 5000), (Some("poll"), None)), []);
    assert_eq!(waited(&mut all, (7000, 5000), (None, Some("write"))), []);
    let left: Vec<_> = all
        .finish(Nanos(13000), |_, _| None)
        .into_iter()
        .map(|s| (s.duration.0, s.stack))
        .collect();
    assert_eq!(left, [(160, both("lock", Some("unlock"))), (10000, both("poll", None))]);
}

/// Threads that only wait have no records that could be lost: they got no CPU.
#[test]
fn who_got_no_cpu_since_before_the_recording_has_waited_whatever_was_lost() {
    let [stays, ran, back] = [1, 2, 3].map(Tid);
    let mut all = begun_at(10, &[stays, ran, back]);
    all.lost();
    assert_eq!(all.came_back(Nanos(30), back), []);
    let turns = |_, tid| Some(if tid == stays { 7 } else { 8 });
    let spells = all.finish(Nanos(110), turns);
    let whole = |spell: &Spell<_>| (spell.tid, spell.duration, spell.is_over);
    assert_eq!(spells.iter().map(whole).collect::<Vec<_>>(), [(stays, Nanos(100), true)]);
    assert_eq!((all.sums().unpaired, all.sums().missed), (2, Nanos(100 + 20)));
}
