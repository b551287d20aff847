//! `--fail-if`: a bound that a change must not exceed, and what is said when it does.
//!
//! ```text
//! [FUNCTION:]self|total > [+]PERCENT%    grew by more
//! [FUNCTION:]self|total < -PERCENT%      shrank by more
//! ```

use flame_diff::{DiffTree, Evidence, FunctionChange, Scaling};
use flame_profile::{Label, Weight};
use flame_render::clean_name;

use super::counted;
use super::names::Names;
use super::report::{probability, shown};
use crate::message::{Failure, quoted};

/// The exit status of a comparison that exceeds a bound.
const EXCEEDED: u8 = 3;
/// What all of a profile is called.
const WHOLE: &str = "all";
const ALLOWED: &str = "a bound looks like 'total>5%', 'parse_json:self>+2%' or 'total<-5%': \
                       self or total, of any function or of one; above a growth or below a shrinking";

/// A bound.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Gate {
    text: String,
    /// `None` = any function.
    function: Option<String>,
    part: Part,
    grows: bool,
    /// In points or percent; above or equal 0.
    bound: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Own,
    Total,
}

/// One change beyond a bound.
struct Excess<'t> {
    name: &'t str,
    before: Weight,
    after: Weight,
    /// In points or percent, with its sign.
    change: f64,
    evidence: Evidence,
}

impl Gate {
    /// Reads a bound.
    pub(crate) fn parse(text: &str) -> Result<Gate, String> {
        let wrong = || ALLOWED.to_owned();
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
    pub(super) fn with_names(&self, names: Names) -> Gate {
        let common = |name: &String| names.common(name).into_owned();
        Gate { function: self.function.as_ref().map(common), ..self.clone() }
    }

    /// What exceeds the bound and is real, as a failure.
    pub(super) fn check(&self, tree: &DiffTree) -> Option<Failure> {
        let mut excesses: Vec<Excess<'_>> = self.changes(tree);
        excesses.retain(|excess| self.is_beyond(excess) && excess.evidence.is_real());
        excesses.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()).then(a.name.cmp(b.name)));
        let worst = excesses.first()?;
        Some(self.failure(tree, worst, excesses.len() - 1))
    }

    fn is_beyond(&self, excess: &Excess<'_>) -> bool {
        let beyond = if self.grows { excess.change } else { -excess.change };
        beyond > self.bound
    }

    /// What is said where a named function exceeds the bound, but by what could be noise.
    pub(super) fn doubt(&self, tree: &DiffTree) -> Option<String> {
        let changes = self.function.as_ref().map(|_| self.changes(tree))?;
        let excess = changes.iter().find(|change| self.is_beyond(change))?;
        let is_sure =
            changes.iter().any(|change| self.is_beyond(change) && change.evidence.is_real());
        (!is_sure).then(|| {
            format!(
                "{} exceeds --fail-if {} by what could be noise: it changed by {:+.2}; longer \
                 recordings, or more of them, tell",
                clean_name(excess.name),
                quoted(&self.text),
                excess.change
            )
        })
    }

    /// The function that is in neither profile, if it was named.
    pub(super) fn missing(&self, tree: &DiffTree) -> Option<&str> {
        self.function.as_deref().filter(|_| self.changes(tree).is_empty())
    }

    fn changes<'t>(&self, tree: &'t DiffTree) -> Vec<Excess<'t>> {
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
        // Shares of all are all of it, whatever happens.
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

    fn failure(&self, tree: &DiffTree, worst: &Excess<'_>, others: usize) -> Failure {
        let part = if self.part == Part::Own { "self weight" } else { "total" };
        let verb = if self.grows { "grew" } else { "shrank" };
        let by = worst.change.abs();
        let shares = [tree.scale().of(worst.before), worst.after.0 as f64].map(|w| tree.points(w));
        let unit = match tree.scaling() {
            Scaling::Total => "points",
            _ => "% of all before",
        };
        let what = format!(
            "{} {verb} by {by:.2} {unit} in its {part}, from {:.2} % to {:.2} %: more than --fail-if {}",
            clean_name(worst.name),
            shares[0],
            shares[1],
            quoted(&self.text)
        );
        let p = match probability(worst.evidence.p()) {
            small if small.starts_with('<') => format!("p < {}", &small[1..]),
            p => format!("p = {p}"),
        };
        let tested = counted(tree.tested(), "change", "changes");
        let mut why = format!("chance alone does that with {p}, corrected for {tested} tested");
        if tree.is_one_run_a_side() {
            why += "; whether the program or the recordings differ, one a side cannot say";
        }
        if others > 0 {
            let functions = counted(others as u64, "function exceeds", "functions exceed");
            why += &format!("; {functions} it, too");
        }
        let mut failure = Failure::new(what).why(why);
        if tree.is_one_run_a_side() {
            let several = "flame record --repeat 3 for each side, then flame diff --before 'A.*' \
                           --after 'B.*'";
            failure = failure.or_try(several);
        }
        failure.code = EXCEEDED;
        failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(Gate::parse(text), Err(ALLOWED.to_owned()), "{text}");
        }
    }
}
