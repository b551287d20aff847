//! The tree of a pattern into a program.

use super::Assertion;
use super::parse::{Node, Problem};
use super::set::Set;

/// The most instructions of a program.
const MOST_INSTRUCTIONS: usize = 1 << 13;

#[derive(Clone, Debug)]
pub(super) enum Instruction {
    Match,
    /// Passes one byte of the set.
    Byte(Set),
    Assert(Assertion),
    Jump(usize),
    /// Goes on, and from there should that fail.
    Fork(usize),
    /// Keeps the place in a slot.
    Save(usize),
    /// Keeps the place in a slot, and fails where it is the same as before.
    Progress(usize),
    /// Passes what a group matched.
    Reference(usize),
}

/// The program of a tree with this many groups, and how many slots it has. Group N has the slots 2N
/// and 2N + 1.
pub(super) fn compile(node: &Node, groups: usize) -> Result<(Vec<Instruction>, usize), Problem> {
    let mut compiler = Compiler { program: Vec::new(), slots: 2 * groups + 2 };
    compiler.add(node)?;
    compiler.push(Instruction::Match)?;
    Ok((compiler.program, compiler.slots))
}

struct Compiler {
    program: Vec<Instruction>,
    slots: usize,
}

impl Compiler {
    fn push(&mut self, instruction: Instruction) -> Result<usize, Problem> {
        self.program.push(instruction);
        match self.program.len() > MOST_INSTRUCTIONS {
            true => Err(Problem::TooLarge),
            false => Ok(self.program.len() - 1),
        }
    }

    fn add(&mut self, node: &Node) -> Result<(), Problem> {
        match node {
            Node::Byte(set) => self.push(Instruction::Byte(*set)).map(drop),
            Node::Assert(assertion) => self.push(Instruction::Assert(*assertion)).map(drop),
            Node::Reference(group) => self.push(Instruction::Reference(*group)).map(drop),
            Node::Sequence(nodes) => nodes.iter().try_for_each(|node| self.add(node)),
            Node::Group(number, inner) => {
                self.push(Instruction::Save(2 * number))?;
                self.add(inner)?;
                self.push(Instruction::Save(2 * number + 1)).map(drop)
            }
            Node::Either(branches) => self.either(branches),
            Node::Repeat(inner, least, most) => self.repeat(inner, *least, *most),
        }
    }

    fn either(&mut self, branches: &[Node]) -> Result<(), Problem> {
        let Some((last, others)) = branches.split_last() else { return Ok(()) };
        let mut jumps = Vec::new();
        for branch in others {
            let fork = self.push(Instruction::Fork(0))?;
            self.add(branch)?;
            jumps.push(self.push(Instruction::Jump(0))?);
            self.program[fork] = Instruction::Fork(self.program.len());
        }
        self.add(last)?;
        let end = self.program.len();
        jumps.into_iter().for_each(|jump| self.program[jump] = Instruction::Jump(end));
        Ok(())
    }

    fn repeat(&mut self, inner: &Node, least: u32, most: Option<u32>) -> Result<(), Problem> {
        for _ in 0..least {
            self.add(inner)?;
        }
        let Some(most) = most else {
            let slot = self.slots;
            self.slots += 1;
            let start = self.push(Instruction::Fork(0))?;
            self.push(Instruction::Progress(slot))?;
            self.add(inner)?;
            self.push(Instruction::Jump(start))?;
            self.program[start] = Instruction::Fork(self.program.len());
            return Ok(());
        };
        let mut forks = Vec::new();
        for _ in least..most {
            forks.push(self.push(Instruction::Fork(0))?);
            self.add(inner)?;
        }
        let end = self.program.len();
        forks.into_iter().for_each(|fork| self.program[fork] = Instruction::Fork(end));
        Ok(())
    }
}
