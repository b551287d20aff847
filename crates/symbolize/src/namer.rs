//! Turns one address after another into frames, demangling each name once.

use std::sync::Arc;

use flame_image::{Symbol, SymbolTable};
use flame_pclntab::GoFrame;
use flame_profile::{ImageAddress, Missing, readable};
use memchr::memmem;
use rustc_hash::FxHashMap;

use crate::demangle::{MAX_NAME_LEN, demangle, without_suffix};
use crate::symbolize::SymbolizeConfig;
use crate::units::DebugFrame;

/// What Go's tables have for type arguments.
const TYPE_ARGUMENTS: &[u8] = b"[...]";

/// One function at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolFrame {
    /// The demangled name, never empty. Equal names of one answer share their bytes.
    pub name: Arc<str>,
    /// Whether the compiler inlined it into the next frame of the list.
    pub inlined: bool,
    /// The source file as the compiler wrote it, where debug information says it: of the address
    /// for the innermost frame, of the call for the others.
    pub file: Option<Arc<str>>,
    /// The line in that file, counted from 1.
    pub line: Option<u32>,
}

/// What was found at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Symbolized {
    /// The functions there, innermost first: the inlined ones, then the one that was called. Never
    /// empty.
    Frames(Vec<SymbolFrame>),
    /// No name, and why.
    Unknown(Missing),
}

/// What names the addresses of one image, for one thread.
pub(crate) struct Namer<'c> {
    symbols: &'c SymbolTable,
    config: &'c SymbolizeConfig,
    /// Demangled names of symbols.
    names: FxHashMap<&'c [u8], Arc<str>>,
    /// Names and files of Go's tables.
    plain: FxHashMap<&'c [u8], Arc<str>>,
    debug_names: FxHashMap<Arc<[u8]>, DebugName>,
    /// Files as they are shown, by what debug information has.
    files: FxHashMap<Box<str>, Arc<str>>,
}

/// A name in debug information.
#[derive(Clone)]
struct DebugName {
    mangled: Arc<[u8]>,
    demangled: Arc<str>,
}

impl<'c> Namer<'c> {
    pub(crate) fn new(symbols: &'c SymbolTable, config: &'c SymbolizeConfig) -> Namer<'c> {
        Namer {
            symbols,
            config,
            names: FxHashMap::default(),
            plain: FxHashMap::default(),
            debug_names: FxHashMap::default(),
            files: FxHashMap::default(),
        }
    }

    /// The answer for an address, given what debug information says of it.
    pub(crate) fn answer(&mut self, address: ImageAddress, debug: &[DebugFrame<'_>]) -> Symbolized {
        let frames = self.frames(address, debug);
        if frames.is_empty() {
            Symbolized::Unknown(self.symbols.missing())
        } else {
            Symbolized::Frames(frames)
        }
    }

    /// The answer for an address, given what the table of a Go program says of it. The table leaves
    /// out type arguments, which the function's symbol has, where there is one.
    pub(crate) fn go_answer(&mut self, address: ImageAddress, found: &[GoFrame<'c>]) -> Symbolized {
        let symbol = self.symbols.lookup(address).map(|symbol| self.symbol_name(symbol));
        let innermost = found.first();
        let shown = found.iter().filter(|frame| self.config.inlined || !frame.inlined);
        let shown: Vec<&GoFrame<'c>> = shown.collect();
        let frames = shown.into_iter().map(|frame| {
            let is_generic = !frame.inlined && memmem::find(frame.name, TYPE_ARGUMENTS).is_some();
            let name = symbol.clone().filter(|_| is_generic);
            let name = name.unwrap_or_else(|| self.plain_name(frame.name));
            let place = if self.config.inlined { frame } else { innermost.unwrap_or(frame) };
            let is_wanted = self.config.lines;
            let file = place.file.filter(|_| is_wanted).map(|file| self.plain_name(file));
            let line = place.line.filter(|_| is_wanted);
            SymbolFrame { name, inlined: frame.inlined, file, line }
        });
        Symbolized::Frames(frames.collect())
    }

    fn frames(&mut self, address: ImageAddress, debug: &[DebugFrame<'_>]) -> Vec<SymbolFrame> {
        let symbol = self.symbols.lookup(address);
        let nothing = DebugFrame { name: None, file: None, line: None };
        let (outer, inlined) = debug.split_last().unwrap_or((&nothing, &[]));
        let outer_name = self.debug_name(outer);
        let Some(outer_name) = self.outer_name(outer_name, symbol) else { return Vec::new() };
        let mut frames = Vec::with_capacity(1 + inlined.len());
        if self.config.inlined {
            for frame in inlined {
                // A function that even DWARF gives no name is left to its caller.
                let Some(name) = self.debug_name(frame) else { continue };
                frames.push(self.frame(name.demangled, true, frame));
            }
        }
        // The line of the function itself is where it calls; without those frames it is where the
        // address is.
        let place = if self.config.inlined { outer } else { debug.first().unwrap_or(outer) };
        frames.push(self.frame(outer_name, false, place));
        frames
    }

    /// The name of the function that was called: DWARF's, which is the same for all parts that the
    /// compiler split it into (`.cold`, `.part.0`), or that of the symbol.
    ///
    /// The symbol's name is used where DWARF has none, and where it is a better one for the same
    /// function: the plainest alias (`malloc`, not `__GI___libc_malloc`), or the name with its
    /// scopes, of which GCC writes only the last part for functions without external linkage, and
    /// rustc for all where it writes lines only.
    fn outer_name(
        &mut self,
        debug: Option<DebugName>,
        symbol: Option<Symbol<'c>>,
    ) -> Option<Arc<str>> {
        let (debug, symbol) = match (debug, symbol) {
            (Some(debug), Some(symbol)) => (debug, symbol),
            (debug, symbol) => {
                let name = debug.map(|debug| debug.demangled);
                return name.or_else(|| symbol.map(|symbol| self.symbol_name(symbol)));
            }
        };
        if symbol.name == &*debug.mangled {
            return Some(debug.demangled);
        }
        // What has its plain name for a symbol (`extern "C"`, `no_mangle`) is known by that.
        if symbol.name == last_part(&debug.demangled).as_bytes() {
            return Some(self.symbol_name(symbol));
        }
        if self.symbols.has_alias(symbol, &debug.mangled) {
            return Some(self.symbol_name(symbol));
        }
        if is_mangled(symbol.name) && !is_mangled(&debug.mangled) {
            let full = self.demangled(without_suffix(symbol.name));
            if is_last_part(last_part(&debug.demangled), &full)
                || is_closure(&debug.demangled, &full)
            {
                return Some(full);
            }
        }
        Some(debug.demangled)
    }

    /// The demangled name of a symbol, `name@plt` for stubs as objdump has it.
    fn symbol_name(&mut self, symbol: Symbol<'c>) -> Arc<str> {
        let name = self.demangled(symbol.name);
        if symbol.is_stub { Arc::from(format!("{name}@plt")) } else { name }
    }

    fn frame(&mut self, name: Arc<str>, inlined: bool, place: &DebugFrame<'_>) -> SymbolFrame {
        let (mut file, mut line) = (None, None);
        if self.config.lines {
            line = place.line.filter(|line| *line > 0);
            file = place.file.map(|file| self.file(file));
        }
        SymbolFrame { name, inlined, file, line }
    }

    fn file(&mut self, path: &str) -> Arc<str> {
        if let Some(shown) = self.files.get(path) {
            return Arc::clone(shown);
        }
        let shown: Arc<str> = Arc::from(readable(path.as_bytes()));
        self.files.insert(Box::from(path), Arc::clone(&shown));
        shown
    }

    fn debug_name(&mut self, frame: &DebugFrame<'_>) -> Option<DebugName> {
        let name = frame.name.as_deref()?;
        if let Some(known) = self.debug_names.get(name) {
            return Some(known.clone());
        }
        let (mangled, demangled) = (Arc::from(name), Arc::from(demangle(&readable(name))));
        let name = DebugName { mangled, demangled };
        self.debug_names.insert(Arc::clone(&name.mangled), name.clone());
        Some(name)
    }

    /// A text that is shown as it is.
    fn plain_name(&mut self, text: &'c [u8]) -> Arc<str> {
        let shown = self.plain.entry(text).or_insert_with(|| Arc::from(readable(text)));
        Arc::clone(shown)
    }

    fn demangled(&mut self, name: &'c [u8]) -> Arc<str> {
        let demangled = self.names.entry(name).or_insert_with(|| {
            let name = &name[..name.len().min(MAX_NAME_LEN)];
            Arc::from(demangle(&readable(name)))
        });
        Arc::clone(demangled)
    }
}

/// Whether a demangler has something to do; not whether it succeeds.
fn is_mangled(name: &[u8]) -> bool {
    name.starts_with(b"_Z") || name.starts_with(b"_R")
}

/// Whether `name` is the last part of the path of a demangled name: `parse` of
/// `(anonymous namespace)::parse(char const*)`. Template arguments do not count, because compilers
/// and demanglers spell them differently (`<lambda(long int)>`, `{lambda(long)#1}`).
fn is_last_part(name: &str, full: &str) -> bool {
    let name = name.split_once('<').map_or(name, |(base, _arguments)| base);
    full.match_indices(name).any(|(start, _)| {
        let before = full[..start].chars().next_back();
        let after = full[start + name.len()..].chars().next();
        matches!(before, None | Some(':' | ' '))
            && matches!(after, None | Some('(' | '<' | '[' | '{'))
    })
}

/// The last part of a path: `operator()` of `main::<lambda(int)>::operator()`.
fn last_part(path: &str) -> &str {
    let (mut start, mut depth, mut before) = (0, 0_u32, b' ');
    for (at, byte) in path.bytes().enumerate() {
        match byte {
            // An arrow: what a function returns.
            b'>' if before == b'-' => {}
            b'<' | b'(' | b'{' => depth += 1,
            b'>' | b')' | b'}' => depth = depth.saturating_sub(1),
            b':' if depth == 0 => start = at + 1,
            _ => {}
        }
        before = byte;
    }
    &path[start..]
}

/// Whether both are names of a closure of Rust, of which debug information writes `{closure#0}` and
/// older linkage names `{{closure}}`.
fn is_closure(name: &str, full: &str) -> bool {
    name.starts_with("{closure") && full.ends_with("::{{closure}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_of_a_path_is_what_stands_in_no_brackets() {
        let cases = [
            ("main", "main"),
            ("a::b::run", "run"),
            ("main::<lambda(a::b)>::operator()", "operator()"),
            ("(anonymous namespace)::Q<a::b>::run<c::d>", "run<c::d>"),
            ("S::operator<", "operator<"),
            ("run<fn() -> a::b, c::d>", "run<fn() -> a::b, c::d>"),
            ("", ""),
        ];
        for (path, expect) in cases {
            assert_eq!(last_part(path), expect, "{path}");
        }
    }

    #[test]
    fn the_last_part_of_a_path_is_recognised() {
        let cases = [
            ("parse", "(anonymous namespace)::parse(char const*)", true),
            ("call<main::<lambda(long int)> >", "long call<main::{lambda(long)#1}>(int)", true),
            ("~Sq", "(anonymous namespace)::Sq<int, 7>::~Sq()", true),
            ("operator()", "main::{lambda(long)#1}::operator()(long) const", true),
            ("work", "work", true),
            ("call_once<F>", "core::ops::FnOnce::call_once{{vtable.shim}}", true),
            ("arse", "(anonymous namespace)::parse(char const*)", false),
            ("par", "(anonymous namespace)::parse(char const*)", false),
            ("other", "ns::parse(char const*)", false),
        ];
        for (name, full, expect) in cases {
            assert_eq!(is_last_part(name, full), expect, "{name} in {full}");
        }
    }
}
