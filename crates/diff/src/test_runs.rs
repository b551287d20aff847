//! Runs made of folded text, for the tests.

use flame_profile::{Columns, FoldedReader, SiblingOrder, ValueType};

use crate::{DiffConfig, DiffNode, DiffTree, Run, Samples, Scaling};

/// A run of which each unit of weight is a sample.
pub(crate) fn run(text: &str) -> Run {
    let mut reader = FoldedReader::new(Columns::One, SiblingOrder::Name);
    reader.read(&mut text.as_bytes()).unwrap();
    assert_eq!(reader.skipped_lines(), 0, "{text}");
    let tree = reader.finish(ValueType::samples());
    Run { name: "test.folded".to_owned(), tree, samples: Samples::PerUnit(1.0), duration: None }
}

/// Two runs compared.
pub(crate) fn diff(before: &str, after: &str, scaling: Scaling) -> DiffTree {
    let config = DiffConfig { scaling, ..DiffConfig::default() };
    DiffTree::new(&[run(before)], &[run(after)], &config).unwrap()
}

/// The names from the outermost frame to a node.
pub(crate) fn path(tree: &DiffTree, node: &DiffNode) -> String {
    let mut names = Vec::new();
    let mut at = node;
    while at.depth > 0 {
        names.push(tree.label(at).name.as_str());
        at = &tree.nodes()[at.parent.index()];
    }
    names.reverse();
    names.join(";")
}
