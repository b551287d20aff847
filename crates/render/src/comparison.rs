//! What of a comparison is shown to people: functions, what matters first, and what to know of them.

mod doubts;
mod export;
mod gate;
mod quality;
mod table;

use flame_diff::{DiffTree, Evidence, FunctionChange, Presence, Scaling, Side, Weights};
use flame_message::{ValueScale, clean_name, counted, group_thousands};
use flame_profile::{FrameKind, Label, ValueType, Weight, whole};

pub use doubts::{are_identical, are_strangers, diff_failure, doubts, missing_function};
pub use gate::{gate_doubt, gate_failure};
pub use quality::{ProfileQuality, Quality};
pub use table::Page;

/// About a screen, with what stands above and below.
pub const DEFAULT_LIMIT: usize = 40;

/// What one run a side cannot say.
const ONE_RUN: &str = "with one recording per side, nothing is called real. What is listed differs between \
                       these two recordings; that also happened in 1 of 60 pairs of recordings of \
                       unchanged programs, and happens more often where the work comes in bursts \
                       (docs/diff.md). Three recordings per side tell real changes from noise: flame \
                       record --repeat 3, then flame diff --before ... --after ...";

/// What of a comparison is to be shown. The default: real changes, [`DEFAULT_LIMIT`] at most.
#[derive(Clone, Debug, Default)]
pub struct ComparisonConfig {
    /// Whether changes that could be noise are listed as well.
    pub all: bool,
    /// How many functions are listed; `None` = [`DEFAULT_LIMIT`].
    pub limit: Option<usize>,
    /// What stands above it.
    pub title: Option<String>,
    /// What the weights are called, in place of the profile's own word.
    pub count_name: Option<String>,
    /// Whether nothing is said of how far the data can be trusted.
    pub no_metadata: bool,
}

/// What of a comparison is shown.
#[derive(Debug)]
pub struct Comparison<'t> {
    /// What is compared.
    pub tree: &'t DiffTree,
    /// How far the data can be trusted.
    pub quality: &'t Quality,
    config: &'t ComparisonConfig,
    /// Lines of the table.
    rows: Vec<Row>,
    /// Functions with real changes that are beyond the limit.
    more: usize,
    /// Functions that changed by what could be noise and are not shown.
    noise: usize,
    /// How weights are written.
    scale: ValueScale,
}

/// One function as it is shown.
#[derive(Debug)]
struct Row {
    name: String,
    /// Which side alone has it, where it is not on both.
    mark: String,
    own: Change,
    total: Change,
}

/// How much something was, is and changed, as text.
#[derive(Debug)]
struct Change {
    before: String,
    after: String,
    /// With a sign; `=` where nothing changed.
    change: String,
    evidence: Evidence,
    grew: bool,
}

impl<'t> Comparison<'t> {
    /// Chooses the functions: those with a real change, or all that changed.
    pub fn new(
        tree: &'t DiffTree,
        quality: &'t Quality,
        config: &'t ComparisonConfig,
    ) -> Comparison<'t> {
        let is_real = |f: &&FunctionChange| is_listed(tree, f);
        let changed: Vec<&FunctionChange> =
            tree.functions().iter().filter(|function| has_changed(tree, function)).collect();
        let real = changed.iter().copied().filter(|function| is_real(function)).count();
        let wanted = if config.all { changed.len() } else { real };
        let shown = wanted.min(config.limit.unwrap_or(DEFAULT_LIMIT));
        let mut report = Comparison {
            tree,
            quality,
            config,
            rows: Vec::new(),
            more: wanted - shown,
            noise: changed.len() - wanted,
            scale: scale(tree, &tree.after().value_type, config.count_name.as_deref()),
        };
        // Real changes come first among the functions.
        report.rows = changed[..shown].iter().map(|function| report.row(function)).collect();
        report
    }

    fn row(&self, function: &FunctionChange) -> Row {
        let label = &self.tree.labels()[function.label.index()];
        let (before, after) = (function.before, function.after);
        let own = self.change(before.self_weight, after.self_weight, function.self_evidence);
        let total = self.change(before.total, after.total, function.total_evidence);
        Row { name: marked_name(label), mark: self.mark(presence(function)), own, total }
    }

    /// What stands over the columns of the sides: their values, where those differ.
    fn heads(&self) -> [String; 2] {
        let [before, after] = [self.tree.before(), self.tree.after()].map(|side| &side.value_type);
        if before == after {
            return ["before", "after"].map(str::to_owned);
        }
        [before, after].map(|value| clean_name(&value.name).into_owned())
    }

    /// What stands behind the name of what one side lacks.
    fn mark(&self, presence: Presence) -> String {
        let [before, after] = self.heads();
        let is_time = before == "before" && after == "after";
        match presence {
            Presence::Both => String::new(),
            Presence::New if is_time => " (new)".to_owned(),
            Presence::Vanished if is_time => " (vanished)".to_owned(),
            Presence::New => format!(" (only {after})"),
            Presence::Vanished => format!(" (only {before})"),
        }
    }

    fn change(&self, before: Weight, after: Weight, evidence: Evidence) -> Change {
        let change = self.tree.scale().change(before, after);
        let text = |before: f64| match self.tree.scaling() {
            Scaling::Total => format!("{:.2}%", self.tree.points(before)),
            _ => self.scale.number(Weight(whole(before.round()))),
        };
        let points = self.tree.points(change);
        Change {
            before: text(self.tree.scale().of(before)),
            after: text(after.0 as f64),
            change: if change == 0.0 { "=".to_owned() } else { format!("{points:+.2}") },
            evidence,
            grew: change > 0.0,
        }
    }

    /// What was compared, a line each.
    fn header(&self) -> Vec<String> {
        let tree = self.tree;
        let side = |which, side| side_line(tree, which, side, self.config.count_name.as_deref());
        vec![side("before", tree.before()), side("after", tree.after()), scaling(tree)]
    }

    /// What the table does not say itself, and how far its data can be trusted.
    fn footer(&self) -> Vec<String> {
        let mut lines = self.about_table();
        if !self.config.no_metadata {
            lines.extend(self.quality.lines());
        }
        lines
    }

    fn about_table(&self) -> Vec<String> {
        let tree = self.tree;
        let mut lines = Vec::new();
        if self.more > 0 {
            let more = group_thousands(self.more as u64);
            lines.push(format!("{more} more are beyond --limit {}", self.rows.len()));
        }
        if self.noise > 0 {
            let noise = group_thousands(self.noise as u64);
            let verb = if self.noise == 1 { "function changed" } else { "functions changed" };
            lines.push(format!("{noise} {verb} by what could be noise: --all shows them"));
        }
        if tree.tested() == 0 {
            lines.push(
                "nothing could be tested: there are too few samples to tell a change from noise, or \
                 all of them are in one function"
                    .into(),
            );
            return lines;
        }
        let tested = group_thousands(tree.tested());
        let alpha = format!("{:.3}", 100.0 * tree.alpha());
        let alpha = alpha.trim_end_matches('0').trim_end_matches('.').to_owned();
        let called = if tree.is_one_run_a_side() { "listed" } else { "called real" };
        lines.push(format!(
            "{called}: changes that chance alone would bring up in at most {alpha} % of comparisons, \
             over all {tested} changes tested"
        ));
        if tree.is_one_run_a_side() {
            lines.push(ONE_RUN.to_owned());
            lines.extend(self.interrupts());
        }
        lines.extend(self.smallest_changes());
        lines
    }

    /// How small a change can be told from noise, and how small a one with more recordings.
    fn smallest_changes(&self) -> Option<String> {
        let tree = self.tree;
        let (tenth, half) = (tree.smallest_change(0.1)?, tree.smallest_change(0.5)?);
        let runs = tree.before().names.len().min(tree.after().names.len());
        if runs == 1 {
            let called = if tree.is_one_run_a_side() { "listed" } else { "called real" };
            return Some(format!(
                "with this many samples, a function of 10 % is {called} from a change of about \
                 {tenth:.1} points on, one of 50 % from about {half:.1}"
            ));
        }
        let more = if runs < 5 { 5 } else { 2 * runs };
        let [less, least] = [0.1, 0.5].map(|share| tree.smallest_change_with(share, more));
        Some(format!(
            "with these recordings, a function of 10 % is called real from a change of about \
             {tenth:.1} points on, one of 50 % from about {half:.1}; with {more} recordings per side, \
             from about {:.1} and {:.1}",
            less?, least?
        ))
    }

    /// What interrupts brought, where there was any.
    fn interrupts(&self) -> Option<String> {
        let [before, after] = self.tree.interrupts();
        if before.total.max(after.total) == Weight(0) {
            return None;
        }
        let change = self.change(before.total, after.total, Evidence::NONE);
        Some(format!(
            "time in interrupts belongs to the machine and is not listed: {} before, {} after",
            change.before, change.after
        ))
    }

    /// The result in a line, for those who do not see the table.
    pub fn verdict(&self) -> String {
        let has_any = self.tree.functions().iter().any(|f| is_listed(self.tree, f));
        let Some(first) = self.rows.first().filter(|row| has_any && row.is_real()) else {
            return self.nothing().to_owned();
        };
        let (change, part) = match first.own.evidence.is_real() {
            true => (&first.own.change, "self weight"),
            false => (&first.total.change, "total"),
        };
        let unit = match self.tree.scaling() {
            Scaling::Total => "points",
            _ => "% of before",
        };
        let real = |f: &&FunctionChange| is_listed(self.tree, f);
        let number = self.tree.functions().iter().filter(real).count() as u64;
        let functions = counted(number, "function", "functions");
        let name = &first.name;
        let verb = match (self.tree.is_one_run_a_side(), self.heads()[0] == "before") {
            (true, _) if number == 1 => "differs between these two recordings",
            (true, _) => "differ between these two recordings",
            (false, true) => "really changed",
            (false, false) => "really differ",
        };
        format!("{functions} {verb}, first {name} by {change} {unit} of {part}")
    }

    /// What stands in place of an empty table.
    fn nothing(&self) -> &'static str {
        match (self.noise, self.more) {
            (0, 0) => "nothing changed",
            (_, 0) if self.tree.is_one_run_a_side() => {
                "no function's self weight differs by more than recordings of one program do"
            }
            (_, 0) => "no function changed by more than what could be noise",
            _ => "no lines were asked for",
        }
    }
}

impl Row {
    fn is_real(&self) -> bool {
        self.own.evidence.is_real() || self.total.evidence.is_real()
    }

    /// The stronger evidence of the two.
    fn p(&self) -> f64 {
        self.own.evidence.p().min(self.total.evidence.p())
    }
}

impl Change {
    /// In brackets if it could be noise.
    fn marked(&self) -> String {
        if self.evidence.is_real() || self.change == "=" {
            self.change.clone()
        } else {
            format!("({})", self.change)
        }
    }
}

/// A p-value to read.
pub(crate) fn probability(p: f64) -> String {
    match p {
        p if p >= 1.0 => "-".to_owned(),
        p if p < 0.000_1 => "<0.0001".to_owned(),
        p => format!("{p:.4}"),
    }
}

/// Whether a function's change is worth a line. With one recording a side that is one of its self
/// weight: totals differ by how long a program starts up, waits and ends, which no two recordings
/// have in common. Measured: docs/diff.md.
fn is_listed(tree: &DiffTree, function: &FunctionChange) -> bool {
    let of_total = function.total_evidence.is_real() && !tree.is_one_run_a_side();
    function.self_evidence.is_real() || of_total
}

fn has_changed(tree: &DiffTree, function: &FunctionChange) -> bool {
    let (before, after) = (function.before, function.after);
    let changes = [tree.self_change(before, after), tree.total_change(before, after)];
    changes.iter().any(|change| *change != 0.0)
}

/// Weights of a value type as they are written, decimal places taken into account.
fn scale(tree: &DiffTree, value: &ValueType, count_name: Option<&str>) -> ValueScale {
    ValueScale::with(value, tree.decimals(), count_name)
}

/// Which sides have a function.
fn presence(function: &FunctionChange) -> Presence {
    match (function.before.total, function.after.total) {
        (Weight(0), _) => Presence::New,
        (_, Weight(0)) => Presence::Vanished,
        _ => Presence::Both,
    }
}

/// A name with a mark for its kind.
pub(crate) fn marked_name(label: &Label) -> String {
    let mark = match label.kind {
        FrameKind::Kernel | FrameKind::Waiting => " [k]",
        FrameKind::Inlined => " [i]",
        FrameKind::Jit => " [j]",
        FrameKind::Script => " [s]",
        FrameKind::Waker => " [w]",
        FrameKind::User | FrameKind::Library | FrameKind::Mark => "",
    };
    format!("{}{mark}", clean_name(&label.name))
}

fn side_line(tree: &DiffTree, which: &str, side: &Side, count_name: Option<&str>) -> String {
    let names = match &*side.names {
        [first, .., last] => format!("{first} to {last}, {} runs", side.names.len()),
        [name] => name.clone(),
        [] => String::new(),
    };
    let amount = scale(tree, &side.value_type, count_name).amount(side.total);
    let samples = counted(whole(side.samples.round()), "sample", "samples");
    let samples = if amount == samples { String::new() } else { format!(", {samples}") };
    let time = side.duration.map(|time| format!(" in {:.1} s", time.as_secs_f64()));
    format!("{which:<7} {names}: {amount}{samples}{}", time.unwrap_or_default())
}

fn scaling(tree: &DiffTree) -> String {
    let factor = format!("{:.4}", tree.scale().factor());
    let factor = if tree.scale().factor() < 0.01 {
        format!("{:.3e}", tree.scale().factor())
    } else {
        factor.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let why = match tree.scaling() {
        Scaling::Total if factor == "1" => {
            return "scaled  not at all, both weigh the same; changes are in points".to_owned();
        }
        Scaling::Total => "so that both weigh the same; changes are in points".to_owned(),
        Scaling::None if factor == "1" => {
            return "scaled  not at all; changes are in % of before".to_owned();
        }
        Scaling::None => "for as many runs; changes are in % of before".to_owned(),
        Scaling::Time => "for the same time; changes are in % of before".to_owned(),
        Scaling::Function(name) => {
            format!("for as much of {}; changes are in % of before", clean_name(name))
        }
    };
    format!("scaled  before by {factor}, {why}")
}

/// The weights of a function as numbers, for machines.
fn numbers(tree: &DiffTree, before: Weight, after: Weight) -> [f64; 4] {
    let unit = unit(tree);
    let change = tree.scale().change(before, after);
    [before.0 as f64 / unit, after.0 as f64 / unit, change / unit, tree.points(change)]
}

/// What weights are divided by, for machines: their decimal places.
fn unit(tree: &DiffTree) -> f64 {
    10_f64.powi(i32::try_from(tree.decimals()).unwrap_or(i32::MAX))
}

/// Both weights of a function with its evidence: self, then total.
fn both(function: &FunctionChange) -> [(Weight, Weight, Evidence); 2] {
    let Weights { total, self_weight } = function.before;
    [
        (self_weight, function.after.self_weight, function.self_evidence),
        (total, function.after.total, function.total_evidence),
    ]
}
