//! A table of a Firefox profile: columns with a list each, or a schema and rows.

use crate::json::{self, Value};

/// A table in one of the two forms.
#[derive(Clone, Copy, Debug)]
pub(super) enum Table<'v> {
    /// `{"length": 2, "stack": [0, 1], "time": [0.5, 1.5]}`
    Columns(&'v Value<'v>, usize),
    /// `{"schema": {"stack": 0, "time": 1}, "data": [[0, 0.5], [1, 1.5]]}`
    Rows { schema: &'v Value<'v>, rows: &'v [Value<'v>] },
}

impl<'v> Table<'v> {
    pub(super) fn of(value: &'v Value<'v>) -> Table<'v> {
        if let (true, Some(rows)) = (value["schema"].is_object(), value["data"].as_array()) {
            return Table::Rows { schema: &value["schema"], rows };
        }
        let longest = value.entries().map(|(_, list)| list.items().len()).max();
        Table::Columns(value, longest.unwrap_or_default())
    }

    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        match self {
            Table::Columns(_, len) => *len,
            Table::Rows { rows, .. } => rows.len(),
        }
    }

    /// How many rows there should be besides, by the length that a table of columns says it has.
    pub(super) fn missing(&self) -> Option<u64> {
        let Table::Columns(value, len) = self else { return None };
        let said = value["length"].as_u64()?;
        said.checked_sub(*len as u64).filter(|missing| *missing > 0)
    }

    /// How many rows there are beyond the length that a table of columns says it has.
    pub(super) fn beyond_length(&self) -> u64 {
        let Table::Columns(value, len) = self else { return 0 };
        value["length"].as_u64().map_or(0, |said| (*len as u64).saturating_sub(said))
    }

    /// Whether a column ends before that row. Lists of rows may leave out what is null at their ends.
    pub(super) fn is_short(&self, row: usize, column: &str) -> bool {
        let Table::Columns(columns, _) = self else { return false };
        row >= columns[column].items().len()
    }

    /// What a row has in a column; null if there is none.
    pub(super) fn get(&self, row: usize, column: &str) -> &'v Value<'v> {
        match self {
            Table::Columns(columns, _) => &columns[column][row],
            Table::Rows { schema, rows } => {
                let found = json::index(&schema[column]).and_then(|at| Some(&rows.get(row)?[at]));
                found.unwrap_or(&json::NULL)
            }
        }
    }
}
