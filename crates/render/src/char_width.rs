//! How wide text will be, without a font at hand.
//!
//! The widths are those of DejaVu Sans, which was drawn to the metrics of Verdana; between them
//! the two are on most machines. The viewer script is given the same table.

/// A width in thousandths of the font size.
pub(crate) type MilliEm = u32;

/// The printable ASCII characters from the blank on.
pub(crate) const ASCII: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
];

/// Characters from here on are mostly ideographs and symbols as wide as the font is high.
pub(crate) const WIDE_FROM: u32 = 0x1100;
/// The width of those, and of `…`.
pub(crate) const WIDE: u16 = 1000;
/// The width of accented Latin, Greek, Cyrillic and the like.
pub(crate) const OTHER: u16 = 650;

/// In fonts of one width, characters from here on take twice of it.
pub(crate) const DOUBLE_FROM: u32 = 0x2e80;

/// The width of `'`.
const NARROWEST: MilliEm = 275;

/// The widths of characters of one font.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Widths {
    /// The width of every character but those of [`DOUBLE_FROM`]; `None` = the table's.
    pub(crate) uniform: Option<MilliEm>,
}

impl Widths {
    /// The width of one character.
    pub(crate) fn of_char(self, c: char) -> MilliEm {
        match self.uniform {
            Some(width) if u32::from(c) >= DOUBLE_FROM => 2 * width,
            Some(width) => width,
            None => char_width(c),
        }
    }

    /// No text but the empty one is narrower than this.
    pub(crate) fn narrowest(self) -> MilliEm {
        self.uniform.unwrap_or(NARROWEST)
    }

    /// Whether a text is at most `max` wide; looks no further than it has to.
    pub(crate) fn fits(self, text: &str, max: MilliEm) -> bool {
        let mut left = max;
        text.chars().all(|c| match left.checked_sub(self.of_char(c)) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        })
    }

    /// The width of a text.
    pub(crate) fn of_text(self, text: &str) -> MilliEm {
        text.chars().map(|c| self.of_char(c)).fold(0, MilliEm::saturating_add)
    }
}

/// The width of one character of the default fonts.
pub(crate) fn char_width(c: char) -> MilliEm {
    let code = u32::from(c);
    let ascii = code.checked_sub(0x20).and_then(|index| ASCII.get(index as usize));
    MilliEm::from(match ascii {
        Some(width) => *width,
        None if code >= WIDE_FROM => WIDE,
        None => OTHER,
    })
}

/// The width of a text in the default fonts.
pub(crate) fn text_width(text: &str) -> MilliEm {
    Widths::default().of_text(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_narrower_than_the_narrowest() {
        let least = ASCII.iter().copied().chain([WIDE, OTHER]).min();
        assert_eq!(least.map(MilliEm::from), Some(NARROWEST));
    }

    #[test]
    fn a_text_fits_where_it_is_not_wider() {
        for text in ["", "main", "größe 日本…"] {
            let width = text_width(text);
            assert!(Widths::default().fits(text, width));
            assert!(width == 0 || !Widths::default().fits(text, width - 1));
        }
    }

    #[test]
    fn a_text_is_as_wide_as_its_characters() {
        assert_eq!(text_width(""), 0);
        assert_eq!(text_width("Wi~"), 989 + 278 + 838);
        assert_eq!(text_width("ä日…"), 650 + 1000 + 1000);
        assert_eq!(Widths { uniform: Some(600) }.of_text("Wi…日😀"), 3 * 600 + 2 * 1200);
    }
}
