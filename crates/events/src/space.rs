//! One process's executable memory: which image is mapped where.

use std::collections::BTreeMap;

use flame_profile::{FileOffset, ImageId, ProcessAddress};

/// A range of executable memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: ProcessAddress,
    /// End, exclusive; greater than `start`.
    pub end: ProcessAddress,
    /// Where in the image the mapping starts.
    pub offset: FileOffset,
    /// The image that is mapped.
    pub image: ImageId,
}

impl Mapping {
    /// The position in the image's file of an address inside this mapping.
    pub fn to_file_offset(&self, address: ProcessAddress) -> FileOffset {
        FileOffset(address.0.wrapping_sub(self.start.0).wrapping_add(self.offset.0))
    }
}

/// Non-overlapping mappings, found by address.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    by_start: BTreeMap<u64, Mapping>,
    /// What was mapped where anonymous memory is now, so far as nobody has settled whether it has a
    /// copy of that.
    behind: BTreeMap<u64, Mapping>,
}

impl AddressSpace {
    /// Adds a mapping; what it overlaps is cut or removed, as mmap does. Empty ones are ignored.
    pub fn insert(&mut self, mapping: Mapping) {
        self.behind.retain(|start, old| *start >= mapping.end.0 || old.end <= mapping.start);
        self.put(mapping);
    }

    /// The same for anonymous memory: what it covers for which `is_file` holds is kept behind it.
    /// Programs copy their code into huge pages that way.
    pub fn insert_over(&mut self, mapping: Mapping, is_file: impl Fn(ImageId) -> bool) {
        for old in self.overlapped(mapping.start.0, mapping.end.0) {
            if is_file(old.image) {
                let (start, end) = (old.start.max(mapping.start), old.end.min(mapping.end));
                let offset = old.to_file_offset(start);
                self.insert_behind(Mapping { start, end, offset, ..old });
            }
        }
        self.put(mapping);
    }

    /// Keeps a mapping behind what is there.
    pub fn insert_behind(&mut self, mapping: Mapping) {
        self.behind.insert(mapping.start.0, mapping);
    }

    /// Whether there is anything behind what is mapped.
    pub fn has_behind(&self) -> bool {
        !self.behind.is_empty()
    }

    /// What was mapped at an address before the anonymous memory that is there now.
    pub fn behind(&self, address: ProcessAddress) -> Option<&Mapping> {
        let (_, mapping) = self.behind.range(..=address.0).next_back()?;
        (address < mapping.end).then_some(mapping)
    }

    /// Takes away what is behind an address.
    pub fn take_behind(&mut self, address: ProcessAddress) -> Option<Mapping> {
        let start = self.behind(address)?.start.0;
        self.behind.remove(&start)
    }

    fn overlapped(&self, start: u64, end: u64) -> Vec<Mapping> {
        if start >= end {
            return Vec::new();
        }
        let before = self.by_start.range(..start).next_back().map(|(_, m)| *m);
        let inside = self.by_start.range(start..end).map(|(_, m)| *m);
        before.into_iter().chain(inside).filter(|m| m.end.0 > start).collect()
    }

    fn put(&mut self, mapping: Mapping) {
        let (start, end) = (mapping.start.0, mapping.end.0);
        if start >= end {
            return;
        }
        for old in self.overlapped(start, end) {
            self.by_start.remove(&old.start.0);
            if old.start.0 < start {
                let kept = Mapping { end: mapping.start, ..old };
                self.by_start.insert(old.start.0, kept);
            }
            if old.end.0 > end {
                let offset = old.to_file_offset(mapping.end);
                self.by_start.insert(end, Mapping { start: mapping.end, offset, ..old });
            }
        }
        self.by_start.insert(start, mapping);
    }

    /// The mapping that holds an address.
    pub fn find(&self, address: ProcessAddress) -> Option<&Mapping> {
        let (_, mapping) = self.by_start.range(..=address.0).next_back()?;
        (address < mapping.end).then_some(mapping)
    }

    /// The mappings in order of their addresses.
    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.by_start.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, end: u64, offset: u64, image: usize) -> Mapping {
        Mapping {
            start: ProcessAddress(start),
            end: ProcessAddress(end),
            offset: FileOffset(offset),
            image: ImageId::from_index(image),
        }
    }

    #[track_caller]
    fn check(inserted: &[Mapping], expect: &[Mapping]) {
        let mut space = AddressSpace::default();
        inserted.iter().for_each(|m| space.insert(*m));
        assert_eq!(space.iter().copied().collect::<Vec<_>>(), expect);
    }

    #[test]
    fn a_mapping_in_the_middle_splits_the_old_one() {
        check(
            &[mapping(0x1000, 0x5000, 0, 0), mapping(0x2000, 0x3000, 0x40, 1)],
            &[
                mapping(0x1000, 0x2000, 0, 0),
                mapping(0x2000, 0x3000, 0x40, 1),
                mapping(0x3000, 0x5000, 0x2000, 0),
            ],
        );
    }

    #[test]
    fn a_mapping_over_several_replaces_them_and_cuts_the_edges() {
        check(
            &[
                mapping(0x1000, 0x2000, 0, 0),
                mapping(0x2000, 0x3000, 0, 1),
                mapping(0x3000, 0x4000, 0, 2),
                mapping(0x1800, 0x3800, 0, 3),
            ],
            &[
                mapping(0x1000, 0x1800, 0, 0),
                mapping(0x1800, 0x3800, 0, 3),
                mapping(0x3800, 0x4000, 0x800, 2),
            ],
        );
    }

    #[test]
    fn files_behind_anonymous_memory_are_kept_until_they_are_taken_or_replaced() {
        let mut space = AddressSpace::default();
        space.insert(mapping(0x1000, 0x5000, 0, 0));
        space.insert_over(mapping(0x2000, 0x4000, 0, 9), |image| image.index() == 0);
        let at = |space: &AddressSpace, address| {
            (
                space.find(ProcessAddress(address)).map(|m| m.image.index()),
                space.behind(ProcessAddress(address)).copied(),
            )
        };
        let behind = mapping(0x2000, 0x4000, 0x1000, 0);
        assert_eq!(at(&space, 0x1fff), (Some(0), None));
        assert_eq!(at(&space, 0x2000), (Some(9), Some(behind)));
        assert_eq!(at(&space, 0x3fff), (Some(9), Some(behind)));
        assert_eq!(at(&space, 0x4000), (Some(0), None));
        // Anonymous memory again, as mprotect reports it, hides nothing more.
        space.insert_over(mapping(0x2000, 0x4000, 0, 9), |image| image.index() == 0);
        assert_eq!(at(&space, 0x3000), (Some(9), Some(behind)));
        let mut taken = space.clone();
        assert_eq!(taken.take_behind(ProcessAddress(0x2800)), Some(behind));
        assert_eq!(at(&taken, 0x3000), (Some(9), None));
        // A file that is mapped there is no copy of another one.
        space.insert(mapping(0x3000, 0x6000, 0, 1));
        assert_eq!(at(&space, 0x2000), (Some(9), None));
        assert_eq!(at(&space, 0x3000), (Some(1), None));
    }

    #[test]
    fn the_end_of_a_mapping_is_not_part_of_it() {
        let mut space = AddressSpace::default();
        space.insert(mapping(0x1000, 0x2000, 0x500, 0));
        let found =
            space.find(ProcessAddress(0x1fff)).map(|m| m.to_file_offset(ProcessAddress(0x1fff)));
        assert_eq!(found, Some(FileOffset(0x14ff)));
        assert_eq!(space.find(ProcessAddress(0x2000)), None);
        assert_eq!(space.find(ProcessAddress(0xfff)), None);
    }
}
