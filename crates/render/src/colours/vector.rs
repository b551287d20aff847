//! Where in the range of its colours a name lies: three numbers from 0 to 1.

use flame_profile::Label;

use crate::whole::position;

/// What chooses the shade of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variation {
    /// A hash of the whole name; the same on every machine, for ever.
    #[default]
    Name,
    /// The first characters of the name, so that names which start alike look alike; the same
    /// colours as `flamegraph.pl --hash`.
    Prefix,
    /// Another one each time: the seed is mixed into the hash.
    Random(u64),
}

/// Three numbers in [0, 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Vector(pub(crate) f64, pub(crate) f64, pub(crate) f64);

impl Variation {
    /// The numbers of a label; its annotation is part of the name.
    pub(crate) fn vector(self, label: &Label) -> Vector {
        let name = || label.name.bytes().chain(label.kind.annotation().bytes());
        match self {
            Variation::Name => spread(hash(name())),
            Variation::Random(seed) => spread(hash(seed.to_le_bytes().into_iter().chain(name()))),
            Variation::Prefix => {
                let text = format!("{}{}", label.name, label.kind.annotation());
                let backwards: String = text.chars().rev().collect();
                let (first, other) = (prefix_number(&text), prefix_number(&backwards));
                Vector(first, other, other)
            }
        }
    }

    /// One of `count` shades.
    pub(crate) fn shade(self, name: &str, count: usize) -> usize {
        let seed = match self {
            Variation::Name => None,
            Variation::Random(seed) => Some(seed.to_le_bytes()),
            Variation::Prefix => return position(prefix_number(name) * count as f64) % count,
        };
        // FNV-1a of 32 bits, its upper bits folded into the lower ones that choose the shade.
        let bytes = seed.into_iter().flatten().chain(name.bytes());
        let hash = bytes
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        (hash ^ (hash >> 15)) as usize % count
    }
}

/// FNV-1a of 64 bits.
fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Three numbers from one; each takes other bits of the product.
fn spread(hash: u64) -> Vector {
    let mixed = (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = mixed ^ (mixed >> 32);
    let part = |shift: u32| ((mixed >> shift) & 0xffff) as f64 / 65_536.0;
    Vector(part(0), part(16), part(32))
}

/// The number of a name's first three characters, the first weighing most; what stands before a
/// backtick (a module) is left out.
fn prefix_number(name: &str) -> f64 {
    let module_end = name.char_indices().skip(1).find(|(_, c)| *c == '`');
    let name = module_end.map_or(name, |(at, _)| &name[at + 1..]);
    let (mut sum, mut weight, mut most) = (0.0, 1.0, 1.0);
    for (c, modulus) in name.chars().zip([10_u32, 11, 12]) {
        sum += f64::from(u32::from(c) % modulus) / f64::from(modulus - 1) * weight;
        most += weight;
        weight *= 0.70;
    }
    1.0 - sum / most
}
