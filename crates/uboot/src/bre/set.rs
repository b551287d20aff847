//! Sets of bytes, and those that have names in brackets.

/// A set of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set([u64; 4]);

impl Set {
    pub(super) fn of(test: impl Fn(u8) -> bool) -> Set {
        let mut set = Set::default();
        (0..=u8::MAX).filter(|byte| test(*byte)).for_each(|byte| set.insert(byte));
        set
    }

    pub(super) fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte / 64)] |= 1 << (byte % 64);
    }

    pub(super) fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte / 64)] & (1 << (byte % 64)) != 0
    }

    pub(super) fn unite(&mut self, other: Set) {
        self.0.iter_mut().zip(other.0).for_each(|(bits, others)| *bits |= others);
    }

    pub(super) fn inverted(self) -> Set {
        Set(self.0.map(|bits| !bits))
    }
}

/// Whether a byte is part of a word.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The blanks of C.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 9..=13)
}

/// The set of a name such as `alpha`.
pub(super) fn class(name: &[u8]) -> Option<Set> {
    let test: fn(u8) -> bool = match name {
        b"alpha" => |byte| byte.is_ascii_alphabetic(),
        b"digit" => |byte| byte.is_ascii_digit(),
        b"alnum" => |byte| byte.is_ascii_alphanumeric(),
        b"upper" => |byte| byte.is_ascii_uppercase(),
        b"lower" => |byte| byte.is_ascii_lowercase(),
        b"space" => is_space,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"punct" => |byte| byte.is_ascii_punctuation(),
        b"print" => |byte| matches!(byte, 32..=126),
        b"graph" => |byte| byte.is_ascii_graphic(),
        b"cntrl" => |byte| byte.is_ascii_control(),
        b"xdigit" => |byte| byte.is_ascii_hexdigit(),
        _ => return None,
    };
    Some(Set::of(test))
}
