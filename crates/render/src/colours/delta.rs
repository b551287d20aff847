//! Colours of a tree that has weights before and after: what grew, what shrank.

use std::str::FromStr;

use flame_profile::CallTree;

use super::{ColourConfig, Colours, Fill, Fills, Rgb};
use crate::whole::channel;

/// The pair of colours for growth and shrinking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeltaColours {
    /// Red grew, blue shrank, as people expect.
    #[default]
    RedBlue,
    /// Vermilion grew, blue shrank and is hatched besides, so that nobody has to see hues.
    Safe,
}

/// Reads `red-blue` or `safe`.
impl FromStr for DeltaColours {
    type Err = String;

    fn from_str(text: &str) -> Result<DeltaColours, String> {
        match text {
            "red-blue" => Ok(DeltaColours::RedBlue),
            "safe" => Ok(DeltaColours::Safe),
            _ => Err("colours of differences are red-blue and safe".to_owned()),
        }
    }
}

/// How many strengths of hatch there are.
const HATCHES: u8 = 6;
/// What did not change.
const SAME: Rgb = Rgb(0xf0, 0xf1, 0xf3);

/// A box's colour says how its self weight changed, against the largest change of all: what its
/// callees did stands in their own boxes.
pub(super) fn colours(tree: &CallTree, config: &ColourConfig, mut fills: Fills) -> Colours {
    let before = tree.before().unwrap_or_default();
    let deltas: Vec<i128> = tree
        .nodes()
        .iter()
        .zip(before)
        .map(|(node, before)| i128::from(node.self_weight.0) - i128::from(before.self_weight.0))
        .map(|delta| if config.negate { -delta } else { delta })
        .collect();
    let most = deltas.iter().map(|delta| delta.unsigned_abs()).max().unwrap_or(0).max(1);
    let scale = Scale { colours: config.delta };
    let fill = |delta: &i128| scale.fill(*delta, most);
    let of_node = deltas.iter().map(|delta| fills.position(fill(delta))).collect();
    let legend = vec![
        (scale.fill(3, 5), (if config.negate { "shrank" } else { "grew" }).to_owned()),
        (Fill::Flat(SAME), "the same".to_owned()),
        (scale.fill(-3, 5), (if config.negate { "grew" } else { "shrank" }).to_owned()),
    ];
    let same = fills.position(Fill::Flat(SAME));
    let of_label = vec![same; tree.labels().len()];
    Colours { fills: fills.fills, of_label, of_node: Some(of_node), same: Some(same), legend }
}

struct Scale {
    colours: DeltaColours,
}

impl Scale {
    /// From a tint, so that the least change can be told from none, to the full colour.
    fn fill(&self, delta: i128, most: u128) -> Fill {
        let share = delta.unsigned_abs() as f64 / most as f64;
        match (self.colours, delta.signum()) {
            (_, 0) => Fill::Flat(SAME),
            (DeltaColours::RedBlue, 1) => {
                Fill::Flat(Rgb(255, 210, 210).mixed(Rgb(255, 0, 0), share))
            }
            (DeltaColours::RedBlue, _) => {
                Fill::Flat(Rgb(210, 210, 255).mixed(Rgb(0, 0, 255), share))
            }
            (DeltaColours::Safe, 1) => {
                Fill::Flat(Rgb(0xfb, 0xdf, 0xc8).mixed(Rgb(0xe6, 0x61, 0x00), share))
            }
            (DeltaColours::Safe, _) => {
                let step = (share * f64::from(HATCHES)).ceil().clamp(1.0, f64::from(HATCHES));
                let number = channel(step) - 1;
                Fill::Hatch(number, hatch_colour(number))
            }
        }
    }
}

/// The colour under a hatch, weakest first.
fn hatch_colour(number: u8) -> Rgb {
    let share = f64::from(number + 1) / f64::from(HATCHES);
    Rgb(0xd3, 0xe4, 0xf1).mixed(Rgb(0x2b, 0x7b, 0xba), share)
}
