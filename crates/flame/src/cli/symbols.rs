//! How addresses get their names: options that every command has which looks them up.

use clap::Args;

#[derive(Debug, Args)]
#[command(next_help_heading = "Symbols")]
pub(crate) struct SymbolArgs {
    /// Put source lines into frames: NAME (FILE:LINE), one box for each line
    #[arg(long)]
    pub(crate) lines: bool,

    /// Leave out functions that the compiler inlined
    #[arg(long)]
    pub(crate) no_inline: bool,
}
