//! What a record is and whom it is about, from its first bytes alone.
//!
//! A session that sees all tasks of a machine keeps those of its target: looking at the rest must
//! cost next to nothing, so nothing is decoded here. Source: the records' layouts in
//! perf_event_open(2).

use flame_profile::{FileOffset, Pid, ProcessAddress, Tid};
use linux_perf_event_reader::RecordType;
use linux_perf_event_reader::constants::{
    PERF_RECORD_MISC_COMM_EXEC, PERF_RECORD_MISC_MMAP_BUILD_ID, PERF_RECORD_MISC_SWITCH_OUT,
};

use crate::decode::RecordBytes;
use crate::images::FileId;

/// A record seen from afar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glance {
    /// A sample of a task.
    Sample {
        /// The process that ran; 0 for the idle task.
        pid: Pid,
        /// The thread that ran.
        tid: Tid,
    },
    /// Memory was mapped in a process.
    Mapping {
        /// The process.
        pid: Pid,
        /// First address, and where in the file that is.
        start: ProcessAddress,
        /// See there.
        offset: FileOffset,
        /// Which file it was, where the record says so by its inode.
        file: FileId,
    },
    /// A thread has a new name.
    Comm {
        /// Its process.
        pid: Pid,
        /// The thread.
        tid: Tid,
        /// Whether it was by running another program.
        exec: bool,
    },
    /// A task was started.
    Fork {
        /// Its process.
        pid: Pid,
        /// The task.
        tid: Tid,
        /// The process that started it: the same for a thread.
        parent: Pid,
    },
    /// A task ended.
    Exit {
        /// Its process.
        pid: Pid,
        /// The task.
        tid: Tid,
    },
    /// A thread was taken off its CPU, or got one.
    Switch {
        /// Its process; 0 for the idle task.
        pid: Pid,
        /// The thread.
        tid: Tid,
        /// Whether it got one.
        runs: bool,
    },
    /// Records were dropped before this one.
    Lost,
    /// The kernel stopped an event for a while.
    Throttle,
    /// The event goes on.
    Unthrottle,
    /// Anything else, or too short to tell.
    Other,
}

/// Where a sample says whose it is: behind its identifier and instruction pointer.
const SAMPLE_TASK_AT: usize = 16;

/// Where the other records do, from their end: before time, CPU and identifier.
const TASK_FROM_END: usize = 32;

impl Glance {
    /// Looks at a record of an event that was opened with [`crate::RecordLayout::sample_type`].
    pub fn at(record: &RecordBytes<'_>) -> Glance {
        Glance::within(record).unwrap_or(Glance::Other)
    }

    fn within(record: &RecordBytes<'_>) -> Option<Glance> {
        let word = |at| word_at(record, at);
        Some(match RecordType(record.record_type) {
            RecordType::SAMPLE => Glance::Sample {
                pid: Pid(word(SAMPLE_TASK_AT)?),
                tid: Tid(word(SAMPLE_TASK_AT + 4)?),
            },
            RecordType::MMAP | RecordType::MMAP2 => Glance::mapping(record)?,
            RecordType::COMM => Glance::Comm {
                pid: Pid(word(0)?),
                tid: Tid(word(4)?),
                exec: record.misc & PERF_RECORD_MISC_COMM_EXEC != 0,
            },
            RecordType::FORK => {
                Glance::Fork { pid: Pid(word(0)?), parent: Pid(word(4)?), tid: Tid(word(8)?) }
            }
            RecordType::EXIT => Glance::Exit { pid: Pid(word(0)?), tid: Tid(word(8)?) },
            RecordType::SWITCH | RecordType::SWITCH_CPU_WIDE => {
                let len = record.head.len() + record.tail.len();
                let at = len.checked_sub(TASK_FROM_END)?;
                let runs = record.misc & PERF_RECORD_MISC_SWITCH_OUT == 0;
                Glance::Switch { pid: Pid(word(at)?), tid: Tid(word(at + 4)?), runs }
            }
            RecordType::LOST => Glance::Lost,
            RecordType::THROTTLE => Glance::Throttle,
            RecordType::UNTHROTTLE => Glance::Unthrottle,
            _ => Glance::Other,
        })
    }

    fn mapping(record: &RecordBytes<'_>) -> Option<Glance> {
        let word = |at| word_at(record, at);
        let long = |at| {
            let [low, high] =
                if cfg!(target_endian = "little") { [at, at + 4] } else { [at + 4, at] };
            Some(u64::from(word(low)?) | u64::from(word(high)?) << 32)
        };
        let pid = Pid(word(0)?);
        let (start, offset) = (ProcessAddress(long(8)?), FileOffset(long(24)?));
        let has_inode = RecordType(record.record_type) == RecordType::MMAP2
            && record.misc & PERF_RECORD_MISC_MMAP_BUILD_ID == 0;
        let file = match has_inode {
            true => FileId::of_inode([word(32)?, word(36)?], long(40)?, Some(long(48)?)),
            false => FileId::None,
        };
        Some(Glance::Mapping { pid, start, offset, file })
    }
}

/// Four bytes of a record's body, in the machine's byte order, as the kernel wrote them.
fn word_at(record: &RecordBytes<'_>, at: usize) -> Option<u32> {
    if let Some(bytes) = record.head.get(at..at + 4) {
        return Some(u32::from_ne_bytes(bytes.try_into().ok()?));
    }
    let mut bytes = record.head.iter().chain(record.tail).skip(at);
    let mut word = [0; 4];
    for byte in &mut word {
        *byte = *bytes.next()?;
    }
    Some(u32::from_ne_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// Looks at a record at once, and wrapped around the end of a ring at every byte.
    #[track_caller]
    fn check(record_type: RecordType, misc: u16, words: &[u32], expect: Glance) {
        let body = bytes(words);
        for split in 0..=body.len() {
            let (head, tail) = body.split_at(split);
            let record = RecordBytes { record_type: record_type.0, misc, head, tail };
            assert_eq!(Glance::at(&record), expect, "split at {split}");
        }
    }

    #[test]
    fn records_tell_whom_they_are_about() {
        let (pid, tid) = (Pid(7), Tid(8));
        check(RecordType::SAMPLE, 0, &[0, 0, 1, 2, 7, 8, 0], Glance::Sample { pid, tid });
        let mapped = [7, 8, 0x1000, 1, 0x2000, 0, 0x3000, 2, 254, 1, 99, 0, 5, 0, 0, 0];
        let (start, offset) = (ProcessAddress(0x1_0000_1000), FileOffset(0x2_0000_3000));
        let file = FileId::Inode { major: 254, minor: 1, inode: 99, generation: Some(5) };
        check(RecordType::MMAP2, 0, &mapped, Glance::Mapping { pid, start, offset, file });
        let none = Glance::Mapping { pid, start, offset, file: FileId::None };
        check(RecordType::MMAP, 0, &mapped, none);
        check(RecordType::MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID, &mapped, none);
        check(RecordType::COMM, 0, &[7, 8], Glance::Comm { pid, tid, exec: false });
        let exec = PERF_RECORD_MISC_COMM_EXEC;
        check(RecordType::COMM, exec, &[7, 8], Glance::Comm { pid, tid, exec: true });
        check(RecordType::FORK, 0, &[7, 5, 8, 6], Glance::Fork { pid, tid, parent: Pid(5) });
        check(RecordType::EXIT, 0, &[7, 5, 8, 6], Glance::Exit { pid, tid });
        let switched = [7, 8, 1, 2, 0, 0, 3, 4];
        check(RecordType::SWITCH, 0, &switched, Glance::Switch { pid, tid, runs: true });
        let left = Glance::Switch { pid, tid, runs: false };
        check(RecordType::SWITCH, PERF_RECORD_MISC_SWITCH_OUT, &switched, left);
        let with_other = [&[5, 6][..], &switched].concat();
        check(RecordType::SWITCH_CPU_WIDE, 0, &with_other, Glance::Switch { pid, tid, runs: true });
        check(RecordType::LOST, 0, &[], Glance::Lost);
    }

    #[test]
    fn a_record_too_short_to_tell_is_another() {
        check(RecordType::SAMPLE, 0, &[0, 0, 1, 2, 7], Glance::Other);
        check(RecordType::FORK, 0, &[7, 5], Glance::Other);
        check(RecordType::MMAP2, 0, &[7, 8, 9], Glance::Other);
    }
}
