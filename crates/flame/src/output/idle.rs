//! Options that change nothing, or not what they are asked to, in the outputs of a tree.

use flame_profile::{CallTree, SiblingOrder};

use super::{Format, Outputs};
use crate::cli::PictureArgs;

impl Outputs {
    /// Options that are given and change nothing of a tree's outputs, each with the reason; also a
    /// flame chart of a file that has none.
    pub(crate) fn idle_options(&self, tree: &CallTree) -> Vec<String> {
        let mut idle = self.idle_options_of_any(tree);
        if self.tree.order == SiblingOrder::Time && are_sums(tree) {
            let what = "--flamechart shows the order of the file: no stack is there twice, so they \
                        are sums and tell no time";
            idle.push(what.to_owned());
        }
        idle
    }

    /// The same for what is known to have an order in time.
    pub(crate) fn idle_options_of_any(&self, tree: &CallTree) -> Vec<String> {
        let PictureArgs { flat, min_share, negate, colors_diff, .. } = &self.picture.args;
        let reports = self.formats().any(|f| matches!(f, Format::Text | Format::Markdown));
        let on_terminal = self.formats().any(|f| f == Format::Terminal);
        let (not_report, not_two) = ("no output is .txt or .md", "there is one count a stack");
        // On a terminal --flat makes a report of the picture.
        let reports = reports || *flat && on_terminal;
        let given = [
            (*flat && !reports, "--flat", not_report),
            (min_share.is_some() && !reports, "--min-share", not_report),
            (*negate && tree.before().is_none(), "--negate", not_two),
            (colors_diff.is_some() && tree.before().is_none(), "--colors-diff", not_two),
        ];
        let idle = given.into_iter().filter(|(is_idle, ..)| *is_idle);
        idle.map(|(_, option, why)| format!("{option} changes nothing here: {why}")).collect()
    }
}

/// So few stacks may each be there once by chance.
const FEW_STACKS: usize = 30;

/// Whether each stack of a tree in the order of its input is there once, as after a collapsing
/// script, which sums equal ones.
fn are_sums(tree: &CallTree) -> bool {
    let stacks = |tree: &CallTree| tree.nodes().iter().filter(|n| n.self_weight.0 > 0).count();
    let count = stacks(tree);
    // Turned round, equal stacks are merged, and all others end at places of their own.
    count >= FEW_STACKS && stacks(&tree.reversed(SiblingOrder::Name)) == count
}
