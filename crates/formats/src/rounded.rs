//! Weights of the smallest unit that are no whole numbers: what rounding makes of them.

use crate::ReadError;
use crate::json::{Value, count, number, whole};
use crate::sink::Sink;
use crate::skipped::Place;

/// Weights that were rounded.
#[derive(Debug, Default)]
pub(crate) struct Rounded {
    /// Where the first one is.
    first: Option<Place>,
    count: u64,
    /// Those of them that weigh nothing then.
    gone: u64,
    /// What they weigh in the file, and here.
    exact: f64,
    kept: f64,
}

impl Rounded {
    /// A weight, not negative, as a whole number.
    pub(crate) fn whole(&mut self, weight: f64, place: Place) -> u64 {
        let kept = whole(weight, 1.0);
        if weight.fract() != 0.0 {
            self.first.get_or_insert(place);
            self.count += 1;
            self.gone += u64::from(kept == 0);
            self.exact += weight;
            self.kept += weight.round();
        }
        kept
    }

    /// The same of a value; none of what is no number, or negative.
    pub(crate) fn whole_of(&mut self, value: &Value<'_>, place: Place) -> Option<u64> {
        match number(value).filter(|weight| weight.fract() != 0.0) {
            Some(weight) => (weight > 0.0).then(|| self.whole(weight, place)),
            // Numbers of more than 53 bits stay what they are.
            None => count(value),
        }
    }

    /// Says how much that makes of them.
    ///
    /// # Errors
    /// There are some, and that is to be an error.
    pub(crate) fn say(&self, sink: &mut Sink) -> Result<(), ReadError> {
        let Some(first) = self.first else { return Ok(()) };
        let Rounded { count, gone, exact, kept, .. } = self;
        let what = format!(
            "weights that are no whole numbers were rounded: {count}, {gone} of them to nothing; \
             together they weigh {kept}, not {exact:.2}"
        );
        sink.complain(first, &what)
    }
}
