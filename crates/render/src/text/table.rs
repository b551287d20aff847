//! The table of functions.

use std::io::{self, Write};

use flame_message::{ValueScale, format_share, group_thousands};
use flame_profile::{CallTree, FunctionShare, functions};

use super::shown;

/// Writes the `top` functions with the most self weight: self and total, each with its share.
/// Recursion counts once in a total. Threads and marks are not functions.
///
/// # Errors
/// Those of `out`.
pub(super) fn write_functions(
    tree: &CallTree,
    scale: &ValueScale,
    top: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let functions = functions(tree);
    let rows: Vec<[String; 4]> =
        functions.iter().take(top).map(|function| cells(tree, scale, function)).collect();
    let width = |column: usize, least: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(least)
    };
    let (own, total) = (width(0, 4), width(2, 5));
    writeln!(out, "{:>own$} {:>7}  {:>total$} {:>7}  function", "self", "", "total", "")?;
    for (row, function) in rows.iter().zip(&functions) {
        let name = shown(&tree.labels()[function.label.index()]);
        let [own_weight, own_share, weight, share] = row;
        writeln!(out, "{own_weight:>own$} {own_share:>7}  {weight:>total$} {share:>7}  {name}")?;
    }
    let rest = functions.len().saturating_sub(top);
    if rest > 0 {
        writeln!(out, "{:>own$} {} more", "…", group_thousands(rest as u64))?;
    }
    Ok(())
}

fn cells(tree: &CallTree, scale: &ValueScale, function: &FunctionShare) -> [String; 4] {
    let share = |weight| format_share(weight, tree.total());
    [
        scale.number(function.self_weight),
        share(function.self_weight),
        scale.number(function.total),
        share(function.total),
    ]
}
