//! What stands behind the boxes.

use std::str::FromStr;

use super::Rgb;

/// The colours behind the boxes, from top to bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Background {
    /// At the top.
    pub top: Rgb,
    /// At the bottom.
    pub bottom: Rgb,
}

/// The gradients that have a name.
const NAMED: [(&str, Rgb, Rgb); 4] = [
    ("yellow", Rgb(0xee, 0xee, 0xee), Rgb(0xee, 0xee, 0xb0)),
    ("blue", Rgb(0xee, 0xee, 0xee), Rgb(0xe0, 0xe0, 0xff)),
    ("green", Rgb(0xee, 0xf2, 0xee), Rgb(0xe0, 0xff, 0xe0)),
    ("grey", Rgb(0xf8, 0xf8, 0xf8), Rgb(0xe8, 0xe8, 0xe8)),
];

/// Reads the name of a gradient, or a colour. The error lists what there is.
impl FromStr for Background {
    type Err = String;

    fn from_str(text: &str) -> Result<Background, String> {
        let text = if text == "gray" { "grey" } else { text };
        if let Some((_, top, bottom)) = NAMED.iter().find(|(name, ..)| *name == text) {
            return Ok(Background { top: *top, bottom: *bottom });
        }
        let colour: Result<Rgb, String> = text.parse();
        let colour = colour
            .map_err(|_| "backgrounds are yellow, blue, green, grey or #rrggbb".to_owned())?;
        Ok(Background { top: colour, bottom: colour })
    }
}
