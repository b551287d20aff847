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

    /// Remove functions that match from all stacks: their callees move to their callers (repeatable)
    #[arg(long, value_name = "REGEX", hide_short_help = true)]
    pub(crate) hide: Vec<String>,

    /// Put Java functions below frames of their packages: com, example, Server.run
    #[arg(long, hide_short_help = true)]
    pub(crate) packages: bool,

    /// Leave out this many frames at the root of each stack
    #[arg(long, value_name = "NUMBER", hide_short_help = true)]
    pub(crate) trim_root: Option<usize>,

    /// No stacks that weigh less than this
    #[arg(long, value_name = "WEIGHT", hide_short_help = true)]
    pub(crate) min_weight: Option<u64>,
}
