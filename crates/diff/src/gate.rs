//! Bounds: what a change must not exceed, and what of a comparison does.

use flame_profile::{Label, Weight};

use crate::evidence::Evidence;
use crate::function::FunctionChange;
use crate::names::Names;
use crate::scale::Scaling;
use crate::tree::DiffTree;

/// What all of a profile is called.
const WHOLE: &str = "all";

/// A bound that a change must not exceed.
///
/// ```text
/// [FUNCTION:]self|total > [+]PERCENT%    grew by more
/// [FUNCTION:]self|total < -PERCENT%      shrank by more
/// ```
///
/// ```
/// use flame_diff::Gate;
///
/// assert!(Gate::parse("parse_json:self>+2%").is_ok());
/// assert!(Gate::parse("parse_json>2%").is_err());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// As it was written.
    pub text: String,
    /// `None` = any function.
    function: Option<String>,
    /// Which weight is meant.
    pub part: Part,
    /// Whether growth is bounded, and not shrinking.
    pub grows: bool,
    /// In points or percent; above or equal 0.
    bound: f64,
}

/// A weight of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The self weight.
    Own,
    /// The total.
    Total,
}

/// One change, to be held against a bound.
#[derive(Clone, Copy, Debug)]
pub struct Excess<'t> {
    /// The function, or `all`.
    pub name: &'t str,
    /// What it weighed.
    pub before: Weight,
    /// What it weighs.
    pub after: Weight,
    /// In points or percent, with its sign.
    pub change: f64,
    /// Whether that is not chance.
    pub evidence: Evidence,
}

/// Why a text is not a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a bound is written like 'total>5%', 'parse_json:self>+2%' or 'total<-5%': self or total, of \
     any function or of one, then > with a growth or < with a decrease"
)]
pub struct NoGate;

impl Gate {
    /// Reads a bound.
    ///
    /// # Errors
    /// The text is not a bound.
    pub fn parse(text: &str) -> Result<Gate, NoGate> {
        let wrong = || NoGate;
        let at = text.rfind(['<', '>']).ok_or_else(wrong)?;
        let (what, bound) = (text[..at].trim(), text[at + 1..].trim());
        let grows = &text[at..=at] == ">";
        let (function, part) = match what.rsplit_once(':') {
            Some((function, part)) if !function.trim().is_empty() => (Some(function.trim()), part),
            Some(_) => return Err(wrong()),
            None => (None, what),
        };
        let part = match part.trim() {
            "self" => Part::Own,
            "total" => Part::Total,
            _ => return Err(wrong()),
        };
        let number = bound.strip_suffix('%').unwrap_or(bound).trim_end();
        let is_negative = number.starts_with('-');
        let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
        let bound = digits.parse::<f64>().ok();
        let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        let bound = bound.filter(|bound| is_number && bound.is_finite()).ok_or_else(wrong)?;
        // Above a shrinking or below a growth is nearly everything, and no bound.
        if bound > 0.0 && is_negative == grows {
            return Err(wrong());
        }
        let function = function.map(str::to_owned);
        Ok(Gate { text: text.to_owned(), function, part, grows, bound })
    }

    /// The same bound where functions are called by what their names have in common.
    pub fn with_names(&self, names: Names) -> Gate {
        let common = |name: &String| names.common(name).into_owned();
        Gate { function: self.function.as_ref().map(common), ..self.clone() }
    }

    /// What exceeds the bound and is real, the largest change first. A function is given by its name
    /// or by what `shown` makes of its label, as a table has it.
    pub fn exceeded<'t>(
        &self,
        tree: &'t DiffTree,
        shown: &dyn Fn(&Label) -> String,
    ) -> Vec<Excess<'t>> {
        let mut excesses = self.changes(tree, shown);
        excesses.retain(|excess| self.is_beyond(excess) && excess.evidence.is_real());
        excesses.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()).then(a.name.cmp(b.name)));
        excesses
    }

    /// The change of a named function that exceeds the bound, but by what could be noise.
    pub fn doubtful<'t>(
        &self,
        tree: &'t DiffTree,
        shown: &dyn Fn(&Label) -> String,
    ) -> Option<Excess<'t>> {
        self.function.as_ref()?;
        let mut beyond = self.changes(tree, shown);
        beyond.retain(|change| self.is_beyond(change));
        let is_sure = beyond.iter().any(|change| change.evidence.is_real());
        beyond.into_iter().next().filter(|_| !is_sure)
    }

    fn is_beyond(&self, excess: &Excess<'_>) -> bool {
        let beyond = if self.grows { excess.change } else { -excess.change };
        beyond > self.bound
    }

    /// The function that is in neither profile, if it was named.
    pub fn missing(&self, tree: &DiffTree, shown: &dyn Fn(&Label) -> String) -> Option<&str> {
        self.function.as_deref().filter(|_| self.changes(tree, shown).is_empty())
    }

    fn changes<'t>(&self, tree: &'t DiffTree, shown: &dyn Fn(&Label) -> String) -> Vec<Excess<'t>> {
        let label = |function: &FunctionChange| &tree.labels()[function.label.index()];
        let name = |function: &FunctionChange| label(function).name.as_str();
        // The table's way to write a name is as good as the name.
        let is_meant = |found: &Label| {
            let function = self.function.as_deref();
            function.is_none_or(|wanted| wanted == found.name || wanted == shown(found))
        };
        let functions = tree.functions().iter().filter(|function| is_meant(label(function)));
        let mut changes: Vec<Excess<'_>> =
            functions.map(|function| self.change(tree, name(function), function)).collect();
        // The share of everything in itself is 100 % on both sides.
        let named = self.function.as_deref() == Some(WHOLE) && changes.is_empty();
        if named || (self.function.is_none() && *tree.scaling() != Scaling::Total) {
            let root = tree.root();
            let whole = FunctionChange {
                label: root.label,
                before: root.before,
                after: root.after,
                self_evidence: root.self_evidence,
                total_evidence: root.total_evidence,
            };
            changes.push(self.change(tree, WHOLE, &whole));
        }
        changes
    }

    fn change<'t>(&self, tree: &DiffTree, name: &'t str, function: &FunctionChange) -> Excess<'t> {
        let (before, after, evidence) = match self.part {
            Part::Own => {
                (function.before.self_weight, function.after.self_weight, function.self_evidence)
            }
            Part::Total => (function.before.total, function.after.total, function.total_evidence),
        };
        let change = tree.points(tree.scale().change(before, after));
        Excess { name, before, after, change, evidence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_runs::diff;

    #[track_caller]
    fn check(text: &str, function: Option<&str>, part: Part, grows: bool, bound: f64) {
        let function = function.map(str::to_owned);
        let expect = Gate { text: text.to_owned(), function, part, grows, bound };
        assert_eq!(Gate::parse(text), Ok(expect));
    }

    #[test]
    fn bounds_name_a_part_a_direction_and_a_size() {
        check("total>5%", None, Part::Total, true, 5.0);
        check("total > 5", None, Part::Total, true, 5.0);
        check("self<-0.5%", None, Part::Own, false, 0.5);
        check("parse_json:self>+2%", Some("parse_json"), Part::Own, true, 2.0);
        check(
            "std::vec::Vec<T>::push:total>1%",
            Some("std::vec::Vec<T>::push"),
            Part::Total,
            true,
            1.0,
        );
        check("operator->:self>.5%", Some("operator->"), Part::Own, true, 0.5);
        check("total>0%", None, Part::Total, true, 0.0);
        check("total<0%", None, Part::Total, false, 0.0);
    }

    #[test]
    fn what_is_no_bound_is_refused_with_what_is() {
        for text in [
            "",
            "total",
            "total=5%",
            "5%",
            ">5%",
            "main>5%",
            ":self>5%",
            "total>x",
            "total>5%%",
            "total>-5%",
            "total<5%",
            "total>",
            "total>nan",
            "total>inf",
            "total>--5%",
            "total>1e999",
        ] {
            assert_eq!(Gate::parse(text), Err(NoGate), "{text}");
        }
    }
    const BEFORE: &str = "main;grows 1000\nmain;shrinks 2000\nmain;stays 7000\n";
    const AFTER: &str = "main;grows 1500\nmain;shrinks 1500\nmain;stays 7000\n";

    fn gate(text: &str) -> Gate {
        Gate::parse(text).unwrap()
    }

    fn name_of(label: &Label) -> String {
        label.name.clone()
    }

    #[track_caller]
    fn check_exceeded(tree: &DiffTree, text: &str, expect: &[(&str, f64)]) {
        let found = gate(text).exceeded(tree, &name_of);
        let found: Vec<_> = found.iter().map(|excess| (excess.name, excess.change)).collect();
        assert_eq!(found, expect, "{text}");
    }

    #[test]
    fn what_is_beyond_a_bound_exceeds_it() {
        let tree = diff(BEFORE, AFTER, Scaling::Total);
        check_exceeded(&tree, "self>4%", &[("grows", 5.0)]);
        check_exceeded(&tree, "self<-4%", &[("shrinks", -5.0)]);
        check_exceeded(&tree, "grows:total>4%", &[("grows", 5.0)]);
        // As much as the bound is not beyond it.
        for text in ["self>5%", "self<-5%", "stays:self>0%", "stays:self<0%", "all:total>0%"] {
            check_exceeded(&tree, text, &[]);
        }
        let shown = |label: &Label| label.name.to_uppercase();
        assert_eq!(gate("GROWS:self>4%").exceeded(&tree, &shown).len(), 1);
        assert_eq!(gate("grows:self>4%").exceeded(&tree, &shown).len(), 1);
        let of_another_build = gate("grows.part.3:self>4%").with_names(Names::AcrossBuilds);
        assert_eq!(of_another_build.exceeded(&tree, &name_of).len(), 1);
    }

    #[test]
    fn all_of_a_profile_is_bounded_where_it_can_change() {
        let tree = diff("main;a 1000\nmain;b 3000\n", "main;a 2000\nmain;b 3000\n", Scaling::None);
        check_exceeded(&tree, "total>4%", &[("a", 25.0), ("all", 25.0)]);
        check_exceeded(&tree, "all:total>4%", &[("all", 25.0)]);
        check_exceeded(&tree, "a:total>4%", &[("a", 25.0)]);
        let tree =
            diff("main;all 1000\nmain;b 3000\n", "main;all 2000\nmain;b 3000\n", Scaling::None);
        // A function of that name comes first.
        check_exceeded(&tree, "all:self>4%", &[("all", 25.0)]);
    }

    #[test]
    fn a_function_in_neither_profile_is_missing() {
        let tree = diff(BEFORE, AFTER, Scaling::Total);
        assert_eq!(gate("nobody:self>1%").missing(&tree, &name_of), Some("nobody"));
        for text in ["grows:self>90%", "all:total>1%", "self>90%"] {
            assert_eq!(gate(text).missing(&tree, &name_of), None, "{text}");
        }
    }

    #[test]
    fn what_could_be_noise_is_doubtful() {
        let tree = diff("p;a 7\np;b 4\np;c 5\n", "p;a 4\np;b 7\np;c 5\n", Scaling::Total);
        check_exceeded(&tree, "b:self>5%", &[]);
        let doubtful = |tree: &DiffTree, text: &str| {
            gate(text).doubtful(tree, &name_of).map(|excess| excess.name.to_owned())
        };
        assert_eq!(doubtful(&tree, "b:self>5%").as_deref(), Some("b"));
        // Not beyond the bound, and of no function in particular.
        assert_eq!([doubtful(&tree, "b:self>90%"), doubtful(&tree, "self>5%")], [None, None]);
        assert_eq!(doubtful(&diff(BEFORE, AFTER, Scaling::Total), "grows:self>4%"), None);
    }
}
