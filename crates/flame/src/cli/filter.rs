//! Which stacks are shown: the options that every command which shows stacks has.

use clap::Args;

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterArgs {
    /// Only stacks with a function that matches (repeatable: any of them)
    #[arg(long, value_name = "REGEX", hide_short_help = true)]
    pub(crate) grep: Vec<String>,

    /// No stacks with a function that matches (repeatable)
    #[arg(long, value_name = "REGEX", hide_short_help = true)]
    pub(crate) exclude: Vec<String>,

    /// Leave functions that match out of all stacks: what they call has their caller (repeatable)
    #[arg(long, value_name = "REGEX", hide_short_help = true)]
    pub(crate) hide: Vec<String>,

    /// Put functions of Java below frames of their packages: com, example, Server.run
    #[arg(long, hide_short_help = true)]
    pub(crate) packages: bool,

    /// Leave out so many frames at the root of each stack
    #[arg(long, value_name = "NUMBER", hide_short_help = true)]
    pub(crate) trim_root: Option<usize>,

    /// No stacks that weigh less than this
    #[arg(long, value_name = "WEIGHT", hide_short_help = true)]
    pub(crate) min_weight: Option<u64>,
}
