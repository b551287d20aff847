//! A colour for each name: the kind of code chooses a family, a hash of the name a shade of it.
//!
//! A name has the same colour in every graph, for ever. Families lie apart in hue and lightness so
//! that they can be told from each other without seeing red from green, and dark text is readable
//! on every shade.

use flame_profile::{FrameKind, Label};

/// An sRGB colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rgb(pub(crate) u8, pub(crate) u8, pub(crate) u8);

impl std::fmt::Display for Rgb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

/// Text on boxes, in light and in dark pages alike.
pub(crate) const LABEL_COLOUR: Rgb = Rgb(0x1f, 0x23, 0x28);

/// Shades of a family.
pub(crate) const SHADES: usize = 32;

/// A kind of code with its place in the legend and its range of colours.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    from: Rgb,
    to: Rgb,
}

/// The families in the order of the legend.
pub(crate) const FAMILIES: [Family; 5] = [
    Family { name: "user", from: Rgb(0xf9, 0xd4, 0x7c), to: Rgb(0xf0, 0x93, 0x70) },
    Family { name: "inlined", from: Rgb(0xae, 0xe4, 0xdf), to: Rgb(0x78, 0xc5, 0xcc) },
    Family { name: "kernel", from: Rgb(0xcb, 0xc5, 0xf3), to: Rgb(0x9d, 0xa5, 0xe0) },
    Family { name: "JIT", from: Rgb(0xc9, 0xe0, 0x97), to: Rgb(0x8f, 0xc4, 0x83) },
    Family { name: "thread, mark", from: Rgb(0xe1, 0xe4, 0xe8), to: Rgb(0xcd, 0xd3, 0xda) },
];

impl Family {
    /// The shade in the middle, for the legend.
    pub(crate) fn middle(&self) -> Rgb {
        self.shade(SHADES / 2)
    }

    fn shade(&self, shade: usize) -> Rgb {
        let mix = |from: u8, to: u8| {
            let (from, to, last) = (usize::from(from), usize::from(to), SHADES - 1);
            ((from * (last - shade) + to * shade + last / 2) / last) as u8
        };
        let (from, to) = (self.from, self.to);
        Rgb(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
    }
}

/// The position of a kind's family in [`FAMILIES`].
pub(crate) fn family_of(kind: FrameKind) -> usize {
    match kind {
        FrameKind::User => 0,
        FrameKind::Inlined => 1,
        FrameKind::Kernel => 2,
        FrameKind::Jit => 3,
        FrameKind::Mark => 4,
    }
}

/// All colours, [`SHADES`] for each family.
pub(crate) fn palette() -> Vec<Rgb> {
    FAMILIES.iter().flat_map(|family| (0..SHADES).map(|shade| family.shade(shade))).collect()
}

/// The position of a label's colour in [`palette`].
pub(crate) fn colour_of(label: &Label) -> usize {
    family_of(label.kind) * SHADES + hash(&label.name) as usize % SHADES
}

/// Whether a label is a mark such as `[truncated stack]`, which stands for what is not known; it
/// is drawn with a dashed edge so that it is not taken for code.
pub(crate) fn is_gap(label: &Label) -> bool {
    label.kind == FrameKind::Mark && label.name.starts_with('[')
}

/// FNV-1a, its upper bits folded into the lower ones that choose the shade.
fn hash(name: &str) -> u32 {
    let hash = name
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance as WCAG 2.1 defines it.
    fn luminance(colour: Rgb) -> f64 {
        let linear = |channel: u8| {
            let c = f64::from(channel) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(colour.0) + 0.7152 * linear(colour.1) + 0.0722 * linear(colour.2)
    }

    fn contrast(a: Rgb, b: Rgb) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn text_is_readable_on_every_colour() {
        let colours = palette();
        assert_eq!(colours.len(), FAMILIES.len() * SHADES);
        for colour in colours {
            let contrast = contrast(colour, LABEL_COLOUR);
            assert!(contrast >= 4.5, "{colour}: {contrast:.2}");
        }
        // `.hit rect` of viewer/style.css.
        assert!(contrast(Rgb(0xf0, 0x5f, 0xd8), LABEL_COLOUR) >= 4.5);
    }

    #[test]
    fn a_name_keeps_its_colour_for_ever() {
        let colour = |name: &str, kind| {
            palette()[colour_of(&Label { name: name.to_owned(), kind })].to_string()
        };
        let found = [
            colour("main", FrameKind::User),
            colour("main", FrameKind::Inlined),
            colour("do_syscall_64", FrameKind::Kernel),
            colour("Foo.bar", FrameKind::Jit),
            colour("all", FrameKind::Mark),
        ];
        assert_eq!(found, ["#f6c179", "#9edbd9", "#a7ace4", "#a4ce8a", "#d8dce2"]);
    }

    #[test]
    fn no_colour_belongs_to_two_families() {
        let mut colours: Vec<String> = palette().iter().map(Rgb::to_string).collect();
        let families = |colours: &[String]| colours.len();
        let all = families(&colours);
        colours.sort();
        colours.dedup();
        assert!(all - colours.len() <= FAMILIES.len() * 8, "shades repeat within a family only");
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
        let mut seen = [false; SHADES];
        for number in 0..500 {
            seen[hash(&format!("function_{number}")) as usize % SHADES] = true;
        }
        assert_eq!(seen, [true; SHADES]);
    }
}
