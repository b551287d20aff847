//! Two profiles as one picture: a [`DiffTree`](flame_diff::DiffTree) into widths, colours and words.
//!
//! Widths are those of one side, of both, or of the changes; see [`DiffView`]. Nothing that one of
//! the sides has is left out: paths that are gone have the width that they had, beside the
//! siblings that they had. What could be noise is grey. The script of the picture does the same by
//! the same steps (`viewer/sides.js`, `viewer/change.js`), and a browser test compares the two.

mod looks;
mod sides;
mod words;

pub(crate) use looks::{STEPS, colours, look};
pub(crate) use sides::{Pane, Sides, level};
pub(crate) use words::{heading, notes, ratio};

/// Which widths a picture of two profiles has. The reader can turn to the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiffView {
    /// Those of after; paths that vanished have those of before. The default, since it is the only
    /// graph that shows everything.
    #[default]
    Union,
    /// Those of after alone.
    After,
    /// Those of before alone, in the colours of what became of it. This is the reversed graph of
    /// the classic tools with `--negate`.
    Before,
    /// How much each self weight changed, in either direction: what did not change has no width.
    Delta,
    /// Before, after and the change beside each other, or below each other in a narrow picture.
    /// Pointing, zoom and search act on all three.
    Both,
}

impl DiffView {
    /// The graphs that it consists of.
    pub(crate) fn panes(self) -> &'static [DiffView] {
        match self {
            DiffView::Union => &[DiffView::Union],
            DiffView::After => &[DiffView::After],
            DiffView::Before => &[DiffView::Before],
            DiffView::Delta => &[DiffView::Delta],
            DiffView::Both => &[DiffView::Before, DiffView::After, DiffView::Delta],
        }
    }

    /// The name as options have it.
    pub fn name(self) -> &'static str {
        match self {
            DiffView::Union => "union",
            DiffView::After => "after",
            DiffView::Before => "before",
            DiffView::Delta => "delta",
            DiffView::Both => "both",
        }
    }
}

/// Reads the name of a view.
impl std::str::FromStr for DiffView {
    type Err = String;

    fn from_str(text: &str) -> Result<DiffView, String> {
        let views =
            [DiffView::Union, DiffView::After, DiffView::Before, DiffView::Delta, DiffView::Both];
        let found = views.into_iter().find(|view| view.name() == text);
        found.ok_or_else(|| "views are union, after, before, delta and both".to_owned())
    }
}

/// Which change gives a box its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColourBy {
    /// That of its self weight: what its callees did stands in their own boxes.
    #[default]
    SelfWeight,
    /// That of its total, so that the callers of a change can be seen.
    Total,
}

impl ColourBy {
    /// The name as options and the picture have it.
    pub fn name(self) -> &'static str {
        match self {
            ColourBy::SelfWeight => "self",
            ColourBy::Total => "total",
        }
    }
}

/// Reads `self` or `total`.
impl std::str::FromStr for ColourBy {
    type Err = String;

    fn from_str(text: &str) -> Result<ColourBy, String> {
        match text {
            "self" => Ok(ColourBy::SelfWeight),
            "total" => Ok(ColourBy::Total),
            _ => Err("colours are by self or by total".to_owned()),
        }
    }
}

/// What a picture of two profiles shows at first. The palette is
/// [`ColourConfig::delta`](crate::ColourConfig::delta), as in other differential graphs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiffPicture {
    /// Which widths; one graph of both sides by default.
    pub view: DiffView,
    /// Which change gives the colours; that of self weight by default.
    pub colour_by: ColourBy,
}

#[cfg(test)]
mod tests;
