//! Addresses of the three spaces that a sample passes through.
//!
//! A process address (AVMA, actual virtual memory address) is what the CPU had in a register. An
//! image address (SVMA, stated virtual memory address) is what the ELF file's own tables use. A
//! file offset counts bytes of the file. Conversions need a mapping or a segment and are methods
//! of those, never arithmetic at the call site.

use std::fmt;

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }
    };
}

address!(
    /// An address in a running process.
    #[doc(alias = "AVMA")]
    ProcessAddress
);
address!(
    /// An address as the image's own headers, symbols and debug information state it.
    #[doc(alias = "SVMA")]
    ImageAddress
);
address!(
    /// A position in a file, in bytes from its start.
    FileOffset
);
