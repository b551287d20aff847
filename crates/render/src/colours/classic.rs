//! The ranges of colours that flame graphs have had since 2011.

use super::Rgb;
use super::vector::Vector;
use crate::whole::channel;

/// A range of colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Hue {
    Hot,
    Mem,
    Io,
    Red,
    Green,
    Blue,
    Aqua,
    Yellow,
    Purple,
    Orange,
    Grey,
}

impl Hue {
    /// The colour in the middle of the range, for the legend.
    pub(super) fn middle(self) -> Rgb {
        self.colour(Vector(0.5, 0.5, 0.5))
    }

    /// The colour at a point of the range.
    pub(super) fn colour(self, v: Vector) -> Rgb {
        // The sums stay below 256: no range reaches further, and v below 1.
        let at = |from: u8, span: u8, v: f64| from + channel(f64::from(span) * v);
        let one = v.0;
        match self {
            Hue::Hot => Rgb(at(205, 50, v.2), at(0, 230, v.0), at(0, 55, v.1)),
            Hue::Mem => Rgb(0, at(190, 50, v.1), at(0, 210, v.0)),
            Hue::Io => Rgb(at(80, 60, one), at(80, 60, one), at(190, 55, v.1)),
            Hue::Red => Rgb(at(200, 55, one), at(50, 80, one), at(50, 80, one)),
            Hue::Green => Rgb(at(50, 60, one), at(200, 55, one), at(50, 60, one)),
            Hue::Blue => Rgb(at(80, 60, one), at(80, 60, one), at(205, 50, one)),
            Hue::Aqua => Rgb(at(50, 60, one), at(165, 55, one), at(165, 55, one)),
            Hue::Yellow => Rgb(at(175, 55, one), at(175, 55, one), at(50, 20, one)),
            Hue::Purple => Rgb(at(190, 65, one), at(80, 60, one), at(190, 65, one)),
            Hue::Orange => Rgb(at(190, 65, one), at(90, 65, one), 0),
            Hue::Grey => Rgb(at(170, 60, one), at(170, 60, one), at(170, 60, one)),
        }
    }
}
