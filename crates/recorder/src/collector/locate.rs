//! Addresses of processes become locations: which image, and where in it.

use flame_events::Found;
use flame_profile::{Pid, ProcessAddress, StackEnd};

use super::{Collector, KERNEL_START};
use crate::images::{Copied, OpenImage, image_name};
use crate::location::CodeLocation;
use crate::mapped_files::Seen;

impl Collector {
    pub(super) fn open_image(&mut self, pid: Pid, found: &Found) {
        if let Some(old) = self.processes.behind(pid, found.address) {
            return self.settle(pid, &old);
        }
        if let Some(key) = self.processes.image(found.mapping.image) {
            let seen = Seen { pid, found, time: Some(self.now) };
            self.collected.images.open(key, seen, &mut self.unwinder);
        }
    }

    /// Finds out whether anonymous memory has a copy of the file that was mapped there before.
    fn settle(&mut self, pid: Pid, old: &Found) {
        let image = old.mapping.image;
        let Some(key) = self.processes.image(image) else { return };
        if self.collected.images.get(image).is_none() {
            let seen = Seen { pid, found: old, time: Some(self.now) };
            self.collected.images.open(key, seen, &mut self.unwinder);
        }
        let copy = self.collected.images.copy_in_memory(pid, old);
        let path = key.display_path();
        let note = match copy {
            Copied::No => None,
            Copied::Yes => Some(format!(
                "code of {path} ran from a copy in anonymous memory; its names are the file's"
            )),
            Copied::Unreadable => Some(format!(
                "anonymous memory took the place of code of {path}; the names there are the \
                 file's, which may be wrong: the memory could not be compared with it"
            )),
        };
        self.processes.settle_behind(pid, old.address, copy != Copied::No);
        let notes = &mut self.collected.health.notes;
        notes.extend(note.filter(|note| !notes.contains(note)));
    }

    /// Fills `self.locations` from `self.frames`.
    pub(super) fn locate_frames(&mut self, pid: Pid) {
        self.jit_frames.clear();
        let mut locations = std::mem::take(&mut self.locations);
        locations.clear();
        for index in 0..self.frames.len() {
            let address = self.frames[index].lookup_address();
            let location = self.locate(pid, address).unwrap_or_else(|| {
                self.jit_frames.push((index, address));
                // Until it is known which code it was.
                CodeLocation::Unmapped(address)
            });
            locations.push(location);
        }
        self.locations = locations;
        if !self.jit_frames.is_empty() {
            self.collected.jit.meet(pid, &self.processes);
        }
    }

    /// Where an address is; `None` in code without a file, of which time decides what it is.
    fn locate(&mut self, pid: Pid, address: ProcessAddress) -> Option<CodeLocation> {
        if address >= KERNEL_START {
            // The vsyscall page: mapped by the kernel into user space.
            return Some(CodeLocation::Kernel(address));
        }
        if let Some(old) = self.processes.behind(pid, address) {
            self.settle(pid, &old);
        }
        let Some(found) = self.processes.find(pid, address) else {
            return Some(CodeLocation::Unmapped(address));
        };
        let image = found.mapping.image;
        if self.collected.images.get(image).is_none() {
            self.open_image(pid, &found);
        }
        match self.collected.images.get(image) {
            Some(OpenImage::Anonymous) | None => None,
            Some(_) => Some(CodeLocation::Image(image, found.mapping.to_file_offset(address))),
        }
    }

    /// Notes in which image a walk ended that had no information to go on with.
    pub(super) fn count_cut(&mut self, pid: Pid, end: StackEnd) {
        let last = self.frames.last().map(|frame| frame.lookup_address());
        let found = last.and_then(|address| self.processes.find(pid, address));
        let key = found.and_then(|found| self.processes.image(found.mapping.image));
        if end != StackEnd::CopyTooShort && key.is_some_and(|key| key.is_anonymous()) {
            self.collected.jit.count_cut(pid, &self.processes);
        }
        if end != StackEnd::NoUnwindInfo {
            return;
        }
        let path = key.map_or_else(|| "[unmapped]".to_owned(), image_name);
        *self.collected.health.no_unwind_info.entry(path).or_default() += 1;
    }
}
