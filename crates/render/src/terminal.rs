//! A call tree as a flame graph of characters, for terminals and for text that is pasted.
//!
//! Edges are rounded once, to an eighth of a column, from the sum of all weight to their left: a
//! box never sticks out of its parent, and siblings do not drift. With colours an edge inside a
//! column is a block character in the colours of both its sides; without, it is a bar.

use std::io::{self, Write};

use flame_message::{ValueScale, clean_name, format_change, format_share};
use flame_profile::{CallTree, Weight, narrow};
use unicode_width::UnicodeWidthChar;

use crate::char_width::Widths;
use crate::colours::{ColourConfig, Colours, Rgb};
use crate::label::{Shorten, fit};
use crate::layout::{Cell, Content, Narrow, layout};
use crate::svg::Direction;
use crate::towers;

/// Where edges may lie within a column.
const PARTS: u32 = 8;
/// Thinner boxes, in parts of a column, are put together into one.
const MIN_PARTS: u32 = 4;
/// The left part of a column, by its eighths.
const BLOCKS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
/// Colours less apart than this, their channels summed up, look alike beside each other.
const TOLD_APART: u32 = 48;
/// Runs of boxes too thin for half a column.
const THIN: Rgb = Rgb(0x9a, 0xa2, 0xab);

/// What colours a terminal has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColourDepth {
    /// None, or none are wanted.
    #[default]
    None,
    /// The 256 of xterm.
    Palette,
    /// All.
    True,
}

/// How a tree is drawn on a terminal.
#[derive(Clone, Debug, PartialEq)]
pub struct TerminalConfig {
    /// A line above the graph.
    pub title: Option<String>,
    /// Columns of the terminal; at least 20.
    pub columns: u32,
    /// What colours it has.
    pub depth: ColourDepth,
    /// The colours of the boxes.
    pub colours: ColourConfig,
    /// Which way the boxes grow.
    pub direction: Direction,
    /// Draw rows that hardly any sample reaches, too, as [`SvgConfig`](crate::SvgConfig) says.
    pub all_rows: bool,
    /// What plain counts count, instead of what the profile says.
    pub count_name: Option<String>,
}

/// Draws a tree.
///
/// # Errors
/// Those of `out`.
pub fn write_terminal(
    tree: &CallTree,
    config: &TerminalConfig,
    out: &mut impl Write,
) -> io::Result<()> {
    if let Some(title) = &config.title {
        writeln!(out, "{}", clean_name(title))?;
    }
    if tree.total() == Weight(0) {
        return writeln!(out, "no samples: nothing was recorded, or a filter left nothing");
    }
    let columns = config.columns.clamp(20, 10_000);
    let mut cells = layout(tree, columns * PARTS, Narrow { frame: MIN_PARTS, run: 1 });
    if let Some(last) = towers::last_row([&cells[..]].into_iter()).filter(|_| !config.all_rows) {
        towers::collapse(&mut cells, last);
    }
    let depth = cells.iter().map(|cell| cell.depth).max().unwrap_or(0);
    let mut rows: Vec<Vec<&Cell>> = vec![Vec::new(); depth as usize + 1];
    cells.iter().for_each(|cell| rows[cell.depth as usize].push(cell));
    if config.direction == Direction::Up {
        rows.reverse();
    }
    let canvas = Canvas { tree, config, colours: Colours::of(tree, &config.colours) };
    rows.iter().try_for_each(|row| out.write_all(canvas.row(row).as_bytes()))
}

struct Canvas<'a> {
    tree: &'a CallTree,
    config: &'a TerminalConfig,
    colours: Colours,
}

/// A piece of a row: one colour, or none, from one part to another.
#[derive(Clone, Copy)]
struct Span<'c> {
    cell: Option<&'c Cell>,
    left: u32,
    right: u32,
}

impl Canvas<'_> {
    fn row(&self, cells: &[&Cell]) -> String {
        let mut spans: Vec<Span> = Vec::new();
        let mut at = 0;
        for cell in cells {
            if cell.left > at {
                spans.push(Span { cell: None, left: at, right: cell.left });
            }
            spans.push(Span { cell: Some(cell), left: cell.left, right: cell.right });
            at = cell.right;
        }
        let mut text = String::new();
        match self.config.depth {
            ColourDepth::None => self.plain(&spans, &mut text),
            _ => self.coloured(&spans, &mut text),
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
        text
    }

    /// Columns that lie in one span whole are its label; others show the edge in them. Between
    /// siblings of almost one colour no edge would be seen but a line.
    fn coloured(&self, spans: &[Span<'_>], out: &mut String) {
        let mut column = 0;
        for (index, span) in spans.iter().enumerate() {
            let (first, end) = (span.left.div_ceil(PARTS), span.right / PARTS);
            let before = index.checked_sub(1).and_then(|index| spans.get(index)?.cell);
            let is_lined = self.look_alike(before, span.cell);
            let is_within = column < first && !span.left.is_multiple_of(PARTS);
            if is_lined && (is_within || column + 1 < end) {
                self.colour(span.cell, false, out);
                self.ink(span.cell, out);
                out.push(BLOCKS[1]);
                column += 1;
            } else if is_within {
                self.colour(span.cell, false, out);
                self.colour(before, true, out);
                out.push(BLOCKS[(span.left % PARTS) as usize]);
                column += 1;
            }
            if column < end {
                self.colour(span.cell, false, out);
                self.ink(span.cell, out);
                column += push_padded(&self.label(span.cell, end - column), end - column, ' ', out);
            }
        }
        let last = spans.last().filter(|last| column * PARTS < last.right);
        if let Some(last) = last {
            out.push_str("\x1b[0m");
            self.colour(last.cell, true, out);
            out.push(BLOCKS[(last.right % PARTS) as usize]);
        }
        out.push_str("\x1b[0m");
    }

    /// Edges are bars at the nearest column.
    fn plain(&self, spans: &[Span<'_>], out: &mut String) {
        let column = |part: u32| (part + PARTS / 2) / PARTS;
        for span in spans {
            let (left, right) = (column(span.left), column(span.right));
            let Some(width) = right.checked_sub(left).filter(|width| *width > 0) else { continue };
            match span.cell.map(|cell| cell.content) {
                None => drop(push_padded("", width, ' ', out)),
                Some(Content::Thin { .. } | Content::Tower(_)) => {
                    push_padded("", width, '░', out);
                }
                Some(Content::Frame(_)) => {
                    out.push('│');
                    push_padded(&self.label(span.cell, width - 1), width - 1, '─', out);
                }
            }
        }
    }

    /// The name with its share, or as much of the name as fits.
    fn label(&self, cell: Option<&Cell>, columns: u32) -> String {
        let Some(Content::Frame(id)) = cell.map(|cell| cell.content) else { return String::new() };
        let node = &self.tree.nodes()[id.index()];
        let name = clean_name(&self.tree.label(node).name);
        let total = self.tree.total();
        let mut label = format!("{name} {}", format_share(node.total, total));
        if let Some(before) = self.tree.before().and_then(|before| before.get(id.index())) {
            let negate = self.config.colours.negate;
            let change = format_change(before.self_weight, node.self_weight, total, negate);
            if columns_of(&label) + columns_of(&change) <= columns {
                label += &change;
            }
        }
        if node.depth == 0 {
            let scale = ValueScale::of_tree(self.tree, self.config.count_name.as_deref());
            label = format!("{name} {}", scale.amount(node.total));
        }
        if columns_of(&label) <= columns {
            return label;
        }
        let one = Widths { uniform: Some(1) };
        let mut room = columns;
        // Characters of two columns need more than their number.
        loop {
            match fit(&name, room, Shorten::UsefulEnd, one) {
                Some(label) if columns_of(&label) <= columns => return label,
                Some(_) if room > 0 => room -= 1,
                _ => return String::new(),
            }
        }
    }

    fn fill(&self, cell: &Cell) -> Rgb {
        match cell.content {
            Content::Thin { .. } | Content::Tower(_) => THIN,
            Content::Frame(id) => {
                let fill = self.colours.fill(self.tree, id.index()) as usize;
                self.colours.fills.get(fill).map_or(THIN, |fill| fill.colour())
            }
        }
    }

    /// Whether the colours of two boxes can hardly be told apart.
    fn look_alike(&self, one: Option<&Cell>, other: Option<&Cell>) -> bool {
        let (Some(one), Some(other)) = (one, other) else { return false };
        let (one, other) = (self.fill(one), self.fill(other));
        let channels = [(one.0, other.0), (one.1, other.1), (one.2, other.2)];
        let apart: u32 = channels.iter().map(|(a, b)| u32::from(a.abs_diff(*b))).sum();
        apart < TOLD_APART || nearest(one) == nearest(other)
    }

    fn colour(&self, cell: Option<&Cell>, foreground: bool, out: &mut String) {
        let layer = if foreground { 38 } else { 48 };
        match cell.map(|cell| self.fill(cell)) {
            None => out.push_str(if foreground { "\x1b[39m" } else { "\x1b[49m" }),
            Some(colour) => self.push_colour(layer, colour, out),
        }
    }

    fn ink(&self, cell: Option<&Cell>, out: &mut String) {
        if let Some(cell) = cell {
            let ink = if self.fill(cell).ink() == Some("#fff") { 255 } else { 0 };
            self.push_colour(38, Rgb(ink, ink, ink), out);
        }
    }

    fn push_colour(&self, layer: u8, Rgb(r, g, b): Rgb, out: &mut String) {
        let code = match self.config.depth {
            ColourDepth::True => format!("\x1b[{layer};2;{r};{g};{b}m"),
            _ => format!("\x1b[{layer};5;{}m", nearest(Rgb(r, g, b))),
        };
        out.push_str(&code);
    }
}

/// The nearest of xterm's colour cube.
fn nearest(Rgb(r, g, b): Rgb) -> u32 {
    let level = |channel: u8| match channel {
        0..48 => 0,
        48..115 => 1,
        channel => (u32::from(channel) - 35) / 40,
    };
    16 + 36 * level(r) + 6 * level(g) + level(b)
}

fn columns_of(text: &str) -> u32 {
    text.chars().map(|c| narrow(c.width().unwrap_or(0))).sum()
}

/// Appends a text and fills it up to this many columns, which it returns.
fn push_padded(text: &str, columns: u32, padding: char, out: &mut String) -> u32 {
    out.push_str(text);
    (columns_of(text)..columns).for_each(|_| out.push(padding));
    columns
}

#[cfg(test)]
mod tests;
