//! Identifiers: the kernel's numbers for processes, threads and CPUs, and indexes into a profile.

use std::fmt;

macro_rules! kernel_number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

kernel_number!(
    /// A process (thread group) id, as seen from flame's own PID namespace.
    Pid
);
kernel_number!(
    /// A thread id, as seen from flame's own PID namespace.
    Tid
);
kernel_number!(
    /// A CPU number.
    Cpu
);

/// A position in a table as the 32 bits that it is referred to by.
///
/// # Panics
///
/// Beyond them: memory holds no table of this many rows, and a number that has lost its upper half would be
/// that of another row.
pub fn narrow(index: usize) -> u32 {
    u32::try_from(index).expect("a table has less than 2^32 rows")
}

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// The id at a position of its table; `u32::MAX` entries at most.
            pub fn from_index(index: usize) -> $name {
                $name(u32::try_from(index).unwrap_or(u32::MAX))
            }

            /// The position in its table.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index!(
    /// A string of a [`crate::StringTable`].
    StrId
);
index!(
    /// A frame of a [`crate::Profile`].
    FrameId
);
index!(
    /// A location of a [`crate::Profile`].
    LocationId
);
index!(
    /// An image (mapped file) of a [`crate::Profile`] or of an image table.
    ImageId
);
index!(
    /// A thread of a [`crate::Profile`].
    ThreadId
);
index!(
    /// A node of a [`crate::StackTable`]: one distinct stack, named by its innermost entry.
    StackId
);

impl StackId {
    /// The stack without entries, the ancestor of all others.
    pub const EMPTY: StackId = StackId(0);
}
