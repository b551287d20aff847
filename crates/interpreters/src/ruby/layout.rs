//! Where each version of Ruby has what: bytes from the start of a structure, on 64-bit machines.

/// How many places may be that of the table of symbols.
pub(crate) const SYMBOLS: usize = 4;

/// What is known of a build of Ruby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RubyBuild {
    /// The version: 3 and 1 of 3.1.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// Where the table of symbols may be, counted from the interpreter's global state; 0 = nowhere.
    pub symbols: [u64; SYMBOLS],
}

/// A version's structures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RubyLayout {
    /// How long a control frame is.
    pub(crate) frame_len: usize,
    /// Of a code's body: which instruction is of which line.
    pub(crate) lines: u32,
    /// Whether the line of a definition is kept as a value of the language.
    pub(crate) has_line_values: bool,
    /// How long what is known of an instruction is; the line comes first.
    pub(crate) instruction_len: u32,
    /// Where a short text lies in its string, and whether its length is a field.
    pub(crate) text: u32,
    pub(crate) has_text_len: bool,
    /// Whether a class has its name in a table of its variables.
    pub(crate) has_class_variables: bool,
    pub(crate) symbols: [u64; SYMBOLS],
}

/// Of an execution context: its stack, how many words that has, the innermost control frame.
pub(crate) const STACK: u32 = 0;
pub(crate) const STACK_LEN: u32 = 8;
pub(crate) const INNERMOST: u32 = 16;
/// Its fiber and its thread.
pub(crate) const FIBER: u32 = 40;
pub(crate) const THREAD: u32 = 48;
pub(crate) const CONTEXT: usize = 56;

/// Of a control frame: the next instruction, the code, the environment.
pub(crate) const NEXT: u32 = 0;
pub(crate) const CODE: u32 = 16;
pub(crate) const ENVIRONMENT: u32 = 32;

/// Of a code: its body.
pub(crate) const BODY: u32 = 16;
pub(crate) const CODE_LEN: usize = 24;

/// Of a body: how many words its instructions take, those, its file, the name of the method that it is in, its own
/// label, the line of its definition.
pub(crate) const WORDS: u32 = 4;
pub(crate) const INSTRUCTIONS: u32 = 8;
pub(crate) const FILE: u32 = 64;
pub(crate) const METHOD_LABEL: u32 = 72;
pub(crate) const LABEL: u32 = 80;
pub(crate) const FIRST_LINE: u32 = 88;
pub(crate) const BODY_LEN: usize = 152;

/// Of what is known of instructions: how many of them, and which is of which position.
pub(crate) const LINES_LEN: u32 = 16;
pub(crate) const LINES_INDEX: u32 = 24;

/// Of a method: what it does, its class.
pub(crate) const DEFINITION: u32 = 16;
pub(crate) const OWNER: u32 = 32;
pub(crate) const METHOD_LEN: usize = 40;

/// Of what it does: which kind that is, in its first bits, the function of one in C, its name.
pub(crate) const DEFINITION_KIND: u64 = 0xf;
pub(crate) const KIND_IN_C: u64 = 1;
pub(crate) const NATIVE: u32 = 8;
pub(crate) const ORIGINAL_NAME: u32 = 32;
pub(crate) const DEFINITION_LEN: usize = 40;

impl RubyLayout {
    /// That of a build; `None` for versions that are not known.
    pub(crate) fn of(build: &RubyBuild) -> Option<RubyLayout> {
        // Those of 3.1 were read from Debian's own header of that build, and are tried live; the others are from
        // the headers of their versions.
        let of_3_1 = RubyLayout {
            frame_len: 64,
            lines: 120,
            has_line_values: true,
            instruction_len: 12,
            text: 16,
            has_text_len: false,
            has_class_variables: true,
            symbols: build.symbols,
        };
        match (build.major, build.minor) {
            (2, 7) | (3, 0) => Some(RubyLayout { frame_len: 56, instruction_len: 8, ..of_3_1 }),
            (3, 1) => Some(of_3_1),
            (3, 2..=4) => Some(RubyLayout {
                frame_len: if build.minor == 2 { 64 } else { 56 },
                lines: 112,
                has_line_values: false,
                text: 24,
                has_text_len: true,
                has_class_variables: false,
                ..of_3_1
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_are_not_known_have_no_layout() {
        let of = |(major, minor)| RubyLayout::of(&RubyBuild { major, minor, symbols: [0; 4] });
        let known = [(2, 7), (3, 0), (3, 1), (3, 2), (3, 3), (3, 4)];
        for version in (0..9).flat_map(|major| (0..9).map(move |minor| (major, minor))) {
            assert_eq!(of(version).is_some(), known.contains(&version), "{version:?}");
        }
        for layout in known.into_iter().filter_map(of) {
            assert!((layout.lines + LINES_INDEX) as usize + 8 <= BODY_LEN);
        }
        assert_eq!(known.map(|version| of(version).unwrap().frame_len), [56, 56, 64, 64, 56, 56]);
    }
}
