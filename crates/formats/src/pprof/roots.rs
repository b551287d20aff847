//! Labels that become the outermost frames of stacks: which host or service a sample is of, where files of
//! many are summed up.

use flame_profile::{FrameKind, Location, Profile, StackId, Thread, ThreadId};

use super::error::PprofError;
use super::proto;
use super::tables::Tables;

/// The labels that are asked for, outermost first.
#[derive(Debug, Default)]
pub(super) struct Roots(Vec<Root>);

#[derive(Debug)]
struct Root {
    name: String,
    /// The string that labels of it have for their key; `None` where the file has none.
    key: Option<i64>,
    is_met: bool,
}

impl Roots {
    /// Labels of these names, in a file with these strings.
    pub(super) fn new(names: &[String], strings: &[&[u8]]) -> Roots {
        let root = |name: &String| {
            let mut keys = (0..).zip(strings).filter(|(_, text)| **text == name.as_bytes());
            Root { name: name.clone(), key: keys.next().map(|(key, _)| key), is_met: false }
        };
        Roots(names.iter().map(root).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether labels with that key are among them.
    pub(super) fn has_key(&self, key: i64) -> bool {
        self.0.iter().any(|root| root.key == Some(key))
    }

    /// What stands for the thread of a sample with these labels, and the frames behind it.
    pub(super) fn of(
        &mut self,
        labels: &[proto::Label],
        thread: ThreadId,
        tables: &Tables<'_>,
        profile: &mut Profile,
    ) -> Result<(ThreadId, StackId), PprofError> {
        let mut names = Vec::with_capacity(self.0.len() + 1);
        for root in &mut self.0 {
            let label = labels.iter().find(|label| Some(label.key) == root.key);
            root.is_met |= label.is_some();
            names.push(match label {
                Some(label) if label.text != 0 => tables.string(label.text)?.into_owned(),
                Some(label) => label.number.to_string(),
                None => format!("[no {}]", root.name),
            });
        }
        let own = profile.thread(thread).name;
        names.push(profile.text(own).to_owned());
        let name = profile.intern(&names[0]);
        let root = Thread { name, process: None, pid: None, tid: None };
        let root = profile.add_whole_thread(root);
        let mut stack = StackId::EMPTY;
        for name in &names[1..] {
            let frame = profile.add_frame(name, FrameKind::Mark);
            let location = profile.add_location(Location::named(frame));
            stack = profile.push_stack(stack, location);
        }
        Ok((root, stack))
    }

    /// What is to be said of labels that no sample has.
    pub(super) fn missing(&self) -> impl Iterator<Item = String> {
        let missing = self.0.iter().filter(|root| !root.is_met);
        missing.map(|root| format!("pprof: no sample has the label {}", root.name))
    }
}
