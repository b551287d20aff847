//! For how long files and memory of each user are waited for in a recording.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a worker may be silent. A disk that sleeps, or a machine with more to do than CPUs, takes
/// its time, and meanwhile the rings fill.
const SILENCE: Duration = Duration::from_secs(2);

/// For how long all files of one user are waited for in a recording.
const OF_USER: Duration = Duration::from_secs(10);

/// The same for all users. Beyond it a worker may be silent for a moment only, which no file system
/// of the kernel is while its data are in memory.
const OF_ALL: Duration = Duration::from_secs(30);
const MOMENT: Duration = Duration::from_millis(100);

/// What is answered within this time is not waiting: a Java VM is read thousands of times a second, and a
/// recording may go on for days. It may take this part of the time.
const AT_ONCE: Duration = Duration::from_millis(20);
const PART: u32 = 4;

/// Who is waited for: a user, and the mount namespace if it is not flame's own. The root of a
/// container must not use up the patience for root's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct User {
    pub(super) id: Option<u32>,
    pub(super) mounts: Option<u64>,
}

/// What has been waited.
#[derive(Debug, Default)]
pub(super) struct Patience {
    since: Option<Instant>,
    waited: BTreeMap<User, Duration>,
    at_once: BTreeMap<User, Duration>,
}

impl Patience {
    /// How long a worker may be silent about something of a user; `None` when that was waited for long
    /// enough.
    pub(super) fn silence(&mut self, user: User, now: Instant) -> Option<Duration> {
        let since = *self.since.get_or_insert(now);
        let of = |all: &BTreeMap<User, Duration>| all.get(&user).copied().unwrap_or_default();
        let part = OF_USER + now.saturating_duration_since(since) / PART;
        if of(&self.waited) >= OF_USER || of(&self.at_once) >= part {
            return None;
        }
        let of_all: Duration = self.waited.values().sum();
        Some(if of_all < OF_ALL { SILENCE } else { MOMENT })
    }

    /// The answer about something of a user took that long.
    pub(super) fn add(&mut self, user: User, took: Duration) {
        let all = if took < AT_ONCE { &mut self.at_once } else { &mut self.waited };
        *all.entry(user).or_default() += took;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: User = User { id: Some(1), mounts: None };
    const OTHER: User = User { id: Some(2), mounts: None };

    #[test]
    fn one_user_does_not_use_up_the_patience_for_another() {
        let (mut patience, now) = (Patience::default(), Instant::now());
        for _ in 0..5 {
            assert_eq!(patience.silence(ONE, now), Some(SILENCE));
            patience.add(ONE, SILENCE);
        }
        assert_eq!(patience.silence(ONE, now), None);
        assert_eq!(patience.silence(ONE, now + Duration::from_secs(3600)), None);
        assert_eq!(patience.silence(OTHER, now), Some(SILENCE));
        patience.add(OTHER, Duration::from_secs(20));
        assert_eq!(patience.silence(User { id: None, mounts: None }, now), Some(MOMENT));
    }

    #[test]
    fn answers_that_come_at_once_do_not_add_up_in_a_long_recording() {
        let (mut patience, start) = (Patience::default(), Instant::now());
        // A thousand of 0.1 ms each second, for an hour.
        for second in 0..3600 {
            let now = start + Duration::from_secs(second);
            assert_eq!(patience.silence(ONE, now), Some(SILENCE), "{second}");
            patience.add(ONE, Duration::from_millis(19));
            patience.at_once.insert(ONE, Duration::from_millis(100 * (second + 1)));
        }
        // More than a quarter of the time.
        let now = start + Duration::from_secs(3600);
        patience.at_once.insert(ONE, Duration::from_secs(911));
        assert_eq!(patience.silence(ONE, now), None);
    }
}
