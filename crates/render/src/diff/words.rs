//! What changed, in words; `viewer/change.js` says the same.

use flame_diff::{DiffNode, Presence, Scaling, Side};
use flame_message::{ValueScale, clean_name, group_thousands};
use flame_profile::{Weight, whole};

use super::sides::Level;
use super::{DiffView, Sides};

/// What each [`Level`] means.
const LEVELS: [&str; 8] = [
    "",
    "could be noise",
    "real",
    "real: by chance p < 0.1",
    "real: by chance p < 0.05",
    "real: by chance p < 0.01",
    "real: by chance p < 0.001",
    "real: by chance p < 0.0001",
];

/// What one run a side cannot say.
const ONE_RUN: &str = "; one recording per side cannot tell whether the program changed or only the recordings differ";

/// A number with that many decimal places.
fn decimal(size: f64, places: u32) -> String {
    let scale = 10_u64.pow(places);
    let units = whole(size * scale as f64 + 0.5);
    format!("{}.{:0>2$}", group_thousands(units / scale), units % scale, places as usize)
}

/// A share of `whole`; more than all of it is possible.
pub(super) fn part(weight: f64, whole: f64) -> String {
    let share = weight / whole;
    if (share - 1.0).abs() < 1e-9 {
        return "100%".to_owned();
    }
    if share > 0.0 && share < 0.00005 {
        return "<0.01%".to_owned();
    }
    let percent = if share < 1.0 { (share * 100.0).min(99.99) } else { share * 100.0 };
    format!("{}%", decimal(percent, 2))
}

impl Sides<'_> {
    fn points(&self, change: f64) -> String {
        let sign = if change > 0.0 { '+' } else { '-' };
        format!("{sign}{} points", decimal(change.abs() / self.whole * 100.0, 2))
    }

    /// What something weighs and weighed, without what that means.
    fn weighed(&self, before: Weight, after: Weight) -> String {
        let amount = self.scale.amount(after);
        let share = part(after.0 as f64, self.whole);
        let scale = self.scale_before.as_ref();
        if before == Weight(0) {
            return format!("{amount}, {share}");
        }
        let share_before = part(self.scaled(before), self.whole);
        if after == Weight(0) {
            let amount = scale.unwrap_or(&self.scale).amount(before);
            return format!("was {amount}, {share_before}");
        }
        let from = match scale {
            Some(scale) => format!("{} → ", scale.amount(before)),
            None if before == after => String::new(),
            None => format!("{} → ", self.scale.number(before)),
        };
        if self.change(before, after) == 0.0 {
            return format!("{from}{amount}, {share}");
        }
        format!("{from}{amount}, {share_before} → {share}")
    }

    /// The numbers in the tooltip of a box.
    pub(crate) fn tooltip(&self, node: &DiffNode) -> String {
        let presence = match node.presence() {
            Presence::Both => "",
            Presence::New => "new: ",
            Presence::Vanished => "vanished: ",
        };
        let by = self.picture.colour_by;
        let (change, level) = self.change_by(node, by);
        let weighed = self.weighed(node.before.total, node.after.total);
        format!("{presence}{weighed}; {} {}", by.name(), self.meaning(change, level))
    }

    /// What a change that chance hardly brings is called.
    pub(crate) fn word(&self) -> &'static str {
        if self.tree.is_one_run_a_side() { "differs" } else { "real" }
    }

    fn meaning(&self, change: f64, level: Level) -> String {
        match LEVELS.get(usize::from(level)) {
            _ if change == 0.0 => "unchanged".to_owned(),
            None | Some(&"") => self.points(change),
            Some(level) => {
                format!("{}, {}", self.points(change), level.replace("real", self.word()))
            }
        }
    }

    /// The numbers in the tooltip of a run of frames too thin to draw.
    pub(crate) fn thin_tooltip(&self, before: Weight, after: Weight) -> String {
        self.weighed(before, after)
    }

    fn side(&self, side: &Side, scale: &ValueScale) -> String {
        let amount = scale.amount(side.total);
        format!("{} ({amount})", clean_name(&side.names.join(", ")))
    }

    fn scale_of_before(&self) -> &ValueScale {
        self.scale_before.as_ref().unwrap_or(&self.scale)
    }
}

/// What stands over a graph.
pub(crate) fn heading(sides: &Sides<'_>, view: DiffView) -> String {
    let after = sides.scale.amount(sides.tree.after().total);
    let before = sides.scale_of_before().amount(sides.tree.before().total);
    match view {
        DiffView::After => format!("after: {after}"),
        DiffView::Before => format!("before: {before}"),
        DiffView::Delta if sides.most[0] == 0.0 => "nothing changed".to_owned(),
        DiffView::Delta => "change: by how much self weight grew or shrank".to_owned(),
        DiffView::Union | DiffView::Both => match part(sides.vanished, sides.whole) {
            none if none == "0.00%" => format!("after: {after}"),
            gone => format!("after: {after}; hatched: what vanished, as wide as it was ({gone})"),
        },
    }
}

/// What the foot says of the two sides.
pub(crate) fn notes(sides: &Sides<'_>) -> Vec<String> {
    let tree = sides.tree;
    let factor = tree.scale().factor();
    let scaled = match tree.scaling() {
        _ if (factor - 1.0).abs() < 1e-9 => "weights as they are".to_owned(),
        Scaling::Total => format!("before × {factor:.4}, to the same total"),
        Scaling::None => format!("before × {factor:.4}, for the number of runs"),
        Scaling::Time => format!("before × {factor:.4}, to the same recorded time"),
        Scaling::Function(name) => {
            format!("before × {factor:.4}, to the same weight of {}", clean_name(name))
        }
    };
    vec![
        format!(
            "before: {}; after: {}; {scaled}",
            sides.side(tree.before(), sides.scale_of_before()),
            sides.side(tree.after(), &sides.scale),
        ),
        format!(
            "{}: less than {}% chance that anything here is called real by accident; p is that \
             chance, corrected for {} changes tested{}",
            sides.word(),
            100.0 * tree.alpha(),
            group_thousands(tree.tested()),
            if tree.is_one_run_a_side() { ONE_RUN } else { "" },
        ),
    ]
}

/// What the ratio of two values of one profile is; `None` when both sides measured the same.
pub(crate) fn ratio(sides: &Sides<'_>) -> Option<String> {
    sides.scale_before.as_ref()?;
    let name = |side: &Side| clean_name(&side.value_type.name).into_owned();
    Some(format!("{} per {}", name(sides.tree.after()), name(sides.tree.before())))
}
