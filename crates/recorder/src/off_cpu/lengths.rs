//! Waits of a thread by how long they took, of which the sampled stand for others of about their length.
//!
//! What is about as long is seen from the lengths themselves: they are grouped where the thread has waits,
//! and parted where it has none. Limits that are fixed would part what belongs together: a wait whose stack
//! is read is some 25 us shorter than others, and near a limit that makes it one of another group.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use flame_profile::whole;

use super::Seen;

/// After this many samples it is seen which groups have enough of them.
pub(super) const BATCH: usize = 64;

/// This many samples of a group share what was not sampled of it meanwhile. Few would take what came since the last
/// ones, whatever their own times: a short one among long ones as much as these.
const ENOUGH: usize = 16;

/// So many samples wait at most until there are enough of their group.
const MOST: usize = 1024;

/// Lengths with this many empty steps between them belong to different groups: more than a factor of two.
const GAP: u32 = 4;

/// A group spans fewer steps: a factor of 16.
const SPAN: u32 = 16;

/// The logarithm of a length, four steps to a factor of two.
type Step = u32;

/// Waits, or times of being preempted.
#[derive(Debug)]
pub(super) struct Lengths<S> {
    /// What was not sampled since it was last shared out, and how many waits that was.
    unsampled: BTreeMap<Step, (u64, u64)>,
    /// Samples that were not handed out yet, with their own times.
    batch: Vec<Sampled<S>>,
    /// How many came since it was looked for groups that have enough of them.
    new: usize,
    /// The last sample that was handed out.
    last: BTreeMap<Step, Sampled<S>>,
    /// Waits at random of those that do not count as sampled though it is known where they were, and how many there were:
    /// they stand for others only where there is no sample.
    partly: Vec<Sampled<S>>,
    partly_known: usize,
    /// How far the time of a part of what was handed out may be off: the variance.
    variance: f64,
}

/// A wait of which all was sampled that is asked for.
#[derive(Clone, Debug)]
pub(super) struct Sampled<S> {
    pub(super) seen: Seen<S>,
    /// For how long the thread had no CPU.
    pub(super) time: u64,
    /// That without what it was kept from its CPU for: its length.
    pub(super) own: u64,
    /// How much of that is shown.
    pub(super) shown: u64,
}

/// What is handed out: what was seen, or `None` where no wait of that length was sampled, and for how long.
pub(super) type Shares<S> = Vec<(Option<Seen<S>>, u64)>;

impl<S> Sampled<S> {
    /// The same, for this much time without a CPU.
    fn of(self, time: u64) -> (Option<Seen<S>>, u64) {
        let shown = u128::from(self.shown) * u128::from(time) / u128::from(self.time.max(1));
        (Some(self.seen), u64::try_from(shown).unwrap_or(u64::MAX))
    }

    fn step(&self) -> Step {
        step(self.own)
    }
}

impl<S> Default for Lengths<S> {
    fn default() -> Self {
        Lengths {
            unsampled: BTreeMap::new(),
            batch: Vec::new(),
            new: 0,
            last: BTreeMap::new(),
            partly: Vec::new(),
            partly_known: 0,
            variance: 0.0,
        }
    }
}

impl<S: Clone> Lengths<S> {
    /// Takes a sample; what is handed out by that.
    pub(super) fn sampled(&mut self, wait: Sampled<S>) -> Shares<S> {
        // Nothing was left out before it: it stands for itself, whatever is left out later.
        if self.is_first(wait.step()) {
            return vec![(Some(wait.seen), wait.shown)];
        }
        self.batch.push(wait);
        self.new += 1;
        if self.new < BATCH {
            return Vec::new();
        }
        self.new = 0;
        self.shared_out(if self.batch.len() < MOST { ENOUGH } else { 1 })
    }

    /// Takes a wait of which not all was sampled that is asked for.
    pub(super) fn not_sampled(&mut self, wait: Sampled<S>) {
        let step = wait.step();
        let (time, waits) = self.unsampled.entry(step).or_default();
        *time += wait.time;
        *waits += 1;
        if wait.seen.stack.is_none() {
            return;
        }
        self.partly_known += 1;
        if self.partly.len() < BATCH {
            self.partly.push(wait);
        } else if let Some(place) = self.partly.get_mut(fastrand::usize(..self.partly_known)) {
            *place = wait;
        }
    }

    fn is_first(&self, step: Step) -> bool {
        let near = step.saturating_sub(GAP)..=step + GAP;
        self.unsampled.range(near.clone()).next().is_none()
            && !self.batch.iter().any(|sample| near.contains(&sample.step()))
    }

    /// The samples of groups that have so many, each with its part of what was not sampled of its group.
    fn shared_out(&mut self, enough: usize) -> Shares<S> {
        let groups = self.groups([]);
        let mut batch = std::mem::take(&mut self.batch);
        let mut shares = Vec::with_capacity(batch.len());
        for group in groups {
            let is_own = |sample: &mut Sampled<S>| group.contains(&sample.step());
            let own: Vec<Sampled<S>> = batch.extract_if(.., is_own).collect();
            if own.len() < enough {
                self.batch.extend(own);
            } else {
                self.share_out(&group, own, &mut shares);
            }
        }
        shares
    }

    /// How far the time of a part of what was handed out since this was asked last may be off: the variance.
    pub(super) fn take_variance(&mut self) -> f64 {
        std::mem::take(&mut self.variance)
    }

    /// The same of a thread that has ended: what of it was not handed out yet.
    pub(super) fn rest(&mut self) -> Shares<S> {
        let mut shares = self.shared_out(1);
        let groups = self.groups(self.last.keys().copied());
        for group in groups {
            let (left, waits) = self.take_unsampled(&group);
            if left == 0 {
                continue;
            }
            let last = self.last.range(group.clone()).map(|(_, last)| last.clone());
            let mut known: Vec<Sampled<S>> = last.collect();
            // The last ones of each length are no draw from all.
            let mut drawn_from = None;
            if known.is_empty() {
                known = self.partly.extract_if(.., |wait| group.contains(&wait.step())).collect();
                drawn_from = Some(waits);
            }
            if known.is_empty() {
                shares.push((None, left));
                continue;
            }
            let parts = parts(left, drawn_from, &known);
            self.variance += variance(left, waits, &parts);
            divide(left, known, &parts, &mut shares);
        }
        shares
    }

    /// Gives the samples of a group what was not sampled of it.
    fn share_out(
        &mut self,
        group: &RangeInclusive<Step>,
        samples: Vec<Sampled<S>>,
        shares: &mut Shares<S>,
    ) {
        let Some(last) = samples.last() else { return };
        self.last.insert(last.step(), last.clone());
        let (unsampled, waits) = self.take_unsampled(group);
        let all = samples.iter().fold(unsampled, |all, sample| all.saturating_add(sample.time));
        let parts = parts(all, Some(waits + samples.len() as u64), &samples);
        self.variance += variance(unsampled, waits, &parts);
        divide(all, samples, &parts, shares);
    }

    /// The time of a group of which no sample was taken, and how many waits that was.
    fn take_unsampled(&mut self, group: &RangeInclusive<Step>) -> (u64, u64) {
        let mut all = (0, 0);
        self.unsampled.retain(|step, (time, waits)| {
            let is_own = group.contains(step);
            if is_own {
                all = (all.0 + *time, all.1 + *waits);
            }
            !is_own
        });
        all
    }

    /// Where the waits lie of which something is to be handed out, and these steps besides.
    fn groups(&self, steps: impl IntoIterator<Item = Step>) -> Vec<RangeInclusive<Step>> {
        let mut waits: BTreeMap<Step, u64> = steps.into_iter().map(|step| (step, 0)).collect();
        for (step, (_, count)) in &self.unsampled {
            *waits.entry(*step).or_default() += count;
        }
        for sample in &self.batch {
            *waits.entry(sample.step()).or_default() += 1;
        }
        let steps: Vec<(Step, u64)> = waits.into_iter().collect();
        let mut groups = Vec::new();
        for near in steps.chunk_by(|(a, _), (b, _)| b - a <= GAP) {
            part(near, &mut groups);
        }
        groups
    }
}

/// Gives samples a time, by parts that are known of each.
fn divide<S>(time: u64, samples: Vec<Sampled<S>>, parts: &[f64], shares: &mut Shares<S>) {
    let all: f64 = parts.iter().sum();
    let (mut seen, mut given) = (0.0, 0);
    for (sample, part) in samples.into_iter().zip(parts) {
        seen += part;
        let until = if all > 0.0 { whole(time as f64 * (seen / all)).min(time) } else { 0 };
        let part = until - std::mem::replace(&mut given, until);
        shares.push(sample.of(part));
    }
}

/// What each sample stands for of the time of all waits. `drawn_from` says how many those are, if the samples were drawn from
/// them.
fn parts<S>(time: u64, drawn_from: Option<u64>, samples: &[Sampled<S>]) -> Vec<f64> {
    let unbiased = drawn_from.and_then(|waits| unbiased_parts(time, waits, samples));
    unbiased.unwrap_or_else(|| samples.iter().map(|sample| sample.time as f64).collect())
}

/// What each of a few samples stands for, of a time that so many waits took. By its own time alone a short one has too much:
/// of waits of 31 and 57 ms that come as often, one sample has all of the time in either case, which is half of it on average,
/// though a third is due to the short ones. This is Hartley and Ross's estimate by the mean of ratios without its bias.
/// `None` where it would be less than nothing for one of them, as it may be if lengths differ much.
fn unbiased_parts<S>(time: u64, waits: u64, samples: &[Sampled<S>]) -> Option<Vec<f64>> {
    let number = samples.len() as f64;
    let mean = samples.iter().map(|sample| sample.time as f64).sum::<f64>() / number;
    let others = (number - 1.0).max(1.0);
    let each = waits.saturating_sub(1) as f64 / others;
    let part = |sample: &Sampled<S>| time as f64 / number + each * (sample.time as f64 - mean);
    let parts: Vec<f64> = samples.iter().map(part).collect();
    parts.iter().all(|part| *part >= 0.0).then_some(parts)
}

/// How far a part of a time may be off that so many waits took, and that is divided among samples by such parts: the variance of
/// one half of it. The samples are a draw, and so are those waits: few of them may be of other functions than most.
fn variance(time: u64, waits: u64, parts: &[f64]) -> f64 {
    let (sum, squares) =
        (parts.iter().sum::<f64>(), parts.iter().map(|part| part * part).sum::<f64>());
    let of_samples = if sum > 0.0 { squares / (sum * sum) } else { 0.0 };
    (time as f64 / 2.0).powi(2) * (of_samples + 1.0 / waits.max(1) as f64)
}

/// Parts steps, with the number of waits at each, where the fewest lie, if they span too much; not near their ends.
fn part(steps: &[(Step, u64)], groups: &mut Vec<RangeInclusive<Step>>) {
    let (Some(&(first, _)), Some(&(last, _))) = (steps.first(), steps.last()) else { return };
    if last - first < SPAN {
        groups.push(first..=last);
        return;
    }
    let waits = |step| match steps.binary_search_by_key(&step, |(step, _)| *step) {
        Ok(at) => steps[at].1,
        Err(_) => 0,
    };
    let quarter = (last - first) / 4;
    let middle = (first + last) / 2;
    let crossing = |step: &Step| (waits(*step) + waits(*step + 1), step.abs_diff(middle));
    let limit = (first + quarter..last - quarter).min_by_key(crossing).unwrap_or(middle);
    let (below, above) = steps.split_at(steps.partition_point(|(step, _)| *step <= limit));
    part(below, groups);
    part(above, groups);
}

/// Nanoseconds to quarters of an octave.
fn step(length: u64) -> Step {
    let length = length.max(4);
    let octave = length.ilog2();
    let quarter = (length >> (octave - 2)) & 3;
    octave * 4 + u32::try_from(quarter).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_of_two_has_four_steps() {
        let steps = [0, 4, 5, 6, 7, 8, 10, 16, 1024, 1280, u64::MAX].map(step);
        assert_eq!(steps, [8, 8, 9, 10, 11, 12, 13, 16, 40, 41, 255]);
    }

    fn wait(name: &'static str, own: u64) -> Sampled<&'static str> {
        let seen = Seen { stack: Some(name), waker: None };
        Sampled { seen, time: own, own, shown: own }
    }

    fn unseen(own: u64) -> Sampled<&'static str> {
        Sampled { seen: Seen { stack: None, waker: None }, ..wait("", own) }
    }

    /// By name, in thousandths of all.
    fn shares(
        waits: impl Iterator<Item = (bool, &'static str, u64)>,
    ) -> BTreeMap<&'static str, u64> {
        let mut lengths = Lengths::default();
        let (mut all, mut waited) = (Vec::new(), 0);
        for (is_sampled, name, own) in waits {
            waited += own;
            if is_sampled {
                all.extend(lengths.sampled(wait(name, own)));
            } else {
                lengths.not_sampled(unseen(own));
            }
        }
        all.extend(lengths.rest());
        assert_eq!(all.iter().map(|(_, time)| time).sum::<u64>(), waited);
        let mut shares = BTreeMap::new();
        for (seen, time) in all {
            let name = seen.and_then(|seen| seen.stack).unwrap_or("not sampled");
            *shares.entry(name).or_insert(0) += time;
        }
        shares.values_mut().for_each(|time| *time = *time * 1000 / waited);
        shares
    }

    /// Every seventh is sampled, and shorter by that.
    fn in_turn(lengths: &'static [(&'static str, u64)], less: u64) -> BTreeMap<&'static str, u64> {
        let turns = lengths.iter().cycle().enumerate().take(7 * 3000);
        shares(turns.map(|(at, (name, own))| {
            let is_sampled = at % 7 == 6;
            (is_sampled, *name, own - if is_sampled { less } else { 0 })
        }))
    }

    /// 262 us is where a factor of four from 1 ns on has a limit.
    #[test]
    fn waits_keep_their_shares_though_those_that_are_sampled_are_shorter() {
        let expect = BTreeMap::from([("a", 239), ("b", 336), ("c", 425)]);
        let seen = in_turn(&[("a", 270_000), ("b", 380_000), ("c", 480_000)], 25_000);
        for (name, share) in expect {
            assert!(seen[name].abs_diff(share) <= 8, "{name}: {seen:?}");
        }
    }

    #[test]
    fn long_waits_do_not_stand_for_short_ones() {
        let waits = || [("short", 50_000), ("long", 2_000_000)].into_iter();
        let turns = waits().cycle().enumerate().take(5000);
        // All of the long ones are sampled, and one in ten of the short ones.
        let turns = turns.map(|(at, (name, own))| (name == "long" || at % 20 == 0, name, own));
        assert_eq!(shares(turns), BTreeMap::from([("long", 975), ("short", 24)]));
        // Of the long ones none is.
        let turns = waits().cycle().enumerate().take(5000);
        let turns = turns.map(|(at, (name, own))| (name == "short" && at % 20 == 0, name, own));
        assert_eq!(shares(turns), BTreeMap::from([("not sampled", 975), ("short", 24)]));
    }

    /// Few of many calls are sampled, and few of those are the long ones, some short ones being as long.
    #[test]
    fn rare_long_waits_near_the_longest_of_many_short_ones_keep_their_time() {
        let mut random = fastrand::Rng::with_seed(7);
        let waits = (0..200_000).map(|at| {
            let (name, own) = match (at % 100, random.u64(..100)) {
                (99, _) => ("long", random.u64(90_000..250_000)),
                (_, 0) => ("short", random.u64(20_000..130_000)),
                _ => ("short", random.u64(2000..4000)),
            };
            (name, own)
        });
        let waits: Vec<_> = waits.collect();
        let sum = |name| waits.iter().filter(|(n, _)| *n == name).map(|(_, own)| own).sum::<u64>();
        let truth = sum("long") * 1000 / (sum("long") + sum("short"));
        let mut seen = Vec::new();
        for _ in 0..20 {
            let sampled = waits.iter().map(|(name, own)| (random.u64(..300) == 0, *name, *own));
            seen.push(shares(sampled)["long"]);
        }
        let mean = seen.iter().sum::<u64>() / seen.len() as u64;
        assert!(mean.abs_diff(truth) < 30, "{mean} of {truth}: {seen:?}");
    }

    /// Of two functions that wait about as long: what is said against how far their shares are off on average.
    #[test]
    fn how_far_shares_may_be_off_is_about_right() {
        check_deviation(8000, 0.025);
        // What is not sampled may be of few functions by chance, however many samples there are.
        check_deviation(400, 0.8);
    }

    #[track_caller]
    fn check_deviation(waits: u32, sampled: f64) {
        let mut random = fastrand::Rng::with_seed(3);
        let (mut squares, mut said) = (0.0, 0.0);
        const TRIES: u32 = 60;
        for _ in 0..TRIES {
            let mut lengths = Lengths::default();
            let (mut all, mut truth) = (Vec::new(), 0_u64);
            for _ in 0..waits {
                let (own, is_a) = (random.u64(100_000..400_000), random.bool());
                truth += if is_a { own } else { 0 };
                if random.f64() < sampled {
                    all.extend(lengths.sampled(wait(if is_a { "a" } else { "b" }, own)));
                } else {
                    lengths.not_sampled(unseen(own));
                }
            }
            all.extend(lengths.rest());
            let is_a = |seen: &Option<Seen<_>>| seen.as_ref().is_some_and(|s| s.stack == Some("a"));
            let seen: u64 = all.iter().filter(|(seen, _)| is_a(seen)).map(|(_, time)| time).sum();
            squares += (seen as f64 - truth as f64).powi(2);
            said += lengths.take_variance();
        }
        let ratio = (said / squares).sqrt();
        assert!((0.7..1.5).contains(&ratio), "{ratio}");
    }

    /// Many threads, of each of which a few waits are known.
    #[test]
    fn few_samples_of_a_thread_do_not_give_short_waits_too_much() {
        let mut random = fastrand::Rng::with_seed(5);
        let (mut seen, mut truth) = (0, 0);
        for _ in 0..2000 {
            let mut lengths = Lengths::default();
            lengths.not_sampled(unseen(31));
            let known = random.usize(2..7);
            let waits: Vec<_> = (0..80).map(|_| if random.bool() { 31 } else { 57 }).collect();
            truth += 31 + waits.iter().filter(|own| **own == 31).sum::<u64>();
            let mut all = Vec::new();
            for (at, own) in waits.into_iter().enumerate() {
                let name = if own == 31 { "short" } else { "long" };
                match at < known {
                    true => all.extend(lengths.sampled(wait(name, own))),
                    false => lengths.not_sampled(unseen(own)),
                }
            }
            all.extend(lengths.rest());
            let is_short =
                |seen: &Option<Seen<_>>| seen.as_ref().is_some_and(|s| s.stack == Some("short"));
            seen +=
                all.iter().filter(|(seen, _)| is_short(seen)).map(|(_, time)| time).sum::<u64>();
        }
        let off = seen as f64 / truth as f64 - 1.0;
        assert!(off.abs() < 0.03, "{off:.3}");
    }

    #[test]
    fn lengths_without_gaps_are_parted_where_the_fewest_lie() {
        let parted = |steps: RangeInclusive<Step>, waits: &dyn Fn(Step) -> u64| {
            let mut groups = Vec::new();
            part(&steps.map(|step| (step, waits(step))).collect::<Vec<_>>(), &mut groups);
            groups
        };
        assert_eq!(parted(40..=60, &|_| 5), [40..=50, 51..=60]);
        let one_is_low = |step| u64::from(step != 47) * 5 + 1;
        assert_eq!(parted(40..=60, &one_is_low), [40..=47, 48..=60]);
        assert_eq!(parted(40..=55, &|_| 5), [40..=55]);
        assert!(parted(RangeInclusive::new(1, 0), &|_| 5).is_empty());
    }
}
