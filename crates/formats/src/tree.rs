//! Trees that tools print row by row: each row a function, its depth and a weight.

use crate::sink::{FrameIndex, Sample, Sink};

/// What the weight of a row stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weights {
    /// The row's own weight, without what stands below it.
    Own,
    /// The row and all that stands below it; what is left for itself is the difference.
    WithRowsBelow,
}

/// Which end of a stack the first row of a tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TopRow {
    Outermost,
    Innermost,
}

/// Takes the rows in order, and adds the stack of each with what belongs to itself.
#[derive(Debug)]
pub(crate) struct TreeRows {
    weights: Weights,
    top: TopRow,
    open: Vec<Row>,
    stack: Vec<FrameIndex>,
}

#[derive(Debug)]
struct Row {
    depth: usize,
    frame: FrameIndex,
    /// One a value type.
    own: Vec<u64>,
}

impl TreeRows {
    pub(crate) fn new(weights: Weights, top: TopRow) -> TreeRows {
        TreeRows { weights, top, open: Vec::new(), stack: Vec::new() }
    }

    /// The next row. It stands below the last row that is less deep.
    pub(crate) fn push(
        &mut self,
        sink: &mut Sink,
        depth: usize,
        frame: FrameIndex,
        weights: &[u64],
    ) {
        while self.open.last().is_some_and(|row| row.depth >= depth) {
            self.close(sink);
        }
        if self.weights == Weights::WithRowsBelow
            && let Some(above) = self.open.last_mut()
        {
            for (own, weight) in above.own.iter_mut().zip(weights) {
                *own = own.saturating_sub(*weight);
            }
        }
        self.open.push(Row { depth, frame, own: weights.to_vec() });
    }

    /// Ends the tree; another one may follow.
    pub(crate) fn finish(&mut self, sink: &mut Sink) {
        while !self.open.is_empty() {
            self.close(sink);
        }
    }

    /// Adds the stack that ends at the last open row.
    fn close(&mut self, sink: &mut Sink) {
        // Most rows have nothing of their own.
        if self.open.last().is_some_and(|row| row.own.iter().any(|own| *own > 0)) {
            self.stack.clear();
            let frames = self.open.iter().map(|row| row.frame);
            match self.top {
                TopRow::Outermost => self.stack.extend(frames),
                TopRow::Innermost => self.stack.extend(frames.rev()),
            }
            let own = self.open.last().map_or(&[][..], |row| &row.own);
            sink.add(&Sample::new(&self.stack, own));
        }
        self.open.pop();
    }
}
