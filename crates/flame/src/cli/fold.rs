//! `flame fold`: its arguments as they are typed.

use std::path::PathBuf;

use clap::Args;

use super::input::InputArgs;
use super::picture::PictureArgs;
use super::record::OutputArgs;

const EXAMPLES: &str = "\
Examples:
  perf script | flame fold > out.folded
  flame fold out.perf -o out.svg              or any other output
  flame fold day1/ day2/ -o week.pb.gz        all files of folders, summed up
  flame fold --list-formats";

/// Turn the output of any profiler into folded stacks, or into what -o names
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FoldArgs {
    /// Profiles or folders of them, which are summed up; - is stdin, as is what is piped in
    #[arg(value_name = "FILE")]
    pub(crate) profiles: Vec<PathBuf>,

    /// Print the formats that are read
    #[arg(long, exclusive = true)]
    pub(crate) list_formats: bool,

    #[command(flatten)]
    pub(crate) input: InputArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) picture: PictureArgs,
}
