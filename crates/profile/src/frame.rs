//! Frames (a name on a stack) and locations (an address, with all frames inlined at it).

use crate::address::ImageAddress;
use crate::ids::{FrameId, ImageId, StrId};

/// Where a frame's code came from; renderers colour by it, folded text marks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameKind {
    /// A function of a program, or of a library where it is not known to be of one.
    User,
    /// A function of a shared library. Call trees tell it from the image; folded text does not.
    Library,
    /// A function of the kernel or of a module; `_[k]` in folded text.
    Kernel,
    /// A function of the kernel in which a thread waits, where others show threads that run; `_[k]` in
    /// folded text, which does not tell them apart.
    Waiting,
    /// A function that the compiler inlined into its caller; `_[i]` in folded text.
    Inlined,
    /// A function that a runtime compiled while running; `_[j]` in folded text.
    Jit,
    /// A function of an interpreted program, at its place among those of the interpreter; `_[s]` in
    /// folded text.
    Script,
    /// A function on the stack of whoever woke the sampled thread; `_[w]` in folded text.
    Waker,
    /// Not a function: the thread's name, or a mark such as `[truncated stack]`.
    Mark,
}

impl FrameKind {
    /// The kind in a word, as JSON, CSV and Markdown have it.
    pub fn word(self) -> &'static str {
        match self {
            FrameKind::User => "user",
            FrameKind::Library => "library",
            FrameKind::Kernel => "kernel",
            FrameKind::Waiting => "waiting",
            FrameKind::Inlined => "inlined",
            FrameKind::Jit => "jit",
            FrameKind::Script => "script",
            FrameKind::Waker => "waker",
            FrameKind::Mark => "mark",
        }
    }

    /// The suffix that flamegraph.pl's palettes recognise; empty for user frames and marks.
    pub fn annotation(self) -> &'static str {
        match self {
            FrameKind::Kernel | FrameKind::Waiting => "_[k]",
            FrameKind::Inlined => "_[i]",
            FrameKind::Jit => "_[j]",
            FrameKind::Script => "_[s]",
            FrameKind::Waker => "_[w]",
            FrameKind::User | FrameKind::Library | FrameKind::Mark => "",
        }
    }

    /// The name without its annotation, and the kind that the annotation says; [`FrameKind::User`]
    /// without one.
    pub fn of_annotated(name: &[u8]) -> (&[u8], FrameKind) {
        let [head @ .., b'_', b'[', letter, b']'] = name else { return (name, FrameKind::User) };
        match letter {
            b'k' => (head, FrameKind::Kernel),
            b'i' => (head, FrameKind::Inlined),
            b'j' => (head, FrameKind::Jit),
            b's' => (head, FrameKind::Script),
            b'w' => (head, FrameKind::Waker),
            _ => (name, FrameKind::User),
        }
    }
}

/// One function on a stack. Two frames are equal when all fields are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The demangled name.
    pub name: StrId,
    /// Where the code came from.
    pub kind: FrameKind,
    /// The source file, where debug information says it.
    pub file: Option<StrId>,
    /// The line in that file, counted from 1.
    pub line: Option<u32>,
}

/// One address of code, with the frames that it stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// The image that holds the address; `None` for JIT code, the kernel's own and folded input.
    pub image: Option<ImageId>,
    /// The address within the image, or the process address where there is no image.
    pub address: ImageAddress,
    /// The frames at that address, innermost first: inlined ones, then the function itself.
    /// Never empty.
    pub frames: Vec<FrameId>,
}

impl Location {
    /// A location that is only a name: no image, no address, one frame.
    pub fn named(frame: FrameId) -> Location {
        Location { image: None, address: ImageAddress(0), frames: vec![frame] }
    }
}

/// Whether a name is a mark that stands for what is not known, as flame and the collapsing scripts
/// write them.
pub fn is_mark_name(name: &[u8]) -> bool {
    matches!(name, b"[truncated stack]" | b"[unknown]" | b"-" | b"--")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_says_the_kind_that_wrote_it() {
        use FrameKind::{Inlined, Jit, Kernel, Library, Mark, Script, User, Waiting, Waker};
        let kinds = [
            (User, "user", User),
            (Library, "library", User),
            (Kernel, "kernel", Kernel),
            (Waiting, "waiting", Kernel),
            (Inlined, "inlined", Inlined),
            (Jit, "jit", Jit),
            (Script, "script", Script),
            (Waker, "waker", Waker),
            (Mark, "mark", User),
        ];
        for (kind, word, read) in kinds {
            let name = format!("parse{}", kind.annotation());
            assert_eq!(FrameKind::of_annotated(name.as_bytes()), (&b"parse"[..], read));
            assert_eq!(kind.word(), word);
        }
        assert_eq!(FrameKind::of_annotated(b"at_[x]"), (&b"at_[x]"[..], User));
    }
}
