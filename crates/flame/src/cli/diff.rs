//! `flame diff`: its arguments as they are typed.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Arg, Args};
use flame_render::{ColourBy, DiffView};

use super::input::InputArgs;
use super::outputs::OutputArgs;
use super::picture::PictureArgs;
use flame_diff::Gate;

const EXAMPLES: &str = "\
Examples:
  flame diff before.folded after.folded               a table of what changed
  flame diff before.pb.gz after.pb.gz -o diff.svg
  flame record --repeat 3 -o old.pb.gz -- ./old       three runs a side tell what is real
  flame diff --before 'old.*.pb.gz' --after 'new.*.pb.gz' --markdown
  flame diff main.folded pr.folded --fail-if 'total>5%'
  flame diff cpu.pb.gz --values instructions,cycles -o cpi.svg";

/// The options of pictures and reports that make no sense in a comparison, by their ids.
pub(crate) const REFUSED: [&str; 14] = [
    "flamechart",
    "heatmap",
    "no_sort",
    "total",
    "factor",
    "cp",
    "colors",
    "hash",
    "random",
    "colordiffusion",
    "negate",
    "min_share",
    "flat",
    "around",
];

/// Compare profiles: what grew, what shrank, and which changes are real
///
/// Reads all that flame render reads. docs/diff.md explains the statistics.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_args = without_refused)]
pub(crate) struct DiffArgs {
    /// The profile before, and the one after; - is stdin
    ///
    /// One file is enough if it has both: folded text with two counts a line, or any with --values.
    #[arg(value_name = "BEFORE AFTER", conflicts_with_all = ["before", "after"])]
    pub(crate) profiles: Vec<PathBuf>,

    /// Profiles of several runs before (repeatable; *, ? and [...] are understood)
    #[arg(long, value_name = "PROFILE", num_args = 1.., requires = "after")]
    pub(crate) before: Vec<PathBuf>,

    /// Profiles of several runs after
    #[arg(long, value_name = "PROFILE", num_args = 1.., requires = "before")]
    pub(crate) after: Vec<PathBuf>,

    /// Compare two values of one profile, or A of BEFORE with B of AFTER
    #[arg(long, value_name = "A,B", value_parser = value_pair, conflicts_with_all = ["value"])]
    pub(crate) values: Option<ValuePair>,

    #[command(flatten)]
    pub(crate) scaling: ScalingArgs,

    /// Treat names as equal that differ only in an address: 0x7f12 and 0x7f99
    #[arg(long)]
    pub(crate) strip_hex: bool,

    /// Treat names as equal that differ only in what a new build changes
    ///
    /// Hashes, numbers of closures, template arguments and the parameters that follow from them,
    /// suffixes such as .cold, .part.N, .constprop.N and .llvm.N, versions in paths, where functions
    /// of scripts start, and addresses.
    #[arg(long)]
    pub(crate) match_names: bool,

    /// Samples behind each unit of weight [default: detected]
    #[arg(long, value_name = "NUMBER", value_parser = above_zero, hide_short_help = true)]
    pub(crate) samples_per_unit: Option<f64>,

    /// Chance that anything is called real that is not, in percent [default: 5]
    #[arg(long, value_name = "PERCENT", value_parser = alpha, hide_short_help = true)]
    pub(crate) alpha: Option<f64>,

    /// Exit with status 3 if a change exceeds the bound and is real (repeatable)
    ///
    /// self or total for any function, or FUNCTION:self or FUNCTION:total for one; then > with a growth,
    /// or < with a decrease, in percentage points (with --no-normalize in percent of before): 'total>5%',
    /// 'parse_json:self>+2%', 'total<-5%'. The FUNCTION all is the whole profile.
    #[arg(long, value_name = "BOUND", value_parser = Gate::parse)]
    pub(crate) fail_if: Vec<Gate>,

    /// Accept a --fail-if on a function that neither profile has
    ///
    /// Otherwise it is an error (exit status 2): such a gate would guard nothing.
    #[arg(long, requires = "fail_if", hide_short_help = true)]
    pub(crate) allow_missing: bool,

    /// Also show changes that could be noise
    #[arg(long)]
    pub(crate) all: bool,

    /// Lines of the table [default: 40]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) limit: Option<usize>,

    /// Write JSON to stdout
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,

    /// Write a comment for a pull request to stdout
    #[arg(long, conflicts_with_all = ["format", "json"])]
    pub(crate) markdown: bool,

    /// Widths of the picture: union, after, before, delta or both [default: union]
    ///
    /// union: those of after, with what vanished as wide as it was. delta: only the changes. both:
    /// before, after and delta side by side. The viewer can switch to the other widths.
    #[arg(long, value_name = "VIEW", value_parser = DiffView::from_str, help_heading = "Output")]
    pub(crate) view: Option<DiffView>,

    /// Colour the picture by the change of self or of total [default: self]
    #[arg(long, value_name = "CHANGE", value_parser = ColourBy::from_str, help_heading = "Output")]
    pub(crate) color_by: Option<ColourBy>,

    #[command(flatten)]
    pub(crate) input: InputArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) picture: PictureArgs,
}

/// Options of pictures of one profile, which comparisons refuse with a reason, not in the help.
fn without_refused(option: Arg) -> Arg {
    let is_refused = REFUSED.iter().any(|refused| option.get_id() == refused);
    if is_refused { option.hide(true) } else { option }
}

/// What the sides are made equal in; their totals by default.
#[derive(Debug, Args)]
pub(crate) struct ScalingArgs {
    /// Compare weights as they are, not shares of the total
    #[arg(long, group = "scaling")]
    pub(crate) no_normalize: bool,

    /// Compare weights per second of recording
    #[arg(long, group = "scaling")]
    pub(crate) by_time: bool,

    /// Compare weights relative to that of FUNCTION, which stands for the same work
    #[arg(long, value_name = "FUNCTION", group = "scaling")]
    pub(crate) per: Option<String>,
}

/// The names of two values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValuePair(pub(crate) String, pub(crate) String);

fn value_pair(text: &str) -> Result<ValuePair, String> {
    match text.split_once(',') {
        Some((before, after)) if !before.is_empty() && !after.is_empty() => {
            Ok(ValuePair(before.to_owned(), after.to_owned()))
        }
        _ => {
            Err("two value names are separated by a comma, such as instructions,cycles".to_owned())
        }
    }
}

fn above_zero(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "a number above zero, such as 1 or 0.001".to_owned())
}

fn alpha(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').trim_end().parse::<f64>().ok();
    let percent = percent.filter(|percent| *percent > 0.0 && *percent <= 50.0);
    let fraction = percent.map(|percent| percent / 100.0);
    fraction.ok_or_else(|| "a chance is above 0 and at most 50 percent, such as 5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_two_names() {
        let pair = ValuePair("instructions".to_owned(), "cycles".to_owned());
        assert_eq!(value_pair("instructions,cycles"), Ok(pair));
        for text in ["", "cycles", ",cycles", "cycles,"] {
            assert!(value_pair(text).is_err(), "{text}");
        }
    }

    #[test]
    fn chances_are_percent() {
        assert_eq!(alpha("5"), Ok(0.05));
        assert_eq!(alpha("1%"), Ok(0.01));
        for text in ["0", "-1", "51", "x", "nan"] {
            assert!(alpha(text).is_err(), "{text}");
        }
        assert_eq!(above_zero("0.5"), Ok(0.5));
        for text in ["0", "-1", "inf", "nan", "x"] {
            assert!(above_zero(text).is_err(), "{text}");
        }
    }
}
