//! Names that mean the same function in two builds made equal.
//!
//! Only what a compiler, a linker or a packager puts into a name is taken out, never a part that a
//! programmer wrote, besides template arguments, which say with which types code was built.

use std::borrow::Cow;

/// Longer names are no compiler's, and looking through them could take for ever.
const LONGEST: usize = 1 << 16;

/// Which differences between names are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// None.
    Exact,
    /// Addresses: `0x7f12` is `0x...`, as difffolded.pl -s writes it.
    WithoutHex,
    /// All that a new build changes.
    AcrossBuilds,
}

impl Names {
    /// The name that two builds have in common.
    pub(super) fn common(self, name: &str) -> Cow<'_, str> {
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
    const WORDS: [&str; 9] = [
        ".cold",
        ".part",
        ".constprop",
        ".isra",
        ".llvm",
        ".lto_priv",
        ".localalias",
        ".warm",
        ".split",
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

/// Rust's `::h0123456789abcdef` at the end, and the number of a crate's build, `core[8467...]`.
fn without_hashes(name: &str) -> String {
    let is_hash = |text: &str| text.len() == 16 && run(text, |b| b.is_ascii_hexdigit()) == 16;
    let legacy = name.rsplit_once("::h").filter(|(_, hash)| is_hash(hash));
    let name = legacy.map_or(name, |(head, _)| head);
    let mut common = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((head, behind)) = rest.split_once('[') {
        common.push_str(head);
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

/// Numbers that compilers count functions without a name by: `{closure#3}`, `{lambda()#2}`, `$_7`,
/// Go's `main.run.func2`, Java's `lambda$main$4` and `$$Lambda$14`.
fn without_numbers(name: &str) -> String {
    const COUNTED: [&str; 4] = ["#", "$_", ".func", "$$Lambda$"];
    let mut common = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(letter) = rest.chars().next() {
        let counted = COUNTED.iter().find(|start| rest.starts_with(**start));
        let digits = |from: usize| run(&rest[from..], |byte| byte.is_ascii_digit());
        let taken = match counted {
            Some(start) if digits(start.len()) > 0 => Some((*start, digits(start.len()))),
            _ => None,
        };
        let Some((start, digits)) = taken else {
            common.push(letter);
            rest = &rest[letter.len_utf8()..];
            continue;
        };
        common.push_str(start);
        rest = &rest[start.len() + digits..];
    }
    match (common.contains("lambda$"), common.rsplit_once('$')) {
        (true, Some((head, number))) if run(number, |b| b.is_ascii_digit()) == number.len() => {
            format!("{head}$")
        }
        _ => common,
    }
}

/// Versions in paths and in names of libraries: `libc-2.31.so`, `libssl.so.1.1`, `serde-1.0.130/`,
/// `python3.11`.
fn without_versions(name: &str) -> String {
    if !name.contains('/') && !name.contains(".so") {
        return name.to_owned();
    }
    let mut common = String::with_capacity(name.len());
    for (index, part) in name.split('/').enumerate() {
        common.push_str(if index > 0 { "/" } else { "" });
        common.push_str(&without_version(part));
    }
    common
}

/// One part of a path.
fn without_version(part: &str) -> String {
    let mut common = String::with_capacity(part.len());
    let mut rest = part;
    while let Some((start, end)) = version(rest) {
        common.push_str(&rest[..start]);
        rest = &rest[end..];
    }
    common + rest
}

/// Where the first version in a part of a path starts, with what ties it to the name, and ends.
fn version(part: &str) -> Option<(usize, usize)> {
    let bytes = part.as_bytes();
    let is_version = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    // The dot before an ending is not the version's.
    let end = |start: usize| {
        let digits = &part[start..start + run(&part[start..], is_version)];
        start + digits.trim_end_matches('.').len()
    };
    let of_library = part.find(".so.").map(|at| (at + 3, end(at + 4)));
    let of_library = of_library.filter(|(start, end)| start + 1 < *end);
    let starts =
        (1..bytes.len()).filter(|at| bytes[*at].is_ascii_digit() && !is_version(bytes[at - 1]));
    let tied = |start: usize| {
        let head = part[..start].strip_suffix('v').unwrap_or(&part[..start]);
        let end = end(start);
        match head.strip_suffix('-') {
            Some(head) => Some((head.len(), end)),
            None => part[start..end].contains('.').then_some((start, end)),
        }
    };
    starts.filter_map(tied).next().into_iter().chain(of_library).min()
}

/// `Vec<int, std::allocator<int>>` as `Vec<>`; the brackets of `<Vec<T> as Debug>::fmt` stay, and so
/// do operators.
fn without_template_arguments(name: &str) -> String {
    let mut common = String::with_capacity(name.len());
    // How many of the open brackets hold arguments.
    let mut inside = 0_u32;
    // Brackets of qualified paths that are open outside of arguments.
    let mut kept = 0_u32;
    let mut previous = ' ';
    let mut rest = name;
    while let Some(letter) = rest.chars().next() {
        let operator = operator(rest).filter(|_| inside == 0);
        if let Some(operator) = operator {
            common.push_str(operator);
            (rest, previous) = (&rest[operator.len()..], ' ');
            continue;
        }
        let is_arrow = letter == '>' && matches!(previous, '-' | '=');
        match letter {
            '<' if inside > 0 => inside += 1,
            '<' if previous.is_alphanumeric() || matches!(previous, '_' | ':') => {
                inside = 1;
                common.push('<');
            }
            '<' => {
                kept += 1;
                common.push('<');
            }
            '>' if inside > 0 && !is_arrow => {
                inside -= 1;
                if inside == 0 {
                    common.push('>');
                }
            }
            '>' if !is_arrow => {
                kept = kept.saturating_sub(1);
                common.push('>');
            }
            letter if inside == 0 => common.push(letter),
            _ => {}
        }
        (rest, previous) = (&rest[letter.len_utf8()..], letter);
    }
    // Brackets that do not match: not a template, whatever it is.
    if inside > 0 || kept > 0 { name.to_owned() } else { common }
}

/// The operator that a text starts with, where it has angle brackets.
fn operator(text: &str) -> Option<&str> {
    const OPERATORS: [&str; 10] = ["<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<"];
    let sign = text.strip_prefix("operator")?;
    let sign = OPERATORS.iter().find(|known| sign.starts_with(**known)).copied();
    let sign = sign.or_else(|| text["operator".len()..].starts_with('>').then_some(">"))?;
    text.get(.."operator".len() + sign.len())
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
            ("main.run.func2.1", "main.run.func.1"),
            ("main.function2", "main.function2"),
            ("App.lambda$main$4", "App.lambda$main$"),
            ("App$$Lambda$14", "App$$Lambda$"),
            ("sha256", "sha256"),
        ];
        check(Names::AcrossBuilds, &cases);
    }

    #[test]
    fn versions_in_paths_go() {
        let cases = [
            ("[libc-2.31.so]", "[libc.so]"),
            ("[libssl.so.1.1]", "[libssl.so]"),
            ("/usr/lib/python3.11/json/decoder.py", "/usr/lib/python/json/decoder.py"),
            ("node_modules/left-pad-1.3.0/index.js", "node_modules/left-pad/index.js"),
            ("/opt/app-v2/lib64/x.c", "/opt/app/lib64/x.c"),
            ("/src/utf8.c", "/src/utf8.c"),
            ("v2.parse", "v2.parse"),
        ];
        check(Names::AcrossBuilds, &cases);
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

    #[test]
    fn template_arguments_go_and_operators_stay() {
        let cases = [
            (
                "std::vector<int, std::allocator<int> >::push_back(int&&)",
                "std::vector<>::push_back(int&&)",
            ),
            (
                "<alloc::vec::Vec<T> as core::fmt::Debug>::fmt",
                "<alloc::vec::Vec<> as core::fmt::Debug>::fmt",
            ),
            ("collect::<Vec<u8>>", "collect::<>"),
            ("Set<T>::operator<(Set<T> const&)", "Set<>::operator<(Set<> const&)"),
            ("operator<< <char>", "operator<< <char>"),
            ("Ptr<T>::operator->()", "Ptr<>::operator->()"),
            ("call::<fn(u8) -> u16>", "call::<>"),
            ("a < b", "a < b"),
            ("f<", "f<"),
        ];
        check(Names::AcrossBuilds, &cases);
    }
}
