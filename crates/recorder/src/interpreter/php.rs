//! What of an image that is PHP is needed.

use flame_image::{Exported, ImageFile};
use flame_interpreters::{Layout, PhpBuild};

use super::{Interpreter, parts, range, ranges};

/// What PHP exports: what runs frames, its state where it has no threads, two functions that show where that has
/// what, and the one that fibers return to.
const PHP: [&str; 5] = [
    "execute_ex",
    "executor_globals",
    "zend_get_executed_filename_ex",
    "zend_get_executed_lineno",
    "make_fcontext",
];

/// Functions by which PHP calls others.
const PHP_CALLS: [&str; 11] = [
    "_call_user_function_impl",
    "dtrace_execute_ex",
    "dtrace_execute_internal",
    "execute_internal",
    "zend_call_function",
    "zend_call_known_fcc",
    "zend_call_known_function",
    "zend_call_known_instance_method_with_2_params",
    "zend_call_method",
    "zend_execute",
    "zend_fcall_info_call",
];

/// How much code those two have at most.
const PHP_CODE: u64 = 512;

/// The PHP that a file is.
pub(super) fn php(file: &ImageFile) -> Option<Interpreter> {
    let [runs, globals, file_of, line_of, fibers] = file.exported(PHP);
    let runs = runs?;
    let (file_of, line_of) = (file_of?, line_of?);
    let code =
        |of: Exported| file.initial_bytes(of.address, usize::try_from(of.size.min(PHP_CODE)).ok()?);
    let layout = globals.and_then(|globals| {
        Layout::php(&PhpBuild {
            globals: globals.address.0,
            address: file_of.address.0,
            file: &code(file_of)?,
            line: &code(line_of)?,
        })
    });
    Some(Interpreter {
        language: "php",
        layout,
        // Built with threads each of them has its own.
        runtime: globals.unwrap_or(runs).address,
        runs: parts(file, range(runs)),
        runs_script: None,
        calls: ranges(file.exported(PHP_CALLS)),
        shows_calls: true,
        begins_fibers: fibers.map(range),
    })
}
