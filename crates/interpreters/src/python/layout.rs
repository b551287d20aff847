//! Where each version of CPython has what: bytes from the start of a structure, on 64-bit machines.

/// How many bytes of `_PyRuntime` are looked at for its debug offsets.
pub const DEBUG_OFFSETS: usize = 352;

/// What the first bytes of `_PyRuntime` are from 3.13 on.
const COOKIE: &[u8] = b"xdebugpy";

/// What is known of a build of CPython.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonBuild {
    /// The second number of the version.
    pub minor: u32,
    /// Where the type of code objects lies, from `_PyRuntime` on (wrapping).
    pub code_type: u64,
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
    chunk: Some(296),
    previous: 48,
    code: 32,
    position: 56,
    position_is: Position::Address,
    file: 112,
    name: 128,
    first_line: 72,
    flags: 48,
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
            _ => return None,
        };
        Some(PythonLayout { minor: build.minor, code_type: build.code_type, ..layout })
    }

    /// The same where the process itself says of some that they are elsewhere, in the first bytes of
    /// `_PyRuntime`; `None` where it is a build that is not known: without the lock that all threads
    /// share.
    #[must_use]
    pub fn with_debug_offsets(mut self, runtime: &[u8]) -> Option<PythonLayout> {
        use crate::memory::word;
        if !runtime.starts_with(COOKIE) {
            return Some(self);
        }
        if word(runtime, 16)? != 0 {
            return None;
        }
        let at = |at| u32::try_from(word(runtime, at)?).ok().filter(|offset| *offset < 1 << 20);
        self.interpreters = at(40)?;
        self.next_interpreter = at(64)?;
        self.threads = at(72)?;
        self.previous_thread = at(160)?;
        self.next_thread = at(168)?;
        self.interpreter = at(176)?;
        self.frame = at(184)?;
        self.thread_id = ThreadId::Native(at(200)?);
        self.previous = at(232)?;
        self.code = at(240)?;
        self.position = at(248)?;
        self.frames = Frames::Shims { through: None, owner: at(264)? };
        self.file = at(280)?;
        self.name = at(296)?;
        self.line_table = at(304)?;
        self.first_line = at(312)?;
        self.instructions = at(344)?;
        let is_small = self.frame_len() <= MAX_FRAME
            && self.head_len() <= MAX_HEAD
            && self.thread_len() <= MAX_THREAD;
        is_small.then_some(self)
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
            assert_eq!(layout.is_some(), (8..=13).contains(&minor), "{minor}");
            let Some(layout) = layout else { continue };
            assert!(layout.frame_len() <= MAX_FRAME && layout.head_len() <= MAX_HEAD, "{minor}");
            assert!(layout.thread_len() <= MAX_THREAD, "{minor}");
        }
    }

    #[test]
    fn what_the_process_says_of_itself_is_checked() {
        let layout = PythonLayout::of(&PythonBuild { minor: 13, code_type: 0 }).unwrap();
        let said = |words: &[(usize, u64)]| {
            let mut bytes = vec![0; DEBUG_OFFSETS];
            bytes[..8].copy_from_slice(COOKIE);
            for (at, value) in words {
                bytes[*at..at + 8].copy_from_slice(&value.to_le_bytes());
            }
            layout.clone().with_debug_offsets(&bytes)
        };
        assert_eq!(layout.clone().with_debug_offsets(b"other"), Some(layout.clone()));
        assert_eq!(
            said(&[(40, 640), (248, 64)]).map(|l| (l.interpreters, l.position)),
            Some((640, 64))
        );
        // Without the global lock, a frame of a megabyte, an offset that is none, bytes that end.
        assert_eq!(said(&[(16, 1)]), None);
        assert_eq!(said(&[(248, 1 << 19)]), None);
        assert_eq!(said(&[(40, u64::MAX)]), None);
        assert_eq!(layout.with_debug_offsets(COOKIE), None);
    }
}
