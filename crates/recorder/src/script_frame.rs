//! A frame of an interpreted program, as it is shown.

use std::sync::Arc;

/// A line of a function of an interpreted program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ScriptFrame {
    pub(crate) name: Arc<str>,
    pub(crate) file: Option<Arc<str>>,
    /// Where its definition starts.
    pub(crate) first_line: u32,
    /// Where it was.
    pub(crate) line: u32,
}

impl ScriptFrame {
    /// `Class.method (file.py:12)`: the line of the definition, the same wherever in it a sample was.
    pub(crate) fn label(&self) -> String {
        let Some(file) = self.file.as_deref().or((self.first_line != 0).then_some("?")) else {
            return self.name.to_string();
        };
        let file = file.rsplit('/').next().unwrap_or(file);
        match self.first_line {
            // What is in no file.
            0 => format!("{} ({file})", self.name),
            line => format!("{} ({file}:{line})", self.name),
        }
    }
}
