//! Names that mean the same function in two builds made equal.
//!
//! Only what a compiler, a linker or a packager puts into a name is taken out, never a part that a
//! programmer wrote, besides template arguments, which say with which types code was built.

mod templates;
mod versions;

use std::borrow::Cow;

use templates::without_template_arguments;
use versions::without_versions;

/// Longer names are not a compiler's, and looking through them could take for ever.
const LONGEST: usize = 1 << 16;

/// Which differences between names are left out.
///
/// ```
/// use flame_diff::Names;
///
/// assert_eq!(Names::AcrossBuilds.common("parse.constprop.0"), "parse");
/// assert_eq!(Names::WithoutHex.common("0x7f12"), "0x...");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// None.
    Exact,
    /// Addresses: `0x7f12` is `0x...`, as difffolded.pl -s writes it.
    WithoutHex,
    /// All that a new build changes.
    AcrossBuilds,
}

impl Names {
    /// The name that two builds have in common.
    pub fn common(self, name: &str) -> Cow<'_, str> {
        let common = match self {
            Names::Exact => return Cow::Borrowed(name),
            Names::WithoutHex => without_hex(name),
            Names::AcrossBuilds => across_builds(name),
        };
        if common == name { Cow::Borrowed(name) } else { Cow::Owned(common) }
    }
}

fn without_hex(name: &str) -> String {
    let mut common = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("0x") {
        let digits = run(&rest[at + 2..], |byte| byte.is_ascii_hexdigit());
        common.push_str(&rest[..at + 2]);
        common.push_str(if digits > 0 { "..." } else { "" });
        rest = &rest[at + 2 + digits..];
    }
    common + rest
}

fn across_builds(name: &str) -> String {
    if name.len() > LONGEST {
        return name.to_owned();
    }
    let name = without_suffixes(&without_hex(name)).to_owned();
    let name = without_hashes(&name);
    let name = without_numbers(&name);
    let name = without_places(&name);
    let name = without_versions(&name);
    without_template_arguments(&name)
}

/// How many bytes from the start on are of a kind.
fn run(text: &str, is_kind: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| is_kind(*byte)).count()
}

/// What optimisations put behind a name when they copy or split a function: gcc's `.part.3`,
/// `.constprop.0`, `.isra.0` and `.cold`, LLVM's `.llvm.123`, and c++filt's ` [clone .cold]`.
fn without_suffixes(name: &str) -> &str {
    const WORDS: [&str; 15] = [
        ".cold",
        ".part",
        ".constprop",
        ".isra",
        ".llvm",
        ".lto_priv",
        ".localalias",
        ".warm",
        ".split",
        ".__part",
        ".__uniq",
        ".clone",
        ".specialized",
        ".argelim",
        ".argprom",
    ];
    let mut name = name;
    loop {
        let clone = name.strip_suffix(']').and_then(|head| Some(head.rsplit_once(" [clone .")?.0));
        let bare = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let numbered = if bare.len() < name.len() { bare.strip_suffix('.') } else { None };
        let word = |text| WORDS.iter().find_map(|word| str::strip_suffix(text, word));
        let shorter = clone.or_else(|| numbered.and_then(word)).or_else(|| word(name));
        match shorter.filter(|shorter| !shorter.is_empty()) {
            Some(shorter) => name = shorter,
            None => return name,
        }
    }
}

/// Rust's `::h0123456789abcdef` at the end, the number of a crate's build, `core[8467...]`, and
/// C++'s tags of libraries, `name[abi:cxx11]` and `std::__cxx11::`.
fn without_hashes(name: &str) -> String {
    let is_hash = |text: &str| text.len() == 16 && run(text, |b| b.is_ascii_hexdigit()) == 16;
    let legacy = name.rsplit_once("::h").filter(|(_, hash)| is_hash(hash));
    let name = legacy.map_or(name, |(head, _)| head).replace("std::__cxx11::", "std::");
    let mut common = String::with_capacity(name.len());
    let mut rest = &*name;
    while let Some((head, behind)) = rest.split_once('[') {
        common.push_str(head);
        if let Some((_, tail)) = behind.strip_prefix("abi:").and_then(|tag| tag.split_once(']')) {
            rest = tail;
            continue;
        }
        let digits = run(behind, |byte| byte.is_ascii_hexdigit());
        match behind[digits..].strip_prefix(']') {
            Some(tail) if (12..=16).contains(&digits) => rest = tail,
            _ => {
                common.push('[');
                rest = behind;
            }
        }
    }
    common + rest
}

/// Numbers that compilers and runtimes count what has no name by: `{closure#3}`, `{lambda()#2}`,
/// `$_7`, Go's `main.run.func2.1`, OpenMP's `main._omp_fn.0`, Java's `lambda$main$4`, `App$1`,
/// `$$Lambda$14` and `$Proxy9`. Rust's older names have no such number: `{{closure}}`.
fn without_numbers(name: &str) -> String {
    const COUNTED: [&str; 10] = [
        "#",
        "$_",
        ".func",
        ".gowrap",
        ".deferwrap",
        "._omp_fn.",
        "_block_invoke_",
        "$Proxy",
        "GeneratedMethodAccessor",
        "GeneratedConstructorAccessor",
    ];
    let name = name.replace("{{closure}}", "{closure#}");
    let mut common = String::with_capacity(name.len());
    let mut rest = &*name;
    while let Some(letter) = rest.chars().next() {
        let digits = |from: usize| run(&rest[from..], |byte| byte.is_ascii_digit());
        let counted = COUNTED.iter().find(|start| rest.starts_with(**start)).copied();
        let counted = counted.filter(|start| digits(start.len()) > 0);
        let end = |end: usize| !rest[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let class = (letter == '$' && digits(1) > 0 && end(1 + digits(1))).then_some("$");
        let Some(start) = counted.or(class) else {
            common.push(letter);
            rest = &rest[letter.len_utf8()..];
            continue;
        };
        common.push_str(start);
        rest = &rest[start.len() + digits(start.len())..];
        // A closure within a closure: `.func2.1.3`.
        while start == ".func" && rest.starts_with('.') && digits_at(rest, 1) > 0 {
            rest = &rest[1 + digits_at(rest, 1)..];
        }
    }
    common
}

fn digits_at(text: &str, from: usize) -> usize {
    run(&text[from..], |byte| byte.is_ascii_digit())
}

/// How V8 runs a function now, and where in its file it starts: `JS:*parse /app.js:4:13` and
/// `JS:^parse /app.js:9:13` are `JS:parse /app.js`.
fn without_places(name: &str) -> String {
    let mut name = name.to_owned();
    for kind in ["JS:", "LazyCompile:", "Function:"] {
        if name.starts_with(kind) && name[kind.len()..].starts_with(['*', '~', '^', '+']) {
            name.remove(kind.len());
        }
    }
    for _ in 0..2 {
        let Some((file, number)) = name.rsplit_once(':') else { break };
        let is_number = !number.is_empty() && digits_at(number, 0) == number.len();
        // `.js:4:13` has a file's ending before it, or another number.
        let last = file.rsplit(['/', ' ']).next().unwrap_or_default();
        if !is_number || !last.contains('.') {
            break;
        }
        name.truncate(file.len());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: Names, cases: &[(&str, &str)]) {
        for (name, expect) in cases {
            assert_eq!(names.common(name), *expect, "{name}");
        }
    }

    #[test]
    fn addresses_become_equal() {
        let cases = [
            ("0x7f12aB", "0x..."),
            ("[libc.so+0x12]+0x3", "[libc.so+0x...]+0x..."),
            ("0x", "0x"),
            ("x0xyz", "x0xyz"),
            ("main", "main"),
        ];
        check(Names::WithoutHex, &cases);
        check(Names::Exact, &[("0x7f12", "0x7f12")]);
    }

    #[test]
    fn suffixes_of_optimisations_go() {
        let cases = [
            ("parse.cold", "parse"),
            ("parse.part.3", "parse"),
            ("parse.constprop.0.isra.0", "parse"),
            ("parse.llvm.1234567890", "parse"),
            ("parse.cold.17", "parse"),
            ("parse(int) [clone .part.0] [clone .cold]", "parse(int)"),
            ("obj.3", "obj.3"),
            (".cold", ".cold"),
            ("party", "party"),
            ("parse.cold.", "parse.cold."),
        ];
        check(Names::AcrossBuilds, &cases);
    }

    #[test]
    fn hashes_and_numbers_of_closures_go() {
        let cases = [
            ("app::run::h0123456789abcdef", "app::run"),
            ("app::run::hello", "app::run::hello"),
            ("core[846817f741e54dfd]::fmt::write", "core::fmt::write"),
            ("table[12]", "table[12]"),
            ("app::run::{closure#3}", "app::run::{closure#}"),
            ("run()::{lambda(int)#2}::operator()(int)", "run()::{lambda(int)#}::operator()(int)"),
            ("run::$_7", "run::$_"),
            ("main.run.func2.1", "main.run.func"),
            ("main.run.gowrap1", "main.run.gowrap"),
            ("work._omp_fn.0", "work._omp_fn."),
            ("to_string[abi:cxx11](int)", "to_string(int)"),
            ("std::__cxx11::stoi(char)", "std::stoi(char)"),
            ("App$1.run", "App$.run"),
            ("LApp$$Lambda$2:::run", "LApp$$Lambda$:::run"),
            ("App$$Lambda$14/0x00000008000c3000.run", "App$$Lambda$/0x....run"),
            (
                "jdk.internal.reflect.GeneratedMethodAccessor12.invoke",
                "jdk.internal.reflect.GeneratedMethodAccessor.invoke",
            ),
            ("com.sun.proxy.$Proxy9.size", "com.sun.proxy.$Proxy.size"),
            ("$1st", "$1st"),
            ("main.function2", "main.function2"),
            ("App.lambda$main$4", "App.lambda$main$"),
            ("App$$Lambda$14", "App$$Lambda$"),
            ("sha256", "sha256"),
            ("app::run::h0123456789abcdeg", "app::run::h0123456789abcdeg"),
            ("app::run::h0123456789abcdef0", "app::run::h0123456789abcdef0"),
            ("table[0123456789a]", "table[0123456789a]"),
            ("table[0123456789ab]", "table"),
            ("main.run.func2.1.13", "main.run.func"),
            ("main.run.func2.init", "main.run.func.init"),
            ("main.run.gowrap1.2", "main.run.gowrap.2"),
            ("main.func.1", "main.func.1"),
            ("run.funct#", "run.funct#"),
            ("$1_x", "$1_x"),
        ];
        check(Names::AcrossBuilds, &cases);
    }

    #[test]
    fn places_and_states_of_scripts_go() {
        let cases = [
            ("JS:*fib /srv/app.js:4:13", "JS:fib /srv/app.js"),
            ("JS:^fib /srv/app.js:14:13", "JS:fib /srv/app.js"),
            ("LazyCompile:~fib app.js:4", "LazyCompile:fib app.js"),
            ("JS:fib node:internal/main:1:2", "JS:fib node:internal/main:1:2"),
            ("main app.c:12", "main app.c"),
            ("a::b:12", "a::b:12"),
            (":4:5", ":4:5"),
            ("main app.c:", "main app.c:"),
            ("main app.c:4a", "main app.c:4a"),
            ("main app.c:1:2:3", "main app.c:1"),
            ("JS:fib app.js", "JS:fib app.js"),
        ];
        check(Names::AcrossBuilds, &cases);
    }

    #[test]
    fn what_is_too_long_to_be_a_compilers_stays() {
        let name = "a".repeat(LONGEST - ".cold".len());
        let longest = format!("{name}.cold");
        let longer = format!("a{longest}");
        check(Names::AcrossBuilds, &[(&longest, &name), (&longer, &longer)]);
    }

    #[test]
    fn any_text_is_a_name() {
        let pieces = [
            "0x",
            "é",
            "<",
            ">",
            "operator",
            "-",
            "1.",
            "v2",
            "/",
            ".so.",
            "[0123456789abcdef]",
            " [clone .",
            "]",
            ".cold",
            "$_1",
            "::h",
            "lambda$",
            "$1",
            "(",
            ")",
            "::<",
            "<init>",
            ":4",
            "JS:*",
            ".func2",
            "[abi:",
            "0a1b2c3d",
            "a",
        ];
        let mut state = 1_u64;
        for _ in 0..3000 {
            let mut name = String::new();
            for _ in 0..12 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                name += pieces[(state >> 33) as usize % pieces.len()];
            }
            let common = Names::AcrossBuilds.common(&name);
            assert!(common.len() <= name.len() + 3 * 12, "{name}");
        }
        for piece in pieces {
            let long = piece.repeat(LONGEST / piece.len());
            assert!(Names::AcrossBuilds.common(&long).len() <= 2 * long.len() + 9, "{piece}");
        }
    }
}
