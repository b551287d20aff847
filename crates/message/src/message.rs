//! Messages to people as values: what happened, why, and what to do. Printed by whoever has a terminal.

use std::borrow::Cow;

use crate::name::clean_name;
use crate::paint::Paint;

/// The longest text of a message, in characters: what a target or a server says of itself may be of
/// any length.
const MAX_TEXT: usize = 1000;

/// The longest command that is proposed. One that is cut would do something else.
const MAX_COMMAND: usize = 20_000;

/// What was asked for could not be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What happened: lower case, no full stop.
    what: String,
    /// Why, where that is known.
    why: Option<String>,
    /// What to do, most fitting first.
    tries: Vec<Try>,
    /// The exit status.
    pub code: u8,
}

/// Something that the user can do.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Try {
    /// A command, or words.
    Command(String),
    /// The command that failed, behind this one.
    Again(&'static str),
}

impl Failure {
    /// A failure with exit status 1.
    pub fn new(what: impl Into<String>) -> Failure {
        Failure { what: printable(&what.into()), why: None, tries: Vec::new(), code: 1 }
    }

    /// Wrong usage: exit status 2.
    pub fn usage(what: impl Into<String>) -> Failure {
        Failure { code: 2, ..Failure::new(what) }
    }

    /// Adds the reason.
    pub fn why(mut self, why: impl Into<String>) -> Failure {
        self.why = Some(printable(&why.into()));
        self
    }

    /// Adds what is worth saying where no reason is known.
    pub fn or_why(mut self, why: impl Into<String>) -> Failure {
        self.why.get_or_insert_with(|| printable(&why.into()));
        self
    }

    /// Adds what came of it to what happened.
    pub fn but(mut self, so: &str) -> Failure {
        self.what = format!("{}: {}", self.what, printable(so));
        self
    }

    /// Adds something that the user can do.
    pub fn or_try(mut self, command: impl Into<String>) -> Failure {
        self.tries.extend(printable_command(&command.into()).map(Try::Command));
        self
    }

    /// Adds the command that failed, behind another one such as `sudo`.
    pub fn or_again_with(mut self, prefix: &'static str) -> Failure {
        self.tries.push(Try::Again(prefix));
        self
    }

    /// What happened.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The lines that say it; `own_command` is the one that failed, as it was typed.
    pub fn text(&self, paint: Paint, own_command: &str) -> String {
        let mut text = format!("{} {}\n", paint.red("error:"), self.what);
        if let Some(why) = &self.why {
            text += &format!("  {} {why}\n", paint.bold("why:"));
        }
        let commands = self.tries.iter().filter_map(|it| match it {
            Try::Command(command) => Some(command.clone()),
            Try::Again(prefix) => printable_command(&format!("{prefix} {own_command}")),
        });
        commands.for_each(|command| text += &try_line(paint, &command));
        text
    }
}

/// Something to know of what was done all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    text: String,
    mend: Option<String>,
}

impl Note {
    /// A note with what would mend it.
    pub fn new(text: impl Into<String>, mend: impl Into<String>) -> Note {
        Note::plain(text).or_try(Some(mend.into()))
    }

    /// A note on something that nothing can be done about here.
    pub fn plain(text: impl Into<String>) -> Note {
        Note { text: printable(&text.into()), mend: None }
    }

    /// Adds what would mend it, where something would.
    pub fn or_try(mut self, mend: Option<String>) -> Note {
        self.mend = mend.and_then(|mend| printable_command(&mend));
        self
    }

    /// What happened.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What would mend it.
    pub fn mend(&self) -> Option<&str> {
        self.mend.as_deref()
    }

    /// The lines that say it.
    pub fn lines(&self, paint: Paint) -> String {
        let mend = self.mend.as_ref().map_or_else(String::new, |mend| try_line(paint, mend));
        format!("{} {}\n{mend}", paint.yellow("note:"), self.text)
    }
}

fn try_line(paint: Paint, command: &str) -> String {
    format!("  {} {command}\n", paint.bold("try:"))
}

/// Text as it may reach a terminal, whoever chose it: what steers terminals is shown, and what is
/// long has its middle left out. All failures, warnings and notes are made of it.
pub fn printable(text: &str) -> String {
    cut(clean_name(text), MAX_TEXT)
}

/// The same for a command to try, which is of use as a whole only.
fn printable_command(text: &str) -> Option<String> {
    (text.len() <= MAX_COMMAND).then(|| clean_name(text).into_owned())
}

/// Leaves out the middle of what has more than `max` characters.
fn cut(text: Cow<'_, str>, max: usize) -> String {
    let len = if text.len() <= max { 0 } else { text.chars().count() };
    if len <= max {
        return text.into_owned();
    }
    let tail = max / 3;
    let head = text.chars().take(max - tail - 1);
    head.chain(['…']).chain(text.chars().skip(len - tail)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_steer_no_terminal_and_have_an_end() {
        let steering = "\x1b]0;pwned\x07\r\n\u{9b}31m\u{202e}";
        let failure = Failure::usage(steering).why(steering).or_try(steering);
        let text = failure.or_again_with("sudo").text(Paint(false), steering);
        assert_eq!(text.matches("␛]0;pwned␇␍␊").count(), 4, "{text:?}");
        let steers = |c: char| c == '\u{202e}' || c.is_control() && c != '\n';
        assert!(!text.contains(steers), "{text:?}");
        assert_eq!(text.lines().count(), 4, "{text:?}");
        let long = format!("{}{}", "ä".repeat(2000), "z".repeat(2000));
        let failure = Failure::new(&*long).or_why(&*long);
        let expect = format!("{}…{}", "ä".repeat(666), "z".repeat(333));
        assert_eq!([failure.what, failure.why.unwrap()], [expect.clone(), expect]);
        assert_eq!(printable(&"ä".repeat(1000)), "ä".repeat(1000));
        assert_eq!(printable_command(&"x".repeat(20_001)), None);
        assert_eq!(Note::new("x", "x".repeat(20_001)).lines(Paint(false)), "note: x\n");
    }
}
