//! Where each version of Lua has what: bytes from the start of a structure, on 64-bit machines.

use super::code::Code;

/// What is known of a build of Lua.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LuaBuild {
    /// The second number of the version: 4 of 5.4.6.
    pub minor: u32,
    /// The third one.
    pub release: u32,
}

/// How a call says that the loop over instructions that runs it was begun for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begins {
    /// By this bit.
    Set(u16),
    /// By this bit, which is not set.
    Clear(u16),
    /// Each call has a loop of its own.
    Always,
    /// Not at all: the caller's instruction is none that calls, or the caller is in C.
    ByCaller,
}

/// Which state of a program is its first one, which is allocated together with the global one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstState {
    /// The global state lies so many bytes behind it, at most.
    Before(u64),
    /// It lies so many bytes behind the start of the global state, at most.
    Within(u64),
}

impl FirstState {
    /// Whether that is the first state, by the addresses of it and of the global one.
    pub(crate) fn is(self, state: u64, global: u64) -> bool {
        match self {
            FirstState::Before(most) => global.wrapping_sub(state) < most,
            FirstState::Within(most) => state.wrapping_sub(global) < most,
        }
    }
}

/// How lines are written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LuaLines {
    /// A number of four bytes for each instruction.
    Whole,
    /// A byte for each: how many more than the one before; some stand apart as a whole.
    Steps,
}

/// A version's structures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LuaLayout {
    /// Of a state: the global one, the call that runs, the stack of values; in 5.1 the instruction that runs,
    /// and the first call.
    pub(crate) global: u32,
    pub(crate) call: u32,
    pub(crate) stack: u32,
    pub(crate) array: Option<Array>,
    /// Of a call: the instruction, the flags.
    pub(crate) instruction: u32,
    pub(crate) flags: u32,
    pub(crate) call_len: usize,
    pub(crate) begins: Begins,
    /// The flag of a tail call, and that of a finalizer.
    pub(crate) tail: u16,
    pub(crate) finalizer: u16,
    /// How far the first state and the global one may be apart, and which one lies behind the other.
    pub(crate) first_state: FirstState,
    /// Of a function in Lua its prototype, of one in C the C function.
    pub(crate) prototype: u32,
    pub(crate) of: Prototype,
    /// Of a string: its text.
    pub(crate) text: u32,
    /// Whether a long string has the address of its text there.
    pub(crate) has_text_elsewhere: bool,
    pub(crate) lines: LuaLines,
    pub(crate) code: Code,
}

/// Of a state of 5.1, whose calls lie one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Array {
    /// The instruction that runs, the first call.
    pub(crate) instruction: u32,
    pub(crate) first: u32,
    /// Of a call: how many tail calls there were.
    pub(crate) tails: u32,
}

/// Where a prototype has what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prototype {
    pub(crate) source: u32,
    pub(crate) first_line: u32,
    pub(crate) code: u32,
    pub(crate) code_len: u32,
    pub(crate) constants: u32,
    /// The functions that are made in it.
    pub(crate) children: u32,
    pub(crate) lines: u32,
    pub(crate) lines_len: u32,
    /// Lines that stand apart as a whole.
    pub(crate) whole_lines: Option<(u32, u32)>,
    pub(crate) locals: u32,
    pub(crate) locals_len: u32,
    pub(crate) upvalues: u32,
    /// How long what names an upvalue is; the name comes first.
    pub(crate) upvalue: u64,
}

/// Of a state: its type, the top of its stack of values.
pub(crate) const TYPE: u32 = 8;
pub(crate) const TOP: u32 = 16;
pub(crate) const STATE: usize = 112;

/// The type of states.
pub(crate) const IS_STATE: u8 = 8;

/// Of a call: where its function is on the stack of values, the call outside, the one inside.
pub(crate) const FUNCTION: u32 = 0;
pub(crate) const OUTSIDE: u32 = 16;
pub(crate) const INSIDE: u32 = 24;

/// The longest call.
pub(crate) const MAX_CALL: usize = 80;

/// Of a value: its kind.
pub(crate) const KIND: u32 = 8;
pub(crate) const VALUE: usize = 16;

/// Bytes of a prototype.
pub(crate) const PROTOTYPE: usize = 128;

/// Of a string: how long a short one is; a negative number says that it is a long one.
pub(crate) const TEXT_LEN: u32 = 11;

/// To 5.4.
const FIRST_STATE: FirstState = FirstState::Before(512);

impl LuaLayout {
    /// That of a build; `None` for versions that are not known.
    pub(crate) fn of(build: &LuaBuild) -> Option<LuaLayout> {
        match (build.minor, build.release) {
            (1, _) => Some(LuaLayout::of_5_1()),
            (2, release) => Some(
                LuaLayout {
                    stack: 56,
                    instruction: if release == 0 { 48 } else { 56 },
                    flags: 34,
                    call_len: 80,
                    begins: Begins::Clear(4),
                    tail: 64,
                    of: Prototype { upvalue: 16, ..LuaLayout::of_5_1().of.moved(8) },
                    code: Code::V2,
                    ..LuaLayout::of_5_4(4)
                }
                .with_whole_lines(),
            ),
            (3, release) => Some(
                LuaLayout {
                    stack: 56,
                    instruction: 40,
                    flags: 66,
                    call_len: 72,
                    begins: if release < 2 { Begins::Clear(8) } else { Begins::Set(8) },
                    tail: 32,
                    of: Prototype {
                        source: 104,
                        first_line: 40,
                        code: 56,
                        constants: 48,
                        children: 64,
                        lines: 72,
                        locals: 80,
                        upvalues: 88,
                        ..LuaLayout::of_5_4(4).of
                    },
                    text: if release == 0 { 32 } else { 24 },
                    code: Code::V3,
                    ..LuaLayout::of_5_4(4)
                }
                .with_whole_lines(),
            ),
            (4, release) => Some(LuaLayout::of_5_4(release)),
            // The flags are the upper half of a number of four bytes.
            (5, _) => Some(LuaLayout {
                flags: 62,
                begins: Begins::Set(1),
                tail: 64,
                finalizer: 256,
                first_state: FirstState::Within(1600),
                has_text_elsewhere: true,
                code: Code::V5,
                ..LuaLayout::of_5_4(4)
            }),
            _ => None,
        }
    }

    fn of_5_1() -> LuaLayout {
        LuaLayout {
            global: 32,
            call: 40,
            stack: 64,
            array: Some(Array { instruction: 48, first: 80, tails: 36 }),
            instruction: 24,
            flags: 0,
            call_len: 40,
            begins: Begins::ByCaller,
            tail: 0,
            finalizer: 0,
            first_state: FIRST_STATE,
            prototype: 32,
            of: Prototype {
                source: 64,
                first_line: 96,
                code: 24,
                code_len: 80,
                constants: 16,
                children: 32,
                lines: 40,
                lines_len: 84,
                whole_lines: None,
                locals: 48,
                locals_len: 92,
                upvalues: 56,
                upvalue: 8,
            },
            text: 24,
            has_text_elsewhere: false,
            lines: LuaLines::Whole,
            code: Code::V1,
        }
    }

    fn of_5_4(release: u32) -> LuaLayout {
        let has_loops = release < 2;
        LuaLayout {
            global: 24,
            call: 32,
            stack: if release == 0 { 56 } else { 48 },
            array: None,
            instruction: 32,
            flags: 62,
            call_len: 64,
            begins: if has_loops { Begins::Always } else { Begins::Set(4) },
            tail: if has_loops { 16 } else { 32 },
            finalizer: if has_loops { 64 } else { 128 },
            first_state: FIRST_STATE,
            prototype: 24,
            of: Prototype {
                source: 112,
                first_line: 44,
                code: 64,
                code_len: 24,
                constants: 56,
                children: 72,
                lines: 88,
                lines_len: 28,
                whole_lines: Some((96, 40)),
                locals: 104,
                locals_len: 36,
                upvalues: 80,
                upvalue: 16,
            },
            text: 24,
            has_text_elsewhere: false,
            lines: LuaLines::Steps,
            code: Code::V4,
        }
    }

    fn with_whole_lines(self) -> LuaLayout {
        let of = Prototype { whole_lines: None, ..self.of };
        LuaLayout { finalizer: 0, lines: LuaLines::Whole, of, ..self }
    }
}

impl Prototype {
    /// The same where the source and all numbers of it lie further back.
    fn moved(self, by: u32) -> Prototype {
        Prototype {
            source: self.source + by,
            first_line: self.first_line + by,
            code_len: self.code_len + by,
            lines_len: self.lines_len + by,
            locals_len: self.locals_len + by,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_are_not_known_have_no_layout() {
        let of = |minor, release| LuaLayout::of(&LuaBuild { minor, release });
        for minor in 0..9 {
            assert_eq!(of(minor, 4).is_some(), (1..=5).contains(&minor), "{minor}");
        }
        for (minor, release) in
            [(1, 5), (2, 0), (2, 4), (3, 0), (3, 6), (4, 0), (4, 1), (4, 8), (5, 1)]
        {
            let layout = of(minor, release).unwrap();
            assert!(layout.call_len <= MAX_CALL && layout.stack as usize + 8 <= STATE);
            assert!(layout.of.source as usize + 8 <= PROTOTYPE);
        }
        assert_eq!(of(2, 4).unwrap().of.source, 72);
    }

    #[test]
    fn loops_are_begun_as_each_release_says() {
        let begins = |minor, release| {
            LuaLayout::of(&LuaBuild { minor, release }).map(|layout| layout.begins)
        };
        assert_eq!(begins(1, 5), Some(Begins::ByCaller));
        assert_eq!(begins(2, 4), Some(Begins::Clear(4)));
        assert_eq!([begins(3, 1), begins(3, 6)], [Some(Begins::Clear(8)), Some(Begins::Set(8))]);
        assert_eq!([begins(4, 1), begins(4, 2)], [Some(Begins::Always), Some(Begins::Set(4))]);
        assert_eq!(begins(5, 0), Some(Begins::Set(1)));
    }
}
