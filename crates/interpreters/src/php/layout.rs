//! Where PHP has what, by version.

/// What tells where a build has what: the code of functions that say where a program is.
#[derive(Clone, Copy, Debug)]
pub struct PhpBuild<'c> {
    /// The address of `executor_globals` in the file, and of the function that says which file runs.
    pub globals: u64,
    /// The address of the first of the functions.
    pub address: u64,
    /// The code of `zend_get_executed_filename_ex`.
    pub file: &'c [u8],
    /// The code of `zend_get_executed_lineno`.
    pub line: &'c [u8],
}

/// Where a build has what that others have elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhpLayout {
    /// Of the global state: the innermost frame.
    pub(super) current: u32,
    /// Of a function: the name of its file, followed by its first and its last line.
    pub(super) file: u32,
    /// Its instructions, and how many there are.
    pub(super) code: u32,
    pub(super) count: u32,
}

/// Those of 8.0 and 8.1, 8.2, 8.3, 8.4.
const KNOWN: [PhpLayout; 4] = [
    PhpLayout { current: 488, file: 144, code: 72, count: 68 },
    PhpLayout { current: 488, file: 152, code: 88, count: 80 },
    PhpLayout { current: 488, file: 144, code: 80, count: 76 },
    PhpLayout { current: 488, file: 168, code: 104, count: 96 },
];

impl PhpLayout {
    /// That of a build: the one whose places its own code uses; `None` where no one is.
    pub(crate) fn of(build: &PhpBuild<'_>) -> Option<PhpLayout> {
        let is_it = |layout: &&PhpLayout| {
            let current = build.globals.wrapping_add(layout.current.into());
            loads(build.file, layout.file)
                && loads(build.line, layout.code)
                && (loads(build.file, layout.current) || leads_to(build, current))
        };
        let mut found = KNOWN.iter().filter(is_it);
        found.next().filter(|_| found.next().is_none()).copied()
    }

    /// How many bytes of a function are read.
    pub(super) fn function_len(&self) -> usize {
        self.file as usize + 16
    }
}

/// Whether code loads a word from so far behind a register.
fn loads(code: &[u8], offset: u32) -> bool {
    if cfg!(target_arch = "aarch64") {
        // `ldr x, [x, offset]`
        let words = code.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
        return words
            .into_iter()
            .any(|word| word >> 22 == 0x3e5 && (word >> 10 & 0xfff) * 8 == offset);
    }
    // `mov reg, [reg + offset]`, the offset in one byte where it fits.
    let bytes = offset.to_le_bytes();
    (0..code.len()).filter_map(|at| code.get(at..)?.split_first_chunk::<3>()).any(|(load, rest)| {
        let [wide, operation, registers] = *load;
        let is_load = wide & 0xf8 == 0x48 && operation == 0x8b && registers & 7 != 4;
        let is_short = registers >> 6 == 1 && offset < 128 && rest.starts_with(&bytes[..1]);
        is_load && (is_short || registers >> 6 == 2 && rest.starts_with(&bytes))
    })
}

/// Whether code has the distance from there to an address.
fn leads_to(build: &PhpBuild<'_>, address: u64) -> bool {
    build.file.windows(4).zip(build.address..).any(|(bytes, at)| {
        let distance = i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let to = at.wrapping_add(4).wrapping_add_signed(distance.into());
        cfg!(target_arch = "x86_64") && to == address
    })
}

/// Of a frame: its instruction, its function, the object and flags, the frame outside.
pub(super) const INSTRUCTION: u32 = 0;
pub(super) const FUNCTION: u32 = 24;
pub(super) const OBJECT: u32 = 32;
pub(super) const FLAGS: u32 = 40;
pub(super) const OUTSIDE: u32 = 48;
pub(super) const FRAME: usize = 56;

/// What of the flags says that a loop was begun for the frame (`ZEND_CALL_TOP`).
pub(super) const BEGINS: u32 = 1 << 17;

/// Of a function: what it is, its name, its class; of one in C that is all that is read.
pub(super) const TYPE: u32 = 0;
pub(super) const NAME: u32 = 8;
pub(super) const CLASS: u32 = 16;
pub(super) const INTERNAL_LEN: usize = 24;
pub(super) const MAX_FUNCTION: usize = 192;

/// What functions are: internal ones, those of a program, the text of an eval.
pub(super) const INTERNAL: u8 = 1;
pub(super) const USER: u8 = 2;
pub(super) const EVAL: u8 = 4;

/// Of a class: its name.
pub(super) const CLASS_NAME: u64 = 8;

/// Of a text: a number made of it, how long it is, its characters.
pub(super) const HASH: u32 = 8;
pub(super) const LEN: u32 = 16;
pub(super) const TEXT: usize = 24;

/// An instruction, and where it has its line.
pub(crate) const STRIDE: usize = 32;
pub(super) const LINE: u32 = 24;

/// Of a generator: its frame; and of what stands for it where it has its values from another one, how far
/// before that is the generator that it has them from.
pub(super) const GENERATOR_FRAME: u64 = 56;
pub(super) const GIVER: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    /// The code of Debian's 8.2.36.
    pub(crate) const FILE: &[u8] = &[
        0x48, 0x8d, 0x15, 0x49, 0x84, 0x29, 0x00, 0x48, 0x8b, 0x82, 0xb0, 0x06, 0x00, 0x00, 0x48,
        0x85, 0xc0, 0x74, 0x05, 0xc3, 0x0f, 0x1f, 0x40, 0x00, 0x48, 0x8b, 0x82, 0xe8, 0x01, 0x00,
        0x00, 0x48, 0x85, 0xc0, 0x74, 0x24, 0x0f, 0x1f, 0x40, 0x00, 0x48, 0x8b, 0x50, 0x18, 0x48,
        0x85, 0xd2, 0x74, 0x05, 0x80, 0x3a, 0x01, 0x75, 0x0a, 0x48, 0x8b, 0x40, 0x30, 0x48, 0x85,
        0xc0, 0x75, 0xe9, 0xc3, 0x48, 0x8b, 0x82, 0x98, 0x00, 0x00, 0x00, 0xc3, 0xc3,
    ];
    /// The end of the other one.
    pub(crate) const LINE_OF: &[u8] =
        &[0x48, 0x8b, 0x42, 0x58, 0x8b, 0x40, 0x18, 0xc3, 0xc3, 0x90, 0x90];

    fn build<'c>(file: &'c [u8], line: &'c [u8]) -> PhpBuild<'c> {
        PhpBuild { globals: 0x58_ae60, address: 0x2f_2a10, file, line }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn builds_are_known_by_their_code() {
        let of = |file: &[u8], line: &[u8]| PhpLayout::of(&build(file, line));
        assert_eq!(of(FILE, LINE_OF), Some(KNOWN[1]));
        // Without what says where functions have instructions, and where the frame is.
        assert_eq!(of(FILE, &[]), None);
        let changed = |at: usize, byte: u8| {
            let mut code = FILE.to_vec();
            code[at] = byte;
            code
        };
        assert_eq!([of(&changed(27, 0), LINE_OF), of(&changed(67, 0xa0), LINE_OF)], [None; 2]);
        // Of 8.3, and of 8.0.
        let other = changed(67, 0x90);
        let line = |at: u8| [0x48, 0x8b, 0x42, at, 0x8b, 0x40, 0x18];
        assert_eq!(of(&other, &line(80)), Some(KNOWN[2]));
        assert_eq!(of(&other, &line(72)), Some(KNOWN[0]));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_frame_may_be_loaded_from_where_it_is() {
        // `mov rax, [rip + distance]` in place of `mov rax, [rdx + 488]`
        let mut code = FILE.to_vec();
        let distance = 0x58_ae60 + 488 - (0x2f_2a10 + 31_u64);
        code[26] = 0x05;
        code[27..31].copy_from_slice(&u32::try_from(distance).unwrap().to_le_bytes());
        assert_eq!(PhpLayout::of(&build(&code, LINE_OF)), Some(KNOWN[1]));
        code[27] ^= 8;
        assert_eq!(PhpLayout::of(&build(&code, LINE_OF)), None);
    }
}
