//! How profiles are read: the options that every command which reads them has.

use clap::Args;
use flame_formats::InputFormat;

#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputArgs {
    /// Format of all inputs [default: recognised by what is in them]
    ///
    /// `flame fold --list-formats` prints the names.
    #[arg(long, value_name = "FORMAT", value_parser = input_format)]
    pub(crate) from: Option<&'static InputFormat>,

    /// Make it an error that a part of an input cannot be read
    #[arg(long)]
    pub(crate) strict: bool,
}

fn input_format(name: &str) -> Result<&'static InputFormat, String> {
    InputFormat::named(name)
        .ok_or_else(|| "flame fold --list-formats prints those there are".into())
}
