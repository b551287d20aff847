//! Messages on the terminal, and the command line that they propose again.

use std::io::{self, Write};
use std::process::ExitCode;

use flame_message::printable;
pub(crate) use flame_message::{Failure, Note, quoted, reason};

use crate::cli::Cli;
use crate::terminal::{Color, Paint};

/// Prints a failure.
pub(crate) fn print(failure: &Failure, color: Color) {
    say(&failure.text(Paint(color.on_stderr()), &own_command()));
}

/// Prints all failures but the first, which becomes that of the command.
pub(crate) fn first_of(
    failures: impl IntoIterator<Item = Failure>,
    color: Color,
) -> Result<(), Failure> {
    let mut failures = failures.into_iter();
    let first = failures.next();
    failures.for_each(|failure| print(&failure, color));
    first.map_or(Ok(()), Err)
}

/// Prints what the user should know although flame goes on.
pub(crate) fn note<'n>(notes: impl IntoIterator<Item = &'n Note>, cli: &Cli) {
    if !cli.quiet {
        let paint = Paint(cli.color.on_stderr());
        notes.into_iter().for_each(|note| say(&note.lines(paint)));
    }
}

/// Prints something that the user should know although flame goes on.
pub(crate) fn warn(what: &str, color: Color) {
    warn_with(what, &[], color);
}

/// The same with lines below it that say more.
pub(crate) fn warn_with(what: &str, details: &[String], color: Color) {
    let paint = Paint(color.on_stderr());
    let mut text = format!("{} {}\n", paint.yellow("warning:"), printable(what));
    for detail in details {
        text += &format!("  {}\n", printable(detail));
    }
    say(&text);
}

/// Prints text to stderr.
pub(crate) fn say(text: &str) {
    // There is nowhere to complain that stderr is gone.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Prints a line to stderr.
pub(crate) fn say_line(line: &str) {
    say(&format!("{line}\n"));
}

/// Prints the result of a command to stdout. A reader that closes its pipe has seen enough.
pub(crate) fn print_result(text: &str) -> Result<ExitCode, Failure> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(crate::io_failure("write to stdout", &error))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// The words behind flame's own name; what is not text in them is replaced.
fn own_words() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned())
}

/// The command line as it was typed.
pub(crate) fn own_command() -> String {
    let words = own_words().map(|word| quoted(&word));
    std::iter::once("flame".to_owned()).chain(words).collect::<Vec<String>>().join(" ")
}

/// The command line as it was typed, with an option behind its subcommand.
pub(crate) fn this_command(subcommand: &str, option: &str) -> String {
    let mut words = vec!["flame".to_owned()];
    let mut missing = true;
    for word in own_words() {
        let here = missing && word == subcommand;
        words.push(quoted(&word));
        if here {
            words.push(option.to_owned());
            missing = false;
        }
    }
    words.join(" ")
}
