//! Which functions the frames of a chain are of, and at which lines: what stands in memory is checked each
//! time, and written down when it is met first.
//!
//! An address is not enough: subs and statements die, and others take their place. What a function is
//! told by is a number made of what its name depends on and of the number of a statement, which perl gives
//! to no other.

use std::hash::Hasher;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHasher};

use super::define::{MOST_TEXT, Source, define, text_of};
use super::layout::{
    BODY, FILE, FLAGS, FORMAT, IS_NAMED, LINE, NAME, NEXT, OPERATION, PACKAGE, PerlLayout,
    SEQUENCE, START, STATEMENT, SUB, SUB_BODY, SUB_FLAGS, TYPES, VALUE,
};
use super::stack::{DO, EVAL_BLOCK, EVAL_TEXT, REQUIRE, SCRIPT};
use crate::catch::{Catcher, Thread};
use crate::caught::{Entries, Entry};
use crate::memory::{Memory, half, read_each, word};

/// The most different subs and statements of one chain.
const MOST: usize = 1024;

/// The most operations that a sub has before its first statement.
const MOST_BEFORE: usize = 4;

/// The most files of a chain that are about to be run.
const MOST_FILES: u32 = 64;

/// The bits of an operation that are its number.
const OPERATIONS: u32 = 0x1ff;

/// A statement: where it is, and what else it is told by.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Statement {
    pub(super) line: u32,
    pub(super) file: u64,
    sequence: u32,
}

/// A sub: what its name is of, and its first statement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sub {
    body: u64,
    /// 0 = it is no sub.
    next: u64,
    pub(super) package: u64,
    pub(super) name: u64,
    pub(super) flags: u32,
    /// Nothing where it could not be found.
    pub(super) first: Option<Statement>,
}

/// What was read of the subs and statements of a chain.
#[derive(Debug)]
pub(crate) struct Looked {
    /// Which address has which place among the others; that of a sub is inverted.
    places: FxHashMap<u64, usize>,
    statements: Vec<(u64, Statement)>,
    subs: Vec<(u64, Sub)>,
}

impl Default for Looked {
    fn default() -> Looked {
        Looked {
            places: FxHashMap::with_capacity_and_hasher(2 * MOST, FxBuildHasher),
            statements: Vec::with_capacity(MOST),
            subs: Vec::with_capacity(MOST),
        }
    }
}

/// Completes the frames of a chain: those that are of no function have 0 for it, and their positions are
/// lines, 0 for that of the definition.
pub(crate) fn describe(
    catcher: &mut Catcher,
    layout: &PerlLayout,
    thread: Thread,
    memory: &dyn Memory,
    entries: &mut Entries<'_>,
) {
    // Taken out, so that the catcher can be used meanwhile; it was there from the start.
    let Some(mut looked) = catcher.looked.take() else { return };
    looked.gather(entries);
    looked.read(layout, memory, &mut catcher.scratch);
    let mut files = 0;
    for index in 0..entries.len() {
        let Some(entry) = entries.get(index).filter(|entry| !entry.is_boundary()) else { continue };
        files += u32::from(matches!(entry.code, REQUIRE | DO));
        let mut name = [0; MOST_TEXT];
        let source = match entry.code {
            REQUIRE | DO if files > MOST_FILES => None,
            _ => looked.source(&entry, memory, &mut name),
        };
        let function = source.as_ref().map_or(0, |source| source.told_by(thread));
        if let Some(source) = &source {
            define(catcher, (layout, memory), function, source);
        }
        let position = looked.line((index, &entry), entries.get(index + 1)).into();
        entries.set(index, Entry { position, function, ..entry });
    }
    catcher.looked = Some(looked);
}

impl Looked {
    /// The addresses of all that a chain has, each once.
    fn gather(&mut self, entries: &Entries<'_>) {
        self.places.clear();
        self.statements.clear();
        self.subs.clear();
        for entry in (0..entries.len()).filter_map(|index| entries.get(index)) {
            if entry.is_boundary() {
                continue;
            }
            self.add_statement(entry.position);
            match entry.code {
                EVAL_BLOCK | EVAL_TEXT => self.add_statement(entry.function),
                sub if sub > DO && self.subs.len() < MOST && !self.places.contains_key(&!sub) => {
                    self.places.insert(!sub, self.subs.len());
                    self.subs.push((sub, Sub::default()));
                }
                _ => {}
            }
        }
    }

    fn add_statement(&mut self, address: u64) {
        if self.statements.len() < MOST && !self.places.contains_key(&address) {
            self.places.insert(address, self.statements.len());
            self.statements.push((address, Statement::default()));
        }
    }

    /// Reads them. What cannot be read stays as it is: a statement on no line, a sub without a name.
    fn read(&mut self, layout: &PerlLayout, memory: &dyn Memory, scratch: &mut [u8]) {
        read_each(
            memory,
            &mut self.statements,
            (STATEMENT, scratch),
            |of| of.0,
            |of, bytes| {
                of.1 = Statement::of(bytes).unwrap_or_default();
            },
        );
        let subs = &mut self.subs;
        read_each(
            memory,
            subs,
            (VALUE, scratch),
            |of| of.0,
            |of, bytes| {
                let kind = half(bytes, FLAGS).unwrap_or(0) & TYPES;
                let is_sub = [SUB, FORMAT].contains(&kind);
                of.1.body = word(bytes, BODY).filter(|_| is_sub).unwrap_or(0);
            },
        );
        read_each(memory, subs, (SUB_BODY, scratch), |of| of.1.body, |of, bytes| of.1.note(bytes));
        for _ in 0..MOST_BEFORE {
            let next = |of: &(u64, Sub)| if of.1.first.is_none() { of.1.next } else { 0 };
            read_each(memory, subs, (STATEMENT, scratch), next, |of, bytes| {
                let number = half(bytes, OPERATION).unwrap_or(0) & OPERATIONS;
                // The second is that of programs that are debugged.
                let begins = number == layout.nextstate || number == layout.nextstate + 1;
                of.1.first = Statement::of(bytes).filter(|_| begins);
                of.1.next = word(bytes, NEXT).unwrap_or(0);
            });
        }
    }

    fn statement(&self, address: u64) -> Option<Statement> {
        let (of, statement) = self.statements.get(*self.places.get(&address)?)?;
        (*of == address).then_some(*statement)
    }

    fn sub(&self, address: u64) -> Option<&Sub> {
        let (of, sub) = self.subs.get(*self.places.get(&!address)?)?;
        (*of == address).then_some(sub)
    }

    /// What the function of a frame is; of a file, reads its name.
    fn source<'n>(
        &'n self,
        entry: &Entry,
        memory: &dyn Memory,
        name: &'n mut [u8; MOST_TEXT],
    ) -> Option<Source<'n>> {
        let here = || self.statement(entry.position);
        Some(match entry.code {
            SCRIPT => Source::Script(here()?),
            EVAL_BLOCK | EVAL_TEXT => Source::Eval(self.statement(entry.function)?),
            REQUIRE | DO => {
                let len = text_of(entry.function, memory, name)?;
                Source::File(entry.code == REQUIRE, &name[..len], here()?)
            }
            sub => {
                let sub = self.sub(sub)?;
                Source::Sub(sub, sub.first?)
            }
        })
    }

    /// The line where a frame is, 0 for that of the definition. The innermost may be called, and at no
    /// statement of its own yet: then the statement is its caller's.
    fn line(&self, (index, entry): (usize, &Entry), caller: Option<Entry>) -> u32 {
        let is_own = || index > 0 || caller.is_some_and(|caller| caller.code == entry.code);
        match entry.code {
            // A text has lines of its own.
            EVAL_TEXT => 0,
            sub if sub > DO && entry.position == entry.function && !is_own() => 0,
            _ => self.statement(entry.position).map_or(0, |statement| statement.line),
        }
    }
}

impl Statement {
    fn of(bytes: &[u8]) -> Option<Statement> {
        let (line, file) = (half(bytes, LINE)?, word(bytes, FILE)?);
        Some(Statement { line, file, sequence: half(bytes, SEQUENCE)? })
    }

    fn tell(self, hasher: &mut FxHasher) {
        hasher.write_u64(self.file);
        hasher.write_u64(u64::from(self.line) << 32 | u64::from(self.sequence));
    }
}

impl Sub {
    fn note(&mut self, body: &[u8]) {
        let at = |at| word(body, at).unwrap_or(0);
        (self.package, self.name, self.next) = (at(PACKAGE), at(NAME), at(START));
        self.flags = half(body, SUB_FLAGS).unwrap_or(0);
    }
}

impl Source<'_> {
    /// A number that no other function has; 0 is none.
    fn told_by(&self, thread: Thread) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write_u32(thread.pid);
        match self {
            Source::Script(statement) => {
                hasher.write_u8(1);
                statement.tell(&mut hasher);
            }
            Source::Eval(statement) => {
                hasher.write_u8(2);
                statement.tell(&mut hasher);
            }
            Source::File(is_once, name, _) => {
                hasher.write_u8(3 + u8::from(*is_once));
                hasher.write(name);
            }
            Source::Sub(sub, first) => {
                hasher.write_u64(sub.package);
                hasher.write_u64(sub.name);
                hasher.write_u32(sub.flags & IS_NAMED);
                first.tell(&mut hasher);
            }
        }
        hasher.finish() | 1
    }
}
