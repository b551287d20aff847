//! What is known of every process at the current point of the event stream: its address space and
//! the names of its threads.

use std::collections::VecDeque;
use std::sync::Arc;

use flame_profile::{ImageId, Nanos, Pid, ProcessAddress, Tid, readable};
use rustc_hash::FxHashMap;

use crate::event::{EventKind, MappingEvent};
use crate::images::{ImageKey, ImageTable};
use crate::maps::ParsedMapping;
use crate::space::{AddressSpace, Mapping};

/// How long an ended process is remembered: samples of its last threads may come a little later
/// than the end of its main thread.
const KEEP_ENDED: Nanos = Nanos(2_000_000_000);

/// An address found in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The address that was asked for.
    pub address: ProcessAddress,
    /// The mapping that holds it.
    pub mapping: Mapping,
}

/// All processes of the recording. Feed it every event in time order, then ask.
///
/// Address spaces are shared between a process and its forked children until one of them changes
/// its own, so a fork storm costs no copies.
#[derive(Debug, Default)]
pub struct Processes {
    images: ImageTable,
    spaces: FxHashMap<Pid, Arc<AddressSpace>>,
    names: FxHashMap<Tid, Arc<str>>,
    ended: VecDeque<(Nanos, Pid, Tid)>,
}

impl Processes {
    /// The images of all mappings so far.
    pub fn images(&self) -> &ImageTable {
        &self.images
    }

    /// Enters a process that ran before the recording began. What events already said of it stays
    /// on top.
    pub fn add_existing(&mut self, pid: Pid, name: &[u8], maps: Vec<ParsedMapping>) {
        let mut space = AddressSpace::default();
        for map in maps {
            let image = self.images.intern(ImageKey { path: map.path.into(), file: map.file });
            let mapping = Mapping { start: map.start, end: map.end, offset: map.offset, image };
            space.insert(mapping);
            if let Some(around) = map.around {
                let key = ImageKey { path: around.path.into(), file: around.file };
                let (image, offset) = (self.images.intern(key), around.offset);
                space.insert_behind(Mapping { offset, image, ..mapping });
            }
        }
        if let Some(known) = self.spaces.get(&pid) {
            known.iter().for_each(|mapping| space.insert(*mapping));
        }
        self.spaces.insert(pid, Arc::new(space));
        self.names.entry(Tid(pid.0)).or_insert_with(|| readable(name).into());
    }

    /// Enters the name of a thread that ran before the recording began.
    pub fn add_existing_thread(&mut self, tid: Tid, name: &[u8]) {
        self.names.entry(tid).or_insert_with(|| readable(name).into());
    }

    /// Whether the address space of that process is known.
    pub fn knows(&self, pid: Pid) -> bool {
        self.spaces.contains_key(&pid)
    }

    /// Whether the name of that thread is known.
    pub fn knows_name(&self, tid: Tid) -> bool {
        self.names.contains_key(&tid)
    }

    /// Takes in one event; samples and losses change nothing here.
    pub fn apply(&mut self, time: Nanos, event: &EventKind<'_>) {
        match event {
            EventKind::Mapping(mapping) => self.map(mapping),
            EventKind::Comm { pid, tid, name, exec } => {
                self.names.insert(*tid, readable(name).into());
                if *exec {
                    self.spaces.insert(*pid, Arc::default());
                }
            }
            EventKind::Fork { pid, tid, parent, parent_tid } => {
                if let Some(name) = self.names.get(parent_tid).cloned() {
                    self.names.insert(*tid, name);
                }
                if pid != parent
                    && let Some(space) = self.spaces.get(parent).cloned()
                {
                    self.spaces.insert(*pid, space);
                }
                // The number is in use again: it must not be forgotten with its former owner.
                self.ended.retain(|(_, _, ended)| ended != tid);
            }
            EventKind::Exit { pid, tid } => self.ended.push_back((time, *pid, *tid)),
            _ => {}
        }
        self.forget_ended(time);
    }

    fn map(&mut self, event: &MappingEvent<'_>) {
        let key = ImageKey { path: event.path.as_ref().into(), file: event.file };
        let is_anonymous = key.is_anonymous();
        let image = self.images.intern(key);
        let space = Arc::make_mut(self.spaces.entry(event.pid).or_default());
        let (start, end) = (event.start, event.end);
        let mapping = Mapping { start, end, offset: event.offset, image };
        if is_anonymous {
            let images = &self.images;
            space.insert_over(mapping, |id| images.key(id).is_some_and(|key| !key.is_anonymous()));
        } else {
            space.insert(mapping);
        }
    }

    fn forget_ended(&mut self, now: Nanos) {
        while let Some((time, pid, tid)) = self.ended.front().copied() {
            if now.saturating_since(time) < KEEP_ENDED {
                return;
            }
            self.ended.pop_front();
            self.names.remove(&tid);
            if pid.0 == tid.0 {
                self.spaces.remove(&pid);
            }
        }
    }

    /// The mapping of a process that holds an address now.
    pub fn find(&self, pid: Pid, address: ProcessAddress) -> Option<Found> {
        let mapping = *self.spaces.get(&pid)?.find(address)?;
        Some(Found { address, mapping })
    }

    /// What file was mapped at an address where there is anonymous memory now, which may have a
    /// copy of it. `None` once that is settled.
    pub fn behind(&self, pid: Pid, address: ProcessAddress) -> Option<Found> {
        let mapping = *self.spaces.get(&pid)?.behind(address)?;
        Some(Found { address, mapping })
    }

    /// Settles what [`Processes::behind`] said of an address: whether the memory has a copy of the
    /// file, which then counts as mapped there.
    pub fn settle_behind(&mut self, pid: Pid, address: ProcessAddress, is_copy: bool) {
        let Some(space) = self.spaces.get_mut(&pid) else { return };
        let space = Arc::make_mut(space);
        if let Some(mapping) = space.take_behind(address).filter(|_| is_copy) {
            space.insert(mapping);
        }
    }

    /// The address space of a process as it is now.
    pub fn space(&self, pid: Pid) -> Option<&AddressSpace> {
        self.spaces.get(&pid).map(|space| &**space)
    }

    /// The name of a thread now; bytes that are not UTF-8 stand there as `\xNN`.
    pub fn thread_name(&self, tid: Tid) -> Option<&Arc<str>> {
        self.names.get(&tid)
    }

    /// The key of an image.
    pub fn image(&self, id: ImageId) -> Option<&ImageKey> {
        self.images.key(id)
    }
}

#[cfg(test)]
mod tests;
