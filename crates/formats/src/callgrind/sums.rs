//! What a callgrind file says that its costs are together (`summary`, `totals`), against what they are.

use std::cmp::Ordering;

use super::graph::add;
use crate::ReadError;
use crate::names::number;
use crate::sink::Sink;
use crate::skipped::Place;

/// Sums by events.
#[derive(Debug, Default)]
pub(super) struct Sums {
    /// Of the costs that were read.
    read: Vec<u64>,
    /// What all has cost; that of each part of a file.
    pub(super) summary: Said,
    /// What all costs in the file are together.
    pub(super) totals: Said,
    /// Whose `summary` has the time that it took itself besides, and of memory the largest amount.
    pub(super) is_of_xdebug: bool,
}

#[derive(Debug, Default)]
pub(super) struct Said {
    /// The last line.
    line: u64,
    sums: Vec<u64>,
}

impl Sums {
    pub(super) fn add(&mut self, costs: &[u64]) {
        add(&mut self.read, costs);
    }

    /// Says where they differ, and by how much.
    ///
    /// # Errors
    /// They do, and that is to be an error.
    pub(super) fn say(&self, events: &[String], sink: &mut Sink) -> Result<(), ReadError> {
        let (name, said) = match self.totals.line {
            0 => ("summary", &self.summary),
            _ => ("totals", &self.totals),
        };
        for ((event, said_sum), at) in events.iter().zip(&said.sums).zip(0..) {
            let read = self.read.get(at).copied().unwrap_or_default();
            if self.is_of_xdebug && event == "Memory_(bytes)" {
                continue;
            }
            let difference = match read.cmp(said_sum) {
                Ordering::Equal => continue,
                Ordering::Less => format!("{} less", said_sum - read),
                Ordering::Greater => format!("{} more", read - said_sum),
            };
            let what = format!(
                "the costs of {event} are {read} together, {difference} than the {said_sum} of its {name}"
            );
            match self.is_of_xdebug && read < *said_sum {
                true => sink.note(what),
                false => sink.complain(Place::Line(said.line), &what)?,
            }
        }
        Ok(())
    }
}

impl Said {
    pub(super) fn add<'w>(
        &mut self,
        line: u64,
        words: impl Iterator<Item = &'w [u8]>,
    ) -> Result<(), &'static str> {
        let costs: Option<Vec<u64>> = words.map(number).collect();
        add(&mut self.sums, &costs.ok_or("a sum is not a number")?);
        self.line = line;
        Ok(())
    }
}
