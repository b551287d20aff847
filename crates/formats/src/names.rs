//! Names of functions as profilers print them into names as people read them.
//!
//! What several text formats have in common: offsets behind symbols, arguments of C++ functions,
//! Java methods that stand for several inlined ones, and Rust names that only a C++ demangler has
//! seen.

use std::borrow::Cow;

/// A symbol without its offset: `+0x1f` at its end.
pub(crate) fn without_offset(symbol: &[u8]) -> &[u8] {
    let Some(at) = memchr::memrchr(b'+', symbol) else { return symbol };
    match &symbol[at..] {
        [b'+', b'0', b'x', digits @ ..] if is_hex(digits) => &symbol[..at],
        _ => symbol,
    }
}

/// Where a short text stands last. memchr's own search from behind prepares tables first, which takes longer than to look
/// through a line.
pub(crate) fn rfind(text: &[u8], what: &[u8]) -> Option<usize> {
    let (last, before) = what.split_last()?;
    let mut end = text.len();
    loop {
        end = memchr::memrchr(*last, &text[..end])?;
        if text[..end].ends_with(before) {
            return Some(end - before.len());
        }
    }
}

/// Whether these are hexadecimal digits, at least one.
pub(crate) fn is_hex(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_hexdigit)
}

/// Whether these are decimal digits, at least one.
pub(crate) fn is_decimal(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// A number that is all of the text.
pub(crate) fn number<T: TryFrom<u64>>(text: &[u8]) -> Option<T> {
    if text.is_empty() {
        return None;
    }
    let mut number = 0_u64;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    T::try_from(number).ok()
}

/// A function without its arguments, and without what stands behind them. Brackets that belong to
/// the name stay: `(anonymous namespace)::f`, `operator()`, `net.(*Conn).Read`,
/// `map<int (*)(char)>`, `{lambda(int)#1}`.
pub(crate) fn without_arguments(name: &[u8]) -> &[u8] {
    if memchr::memchr(b'(', name).is_none() {
        return name;
    }
    let mut at = 0;
    let mut depth = 0_u32;
    while at < name.len() {
        let rest = &name[at..];
        if rest.starts_with(b"operator") && !is_within_word(name, at) {
            at += operator_len(rest);
            continue;
        }
        match name[at] {
            b'(' if depth == 0 => match group_of_name(name, at) {
                Some(end) => at = end,
                None => return &name[..at],
            },
            b'(' | b'<' | b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b')' | b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b'>' => {
                let is_arrow = at > 0 && name[at - 1] == b'-';
                depth = depth.saturating_sub(u32::from(!is_arrow));
                at += 1;
            }
            _ => at += 1,
        }
    }
    name
}

/// Whether the byte before stands in a word.
pub(crate) fn is_within_word(name: &[u8], at: usize) -> bool {
    at > 0 && (name[at - 1].is_ascii_alphanumeric() || name[at - 1] == b'_')
}

/// The length of `operator` and the sign that follows it.
pub(crate) fn operator_len(rest: &[u8]) -> usize {
    let signs: [&[u8]; 11] =
        [b"()", b"<=>", b"<<=", b">>=", b"->*", b"<<", b">>", b"->", b"<=", b">=", b"[]"];
    let word = b"operator".len();
    let behind = &rest[word..];
    let sign = signs.iter().find(|sign| behind.starts_with(sign)).map(|sign| sign.len());
    let single = usize::from(matches!(behind.first(), Some(b'<' | b'>')));
    word + sign.unwrap_or(single)
}

/// The end of a pair of round brackets that belongs to the name; `None` for arguments.
fn group_of_name(name: &[u8], at: usize) -> Option<usize> {
    let end = at + memchr::memchr(b')', &name[at..])? + 1;
    let is_anonymous = name[at..end] == *b"(anonymous namespace)";
    // Go's methods, and what stands behind a blank: arguments follow their function at once.
    let is_go = at > 0 && name[at - 1] == b'.' && name.get(end) == Some(&b'.');
    let is_apart = at == 0 || name[at - 1] == b' ';
    (is_anonymous || is_go || is_apart).then_some(end)
}

/// The methods that a name stands for where a runtime says which it has inlined, outermost first:
/// `Lnet/A::run->Lnet/B::read` as perf-map-agent writes them. `operator->` and `fn() -> T` are no
/// such arrows.
pub(crate) fn inlined_parts(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(name);
    std::iter::from_fn(move || {
        let text = rest?;
        match arrow(text) {
            Some(at) => {
                rest = Some(&text[at + 2..]);
                Some(&text[..at])
            }
            None => rest.take(),
        }
    })
}

fn arrow(name: &[u8]) -> Option<usize> {
    let is_arrow = |at: &usize| {
        let (before, behind) = (&name[..*at], &name[at + 2..]);
        let is_depth_0 = {
            let count = |byte: u8| before.iter().filter(|b| **b == byte).count();
            count(b'(') == count(b')') && count(b'<') == count(b'>') && count(b'{') == count(b'}')
        };
        !before.is_empty()
            && !behind.is_empty()
            && !before.ends_with(b" ")
            && !behind.starts_with(b" ")
            && !before.ends_with(b"operator")
            && is_depth_0
    };
    memchr::memmem::find_iter(name, b"->").find(is_arrow)
}

/// A method of Java without the letter that says it is of a class: `Ljava/lang/Thread`. What stands
/// before the first slash is a package then, and not `LazyCompile:~f /srv/app.js`.
pub(crate) fn without_class_letter(name: &[u8]) -> &[u8] {
    let is_package = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    match name {
        [b'L', rest @ ..] => match memchr::memchr(b'/', rest) {
            Some(slash) if slash > 0 && rest[..slash].iter().all(is_package) => rest,
            _ => name,
        },
        _ => name,
    }
}

/// A Rust name that only a C++ demangler has seen: without its hash, and with its signs.
pub(crate) fn rust_signs(name: &[u8]) -> Cow<'_, [u8]> {
    let name = without_rust_hash(name);
    let is_encoded = memchr::memchr(b'$', name).is_some_and(|at| is_rust_sign(&name[at..]));
    if !is_encoded {
        return Cow::Borrowed(name);
    }
    let mut text = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.first() {
        let sign = RUST_SIGNS.iter().find(|(code, _)| rest.starts_with(code));
        // `_$LT$` at the start of a part has its underscore since names do not start with a sign.
        let is_start = text.is_empty() || text.ends_with(b"::") || text.ends_with(b"<");
        match sign {
            Some((code, sign)) => {
                text.extend_from_slice(sign);
                rest = &rest[code.len()..];
            }
            None if *first == b'_' && is_start && is_rust_sign(&rest[1..]) => rest = &rest[1..],
            None if rest.starts_with(b"..") => {
                text.extend_from_slice(b"::");
                rest = &rest[2..];
            }
            None => {
                text.push(*first);
                rest = &rest[1..];
            }
        }
    }
    Cow::Owned(text)
}

fn is_rust_sign(text: &[u8]) -> bool {
    RUST_SIGNS.iter().any(|(code, _)| text.starts_with(code))
}

/// rustc's legacy mangling.
const RUST_SIGNS: [(&[u8], &[u8]); 19] = [
    (b"$SP$", b"@"),
    (b"$BP$", b"*"),
    (b"$RF$", b"&"),
    (b"$LT$", b"<"),
    (b"$GT$", b">"),
    (b"$LP$", b"("),
    (b"$RP$", b")"),
    (b"$C$", b","),
    (b"$u20$", b" "),
    (b"$u22$", b"\""),
    (b"$u27$", b"'"),
    (b"$u2b$", b"+"),
    (b"$u3b$", b";"),
    (b"$u5b$", b"["),
    (b"$u5d$", b"]"),
    (b"$u7b$", b"{"),
    (b"$u7d$", b"}"),
    (b"$u7e$", b"~"),
    (b"$u3d$", b"="),
];

/// What LLVM puts behind a function that it made visible for other units: `.llvm.7886897`, also in brackets.
fn without_llvm(name: &[u8]) -> &[u8] {
    let Some(at) = rfind(name, b".llvm.") else { return name };
    let (before, digits) = (&name[..at], &name[at + b".llvm.".len()..]);
    match (before.strip_suffix(b" ("), digits.strip_suffix(b")")) {
        (Some(before), Some(digits)) if is_decimal(digits) => before,
        _ if is_decimal(digits) => before,
        _ => name,
    }
}

/// `::h` and sixteen digits are a hash of the types.
fn without_rust_hash(name: &[u8]) -> &[u8] {
    const LEN: usize = 19;
    let name = without_llvm(name);
    let Some(at) = name.len().checked_sub(LEN) else { return name };
    match &name[at..] {
        [b':', b':', b'h', digits @ ..] if at > 0 && is_hex(digits) => &name[..at],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(found: &[u8], expect: &str) {
        assert_eq!(String::from_utf8_lossy(found), expect);
    }

    #[test]
    fn the_last_place_of_a_text_is_found() {
        let find = |text: &str, what: &str| rfind(text.as_bytes(), what.as_bytes());
        assert_eq!(find("a (b) (c) d)", " ("), Some(5));
        assert_eq!(find("  ", "  "), Some(0));
        assert_eq!(find(" from from ", " from "), Some(5));
        assert_eq!([find("", "ab"), find("b", "ab"), find("ba", "ab")], [None; 3]);
    }

    #[test]
    fn numbers_are_digits_that_fit() {
        assert_eq!(number::<u64>(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(number::<u32>(b"0004294967295"), Some(u32::MAX));
        for text in ["", "+1", "-1", "1 ", "1a", "18446744073709551616", "99999999999999999999"] {
            assert_eq!(number::<u64>(text.as_bytes()), None, "{text}");
        }
        assert_eq!(number::<u32>(b"4294967296"), None);
    }

    #[test]
    fn arguments_go_and_brackets_of_names_stay() {
        for (name, expect) in [
            ("main", "main"),
            ("std::sort(int*, int*)", "std::sort"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            ("a::(anonymous namespace)::f()", "a::(anonymous namespace)::f"),
            ("foo<int (*)(char)>(long) const", "foo<int (*)(char)>"),
            ("m::{lambda(int)#1}::operator()(int) const", "m::{lambda(int)#1}::operator()"),
            ("operator<(A const&, A const&)", "operator<"),
            ("S::operator->() const", "S::operator->"),
            ("S::operator<< <int>(int)", "S::operator<< <int>"),
            ("net/http.(*conn).serve", "net/http.(*conn).serve"),
            ("my_operator(int)", "my_operator"),
            ("<fn() -> T as core::ops::FnOnce>::call(x)", "<fn() -> T as core::ops::FnOnce>::call"),
            ("LazyCompile:~ (anonymous) a.js:1", "LazyCompile:~ (anonymous) a.js:1"),
            ("f(", "f"),
        ] {
            check(without_arguments(name.as_bytes()), expect);
        }
    }

    #[test]
    fn arrows_of_inlining_are_told_from_those_of_languages() {
        for (name, expect) in [
            ("Lnet/A::run->Lnet/B::read", &["Lnet/A::run", "Lnet/B::read"][..]),
            ("a->b->c", &["a", "b", "c"]),
            ("S::operator->", &["S::operator->"]),
            ("S::operator->*", &["S::operator->*"]),
            ("<fn() -> T>::call", &["<fn() -> T>::call"]),
            ("decltype(x->y)", &["decltype(x->y)"]),
            ("->", &["->"]),
            ("a->", &["a->"]),
            ("", &[""]),
        ] {
            let found: Vec<_> =
                inlined_parts(name.as_bytes()).map(String::from_utf8_lossy).collect();
            assert_eq!(found, expect, "{name}");
        }
    }

    #[test]
    fn offsets_class_letters_and_signs_of_rust_go() {
        check(without_offset(b"do_idle+0x1f"), "do_idle");
        check(without_offset(b"a+0x1+0x"), "a+0x1+0x");
        check(without_offset(b"operator+"), "operator+");
        check(without_class_letter(b"Ljava/lang/A.run"), "java/lang/A.run");
        check(without_class_letter(b"List"), "List");
        check(
            without_class_letter(b"LazyCompile:~f /srv/app.js:1"),
            "LazyCompile:~f /srv/app.js:1",
        );
        let name = b"_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$X$GT$::f::h0123456789abcdef";
        check(&rust_signs(name), "<alloc::vec::Vec<T> as X>::f");
        check(&rust_signs(b"core::fmt::write::h0123456789abcdef"), "core::fmt::write");
        let name = b"std::panicking::try::do_call::h0123456789abcdef (.llvm.7886897)";
        check(&rust_signs(name), "std::panicking::try::do_call");
        check(&rust_signs(b"parse.llvm.7886897"), "parse");
        check(&rust_signs(b"read.llvm.ir"), "read.llvm.ir");
        check(&rust_signs(b"Outer$Inner..run"), "Outer$Inner..run");
    }
}
