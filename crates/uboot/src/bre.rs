//! POSIX basic regular expressions with the extensions of the GNU C library, searched for in names.
//!
//! A pattern is compiled into a small program that is run with backtracking. Without back-references
//! no place of the program is tried twice at a place of the name, so it takes no longer than the
//! product of both lengths. With them it may, and is given up after a million steps: such a name
//! does not match. Bytes are characters, as in the C locale.
//!
//! The crates for regular expressions have neither this syntax nor back-references. Sources: POSIX
//! XBD 9.3 and the manual of the GNU C library; tested against its `regcomp` and `regexec`.

mod compile;
mod parse;
mod set;

use compile::{Instruction, compile};
pub(crate) use parse::Problem;
use set::is_word;

/// The most steps of a search with back-references.
const MOST_STEPS: usize = 1_000_000;

/// What holds between two bytes of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Assertion {
    Start,
    End,
    WordStart,
    WordEnd,
    WordEdge,
    NoWordEdge,
}

impl Assertion {
    fn holds(self, name: &[u8], at: usize) -> bool {
        let before = at > 0 && is_word(name[at - 1]);
        let behind = name.get(at).is_some_and(|byte| is_word(*byte));
        match self {
            Assertion::Start => at == 0,
            Assertion::End => at == name.len(),
            Assertion::WordStart => !before && behind,
            Assertion::WordEnd => before && !behind,
            Assertion::WordEdge => before != behind,
            Assertion::NoWordEdge => before == behind,
        }
    }
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct Regex {
    program: Vec<Instruction>,
    slots: usize,
    has_references: bool,
}

/// A place to go on from when the way taken fails.
struct Branch {
    at_instruction: usize,
    at: usize,
    slots: Vec<Option<usize>>,
}

impl Regex {
    pub(crate) fn parse(pattern: &[u8]) -> Result<Regex, Problem> {
        let parsed = parse::parse(pattern)?;
        let (program, slots) = compile(&parsed.node, parsed.groups)?;
        Ok(Regex { program, slots, has_references: parsed.has_references })
    }

    /// Whether the pattern matches a part of `name`.
    pub(crate) fn is_in(&self, name: &[u8]) -> bool {
        let mut tried = match self.has_references {
            true => Vec::new(),
            false => vec![false; self.program.len() * (name.len() + 1)],
        };
        let mut steps = 0;
        (0..=name.len()).any(|start| self.matches_at(name, start, &mut tried, &mut steps))
    }

    fn matches_at(&self, name: &[u8], start: usize, tried: &mut [bool], steps: &mut usize) -> bool {
        let slots = if self.has_references { vec![None; self.slots] } else { Vec::new() };
        let mut branches = vec![Branch { at_instruction: 0, at: start, slots }];
        while let Some(mut branch) = branches.pop() {
            loop {
                let place = branch.at_instruction * (name.len() + 1) + branch.at;
                if let Some(tried) = tried.get_mut(place)
                    && std::mem::replace(tried, true)
                {
                    break;
                }
                *steps += 1;
                if self.has_references && *steps > MOST_STEPS {
                    return false;
                }
                match self.step(name, &mut branch) {
                    Outcome::Matched => return true,
                    Outcome::Failed => break,
                    Outcome::On => {}
                    Outcome::Fork(other) => {
                        let slots = branch.slots.clone();
                        branches.push(Branch { at_instruction: other, at: branch.at, slots });
                    }
                }
            }
        }
        false
    }

    fn step(&self, name: &[u8], branch: &mut Branch) -> Outcome {
        let next = branch.at_instruction + 1;
        let fits = match &self.program[branch.at_instruction] {
            Instruction::Match => return Outcome::Matched,
            Instruction::Jump(to) => {
                branch.at_instruction = *to;
                return Outcome::On;
            }
            Instruction::Fork(other) => {
                branch.at_instruction = next;
                return Outcome::Fork(*other);
            }
            Instruction::Byte(set) => {
                let fits = name.get(branch.at).is_some_and(|byte| set.has(*byte));
                branch.at += usize::from(fits);
                fits
            }
            Instruction::Assert(assertion) => assertion.holds(name, branch.at),
            Instruction::Save(slot) => {
                if let Some(slot) = branch.slots.get_mut(*slot) {
                    *slot = Some(branch.at);
                }
                true
            }
            Instruction::Progress(slot) => match branch.slots.get_mut(*slot) {
                Some(slot) => slot.replace(branch.at) != Some(branch.at),
                None => true,
            },
            Instruction::Reference(group) => branch.repeat(*group, name),
        };
        branch.at_instruction = next;
        if fits { Outcome::On } else { Outcome::Failed }
    }
}

impl Branch {
    /// Passes what a group matched once more.
    fn repeat(&mut self, group: usize, name: &[u8]) -> bool {
        let (Some(start), Some(end)) = (self.slots[2 * group], self.slots[2 * group + 1]) else {
            return false;
        };
        let fits = start <= end && name[self.at..].starts_with(&name[start..end]);
        self.at += if fits { end - start } else { 0 };
        fits
    }
}

enum Outcome {
    Matched,
    Failed,
    On,
    /// On, and from that instruction should this fail.
    Fork(usize),
}

#[cfg(test)]
mod tests;
