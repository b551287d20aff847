//! Colours of changes: what grew, what shrank, what is new, what vanished, what could be noise.
//!
//! The palette has one order, in which the script finds the place of a box by itself
//! (`viewer/sides.js`), since hiding a part of the stacks changes what the rest weighs.

use flame_diff::{DiffNode, Presence, Side};
use flame_message::clean_name;

use super::sides::{Level, NOISE};
use super::{ColourBy, Sides};
use crate::colours::{Colours, DeltaColours, Fill, Rgb};
use crate::whole::position;

/// How many strengths a change can have.
pub(crate) const STEPS: usize = 6;

/// What did not change.
const SAME: Rgb = Rgb(0xf0, 0xf1, 0xf3);
/// What changed no more than chance alone makes it: no hue, which would look like change.
const NOISE_GREY: Rgb = Rgb(0xde, 0xe0, 0xe4);
const NOISE_EDGE: Rgb = Rgb(0xae, 0xb4, 0xbc);
/// Under the hatch of what vanished, weakest first and strongest; dark text is readable on both.
const GONE: [Rgb; 2] = [Rgb(0xdf, 0xea, 0xf6), Rgb(0x93, 0xbb, 0xe2)];
const GONE_EDGE: Rgb = Rgb(0x21, 0x66, 0xac);

/// The colours of one direction: weakest, strongest.
struct Ramp {
    weak: Rgb,
    strong: Rgb,
}

impl Ramp {
    fn at(&self, step: usize) -> Rgb {
        self.weak.mixed(self.strong, step as f64 / (STEPS - 1) as f64)
    }
}

/// Growth, the edge of what is new, and shrinking.
fn ramps(colours: DeltaColours) -> (Ramp, Rgb, Ramp) {
    let blue = Ramp { weak: Rgb(0xb4, 0xd0, 0xee), strong: Rgb(0x21, 0x66, 0xac) };
    match colours {
        DeltaColours::RedBlue => {
            let (weak, strong) = (Rgb(0xf9, 0xba, 0xab), Rgb(0xd7, 0x30, 0x27));
            (Ramp { weak, strong }, Rgb(0x8f, 0x10, 0x1a), blue)
        }
        DeltaColours::Safe => {
            let (weak, strong) = (Rgb(0xfb, 0xc9, 0x9f), Rgb(0xe6, 0x61, 0x00));
            (Ramp { weak, strong }, Rgb(0x8a, 0x38, 0x00), blue)
        }
    }
}

/// The fills in the order that [`look`] counts in, and the legend.
pub(crate) fn colours(sides: &Sides<'_>, palette: DeltaColours) -> Colours {
    let (grew, new_edge, shrank) = ramps(palette);
    let steps = || 0..STEPS;
    let number = |step: usize| u8::try_from(step).unwrap_or(u8::MAX);
    let shrunk = |step: usize| match palette {
        DeltaColours::RedBlue => Fill::Flat(shrank.at(step)),
        DeltaColours::Safe => Fill::Hatch(number(step), shrank.at(step)),
    };
    let gone = |step: usize| {
        let colour = GONE[0].mixed(GONE[1], step as f64 / STEPS as f64);
        Fill::Gone(number(step), colour, GONE_EDGE)
    };
    let mut fills = vec![Fill::Flat(SAME)];
    fills.extend(steps().map(|step| Fill::Flat(grew.at(step))));
    fills.extend(steps().map(shrunk));
    fills.push(Fill::Flat(NOISE_GREY));
    fills.push(Fill::New(SAME, new_edge));
    fills.extend(steps().map(|step| Fill::New(grew.at(step), new_edge)));
    fills.push(Fill::New(NOISE_GREY, NOISE_EDGE));
    fills.extend((0..=STEPS).map(gone));
    fills.push(Fill::Gone(number(STEPS + 1), SAME, NOISE_EDGE));
    let [more, less, new, vanished] = words(sides);
    let share = |weight| super::words::part(weight, sides.whole);
    let legend = vec![
        (Fill::Flat(grew.at(0)), format!("{more}, a little")),
        (Fill::Flat(grew.at(STEPS - 1)), "most".to_owned()),
        (shrunk(0), format!("{less}, a little")),
        (shrunk(STEPS - 1), "most".to_owned()),
        (Fill::Flat(NOISE_GREY), "could be noise".to_owned()),
        (Fill::Flat(SAME), "the same".to_owned()),
        (Fill::New(grew.at(1), new_edge), format!("{new}: {}", share(sides.added))),
        (gone(STEPS / 2), format!("{vanished}: {}", share(sides.vanished))),
    ];
    Colours { fills, of_label: Vec::new(), of_node: None, same: None, legend }
}

/// What is said of growth, shrinking, what is after's alone and what is before's alone. Two values of
/// one recording have no before and after.
fn words(sides: &Sides<'_>) -> [String; 4] {
    if sides.scale_before.is_none() {
        return ["grew", "shrank", "new", "vanished"].map(str::to_owned);
    }
    let name = |side: &Side| clean_name(&side.value_type.name).into_owned();
    let (before, after) = (name(sides.tree.before()), name(sides.tree.after()));
    [
        format!("more {after}"),
        format!("more {before}"),
        format!("only {after}"),
        format!("only {before}"),
    ]
}

/// The place of a node's fill in the palette.
pub(crate) fn look(sides: &Sides<'_>, node: &DiffNode) -> usize {
    let by = sides.picture.colour_by;
    let (change, mut level) = sides.change_by(node, by);
    let base = match node.presence() {
        Presence::Both => 0,
        Presence::New => 2 * STEPS + 2,
        Presence::Vanished => 3 * STEPS + 4,
    };
    let one_side = base > 0;
    if one_side && change == 0.0 {
        level = sides.change_by(node, ColourBy::Total).1;
    }
    if change == 0.0 {
        return if one_side && is_noise(level) { base + STEPS + 1 } else { base };
    }
    if is_noise(level) {
        return base + if one_side { STEPS + 1 } else { 2 * STEPS + 1 };
    }
    let share = (change.abs() / sides.most[usize::from(by == ColourBy::Total)]).sqrt();
    let step = position((share * STEPS as f64).ceil()).clamp(1, STEPS);
    base + step + if one_side || change > 0.0 { 0 } else { STEPS }
}

fn is_noise(level: Level) -> bool {
    level == NOISE
}
