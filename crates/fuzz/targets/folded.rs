//! Folded text: whatever the bytes, nothing is lost, and a picture of it is well-formed.
//!
//! The first byte cuts the text in two, which are read apart and put together.
#![no_main]

use flame_profile::{
    Annotations, Columns, FoldedParts, FoldedReader, SiblingOrder, ValueType, write_folded,
};
use flame_render::{SvgConfig, write_svg};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((cut, text)) = input.split_first() else { return };
    let read = |text: &[u8], columns| {
        let mut reader = FoldedReader::new(columns, SiblingOrder::Name);
        reader.read(&mut &*text).is_ok().then_some(reader)
    };
    let reader = read(text, Columns::detect(text)).or_else(|| read(text, Columns::One));
    let tree = reader.expect("one count a line can be read always").finish(ValueType::samples());
    let sum = |nodes: &[flame_profile::Node]| {
        nodes.iter().fold(0_u64, |sum, node| sum.saturating_add(node.self_weight.0))
    };
    assert_eq!(tree.total().0, sum(tree.nodes()));

    // Cut at a line end, both halves make the same tree; fractions may be rounded differently.
    let at = usize::from(*cut).min(text.len());
    let at =
        text[at..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |end| at + end + 1);
    let halves = (read(&text[..at], Columns::One), read(&text[at..], Columns::One));
    let whole = read(text, Columns::One);
    if let ((Some(first), Some(second)), Some(whole)) = (halves, whole) {
        let parts = [first, second].map(|half| half.into_part(false));
        let parts = FoldedParts::new(parts).expect("there are two");
        assert_eq!(parts.skipped_lines(), whole.skipped_lines());
        let parts = parts.finish(ValueType::samples(), SiblingOrder::Name);
        let whole = whole.finish(ValueType::samples());
        let paths = |tree: &flame_profile::CallTree| -> Vec<_> {
            tree.nodes()
                .iter()
                .map(|node| (node.depth, node.end, tree.label(node).clone()))
                .collect()
        };
        assert_eq!(paths(&parts), paths(&whole));
    }

    let mut svg = Vec::new();
    write_svg(&tree, &SvgConfig::default(), &mut svg).expect("memory takes any bytes");
    let svg = String::from_utf8(svg).expect("names are text");
    roxmltree::Document::parse(&svg).expect("the picture is well-formed");

    // What is written is read again without a loss.
    let mut folded = Vec::new();
    write_folded(&tree, Annotations::Write, &mut folded).expect("memory takes any bytes");
    let columns = if tree.before().is_some() { Columns::Two } else { Columns::One };
    if tree.total().0 < u64::MAX / 2 {
        let again = read(&folded, columns).expect("what was written can be read");
        assert_eq!(again.skipped_lines(), 0, "{}", String::from_utf8_lossy(&folded));
    }
});
