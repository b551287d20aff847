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

/// How far above the addresses of an image a process has it, modulo 2^64: it may be below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bias(u64);

impl Bias {
    /// That of an image of which the one address is the other in a process.
    pub fn between(process: ProcessAddress, image: ImageAddress) -> Bias {
        Bias(process.0.wrapping_sub(image.0))
    }

    /// What the image calls an address of the process.
    pub fn to_image_address(self, address: ProcessAddress) -> ImageAddress {
        ImageAddress(address.0.wrapping_sub(self.0))
    }

    /// Where the process has an address of the image.
    pub fn to_process_address(self, address: ImageAddress) -> ProcessAddress {
        ProcessAddress(address.0.wrapping_add(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_may_be_above_or_below_its_own_addresses() {
        for (process, image) in [(0x5555_0000_1000, 0x1000), (0x1000, 0x40_0000)] {
            let bias = Bias::between(ProcessAddress(process), ImageAddress(image));
            let found = bias.to_image_address(ProcessAddress(process + 0x20));
            assert_eq!(found, ImageAddress(image + 0x20));
            assert_eq!(bias.to_process_address(found), ProcessAddress(process + 0x20));
        }
    }
}
