//! A table of a Firefox profile: columns with a list each, or a schema and rows.

use serde_json::Value;

/// A table in one of the two forms.
#[derive(Clone, Copy, Debug)]
pub(super) enum Table<'v> {
    /// `{"length": 2, "stack": [0, 1], "time": [0.5, 1.5]}`
    Columns(&'v Value, usize),
    /// `{"schema": {"stack": 0, "time": 1}, "data": [[0, 0.5], [1, 1.5]]}`
    Rows { schema: &'v Value, rows: &'v [Value] },
}

impl<'v> Table<'v> {
    pub(super) fn of(value: &'v Value) -> Table<'v> {
        if let (Some(_), Some(rows)) = (value["schema"].as_object(), value["data"].as_array()) {
            return Table::Rows { schema: &value["schema"], rows };
        }
        let lists = value.as_object().into_iter().flat_map(|columns| columns.values());
        let longest = lists.filter_map(Value::as_array).map(Vec::len).max();
        Table::Columns(value, longest.unwrap_or_default())
    }

    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        match self {
            Table::Columns(_, len) => *len,
            Table::Rows { rows, .. } => rows.len(),
        }
    }

    /// What a row has in a column; null if there is none.
    pub(super) fn get(&self, row: usize, column: &str) -> &'v Value {
        const NONE: &Value = &Value::Null;
        match self {
            Table::Columns(columns, _) => columns[column].get(row).unwrap_or(NONE),
            Table::Rows { schema, rows } => {
                let at = schema[column].as_u64().and_then(|at| usize::try_from(at).ok());
                at.and_then(|at| rows.get(row)?.get(at)).unwrap_or(NONE)
            }
        }
    }
}
