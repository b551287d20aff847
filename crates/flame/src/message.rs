//! Messages to the user: what happened, why, and what to do.

pub(crate) mod rights;
pub(crate) mod sampler;

use std::io::{self, Write};

use crate::terminal::{Color, Paint};

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
        Failure { what: what.into(), why: None, tries: Vec::new(), code: 1 }
    }

    /// Wrong usage: exit status 2.
    pub(crate) fn usage(what: impl Into<String>) -> Failure {
        Failure { code: 2, ..Failure::new(what) }
    }

    /// Adds the reason.
    pub(crate) fn why(mut self, why: impl Into<String>) -> Failure {
        self.why = Some(why.into());
        self
    }

    /// Adds what is worth saying where no reason is known.
    pub(crate) fn or_why(mut self, why: impl Into<String>) -> Failure {
        self.why.get_or_insert_with(|| why.into());
        self
    }

    /// Adds something that the user can do.
    pub(crate) fn or_try(mut self, command: impl Into<String>) -> Failure {
        self.tries.push(command.into());
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
    let _ = writeln!(io::stderr(), "{} {what}", paint.yellow("warning:"));
}

/// The system's reason in lower case and without its number: `permission denied`.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// The words behind flame's own name; what is no text in them is replaced.
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

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./,:=+@%^".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_lower_case_and_without_number() {
        assert_eq!(reason(&io::Error::from_raw_os_error(13)), "permission denied");
        assert_eq!(reason(&io::Error::from_raw_os_error(28)), "no space left on device");
    }

    #[test]
    fn words_are_quoted_for_a_shell_where_they_must_be() {
        assert_eq!(quoted("out.svg"), "out.svg");
        assert_eq!(quoted("it's here"), r"'it'\''s here'");
        assert_eq!(quoted(""), "''");
    }
}
