//! Images that are interpreters: what of them is needed, found by the names that they export.

mod php;

use std::ops::Range;

use flame_image::{Exported, ImageFile};
use flame_interpreters::{Layout, LuaBuild, LuaJitBuild, PerlBuild, PythonBuild, RubyBuild};
use flame_profile::ImageAddress;

/// Names by which files of interpreters begin.
const NAMES: [&str; 10] =
    ["python", "libpython", "perl", "libperl", "lua", "liblua", "ruby", "libruby", "php", "libphp"];

/// What LuaJIT exports: a function of its own, one that shows where a state has what, and those by which it
/// calls others.
const LUAJIT: [&str; 7] = [
    "luaJIT_setmode",
    "lua_gettop",
    "lua_call",
    "lua_pcall",
    "lua_cpcall",
    "lua_resume",
    "lua_load",
];

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

/// What Perl exports: its version, what runs operations, what runs a script, and where its state is; the
/// last two lie there where it has no threads.
const PERL: [&str; 6] = [
    "PL_version",
    "Perl_runops_standard",
    "perl_run",
    "PL_thr_key",
    "PL_curstackinfo",
    "PL_curcop",
];

/// Where Perl has its interpreter if it has threads, and what runs operations of a program that is debugged.
const MORE_OF_PERL: [&str; 2] = ["PL_curinterp", "Perl_runops_debug"];

/// Functions by which Perl calls others.
const PERL_CALLS: [&str; 6] = [
    "Perl_call_argv",
    "Perl_call_list",
    "Perl_call_method",
    "Perl_call_pv",
    "Perl_call_sv",
    "Perl_pp_entersub",
];

/// What Lua exports: its version, and the functions by which it calls others, to 5.1 and from 5.2 on.
const LUA: [&str; 6] =
    ["lua_ident", "lua_call", "lua_callk", "lua_pcall", "lua_pcallk", "lua_resume"];

/// How many steps from those its loop over instructions is away, which is the largest function there by far.
const LUA_DEPTH: usize = 3;
const LUA_LOOP: u64 = 2048;

/// How many steps away from those functions only call others.
const LUA_CALLS: usize = 2;

/// What Ruby exports: its version, what runs the loop over instructions, and what knows the texts of symbols.
const RUBY: [&str; 3] = ["ruby_version", "rb_vm_exec", "rb_id2str"];

/// How many steps from those by which it calls others the loop is away, and how large it is at least.
const RUBY_DEPTH: usize = 4;
const RUBY_LOOP: u64 = 8192;

/// Functions by which Ruby calls others.
const RUBY_CALLS: [&str; 24] = [
    "rb_block_call",
    "rb_block_call_kw",
    "rb_call_super",
    "rb_check_funcall",
    "rb_ensure",
    "rb_funcall",
    "rb_funcall_with_block",
    "rb_funcallv",
    "rb_funcallv_kw",
    "rb_funcallv_public",
    "rb_iterate",
    "rb_obj_call_init",
    "rb_obj_call_init_kw",
    "rb_proc_call",
    "rb_protect",
    "rb_rescue2",
    "rb_vm_call0",
    "rb_vm_call_kw",
    "rb_vm_exec",
    "rb_vm_invoke_proc",
    "rb_yield",
    "rb_yield_1",
    "rb_yield_splat",
    "rb_yield_values",
];

/// An interpreter.
#[derive(Clone, Debug)]
pub(crate) struct Interpreter {
    language: &'static str,
    /// Nothing where its version is not known.
    layout: Option<Layout>,
    runtime: ImageAddress,
    runs: Vec<Range<u64>>,
    /// What runs a script as a whole, where that needs to be known.
    runs_script: Option<Range<u64>>,
    /// Functions that only call others, sorted.
    calls: Vec<Range<u64>>,
    /// Whether those stay where they call nothing: they are what the program does then.
    shows_calls: bool,
    /// Where the native stacks of fibers begin.
    begins_fibers: Option<Range<u64>>,
}

impl Interpreter {
    /// The interpreter that a file is.
    pub(crate) fn of(file: &ImageFile, path: &str) -> Option<Interpreter> {
        let found = python(file, path)
            .or_else(|| perl(file))
            .or_else(|| luajit(file))
            .or_else(|| lua(file))
            .or_else(|| ruby(file))
            .or_else(|| php::php(file))?;
        tracing::debug!(path, language = found.language, layout = ?found.layout, "interpreter");
        Some(found)
    }

    /// Whether a path is one that files of interpreters have.
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
        self.language
    }

    /// Whether its innermost frames are proven to be those of the native ones where their callers are not read.
    pub(crate) fn proves_parts(&self) -> bool {
        self.language == "python"
    }

    /// Where its global state is.
    pub(crate) fn runtime(&self) -> ImageAddress {
        self.runtime
    }

    /// Whether the function at an address runs frames of programs.
    pub(crate) fn runs(&self, address: ImageAddress) -> bool {
        self.runs.iter().any(|range| range.contains(&address.0))
    }

    /// Whether it runs a script from its beginning to its end.
    pub(crate) fn runs_script(&self, address: ImageAddress) -> bool {
        self.runs_script.as_ref().is_some_and(|range| range.contains(&address.0))
    }

    /// Whether the native stack of a fiber begins with the function at an address.
    pub(crate) fn begins_fibers(&self, address: ImageAddress) -> bool {
        self.begins_fibers.as_ref().is_some_and(|range| range.contains(&address.0))
    }

    /// Whether the function at an address does nothing but call others; `is_innermost` = it has called
    /// none.
    pub(crate) fn only_calls(&self, address: ImageAddress, is_innermost: bool) -> bool {
        let behind = self.calls.partition_point(|range| range.start <= address.0);
        let before = behind.checked_sub(1).and_then(|index| self.calls.get(index));
        let calls = before.is_some_and(|range| range.contains(&address.0));
        calls && !(is_innermost && self.shows_calls)
    }
}

fn python(file: &ImageFile, path: &str) -> Option<Interpreter> {
    let [runtime, runs, code_type, version] = file.exported(PYTHON);
    let (runtime, runs) = (runtime?, runs?);
    let says_version = || {
        let bytes = file.initial_bytes(version?.address, 4)?;
        // 0x030b02f0 = 3.11.2
        let number = u32::from_le_bytes(bytes.try_into().ok()?);
        (number >> 24 == 3).then_some(number >> 16 & 0xff)
    };
    let build = |minor| {
        let code_type = code_type?.address.0.wrapping_sub(runtime.address.0);
        Layout::python(&PythonBuild { minor, code_type })
    };
    Some(Interpreter {
        language: "python",
        layout: says_version().or_else(|| minor_of(path)).and_then(build),
        runtime: runtime.address,
        runs: parts(file, range(runs)),
        runs_script: None,
        calls: ranges(file.exported(PYTHON_CALLS)),
        shows_calls: false,
        begins_fibers: None,
    })
}

fn perl(file: &ImageFile) -> Option<Interpreter> {
    let [version, runs, runs_script, threads, stack, statement] = file.exported(PERL);
    let [interpreter, debugs] = file.exported(MORE_OF_PERL);
    let runs = runs?;
    let (runtime, statement) = match (threads, stack, statement) {
        (Some(_), ..) => (interpreter?.address, None),
        (None, Some(stack), Some(statement)) => {
            (stack.address, Some(statement.address.0.wrapping_sub(stack.address.0)))
        }
        _ => return None,
    };
    // A byte: 36 = 5.36.
    let minor = file.initial_bytes(version?.address, 1)?.first().copied()?.into();
    Some(Interpreter {
        language: "perl",
        layout: Layout::perl(&PerlBuild { minor, statement }),
        runtime,
        runs: ranges([Some(runs), debugs]),
        runs_script: runs_script.map(range),
        calls: ranges(file.exported(PERL_CALLS)),
        shows_calls: true,
        begins_fibers: None,
    })
}

fn lua(file: &ImageFile) -> Option<Interpreter> {
    let [ident, calls @ ..] = file.exported(LUA);
    let ident = ident?;
    let says = file.initial_bytes(ident.address, usize::try_from(ident.size.min(256)).ok()?)?;
    // `$LuaVersion: Lua 5.4.4  Copyright (C) ...`
    let at = says.windows(6).position(|bytes| bytes == b"Lua 5.")?;
    let digit = |at: usize| char::from(*says.get(at)?).to_digit(10);
    let (minor, release) = (digit(at + 6)?, digit(at + 8).unwrap_or(0));
    let calls: Vec<ImageAddress> = calls.into_iter().flatten().map(|call| call.address).collect();
    let size = |range: &Range<u64>| range.end - range.start;
    let runs = reached(file, &calls, LUA_DEPTH).into_iter().max_by_key(size)?;
    let mut calls = reached(file, &calls, LUA_CALLS);
    calls.retain(|range| *range != runs);
    calls.sort_by_key(|range| range.start);
    Some(Interpreter {
        language: "lua",
        layout: Layout::lua(&LuaBuild { minor, release }).filter(|_| size(&runs) >= LUA_LOOP),
        runtime: ident.address,
        runs: vec![runs],
        runs_script: None,
        calls,
        shows_calls: true,
        begins_fibers: None,
    })
}

fn luajit(file: &ImageFile) -> Option<Interpreter> {
    let [own, top, calls @ ..] = file.exported(LUAJIT);
    let (_, top) = (own?, top?);
    let size = |range: &Range<u64>| range.end - range.start;
    // The interpreter is one piece of assembler, by far the largest that those call, not at its start.
    let called = calls.into_iter().flatten().flat_map(|of| called_by(file, of));
    let runs = called.max_by_key(size)?;
    let code = file.initial_bytes(top.address, usize::try_from(top.size.min(32)).ok()?)?;
    let is_known = size(&runs) >= LUA_LOOP && has_wide_addresses(&code);
    let build = LuaJitBuild { interpreter_len: size(&runs) };
    Some(Interpreter {
        language: "luajit",
        layout: is_known.then(|| Layout::luajit(&build)),
        runtime: ImageAddress(runs.start),
        runs: vec![runs],
        runs_script: None,
        calls: ranges(calls),
        shows_calls: true,
        begins_fibers: None,
    })
}

fn ruby(file: &ImageFile) -> Option<Interpreter> {
    let [version, runs, names] = file.exported(RUBY);
    let version = version?;
    let says = file.initial_bytes(version.address, 4)?;
    // `3.1.0`
    let digit = |at: usize| char::from(*says.get(at)?).to_digit(10);
    let (major, minor) = (digit(0)?, digit(2).filter(|_| says.get(3) == Some(&b'.'))?);
    let size = |range: &Range<u64>| range.end - range.start;
    // The loop is a function of its own, or within the one that runs it. That is not exported from 3.3 on, and found as
    // the largest function by far that those which call others lead to.
    let (first, steps) = match runs {
        Some(runs) => (vec![runs.address], 1),
        None => (
            file.exported(RUBY_CALLS).into_iter().flatten().map(|of| of.address).collect(),
            RUBY_DEPTH,
        ),
    };
    let runs = reached(file, &first, steps).into_iter().max_by_key(size)?;
    let runtime = ImageAddress(runs.start);
    let mut symbols = [0; 4];
    for (to, found) in symbols.iter_mut().zip(names.into_iter().flat_map(|of| loaded(file, of))) {
        *to = found.wrapping_sub(runtime.0);
    }
    let mut calls = ranges(file.exported(RUBY_CALLS));
    calls.retain(|range| *range != runs);
    Some(Interpreter {
        language: "ruby",
        layout: Layout::ruby(&RubyBuild { major, minor, symbols })
            .filter(|_| size(&runs) >= RUBY_LOOP),
        runtime,
        runs: parts(file, runs),
        runs_script: None,
        calls,
        shows_calls: true,
        begins_fibers: None,
    })
}

/// Variables of eight bytes that a function loads, and those that it calls.
fn loaded(file: &ImageFile, function: Exported) -> Vec<u64> {
    let functions = reached(file, &[function.address], 1);
    let code = |range: &Range<u64>| {
        let len = usize::try_from((range.end - range.start).min(4096)).unwrap_or(0);
        Some((range.start, file.initial_bytes(ImageAddress(range.start), len)?))
    };
    let mut found = Vec::new();
    for (start, code) in functions.iter().filter_map(code) {
        for (at, bytes) in (0_u64..).zip(code.windows(7)) {
            let Some((operation, distance)) = bytes.split_first_chunk::<3>() else { continue };
            // `mov REG, [rip+DISTANCE]`
            let is_load = matches!(operation, [0x48 | 0x4c, 0x8b, how] if how & 0xc7 == 5);
            let distance = distance.first_chunk().map(|bytes| i32::from_le_bytes(*bytes));
            let next = start.wrapping_add(at + 7);
            let address = distance.map(|distance| next.wrapping_add_signed(distance.into()));
            found.extend(address.filter(|address| is_load && !found.contains(address)));
        }
    }
    found
}

/// The functions that the code of another one may call, wherever in them.
fn called_by(file: &ImageFile, function: Exported) -> Vec<Range<u64>> {
    let len = usize::try_from(function.size.min(4096)).unwrap_or(0);
    let code = file.initial_bytes(function.address, len).unwrap_or_default();
    let called = code.windows(5).zip(1_u64..).filter_map(|(bytes, at)| {
        // `call` or `jmp`, by a distance.
        let (operation, distance) = bytes.split_first_chunk::<1>()?;
        let distance = i32::from_le_bytes(distance.try_into().ok()?);
        let next = function.address.0.checked_add(at + 4)?;
        let (own, _) = file.leads_to(ImageAddress(next.wrapping_add_signed(distance.into())))?;
        matches!(operation, [0xe8 | 0xe9]).then_some(own.start.0..own.end.0)
    });
    called.collect()
}

/// Whether a LuaJIT is one with addresses of 64 bits (GC64), by the code of `lua_gettop`: the difference of two
/// fields, which lie at 32 and 40 of a state there, else at 16 and 24.
fn has_wide_addresses(code: &[u8]) -> bool {
    // `mov REG, [rdi+40]` and `sub REG, [rdi+32]`
    let has = |operation: u8, at: u8| {
        let is_it = |bytes: &[u8]| {
            bytes[0] == 0x48 && bytes[1] == operation && bytes[2] & 0xc7 == 0x47 && bytes[3] == at
        };
        code.windows(4).any(is_it)
    };
    cfg!(target_arch = "x86_64") && has(0x8b, 40) && has(0x2b, 32)
}

/// Functions, and those that are this many steps away from them at most.
fn reached(file: &ImageFile, first: &[ImageAddress], steps: usize) -> Vec<Range<u64>> {
    let (mut reached, mut next) = (Vec::new(), first.to_vec());
    for _ in 0..=steps {
        for function in std::mem::take(&mut next) {
            let Some((own, found)) = file.leads_to(function) else { continue };
            let own = own.start.0..own.end.0;
            if !reached.contains(&own) {
                reached.push(own);
                next.extend(found.into_iter().map(|found| found.start));
            }
        }
    }
    reached
}

/// Those that there are, sorted.
fn ranges<const N: usize>(exported: [Option<Exported>; N]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = exported.into_iter().flatten().map(range).collect();
    ranges.sort_by_key(|range| range.start);
    ranges
}

/// All of the code of a function, also where the compiler put parts of it elsewhere.
fn parts(file: &ImageFile, own: Range<u64>) -> Vec<Range<u64>> {
    let parts = file.parts_of(ImageAddress(own.start)).into_iter();
    let mut parts: Vec<Range<u64>> = parts.map(|part| part.start.0..part.end.0).collect();
    // Without tables it is what its symbol says.
    if !parts.contains(&own) {
        parts.push(own);
    }
    parts
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
    fn luajit_shows_how_wide_its_addresses_are() {
        let code = |from: u8, to: u8| {
            [0x48, 0x8b, 0x47, from, 0x48, 0x2b, 0x47, to, 0x48, 0xc1, 0xf8, 0x03, 0xc3]
        };
        let is_known =
            [code(40, 32), code(24, 16), code(32, 40)].map(|code| has_wide_addresses(&code));
        assert_eq!(is_known, [cfg!(target_arch = "x86_64"), false, false]);
    }

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
