//! What was lost or is uncertain; travels with a profile into every output.

use std::collections::BTreeMap;
use std::fmt;

use crate::completion::{NotRead, StackCopies};
use crate::off_cpu::OffCpuTime;
use crate::scripts::ScriptEnd;
use crate::units::{Nanos, ValueType, Weight};

/// How the walk of one user stack ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StackEnd {
    /// At the thread's first function, which the unwind information names as outermost, or at the
    /// kernel's own root for a task without user stack.
    Root,
    /// At a root like that, but a frame on the way was guessed: found by its frame pointer or its
    /// looks in code that has no unwind information, or taken from another stack of the thread.
    /// Frames may be missing, or others may have been there.
    Guessed,
    /// The stack went on beyond the bytes that were copied.
    CopyTooShort,
    /// No unwind information covers an address, and no frame pointer led further.
    NoUnwindInfo,
    /// A register or memory value that the unwind rules need was not there or made no sense.
    BadValue,
    /// A runtime runs code on another stack than its caller's (Go's `systemstack`, calls of C), and
    /// nothing says where that one stands.
    OtherStack,
    /// The configured limit of frames was reached.
    FrameLimit,
    /// A frame-pointer chain ended: whether at the root cannot be known.
    ChainEnd,
    /// No user stack was asked for, or the kernel had none to give.
    NotRecorded,
}

impl StackEnd {
    /// Whether all frames up to the thread's root are there.
    pub fn is_complete(self) -> bool {
        self == StackEnd::Root
    }

    /// Whether frames are known to be missing, so that the stack must not look like a root.
    pub fn is_truncated(self) -> bool {
        use StackEnd::{BadValue, CopyTooShort, FrameLimit, NoUnwindInfo, OtherStack};
        matches!(self, CopyTooShort | NoUnwindInfo | BadValue | OtherStack | FrameLimit)
    }
}

impl fmt::Display for StackEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StackEnd::Root => "complete",
            StackEnd::Guessed => "with guessed frames",
            StackEnd::CopyTooShort => "stack copy too short",
            StackEnd::NoUnwindInfo => "no unwind information",
            StackEnd::BadValue => "unreadable stack",
            StackEnd::OtherStack => "callers on another stack",
            StackEnd::FrameLimit => "frame limit reached (--max-depth)",
            StackEnd::ChainEnd => "frame-pointer chain ended",
            StackEnd::NotRecorded => "no user stack",
        })
    }
}

/// Why an address has no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Missing {
    /// No file was mapped at the address.
    NotMapped,
    /// Anonymous memory that no perf-PID.map names: JIT code, most likely.
    NoPerfMap,
    /// The image's file is gone or cannot be opened.
    FileUnreadable,
    /// The file at the image's path is another one than was mapped.
    FileReplaced,
    /// The file is not an ELF image that could be read.
    NotElf,
    /// The image has its symbols, but none covers the address.
    NoSymbol,
    /// The image was stripped of its symbols; those that it exports do not cover the address.
    Stripped,
    /// /proc/kallsyms hides its addresses (kernel.kptr_restrict).
    KernelHidden,
    /// The kernel's symbols are those of another kernel than was recorded.
    OtherKernel,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Missing::NotMapped => "no file mapped there",
            Missing::NoPerfMap => "anonymous memory without a perf map",
            Missing::FileUnreadable => "file gone or unreadable",
            Missing::FileReplaced => "file replaced since it was mapped",
            Missing::NotElf => "not a readable ELF file",
            Missing::NoSymbol => "no symbol covers the address",
            Missing::Stripped => "stripped of its symbols",
            Missing::KernelHidden => "kernel addresses hidden",
            Missing::OtherKernel => "recorded on another kernel than runs here",
        })
    }
}

/// CPU time that the samples stand for, against what the kernel accounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Samples times the time that each stands for.
    pub sampled: Nanos,
    /// What the kernel says that the target used over the same span.
    pub accounted: Nanos,
}

impl Coverage {
    /// `sampled / accounted`; more than 1 is possible by sampling noise. 0 when nothing was used.
    pub fn fraction(self) -> f64 {
        Weight(self.sampled.0).share_of(Weight(self.accounted.0))
    }

    /// Whether it is a share of nothing: of no time at all, as of a machine that was idle by its ticks, or of so little,
    /// shown as 0.00 s, that there was no sample.
    pub fn is_of_nothing(self) -> bool {
        let is_little = self.sampled == Nanos(0) && self.accounted < Nanos(5_000_000);
        is_little || self.accounted == Nanos(0)
    }
}

/// What samples of an event stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occurrences {
    /// Which of the profile's events.
    pub event: usize,
    /// How often it happened by the samples alone: the sum of what each stood for.
    pub sampled: u64,
    /// How often it happened in the target, by the kernel's own counter.
    pub happened: u64,
    /// How many samples of equal weight would tell as much: (sum of weights)² / sum of squared weights.
    pub effective: u64,
}

impl Occurrences {
    /// What the samples stood for as a share of what happened.
    pub fn fraction(self) -> f64 {
        Weight(self.sampled).share_of(Weight(self.happened))
    }
}

/// Everything lost or uncertain about a profile. All counts start at zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Samples that are in the profile.
    pub samples: u64,
    /// Records that the kernel dropped because a ring was full: the larger of what LOST records
    /// said and what reading the events (PERF_FORMAT_LOST) said.
    pub lost_records: u64,
    /// How many of them are known to be samples: of any process, where CPUs were sampled.
    pub lost_samples: u64,
    /// How many are known to be side-band records: of processes, threads, their switches and
    /// mappings. What is in neither count is of events that write both, or of a kernel before 6.0,
    /// which does not count by event.
    pub lost_side_band: u64,
    /// How often the kernel throttled an event because samples came too fast.
    pub throttled: u64,
    /// For how long events were stopped by that, summed over CPUs.
    pub throttled_time: Nanos,
    /// For how long events were open while other events had the CPU's counter, summed over events.
    pub multiplexed_time: Nanos,
    /// Records that could not be decoded.
    pub undecodable_records: u64,
    /// Samples taken at an address where nothing was mapped.
    pub outside_mappings: u64,
    /// Tasks that the target started and that ended before a sample of them was taken, where
    /// sampling task by task does not see them.
    pub short_tasks: u64,
    /// Samples that were left out because a timer went on by an interval that was over: that of an idle
    /// CPU, or one that flame was late to set anew.
    pub stray_samples: u64,
    /// Lines of text input that could not be read.
    pub skipped_lines: u64,
    /// Samples of the idle task, which are left out of the profile.
    pub idle_samples: u64,
    /// Samples by how the walk of their user stack ended.
    pub stack_ends: BTreeMap<StackEnd, u64>,
    /// Samples whose stack reaches its root beyond the copy: it was read while the thread could not
    /// go on.
    pub read_on: u64,
    /// Samples whose stack copy was too short ([`StackEnd::CopyTooShort`]), by why they were not
    /// read to their end.
    pub not_read: BTreeMap<NotRead, u64>,
    /// How much of stacks was copied; all zero where none was asked for.
    pub stack_copies: StackCopies,
    /// Samples whose walk ended for lack of unwind information, by image path.
    pub no_unwind_info: BTreeMap<String, u64>,
    /// Frames without a name (counted once a sample they stand in), by image path and reason.
    pub unnamed: BTreeMap<(String, Missing), u64>,
    /// CPU time seen against CPU time used, for profiles of CPU time.
    pub coverage: Option<Coverage>,
    /// How often the event happened, for profiles of events that the kernel counts one by one, or the CPU: of several
    /// events the one of which the least was sampled.
    pub occurrences: Option<Occurrences>,
    /// How far the sum of all samples may be off, since few of many occurrences of different size were sampled: one
    /// standard deviation. 0 where each was sampled, or how many there were says what they add up to.
    pub standard_error: u64,
    /// All waits, for profiles of time off CPU.
    pub off_cpu: Option<OffCpuTime>,
    /// Samples that ran in interpreters, by language, and what is known of their programs' frames; or, where a profile
    /// shows that first, what they stand for: see `script_value`.
    pub scripts: BTreeMap<(String, ScriptEnd), u64>,
    /// What the numbers of `scripts` are; `None` where they are samples.
    pub script_value: Option<ValueType>,
    /// Anything else that whoever reads the profile must know, as whole sentences.
    pub notes: Vec<String>,
}

impl Health {
    /// The share of samples whose stack is complete, from 0 to 1, none of its frames guessed; samples
    /// without a user stack to walk ([`StackEnd::NotRecorded`]) do not count, nor those of frame
    /// pointers, which do not tell ([`StackEnd::ChainEnd`]). `None` when there are no others.
    pub fn complete_share(&self) -> Option<f64> {
        self.share_of_end(StackEnd::Root)
    }

    /// The share of samples whose stack reaches a root by guesses ([`StackEnd::Guessed`]), in the
    /// same way.
    pub fn guessed_share(&self) -> Option<f64> {
        self.share_of_end(StackEnd::Guessed)
    }

    fn share_of_end(&self, end: StackEnd) -> Option<f64> {
        let judged = self.walked().filter(|(end, _)| *end != StackEnd::ChainEnd);
        let walked: u64 = judged.map(|(_, count)| count).sum();
        let ended = self.stack_ends.get(&end).copied().unwrap_or(0);
        (walked > 0).then(|| ended as f64 / walked as f64)
    }

    /// Samples by how their walk ended, those that were walked at all.
    pub fn walked(&self) -> impl Iterator<Item = (StackEnd, u64)> + '_ {
        let ends = self.stack_ends.iter().map(|(end, count)| (*end, *count));
        ends.filter(|(end, _)| *end != StackEnd::NotRecorded)
    }

    /// Whether something was lost: records, or time in which an event that was open did not run.
    pub fn has_losses(&self) -> bool {
        let counts = [
            self.lost_records,
            self.throttled,
            self.throttled_time.0,
            self.multiplexed_time.0,
            self.undecodable_records,
        ];
        counts.iter().any(|count| *count > 0)
    }

    /// How many stacks were read on beyond their copies: the share of those that are shown. With wakers, more may have been
    /// read than are shown: then their number.
    pub fn read_on_text(&self) -> Option<String> {
        let shown = self.walked().map(|(_, count)| count).sum();
        match self.read_on {
            0 => None,
            count if count <= shown => Some(percent(Weight(count).share_of(Weight(shown)))),
            count => Some(format!("{count} stacks")),
        }
    }

    /// For each language the share of samples in its interpreter whose script stacks are whole.
    fn script_shares(&self) -> Vec<String> {
        let mut languages: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for ((language, end), count) in &self.scripts {
            let (whole, all) = languages.entry(language).or_default();
            *whole += if *end == ScriptEnd::Whole { *count } else { 0 };
            *all += *count;
        }
        let share = |(language, (whole, all)): (&str, (u64, u64))| {
            let share = percent(Weight(whole).share_of(Weight(all)));
            format!("{share} of {language} stacks whole")
        };
        languages.into_iter().map(share).collect()
    }

    /// One line for a footer: samples, completeness, loss, coverage.
    pub fn one_line(&self) -> String {
        let mut parts = vec![format!("{} samples", self.samples)];
        if let Some(share) = self.complete_share() {
            parts.push(format!(
                "{} of stacks complete{}",
                percent(share),
                self.read_on_text()
                    .map_or_else(String::new, |read| format!(" ({read} read on from the process)"))
            ));
        }
        if let Some(share) = self.guessed_share().filter(|share| *share > 0.0) {
            parts.push(format!("{} with guessed frames", percent(share)));
        }
        parts.extend(self.script_shares());
        parts.push(match self.lost_samples {
            0 => format!("{} lost", self.lost_records),
            samples => format!("{} lost ({samples} samples)", self.lost_records),
        });
        if self.throttled > 0 {
            let time = self.throttled_time.as_secs_f64();
            parts.push(format!("throttled {} times ({time:.3} s)", self.throttled));
        }
        if self.multiplexed_time > Nanos(0) {
            let time = self.multiplexed_time.as_secs_f64();
            parts.push(format!("multiplexed away {time:.3} s"));
        }
        if self.undecodable_records > 0 {
            parts.push(format!("{} records not understood", self.undecodable_records));
        }
        if self.outside_mappings > 0 {
            parts.push(format!("{} samples outside any mapping", self.outside_mappings));
        }
        if self.short_tasks > 0 {
            parts.push(format!("{} short-lived tasks not seen", self.short_tasks));
        }
        if self.stray_samples > 0 {
            parts.push(format!("{} surplus samples left out", self.stray_samples));
        }
        if self.skipped_lines > 0 {
            parts.push(format!("{} lines not readable", self.skipped_lines));
        }
        if let Some(coverage) = self.coverage.filter(|coverage| !coverage.is_of_nothing()) {
            parts.push(format!("coverage {}", percent(coverage.fraction())));
        }
        if let Some(seen) = self.occurrences {
            parts.push(format!("{} happened (by samples {})", seen.happened, seen.sampled));
        }
        if let Some(off_cpu) = self.off_cpu {
            parts.push(format!("off CPU {off_cpu}"));
        }
        parts.join(", ")
    }
}

/// A share as a percentage that says 100 % only when nothing at all is missing.
fn percent(share: f64) -> String {
    let shown = if share < 1.0 { (share * 1000.0).floor() / 10.0 } else { share * 100.0 };
    format!("{shown:.1} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_percent_is_never_rounded_up_to() {
        let mut health = Health { samples: 100_000, ..Health::default() };
        health.stack_ends.insert(StackEnd::Root, 99_999);
        health.stack_ends.insert(StackEnd::CopyTooShort, 1);
        assert_eq!(health.one_line(), "100000 samples, 99.9 % of stacks complete, 0 lost");
    }

    #[test]
    fn the_line_says_how_whole_the_stacks_of_scripts_are() {
        let mut health = Health { samples: 4, ..Health::default() };
        for (end, count) in [(ScriptEnd::Whole, 3), (ScriptEnd::NotRead, 1)] {
            health.scripts.insert(("python".to_owned(), end), count);
        }
        assert_eq!(health.one_line(), "4 samples, 75.0 % of python stacks whole, 0 lost");
    }

    #[test]
    fn chains_of_frame_pointers_are_not_judged() {
        let mut health = Health { samples: 10, ..Health::default() };
        health.stack_ends.insert(StackEnd::ChainEnd, 10);
        assert_eq!(health.complete_share(), None);
        health.stack_ends.insert(StackEnd::Root, 3);
        health.stack_ends.insert(StackEnd::BadValue, 1);
        assert_eq!(health.complete_share(), Some(0.75));
    }

    #[test]
    fn the_line_says_which_stacks_were_read_on() {
        let mut health = Health { samples: 200, ..Health::default() };
        health.stack_ends.insert(StackEnd::Root, 190);
        health.stack_ends.insert(StackEnd::Guessed, 10);
        health.read_on = 40;
        let expect = "200 samples, 95.0 % of stacks complete (20.0 % read on from the process), \
                      5.0 % with guessed frames, 0 lost";
        assert_eq!(health.one_line(), expect);
    }

    #[test]
    fn the_line_says_all_that_was_lost_and_nothing_that_was_not() {
        assert_eq!(Health::default().one_line(), "0 samples, 0 lost");
        let health = Health {
            samples: 7,
            lost_records: 9,
            lost_samples: 5,
            throttled: 3,
            throttled_time: Nanos(1_500_000),
            multiplexed_time: Nanos(2_500_000_000),
            undecodable_records: 1,
            outside_mappings: 2,
            short_tasks: 4,
            stray_samples: 6,
            skipped_lines: 8,
            coverage: Some(Coverage { sampled: Nanos(3_000), accounted: Nanos(4_000) }),
            occurrences: Some(Occurrences { event: 0, sampled: 10, happened: 20, effective: 0 }),
            off_cpu: Some(OffCpuTime { time: Nanos(1_000_000), waits: 2, ..Default::default() }),
            ..Health::default()
        };
        let expect = "7 samples, 9 lost (5 samples), throttled 3 times (0.002 s), \
                      multiplexed away 2.500 s, 1 records not understood, \
                      2 samples outside any mapping, 4 short-lived tasks not seen, \
                      6 surplus samples left out, 8 lines not readable, coverage 75.0 %, \
                      20 happened (by samples 10), off CPU 0.001 s in 2 waits";
        assert_eq!(health.one_line(), expect);
        let (sampled, accounted) = (Nanos(0), Nanos(1_000));
        let coverage = Some(Coverage { sampled, accounted });
        let idle = Health { coverage, ..Health::default() };
        assert_eq!(idle.one_line(), "0 samples, 0 lost");
    }

    #[test]
    fn each_kind_of_loss_alone_is_a_loss() {
        assert!(!Health { samples: 1, stray_samples: 1, ..Health::default() }.has_losses());
        let losses = [
            Health { lost_records: 1, ..Health::default() },
            Health { throttled: 1, ..Health::default() },
            Health { throttled_time: Nanos(1), ..Health::default() },
            Health { multiplexed_time: Nanos(1), ..Health::default() },
            Health { undecodable_records: 1, ..Health::default() },
        ];
        assert!(losses.iter().all(Health::has_losses));
    }

    #[test]
    fn more_than_all_is_shown_as_it_is() {
        assert_eq!(percent(1.0), "100.0 %");
        assert_eq!(percent(1.0625), "106.2 %");
        assert_eq!(percent(0.12999), "12.9 %");
    }

    #[test]
    fn coverage_of_no_time_is_none() {
        let coverage =
            |sampled, accounted| Coverage { sampled: Nanos(sampled), accounted: Nanos(accounted) };
        assert!(coverage(0, 4_999_999).is_of_nothing() && coverage(80_000_000, 0).is_of_nothing());
        assert!(!coverage(0, 5_000_000).is_of_nothing());
        assert!(!coverage(1, 4_999_999).is_of_nothing());
        assert_eq!(coverage(3, 4).fraction(), 0.75);
        assert_eq!(
            Occurrences { event: 0, sampled: 3, happened: 12, effective: 0 }.fraction(),
            0.25
        );
    }

    #[test]
    fn stacks_are_whole_truncated_or_of_unknown_end() {
        use StackEnd::{BadValue, ChainEnd, CopyTooShort, FrameLimit, Guessed};
        use StackEnd::{NoUnwindInfo, NotRecorded, OtherStack, Root};
        let ends = [
            (Root, true, false),
            (Guessed, false, false),
            (CopyTooShort, false, true),
            (NoUnwindInfo, false, true),
            (BadValue, false, true),
            (OtherStack, false, true),
            (FrameLimit, false, true),
            (ChainEnd, false, false),
            (NotRecorded, false, false),
        ];
        for (end, is_complete, is_truncated) in ends {
            assert_eq!((end.is_complete(), end.is_truncated()), (is_complete, is_truncated));
        }
        assert_eq!(FrameLimit.to_string(), "frame limit reached (--max-depth)");
        assert_eq!(Missing::Stripped.to_string(), "stripped of its symbols");
        // A profile whose stacks were not walked has no share of whole ones.
        let mut health = Health::default();
        health.stack_ends.insert(NotRecorded, 3);
        assert_eq!((health.complete_share(), health.guessed_share()), (None, None));
    }

    #[test]
    fn shares_of_languages_are_those_of_their_own_samples() {
        let mut health = Health::default();
        let scripts = [("node", ScriptEnd::Whole, 1), ("node", ScriptEnd::NotRead, 1)];
        let scripts = scripts.into_iter().chain([("python", ScriptEnd::NotRead, 2)]);
        for (language, end, count) in scripts {
            health.scripts.insert((language.to_owned(), end), count);
        }
        let expect = "0 samples, 50.0 % of node stacks whole, 0.0 % of python stacks whole, 0 lost";
        assert_eq!(health.one_line(), expect);
    }
}
