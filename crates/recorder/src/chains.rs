//! Call chains whose frames are all in files or in the kernel, which most of those in files are: where a
//! chain was met before, its stack is known by one look.
//!
//! A chain is put into a form that does not depend on its process: a word for each frame, outermost first,
//! that says where in which image it is. What is remembered of processes for that holds until the next
//! event that says something of them. Everything else - code without a file, an image that was not
//! opened yet, memory that may be a copy of a file - goes the way of all samples.

use flame_events::SampleEvent;
use flame_profile::{FileOffset, ImageId, Pid, ProcessAddress, StackEnd, StackId, Tid};
use rustc_hash::FxHashMap;

use crate::aggregator::kernel_addresses;
use crate::images::OpenImage;
use crate::location::CodeLocation;
use crate::locator::{KERNEL_START, Locator};

/// In a word, the image stands above the offset in its file, below these two bits.
const OFFSET_BITS: u32 = 40;
const IMAGE_BITS: u32 = 22;

/// The word of a caller that is no code. Those of the kernel's addresses are larger.
const NO_CALLER: u64 = 1 << (OFFSET_BITS + IMAGE_BITS);

/// Chains of fewer frames are not remembered: what a look for them costs, their frames cost one by one.
const MIN_FRAMES: usize = 4;

/// This many words of chains are remembered, 8 bytes each.
const MOST_WORDS: usize = 4 << 20;

/// Code of a process.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    end: u64,
    /// What is added to an address to get its word; `None` where the image is not a file's, or not opened.
    to_word: Option<u64>,
    is_open: bool,
}

/// The code of a process, as far as it is known, by address.
#[derive(Debug)]
struct Space {
    ranges: Vec<Range>,
    /// Where the last address was found.
    last: usize,
    /// Whether an address was met whose image was not opened yet: it will be now.
    is_stale: bool,
}

/// A stack that was met before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Met {
    start: usize,
    len: usize,
    pub(crate) stack: StackId,
    /// The thread that had it last, and the position of its row.
    pub(crate) row: (usize, usize),
}

/// What is known of chains and processes.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    /// How much the locator had been told when this was found out.
    told: u64,
    spaces: FxHashMap<Pid, Option<Space>>,
    threads: FxHashMap<(Pid, Tid), usize>,
    met: FxHashMap<u64, Met>,
    /// The words of all that were met.
    words: Vec<u64>,
    /// The words of the chain that is looked at, outermost first, and what tells it from others.
    path: Vec<u64>,
    /// `None` if it is not remembered.
    hash: Option<u64>,
}

impl Chains {
    /// The position of a thread that was met since the last event that may have renamed it.
    pub(crate) fn thread(&mut self, pid: Pid, tid: Tid, find: impl FnOnce() -> usize) -> usize {
        *self.threads.entry((pid, tid)).or_insert_with(find)
    }

    /// Puts a chain into words; how it ends. `None` where that takes a closer look.
    pub(crate) fn put(
        &mut self,
        sample: &SampleEvent<'_>,
        max_depth: usize,
        code: &Locator,
    ) -> Option<StackEnd> {
        if self.told != code.told() {
            self.told = code.told();
            self.spaces.clear();
            self.threads.clear();
        }
        let space = self.spaces.entry(sample.pid).or_insert_with(|| Space::of(sample.pid, code));
        let space = space.as_mut()?;
        let end = space.put(sample, max_depth, &mut self.path);
        if space.is_stale {
            self.spaces.remove(&sample.pid);
        }
        let is_long = self.path.len() >= MIN_FRAMES;
        self.hash = is_long.then(|| self.path.iter().fold(0, |hash, word| mix(hash, *word)));
        end
    }

    /// The chain that was put into words, if it was met before.
    pub(crate) fn met(&mut self) -> Option<&mut Met> {
        let met = self.met.get_mut(&self.hash?)?;
        let words = self.words.get(met.start..met.start + met.len)?;
        (*words == *self.path).then_some(met)
    }

    /// The frames of the chain that was put into words, outermost first.
    pub(crate) fn path(&self) -> impl Iterator<Item = CodeLocation> + '_ {
        self.path.iter().map(|word| match *word {
            NO_CALLER => CodeLocation::NoCaller,
            address if address > NO_CALLER => CodeLocation::Kernel(ProcessAddress(address)),
            word => {
                let image = usize::try_from(word >> OFFSET_BITS).unwrap_or(usize::MAX);
                let offset = FileOffset(word & ((1 << OFFSET_BITS) - 1));
                CodeLocation::Image(ImageId::from_index(image), offset)
            }
        })
    }

    /// Remembers the stack of the chain that was put into words, and its row.
    pub(crate) fn meet(&mut self, stack: StackId, row: (usize, usize)) {
        let (start, len) = (self.words.len(), self.path.len());
        if let Some(hash) = self.hash.filter(|_| start + len <= MOST_WORDS) {
            self.words.extend(&self.path);
            self.met.insert(hash, Met { start, len, stack, row });
        }
    }
}

impl Space {
    /// `None` where the process is not known, or may have copies of files in its memory.
    fn of(pid: Pid, code: &Locator) -> Option<Space> {
        let space = code.processes.space(pid)?;
        if space.has_behind() {
            return None;
        }
        let ranges = space.iter().map(|mapping| {
            let image = mapping.image.index() as u64;
            let open = code.images.get(mapping.image);
            let is_file = matches!(open, Some(OpenImage::File(..) | OpenImage::Unusable(_)));
            let (start, end) = (mapping.start.0, mapping.end.0);
            let last = mapping.offset.0.checked_add(end - start);
            let fits = last.is_some_and(|last| last >> OFFSET_BITS == 0);
            let fits = fits && image >> IMAGE_BITS == 0;
            let to_word = (image << OFFSET_BITS).wrapping_add(mapping.offset.0.wrapping_sub(start));
            let to_word = (is_file && fits).then_some(to_word);
            Range { start, end, to_word, is_open: open.is_some() }
        });
        Some(Space { ranges: ranges.collect(), last: 0, is_stale: false })
    }

    fn find(&mut self, address: u64) -> Option<Range> {
        let holds = |range: &&Range| (range.start..range.end).contains(&address);
        if let Some(range) = self.ranges.get(self.last).filter(holds) {
            return Some(*range);
        }
        let at = self.ranges.partition_point(|range| range.start <= address).checked_sub(1)?;
        let range = self.ranges.get(at).filter(holds)?;
        self.last = at;
        Some(*range)
    }

    /// Puts the frames of a sample into `path`, which is emptied first; see [`Chains::put`].
    fn put(
        &mut self,
        sample: &SampleEvent<'_>,
        max_depth: usize,
        path: &mut Vec<u64>,
    ) -> Option<StackEnd> {
        path.clear();
        let user = sample.user_chain.len();
        if user > max_depth {
            return None;
        }
        for (index, address) in sample.user_chain.iter().enumerate().rev() {
            // All but the innermost are return addresses.
            path.push(self.word(address.0.saturating_sub(u64::from(index > 0)), index > 0)?);
        }
        let has_kernel = !sample.kernel_chain.is_empty();
        if user == 0 && !has_kernel && sample.ip < KERNEL_START {
            path.push(self.word(sample.ip.0, false)?);
        }
        for address in kernel_addresses(sample.kernel_chain.iter()) {
            path.push(Some(address.0).filter(|address| *address >= KERNEL_START.0)?);
        }
        Some(if user > 0 { StackEnd::ChainEnd } else { StackEnd::NotRecorded })
    }

    /// The word of an address; of none that has no meaning without its process.
    fn word(&mut self, address: u64, is_caller: bool) -> Option<u64> {
        if address >= KERNEL_START.0 {
            return Some(address);
        }
        match self.find(address) {
            Some(range) => {
                self.is_stale |= !range.is_open;
                range.to_word.map(|to_word| address.wrapping_add(to_word))
            }
            None => is_caller.then_some(NO_CALLER),
        }
    }
}

/// What tells chains from others, of one word after the other.
fn mix(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word.rotate_left(23)) * 0x9e37_79b9_7f4a_7c15;
    let (low, high) = (product & u128::from(u64::MAX), product >> 64);
    u64::try_from(low ^ high).unwrap_or_default() ^ word
}
