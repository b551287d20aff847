//! What a graph shows, in a sentence: for screen readers and for whoever reads the file.

use flame_message::{clean_name, format_share};
use flame_profile::{CallTree, Weight, narrow};

use crate::tooltip::tooltip_name;

/// Functions that are named.
const MOST: usize = 5;

/// The functions with the most self weight; `None` of a graph without any.
pub(super) fn hottest(tree: &CallTree) -> Option<String> {
    let mut weights: Vec<(Weight, u32)> =
        (0..narrow(tree.labels().len())).map(|label| (Weight(0), label)).collect();
    for node in tree.nodes() {
        weights[node.label.index()].0 += match tree.is_turned() {
            true if node.depth == 1 => node.total,
            true => Weight(0),
            false => node.self_weight,
        };
    }
    weights.retain(|(weight, _)| weight.0 > 0);
    let label = |label: u32| &tree.labels()[label as usize];
    let order = |a: &(Weight, u32), b: &(Weight, u32)| {
        b.0.cmp(&a.0).then_with(|| label(a.1).cmp(label(b.1)))
    };
    if weights.len() > MOST {
        weights.select_nth_unstable_by(MOST, order);
        weights.truncate(MOST);
    }
    weights.sort_unstable_by(order);
    let one = |(weight, at): &(Weight, u32)| {
        let name = clean_name(&label(*at).name).into_owned();
        format!("{} {}", tooltip_name(&name), format_share(*weight, tree.total()))
    };
    let named: Vec<String> = weights.iter().map(one).collect();
    (!named.is_empty()).then(|| format!("Most self weight: {}", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_trees::tree_of;
    use flame_profile::SiblingOrder;

    #[test]
    fn the_functions_where_samples_end_are_named() {
        let stacks = [("t;a;b", 30), ("t;a", 20), ("t;c", 20), ("t;d", 9), ("t;e", 8), ("t;f", 7)];
        let stacks = [&stacks[..], &[("t;g", 6)]].concat();
        let expect = "Most self weight: b 30.00%, a 20.00%, c 20.00%, d 9.00%, e 8.00%";
        let tree = tree_of(&stacks);
        assert_eq!(hottest(&tree).as_deref(), Some(expect));
        assert_eq!(hottest(&tree.reversed(SiblingOrder::Name)).as_deref(), Some(expect));
        assert_eq!(hottest(&tree_of::<&str>(&[])), None);
    }
}
