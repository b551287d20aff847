//! `flame fold`: the output of any profiler as folded stacks, or as what is asked for.

mod disk_usage;

use std::io::Write;
use std::process::ExitCode;

use flame_formats::ReadOptions;

use crate::cli::{Cli, FoldArgs};
use crate::message::Failure;
use crate::output::{Defaults, Format};
use crate::render::{Job, show};
use crate::{inputs, io_failure};

/// Runs the command.
pub(crate) fn run(args: &FoldArgs, cli: &Cli) -> Result<ExitCode, Failure> {
    if args.list_formats {
        let list = inputs::list_of_formats();
        let printed = std::io::stdout().write_all(list.as_bytes());
        return printed
            .map(|()| ExitCode::SUCCESS)
            .map_err(|error| io_failure("write to stdout", &error));
    }
    let on_stdout = Format::Folded;
    let defaults = Defaults {
        path: "-",
        keeps_foreign: false,
        merges_pools: false,
        on_stdout,
        is_recording: false,
    };
    let (profiles, made) = match args.files {
        true => (args.profiles.clone(), Some(disk_usage::of_folders(&args.profiles)?)),
        false => (inputs::files(&args.profiles, "perf script | flame fold")?, None),
    };
    let input = inputs::options(&args.input, &profiles);
    let job = Job {
        profiles,
        made,
        input: ReadOptions { samples: args.samples.options(), ..input },
        output: &args.output,
        picture: &args.picture,
        lines: false,
        annotations: Some(args.samples.annotations()),
        defaults,
    };
    show(job, cli)
}
