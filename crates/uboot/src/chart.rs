//! The calls of a trace side by side as they came: in a flame chart x is time.
//!
//! Where time passed in a function before it made a call, its box is made of two nodes of one name:
//! the self weight of a node comes behind what is below it, and neighbours are merged into one box
//! with that room in between. Memory grows with the calls.

use flame_profile::{BuilderNode, CallTree, FrameKind, LabelId, SiblingOrder, TreeBuilder, Weight};

use crate::functions::{FunctionId, Functions};
use crate::graph::{Measure, PAUSED, kind};
use crate::replay::{Moment, Step};

/// The frame for the time between calls from outside of any traced function.
pub const OUTSIDE: &str = "[outside]";

/// A box that may still grow to the right.
#[derive(Clone, Copy, Debug)]
struct Box {
    node: BuilderNode,
    label: LabelId,
    /// Up to when it is filled.
    filled: u64,
}

/// A flame chart while it grows.
#[derive(Debug)]
pub struct Chart {
    builder: TreeBuilder,
    labels: Vec<LabelId>,
    outside: LabelId,
    paused: LabelId,
    /// The boxes of all open calls that are shown.
    boxes: Vec<Box>,
    /// For each open call its function if it is shown.
    open: Vec<Option<FunctionId>>,
    /// Up to when there are boxes beside each other on the root.
    filled: u64,
    now: u64,
}

impl Default for Chart {
    fn default() -> Chart {
        let mut builder = TreeBuilder::new();
        let mut mark = |name| builder.label(name, FrameKind::Mark);
        let (outside, paused) = (mark(OUTSIDE), mark(PAUSED));
        let (labels, boxes, open) = (Vec::new(), Vec::new(), Vec::new());
        Chart { builder, labels, outside, paused, boxes, open, filled: 0, now: 0 }
    }
}

impl Chart {
    pub(crate) fn take(&mut self, moment: Moment, functions: &Functions<'_>) {
        if moment.is_pause {
            self.pause(moment.elapsed);
        } else {
            self.now += moment.elapsed;
        }
        match moment.step {
            Step::Entered => {
                for (function, traits) in functions.list().skip(self.labels.len()) {
                    self.labels.push(self.builder.label(&function.name, kind(*traits)));
                }
                let shown = functions.traits(moment.function).is_kept.then_some(moment.function);
                self.open.push(shown);
                if let Some(function) = shown {
                    self.begin(function);
                }
            }
            Step::Left { calls, .. } => {
                for _ in 0..calls {
                    if self.open.pop().flatten().is_some() {
                        self.end();
                    }
                }
            }
            Step::Unmatched => {}
        }
    }

    fn begin(&mut self, function: FunctionId) {
        let label = self.labels[function.index()];
        self.fill();
        let parent = self.boxes.last().map_or(BuilderNode::ROOT, |parent| parent.node);
        let node = self.builder.child(parent, label);
        self.boxes.push(Box { node, label, filled: self.now });
    }

    /// Fills the innermost box up to now, and goes on with another node of it.
    fn fill(&mut self) {
        let Some((innermost, callers)) = self.boxes.split_last_mut() else {
            if self.now > self.filled {
                let space = self.builder.child(BuilderNode::ROOT, self.outside);
                self.builder.add(space, Weight(self.now - self.filled));
            }
            self.filled = self.now;
            return;
        };
        if self.now > innermost.filled {
            self.builder.add(innermost.node, Weight(self.now - innermost.filled));
            let caller = callers.last().map_or(BuilderNode::ROOT, |caller| caller.node);
            innermost.node = self.builder.child(caller, innermost.label);
            innermost.filled = self.now;
        }
    }

    fn end(&mut self) {
        if let Some(ended) = self.boxes.pop() {
            self.builder.add(ended.node, Weight(self.now - ended.filled));
        }
        match self.boxes.last_mut() {
            Some(caller) => caller.filled = self.now,
            None => self.filled = self.now,
        }
    }

    /// Ends all boxes, and begins them anew behind the pause.
    fn pause(&mut self, length: u64) {
        while !self.boxes.is_empty() {
            self.end();
        }
        self.fill();
        let pause = self.builder.child(BuilderNode::ROOT, self.paused);
        self.builder.add(pause, Weight(length));
        let shown: Vec<FunctionId> = self.open.iter().flatten().copied().collect();
        shown.into_iter().for_each(|function| self.begin(function));
    }

    /// The chart, with the calls that are still open ending now.
    pub fn finish(mut self) -> CallTree {
        while !self.boxes.is_empty() {
            self.end();
        }
        self.builder.finish(Measure::Time.value_type(), SiblingOrder::Time)
    }
}
