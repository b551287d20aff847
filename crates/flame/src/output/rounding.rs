//! What pprof, which has whole numbers only, loses of weights with decimal places.

use flame_message::{ValueScale, counted};
use flame_profile::{CallTree, Weight};

use super::Outputs;
use crate::message::{Failure, warn};

/// What rounding makes of a tree.
#[derive(Debug, Default)]
struct Rounding {
    /// Stacks that are not what they were.
    changed: u64,
    /// Those of them that weigh nothing any more.
    gone: u64,
    /// What all weigh then, in whole units.
    total: u64,
}

impl Rounding {
    /// As [`CallTree::to_profile`] rounds.
    fn of(tree: &CallTree) -> Rounding {
        let unit = 10_u64.saturating_pow(tree.decimals());
        let mut rounding = Rounding::default();
        for weight in tree.nodes().iter().map(|node| node.self_weight.0) {
            let whole = weight.saturating_add(unit / 2) / unit;
            rounding.changed += u64::from(!weight.is_multiple_of(unit));
            rounding.gone += u64::from(weight > 0 && whole == 0);
            rounding.total += whole;
        }
        rounding
    }
}

impl Outputs {
    /// Says what a pprof file that is made of a tree will lack of its weights.
    ///
    /// # Errors
    /// It will lack some, and what is lost is to be an error.
    pub(crate) fn check_rounding(&self, tree: &CallTree, is_strict: bool) -> Result<(), Failure> {
        if tree.decimals() == 0 || !self.saves() {
            return Ok(());
        }
        let Rounding { changed, gone, total } = Rounding::of(tree);
        if changed == 0 {
            return Ok(());
        }
        let exact = ValueScale::of_tree(tree, None).amount(tree.total());
        let whole = ValueScale::of(tree.value_type()).number(Weight(total));
        let rounded = counted(changed, "weight is", "weights are");
        let lost = match gone {
            0 => String::new(),
            gone => format!(", and {} left out", counted(gone, "stack is", "stacks are")),
        };
        let what = format!("pprof has whole numbers only: {rounded} rounded{lost}");
        let why =
            format!("{exact} in all become {whole}; folded text and JSON keep decimal places");
        let factor = 10_u64.saturating_pow(tree.decimals());
        let hint = match self.picture.args.factor {
            Some(_) => format!("a --factor {factor} times as large keeps all"),
            None => format!("--factor {factor} keeps all"),
        };
        if is_strict {
            let why = format!("{why}; --strict makes that an error");
            return Err(Failure::new(what).why(why).or_try(hint));
        }
        if !self.quiet {
            warn(&format!("{what}: {why}; {hint}"), self.color);
        }
        Ok(())
    }
}
