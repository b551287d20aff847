//! Turns linkage names into the names that people wrote: Rust (legacy and v0) and C++.
//!
//! Names come from files that nobody vouches for, so both length and depth are bounded: a name
//! beyond the bounds stays as it is, never half demangled.
//!
//! Sources: Itanium C++ ABI 5.1, Rust RFC 2603.

mod cpp;
mod packs;

use std::borrow::Cow;
use std::fmt::{self, Write};

pub(crate) use flame_image::MAX_NAME_LEN;

/// The demangled name, or the name itself where it is not mangled, malformed or too long.
///
/// Rust names lose their hash. C++ names look as `c++filt` prints them, with parameters, and with
/// compiler suffixes as `[clone .cold]`; other names keep their suffixes.
///
/// ```
/// use flame_symbolize::demangle;
///
/// assert_eq!(demangle("_ZN4core3fmt5write17h01e1d65ba6a1f4ceE"), "core::fmt::write");
/// assert_eq!(demangle("_ZN12_GLOBAL__N_15parseEPKc"), "(anonymous namespace)::parse(char const*)");
/// assert_eq!(demangle("do_work.constprop.0"), "do_work.constprop.0");
/// ```
pub fn demangle(name: &str) -> Cow<'_, str> {
    if name.len() > MAX_NAME_LEN {
        return Cow::Borrowed(name);
    }
    let demangled = if name.starts_with("_R") || is_legacy_rust(name) {
        demangle_rust(name)
    } else if name.starts_with("_Z") {
        cpp::demangle_cpp(name)
    } else {
        None
    };
    demangled.map_or(Cow::Borrowed(name), Cow::Owned)
}

/// A linkage name without what the compiler has put behind it: `.part.0`, `.cold`, `.llvm.123`.
pub(crate) fn without_suffix(name: &[u8]) -> &[u8] {
    let path = std::str::from_utf8(name).ok().and_then(legacy_rust_len).unwrap_or(0);
    let suffix = name[path..].iter().position(|byte| *byte == b'.');
    suffix.map_or(name, |at| &name[..path + at])
}

fn is_legacy_rust(name: &str) -> bool {
    legacy_rust_len(name).is_some()
}

/// The length of a name without suffixes that is one of Rust's that borrow the form of C++: its last
/// part is `17h` and 16 hexadecimal digits. Without looking for it, C++ names in anonymous
/// namespaces would pass.
fn legacy_rust_len(name: &str) -> Option<usize> {
    const HASH: usize = 16;
    let rest = name.strip_prefix("_ZN")?.as_bytes();
    // Paths may have dots of their own (`..` stands for `::` within angle brackets), suffixes too.
    name["_ZN".len()..].match_indices("17h").find_map(|(start, prefix)| {
        let hash = start + prefix.len();
        let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let (digits, after) = rest[hash..].split_at_checked(HASH)?;
        let ends = matches!(after, [b'E'] | [b'E', b'.', ..]) && digits.iter().all(is_hex);
        ends.then_some("_ZN".len() + hash + HASH + "E".len())
    })
}

fn demangle_rust(name: &str) -> Option<String> {
    let symbol = rustc_demangle::try_demangle(name).ok()?;
    let mut out = Bounded::default();
    // The alternate form leaves hashes out.
    write!(out, "{symbol:#}").ok()?;
    Some(out.text)
}

/// A string that refuses to grow beyond [`MAX_NAME_LEN`]: substitutions can double a name with
/// every few bytes of input.
#[derive(Default)]
struct Bounded {
    text: String,
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.text.len() + text.len() > MAX_NAME_LEN {
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
