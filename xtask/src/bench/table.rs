//! One Markdown table: a row a measure, a column a profiler, peers with their ratio to flame.

use std::fmt;

/// How a measure is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Percent,
    /// A share that is compared by what is missing to 100 %.
    Complete,
    Count,
    /// A number with one decimal, which is compared with nothing.
    Number,
    /// A share that should be 100 %, neither less nor more, and is compared with nothing.
    Share,
    Seconds,
    /// Given in seconds like the other.
    Milliseconds,
    MiB,
}

/// A measure with what each profiler reached; `None` = not measured.
#[derive(Debug)]
struct Row {
    measure: String,
    bar: String,
    unit: Unit,
    cells: Vec<Option<f64>>,
}

/// The results, flame in the first column.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<&'static str>,
    rows: Vec<Row>,
}

impl Table {
    /// An empty table with a column a profiler.
    pub(crate) fn new(columns: Vec<&'static str>) -> Table {
        Table { columns, rows: Vec::new() }
    }

    /// Adds a row; `bar` is what flame has to reach, empty where there is none.
    pub(crate) fn row(&mut self, measure: &str, bar: &str, unit: Unit, cells: Vec<Option<f64>>) {
        let shown: Vec<String> = cells.iter().map(|cell| text(unit, *cell)).collect();
        eprintln!("   {measure}: {}", shown.join(" | "));
        self.rows.push(Row { measure: measure.to_owned(), bar: bar.to_owned(), unit, cells });
    }
}

fn text(unit: Unit, value: Option<f64>) -> String {
    let Some(value) = value else {
        return "-".to_owned();
    };
    match unit {
        Unit::Percent => format!("{value:.2} %"),
        Unit::Complete => format!("{value:.2} %"),
        Unit::Count => format!("{value:.0}"),
        Unit::Number => format!("{value:.1}"),
        Unit::Share => format!("{value:.1} %"),
        Unit::Seconds if value < 1.0 => format!("{value:.3} s"),
        Unit::Seconds => format!("{value:.1} s"),
        Unit::MiB if value < 1.0 => format!("{:.0} KiB", value * 1024.0),
        Unit::Milliseconds => format!("{:.0} ms", value * 1e3),
        Unit::MiB => format!("{value:.1} MiB"),
    }
}

/// How many times flame's value the peer's is; empty where that says nothing.
fn ratio(unit: Unit, flame: Option<f64>, peer: Option<f64>) -> String {
    let measure = |value: f64| if unit == Unit::Complete { 100.0 - value } else { value };
    let (Some(flame), Some(peer)) = (flame.map(measure), peer.map(measure)) else {
        return String::new();
    };
    // Differences within the noise have no meaningful ratio.
    let least = if unit == Unit::Milliseconds { 0.0005 } else { 0.005 };
    let plain = matches!(unit, Unit::Count | Unit::Number | Unit::Share);
    if plain || flame < least || peer < least {
        return String::new();
    }
    let what = if unit == Unit::Complete { " missing" } else { "" };
    format!(" ({:.1}x{what})", peer / flame)
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| measure | bar | {} |", self.columns.join(" | "))?;
        writeln!(f, "|---|---|{}", "---|".repeat(self.columns.len()))?;
        for row in &self.rows {
            write!(f, "| {} | {} |", row.measure, row.bar)?;
            let flame = row.cells.first().copied().flatten();
            for (at, cell) in row.cells.iter().enumerate() {
                let ratio = if at == 0 { String::new() } else { ratio(row.unit, flame, *cell) };
                write!(f, " {}{ratio} |", text(row.unit, *cell))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_stand_beside_flame_with_their_ratio() {
        let mut table = Table::new(vec!["flame", "perf"]);
        table.row("time", "0.5 s", Unit::Seconds, vec![Some(0.25), Some(100.0)]);
        table.row("rooted", "", Unit::Complete, vec![Some(99.0), Some(98.0)]);
        table.row("slower", "1 %", Unit::Percent, vec![Some(-0.1), Some(2.0)]);
        table.row("memory", "", Unit::MiB, vec![Some(10.0), None]);
        table.row("data", "", Unit::MiB, vec![Some(0.25), Some(2.5)]);
        table.row("coverage", ">= 97 %", Unit::Share, vec![Some(99.6), Some(25.0)]);
        let expect = "\
| measure | bar | flame | perf |
|---|---|---|---|
| time | 0.5 s | 0.250 s | 100.0 s (400.0x) |
| rooted |  | 99.00 % | 98.00 % (2.0x missing) |
| slower | 1 % | -0.10 % | 2.00 % |
| memory |  | 10.0 MiB | - |
| data |  | 256 KiB | 2.5 MiB (10.0x) |
| coverage | >= 97 % | 99.6 % | 25.0 % |
";
        assert_eq!(table.to_string(), expect);
    }
}
