//! What is written, and how.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::By;
use crate::output::Format;

/// Outputs, several of one profile.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Write FILE (repeatable): .svg .svgz .folded .txt .pb.gz .json .csv .md; - is stdout
    #[arg(short, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,

    /// Format of stdout, and of files whose ending does not say it
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,

    /// Overwrite a flame.svg that flame did not write
    #[arg(long, hide_short_help = true)]
    pub(crate) force: bool,

    /// Value that gives boxes their width: samples, or the event's own (cpu for clocks)
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) value: Option<String>,

    /// What the outermost boxes stand for [default: threads, those of a pool together]
    ///
    /// By default threads of a process whose names differ only by a number (pool-1-thread-1,
    /// pool-1-thread-2) are one box, and a process that has set its own title (postgres: checkpointer)
    /// is called by that.
    #[arg(long, value_name = "WHAT", hide_short_help = true)]
    pub(crate) by: Option<By>,

    /// Name threads PROCESS/THREAD at the root
    #[arg(long, hide_short_help = true)]
    pub(crate) threads: bool,

    /// Put the process id into the root frame: NAME-PID
    #[arg(long, hide_short_help = true)]
    pub(crate) root_pid: bool,

    /// Put process and thread id into the root frame: NAME-PID/TID
    #[arg(long, hide_short_help = true)]
    pub(crate) root_tid: bool,

    /// Show functions that call themselves, or each other in turn, only once: f;f;f as f, a;b;a;b as a;b
    ///
    /// pprof files keep whole stacks.
    #[arg(long, visible_alias = "recursive", hide_short_help = true)]
    pub(crate) collapse_recursion: bool,

    /// Leave out `_[k]`, `_[i]` and `_[j]` in folded output
    #[arg(long, hide_short_help = true)]
    pub(crate) no_annotate: bool,
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Format] {
        &Format::ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.name()))
    }
}
