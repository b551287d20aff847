//! Samples in the order in which they were taken, a few bytes each.
//!
//! A row of a profile sums up all samples of a thread and stack; this says when each was taken, and
//! what it stood for. Nothing else in the model knows time.

use crate::ids::Cpu;
use crate::units::Nanos;

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedSample {
    /// When it was taken, since the first one, to a microsecond. A sample of a wait is taken at its
    /// end.
    pub time: Nanos,
    /// The position of its thread and stack among those of the profile.
    pub row: usize,
    /// The CPU that it was taken on, where that is known.
    pub cpu: Option<Cpu>,
    /// Which of the sampled events it is of.
    pub event: usize,
    /// What it stood for when it was taken.
    pub weight: u64,
}

/// Samples, nearly in order of time: what had to wait for its names comes late.
///
/// Differences of times, rows, CPUs and weights are written in as few bytes as they need.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    bytes: Vec<u8>,
    len: usize,
    last: Last,
}

/// No recording takes ten years.
const LONGEST: Nanos = Nanos(10 * 366 * 24 * 3600 * 1_000_000_000);

/// What the last sample had: its time in microseconds, and its weight.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    time: u64,
    weight: u64,
}

impl Timeline {
    /// Adds a sample.
    pub fn push(&mut self, sample: TimedSample) {
        let time = sample.time.0 / 1000;
        self.write(zigzag(time, self.last.time));
        self.write(sample.row as u64);
        self.write(sample.cpu.map_or(0, |cpu| u64::from(cpu.0) + 1));
        self.write(sample.event as u64);
        self.write(zigzag(sample.weight, self.last.weight));
        self.last = Last { time, weight: sample.weight };
        self.len += 1;
    }

    /// The samples.
    pub fn iter(&self) -> impl Iterator<Item = TimedSample> + '_ {
        let (mut bytes, mut last) = (&self.bytes[..], Last::default());
        (0..self.len).map_while(move |_| {
            let mut next = || read(&mut bytes);
            let [time, row, cpu, event, weight] = [next()?, next()?, next()?, next()?, next()?];
            last.time = unzigzag(time, last.time);
            last.weight = unzigzag(weight, last.weight);
            let cpu = cpu.checked_sub(1).and_then(|cpu| u32::try_from(cpu).ok()).map(Cpu);
            let (row, event) = (usize::try_from(row).ok()?, usize::try_from(event).ok()?);
            let (time, weight) = (Nanos(last.time.saturating_mul(1000)), last.weight);
            Some(TimedSample { time, row, cpu, event, weight })
        })
    }

    /// The same with other positions; samples of rows that have none are left out.
    pub fn with_rows(&self, rows: &[Option<usize>]) -> Timeline {
        let mut timeline = Timeline::default();
        for sample in self.iter() {
            if let Some(row) = rows.get(sample.row).copied().flatten() {
                timeline.push(TimedSample { row, ..sample });
            }
        }
        timeline
    }

    /// The same, where the samples of an event stand for `to` for each `from` that they stood for.
    pub fn scaled(&self, event: usize, from: u64, to: u64) -> Timeline {
        let mut timeline = Timeline::default();
        // What rounding takes from one sample the next ones get.
        let (mut seen, mut given) = (0_u128, 0_u128);
        for mut sample in self.iter() {
            if sample.event == event && from > 0 {
                seen += u128::from(sample.weight);
                let until = seen * u128::from(to) / u128::from(from);
                sample.weight = u64::try_from(until - given).unwrap_or(u64::MAX);
                given = until;
            }
            timeline.push(sample);
        }
        timeline
    }

    /// The samples as bytes, to be saved.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The samples from such bytes, of a profile with that many rows. `None` if the bytes end within a
    /// sample, or have a row that does not exist or a time that is out of range.
    pub fn from_bytes(bytes: &[u8], rows: usize) -> Option<Timeline> {
        // Each sample has five numbers, and each number one byte that ends it.
        let ends = bytes.iter().filter(|byte| **byte & 0x80 == 0).count();
        let written = Timeline { bytes: bytes.to_vec(), len: ends / 5, last: Last::default() };
        let mut timeline = Timeline::default();
        let is_possible = |sample: &TimedSample| sample.row < rows && sample.time < LONGEST;
        written.iter().filter(is_possible).for_each(|sample| timeline.push(sample));
        let is_whole = ends % 5 == 0 && bytes.last().is_none_or(|byte| byte & 0x80 == 0);
        (is_whole && timeline.len == written.len).then_some(timeline)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many bytes they take.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Seven bits a byte, the lowest first; all but the last have the eighth.
    fn write(&mut self, mut number: u64) {
        while number > 0x7f {
            self.bytes.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.bytes.push(number.to_le_bytes()[0]);
    }
}

fn read(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0_u64, 0);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
    }
}

/// A difference of either sign as a small number.
fn zigzag(now: u64, before: u64) -> u64 {
    let difference = now.wrapping_sub(before).cast_signed();
    ((difference << 1) ^ (difference >> 63)).cast_unsigned()
}

fn unzigzag(number: u64, before: u64) -> u64 {
    let difference = (number >> 1) ^ (number & 1).wrapping_neg();
    before.wrapping_add(difference)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(time: u64, row: usize, weight: u64) -> TimedSample {
        TimedSample { time: Nanos(time), row, cpu: Some(Cpu(3)), event: 0, weight }
    }

    #[test]
    fn samples_come_back_as_they_went_in() {
        let all = [
            sample(5_000, 0, 1),
            sample(1_000_000_000_000_000, 70_000, u64::MAX),
            // One that came late.
            sample(999_999_999_000_000, 3, 0),
            TimedSample { cpu: None, event: 2, ..sample(0, 1, 10_101_010) },
        ];
        let mut timeline = Timeline::default();
        all.iter().for_each(|sample| timeline.push(*sample));
        assert_eq!(timeline.iter().collect::<Vec<_>>(), all);
        assert_eq!((timeline.len(), timeline.is_empty()), (4, false));
        assert!(Timeline::default().is_empty());
        let of_three = timeline.with_rows(&[Some(9), None, None, Some(1)]);
        let rows: Vec<usize> = of_three.iter().map(|sample| sample.row).collect();
        assert_eq!(rows, [9, 1]);
    }

    #[test]
    fn samples_of_an_event_are_scaled_and_their_sum_is_not_rounded_away() {
        let mut timeline = Timeline::default();
        let weights = [(0, 3), (1, 50), (0, 3), (0, 4)];
        for (time, (event, weight)) in (0..).zip(weights) {
            timeline.push(TimedSample { event, ..sample(time, 7, weight) });
        }
        let weights =
            |timeline: &Timeline| -> Vec<u64> { timeline.iter().map(|s| s.weight).collect() };
        assert_eq!(weights(&timeline.scaled(0, 10, 15)), [4, 50, 5, 6]);
        assert_eq!(weights(&timeline.scaled(1, 50, 7)), [3, 7, 3, 4]);
        assert_eq!(weights(&timeline.scaled(0, 0, 7)), [3, 50, 3, 4]);
        let other = timeline.scaled(0, 10, 15);
        assert!(
            other
                .iter()
                .zip(timeline.iter())
                .all(|(a, b)| (a.time, a.row, a.cpu) == (b.time, b.row, b.cpu))
        );
    }

    #[test]
    fn an_hour_of_64_cpus_fits_into_200_megabytes() {
        // 99 samples a second and CPU, a hundred thousand of the 22.8 million.
        let mut timeline = Timeline::default();
        for i in 0..100_000_u64 {
            let (time, row) = (i * 157_828 + i * 7919 % 100_000, i * 31 % 20_000);
            let cpu = Some(Cpu((i % 64) as u32));
            let weight = 10_101_010;
            timeline.push(TimedSample {
                time: Nanos(time),
                row: row as usize,
                cpu,
                event: 0,
                weight,
            });
        }
        assert_eq!(timeline.byte_len(), 717_442, "as few as the numbers need");
        let bytes = timeline.byte_len() as f64 / 100_000.0 * 22_809_600.0;
        assert!(bytes < 200e6, "{bytes}");
    }

    #[test]
    fn what_was_written_down_is_read_again_or_refused() {
        let mut timeline = Timeline::default();
        let samples = [sample(5_000, 0, 7), sample(3_000, 1, 900), sample(90_000_000, 1, 7)];
        samples.iter().for_each(|sample| timeline.push(*sample));
        let read = Timeline::from_bytes(timeline.as_bytes(), 2).unwrap();
        assert_eq!(read.iter().collect::<Vec<_>>(), samples);
        assert!(Timeline::from_bytes(timeline.as_bytes(), 1).is_none());
        for end in 1..timeline.byte_len() {
            let cut = Timeline::from_bytes(&timeline.as_bytes()[..end], 2);
            assert!(cut.is_none_or(|cut| cut.len() < 3), "{end}");
        }
        assert!(Timeline::from_bytes(&[0xff; 60], 2).is_none());
        // Ten years of 366 days, in nanoseconds.
        for (time, is_believed) in
            [(316_223_999_999_999_000, true), (316_224_000_000_000_000, false)]
        {
            let mut long = Timeline::default();
            long.push(sample(time, 0, 1));
            assert_eq!(Timeline::from_bytes(long.as_bytes(), 2).is_some(), is_believed, "{time}");
        }
    }
}
