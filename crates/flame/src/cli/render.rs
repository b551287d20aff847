//! `flame render`: its arguments as they are typed.

use std::path::PathBuf;

use clap::Args;

use super::input::InputArgs;
use super::outputs::OutputArgs;
use super::picture::PictureArgs;

const EXAMPLES: &str = "\
Examples:
  flame render out.folded -o out.svg
  flame render cpu.pb.gz --title 'before the fix' --colors java --open
  perf script | flame render > out.svg
  flame render web1.folded web2.folded -o both.svg     several are merged
  flame render out.folded -o out.txt                   a report to read
  flame render --index builds/                         a page over a folder of pictures";

/// Draw a profile of any tool: folded text, pprof, perf script and others
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RenderArgs {
    /// Profiles, or folders of profiles, which are merged; - is stdin
    #[arg(value_name = "PROFILE")]
    pub(crate) profiles: Vec<PathBuf>,

    /// Add source lines to frames: NAME (FILE:LINE), one box for each line
    #[arg(long, hide_short_help = true)]
    pub(crate) lines: bool,

    /// Write DIR/index.html, a page of the pictures in DIR: thumbnails, titles and totals
    ///
    /// The newest picture comes first. The page has no script and loads nothing but the pictures.
    #[arg(long, value_name = "DIR", conflicts_with = "profiles", hide_short_help = true)]
    pub(crate) index: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) input: InputArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) picture: PictureArgs,
}
