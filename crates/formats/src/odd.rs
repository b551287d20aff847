//! What is not as it should be but is read all the same: how often, and where first.

use crate::ReadError;
use crate::json::Value;
use crate::sink::Sink;
use crate::skipped::Place;

/// What has an empty name.
pub(crate) const UNNAMED: &str = "(unnamed)";

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

    /// A weight of a file that has whole numbers only: none is 0, and what is no such number is one of these and 0.
    pub(crate) fn weight(&mut self, value: &Value<'_>, place: Place) -> u64 {
        let weight = value.as_u64();
        if weight.is_none() && !value.is_null() {
            self.add(place);
        }
        weight.unwrap_or_default()
    }

    /// Says how many such weights there are.
    ///
    /// # Errors
    /// There are some, and that is to be an error.
    pub(crate) fn say_weights(&self, sink: &mut Sink) -> Result<(), ReadError> {
        self.say("weights that are negative or no whole numbers", "they count as 0", sink)
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
    /// The name, or `[unknown]`; an empty one is `(unnamed)`.
    pub(crate) fn of<'v>(&mut self, name: &'v Value<'_>, place: Place) -> &'v str {
        match name.as_str() {
            Some("") => UNNAMED,
            Some(name) => name,
            None => self.unknown(place),
        }
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
