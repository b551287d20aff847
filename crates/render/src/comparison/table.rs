//! What changed as a table to read, as wide as a terminal is.

use std::io::{self, Write};

use flame_message::{Paint, clean_name, shortened};

use super::{Change, Comparison, Row, probability};

/// Names of functions, with what stands behind them, are not cut below this.
const LEAST_ROOM: usize = 16;

/// Where a table is written to.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// How it is coloured.
    pub paint: Paint,
    /// The columns that it has; `None` where lines may have any length.
    pub columns: Option<usize>,
}

impl Page {
    /// Writes a comparison for people.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, report: &Comparison<'_>, out: &mut dyn Write) -> io::Result<()> {
        if let Some(title) = &report.config.title {
            writeln!(out, "{}\n", clean_name(title))?;
        }
        for line in report.header() {
            writeln!(out, "{}", self.wrapped(&line))?;
        }
        writeln!(out)?;
        if report.rows.is_empty() {
            writeln!(out, "{}\n", report.nothing())?;
        } else {
            self.write_table(report, out)?;
            writeln!(out)?;
        }
        for line in report.footer() {
            writeln!(out, "{}", self.paint.dim(&self.wrapped(&line)))?;
        }
        Ok(())
    }

    fn write_table(&self, report: &Comparison<'_>, out: &mut dyn Write) -> io::Result<()> {
        let cells: Vec<[String; 7]> = report.rows.iter().map(cells).collect();
        let [before, after] = &report.heads();
        let heads = [before, after, "change", before, after, "change", "p"];
        let width = |column: usize| {
            let widths = cells.iter().map(|row| row[column].chars().count());
            widths.max().unwrap_or(0).max(heads[column].chars().count())
        };
        let widths: Vec<usize> = (0..heads.len()).map(width).collect();
        let own = widths[..3].iter().sum::<usize>() + 4;
        let total = widths[3..6].iter().sum::<usize>() + 4;
        writeln!(out, "{:>own$}    {:>total$}", "self", "total")?;
        for (column, head) in heads.iter().enumerate() {
            write!(out, "{:>width$}{}", head, gap(column), width = widths[column])?;
        }
        writeln!(out, "function")?;
        let numbers = (0..heads.len()).map(|column| widths[column] + gap(column).len()).sum();
        for (row, cells) in report.rows.iter().zip(&cells) {
            for (column, cell) in cells.iter().enumerate() {
                let padding = " ".repeat(widths[column].saturating_sub(cell.chars().count()));
                let change = match column {
                    2 => Some(&row.own),
                    5 => Some(&row.total),
                    _ => None,
                };
                let cell = change.map_or(cell.clone(), |change| self.painted(change, cell));
                write!(out, "{padding}{cell}{}", gap(column))?;
            }
            writeln!(out, "{}", self.name(row, numbers))?;
        }
        Ok(())
    }

    /// The name of a row, cut to what is left of the line behind its numbers.
    fn name(&self, row: &Row, numbers: usize) -> String {
        let room = self.columns.map(|columns| columns.saturating_sub(numbers).max(LEAST_ROOM));
        let of_name = |room: usize| room.saturating_sub(row.mark.chars().count());
        shortened(&row.name, room.map_or(usize::MAX, of_name)) + &row.mark
    }

    fn painted(&self, change: &Change, text: &str) -> String {
        match (change.evidence.is_real(), change.grew) {
            (true, true) => self.paint.red(text),
            (true, false) => self.paint.green(text),
            _ => self.paint.dim(text),
        }
    }

    /// A line broken between words; what follows is indented.
    fn wrapped(&self, line: &str) -> String {
        let Some(columns) = self.columns else { return line.to_owned() };
        let mut wrapped = String::with_capacity(line.len());
        let mut at = 0;
        for word in line.split_inclusive(' ') {
            let width = word.trim_end().chars().count();
            if at > 0 && at + width > columns {
                wrapped.truncate(wrapped.trim_end().len());
                wrapped.push_str("\n  ");
                at = 2;
            }
            wrapped.push_str(word);
            at += word.chars().count();
        }
        wrapped
    }
}

fn cells(row: &Row) -> [String; 7] {
    let (own, total) = (&row.own, &row.total);
    [
        own.before.clone(),
        own.after.clone(),
        own.marked(),
        total.before.clone(),
        total.after.clone(),
        total.marked(),
        probability(row.p()),
    ]
}

/// What stands behind a column.
fn gap(column: usize) -> &'static str {
    if column == 2 || column == 5 { "    " } else { "  " }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(columns: Option<usize>, line: &str, expect: &str) {
        let page = Page { paint: Paint(false), columns };
        assert_eq!(page.wrapped(line), expect);
    }

    #[test]
    fn lines_break_between_words() {
        let line = "before  v1.pb.gz: 3,996 samples";
        check(None, line, line);
        check(Some(31), line, line);
        check(Some(30), line, "before  v1.pb.gz: 3,996\n  samples");
        check(Some(16), line, "before\n  v1.pb.gz:\n  3,996 samples");
        check(Some(4), "longer words stay", "longer\n  words\n  stay");
    }
}
