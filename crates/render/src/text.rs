//! A call tree as plain text: what was recorded, the functions, the call tree.

mod table;
mod tree;

use std::io::{self, Write};

use flame_message::{ValueScale, clean_name};
use flame_profile::{CallTree, FrameKind, Label, Weight};

use table::write_functions;

/// Half a percent: two hundred branches at most on each level, so that the tree can be read.
pub const DEFAULT_MIN_SHARE: f64 = 0.005;
/// Functions of the table: about a screen with what stands above it.
pub const DEFAULT_TOP: usize = 20;
/// Where lines of the call tree are wrapped, in characters.
pub const DEFAULT_COLUMNS: usize = 120;

/// What a text report shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Report {
    /// The functions with the most self weight, then the call tree.
    #[default]
    Full,
    /// All functions and no tree.
    Flat,
}

/// What the text says besides the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct TextConfig {
    /// Lines above everything: title, health, how the profile was taken.
    pub header: Vec<String>,
    /// Branches of the call tree below this share of all, from 0 to 1, are summed up on one line;
    /// [`DEFAULT_MIN_SHARE`] by default.
    pub min_share: f64,
    /// Functions in the table, [`DEFAULT_TOP`] by default; 0 leaves the table out.
    pub top: usize,
    /// Where lines of the call tree are wrapped, in characters, [`DEFAULT_COLUMNS`] by default.
    pub columns: usize,
    /// What stands below the header; [`Report::Full`] by default.
    pub report: Report,
    /// What plain counts count, instead of what the profile says: `samples`.
    pub count_name: Option<String>,
}

impl Default for TextConfig {
    fn default() -> TextConfig {
        TextConfig {
            header: Vec::new(),
            min_share: DEFAULT_MIN_SHARE,
            top: DEFAULT_TOP,
            columns: DEFAULT_COLUMNS,
            report: Report::Full,
            count_name: None,
        }
    }
}

/// Writes the report: header lines, the functions with the most self weight, the call tree.
///
/// # Errors
/// Those of `out`.
pub fn write_text(tree: &CallTree, config: &TextConfig, out: &mut impl Write) -> io::Result<()> {
    let mut out = io::BufWriter::new(out);
    for line in &config.header {
        writeln!(out, "{}", clean_name(line))?;
    }
    if tree.total() == Weight(0) {
        writeln!(out, "no samples: nothing was recorded, or a filter left nothing")?;
        return out.flush();
    }
    let scale = ValueScale::of_tree(tree, config.count_name.as_deref());
    writeln!(out, "{} in all{}", scale.amount(tree.total()), key_to_annotations(tree))?;
    let top = if config.report == Report::Flat { usize::MAX } else { config.top };
    if top > 0 {
        writeln!(out)?;
        write_functions(tree, &scale, top, &mut out)?;
    }
    if config.report == Report::Full {
        writeln!(out)?;
        tree::write_tree(tree, config, &mut out)?;
    }
    out.flush()
}

/// The call tree alone.
pub(crate) fn write_call_tree(
    tree: &CallTree,
    config: &TextConfig,
    out: &mut impl Write,
) -> io::Result<()> {
    tree::write_tree(tree, config, out)
}

/// The name with a mark for its kind, as the tables and the tree show it.
fn shown(label: &Label) -> String {
    format!("{}{}", clean_name(&label.name), mark(label.kind))
}

fn mark(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Kernel => " [k]",
        FrameKind::Waiting => " [waiting]",
        FrameKind::Inlined => " [i]",
        FrameKind::Jit => " [j]",
        FrameKind::Script => " [s]",
        FrameKind::Waker => " [w]",
        FrameKind::User | FrameKind::Library | FrameKind::Mark => "",
    }
}

/// Explains the marks that occur.
fn key_to_annotations(tree: &CallTree) -> String {
    let kinds = [
        (FrameKind::Kernel, "kernel"),
        (FrameKind::Waiting, "waiting"),
        (FrameKind::Inlined, "inlined"),
        (FrameKind::Jit, "JIT compiled"),
        (FrameKind::Script, "script"),
        (FrameKind::Waker, "waker"),
    ];
    let occurs = |kind| tree.labels().iter().any(|label| label.kind == kind);
    let key: Vec<String> = kinds
        .into_iter()
        .filter(|(kind, _)| occurs(*kind))
        .map(|(kind, name)| format!("{} {name}", mark(kind).trim_start()))
        .collect();
    if key.is_empty() { String::new() } else { format!("; {}", key.join(", ")) }
}

#[cfg(test)]
mod tests;
