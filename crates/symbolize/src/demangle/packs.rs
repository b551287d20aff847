//! Parameter packs of C++ function templates, written out before a demangler sees them.
//!
//! `f(Args const&...)` is mangled with one parameter for the whole pack. cpp_demangle 0.5 puts the
//! `const&` behind the last of its types alone, so the pack is replaced by its types here, each
//! with what is around it: `hash<int, bool>` with `DpRKT_` becomes one with `RKiRKb`.
//!
//! Only packs in the last place of the parameters are replaced, where types can be added without
//! changing what later back references count. What this reader of mangled names does not know
//! (expressions, local names, lambdas) stays as it is.
//!
//! Source: Itanium C++ ABI 5.1.5, `<type>`, `<template-args>`.

use std::ops::Range;

/// How deep types may be nested.
const MAX_DEPTH: usize = 64;

/// The name with the pack in the last place of its parameters written out; `None` when it has none
/// there, or is beyond this reader.
pub(super) fn written_out(name: &str) -> Option<String> {
    let (encoding, suffix) = name.split_at(name.find('.').unwrap_or(name.len()));
    let start = encoding.rfind("Dp")?;
    let pattern = &encoding[start + 2..];
    let parameter = pattern.find('T')?;
    let (around, number) = (&pattern[..parameter], parameter_number(&pattern[parameter..])?);
    if !around.bytes().all(|byte| matches!(byte, b'R' | b'O' | b'K')) {
        return None;
    }
    let mut reader = Reader { bytes: encoding.as_bytes(), at: 2, depth: 0, arguments: Vec::new() };
    reader.name()?;
    let pack = reader.arguments.get(number)?.clone();
    let inside = encoding.get(pack)?.strip_prefix('J')?;
    let elements = Reader { bytes: inside.as_bytes(), at: 0, depth: 0, arguments: Vec::new() };
    let types = elements.until_end()?;
    if types.is_empty() {
        return None;
    }
    let types = types.into_iter().map(|range| collapsed(around, &inside[range]));
    Some(encoding[..start].to_owned() + &types.collect::<String>() + suffix)
}

/// The number of a template parameter that is all of the text: 0 of `T_`, 1 of `T0_`.
fn parameter_number(text: &str) -> Option<usize> {
    let digits = text.strip_prefix('T')?.strip_suffix('_')?;
    match digits {
        "" => Some(0),
        _ => usize::from_str_radix(digits, 36).ok()?.checked_add(1),
    }
}

/// References to references are one: `&` and anything are `&`.
fn collapsed(around: &str, inner: &str) -> String {
    match (around.as_bytes().first(), inner.as_bytes().first()) {
        (Some(b'R' | b'O'), Some(b'R')) | (Some(b'O'), Some(b'O')) => inner.to_owned(),
        (Some(b'R'), Some(b'O')) => format!("R{}", &inner[1..]),
        _ => format!("{around}{inner}"),
    }
}

/// Goes through a mangled name without understanding more of it than where its parts end.
struct Reader<'n> {
    bytes: &'n [u8],
    at: usize,
    depth: usize,
    /// The places of the last template arguments outside of all others.
    arguments: Vec<Range<usize>>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let is_it = self.peek() == Some(byte);
        self.at += usize::from(is_it);
        is_it
    }

    fn eat_all(&mut self, of: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&of) {
            self.at += 1;
        }
    }

    /// The name of the function, whose own template arguments are the last ones.
    fn name(&mut self) -> Option<()> {
        match self.peek()? {
            b'N' => self.nested(),
            b'S' if self.bytes.get(self.at + 1) == Some(&b't') => {
                self.at += 2;
                self.part()?;
                self.maybe_arguments()
            }
            _ => {
                self.part()?;
                self.maybe_arguments()
            }
        }
    }

    /// `N`, qualifiers, parts, `E`.
    fn nested(&mut self) -> Option<()> {
        self.at += 1;
        self.eat_all(|byte| matches!(byte, b'r' | b'V' | b'K' | b'R' | b'O'));
        while !self.eat(b'E') {
            match self.peek()? {
                b'I' => self.maybe_arguments()?,
                b'S' => self.substitution()?,
                b'T' => self.reference()?,
                _ => self.part()?,
            }
        }
        Some(())
    }

    /// A name without scope: of the source, of a constructor or destructor, or an operator.
    fn part(&mut self) -> Option<()> {
        match (self.peek()?, *self.bytes.get(self.at + 1)?) {
            (b'0'..=b'9', _) => self.source_name()?,
            (b'C', b'1'..=b'5') | (b'D', b'0'..=b'5') => self.at += 2,
            // Conversions have a type, literals a name: neither is common enough.
            (b'c', b'v') | (b'l', b'i') => return None,
            (b'a'..=b'z', b'a'..=b'z' | b'A'..=b'Z') => self.at += 2,
            _ => return None,
        }
        while self.eat(b'B') {
            self.source_name()?;
        }
        Some(())
    }

    fn source_name(&mut self) -> Option<()> {
        let digits = self.at;
        self.eat_all(|byte| byte.is_ascii_digit());
        let len = std::str::from_utf8(self.bytes.get(digits..self.at)?).ok()?;
        self.at = self.at.checked_add(len.parse().ok()?)?;
        (self.at <= self.bytes.len()).then_some(())
    }

    /// `S_`, `S1_`, `Sa`, or `St` and a name.
    fn substitution(&mut self) -> Option<()> {
        self.at += 1;
        match self.peek()? {
            b't' => {
                self.at += 1;
                self.part()
            }
            b'a' | b'b' | b's' | b'i' | b'o' | b'd' => {
                self.at += 1;
                Some(())
            }
            _ => self.number(),
        }
    }

    /// `T_` or `T1_`.
    fn reference(&mut self) -> Option<()> {
        self.at += 1;
        self.number()
    }

    fn number(&mut self) -> Option<()> {
        self.eat_all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
        self.eat(b'_').then_some(())
    }

    fn maybe_arguments(&mut self) -> Option<()> {
        if !self.eat(b'I') {
            return Some(());
        }
        let ranges = self.list()?;
        if self.depth == 0 {
            self.arguments = ranges;
        }
        Some(())
    }

    /// Types and other arguments up to `E`.
    fn list(&mut self) -> Option<Vec<Range<usize>>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let mut ranges = Vec::new();
        while !self.eat(b'E') {
            let start = self.at;
            self.argument()?;
            ranges.push(start..self.at);
        }
        self.depth -= 1;
        Some(ranges)
    }

    /// The same of a pack whose `J` was taken off.
    fn until_end(mut self) -> Option<Vec<Range<usize>>> {
        let ranges = self.list()?;
        (self.at == self.bytes.len()).then_some(ranges)
    }

    fn argument(&mut self) -> Option<()> {
        match self.peek()? {
            b'J' => {
                self.at += 1;
                self.list().map(drop)
            }
            // A literal: its type and its digits. Addresses of functions are beyond this.
            b'L' if self.bytes.get(self.at + 1) != Some(&b'_') => {
                self.at += 1;
                self.kind()?;
                self.eat_all(|byte| byte == b'n' || byte.is_ascii_digit());
                self.eat(b'E').then_some(())
            }
            _ => self.kind(),
        }
    }

    /// A type.
    fn kind(&mut self) -> Option<()> {
        self.eat_all(|byte| matches!(byte, b'r' | b'V' | b'K' | b'P' | b'R' | b'O'));
        match self.peek()? {
            b'N' => {
                self.depth += 1;
                let nested = self.nested();
                self.depth -= 1;
                nested
            }
            b'S' => {
                self.substitution()?;
                self.inner_arguments()
            }
            b'T' => {
                self.reference()?;
                self.inner_arguments()
            }
            b'0'..=b'9' => {
                self.part()?;
                self.inner_arguments()
            }
            b'A' => {
                self.at += 1;
                self.eat_all(|byte| byte.is_ascii_digit());
                self.eat(b'_').then_some(())?;
                self.element()
            }
            // A member of a class: the class, and what it is.
            b'M' => {
                self.at += 1;
                self.element()?;
                self.element()
            }
            b'F' => {
                self.at += 1;
                self.list().map(drop)
            }
            b'D' if matches!(self.bytes.get(self.at + 1)?, b'n' | b'a' | b'i' | b's' | b'u') => {
                self.at += 2;
                Some(())
            }
            b'u' | b'q' | b'k' | b'p' => None,
            b'a'..=b'z' => {
                self.at += 1;
                Some(())
            }
            _ => None,
        }
    }

    /// A type that is a part of another one.
    fn element(&mut self) -> Option<()> {
        self.depth += 1;
        let read = if self.depth > MAX_DEPTH { None } else { self.kind() };
        self.depth -= 1;
        read
    }

    fn inner_arguments(&mut self) -> Option<()> {
        self.depth += 1;
        let read = self.maybe_arguments();
        self.depth -= 1;
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expect: Option<&str>) {
        assert_eq!(written_out(name).as_deref(), expect, "{name}");
    }

    #[test]
    fn packs_in_the_last_place_are_written_out() {
        check("_Z4hashIJibEEvDpRKT_", Some("_Z4hashIJibEEvRKiRKb"));
        check("_ZN1a1fIiJPKcS1_EEEvT_DpT0_", Some("_ZN1a1fIiJPKcS1_EEEvT_PKcS1_"));
        // References to references, and a suffix of the compiler.
        check("_Z1fIJRiOlmRKcEEvDpOT_.isra.0", Some("_Z1fIJRiOlmRKcEEvRiOlOmRKc.isra.0"));
        check("_Z1fIJRiOlEEvDpRT_", Some("_Z1fIJRiOlEEvRiRl"));
        check("_Z1fIJRA4_KcPA2_A3_iEEvDpOT_", Some("_Z1fIJRA4_KcPA2_A3_iEEvRA4_KcOPA2_A3_i"));
        // The arguments of the class are not those of the function.
        check(
            "_ZNSt6vectorIiSaIiEE12emplace_backIJibEEERiDpOT_",
            Some("_ZNSt6vectorIiSaIiEE12emplace_backIJibEEERiOiOb"),
        );
        check(
            "_ZSt4tie2IJSt5tupleIJRKlEES_IFvicELi3EEEEvDpOT_",
            Some("_ZSt4tie2IJSt5tupleIJRKlEES_IFvicELi3EEEEvOSt5tupleIJRKlEEOS_IFvicELi3EE"),
        );
    }

    #[test]
    fn other_names_stay_as_they_are() {
        let names = [
            "_Z1fi",
            "_Z1fIJEEvDpOT_",
            "_Z1fIiEvDpOT_",
            "_Z1fIJiEEvDpOT0_",
            "_Z1fIJiEEvDpOT_i",
            "_Z1fIJiEEvDpSt4listIT_E",
            "_Z1fIJXadL_Z1gvEEEEvDpOT_",
            "_ZZ1gvE1fIJiEEvDpOT_",
            "Dp",
            "_ZDpT_",
            "",
        ];
        for name in names {
            check(name, None);
        }
    }

    #[test]
    fn names_cut_anywhere_are_left_alone_or_written_out() {
        let name = "_ZNSt6vectorIiSaIiEE12emplace_backIJRKSt4pairIibEFvPcENS_1bEEEERiDpOT_";
        for len in 0..name.len() {
            assert_eq!(written_out(&name[..len]), None, "{len}");
        }
        let deep = format!("_Z1fIJ{}i{}EEvDpOT_", "St1aI".repeat(200), "E".repeat(200));
        assert_eq!(written_out(&deep), None);
    }
}
