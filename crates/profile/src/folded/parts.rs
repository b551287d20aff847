//! Parts of one text that were read side by side.

use super::skipped::SHOWN_LINES;
use super::{FoldedReader, SkippedLine};
use crate::call_tree::{CallTree, SiblingOrder, TreeBuilder};
use crate::units::ValueType;

/// A part of a text that was read, as far ready as its order allows.
#[derive(Debug)]
pub struct FoldedPart {
    lines: u64,
    skipped_lines: u64,
    first_skipped: Vec<SkippedLine>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// Siblings in the order of their names, whatever the order that is asked for.
    Tree(Box<CallTree>),
    Reader(Box<FoldedReader>),
}

impl FoldedPart {
    /// The only part of a text, or one that others follow.
    pub(super) fn new(reader: FoldedReader, is_whole: bool) -> FoldedPart {
        let (lines, skipped_lines) = (reader.lines(), reader.skipped_lines());
        let first_skipped = reader.first_skipped().to_vec();
        let by_name = reader.order().is_of_names();
        let content = if by_name && !is_whole {
            let builder = reader.into_builder();
            let tree = builder.finish(ValueType::samples(), SiblingOrder::Name);
            Content::Tree(Box::new(tree))
        } else {
            Content::Reader(Box::new(reader))
        };
        FoldedPart { lines, skipped_lines, first_skipped, content }
    }

    fn into_tree(self) -> CallTree {
        match self.content {
            Content::Tree(tree) => *tree,
            Content::Reader(reader) => reader.finish(ValueType::samples()),
        }
    }

    fn into_builder(self) -> TreeBuilder {
        match self.content {
            Content::Tree(tree) => TreeBuilder::of_tree(*tree),
            Content::Reader(reader) => reader.into_builder(),
        }
    }
}

/// All parts of a text in their order, at least one.
///
/// Parts are made by [`FoldedReader::into_part`], on any threads.
#[derive(Debug)]
pub struct FoldedParts {
    first: FoldedPart,
    others: Vec<FoldedPart>,
}

impl FoldedParts {
    /// Puts parts together; `None` when there are none.
    pub fn new(parts: impl IntoIterator<Item = FoldedPart>) -> Option<FoldedParts> {
        let mut parts = parts.into_iter();
        Some(FoldedParts { first: parts.next()?, others: parts.collect() })
    }

    /// Lines of all parts that have no stack or no count that can be read.
    pub fn skipped_lines(&self) -> u64 {
        self.first.skipped_lines + self.others.iter().map(|part| part.skipped_lines).sum::<u64>()
    }

    /// The first few of these, numbered as the whole text has them.
    pub fn first_skipped(&self) -> Vec<SkippedLine> {
        let mut before = 0;
        let mut lines = Vec::new();
        for part in std::iter::once(&self.first).chain(&self.others) {
            let of_part = part.first_skipped.iter().cloned();
            lines.extend(of_part.map(|line| SkippedLine { number: line.number + before, ..line }));
            before += part.lines;
        }
        lines.truncate(SHOWN_LINES);
        lines
    }

    /// The call tree of all parts in that order, which must be the one that they were read for.
    pub fn finish(self, value_type: ValueType, order: SiblingOrder) -> CallTree {
        if let Content::Reader(_) = self.first.content {
            return self.into_builder().finish(value_type, order);
        }
        let others = self.others.into_iter().map(FoldedPart::into_tree);
        others.fold(self.first.into_tree(), CallTree::followed_by).with(value_type, order)
    }

    /// The tree as it has grown, to be merged with others.
    pub fn into_builder(self) -> TreeBuilder {
        let mut builder = self.first.into_builder();
        self.others.into_iter().for_each(|part| builder.append(part.into_builder()));
        builder
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folded::Columns;
    use crate::folded::read::tests::lines;

    const TEXT: &str = "a;b 1\nnonsense\na;b;c 2\na;d 0.5\ne;b 4\ne;a;f 1\na;b 8\n";

    fn part(text: &str, order: SiblingOrder, is_whole: bool) -> FoldedPart {
        let mut reader = FoldedReader::new(Columns::One, order);
        reader.read(&mut text.as_bytes()).unwrap();
        reader.into_part(is_whole)
    }

    #[test]
    fn parts_put_together_are_the_whole_in_every_order() {
        use SiblingOrder::{First, Name, Time, Weight};
        for order in [Name, Weight, First, Time] {
            let whole = FoldedParts::new([part(TEXT, order, true)]).unwrap();
            let whole = whole.finish(ValueType::samples(), order);
            for (end, _) in TEXT.match_indices('\n') {
                let (one, other) = TEXT.split_at(end + 1);
                let parts = || {
                    let parts = [one, other].map(|text| part(text, order, false));
                    FoldedParts::new(parts).unwrap()
                };
                assert_eq!(parts().skipped_lines(), 1);
                let skipped = parts().first_skipped();
                assert_eq!((skipped[0].number, skipped[0].text.as_slice()), (2, &b"nonsense"[..]));
                let cpu_time = ValueType::new("cpu", "nanoseconds");
                let tree = parts().finish(cpu_time.clone(), order);
                assert_eq!(lines(&tree), lines(&whole), "{order:?} at {end}");
                assert_eq!(*tree.value_type(), cpu_time);
                assert_eq!(tree.decimals(), 1);
                let tree = parts().into_builder().finish(ValueType::samples(), order);
                assert_eq!(lines(&tree), lines(&whole), "{order:?} at {end}");
            }
        }
        assert!(FoldedParts::new([]).is_none());
    }

    #[test]
    fn lines_that_are_skipped_have_their_numbers_in_the_whole_text() {
        let texts = ["a 1\nb 1\n", "bad\nc 1\n", "d 1\nworse\n"];
        let parts =
            FoldedParts::new(texts.map(|text| part(text, SiblingOrder::Name, false))).unwrap();
        assert_eq!(parts.skipped_lines(), 2);
        let skipped = parts.first_skipped();
        let skipped: Vec<(u64, &[u8])> =
            skipped.iter().map(|line| (line.number, line.text.as_slice())).collect();
        assert_eq!(skipped, [(3, &b"bad"[..]), (6, b"worse")]);
    }
}
