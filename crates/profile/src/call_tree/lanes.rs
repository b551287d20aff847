//! What each thread did when: a lane a thread, its samples as boxes from one moment to another.
//!
//! A sample says what a thread did at a moment. A box goes from half-way to the sample before to half-way
//! to the one after, but for the time in which the thread had no CPU. When that was is known where the
//! kernel told of all switches; elsewhere a box reaches as far as samples mostly stand apart, and what is
//! beyond that counts as not running.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use super::from_profile::add_labels;
use super::{BuilderNode, CallTree, LabelId, SiblingOrder, TreeBuilder};
use crate::frame::FrameKind;
use crate::ids::{Pid, StackId, ThreadId, Tid};
use crate::profile::Profile;
use crate::units::{Nanos, ValueType, Weight};

/// Where samples mostly stand so far apart, one that stands apart three times as far is no exception:
/// intervals are random.
const REACH: u64 = 3;

/// More boxes than all lanes together have, some 50 bytes each, nobody looks at.
const MOST_BOXES: usize = 3_000_000;

/// A time in which a thread had a CPU, since the first sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// When it got the CPU.
    pub from: Nanos,
    /// When it left it.
    pub until: Nanos,
}

/// What a thread did.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The thread, by its last name.
    pub thread: ThreadId,
    /// Its stacks in order of time, in nanoseconds; the root has the whole recording, and where the
    /// thread did not run a child called [`Lane::AWAY`].
    pub tree: CallTree,
    /// When it ran, where that is known.
    pub runs: Vec<Range<Nanos>>,
    /// Samples that have no box: switches were lost, so that the thread is not known to have run then.
    pub unplaced: usize,
    /// This many outermost frames of each stack are in the tree, where all would be too many.
    pub depth: Option<usize>,
}

/// What is known of a thread.
struct Found {
    /// Its position among all.
    number: usize,
    thread: ThreadId,
    pieces: Vec<Piece>,
    runs: Vec<Range<Nanos>>,
    unplaced: usize,
}

/// What tells threads apart: they may change their names.
type Key = (Option<Pid>, Option<Tid>);

/// A moment, and the stack of then.
type Moment = (Nanos, StackId);

impl Lane {
    /// Where a thread did not run.
    pub const AWAY: &str = "";

    /// The lanes of the threads that ran longest, in order of their processes and numbers, and how many others
    /// there are; none where it is not known when samples were taken. Breaks shorter than `finest` are left out.
    pub fn busiest(
        profile: &Profile,
        event: usize,
        finest: Nanos,
        most: usize,
    ) -> (Vec<Lane>, usize) {
        let (mut all, end) = found(profile, event, finest);
        let left_out = all.len().saturating_sub(most);
        all.sort_by_cached_key(|found| Reverse(busy(&found.pieces)));
        all.truncate(most);
        // What those with few samples leave of their part the others get.
        all.sort_by_key(|found| found.pieces.len());
        let mut grower = Grower { profile, labels: vec![Vec::new(); profile.locations().len()] };
        let (mut room, mut waiting) = (MOST_BOXES, all.len());
        let lane = |Found { number, thread, pieces, runs, unplaced }: Found| {
            let (tree, depth) = grower.bounded_tree(&pieces, end, room / waiting);
            (room, waiting) = (room.saturating_sub(tree.nodes().len()), waiting - 1);
            (number, Lane { thread, tree, runs, unplaced, depth })
        };
        let mut lanes: Vec<(usize, Lane)> = all.into_iter().map(lane).collect();
        lanes.sort_by_key(|(number, _)| *number);
        (lanes.into_iter().map(|(_, lane)| lane).collect(), left_out)
    }
}

/// All threads that were sampled, in order of their processes and numbers, and when the recording ends.
fn found(profile: &Profile, event: usize, finest: Nanos) -> (Vec<Found>, Nanos) {
    let samples: Vec<_> = profile.samples().collect();
    // Where several events add up to one value, all samples have that.
    let last_event = (profile.value_types().len() / 2).saturating_sub(1);
    let mut threads: BTreeMap<Key, (ThreadId, Vec<Moment>)> = BTreeMap::new();
    for timed in profile.timeline.iter().flat_map(|timeline| timeline.iter()) {
        let is_meant = timed.event.min(last_event) == event;
        let Some(sample) = samples.get(timed.row).filter(|_| is_meant) else { continue };
        let thread = profile.thread(sample.thread);
        let (last, moments) =
            threads.entry((thread.pid, thread.tid)).or_insert_with(|| (sample.thread, Vec::new()));
        *last = sample.thread;
        moments.push((timed.time, sample.stack));
    }
    let mut runs: BTreeMap<Key, Vec<Range<Nanos>>> = BTreeMap::new();
    for run in profile.runs.iter().flatten() {
        runs.entry((Some(run.pid), Some(run.tid))).or_default().push(run.from..run.until);
    }
    let ends = runs.values().flatten().map(|run| run.end);
    let last = threads.values().flat_map(|(_, moments)| moments).map(|(time, _)| Nanos(time.0 + 1));
    let end = ends.chain(last).chain(profile.meta.duration).max().unwrap_or_default();
    let reach = reach(threads.values_mut().map(|(_, moments)| moments));
    let of = |(number, (key, (thread, moments))): (usize, (Key, (ThreadId, Vec<Moment>)))| {
        let runs = runs.remove(&key).unwrap_or_default();
        let pieces = match &profile.runs {
            Some(_) if !runs.is_empty() => within(&moments, &merged(&runs, finest)),
            _ => around(&moments, reach, end),
        };
        let unplaced = moments.len() - pieces.len();
        Found { number, thread, pieces, runs, unplaced }
    };
    (threads.into_iter().enumerate().map(of).collect(), end)
}

/// How far a sample reaches at most where it is not known when its thread ran. Sorts the moments.
fn reach<'m>(threads: impl Iterator<Item = &'m mut Vec<Moment>>) -> Nanos {
    let mut apart = Vec::new();
    for moments in threads {
        moments.sort_by_key(|(time, _)| *time);
        apart.extend(moments.windows(2).map(|pair| pair[1].0.0 - pair[0].0.0));
    }
    apart.sort_unstable();
    Nanos(apart.get(apart.len() / 2).map_or(1_000_000, |median| median * REACH))
}

/// Runs with short breaks as one.
fn merged(runs: &[Range<Nanos>], finest: Nanos) -> Vec<Range<Nanos>> {
    let mut sorted = runs.to_vec();
    sorted.sort_by_key(|run| run.start);
    let mut whole: Vec<Range<Nanos>> = Vec::new();
    for run in sorted {
        match whole.last_mut() {
            Some(last) if run.start.saturating_since(last.end) < finest => {
                last.end = last.end.max(run.end);
            }
            _ => whole.push(run),
        }
    }
    whole
}

/// A time, and the stack that was seen in it.
type Piece = (Range<Nanos>, StackId);

/// The samples of each run share it.
fn within(moments: &[Moment], runs: &[Range<Nanos>]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut left = moments;
    for run in runs {
        let before = left.partition_point(|(time, _)| *time < run.start);
        let of_run = left[before..].partition_point(|(time, _)| *time <= run.end);
        let seen = &left[before..before + of_run];
        left = &left[before + of_run..];
        for (at, (time, stack)) in seen.iter().enumerate() {
            let start = at.checked_sub(1).map_or(run.start, |at| middle(seen[at].0, *time));
            let end = seen.get(at + 1).map_or(run.end, |(next, _)| middle(*time, *next));
            pieces.push((start..end, *stack));
        }
    }
    pieces
}

/// Each sample goes half-way to the next, but not further than `reach`.
fn around(moments: &[Moment], reach: Nanos, end: Nanos) -> Vec<Piece> {
    let piece = |(at, (time, stack)): (usize, &Moment)| {
        let before = at.checked_sub(1).map_or(Nanos(0), |at| middle(moments[at].0, *time));
        let after = moments.get(at + 1).map_or(end, |(next, _)| middle(*time, *next));
        let start = before.max(Nanos(time.0.saturating_sub(reach.0)));
        (start..after.min(Nanos(time.0 + reach.0)), *stack)
    };
    moments.iter().enumerate().map(piece).collect()
}

fn middle(one: Nanos, other: Nanos) -> Nanos {
    Nanos(one.0.midpoint(other.0))
}

/// For how long a thread has boxes.
fn busy(pieces: &[Piece]) -> u64 {
    let mut now = Nanos(0);
    let add = |sum: u64, (time, _): &Piece| {
        let own = time.end.saturating_since(time.start.max(now)).0;
        now = now.max(time.end);
        sum.saturating_add(own)
    };
    pieces.iter().fold(0, add)
}

/// Makes trees of pieces.
struct Grower<'p> {
    profile: &'p Profile,
    /// For each location its labels, outermost first; empty = not met yet in this tree.
    labels: Vec<Vec<LabelId>>,
}

impl Grower<'_> {
    /// A tree of this many boxes at most: as much of the stacks as that takes, from their outermost frames
    /// on, and how much that is if not all.
    fn bounded_tree(
        &mut self,
        pieces: &[Piece],
        end: Nanos,
        most: usize,
    ) -> (CallTree, Option<usize>) {
        let mut depth = usize::MAX;
        loop {
            match self.tree(pieces, end, depth, most) {
                Ok(tree) => return (tree, (depth < usize::MAX).then_some(depth)),
                Err(deepest) => depth = deepest / 2,
            }
        }
    }

    /// A tree with this many outermost frames of each stack, or how many of them were met where those
    /// make more than `most` boxes. No frames are never too many.
    fn tree(
        &mut self,
        pieces: &[Piece],
        end: Nanos,
        depth: usize,
        most: usize,
    ) -> Result<CallTree, usize> {
        let pieces = if depth == 0 { &[] } else { pieces };
        let mut deepest = 1;
        self.labels.iter_mut().for_each(Vec::clear);
        let mut builder = TreeBuilder::new();
        let away = builder.label(Lane::AWAY, FrameKind::Mark);
        let mut open: Vec<(LabelId, BuilderNode)> = Vec::new();
        let mut now = Nanos(0);
        for (time, stack) in pieces {
            if time.start > now {
                rest(&mut builder, away, now..time.start);
                open.clear();
            }
            let mut path = self.path(*stack, &mut builder);
            path.truncate(depth);
            deepest = deepest.max(path.len());
            if builder.len() > most {
                return Err(deepest);
            }
            let common =
                open.iter().zip(&path).take_while(|((label, _), own)| label == *own).count();
            // What a node has itself comes behind what it calls: who ends a path begins anew.
            let shared = common.min(path.len().saturating_sub(1)).min(open.len().saturating_sub(1));
            open.truncate(shared);
            for label in &path[shared..] {
                let parent = open.last().map_or(BuilderNode::ROOT, |(_, node)| *node);
                open.push((*label, builder.child(parent, *label)));
            }
            let node = open.last().map_or(BuilderNode::ROOT, |(_, node)| *node);
            builder.add(node, Weight(time.end.saturating_since(time.start.max(now)).0));
            now = now.max(time.end);
        }
        rest(&mut builder, away, now..end);
        Ok(builder.finish(ValueType::new("time", "nanoseconds"), SiblingOrder::Time))
    }

    /// The labels of a stack, outermost first.
    fn path(&mut self, stack: StackId, builder: &mut TreeBuilder) -> Vec<LabelId> {
        let stacks = self.profile.stacks();
        let mut locations: Vec<_> = stacks.entries(stack).collect();
        locations.reverse();
        let mut path = Vec::new();
        for location in locations {
            let labels = &mut self.labels[location.index()];
            if labels.is_empty() {
                add_labels(self.profile, location, false, builder, labels);
            }
            path.extend_from_slice(labels);
        }
        path
    }
}

/// Nothing runs for a time.
fn rest(builder: &mut TreeBuilder, away: LabelId, time: Range<Nanos>) {
    if time.end > time.start {
        let node = builder.child(BuilderNode::ROOT, away);
        builder.add(node, Weight(time.end.0 - time.start.0));
    }
}

#[cfg(test)]
mod tests;
