//! The text of a box: as much of the useful end of a name as fits.
//!
//! First goes what stands in `<>` and `()` (generic arguments, parameters) and hashes, then leading path
//! segments (`tokio::runtime::worker::poll` -> `worker::poll`), then the middle. The viewer script
//! does the same by the same steps.

use crate::char_width::{MilliEm, Widths};

const ELLIPSIS: char = '…';
/// Boxes that cannot show this many characters of a long name stay blank.
const MIN_KEPT: usize = 3;

/// How a name is made to fit its box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shorten {
    /// Generic arguments go first, then leading path segments, then the middle.
    #[default]
    UsefulEnd,
    /// The end is cut off.
    Right,
}

/// The longest form of `name` that is at most `max` wide; `None` where no useful one is.
pub(crate) fn fit(name: &str, max: MilliEm, shorten: Shorten, widths: Widths) -> Option<String> {
    if widths.fits(name, max) {
        return Some(name.to_owned());
    }
    if max < widths.narrowest() {
        return None;
    }
    if shorten == Shorten::Right {
        return cut_right(name, max, widths);
    }
    let short = strip_arguments(name);
    if widths.fits(&short, max) {
        return Some(short);
    }
    let mut last = short.as_str();
    for tail in tails(&short) {
        if widths.fits(tail, max) {
            return Some(tail.to_owned());
        }
        last = tail;
    }
    cut_middle(last, max, widths)
}

/// The start of a name.
fn cut_right(name: &str, max: MilliEm, widths: Widths) -> Option<String> {
    let mut left = max.checked_sub(widths.of_char(ELLIPSIS))?;
    let mut cut = String::new();
    for c in name.chars() {
        match left.checked_sub(widths.of_char(c)) {
            Some(rest) => left = rest,
            None => break,
        }
        cut.push(c);
    }
    let useful = cut.chars().count() >= MIN_KEPT;
    cut.push(ELLIPSIS);
    useful.then_some(cut)
}

/// Where a scan of a name stands.
#[derive(Default)]
struct Scan {
    out: String,
    /// Brackets that are open around text which is left out.
    skipping: u32,
    /// Leading `<` of `<Type as Trait>::method`, whose `Type` is kept.
    opened: u32,
}

/// The name without generic arguments and parameters: `Vec<T>::push(T)` -> `Vec::push`,
/// `<A as B>::c` -> `A::c`. Names in brackets (`[libc.so+0x1f]`) stay whole.
fn strip_arguments(name: &str) -> String {
    if name.starts_with('[') {
        return name.to_owned();
    }
    let mut scan = Scan::default();
    let mut rest = name;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let taken = if scan.skipping > 0 {
            scan.skip(c, before);
            c.len_utf8()
        } else {
            scan.keep(c, before, rest)
        };
        let (done, left) = rest.split_at(taken);
        before = done.chars().next_back().unwrap_or(' ');
        rest = left;
    }
    let out = without_hash(scan.out.strip_suffix(" const").unwrap_or(&scan.out));
    if out.is_empty() { name.to_owned() } else { out.to_owned() }
}

/// The name without the `::h0123456789abcdef` that Rust's older mangling ends it with.
fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((path, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            path
        }
        _ => name,
    }
}

impl Scan {
    fn skip(&mut self, c: char, before: char) {
        match c {
            '<' | '(' => self.skipping += 1,
            '>' if before == '-' => {}
            '>' | ')' => self.skipping -= 1,
            _ => {}
        }
    }

    /// Handles what `rest` starts with, the character `c`; says how many bytes that took.
    fn keep(&mut self, c: char, before: char, rest: &str) -> usize {
        for whole in ["(anonymous namespace)", "operator()", "decltype(auto)"] {
            if rest.starts_with(whole) {
                self.out.push_str(whole);
                return whole.len();
            }
        }
        match c {
            '<' if before == '.' || self.out.ends_with("operator") => self.out.push(c),
            '<' if before == '<' && self.out.ends_with("operator<") => self.out.push(c),
            '<' if self.out.is_empty() && is_qualified(rest) => self.opened += 1,
            // A name of its own: `<module>`, `block in <main>`, `a.py:<lambda>`.
            '<' if self.out.is_empty() || is_apart(&self.out) => self.out.push(c),
            '<' => {
                self.skipping = 1;
                if self.out.ends_with("::") {
                    self.out.truncate(self.out.len() - 2);
                }
            }
            '>' if before != '-' && self.opened > 0 => self.opened -= 1,
            '(' if !rest.starts_with("(*") => self.skipping = 1,
            ' ' if self.opened > 0 && rest.starts_with(" as ") => {
                self.opened -= 1;
                self.skipping = 1;
            }
            _ => self.out.push(c),
        }
        c.len_utf8()
    }
}

/// Whether the `<` that a text starts with is that of `<Type as Trait>::method`.
fn is_qualified(text: &str) -> bool {
    let (mut open, mut before) = (0, ' ');
    let end = text.char_indices().find(|(_, c)| {
        match c {
            '<' => open += 1,
            '>' if before != '-' => open -= 1,
            _ => {}
        }
        before = *c;
        open == 0
    });
    end.is_some_and(|(at, _)| text[at + 1..].starts_with("::"))
}

/// Whether what follows is not an argument of the name before it.
fn is_apart(before: &str) -> bool {
    let is_word = |word: &str| word.ends_with(|c: char| c.is_ascii_alphanumeric());
    before.ends_with(['/', '<'])
        || before.strip_suffix(' ').is_some_and(is_word)
        || before.ends_with(':') && !before.ends_with("::")
}

/// What is left when one, two, ... leading path segments are dropped; `{closure#0}` never stands
/// without the function that it is in.
fn tails(name: &str) -> impl Iterator<Item = &str> {
    name.char_indices().filter_map(move |(at, c)| {
        let after = match c {
            '[' if at == 0 => return None,
            ':' if name[at..].starts_with("::") => &name[at + 2..],
            '/' => &name[at + 1..],
            _ => return None,
        };
        let useful = !after.is_empty() && !after.starts_with(['{', ':', '/']);
        (useful && !name.starts_with('[')).then_some(after)
    })
}

/// The two ends of a name, a little more of the start.
fn cut_middle(name: &str, max: MilliEm, widths: Widths) -> Option<String> {
    let chars: Vec<char> = name.chars().collect();
    let mut left = max.checked_sub(widths.of_char(ELLIPSIS))?;
    let (mut head, mut tail) = (0, 0);
    while head + tail < chars.len() {
        let from_head = head <= tail;
        let next = if from_head { chars[head] } else { chars[chars.len() - 1 - tail] };
        let Some(rest) = left.checked_sub(widths.of_char(next)) else { break };
        left = rest;
        if from_head { head += 1 } else { tail += 1 }
    }
    if head + tail < MIN_KEPT {
        return None;
    }
    let ends = chars[..head].iter().chain([&ELLIPSIS]).chain(&chars[chars.len() - tail..]);
    Some(ends.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::char_width::text_width;

    #[test]
    fn arguments_are_left_out() {
        let cases = [
            ("main", "main"),
            ("alloc::vec::Vec<T>::push", "alloc::vec::Vec::push"),
            ("<alloc::vec::Vec<T, A> as core::ops::Drop<X>>::drop", "alloc::vec::Vec::drop"),
            ("<<A as B>::C as D>::e", "A::C::e"),
            ("core::iter::<impl core::fmt::Debug for X>::fmt", "core::iter::fmt"),
            ("f::<fn(A) -> B>::g", "f::g"),
            ("std::map<int, std::less<int> >::at(int const&) const", "std::map::at"),
            ("(anonymous namespace)::run(int)", "(anonymous namespace)::run"),
            ("A::operator()(int)", "A::operator()"),
            ("A::operator<<(int)", "A::operator<<"),
            ("A::operator->()", "A::operator->"),
            ("main.(*Server).Serve", "main.(*Server).Serve"),
            ("java/util/HashMap.<init>", "java/util/HashMap.<init>"),
            ("[libc.so.6+0x1f<(]", "[libc.so.6+0x1f<(]"),
            ("tokio::run::{closure#0}", "tokio::run::{closure#0}"),
            ("log::set_logger::hfce3bfc5d262a203", "log::set_logger"),
            ("log::hash", "log::hash"),
            ("<module>", "<module>"),
            ("app.py:<lambda>", "app.py:<lambda>"),
            ("main.<locals>.<lambda>", "main.<locals>.<lambda>"),
            ("block in <main>", "block in <main>"),
            ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>"),
            ("decltype(auto) f<int>", "decltype(auto) f"),
            ("decltype(auto) ns::f<int>(int&&)", "decltype(auto) ns::f"),
            ("<fn() -> A<B> as C>::d", "fn -> A::d"),
            ("f::<T>", "f"),
            ("std::operator<< <std::char_traits<char> >(int)", "std::operator<< "),
            ("<", "<"),
            ("<<<a", "<<<a"),
            ("a<b", "a"),
        ];
        for (name, expect) in cases {
            assert_eq!(strip_arguments(name), expect, "{name}");
        }
    }

    #[track_caller]
    fn check(name: &str, room_for: &str, expect: Option<&str>) {
        let label = fit(name, text_width(room_for), Shorten::UsefulEnd, Widths::default());
        assert_eq!(label.as_deref(), expect, "{name} in the room of {room_for}");
    }

    #[test]
    fn the_useful_end_is_kept() {
        let name = "tokio::runtime::task::Core<T>::poll";
        check(name, name, Some(name));
        check(name, "tokio::runtime::task::Core::poll", Some("tokio::runtime::task::Core::poll"));
        check(name, "tokio::runtime::task", Some("task::Core::poll"));
        check(name, "poll", Some("poll"));
        check(name, "p…", None);
        check("org/apache/Foo.invoke", "Foo.invoke", Some("Foo.invoke"));
        check("a::poll::{closure#0}", "poll::{closure#0}", Some("poll::{closure#0}"));
        check("/usr/lib/", "usr/lib/", Some("usr/lib/"));
    }

    #[test]
    fn the_middle_goes_last() {
        check("__do_sys_epoll_wait", "__do_s…_wait", Some("__do_s…_wait"));
        check("epoll_wait", "ep…t", Some("ep…t"));
        check("epoll_wait", "…", None);
        check("epoll_wait", "", None);
    }

    #[test]
    fn the_end_can_go_instead() {
        let cut =
            |room_for| fit("epoll_wait", text_width(room_for), Shorten::Right, Widths::default());
        assert_eq!(cut("epoll_wait").as_deref(), Some("epoll_wait"));
        assert_eq!(cut("epoll…").as_deref(), Some("epoll…"));
        assert_eq!(cut("ep…"), None);
    }

    #[test]
    fn characters_of_one_width_need_no_table() {
        let widths = Widths { uniform: Some(600) };
        assert_eq!(fit("epoll_wait", 6000, Shorten::Right, widths).as_deref(), Some("epoll_wait"));
        assert_eq!(fit("epoll_wait", 5999, Shorten::Right, widths).as_deref(), Some("epoll_wa…"));
    }

    #[test]
    fn a_label_is_never_wider_than_its_room() {
        let names = ["<A<B> as C>::d::{closure#1}", "日本語の関数", "x", "a/b/c/d", "::::", "(((("];
        for name in names {
            for max in 0..12_000 {
                for shorten in [Shorten::UsefulEnd, Shorten::Right] {
                    if let Some(label) = fit(name, max, shorten, Widths::default()) {
                        assert!(text_width(&label) <= max, "{name} {max} {label}");
                    }
                }
            }
        }
    }
}
