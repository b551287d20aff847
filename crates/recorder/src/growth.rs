//! How far the end of each process's heap moves from one sampled call to the next.

use flame_events::EventKind;
use flame_profile::Pid;
use rustc_hash::FxHashMap;

/// Follows where heaps end.
#[derive(Debug, Default)]
pub(crate) struct Growth {
    ends: FxHashMap<Pid, u64>,
}

impl Growth {
    /// A program begins with a heap of its own; a process that is started has that of its parent.
    pub(crate) fn apply(&mut self, kind: &EventKind<'_>) {
        match *kind {
            EventKind::Comm { pid, exec: true, .. } => _ = self.ends.remove(&pid),
            EventKind::Fork { pid, parent, .. } if pid != parent => {
                match self.ends.get(&parent).copied() {
                    Some(end) => _ = self.ends.insert(pid, end),
                    None => _ = self.ends.remove(&pid),
                }
            }
            _ => {}
        }
    }

    /// A heap ends there now: by how much it has grown. The first time it is not known where it ended.
    pub(crate) fn moved(&mut self, pid: Pid, end: u64) -> u64 {
        let before = self.ends.insert(pid, end).unwrap_or(end);
        end.saturating_sub(before)
    }
}

#[cfg(test)]
mod tests {
    use flame_profile::Tid;

    use super::*;

    #[test]
    fn heaps_grow_from_where_they_ended_and_programs_begin_anew() {
        let mut heaps = Growth::default();
        let (parent, child) = (Pid(1), Pid(2));
        assert_eq!(heaps.moved(parent, 0x1000), 0);
        assert_eq!(heaps.moved(parent, 0x3000), 0x2000);
        let (tid, parent_tid) = (Tid(2), Tid(1));
        heaps.apply(&EventKind::Fork { pid: child, tid, parent, parent_tid });
        assert_eq!(heaps.moved(child, 0x4000), 0x1000);
        assert_eq!(heaps.moved(parent, 0x2000), 0);
        assert_eq!(heaps.moved(parent, 0x3000), 0x1000);
        heaps.apply(&EventKind::Comm { pid: child, tid, name: Vec::new(), exec: true });
        assert_eq!(heaps.moved(child, 0x9000), 0);
    }
}
