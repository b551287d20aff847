//! What is not as it should be but is read all the same: how often, and where first.

use crate::ReadError;
use crate::json::Value;
use crate::sink::Sink;
use crate::skipped::Place;

/// Things of one kind.
#[derive(Debug, Default)]
pub(crate) struct Odd {
    first: Option<Place>,
    count: u64,
}

impl Odd {
    /// Counts one.
    pub(crate) fn add(&mut self, place: Place) {
        self.first = Some(self.first.map_or(place, |first| first.min(place)));
        self.count += 1;
    }

    /// Whether there is none.
    pub(crate) fn is_none(&self) -> bool {
        self.count == 0
    }

    /// Says what they are and how many, if there are some: `what` ends before the number, and what is made
    /// of them stands behind it.
    ///
    /// # Errors
    /// There are some, and that is to be an error.
    pub(crate) fn say(&self, what: &str, then: &str, sink: &mut Sink) -> Result<(), ReadError> {
        match self.first {
            Some(first) => sink.complain(first, &format!("{what}: {}; {then}", self.count)),
            None => Ok(()),
        }
    }
}

/// What names are taken from: those that are no text are counted.
#[derive(Debug, Default)]
pub(crate) struct Names {
    missing: Odd,
}

impl Names {
    /// The name, or `[unknown]`.
    pub(crate) fn of<'v>(&mut self, name: &'v Value<'_>, place: Place) -> &'v str {
        name.as_str().unwrap_or_else(|| self.unknown(place))
    }

    /// What stands for a name that is not there.
    pub(crate) fn unknown(&mut self, place: Place) -> &'static str {
        self.missing.add(place);
        "[unknown]"
    }

    /// Says how many are none.
    ///
    /// # Errors
    /// There are some, and that is to be an error.
    pub(crate) fn say(&self, sink: &mut Sink) -> Result<(), ReadError> {
        self.missing.say("names that are missing or no text", "they are [unknown]", sink)
    }
}
