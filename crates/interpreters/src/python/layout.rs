//! Where each version of CPython has what: bytes from the start of a structure, on 64-bit machines.
//!
//! From 3.13 on the process says of most of it itself where it is (Include/internal/pycore_debug_offsets.h of each version).

use crate::memory::word;

/// How many bytes of `_PyRuntime` are looked at for its debug offsets.
pub const DEBUG_OFFSETS: usize = 456;

/// What the first bytes of `_PyRuntime` are from 3.13 on, and where the version and whether there is no lock follow.
const COOKIE: &[u8] = b"xdebugpy";
const VERSION: u32 = 8;
const FREE_THREADED: u32 = 16;

/// Where the offsets of `_PyRuntime` itself and of an interpreter begin, in all versions.
const RUNTIME_GROUP: u32 = 24;
const INTERPRETER_GROUP: u32 = 48;

/// What is known of a build of CPython.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonBuild {
    /// The second number of the version.
    pub minor: u32,
    /// Where the type of code objects lies, from `_PyRuntime` on (wrapping).
    pub code_type: u64,
}

/// Where a version has its debug offsets, in bytes from the start of `_PyRuntime`: they are grouped by structure, and the
/// first word of a group is the size of its structure.
#[derive(Clone, Copy, Debug)]
struct OffsetTable {
    thread: u32,
    /// Of a thread: its frame that is below all others, if there is one.
    base_frame: Option<u32>,
    /// Of a thread: the kernel's number, and behind it the memory that frames lie in.
    thread_id: u32,
    frame: u32,
    code: u32,
}

/// How a thread's frames are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frames {
    /// Each is an object, and each is run by a native frame of its own.
    Objects,
    /// Through a structure on the native stack (`_PyCFrame`): its current frame, and the one outside. A
    /// native frame runs frames up to one that says it is an entry, in a byte of it.
    Entries { current: u32, outside: u32, is_entry: u32 },
    /// The same structure; a native frame has a frame of its own below those that it runs.
    Shims { through: Option<u32>, owner: u32 },
}

/// How the kernel's number of a thread is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadId {
    /// It is in a field.
    Native(u32),
    /// It is in the C library's own structure, whose address is in a field.
    Pthread(u32),
}

/// What the position of a frame counts, from which start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// Bytes from the first instruction (`f_lasti` to 3.9).
    Bytes,
    /// Words of two bytes (`f_lasti` of 3.10).
    Words,
    /// It is an address.
    Address,
}

/// How lines are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    /// co_lnotab, to 3.9.
    Pairs,
    /// co_linetable of 3.10.
    Ranges,
    /// co_linetable from 3.11 on.
    Locations,
}

/// A version's structures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonLayout {
    pub(crate) minor: u32,
    pub(crate) code_type: u64,
    pub(crate) interpreters: u32,
    pub(crate) threads: u32,
    pub(crate) next_interpreter: u32,
    /// Of a thread: those before and behind it in the list, and its interpreter.
    pub(crate) previous_thread: u32,
    pub(crate) next_thread: u32,
    pub(crate) interpreter: u32,
    /// Of a thread: its frame, or the structure that has it.
    pub(crate) frame: u32,
    pub(crate) frames: Frames,
    pub(crate) thread_id: ThreadId,
    /// Of a thread: where its frame is that is below all others and runs nothing.
    pub(crate) base_frame: Option<u32>,
    /// Of a thread: the memory that its frames lie in, and how far that is used.
    pub(crate) chunk: Option<u32>,
    pub(crate) previous: u32,
    pub(crate) code: u32,
    pub(crate) position: u32,
    pub(crate) position_is: Position,
    pub(crate) file: u32,
    pub(crate) name: u32,
    pub(crate) first_line: u32,
    pub(crate) flags: u32,
    /// Of a code object: a number that no other one has had.
    pub(crate) version: Option<u32>,
    pub(crate) line_table: u32,
    pub(crate) lines: Lines,
    /// Of a code object: where its instructions start, or the object that has them.
    pub(crate) instructions: u32,
    /// Of a text: characters where all are ASCII, and where not.
    pub(crate) ascii: u32,
    pub(crate) wide: u32,
}

/// CPython 3.11; the others differ from it.
const PYTHON_3_11: PythonLayout = PythonLayout {
    minor: 11,
    code_type: 0,
    interpreters: 40,
    threads: 16,
    next_interpreter: 0,
    previous_thread: 0,
    next_thread: 8,
    interpreter: 16,
    frame: 56,
    frames: Frames::Entries { current: 8, outside: 16, is_entry: 68 },
    thread_id: ThreadId::Native(160),
    base_frame: None,
    chunk: Some(296),
    previous: 48,
    code: 32,
    position: 56,
    position_is: Position::Address,
    file: 112,
    name: 128,
    first_line: 72,
    flags: 48,
    version: None,
    line_table: 136,
    lines: Lines::Locations,
    instructions: 184,
    ascii: 48,
    wide: 72,
};

/// CPython 3.8.
const PYTHON_3_8: PythonLayout = PythonLayout {
    minor: 8,
    interpreters: 32,
    threads: 8,
    frame: 24,
    frames: Frames::Objects,
    thread_id: ThreadId::Pthread(176),
    chunk: None,
    previous: 24,
    code: 32,
    position: 104,
    position_is: Position::Bytes,
    file: 104,
    name: 112,
    first_line: 40,
    flags: 36,
    line_table: 120,
    lines: Lines::Pairs,
    instructions: 48,
    ..PYTHON_3_11
};

/// CPython 3.12.
const PYTHON_3_12: PythonLayout = PythonLayout {
    minor: 12,
    interpreters: 40,
    threads: 72,
    frames: Frames::Shims { through: Some(0), owner: 70 },
    thread_id: ThreadId::Native(144),
    chunk: Some(232),
    previous: 8,
    code: 0,
    first_line: 68,
    version: Some(92),
    instructions: 192,
    ascii: 40,
    wide: 56,
    ..PYTHON_3_11
};

/// CPython 3.13.
const PYTHON_3_13: PythonLayout = PythonLayout {
    minor: 13,
    interpreters: 632,
    threads: 7344,
    next_interpreter: 7264,
    frame: 72,
    frames: Frames::Shims { through: None, owner: 70 },
    thread_id: ThreadId::Native(160),
    instructions: 200,
    ..PYTHON_3_12
};

/// CPython 3.14.
const PYTHON_3_14: PythonLayout = PythonLayout {
    minor: 14,
    interpreters: 808,
    next_interpreter: 7272,
    frames: Frames::Shims { through: None, owner: 74 },
    instructions: 208,
    ..PYTHON_3_13
};

/// CPython 3.15.
const PYTHON_3_15: PythonLayout = PythonLayout {
    minor: 15,
    interpreters: 936,
    threads: 7336,
    next_interpreter: 7264,
    thread_id: ThreadId::Native(184),
    base_frame: Some(80),
    chunk: Some(256),
    ..PYTHON_3_14
};

impl PythonLayout {
    pub(crate) fn of(build: &PythonBuild) -> Option<PythonLayout> {
        let layout = match build.minor {
            8 | 9 => PYTHON_3_8,
            10 => PythonLayout {
                position: 96,
                position_is: Position::Words,
                lines: Lines::Ranges,
                ..PYTHON_3_8
            },
            11 => PYTHON_3_11,
            12 => PYTHON_3_12,
            13 => PYTHON_3_13,
            14 => PYTHON_3_14,
            15 => PYTHON_3_15,
            _ => return None,
        };
        Some(PythonLayout { minor: build.minor, code_type: build.code_type, ..layout })
    }

    /// The same where the process itself says of some that they are elsewhere, in the first bytes of
    /// `_PyRuntime`; `None` where it is a build that is not known: without the lock that all threads
    /// share, or from before the version was released.
    #[must_use]
    pub fn with_debug_offsets(mut self, runtime: &[u8]) -> Option<PythonLayout> {
        if !runtime.starts_with(COOKIE) {
            return Some(self).filter(|layout| layout.table().is_none());
        }
        let (table, said) = (self.table()?, Said { bytes: runtime });
        if !said.is_release_of(self.minor) || word(runtime, FREE_THREADED)? != 0 {
            return None;
        }
        let (thread, frame, code) = (table.thread, table.frame, table.code);
        self.interpreters = said.field(RUNTIME_GROUP, 16)?;
        self.next_interpreter = said.field(INTERPRETER_GROUP, 16)?;
        self.threads = said.field(INTERPRETER_GROUP, 24)?;
        self.previous_thread = said.field(thread, 8)?;
        self.next_thread = said.field(thread, 16)?;
        self.interpreter = said.field(thread, 24)?;
        self.frame = said.field(thread, 32)?;
        self.base_frame = match table.base_frame {
            Some(at) => Some(said.field(thread, at)?),
            None => None,
        };
        self.thread_id = ThreadId::Native(said.field(thread, table.thread_id)?);
        self.chunk = Some(said.field(thread, table.thread_id + 8)?);
        self.previous = said.field(frame, 8)?;
        self.code = said.field(frame, 16)?;
        self.position = said.field(frame, 24)?;
        self.frames = Frames::Shims { through: None, owner: said.field(frame, 40)? };
        self.file = said.field(code, 8)?;
        self.name = said.field(code, 24)?;
        self.line_table = said.field(code, 32)?;
        self.first_line = said.field(code, 40)?;
        self.instructions = said.field(code, 72)?;
        let is_small = self.frame_len() <= MAX_FRAME
            && self.head_len() <= MAX_HEAD
            && self.thread_len() <= MAX_THREAD;
        is_small.then_some(self)
    }

    fn table(&self) -> Option<OffsetTable> {
        let table = |thread, frame, code| OffsetTable {
            thread,
            base_frame: None,
            thread_id: 48,
            frame,
            code,
        };
        match self.minor {
            13 => Some(table(152, 224, 272)),
            14 => Some(table(176, 248, 312)),
            15 => {
                let table = table(176, 312, 376);
                Some(OffsetTable { base_frame: Some(40), thread_id: 72, ..table })
            }
            _ => None,
        }
    }

    /// How many bytes of a thread are read.
    pub(crate) fn thread_len(&self) -> usize {
        let (ThreadId::Native(id) | ThreadId::Pthread(id)) = self.thread_id;
        let chunk = self.chunk.map_or(0, |chunk| chunk + 8);
        let links = [self.previous_thread, self.next_thread, self.interpreter];
        let fields = [self.frame, id, chunk + 8].into_iter().chain(links);
        fields.max().unwrap_or(0) as usize + 8
    }

    /// How many bytes of a frame are read.
    pub(crate) fn frame_len(&self) -> usize {
        let flag = match self.frames {
            Frames::Objects => 0,
            Frames::Entries { is_entry, .. } => is_entry,
            Frames::Shims { owner, .. } => owner,
        };
        [self.previous, self.code, self.position, flag].into_iter().max().unwrap_or(0) as usize + 8
    }

    /// How many bytes of a code object are read.
    pub(crate) fn head_len(&self) -> usize {
        let words =
            [self.file, self.name, self.line_table, self.instructions, self.first_line, self.flags];
        words.into_iter().max().unwrap_or(0) as usize + 8
    }
}

/// The first bytes of `_PyRuntime`.
#[derive(Clone, Copy, Debug)]
struct Said<'b> {
    bytes: &'b [u8],
}

impl Said<'_> {
    /// Whether they are those of a release of a version, or of a candidate for it: where things are may change until then.
    fn is_release_of(&self, minor: u32) -> bool {
        // 0x030d00f0 = 3.13.0, and 0xc in place of 0xf is a candidate.
        let version = word(self.bytes, VERSION).unwrap_or(0);
        version >> 16 == u64::from(3 << 8 | minor) && version >> 4 & 0xf >= 0xc
    }

    /// Where a field of a structure is, by where the group of the structure begins and where in that this stands. It has
    /// to be one of that structure.
    fn field(&self, group: u32, at: u32) -> Option<u32> {
        let (size, offset) = (word(self.bytes, group)?, word(self.bytes, group + at)?);
        u32::try_from(offset).ok().filter(|_| offset < size && offset < 1 << 20)
    }
}

/// The most bytes of a thread, a frame and a code object that are read.
pub(crate) const MAX_THREAD: usize = 1024;
pub(crate) const MAX_FRAME: usize = 256;
pub(crate) const MAX_HEAD: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_versions_fit_what_is_read() {
        for minor in 0..30 {
            let layout = PythonLayout::of(&PythonBuild { minor, code_type: 0 });
            assert_eq!(layout.is_some(), (8..=15).contains(&minor), "{minor}");
            let Some(layout) = layout else { continue };
            assert!(layout.frame_len() <= MAX_FRAME && layout.head_len() <= MAX_HEAD, "{minor}");
            assert!(layout.thread_len() <= MAX_THREAD, "{minor}");
        }
    }

    /// The first bytes of `_PyRuntime` as a release of the version has them, with another word at a place.
    fn said(layout: &PythonLayout, (at, value): (u32, u64)) -> Vec<u8> {
        let table = layout.table().unwrap();
        let Frames::Shims { owner, .. } = layout.frames else { panic!() };
        let ThreadId::Native(id) = layout.thread_id else { panic!() };
        let mut bytes = vec![0; DEBUG_OFFSETS];
        let mut put = |at: u32, value: u64| {
            bytes[at as usize..at as usize + 8].copy_from_slice(&value.to_le_bytes());
        };
        put(VERSION, 0x0300_00f0 | u64::from(layout.minor) << 16);
        let mut group = |start: u32, fields: &[(u32, u32)]| {
            put(start, 1 << 19);
            fields.iter().for_each(|(at, offset)| put(start + at, u64::from(*offset)));
        };
        group(RUNTIME_GROUP, &[(16, layout.interpreters)]);
        group(INTERPRETER_GROUP, &[(16, layout.next_interpreter), (24, layout.threads)]);
        let (chunk, base) = (layout.chunk.unwrap(), layout.base_frame.unwrap_or(0));
        group(
            table.thread,
            &[
                (8, layout.previous_thread),
                (16, layout.next_thread),
                (24, layout.interpreter),
                (32, layout.frame),
                (40, base),
                (table.thread_id, id),
                (table.thread_id + 8, chunk),
            ],
        );
        group(
            table.frame,
            &[(8, layout.previous), (16, layout.code), (24, layout.position), (40, owner)],
        );
        group(
            table.code,
            &[
                (8, layout.file),
                (24, layout.name),
                (32, layout.line_table),
                (40, layout.first_line),
                (72, layout.instructions),
            ],
        );
        put(at, value);
        bytes[..8].copy_from_slice(COOKIE);
        bytes
    }

    #[test]
    fn what_the_process_says_of_itself_is_checked() {
        for minor in 13..=15 {
            let layout = PythonLayout::of(&PythonBuild { minor, code_type: 0 }).unwrap();
            let table = layout.table().unwrap();
            let check = |at, value| layout.clone().with_debug_offsets(&said(&layout, (at, value)));
            // As it was built here.
            assert_eq!(check(0, 0), Some(layout.clone()), "3.{minor}");
            let elsewhere = check(RUNTIME_GROUP + 16, 640).map(|layout| layout.interpreters);
            assert_eq!(elsewhere, Some(640));
            let version = 0x0300_0000 | u64::from(minor) << 16;
            assert_eq!(check(VERSION, version | 0x3c1), Some(layout.clone()), "a candidate");
            let wrong = [
                // Not released yet, another version, without the global lock.
                (VERSION, version | 0xb1),
                (VERSION, version + 0x0001_00f0),
                (FREE_THREADED, 1),
                // A frame of a megabyte, an offset that is none, one beyond its structure.
                (table.frame + 24, 1 << 18),
                (RUNTIME_GROUP + 16, u64::MAX),
                (table.code, u64::from(layout.file)),
            ];
            for (at, value) in wrong {
                assert_eq!(check(at, value), None, "3.{minor}: {at} {value:#x}");
            }
            let bytes = said(&layout, (0, 0));
            let needed = table.code as usize + 80;
            for len in 0..needed {
                assert_eq!(layout.clone().with_debug_offsets(&bytes[..len]), None, "{len}");
            }
            assert!(needed <= DEBUG_OFFSETS && layout.with_debug_offsets(b"other").is_none());
        }
        let before = PythonLayout::of(&PythonBuild { minor: 12, code_type: 0 }).unwrap();
        assert_eq!(before.clone().with_debug_offsets(b"other"), Some(before));
    }
}
