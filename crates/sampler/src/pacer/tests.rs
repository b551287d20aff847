use super::*;

const MEAN: Nanos = Nanos(10_000_000);

/// A CPU's timer as the kernel runs it, and flame, which wakes up late.
struct Machine {
    pacer: Pacer,
    now: u64,
    interval: u64,
    /// How late the timer fires when it was set.
    timer_is_late: u64,
    samples: Vec<u64>,
}

impl Machine {
    fn new(batch: u64, seed: u64) -> Machine {
        let mut pacer = Pacer::new(MEAN, batch, Some(seed));
        let interval = pacer.start(Nanos(0)).0;
        Machine { pacer, now: 0, interval, timer_is_late: 0, samples: Vec::new() }
    }

    /// Runs up to that time; flame looks `late(n)` after the sample n that woke it up, or after a
    /// batch. The timer goes on meanwhile.
    fn run(&mut self, until: u64, mut late: impl FnMut(usize) -> u64) {
        let mut next = self.now + self.interval + self.timer_is_late;
        while self.now < until {
            let first = self.samples.len();
            let look = next + (self.pacer.batch - 1) * self.interval + late(first);
            while next <= look {
                self.samples.push(next);
                next += self.interval;
            }
            self.now = look;
            let mut seen = Seen::default();
            let new = self.samples.split_off(first);
            for time in new {
                if !self.pacer.note(Nanos(time), Nanos(self.now), &mut seen) {
                    (seen.samples, seen.last) = (seen.samples + 1, Nanos(time));
                    self.samples.push(time);
                }
            }
            if let Some(interval) = self.pacer.next(seen, Nanos(self.now)) {
                self.interval = interval.0;
                next = self.now + self.interval + self.timer_is_late;
            }
        }
    }

    /// Mean interval and the intervals in tenths of the mean.
    fn intervals(&self) -> (f64, [usize; 40]) {
        let mut tenths = [0; 40];
        for pair in self.samples.windows(2) {
            tenths[((pair[1] - pair[0]) * 10 / MEAN.0).min(39) as usize] += 1;
        }
        let span = self.samples.last().unwrap() - self.samples[0];
        (span as f64 / (self.samples.len() - 1) as f64, tenths)
    }
}

#[track_caller]
fn check_mean(batch: u64, slack: f64, late: impl FnMut(usize) -> u64) -> [usize; 40] {
    let mut machine = Machine::new(batch, 7);
    machine.run(MEAN.0 * 20_000, late);
    let (mean, tenths) = machine.intervals();
    assert!((mean / MEAN.0 as f64 - 1.0).abs() < slack, "mean {mean}");
    tenths
}

#[test]
fn the_next_sample_is_as_likely_however_long_the_last_one_ago() {
    let tenths = check_mean(1, 0.005, |_| 20_000);
    // What would be shorter than an eighth comes then.
    let mut left: usize = tenths[2..].iter().sum();
    for in_tenth in &tenths[2..20] {
        // Of an exponential distribution 1 - exp(-0.1) of what is left.
        let part = *in_tenth as f64 / left as f64;
        assert!((part / 0.0952 - 1.0).abs() < 0.15, "{tenths:?}");
        left -= in_tenth;
    }
}

/// Each sample has the scheduler choose anew: one thread runs first, for so long, then the other.
#[test]
fn who_runs_first_after_a_sample_is_seen_as_often_as_it_runs() {
    for first_runs in [MEAN.0 / 7, MEAN.0 / 3, MEAN.0, 2 * MEAN.0] {
        let mut machine = Machine::new(1, 5);
        machine.run(MEAN.0 * 40_000, |_| 20_000);
        let (mut samples, mut time) = (0, 0);
        for pair in machine.samples.windows(2) {
            let interval = pair[1] - pair[0];
            samples += u64::from(interval <= first_runs);
            time += interval.min(first_runs);
        }
        let all = machine.samples.len() as f64;
        let span = (machine.samples.last().unwrap() - machine.samples[0]) as f64;
        let (seen, ran) = (samples as f64 / all, time as f64 / span);
        let error = (ran * (1.0 - ran) / all).sqrt();
        assert!((seen - ran).abs() < 4.0 * error + 0.02 * ran, "{seen} of {ran}");
    }
}

#[test]
fn how_many_samples_come_varies_little() {
    let count = |seed| {
        let mut machine = Machine::new(1, seed);
        machine.run(MEAN.0 * 1000, |_| 20_000);
        machine.samples.len() as f64
    };
    let off = (0..200).map(|seed| (count(seed) - 1000.0).powi(2)).sum::<f64>() / 200.0;
    // The root of 1000 is 32.
    assert!(off.sqrt() < 6.0, "{}", off.sqrt());
}

#[test]
fn the_mean_holds_when_flame_wakes_up_late() {
    check_mean(1, 0.08, |n| [10_000, 3_000_000, 12_000_000, 50_000][n % 4]);
}

/// A slow machine, whose kernel takes so long to wake flame up, which works on what it finds for so long. The timer
/// goes on meanwhile.
#[track_caller]
fn check_slow(wakes_after: u64, works_for: u64) {
    let mut pacer = Pacer::new(MEAN, 1, Some(3));
    let mut interval = pacer.start(Nanos(0)).0;
    let (mut now, mut next, mut waiting, mut kept, mut own) = (0, interval, Vec::new(), 0, 0);
    let mut began = 0;
    let fire = |next: &mut u64, now: u64, interval: u64, waiting: &mut Vec<u64>| {
        while *next <= now {
            waiting.push(*next);
            *next += interval;
        }
    };
    while now < 20_000 * MEAN.0 {
        let first = waiting.last().map_or(next, |last: &u64| now.max(*last));
        let own_run = began..now;
        now = first.max(now) + wakes_after;
        fire(&mut next, now, interval, &mut waiting);
        let mut seen = Seen { own: Nanos(works_for), ..Seen::default() };
        for time in waiting.drain(..) {
            if !pacer.note(Nanos(time), Nanos(now), &mut seen) {
                // Some are of flame itself.
                kept += u64::from(!own_run.contains(&time));
                seen.samples += 1;
            }
        }
        began = now;
        (now, own) = (now + works_for, own + works_for);
        fire(&mut next, now, interval, &mut waiting);
        if let Some(set) = pacer.next(seen, Nanos(now)) {
            (interval, next) = (set.0, now + set.0);
        }
    }
    let part = (kept * MEAN.0) as f64 / (now - own) as f64;
    assert!((0.96..1.02).contains(&part), "{wakes_after} {works_for}: {part}");
}

/// They came by the interval that the event was opened with, which is the mean.
#[test]
fn samples_before_the_first_draw_are_all_kept() {
    for seed in 0..20 {
        let mut pacer = Pacer::new(MEAN, 1, Some(seed));
        pacer.start(Nanos(101 * MEAN.0));
        let mut seen = Seen::default();
        for n in 1..=100 {
            assert!(
                !pacer.note(Nanos(n * MEAN.0), Nanos(100 * MEAN.0), &mut seen),
                "sample {n} of seed {seed}"
            );
        }
    }
}

#[test]
fn samples_of_a_slow_machine_stand_for_the_time_that_flame_leaves_to_others() {
    for (wakes_after, works_for) in
        [(1, 1), (1, 30), (1, 50), (13, 10), (15, 20), (15, 30), (30, 20), (40, 10)]
    {
        check_slow(MEAN.0 / 100 * wakes_after, MEAN.0 / 100 * works_for);
    }
}

/// As on a virtual machine.
#[test]
fn the_mean_holds_when_timers_are_late() {
    for part in [50, 20] {
        let mut machine = Machine::new(1, 7);
        machine.timer_is_late = MEAN.0 / part;
        machine.run(MEAN.0 * 20_000, |_| 20_000);
        let (mean, _) = machine.intervals();
        assert!((mean / MEAN.0 as f64 - 1.0).abs() < 0.03, "1 of {part} late: mean {mean}");
    }
}

#[test]
fn the_mean_holds_when_intervals_are_drawn_for_batches() {
    let tenths = check_mean(10, 0.006, |_| 300_000);
    assert!(tenths.iter().filter(|count| **count > 100).count() >= 6, "{tenths:?}");
}

#[test]
fn the_mean_holds_when_flame_goes_over_to_batches_and_back() {
    let mut machine = Machine::new(1, 9);
    for turn in 1..1000 {
        machine.run(MEAN.0 * 100 * turn, |_| 20_000);
        let batch = if turn % 2 == 0 { 1 } else { 30 };
        machine.interval = machine.pacer.change(batch, Nanos(machine.now)).0;
    }
    let (mean, _) = machine.intervals();
    assert!((mean / MEAN.0 as f64 - 1.0).abs() < 0.02, "mean {mean}");
}

#[test]
fn the_mean_holds_when_flame_is_far_too_slow() {
    // A hundred samples come for each batch of ten: as many as flame has not looked at.
    check_mean(10, 0.006, |n| [900_000_000, 1_500_000_000, 20_000][n % 3]);
    // Intervals above the mean that go on leave too few, and none that leave as many more.
    check_mean(1, 0.2, |n| [100_000_000, 20_000][n % 2]);
}

/// The mean of what is set, over many draws, after a sample of then that is seen now.
fn mean_set_after(seen: Seen, now: Nanos) -> f64 {
    let set = |seed| {
        let mut pacer = Pacer::new(MEAN, 1, Some(seed));
        pacer.start(Nanos(0));
        pacer.next(seen, now).unwrap().0 as f64 / MEAN.0 as f64
    };
    (0..4000).map(set).sum::<f64>() / 4000.0
}

#[test]
fn a_cpu_that_was_away_is_not_caught_up_with() {
    let now = Nanos(MEAN.0 * 1000);
    let mean = mean_set_after(Seen { samples: 1, last: Nanos(MEAN.0), ..Seen::default() }, now);
    assert!((mean - 1.0).abs() < 0.06, "{mean}");
}

/// What runs on a CPU that leaves no samples while it is idle: a burst at the begin of each cycle.
#[derive(Clone, Copy, Debug)]
struct Bursts {
    cycle: u64,
    lasts: u64,
    /// Whether they have a higher priority than flame, which does not run before their end.
    keep_flame_away: bool,
    /// Whether something else runs between them.
    has_others: bool,
    /// The mean interval of samples.
    mean: u64,
}

impl Bursts {
    fn are_at(&self, time: u64) -> bool {
        time % self.cycle < self.lasts
    }

    /// When flame runs that is to be woken up at a time.
    fn let_run(&self, time: u64) -> u64 {
        match self.keep_flame_away && self.are_at(time) {
            true => time - time % self.cycle + self.lasts,
            false => time,
        }
    }
}

/// How many mean intervals are simulated.
const SPAN: u64 = 4000;

/// The samples of a CPU that runs bursts.
fn samples_of(bursts: Bursts, seed: u64, batch: u64) -> Vec<u64> {
    let mut pacer = Pacer::new(Nanos(bursts.mean), batch, Some(seed));
    let mut random = fastrand::Rng::with_seed(seed);
    let mut interval = pacer.start(Nanos(0)).0;
    let (mut now, mut due, mut samples) = (0, interval, Vec::new());
    while now < bursts.mean * SPAN {
        // Flame looks when a sample comes, when one is overdue, or every now and then.
        let ring = match pacer.next_due() {
            None => now + bursts.mean * random.u64(500..1500) / 100,
            Some(due) => due.0.max(now) + GRACE.0 + 10_000,
        };
        let mut fires = (0..).map(|n| due + n * interval);
        let is_busy = |time| bursts.has_others || bursts.are_at(time);
        let first = fires.find(|time| *time > ring || is_busy(*time)).unwrap();
        let wakes = if first <= ring { first + 10_000 } else { ring };
        now = bursts.let_run(wakes);
        let mut seen = Seen::default();
        while due <= now {
            if is_busy(due) && !pacer.note(Nanos(due), Nanos(now), &mut seen) {
                (seen.samples, seen.last) = (seen.samples + 1, Nanos(due));
                samples.push(due);
            }
            due += interval;
        }
        pacer.note_silence(Nanos(now), &mut seen);
        if let Some(new) = pacer.next(seen, Nanos(now)) {
            (interval, due) = (new.0, now + new.0);
        }
    }
    samples
}

#[test]
fn what_was_due_while_a_cpu_was_idle_is_not_made_up_for() {
    for (batch, slack) in [(1, 0.03), (10, 0.07)] {
        for cycle in [MEAN.0 / 2, MEAN.0, MEAN.0 * 101 / 100, MEAN.0 * 5, MEAN.0 * 37] {
            // What is silent for long, too, and looked at less often.
            for part in [2, 20] {
                let (lasts, mean) = (cycle / part, MEAN.0);
                let bursts =
                    Bursts { cycle, lasts, keep_flame_away: false, has_others: false, mean };
                let count: usize = (0..100).map(|seed| samples_of(bursts, seed, batch).len()).sum();
                let mean = count as f64 / 100.0 / (SPAN as f64 / part as f64);
                assert!((mean - 1.0).abs() < slack, "{batch} {cycle} {part} {mean}");
            }
        }
    }
}

/// Which part of the samples that there should be each tenth of a burst has.
fn tenths_of(bursts: Bursts) -> [f64; 10] {
    const SEEDS: u64 = 100;
    let mut counted = [0_u32; 10];
    let samples = (0..SEEDS).flat_map(|seed| samples_of(bursts, seed, 1));
    for time in samples.filter(|time| bursts.are_at(*time)) {
        counted[(time % bursts.cycle * 10 / bursts.lasts) as usize] += 1;
    }
    let busy = SPAN as f64 * bursts.lasts as f64 / bursts.cycle as f64;
    let expected = SEEDS as f64 * busy / 10.0;
    counted.map(|count| f64::from(count) / expected)
}

/// What runs first in a burst is seen as often as what runs last.
#[test]
fn all_parts_of_a_burst_are_seen_as_often_as_they_run() {
    for mean in [MEAN.0 / 10, MEAN.0] {
        for hundredths in [33, 101, 200, 500, 1500, 3700] {
            let cycle = mean * hundredths / 100;
            for lasts in [cycle / 2, cycle / 10] {
                let bursts =
                    Bursts { cycle, lasts, keep_flame_away: false, has_others: false, mean };
                let tenths = tenths_of(bursts);
                // Four standard errors of a tenth, and what short bursts and long rests are off by.
                let error = (10.0 * cycle as f64 / lasts as f64 / SPAN as f64 / 100.0).sqrt();
                let is_off = |seen: &f64| (seen - 1.0).abs() > 4.0 * error + 0.05;
                assert!(!tenths.iter().any(is_off), "{bursts:?}: {tenths:.2?}");
            }
        }
    }
}

/// So it is where bursts go before flame, which cannot draw an interval before they are over.
#[test]
fn no_part_of_a_burst_that_keeps_flame_away_is_favoured() {
    for (mean, has_others) in
        [(MEAN.0 / 10, false), (MEAN.0 / 10, true), (MEAN.0, false), (MEAN.0, true)]
    {
        for hundredths in [33, 101, 200, 500, 1500, 3700] {
            let cycle = mean * hundredths / 100;
            for lasts in [cycle * 2 / 5, cycle / 10] {
                let bursts = Bursts { cycle, lasts, keep_flame_away: true, has_others, mean };
                let tenths = tenths_of(bursts);
                let all = tenths.iter().sum::<f64>() / 10.0;
                let (first, last) = tenths.split_at(5);
                let halves = [first, last].map(|half| half.iter().sum::<f64>() / 5.0 / all);
                let is_off = |half: f64| (half - 1.0).abs() > 0.08;
                let what = format!("{bursts:?}: {halves:.2?} of {all:.2}");
                assert!((0.95..1.07).contains(&all) && !halves.into_iter().any(is_off), "{what}");
            }
        }
    }
}

#[test]
fn lost_records_do_not_raise_the_rate() {
    let now = Nanos(MEAN.0 * 5);
    let mean =
        mean_set_after(Seen { samples: 1, last: now, disturbed: true, ..Seen::default() }, now);
    assert!((mean - 1.0).abs() < 0.06, "{mean}");
}

#[test]
fn what_is_set_first_stays_near_the_mean_where_flame_looks_at_batches() {
    let first = |seed| Pacer::new(MEAN, 50, Some(seed)).start(Nanos(0)).0;
    let rates: f64 = (0..1000).map(|seed| MEAN.0 as f64 / first(seed) as f64).sum();
    // Rates from 0.7 to 1.3, within four standard errors.
    assert!((rates / 1000.0 - 1.0).abs() < 0.022, "{rates}");
}

#[test]
fn equal_seeds_draw_equal_intervals() {
    let samples = |seed| {
        let mut machine = Machine::new(1, seed);
        machine.run(MEAN.0 * 100, |_| 1000);
        machine.samples
    };
    assert_eq!(samples(3), samples(3));
    assert_ne!(samples(3), samples(4));
}
