//! What changed for machines and for pull requests.

use std::io::{self, Write};

use flame_diff::{DiffTree, FunctionChange, Presence, Scaling, Side};
use flame_profile::is_direction_mark;
use serde_json::{Value, json};

use super::{Comparison, both, numbers, presence, probability, unit};
use crate::export::markdown_text;

impl Comparison<'_> {
    /// Writes one JSON object: both sides, the scaling, and all functions, what matters first.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", shown(&self.json().to_string()))
    }

    /// Writes a comment for a pull request.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        write_markdown(self, self.config.title.as_deref(), out)
    }

    fn json(&self) -> Value {
        let (tree, quality, limit) = (self.tree, self.quality, self.config.limit);
        let unit = unit(tree);
        let side = |side: &Side, runs: &Value| {
            json!({
                "profiles": side.names,
                "runs": runs,
                "value": side.value_type.name,
                "unit": side.value_type.unit,
                "total": side.total.0 as f64 / unit,
                "samples": side.samples,
                "seconds": side.duration.map(|time| time.as_secs_f64()),
            })
        };
        let functions = tree.functions().iter().take(limit.unwrap_or(usize::MAX));
        let functions: Vec<Value> = functions.map(|change| function(tree, change)).collect();
        let [before, after] = quality.json();
        json!({
            "before": side(tree.before(), &before),
            "after": side(tree.after(), &after),
            "warnings": quality.warnings,
            "scaling": match tree.scaling() {
                Scaling::Total => "total",
                Scaling::None => "none",
                Scaling::Time => "time",
                Scaling::Function(_) => "function",
            },
            "factor": tree.scale().factor(),
            "alpha": tree.alpha(),
            "tested": tree.tested(),
            "functions": functions,
        })
    }
}

/// The same JSON without characters that steer a terminal or turn text: names are anybody's.
fn shown(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c.is_control() || is_direction_mark(c) {
            true => text += &format!("\\u{:04x}", u32::from(c)),
            false => text.push(c),
        }
    }
    text
}

fn function(tree: &DiffTree, change: &FunctionChange) -> Value {
    let label = &tree.labels()[change.label.index()];
    let [own, total] = both(change).map(|(before, after, evidence)| {
        let [before, after, change, points] = numbers(tree, before, after);
        json!({
            "before": before,
            "after": after,
            "change": change,
            "percent": points,
            "p": evidence.p(),
            // One recording a side cannot say more than that they differ.
            "differs": evidence.is_real(),
            "real": evidence.is_real() && !tree.is_one_run_a_side(),
        })
    });
    let presence = match presence(change) {
        Presence::Both => "both",
        Presence::New => "new",
        Presence::Vanished => "vanished",
    };
    let (name, kind) = (&label.name, label.kind.word());
    json!({ "name": name, "kind": kind, "presence": presence, "self": own, "total": total })
}

fn write_markdown(
    report: &Comparison<'_>,
    title: Option<&str>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "### {}\n", markdown_text(title.unwrap_or("Profiles compared")))?;
    for line in report.header() {
        let (what, text) = line.split_once(' ').unwrap_or(("", &line));
        writeln!(out, "- {what}: {}", markdown_text(text.trim_start()))?;
    }
    writeln!(out)?;
    if report.rows.is_empty() {
        writeln!(out, "**{}**\n", report.nothing())?;
    } else {
        let [before, after] = report.heads().map(|head| markdown_text(&head));
        writeln!(
            out,
            "| self {before} | {after} | change | total {before} | {after} | change | p | function |"
        )?;
        writeln!(out, "|---:|---:|---:|---:|---:|---:|---:|---|")?;
    }
    for row in &report.rows {
        for change in [&row.own, &row.total] {
            let bold = if change.evidence.is_real() { "**" } else { "" };
            let text = change.marked();
            write!(out, "| {} | {} | {bold}{text}{bold} ", change.before, change.after)?;
        }
        writeln!(
            out,
            "| {} | {} |",
            markdown_text(&probability(row.p())),
            markdown_text(&format!("{}{}", row.name, row.mark))
        )?;
    }
    writeln!(out)?;
    for line in report.footer() {
        writeln!(out, "{}  ", markdown_text(&line))?;
    }
    Ok(())
}
