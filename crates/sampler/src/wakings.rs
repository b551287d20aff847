//! Which wakings are sampled where those of a target's threads are asked for: no matter who wakes them, events
//! have to be open for all tasks, and the kernel's filter leaves out what concerns others.

use std::fs;

use flame_profile::{Pid, Tid};

use crate::config::Target;
use crate::error::SamplerError;
use crate::event_type::EventType;
use crate::scope::Taken;
use crate::threads::threads_of;

/// More ranges of numbers are not asked for: the kernel reads a page of text, and compares each.
const MOST_RANGES: usize = 50;

/// The first namespace of processes (PROC_PID_INIT_INO in include/linux/proc_ns.h): tracepoints write
/// its numbers.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// The event with a filter for those of the target's threads that are there, and for all that are
/// started later. Others get through: they are told apart where it is known who waits.
pub(crate) fn of_target(
    event: EventType,
    target: &Target,
    taken: &Taken,
) -> Result<EventType, SamplerError> {
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    if namespace.as_os_str() != FIRST_NAMESPACE {
        return Err(SamplerError::OtherNumbers);
    }
    let threads = match target {
        Target::System | Target::Cgroup(_) => return Ok(event),
        Target::Launched(Pid(pid)) => vec![Tid(*pid)],
        Target::Threads(threads) => threads.clone(),
        Target::Processes(_) => taken.processes.iter().flat_map(|pid| threads_of(*pid)).collect(),
    };
    let Some(last) = last_started() else { return Ok(event) };
    let filter = filter(&threads, last);
    Ok(EventType { filter: Some(filter), ..event })
}

/// The number of the task that was started last.
fn last_started() -> Option<Tid> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_ascii_whitespace().last()?.parse().ok().map(Tid)
}

fn filter(threads: &[Tid], last: Tid) -> String {
    let mut numbers: Vec<u32> = threads.iter().map(|tid| tid.0).collect();
    numbers.sort_unstable();
    let mut ranges: Vec<(u32, u32)> = numbers.iter().map(|number| (*number, *number)).collect();
    while ranges.len() > MOST_RANGES {
        // The two that are closest become one.
        let gap = |at: &usize| ranges[at + 1].0 - ranges[*at].1;
        let Some(closest) = (0..ranges.len() - 1).min_by_key(gap) else { break };
        ranges[closest].1 = ranges.remove(closest + 1).1;
    }
    let parts = ranges.iter().map(|(first, last)| match first == last {
        true => format!("pid == {first}"),
        false => format!("(pid >= {first} && pid <= {last})"),
    });
    parts.chain([format!("pid > {}", last.0)]).collect::<Vec<_>>().join(" || ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_and_what_is_started_later_get_through_in_a_page_of_text() {
        assert_eq!(filter(&[Tid(7), Tid(5)], Tid(9)), "pid == 5 || pid == 7 || pid > 9");
        let many: Vec<Tid> = (0..4000).map(|number| Tid(4_000_000 + 3 * number)).collect();
        let text = filter(&many, Tid(4_100_000));
        assert!(text.len() < 4096, "{text}");
        assert!(
            text.starts_with("(pid >= 4000000 && pid <= ") && text.contains("|| pid == 4011997 ||")
        );
    }
}
