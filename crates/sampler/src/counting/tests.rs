use super::*;

/// One CPU as the kernel runs it: where in the sequence of occurrences the next sample is.
struct Machine {
    counting: Counting,
    /// What the kernel calls period_left, sample_period and last_period.
    left: u64,
    period: u64,
    last: u64,
    now: u64,
    happened: u64,
    /// What samples stand for, by the place that they are of.
    sampled: [u64; 4],
    samples: u64,
    pending: Vec<(u64, usize)>,
}

impl Machine {
    fn new(frequency: u64, seed: u64) -> Machine {
        let mut counting = Counting::new(frequency, Some(seed));
        let period = counting.start(Stage::Cpus, None, Nanos(1));
        Machine {
            counting,
            left: period,
            period,
            last: period,
            now: 1,
            happened: 0,
            sampled: [0; 4],
            samples: 0,
            pending: Vec::new(),
        }
    }

    /// An occurrence after this many nanoseconds.
    fn happen(&mut self, after: u64, place: usize) {
        self.now += after;
        self.happened += 1;
        if self.period == 1 || self.left <= 1 {
            self.left = self.last;
            self.last = self.period;
            self.pending.push((self.now, place));
        } else {
            self.left -= 1;
        }
    }

    /// flame looks, and releases what it saw.
    fn look(&mut self) {
        for (time, _) in &self.pending {
            self.counting.see(0, Nanos(*time));
        }
        self.now += 1;
        if self.counting.is_due(Nanos(self.now)) {
            self.counting.measure(Some(self.happened), Nanos(self.now));
        }
        if let Some(period) = self.counting.next_period(0, Nanos(self.now)) {
            (self.period, self.left) = (period, 0);
        }
        self.counting.end_look();
        for (time, place) in std::mem::take(&mut self.pending) {
            let weight = self.counting.weight_of(0, Nanos(time));
            self.sampled[place] += weight;
            self.samples += u64::from(weight > 0);
        }
    }
}

/// Occurrences in a pattern of places, at a rate; looked at every ten milliseconds.
#[track_caller]
fn check(rate: u64, pattern: &[usize], seconds: u64) -> u64 {
    let mut machine = Machine::new(1000, rate + pattern.len() as u64);
    let (mut truth, mut next_look) = ([0_u64; 4], 10_000_000);
    for n in 0..rate * seconds {
        let place = pattern[usize::try_from(n).unwrap() % pattern.len()];
        truth[place] += 1;
        machine.happen(1_000_000_000 / rate, place);
        if machine.now > next_look {
            machine.look();
            next_look = machine.now + 10_000_000;
        }
    }
    machine.look();
    let total: u64 = machine.sampled.iter().sum();
    let off = total as f64 / machine.happened as f64 - 1.0;
    assert!(off.abs() < 0.03, "{off} of {} by {} samples", machine.happened, machine.samples);
    for (sampled, truth) in machine.sampled.iter().zip(truth) {
        let expect = truth as f64 / machine.happened as f64;
        let share = *sampled as f64 / total as f64;
        let error = (expect * (1.0 - expect) / machine.samples as f64).sqrt();
        assert!((share - expect).abs() <= 3.0 * error, "{share} for {expect} ± {error}");
    }
    machine.samples
}

#[test]
fn samples_stand_for_what_happened_whatever_its_pattern() {
    for rate in [10, 1000, 50_000, 1_000_000] {
        check(rate, &[0, 0, 0, 1], 5);
        check(rate, &[0, 1, 2, 3, 0, 0], 5);
    }
    let long: Vec<usize> = (0..1000).map(|n| usize::from(n >= 750)).collect();
    check(1_000_000, &long, 5);
}

/// A server may well wait, read and write in turn: N is never 2, 3, 5 or 7.
#[test]
fn few_things_in_turn_are_not_in_step_with_the_samples() {
    for rate in [2500, 4000, 6000, 10_000, 20_000] {
        check(rate, &[0, 1, 2], 5);
        check(rate, &[0, 1, 2, 3, 3], 5);
        check(rate, &[0, 1, 2, 3, 3, 3, 3], 5);
    }
}

/// Two threads that wake each other: flame looks, and sets periods, always while the same one runs.
#[test]
fn who_runs_when_periods_are_set_has_no_more_than_its_share() {
    for (frequency, between_looks) in [(800, 8), (800, 7), (400, 8), (400, 5), (100, 8)] {
        let mut machine = Machine::new(frequency, 7);
        for n in 0..40_000 {
            machine.happen(1000, 0);
            machine.happen(999_000, 1);
            if n % between_looks == 0 {
                machine.look();
            }
        }
        machine.look();
        let [first, second, ..] = machine.sampled;
        let total = (first + second) as f64;
        let (share, off) = (first as f64 / total, total / machine.happened as f64 - 1.0);
        assert!((share - 0.5).abs() <= 0.01, "{share} at {frequency} Hz, looks {between_looks}");
        assert!(off.abs() < 0.03, "{off} at {frequency} Hz");
    }
}

#[test]
fn rare_occurrences_are_all_sampled_and_frequent_ones_as_often_as_asked_for() {
    assert_eq!(check(500, &[0], 4), 2000);
    let samples = check(1_000_000, &[0], 5);
    // Nothing is known of the rate in the first ten milliseconds.
    assert!((2500..20_000).contains(&samples), "{samples} at 1000 Hz for 5 s");
}

#[test]
fn a_period_that_has_become_too_long_is_given_up() {
    let mut machine = Machine::new(100, 3);
    for n in 0..2_000_000 {
        machine.happen(1000, 0);
        if n % 10_000 == 0 {
            machine.look();
        }
    }
    let before = machine.samples;
    // Ten a second now: each is to be seen soon.
    for _ in 0..200 {
        machine.happen(100_000_000, 1);
        machine.look();
    }
    assert!(machine.samples - before > 150, "{} of 200", machine.samples - before);
    assert!((100..300).contains(&machine.sampled[1]), "{:?}", machine.sampled);
}

#[test]
fn what_a_flood_left_out_is_spread_over_its_samples() {
    let mut counting = Counting::new(99, Some(1));
    counting.begin(Nanos(0));
    for time in 1..=100 {
        counting.see(0, Nanos(time));
    }
    assert!(!counting.is_flooded(Nanos(100)));
    counting.end_look();
    for time in 101..=500 {
        counting.see(usize::from(time % 2 == 0), Nanos(time));
    }
    assert!(counting.is_flooded(Nanos(500)));
    counting.spread(1000);
    counting.end_look();
    let weights = (1..=500)
        .map(|time| counting.weight_of(usize::from(time > 100 && time % 2 == 0), Nanos(time)));
    let weights: Vec<u64> = weights.collect();
    assert_eq!(weights[..100].iter().sum::<u64>(), 100);
    assert_eq!(weights.iter().sum::<u64>(), 1000);
    assert!(weights[100..].iter().all(|weight| [2, 3].contains(weight)));
}

#[test]
fn periods_are_primes() {
    let primes: Vec<u64> = [0, 3, 4, 8, 9, 15, 24, 1000].map(prime_from).into();
    assert_eq!(primes, [3, 3, 5, 11, 11, 17, 29, 1009]);
}
