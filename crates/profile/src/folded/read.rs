//! Folded text into a call tree, without a profile in between.
//!
//! Lines of the stackcollapse scripts are sorted, so a line is compared with the one before first, and
//! only what differs is split into frames. Lines in no order are sorted before they become nodes.

use std::fmt;
use std::io::{self, Read};

use memchr::memchr;

use super::count::{Count, MAX_DECIMALS};
use super::line::{Batch, Line, common_prefix, cut_count, cut_last, is_comment, without_end};
use super::names::{HashedName, Names};
use super::parts::FoldedPart;
use super::root::{FirstFrames, is_function};
use super::skipped::{NO_ROOM, SkippedLine, SkippedLines, TOO_LONG, why_not_read};
use crate::call_tree::{
    BuilderNode, CallTree, LabelId, Recursion, SiblingOrder, TreeBuilder, UnsortedStacks,
};
use crate::frame::{FrameKind, is_mark_name};
use crate::readable::readable;
use crate::units::{ValueType, Weight};

/// What is read at a time: little enough to stay in a core's own cache.
const BLOCK: usize = 1 << 17;
/// A line of text is no longer than that, in bytes: a thousandfold what tools write.
pub const MAX_LINE: usize = 1 << 24;
/// Names that are looked up together: as many as a core can wait for at once, several times.
const BATCH: usize = 256;

/// Text of less than this for each node is rare: sorted lines share most of their frames.
const BYTES_A_NODE: u64 = 32;
/// So is less than this for each name.
const BYTES_A_NAME: u64 = 1024;
/// Room for this many is made at most before they are there.
const MOST_NODES: u64 = 1 << 22;
const MOST_NAMES: u64 = 1 << 14;

/// How many counts every line ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// One: a profile.
    One,
    /// Two: a profile before and one after, as difffolded.pl writes them.
    Two,
}

impl Columns {
    /// What the first line with a stack among these bytes has. Whether all others have as many
    /// shows when they are read.
    pub fn detect(start: &[u8]) -> Columns {
        let lines = without_mark(start).split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let mut lines = lines.filter(|line| !is_comment(line));
        match lines.find_map(|line| cut_last(line).map(|(rest, _)| rest)) {
            Some(rest) if cut_last(rest).is_some() => Columns::Two,
            _ => Columns::One,
        }
    }
}

/// Why folded text cannot be read on.
#[derive(Debug)]
#[non_exhaustive]
pub enum FoldedError {
    /// Reading failed.
    Io(io::Error),
    /// Lines were taken to end with two counts, but here is one that does not: the first of two
    /// numbers at the end of the others is part of a name. Read it again as [`Columns::One`].
    OneCount,
}

impl fmt::Display for FoldedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FoldedError::Io(_) => "folded text cannot be read",
            FoldedError::OneCount => "not every line ends with two counts",
        })
    }
}

impl std::error::Error for FoldedError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            FoldedError::Io(error) => Some(error),
            FoldedError::OneCount => None,
        }
    }
}

impl From<io::Error> for FoldedError {
    fn from(error: io::Error) -> FoldedError {
        FoldedError::Io(error)
    }
}

/// Reads folded text, from one input or several.
///
/// - A line is frames parted by `;`, outermost first, then blanks or tabs, then a count: digits
///   with an optional fraction and exponent, kept exactly.
/// - `\r`, blanks and tabs around a line are left out, and so are blank lines and comments, which
///   start with `#` and a blank.
/// - The first frame is taken for the name of a thread or process, as all collapsing tools that
///   know it write it, unless no thread is called like that: `_start`, `std::thread::start`; and
///   `main` as [`FirstFrames`] says.
/// - A name that ends in `_[k]`, `_[i]`, `_[j]` or `_[w]` is of that kind of code.
/// - `; ` within open square brackets parts no frames: `<[u8; 8] as Debug>::fmt` is one.
/// - A byte order mark at the start of an input is left out.
/// - Bytes that are not UTF-8 become `\xNN` in the name.
/// - Lines without a stack or a count that can be read are counted, not drawn.
///
/// ```
/// use flame_profile::{Columns, FoldedReader, SiblingOrder, ValueType, Weight};
///
/// let mut reader = FoldedReader::new(Columns::One, SiblingOrder::Name);
/// reader.read(&mut &b"server;main;parse 7\nserver;main 0.5\nnonsense\n"[..])?;
/// assert_eq!(reader.skipped_lines(), 1);
/// let tree = reader.finish(ValueType::samples());
/// assert_eq!((tree.total(), tree.decimals()), (Weight(75), 1));
/// # Ok::<(), flame_profile::FoldedError>(())
/// ```
#[derive(Debug)]
pub struct FoldedReader {
    columns: Columns,
    order: SiblingOrder,
    recursion: Recursion,
    first_frames: FirstFrames,
    builder: TreeBuilder,
    /// Names as they stand in the text, with their annotation.
    names: Names,
    /// The same for first frames.
    first_names: Names,
    /// Where the frames of the line before end in its text.
    ends: Vec<usize>,
    /// The stack of the line before, between two blocks.
    before: Vec<u8>,
    /// The labels of the frames of the line that was last put into the tree.
    labels: Vec<LabelId>,
    /// The nodes of these, as far as there are any: a line that cannot be added has none.
    nodes: Vec<BuilderNode>,
    /// The labels of a batch.
    found: Vec<Option<LabelId>>,
    /// Stacks that are put in order before they go into the tree.
    unsorted: UnsortedStacks,
    lines: u64,
    skipped: SkippedLines,
    /// The sums of all counts, at the decimal places that the tree has.
    before_total: u64,
    after_total: u64,
    /// Whether the sums have no room for more decimal places.
    is_full: bool,
}

impl FoldedReader {
    /// Reads lines that all end with as many counts. With [`SiblingOrder::Time`] the order of the
    /// lines is kept.
    pub fn new(columns: Columns, order: SiblingOrder) -> FoldedReader {
        FoldedReader {
            columns,
            order,
            recursion: Recursion::Keep,
            first_frames: FirstFrames::Threads,
            builder: TreeBuilder::new(),
            names: Names::default(),
            first_names: Names::default(),
            ends: Vec::new(),
            before: Vec::new(),
            labels: Vec::new(),
            nodes: Vec::new(),
            found: Vec::new(),
            unsorted: UnsortedStacks::default(),
            lines: 0,
            skipped: SkippedLines::default(),
            before_total: 0,
            after_total: 0,
            is_full: false,
        }
    }

    /// Folds recursion in all that is read from now on.
    #[must_use]
    pub fn with_recursion(mut self, recursion: Recursion) -> FoldedReader {
        self.recursion = recursion;
        self
    }

    /// Takes first frames for that in all that is read from now on. All parts of a text need the same.
    #[must_use]
    pub fn with_first_frames(mut self, first_frames: FirstFrames) -> FoldedReader {
        self.first_frames = first_frames;
        self
    }

    /// Makes room for what this many bytes of text may hold. Room that is not needed costs nothing but
    /// addresses; growing step by step would copy everything several times.
    pub fn reserve(&mut self, bytes: u64) {
        let nodes = (bytes / BYTES_A_NODE).min(MOST_NODES) as usize;
        let names = (bytes / BYTES_A_NAME).min(MOST_NAMES) as usize;
        self.builder.reserve(nodes, names);
        self.names.reserve(names);
    }

    /// Lines that have no stack or no count that can be read.
    pub fn skipped_lines(&self) -> u64 {
        self.skipped.count
    }

    /// The first few of these.
    pub fn first_skipped(&self) -> &[SkippedLine] {
        &self.skipped.first
    }

    /// How many lines were read.
    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// Reads an input to its end. Needs little memory besides that for the tree, however long the
    /// input or a line of it is: what is longer than [`MAX_LINE`] is counted, and not kept.
    ///
    /// # Errors
    /// Those of `input`, and [`FoldedError::OneCount`].
    pub fn read(&mut self, input: &mut impl Read) -> Result<(), FoldedError> {
        let mut block = vec![0; BLOCK];
        let (mut filled, mut is_start, mut is_in_long_line) = (0, true, false);
        loop {
            if filled == block.len() {
                // A line that is longer than the block.
                if filled < MAX_LINE {
                    block.resize(filled * 2, 0);
                } else {
                    self.lines += 1;
                    self.skipped.add(self.lines, TOO_LONG, &block);
                    (filled, is_start, is_in_long_line) = (0, false, true);
                }
            }
            let mut fresh = filled;
            let count = match input.read(&mut block[filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result?,
            };
            if count == 0 {
                let rest = &block[..filled];
                return self.read_lines(if is_start { without_mark(rest) } else { rest });
            }
            filled += count;
            if is_in_long_line {
                let end = memchr(b'\n', &block[..filled]);
                is_in_long_line = end.is_none();
                let start = end.map_or(filled, |end| end + 1);
                block.copy_within(start..filled, 0);
                filled -= start;
                fresh = 0;
            }
            let Some(last) = memchr::memrchr(b'\n', &block[fresh..filled]) else { continue };
            let end = fresh + last + 1;
            let lines = &block[..end];
            self.read_lines(if is_start { without_mark(lines) } else { lines })?;
            is_start = false;
            block.copy_within(end..filled, 0);
            filled -= end;
        }
    }

    /// The order that siblings are to have.
    pub(super) fn order(&self) -> SiblingOrder {
        self.order
    }

    /// What was read as a part of a text, to be put together with the others: `is_whole` says that
    /// there are none. Takes most of the work that is to be done at the end, so call it on the
    /// thread that has read the part.
    pub fn into_part(self, is_whole: bool) -> FoldedPart {
        FoldedPart::new(self, is_whole)
    }

    /// The call tree of all that was read.
    pub fn finish(self, value_type: ValueType) -> CallTree {
        let order = self.order;
        self.into_builder().finish(value_type, order)
    }

    /// The tree as it has grown, to be merged with others.
    pub fn into_builder(mut self) -> TreeBuilder {
        self.add_unsorted();
        if self.columns == Columns::Two {
            // A tree without any lines is one of two profiles all the same.
            self.builder.add_before(BuilderNode::ROOT, Weight(0));
        }
        self.builder
    }

    /// Reads whole lines, the last perhaps without its end.
    fn read_lines(&mut self, block: &[u8]) -> Result<(), FoldedError> {
        let before = std::mem::take(&mut self.before);
        let mut before: &[u8] = &before;
        let mut batch = Batch::with_room(BATCH);
        let mut rest = block;
        while !rest.is_empty() {
            let common = common_prefix(before, rest);
            // There is no line end in what both have in common.
            let end = memchr(b'\n', &rest[common..]).map_or(rest.len(), |end| common + end);
            let falls =
                matches!((rest.get(common), before.get(common)), (Some(a), Some(b)) if a < b);
            if let Some(stack) = self.read_line(&rest[..end], common, &mut batch)? {
                batch.falls += usize::from(falls);
                before = stack;
            }
            if batch.names.len().max(batch.lines.len()) >= BATCH {
                self.add_batch(&mut batch);
            }
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        self.add_batch(&mut batch);
        self.before = before.to_vec();
        Ok(())
    }

    /// Reads a line whose first `common` bytes are those of the stack before. Returns its stack,
    /// which `ends` is then that of; `None` when there is nothing to add.
    fn read_line<'l>(
        &mut self,
        line: &'l [u8],
        common: usize,
        batch: &mut Batch<'l>,
    ) -> Result<Option<&'l [u8]>, FoldedError> {
        self.lines += 1;
        let trimmed = line.trim_ascii_start();
        // What is shifted has nothing in common with the line before.
        let common = if trimmed.len() == line.len() { common } else { 0 };
        let Some((stack, after)) = cut_last(trimmed) else {
            if !trimmed.is_empty() && !is_comment(trimmed.trim_ascii_end()) {
                self.skip(trimmed);
            }
            return Ok(None);
        };
        if is_comment(trimmed) {
            return Ok(None);
        }
        let (stack, before) = match self.columns {
            Columns::One => (without_end(stack), Count::ZERO),
            Columns::Two => cut_count(stack).ok_or(FoldedError::OneCount)?,
        };
        if after.digits == 0 && before.digits == 0 {
            if after == Count::TOO_SMALL || before == Count::TOO_SMALL {
                self.skip(trimmed);
            }
            return Ok(None);
        }
        let kept = batch.add_names(stack, common.min(stack.len()), &mut self.ends);
        let (number, names_end) = (self.lines, batch.names.len());
        batch.lines.push(Line { number, kept, names_end, before, after });
        Ok(Some(stack))
    }

    /// Counts a line that cannot be read.
    #[cold]
    fn skip(&mut self, line: &[u8]) {
        self.skipped.add(self.lines, why_not_read(line), line);
    }

    /// Puts the lines of a batch into the tree, and empties it.
    fn add_batch(&mut self, batch: &mut Batch<'_>) {
        let mut found = std::mem::take(&mut self.found);
        self.names.get_all(&batch.names, &mut found);
        let may_sort = self.order.is_of_names() && self.recursion == Recursion::Keep;
        let is_sorted_first = may_sort && batch.is_in_disorder();
        let mut next = 0;
        for line in batch.lines.drain(..) {
            self.labels.truncate(line.kept);
            self.nodes.truncate(line.kept);
            let range = next..line.names_end;
            for (name, known) in batch.names[range.clone()].iter().zip(&found[range]) {
                let is_first = self.labels.is_empty();
                let known = known.filter(|_| !is_first);
                let label = known.unwrap_or_else(|| self.label(name, is_first));
                self.labels.push(label);
            }
            next = line.names_end;
            self.add(&line, is_sorted_first);
        }
        batch.names.clear();
        batch.falls = 0;
        self.found = found;
    }

    /// Adds to the weight of the stack that `labels` has.
    fn add(&mut self, line: &Line, is_sorted_first: bool) {
        let Some((before, after)) = self.weights(line) else {
            self.skipped.add(line.number, NO_ROOM, b"");
            return;
        };
        if is_sorted_first {
            self.unsorted.push(&self.labels, before, after);
            if self.unsorted.is_full() {
                self.add_unsorted();
            }
            return;
        }
        if self.order == SiblingOrder::Time {
            self.part_in_time();
        } else if self.builder.is_crowded() {
            self.builder.compact();
            self.nodes.clear();
        }
        let mut leaf = self.nodes.last().copied().unwrap_or(BuilderNode::ROOT);
        for label in &self.labels[self.nodes.len()..] {
            leaf = match self.recursion {
                Recursion::Keep => self.builder.child(leaf, *label),
                Recursion::Collapse => self.builder.child_or_repeated(leaf, *label),
            };
            self.nodes.push(leaf);
        }
        self.builder.add(leaf, after);
        if self.columns == Columns::Two {
            self.builder.add_before(leaf, before);
        }
    }

    /// The counts of a line at the decimal places of the tree; `None` where they or the sums of all do
    /// not fit.
    fn weights(&mut self, line: &Line) -> Option<(Weight, Weight)> {
        // What one of the two asks for is there before the other becomes a weight.
        self.make_room_for(line.before.places().max(line.after.places()));
        let decimals = self.builder.decimals();
        let (before, after) = (line.before.at(decimals)?, line.after.at(decimals)?);
        // The largest number of all says that a sum did not fit.
        let sum = |total: u64, count| total.checked_add(count).filter(|sum| *sum < u64::MAX);
        let totals = (sum(self.before_total, before)?, sum(self.after_total, after)?);
        (self.before_total, self.after_total) = totals;
        Some((Weight(before), Weight(after)))
    }

    /// Puts the stacks into the tree that were to be put in order first.
    fn add_unsorted(&mut self) {
        self.unsorted.drain_into(&mut self.builder, self.columns == Columns::Two);
        if self.builder.is_crowded() {
            self.builder.compact();
            self.nodes.clear();
        }
    }

    /// Lets the line begin with new nodes where those of the line before do not say any more when
    /// what was: what a node has itself comes behind what it calls. Equal neighbours are merged at the
    /// end.
    fn part_in_time(&mut self) {
        let goes_on_inwards = self.nodes.len() < self.labels.len();
        let has_self_weight = |node: &BuilderNode| self.builder.has_self_weight(*node);
        if self.recursion == Recursion::Collapse {
            // A folded call leads back to a node with callees.
            self.nodes.clear();
        } else if goes_on_inwards && self.nodes.last().is_some_and(has_self_weight) {
            self.nodes.pop();
        }
    }

    fn label(&mut self, name: &HashedName<'_>, is_first: bool) -> LabelId {
        let names = if is_first { &mut self.first_names } else { &mut self.names };
        if let Some(label) = names.get(name) {
            return label;
        }
        let (bare, kind) = FrameKind::of_annotated(name.text);
        let text = readable(bare).into_owned();
        let is_thread =
            is_first && kind == FrameKind::User && !is_function(&text, self.first_frames);
        let is_mark = is_mark_name(bare) || is_thread;
        let kind = if is_mark { FrameKind::Mark } else { kind };
        let label = self.builder.new_label(text, kind);
        names.insert(name, label);
        label
    }

    /// Gives the tree more decimal places if it has to be, and its sums have room for them.
    fn make_room_for(&mut self, decimals: u32) {
        let here = self.builder.decimals();
        if decimals > here && !self.is_full {
            // Theirs have as many places as those of the tree.
            self.add_unsorted();
            // Adding places takes a pass over the tree: when the sums have no room, try once.
            self.is_full = !self.builder.add_decimals(decimals - here);
            if !self.is_full {
                let factor = 10_u64.saturating_pow(decimals - here);
                self.before_total = self.before_total.saturating_mul(factor);
                self.after_total = self.after_total.saturating_mul(factor);
            }
        }
    }
}

const _: () = assert!(MAX_DECIMALS < 19, "a whole unit fits into 64 bits at any number of places");

/// A text without the byte order mark that some editors put before it.
fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text)
}

#[cfg(test)]
pub(super) mod tests;
