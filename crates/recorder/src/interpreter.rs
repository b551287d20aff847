//! Images that are interpreters: what of them is needed, found by the names that they export.

use std::ops::Range;

use flame_interpreters::{Layout, PythonBuild};
use flame_profile::ImageAddress;
use flame_symbolize::{Exported, ImageFile};

/// Names by which files of interpreters begin.
const NAMES: [&str; 2] = ["python", "libpython"];

/// What CPython exports, and is needed to read its frames.
const PYTHON: [&str; 4] = ["_PyRuntime", "_PyEval_EvalFrameDefault", "PyCode_Type", "Py_Version"];

/// Functions by which CPython calls others: between the frames of a program they say nothing.
const PYTHON_CALLS: [&str; 21] = [
    "PyEval_EvalFrameEx",
    "PyObject_Call",
    "PyObject_CallFunction",
    "PyObject_CallFunctionObjArgs",
    "PyObject_CallMethod",
    "PyObject_CallMethodObjArgs",
    "PyObject_CallNoArgs",
    "PyObject_CallObject",
    "PyObject_CallOneArg",
    "PyObject_Vectorcall",
    "PyObject_VectorcallDict",
    "PyObject_VectorcallMethod",
    "PyVectorcall_Call",
    "_PyEval_EvalCodeWithName",
    "_PyFunction_FastCallDict",
    "_PyFunction_Vectorcall",
    "_PyObject_Call",
    "_PyObject_Call_Prepend",
    "_PyObject_FastCall",
    "_PyObject_FastCallDictTstate",
    "_PyObject_MakeTpCall",
];

/// An interpreter.
#[derive(Clone, Debug)]
pub(crate) struct Interpreter {
    /// Nothing where its version is not known.
    layout: Option<Layout>,
    runtime: ImageAddress,
    runs: Range<u64>,
    /// Functions that only call others, sorted.
    calls: Vec<Range<u64>>,
}

impl Interpreter {
    /// The interpreter that a file is.
    pub(crate) fn of(file: &ImageFile, path: &str) -> Option<Interpreter> {
        let [runtime, runs, code_type, version] = file.exported(PYTHON);
        let (runtime, runs) = (runtime?, runs?);
        let says_version = || {
            let bytes = file.initial_bytes(version?.address, 4)?;
            // 0x030b02f0 = 3.11.2
            let number = u32::from_le_bytes(bytes.try_into().ok()?);
            (number >> 24 == 3).then_some(number >> 16 & 0xff)
        };
        let minor = says_version().or_else(|| minor_of(path));
        let build = |minor| {
            let code_type = code_type?.address.0.wrapping_sub(runtime.address.0);
            Layout::python(&PythonBuild { minor, code_type })
        };
        let mut calls: Vec<Range<u64>> =
            file.exported(PYTHON_CALLS).into_iter().flatten().map(range).collect();
        calls.sort_by_key(|range| range.start);
        tracing::debug!(path, ?minor, "interpreter");
        Some(Interpreter {
            layout: minor.and_then(build),
            runtime: runtime.address,
            runs: range(runs),
            calls,
        })
    }

    /// Whether files of interpreters are called so.
    pub(crate) fn is_named_so(path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        NAMES.iter().any(|start| name.starts_with(start))
    }

    /// Where it has what, as far as the file tells; `None` for versions that are not known.
    pub(crate) fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    /// The language, in lower case.
    pub(crate) fn language(&self) -> &'static str {
        "python"
    }

    /// Where its global state is.
    pub(crate) fn runtime(&self) -> ImageAddress {
        self.runtime
    }

    /// Whether the function at an address runs frames of programs.
    pub(crate) fn runs(&self, address: ImageAddress) -> bool {
        self.runs.contains(&address.0)
    }

    /// Whether the function at an address does nothing but call others.
    pub(crate) fn only_calls(&self, address: ImageAddress) -> bool {
        let behind = self.calls.partition_point(|range| range.start <= address.0);
        let before = behind.checked_sub(1).and_then(|index| self.calls.get(index));
        before.is_some_and(|range| range.contains(&address.0))
    }
}

fn range(exported: Exported) -> Range<u64> {
    let start = exported.address.0;
    start..start.saturating_add(exported.size)
}

/// The second number of the version that a file is named by: `libpython3.8.so.1.0`.
fn minor_of(path: &str) -> Option<u32> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let rest = name.strip_prefix("lib").unwrap_or(name).strip_prefix("python3.")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_by_their_version() {
        let cases = [
            ("/usr/lib/libpython3.8.so.1.0", Some(8)),
            ("/usr/bin/python3.11", Some(11)),
            ("/usr/bin/python3.10 (deleted)", Some(10)),
            ("/usr/bin/python3", None),
            ("/opt/app", None),
        ];
        for (path, minor) in cases {
            assert_eq!(minor_of(path), minor, "{path}");
        }
        assert!(
            Interpreter::is_named_so("/usr/bin/python3") && !Interpreter::is_named_so("/bin/sh")
        );
    }
}
