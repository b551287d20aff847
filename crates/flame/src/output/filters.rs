//! Filters of stacks: which are shown, and which of their frames.

use std::cell::Cell;

use flame_message::ValueScale;
use flame_profile::{CallTree, LabelId, SiblingOrder, Weight};
use regex_lite::Regex;

use crate::cli::FilterArgs;
use crate::message::Failure;

/// The filters that are asked for, their expressions understood.
#[derive(Debug, Default)]
pub(super) struct Filters {
    grep: Vec<Regex>,
    exclude: Vec<Regex>,
    hide: Vec<Regex>,
    trim_root: usize,
    min_weight: u64,
    packages: bool,
}

impl Filters {
    pub(super) fn prepare(args: &FilterArgs) -> Result<Filters, Failure> {
        Ok(Filters {
            grep: regexes("--grep", &args.grep)?,
            exclude: regexes("--exclude", &args.exclude)?,
            hide: regexes("--hide", &args.hide)?,
            trim_root: args.trim_root.unwrap_or(0),
            min_weight: args.min_weight.unwrap_or(0),
            packages: args.packages,
        })
    }

    /// Whether all stacks are shown as they are.
    pub(super) fn is_empty(&self) -> bool {
        let Filters { grep, exclude, hide, trim_root, min_weight, packages } = self;
        grep.is_empty()
            && exclude.is_empty()
            && hide.is_empty()
            && *trim_root == 0
            && *min_weight == 0
            && !packages
    }

    /// What is left of a tree, and what is to be said of stacks of which no frame is left.
    pub(super) fn apply(&self, tree: &CallTree, order: SiblingOrder) -> (CallTree, Option<String>) {
        let matches = |regexes: &[Regex]| -> Vec<bool> {
            let is_match = |name: &str| regexes.iter().any(|regex| regex.is_match(name));
            let labels = tree.labels().iter();
            labels.map(|label| is_match(&label.name)).collect()
        };
        let (grep, exclude) = (matches(&self.grep), matches(&self.exclude));
        let hide = matches(&self.hide);
        let min_weight =
            Weight(self.min_weight.saturating_mul(10_u64.saturating_pow(tree.decimals())));
        let emptied = Cell::new(Weight(0));
        let left = tree.with_paths(order, |path: &mut Vec<LabelId>, weight: Weight| {
            let any = |of: &[bool]| path.iter().any(|label| of[label.index()]);
            let is_shown = (self.grep.is_empty() || any(&grep)) && !any(&exclude);
            if !is_shown || weight < min_weight {
                path.clear();
                return;
            }
            path.drain(..self.trim_root.min(path.len()));
            path.retain(|label| !hide[label.index()]);
            if path.is_empty() {
                emptied.set(emptied.get() + weight);
            }
        });
        let left = if self.packages { left.with_packages(order) } else { left };
        (left, self.complaint(tree, emptied.get()))
    }

    /// What is said of weight that no frame stands for any more: the share of others would be larger
    /// without a word.
    fn complaint(&self, tree: &CallTree, emptied: Weight) -> Option<String> {
        if emptied == Weight(0) {
            return None;
        }
        let options = match (self.trim_root > 0, self.hide.is_empty()) {
            (true, true) => "--trim-root",
            (false, _) => "--hide",
            (true, false) => "--trim-root and --hide",
        };
        let scale = ValueScale::of_tree(tree, None);
        let (emptied, all) = (scale.number(emptied), scale.amount(tree.total()));
        Some(format!(
            "{options} left no frame of stacks that weigh {emptied} of {all}: they are left out"
        ))
    }
}

fn regexes(option: &str, texts: &[String]) -> Result<Vec<Regex>, Failure> {
    let regex = |text: &String| {
        Regex::new(text).map_err(|error| {
            Failure::usage(format!("{option} {text} is not a regular expression"))
                .why(error.to_string())
        })
    };
    texts.iter().map(regex).collect()
}
