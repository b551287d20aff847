//! sRGB colours: as text, and how readable text on them is.

use std::fmt;
use std::str::FromStr;

use crate::whole::channel;

/// An sRGB colour: red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rgb(pub u8, pub u8, pub u8);

/// Text on boxes, in light and in dark pages alike.
pub(crate) const INK: Rgb = Rgb(0x1f, 0x23, 0x28);

/// The least contrast of text that is easy to read (WCAG 2.1, level AA).
pub(crate) const MIN_CONTRAST: f64 = 4.5;

impl Rgb {
    /// The colour that text needs on this one, where [`INK`] cannot be read well: black or white,
    /// one of which always can.
    pub(crate) fn ink(self) -> Option<&'static str> {
        if contrast(self, INK) >= MIN_CONTRAST {
            None
        } else if contrast(self, Rgb(0, 0, 0)) >= MIN_CONTRAST {
            Some("#000")
        } else {
            Some("#fff")
        }
    }

    /// The colour between this one (0) and another (1).
    pub(crate) fn mixed(self, other: Rgb, share: f64) -> Rgb {
        let mix =
            |a: u8, b: u8| channel((f64::from(a) + (f64::from(b) - f64::from(a)) * share).round());
        Rgb(mix(self.0, other.0), mix(self.1, other.1), mix(self.2, other.2))
    }
}

/// Relative luminance as WCAG 2.1 defines it, from 0 to 1.
pub(crate) fn luminance(colour: Rgb) -> f64 {
    let linear = |channel: u8| {
        let c = f64::from(channel) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(colour.0) + 0.7152 * linear(colour.1) + 0.0722 * linear(colour.2)
}

/// Contrast as WCAG 2.1 defines it, from 1 to 21.
pub(crate) fn contrast(a: Rgb, b: Rgb) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

impl fmt::Display for Rgb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

/// Reads `#rgb`, `#rrggbb` and `rgb(r,g,b)`. The error says so.
impl FromStr for Rgb {
    type Err = String;

    fn from_str(text: &str) -> Result<Rgb, String> {
        let colour = match text.trim().strip_prefix('#') {
            Some(digits) => from_digits(digits),
            None => from_numbers(text.trim()),
        };
        colour.ok_or_else(|| "a colour is #rgb, #rrggbb or rgb(r,g,b)".to_owned())
    }
}

fn from_digits(digits: &str) -> Option<Rgb> {
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let part = |at: usize, length: usize| u8::from_str_radix(digits.get(at..at + length)?, 16).ok();
    match digits.len() {
        3 => Some(Rgb(part(0, 1)? * 17, part(1, 1)? * 17, part(2, 1)? * 17)),
        6 => Some(Rgb(part(0, 2)?, part(2, 2)?, part(4, 2)?)),
        _ => None,
    }
}

fn from_numbers(text: &str) -> Option<Rgb> {
    let inner = text.strip_prefix("rgb(")?.strip_suffix(')')?;
    let mut parts = inner.split(',').map(|part| part.trim().parse::<u8>().ok());
    let colour = Rgb(parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(colour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read_as_people_write_them() {
        let cases = [
            ("#fff", Some(Rgb(255, 255, 255))),
            ("#1F2328", Some(Rgb(0x1f, 0x23, 0x28))),
            ("rgb(230, 0,230)", Some(Rgb(230, 0, 230))),
            ("#ff", None),
            ("#ggg", None),
            ("rgb(1,2)", None),
            ("rgb(1,2,3,4)", None),
            ("rgb(256,0,0)", None),
            ("red", None),
            ("#é1", None),
        ];
        for (text, expect) in cases {
            assert_eq!(text.parse().ok(), expect, "{text}");
        }
    }

    #[test]
    fn text_is_readable_on_any_colour() {
        for step in 0..16 * 16 * 16_u32 {
            let part = |shift: u32| ((step >> shift & 15) * 17) as u8;
            let colour = Rgb(part(8), part(4), part(0));
            let ink = colour.ink().map_or(INK, |text| text.parse().unwrap());
            assert!(contrast(colour, ink) >= MIN_CONTRAST, "{colour} {ink}");
        }
    }
}
