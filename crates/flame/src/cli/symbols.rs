//! How addresses get their names: options that every command has which looks them up.

use std::path::PathBuf;

use clap::Args;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Symbols")]
pub(crate) struct SymbolArgs {
    /// Add source lines to frames: NAME (FILE:LINE), one box for each line
    #[arg(long)]
    pub(crate) lines: bool,

    /// Leave out functions that the compiler inlined
    #[arg(long)]
    pub(crate) no_inline: bool,

    /// Look for debug files in DIR, too: laid out as /usr/lib/debug, or flat (repeatable)
    #[arg(long = "debug-dir", value_name = "DIR", hide_short_help = true)]
    pub(crate) debug_dirs: Vec<PathBuf>,

    /// List for each image which names are missing, and what would provide them
    #[arg(long, hide_short_help = true)]
    pub(crate) explain: bool,
}
