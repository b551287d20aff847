//! A colour for each box: by the kind of code, by one of the palettes that people know, or by the
//! difference of two profiles.
//!
//! A name has the same colour in every graph of a palette, for ever. Text on boxes is readable
//! whatever their colour: [`Rgb::ink`] chooses between dark and white.

mod background;
mod classic;
mod delta;
mod family;
mod palette;
mod rgb;
mod vector;

use std::collections::BTreeMap;

use flame_profile::{CallTree, FrameKind, Label, narrow};
use rustc_hash::FxHashMap;

use crate::whole::channel;

pub use background::Background;
pub use classic::Hue;
pub use delta::DeltaColours;
pub use palette::{Language, Palette};
pub use rgb::Rgb;
pub(crate) use rgb::{INK, MIN_CONTRAST, contrast, luminance};
pub use vector::Variation;

/// How boxes are coloured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColourConfig {
    /// Which colours.
    pub palette: Palette,
    /// What chooses a shade within the palette.
    pub variation: Variation,
    /// Colours that are given already, by name as in folded text, with annotation.
    pub known: BTreeMap<String, Rgb>,
    /// The wider a box the redder, whatever its name.
    pub by_width: bool,
    /// Colours of a tree that has weights before and after.
    pub delta: DeltaColours,
    /// Swaps the colours of growth and shrinking.
    pub negate: bool,
    /// Behind the boxes; `None` = white, or dark on a dark page.
    pub background: Option<Background>,
}

/// What a box is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fill {
    /// One colour.
    Flat(Rgb),
    /// The hatch of that number, over that colour.
    Hatch(u8, Rgb),
    /// A colour with an edge: what is new.
    New(Rgb, Rgb),
    /// The other hatch of that number, over a colour and with an edge: what vanished.
    Gone(u8, Rgb, Rgb),
}

impl Fill {
    /// The colour alone.
    pub(crate) fn colour(self) -> Rgb {
        match self {
            Fill::Flat(colour) | Fill::Hatch(_, colour) => colour,
            Fill::New(colour, _) | Fill::Gone(_, colour, _) => colour,
        }
    }

    /// The colour of the edge, where there is one.
    pub(crate) fn edge(self) -> Option<Rgb> {
        match self {
            Fill::Flat(_) | Fill::Hatch(..) => None,
            Fill::New(_, edge) | Fill::Gone(_, _, edge) => Some(edge),
        }
    }

    /// The text colour of boxes filled so, where it is not the picture's own.
    pub(crate) fn ink(self) -> Option<&'static str> {
        self.colour().ink()
    }
}

impl std::fmt::Display for Fill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fill::Flat(colour) | Fill::New(colour, _) => colour.fmt(f),
            Fill::Gone(number, ..) => write!(f, "url(#gone{number})"),
            Fill::Hatch(number, _) => write!(f, "url(#less{number})"),
        }
    }
}

/// The colours of one tree.
#[derive(Debug)]
pub(crate) struct Colours {
    /// Each fill once; the others refer to it.
    pub(crate) fills: Vec<Fill>,
    /// For each label of the tree, the position of its fill; `u32::MAX` where no node has it.
    pub(crate) of_label: Vec<u32>,
    /// For each node, where nodes of one name differ in colour; `None` = `of_label` says it all.
    pub(crate) of_node: Option<Vec<u32>>,
    /// Where nodes differ in colour by how they changed: the fill of what did not.
    pub(crate) same: Option<u32>,
    /// What the colours mean.
    pub(crate) legend: Vec<(Fill, String)>,
}

impl Colours {
    /// Chooses the colours.
    pub(crate) fn of(tree: &CallTree, config: &ColourConfig) -> Colours {
        let mut fills = Fills::default();
        if tree.before().is_some() {
            return delta::colours(tree, config, fills);
        }
        // In the order of the nodes, which does not depend on that of the input.
        let mut of_label = vec![u32::MAX; tree.labels().len()];
        for node in tree.nodes() {
            let position = &mut of_label[node.label.index()];
            if *position == u32::MAX {
                *position = fills.position(fill_of(tree.label(node), config));
            }
        }
        let of_node = match config.palette {
            _ if config.by_width => Some(by_width(tree, &mut fills)),
            Palette::Chain => Some(chain(tree, config, &mut fills)),
            _ => None,
        };
        let legend = match config.palette {
            _ if config.by_width => Vec::new(),
            Palette::Kinds => family::legend(tree),
            palette => legend_of_hues(tree, palette),
        };
        Colours { fills: fills.fills, of_label, of_node, same: None, legend }
    }

    /// The position of the fill of a node.
    pub(crate) fn fill(&self, tree: &CallTree, node: usize) -> u32 {
        match &self.of_node {
            Some(of_node) => of_node[node],
            None => self.of_label[tree.nodes()[node].label.index()],
        }
    }
}

/// Fills, each once.
#[derive(Debug, Default)]
pub(crate) struct Fills {
    fills: Vec<Fill>,
    positions: FxHashMap<Fill, u32>,
}

impl Fills {
    pub(crate) fn position(&mut self, fill: Fill) -> u32 {
        let next = narrow(self.fills.len());
        let position = *self.positions.entry(fill).or_insert(next);
        if position == next {
            self.fills.push(fill);
        }
        position
    }
}

/// The colours of all names of a tree, as a file of consistent colours holds them: by the name with
/// its annotation. Names that had a colour already keep it.
pub fn name_colours(tree: &CallTree, config: &ColourConfig) -> BTreeMap<String, Rgb> {
    let mut colours = config.known.clone();
    for node in tree.nodes().get(1..).unwrap_or_default() {
        let label = tree.label(node);
        let name = annotated(label);
        if !is_separator(&label.name) && !colours.contains_key(&name) {
            colours.insert(name, colour_of(label, config));
        }
    }
    colours
}

fn fill_of(label: &Label, config: &ColourConfig) -> Fill {
    Fill::Flat(colour_of(label, config))
}

fn colour_of(label: &Label, config: &ColourConfig) -> Rgb {
    match label.name.as_str() {
        "--" => return Rgb(160, 160, 160),
        "-" => return Rgb(200, 200, 200),
        _ => {}
    }
    let known = (!config.known.is_empty()).then(|| config.known.get(&annotated(label))).flatten();
    if let Some(colour) = known {
        return *colour;
    }
    match config.palette.hue_of(label) {
        None => family::colour_of(label, config.variation),
        Some(hue) => hue.colour(config.variation.vector(label)),
    }
}

/// The name as it stands in folded text.
fn annotated(label: &Label) -> String {
    format!("{}{}", label.name, label.kind.annotation())
}

/// Whether a name parts stacks that were put together, as off-CPU and waker stacks are.
fn is_separator(name: &str) -> bool {
    matches!(name, "-" | "--")
}

/// What the hues of a palette mean, as far as the tree holds them.
fn legend_of_hues(tree: &CallTree, palette: Palette) -> Vec<(Fill, String)> {
    let wakes = palette == Palette::Chain && tree.labels().iter().any(|label| label.name == "--");
    let holds = |hue: Hue| {
        (wakes && hue == Hue::Aqua)
            || tree.labels().iter().any(|label| palette.hue_of(label) == Some(hue))
    };
    let meanings = palette.meanings().iter().filter(|(hue, _)| holds(*hue));
    meanings.map(|(hue, word)| (Fill::Flat(hue.middle()), (*word).to_owned())).collect()
}

/// Redness by the square root of the share of the whole, so that small shares still differ.
fn by_width(tree: &CallTree, fills: &mut Fills) -> Vec<u32> {
    let colour = |share: f64| {
        let others = channel((225.0 * (1.0 - share.sqrt())).round());
        Fill::Flat(Rgb(255, others, others))
    };
    let total = tree.total();
    tree.nodes().iter().map(|node| fills.position(colour(node.total.share_of(total)))).collect()
}

/// In a chain graph whatever stands above the first `--` belongs to a waker.
fn chain(tree: &CallTree, config: &ColourConfig, fills: &mut Fills) -> Vec<u32> {
    let mut wakes = vec![false; tree.nodes().len()];
    let mut colours = Vec::with_capacity(wakes.len());
    for (index, node) in tree.nodes().iter().enumerate() {
        let parent = node.parent.index();
        wakes[index] =
            wakes[parent] || (index > 0 && tree.label(&tree.nodes()[parent]).name == "--");
        let label = tree.label(node);
        let fill = if wakes[index] && label.kind != FrameKind::Waker {
            fill_of(&Label { name: label.name.clone(), kind: FrameKind::Waker }, config)
        } else {
            fill_of(label, config)
        };
        colours.push(fills.position(fill));
    }
    colours
}

/// Whether a label is a mark such as `[truncated stack]`, which stands for what is not known; it
/// is drawn with a dashed edge so that it is not taken for code.
pub(crate) fn is_gap(label: &Label) -> bool {
    label.kind == FrameKind::Mark && label.name.starts_with('[')
}

#[cfg(test)]
mod tests;
