//! The default palette: the kind of code chooses a family of colours, a hash of the name a shade.
//!
//! Families lie apart in hue and lightness so that they can be told from each other without seeing
//! red from green, and dark text is readable on every shade.

use flame_profile::{CallTree, FrameKind, Label};

use super::{Fill, Rgb, Variation};

/// Shades of a family.
pub(super) const SHADES: usize = 32;

/// A kind of code with its place in the legend and its range of colours.
#[derive(Debug)]
struct Family {
    name: &'static str,
    from: Rgb,
    to: Rgb,
}

/// The families in the order of the legend.
const FAMILIES: [Family; 9] = [
    Family { name: "user", from: Rgb(0xf9, 0xd4, 0x7c), to: Rgb(0xf0, 0x93, 0x70) },
    Family { name: "library", from: Rgb(0xf5, 0xd3, 0xe3), to: Rgb(0xe3, 0x9d, 0xc0) },
    Family { name: "inlined", from: Rgb(0xae, 0xe4, 0xdf), to: Rgb(0x78, 0xc5, 0xcc) },
    Family { name: "kernel", from: Rgb(0xcb, 0xc5, 0xf3), to: Rgb(0x9d, 0xa5, 0xe0) },
    Family { name: "JIT", from: Rgb(0xc9, 0xe0, 0x97), to: Rgb(0x8f, 0xc4, 0x83) },
    Family { name: "thread, mark", from: Rgb(0xe1, 0xe4, 0xe8), to: Rgb(0xcd, 0xd3, 0xda) },
    Family { name: "script", from: Rgb(0xf6, 0xf0, 0x8f), to: Rgb(0xe3, 0xcf, 0x4a) },
    Family { name: "waker", from: Rgb(0xdd, 0xd0, 0xb4), to: Rgb(0xbf, 0xa9, 0x7c) },
    Family {
        name: "waiting, in the kernel",
        from: Rgb(0x8f, 0xc1, 0xf2),
        to: Rgb(0x6a, 0xa8, 0xe8),
    },
];

impl Family {
    /// The shade in the middle, for the legend.
    fn middle(&self) -> Rgb {
        self.shade(SHADES / 2)
    }

    fn shade(&self, shade: usize) -> Rgb {
        let mix = |from: u8, to: u8| {
            let (from, to, last) = (usize::from(from), usize::from(to), SHADES - 1);
            u8::try_from((from * (last - shade) + to * shade + last / 2) / last).unwrap_or(u8::MAX)
        };
        let (from, to) = (self.from, self.to);
        Rgb(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
    }
}

/// The position of a kind's family in [`FAMILIES`].
fn family_of(kind: FrameKind) -> usize {
    match kind {
        FrameKind::User => 0,
        FrameKind::Library => 1,
        FrameKind::Inlined => 2,
        FrameKind::Kernel => 3,
        FrameKind::Jit => 4,
        FrameKind::Mark => 5,
        FrameKind::Script => 6,
        FrameKind::Waker => 7,
        FrameKind::Waiting => 8,
    }
}

/// A label's colour.
pub(super) fn colour_of(label: &Label, variation: Variation) -> Rgb {
    FAMILIES[family_of(label.kind)].shade(variation.shade(&label.name, SHADES))
}

/// The families that a tree holds.
pub(super) fn legend(tree: &CallTree) -> Vec<(Fill, String)> {
    let mut families: Vec<usize> =
        tree.labels().iter().map(|label| family_of(label.kind)).collect();
    families.sort_unstable();
    families.dedup();
    let entry =
        |family: usize| (Fill::Flat(FAMILIES[family].middle()), FAMILIES[family].name.to_owned());
    families.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::super::rgb::{INK, MIN_CONTRAST, contrast};
    use super::*;

    #[test]
    fn text_is_readable_on_every_colour() {
        for family in &FAMILIES {
            for shade in 0..SHADES {
                let colour = family.shade(shade);
                let contrast = contrast(colour, INK);
                assert!(contrast >= MIN_CONTRAST, "{} {colour}: {contrast:.2}", family.name);
            }
        }
    }

    #[test]
    fn no_colour_belongs_to_two_families() {
        for (index, family) in FAMILIES.iter().enumerate() {
            for other in &FAMILIES[index + 1..] {
                let clash =
                    (0..SHADES).any(|a| (0..SHADES).any(|b| family.shade(a) == other.shade(b)));
                assert!(!clash, "{} and {}", family.name, other.name);
            }
        }
    }

    #[test]
    fn every_shade_of_a_family_is_used() {
        for variation in [Variation::Name, Variation::Random(7)] {
            let mut seen = [false; SHADES];
            for number in 0..500 {
                seen[variation.shade(&format!("function_{number}"), SHADES)] = true;
            }
            assert_eq!(seen, [true; SHADES]);
        }
    }
}
