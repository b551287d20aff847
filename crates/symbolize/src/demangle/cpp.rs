//! C++ names: what cpp_demangle makes of them, where it differs from `c++filt` brought in line.

use cpp_demangle::{DemangleOptions, Symbol};

use super::{Bounded, packs};

/// How many ends of a nested name are tried before a constructor stays as it is.
const MAX_ENDS: usize = 64;

/// How `c++filt` marks the integer literals whose type is not `int`.
const LITERALS: [(&str, &str); 6] = [
    ("(unsigned int)", "u"),
    ("(long)", "l"),
    ("(unsigned long)", "ul"),
    ("(long long)", "ll"),
    ("(unsigned long long)", "ull"),
    ("(int)", ""),
];

/// What cpp_demangle 0.5 leaves of an empty parameter pack, and what `c++filt` does.
const EMPTY_PACKS: [(&str, &str); 10] = [
    (", )", ")"),
    (", &&)", ")"),
    (", &)", ")"),
    (", const&)", ")"),
    ("(&&)", "()"),
    ("(&)", "()"),
    ("( const&)", "()"),
    ("<, ", "<"),
    (", , ", ", "),
    (", >", ">"),
];

/// Streams as `c++filt` abbreviates them. cpp_demangle 0.5 does it for `std::ostream` alone.
const STREAMS: [(&str, &str); 2] = [
    ("std::basic_istream<char, std::char_traits<char> >", "std::istream"),
    ("std::basic_iostream<char, std::char_traits<char> >", "std::iostream"),
];

/// Qualifiers that cpp_demangle 0.5 puts within a path instead of behind it, longest first:
/// `Histogram const::Options&` for `Histogram::Options const&`.
const MISPLACED: [(&str, &str); 4] =
    [(" const&::", " const&"), (" const::", " const"), ("&&::", "&&"), ("&::", "&")];

/// References to pointers to members, as that leaves them and as `c++filt` has them.
const MEMBERS: [(&str, &str); 2] = [("::&&*)", "::*&&)"), ("::&*)", "::*&)")];

/// How many qualifiers of a name are put right; real names have one or two.
const MAX_MISPLACED: usize = 32;

/// The demangled name; `None` when it is malformed or exceeds the bounds.
pub(super) fn demangle_cpp(name: &str) -> Option<String> {
    let written_out = packs::written_out(name).filter(|name| Symbol::new(name.as_str()).is_ok());
    let name = written_out.as_deref().unwrap_or(name);
    let Ok(symbol) = Symbol::new(name) else { return path_alone(name) };
    let text = print(&symbol, is_local(name))?;
    let text = match constructor_end(name, &symbol, &text) {
        Some(end) => {
            let with_return_type = format!("{}v{}", &name[..end], &name[end..]);
            print(&Symbol::new(&with_return_type).ok()?, false)?
        }
        None => text,
    };
    let text = plain_thunk(name, &text).unwrap_or(text);
    Some(as_cppfilt(&text))
}

/// Whether it is something within a function, whose own return type `c++filt` leaves out. Templates
/// within a function, such as the calls of generic lambdas, have one of their own.
fn is_local(name: &str) -> bool {
    name.starts_with("_ZZ") && !name.contains("clI")
}

/// What cpp_demangle spells otherwise than `c++filt` does.
fn as_cppfilt(text: &str) -> String {
    let text = replaced(without_empty_packs(plain_literals(text)), STREAMS);
    let text = replaced(with_qualifiers_behind(text), MEMBERS);
    with_spaced_function_types(text)
}

fn replaced<const N: usize>(mut text: String, pairs: [(&str, &str); N]) -> String {
    for (theirs, plain) in pairs {
        if text.contains(theirs) {
            text = text.replace(theirs, plain);
        }
    }
    text
}

/// Puts a blank behind the return type of function types, `function<Error (Graph&)>`, which
/// cpp_demangle 0.5 forgets behind a type with scopes.
fn with_spaced_function_types(text: String) -> String {
    let bytes = text.as_bytes();
    let (mut open, mut blanks) = (Vec::new(), Vec::new());
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'(' => open.push(at),
            b')' => {
                let Some(start) = open.pop() else { break };
                // In a template argument, an operator's name aside: the parameters of a function
                // itself end the text, or its scope does.
                let is_argument = matches!(bytes.get(at + 1), Some(b'>' | b','));
                if is_argument && ends_type(&text[..start]) {
                    blanks.push(start);
                }
            }
            _ => {}
        }
    }
    if blanks.is_empty() {
        return text;
    }
    blanks.sort_unstable();
    let mut out = String::with_capacity(text.len() + blanks.len());
    let mut from = 0;
    for at in blanks {
        out.push_str(&text[from..at]);
        out.push(' ');
        from = at;
    }
    out + &text[from..]
}

fn ends_type(text: &str) -> bool {
    let is_end = |c: char| c.is_alphanumeric() || matches!(c, '_' | '>' | '*' | '&');
    text.ends_with(is_end) && !text.ends_with("operator")
}

/// Puts qualifiers behind the path that they stand within.
fn with_qualifiers_behind(mut text: String) -> String {
    for _ in 0..MAX_MISPLACED {
        let found = MISPLACED.iter().filter_map(|(wrong, qualifier)| {
            let mut places = text.match_indices(wrong).map(|(at, _)| at);
            // Behind parameters it is a member function's own: `f() const::{lambda()#1}`.
            let at = places.find(|at| {
                let before = &text[..*at];
                before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '>')
                    && !before.ends_with("operator")
            });
            Some((at?, *qualifier))
        });
        let Some((at, qualifier)) = found.min() else { break };
        let rest = &text[at + qualifier.len()..];
        let mut depth = 0_usize;
        let len = rest.find(|c| {
            let is_end = depth == 0 && matches!(c, ',' | ')' | '>' | '&' | '*' | ' ' | '(' | '[');
            match c {
                '<' => depth += 1,
                '>' => depth = depth.saturating_sub(1),
                _ => {}
            }
            is_end
        });
        let (path, after) = rest.split_at(len.unwrap_or(rest.len()));
        text = format!("{}{path}{qualifier}{after}", &text[..at]);
    }
    text
}

/// The name without parameters, where only those are beyond the demangler: cpp_demangle 0.5 does
/// not know all expressions, which the return type of every `std::swap` is full of.
fn path_alone(name: &str) -> Option<String> {
    // A name is complete at the `E` that closes it and at none before.
    let mut paths = ends(name).filter_map(|end| Symbol::new(&name[..end]).ok());
    let text = print(&paths.next()?, false)?;
    Some(as_cppfilt(&text))
}

/// Where a name, or its arguments, may be complete.
fn ends(name: &str) -> impl Iterator<Item = usize> {
    name.match_indices('E').map(|(at, _)| at + 1).take(MAX_ENDS)
}

fn without_empty_packs(mut text: String) -> String {
    for (pattern, plain) in EMPTY_PACKS {
        // Each round shortens the text; rounds beyond the first are for patterns that overlap.
        for _ in 0..3 {
            if !text.contains(pattern) {
                break;
            }
            text = replace_packs(&text, pattern, plain);
        }
    }
    text
}

/// Replaces what is not a reference to an array or function: `char const (&) [51ul]`.
fn replace_packs(text: &str, pattern: &str, plain: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(pattern) {
        let (before, found) = rest.split_at(at);
        let (found, after) = found.split_at(pattern.len());
        out.push_str(before);
        let is_declarator = pattern.starts_with('(') && out.ends_with(' ');
        out.push_str(if is_declarator { found } else { plain });
        rest = after;
    }
    out + rest
}

fn print<T: AsRef<[u8]>>(symbol: &Symbol<T>, without_return_type: bool) -> Option<String> {
    let mut options = DemangleOptions::new();
    if without_return_type {
        options = options.no_return_type();
    }
    let mut out = Bounded::default();
    symbol.structured_demangle(&mut out, &options).ok()?;
    Some(out.text)
}

/// Where the name of a constructor template ends and its parameters start.
///
/// Templates have their return type before the parameters, constructors have none; cpp_demangle
/// 0.5 takes the first parameter of a constructor template for one and leaves it out. With a return
/// type put in there the parameters come out whole.
fn constructor_end(name: &str, symbol: &Symbol<&str>, text: &str) -> Option<usize> {
    if !["C1I", "C2I", "C3I", "C4I", "C5I"].iter().any(|mark| name.contains(mark)) {
        return None;
    }
    let has_no_return_type = print(symbol, true)? == text;
    if !has_no_return_type || !path(text)?.ends_with('>') || text.contains("operator") {
        return None;
    }
    ends(name).find(|end| Symbol::new(&name[..*end]).is_ok())
}

/// What stands before the parameters.
fn path(text: &str) -> Option<&str> {
    let mut depth = 0;
    let close = text.rfind(')')?;
    let open = text[..=close].rfind(|c| {
        depth += match c {
            ')' => 1,
            '(' => -1,
            _ => 0,
        };
        depth == 0
    })?;
    Some(&text[..open])
}

/// A thunk as `c++filt` names it. cpp_demangle 0.5 writes its offsets out:
/// `{virtual override thunk({offset(-16)}, Span::run())}`.
fn plain_thunk(name: &str, text: &str) -> Option<String> {
    let kind = match name.get(..4)? {
        "_ZTh" => "non-virtual thunk to ",
        "_ZTv" => "virtual thunk to ",
        _ => return None,
    };
    let (_offset, rest) = text.strip_prefix("{virtual override thunk(")?.split_once("}, ")?;
    let (target, suffix) = rest.rsplit_once(")}")?;
    Some(format!("{kind}{target}{suffix}"))
}

/// Literals as `c++filt` writes them: `0ul` for `(unsigned long)0`, `true` for `(bool)1`.
fn plain_literals(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('(') {
        let (before, cast) = rest.split_at(open);
        out.push_str(before);
        rest = match literal(cast) {
            Some((digits, suffix, after)) => {
                out.push_str(digits);
                out.push_str(suffix);
                after
            }
            None => {
                out.push('(');
                &cast[1..]
            }
        };
    }
    out.push_str(rest);
    out
}

/// The literal at the start of a text: its digits, its suffix and what follows.
fn literal(text: &str) -> Option<(&str, &'static str, &str)> {
    for (cast, word) in [("(bool)0", "false"), ("(bool)1", "true")] {
        if let Some(after) = text.strip_prefix(cast) {
            return Some(("", word, after));
        }
    }
    LITERALS.iter().find_map(|(cast, suffix)| {
        let number = text.strip_prefix(cast)?;
        let sign = usize::from(number.starts_with('-'));
        let digits = number[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = number.split_at(sign + digits);
        (digits > 0).then_some((number, *suffix, after))
    })
}
