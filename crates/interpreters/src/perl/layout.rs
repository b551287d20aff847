//! Where each version of Perl has what: bytes from the start of a structure, on 64-bit machines.

/// What is known of a build of Perl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerlBuild {
    /// The second number of the version.
    pub minor: u32,
    /// Where `PL_curcop` lies from `PL_curstackinfo` on (wrapping), of a perl without threads.
    pub statement: Option<u64>,
}

/// A version's structures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerlLayout {
    /// Whether its global state is the address of the interpreter, rather than the interpreter itself.
    pub(crate) is_threaded: bool,
    /// Of an interpreter: the statement that runs, and the stack.
    pub(crate) statement: u64,
    pub(crate) stack: u64,
    /// Of a stack: the innermost context of a sub, from 5.32 on.
    pub(crate) innermost_sub: Option<u32>,
    /// How long a context is.
    pub(crate) context: u32,
    /// Of the context of a sub: the sub.
    pub(crate) sub: u32,
    /// Of that of an eval: the name of the file, the text, where `die` jumps to.
    pub(crate) name: u32,
    pub(crate) text: u32,
    pub(crate) catcher: u32,
    /// Whether what is known of a package lies behind its body, rather than its table.
    pub(crate) has_package_in_body: bool,
    /// The number of the operation that begins a statement.
    pub(crate) nextstate: u32,
}

impl PerlLayout {
    /// That of a build; `None` for versions that are not known.
    pub(crate) fn of(build: &PerlBuild) -> Option<PerlLayout> {
        let minor = build.minor;
        // Those with odd numbers never were for use, and change from one to the next; 5.41.13 is 5.42's.
        let nextstate = match minor {
            28 | 30 | 32 | 34 | 36 => 195,
            38 | 40 => 198,
            41 | 42 => 202,
            _ => return None,
        };
        let (statement, stack) = match (build.statement, minor) {
            (Some(statement), _) => (statement, 0),
            (None, ..34) => (224, 240),
            (None, _) => (208, 224),
        };
        // A context has the number of the sub outside of it from 5.32 on.
        let more = if minor < 32 { 0 } else { 8 };
        Some(PerlLayout {
            is_threaded: build.statement.is_none(),
            statement,
            stack,
            innermost_sub: (minor >= 32).then_some(40),
            context: 96 + more,
            sub: 64 + more,
            name: 56 + more,
            text: 72 + more,
            catcher: 88 + more,
            has_package_in_body: minor >= 36,
            nextstate,
        })
    }

    /// The number of the operation that runs a file once; the next one runs it each time.
    pub(crate) fn require(&self) -> u32 {
        self.nextstate + 147
    }
}

/// Of a stack: its contexts, the stack outside, the number of the innermost context, what it is for.
pub(crate) const CONTEXTS: u32 = 8;
pub(crate) const OUTSIDE: u32 = 16;
pub(crate) const INNERMOST: u32 = 32;
pub(crate) const STACK: usize = 48;

/// Of a context: its type, the statement outside, where it goes on.
pub(crate) const TYPE: u32 = 0;
pub(crate) const STATEMENT_OUTSIDE: u32 = 16;
pub(crate) const RETURNS_TO: u32 = 48;

/// The longest of the contexts.
pub(crate) const MAX_CONTEXT: usize = 104;

/// Of an operation: the one after it, its number.
pub(crate) const NEXT: u32 = 0;
pub(crate) const OPERATION: u32 = 32;

/// Of a statement, which is an operation, too: its line, its file (a text, or the variable `_<file`), and
/// a number that no other has.
pub(crate) const LINE: u32 = 36;
pub(crate) const FILE: u32 = 48;
pub(crate) const SEQUENCE: u32 = 60;
pub(crate) const STATEMENT: usize = 64;

/// Of a value: its body, its type and flags, what else there is.
pub(crate) const BODY: u32 = 0;
pub(crate) const FLAGS: u32 = 12;
pub(crate) const ELSE: u32 = 16;
pub(crate) const VALUE: usize = 24;

/// Types of values: variables of packages, tables, subs, formats.
pub(crate) const GLOB: u32 = 9;
pub(crate) const HASH: u32 = 12;
pub(crate) const SUB: u32 = 13;
pub(crate) const FORMAT: u32 = 14;

/// The bits of the type.
pub(crate) const TYPES: u32 = 0x1f;

/// The flag of a table that is a package.
pub(crate) const HAS_PACKAGE: u32 = 0x0200_0000;

/// Of the body of a sub: its package, its first operation, its variable or name, its flags.
pub(crate) const PACKAGE: u32 = 32;
pub(crate) const START: u32 = 40;
pub(crate) const NAME: u32 = 56;
pub(crate) const SUB_FLAGS: u32 = 92;
pub(crate) const SUB_BODY: usize = 96;

/// The flag of a sub that has a name rather than a variable.
pub(crate) const IS_NAMED: u32 = 0x8000;

/// Of what a variable is: the one whose name it has.
pub(crate) const EFFECTIVE: u32 = 56;

/// Of the body of a variable: its name, its package.
pub(crate) const VARIABLE_NAME: u32 = 32;
pub(crate) const VARIABLE_PACKAGE: u32 = 40;

/// Of the body of a table: its last slot; behind it what is known of a package.
pub(crate) const LAST_SLOT: u32 = 24;
pub(crate) const PACKAGE_IN_BODY: u32 = 32;

/// Of a package: its name, how many names it has.
pub(crate) const PACKAGE_NAMES: u32 = 28;

/// Of a name: how long it is, the text.
pub(crate) const NAME_LEN: u32 = 4;
pub(crate) const NAME_TEXT: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_are_not_known_have_no_layout() {
        let of = |minor, statement| PerlLayout::of(&PerlBuild { minor, statement });
        for minor in 0..60 {
            let known = (28..=42).contains(&minor) && (minor % 2 == 0 || minor == 41);
            assert_eq!(of(minor, None).is_some(), known, "{minor}");
            assert!(of(minor, None).is_none_or(|layout| layout.context as usize <= MAX_CONTEXT));
        }
        let plain = of(30, Some(0x10)).unwrap();
        assert_eq!((plain.is_threaded, plain.statement, plain.stack), (false, 0x10, 0));
        assert_eq!(of(40, None).unwrap().require(), 345);
    }
}
