//! Messages to the user: what happened, why, and what to do.

pub(crate) mod rights;
pub(crate) mod sampler;

use std::borrow::Cow;
use std::io::{self, Write};

pub(crate) use flame_doctor::{quoted, reason};
use flame_render::clean_name;

use crate::terminal::{Color, Paint};

/// The longest text of a message, in characters: what a target or a server says of itself may be of
/// any length.
const MAX_TEXT: usize = 1000;

/// The longest command that is proposed. One that is cut would do something else.
const MAX_COMMAND: usize = 20_000;

/// flame could not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What happened: lower case, no full stop.
    what: String,
    /// Why, where that is known.
    why: Option<String>,
    /// What to do, most fitting first.
    tries: Vec<String>,
    /// The exit status.
    pub(crate) code: u8,
}

impl Failure {
    /// A failure of flame: exit status 1.
    pub(crate) fn new(what: impl Into<String>) -> Failure {
        Failure { what: printable(&what.into()), why: None, tries: Vec::new(), code: 1 }
    }

    /// Wrong usage: exit status 2.
    pub(crate) fn usage(what: impl Into<String>) -> Failure {
        Failure { code: 2, ..Failure::new(what) }
    }

    /// Adds the reason.
    pub(crate) fn why(mut self, why: impl Into<String>) -> Failure {
        self.why = Some(printable(&why.into()));
        self
    }

    /// Adds what is worth saying where no reason is known.
    pub(crate) fn or_why(mut self, why: impl Into<String>) -> Failure {
        self.why.get_or_insert_with(|| printable(&why.into()));
        self
    }

    /// Adds something that the user can do.
    pub(crate) fn or_try(mut self, command: impl Into<String>) -> Failure {
        self.tries.extend(printable_command(&command.into()));
        self
    }

    /// What happened.
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// Prints it to stderr.
    pub(crate) fn print(&self, color: Color) {
        let paint = Paint(color.on_stderr());
        let mut text = format!("{} {}\n", paint.red("error:"), self.what);
        if let Some(why) = &self.why {
            text += &format!("  {} {why}\n", paint.bold("why:"));
        }
        for command in &self.tries {
            text += &format!("  {} {command}\n", paint.bold("try:"));
        }
        // There is nowhere to complain that stderr is gone.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

/// Prints something that the user should know although flame goes on.
pub(crate) fn warn(what: &str, color: Color) {
    let paint = Paint(color.on_stderr());
    let _ = writeln!(io::stderr(), "{} {}", paint.yellow("warning:"), printable(what));
}

/// The same with lines below it that say more.
pub(crate) fn warn_with(what: &str, details: &[String], color: Color) {
    let paint = Paint(color.on_stderr());
    let mut text = format!("{} {}\n", paint.yellow("warning:"), printable(what));
    for detail in details {
        text += &format!("  {}\n", printable(detail));
    }
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Text as it may reach a terminal, whoever chose it: what steers terminals is shown, and what is
/// long has its middle left out. All failures, warnings and notes are made of it.
pub(crate) fn printable(text: &str) -> String {
    cut(clean_name(text), MAX_TEXT)
}

/// The same for a command to try, which is of use as a whole only.
pub(crate) fn printable_command(text: &str) -> Option<String> {
    (text.len() <= MAX_COMMAND).then(|| clean_name(text).into_owned())
}

/// Leaves out the middle of what has more than `max` characters.
pub(crate) fn cut(text: Cow<'_, str>, max: usize) -> String {
    let len = if text.len() <= max { 0 } else { text.chars().count() };
    if len <= max {
        return text.into_owned();
    }
    let tail = max / 3;
    let head = text.chars().take(max - tail - 1);
    head.chain(['…']).chain(text.chars().skip(len - tail)).collect()
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

/// The command line as it was typed, with `sudo` in front: what to try without permission.
pub(crate) fn this_command_with(prefix: &str) -> String {
    let mut words = vec![prefix.to_owned(), "flame".to_owned()];
    words.extend(own_words().map(|word| quoted(&word)));
    words.join(" ")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_steer_no_terminal_and_have_an_end() {
        let steering = "\x1b]0;pwned\x07\r\n\u{9b}31m\u{202e}";
        let failure = Failure::usage(steering).why(steering).or_try(steering);
        let texts = [Some(failure.what), failure.why, failure.tries.into_iter().next()];
        for text in texts.into_iter().flatten() {
            assert!(text.starts_with("␛]0;pwned␇␍␊") && !text.contains('\u{202e}'), "{text:?}");
            assert!(!text.contains(char::is_control), "{text:?}");
        }
        let long = format!("{}{}", "ä".repeat(2000), "z".repeat(2000));
        let text = Failure::new(&*long).or_why(&*long);
        let expect = format!("{}…{}", "ä".repeat(666), "z".repeat(333));
        assert_eq!([text.what, text.why.unwrap()], [expect.clone(), expect]);
        assert_eq!(printable(&"ä".repeat(1000)), "ä".repeat(1000));
        assert_eq!(printable_command(&"x".repeat(20_001)), None);
    }
}
