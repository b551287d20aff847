//! The commands, of which only the one that is asked for is defined whole: the options of all of
//! them take longer to define than a small picture takes to draw.

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Error, FromArgMatches, Subcommand};

use super::{DiffArgs, DoctorArgs, FoldArgs, RecordArgs, RenderArgs, UbootArgs};

/// What flame is asked to do.
#[derive(Debug)]
pub(crate) enum Command {
    Record(Box<RecordArgs>),
    Render(Box<RenderArgs>),
    Fold(Box<FoldArgs>),
    Diff(Box<DiffArgs>),
    Doctor(Box<DoctorArgs>),
    Uboot(Box<UbootArgs>),
}

/// A command's name, what it does, and its options.
type Definition = (&'static str, &'static str, fn(clap::Command) -> clap::Command);

const COMMANDS: [Definition; 6] = [
    ("record", "Sample a process, a program or the whole machine", RecordArgs::augment_args),
    ("render", "Draw a profile that is there already", |it| classic(RenderArgs::augment_args(it))),
    ("fold", "Turn any profiler's output into folded stacks", |it| {
        classic(FoldArgs::augment_args(it))
    }),
    ("diff", "Compare profiles: what grew, what shrank, and which changes are real", |it| {
        classic(DiffArgs::augment_args(it))
    }),
    (
        "doctor",
        "Say what can be recorded here, and which command fixes what cannot",
        DoctorArgs::augment_args,
    ),
    ("uboot", "Turn U-Boot's function traces into pictures and trace.dat", UbootArgs::augment_args),
];

/// Where no process is chosen by its number, `--pid` and `--tid` name roots, as the classic scripts
/// have it.
fn classic(command: clap::Command) -> clap::Command {
    command
        .mut_arg("root_pid", |arg| arg.visible_alias("pid"))
        .mut_arg("root_tid", |arg| arg.visible_alias("tid"))
}

impl Subcommand for Command {
    fn augment_subcommands(flame: clap::Command) -> clap::Command {
        let define = |(name, about, options): Definition| {
            clap::Command::new(name).about(about).defer(options)
        };
        flame.subcommands(COMMANDS.map(define))
    }

    fn augment_subcommands_for_update(flame: clap::Command) -> clap::Command {
        Command::augment_subcommands(flame)
    }

    fn has_subcommand(name: &str) -> bool {
        COMMANDS.iter().any(|(command, ..)| *command == name)
    }
}

impl FromArgMatches for Command {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Command, Error> {
        match matches.subcommand() {
            Some(("record", options)) => Ok(Command::Record(read(options)?)),
            Some(("render", options)) => Ok(Command::Render(read(options)?)),
            Some(("fold", options)) => Ok(Command::Fold(read(options)?)),
            Some(("diff", options)) => Ok(Command::Diff(read(options)?)),
            Some(("doctor", options)) => Ok(Command::Doctor(read(options)?)),
            Some(("uboot", options)) => Ok(Command::Uboot(read(options)?)),
            _ => Err(Error::raw(ErrorKind::MissingSubcommand, "no command is given")),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Command::from_arg_matches(matches)?;
        Ok(())
    }
}

fn read<T: FromArgMatches>(matches: &ArgMatches) -> Result<Box<T>, Error> {
    T::from_arg_matches(matches).map(Box::new)
}
