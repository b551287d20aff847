//! How profiles are read: the options that every command which reads them has.

use std::path::PathBuf;

use clap::Args;
use flame_formats::InputFormat;

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputArgs {
    /// Format of all inputs [default: recognised by their contents]
    ///
    /// `flame fold --list-formats` prints the names.
    #[arg(long, value_name = "FORMAT", value_parser = input_format)]
    pub(crate) from: Option<&'static InputFormat>,

    /// Fail if a part of an input cannot be read
    #[arg(long)]
    pub(crate) strict: bool,

    /// Look for debug files of perf.data in DIR, too: laid out as /usr/lib/debug, or flat (repeatable)
    #[arg(long = "debug-dir", value_name = "DIR", hide_short_help = true)]
    pub(crate) debug_dirs: Vec<PathBuf>,

    /// Take the files of the machine that recorded perf.data from DIR, a copy of its /
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub(crate) sysroot: Option<PathBuf>,

    /// Leave out functions that the compiler inlined, where perf.data is read
    #[arg(long, hide_short_help = true)]
    pub(crate) no_inline: bool,
}

fn input_format(name: &str) -> Result<&'static InputFormat, String> {
    InputFormat::named(name).ok_or_else(|| "flame fold --list-formats lists them".into())
}
