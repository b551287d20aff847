//! What a file exports: found by name in its table for the dynamic linker, which stays when symbols are
//! stripped.

use flame_profile::ImageAddress;
use object::{Object, ObjectSymbol};

use crate::image::ImageFile;

/// Something that a file exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Where it is.
    pub address: ImageAddress,
    /// How many bytes it takes, where the file says it; else 0.
    pub size: u64,
}

impl ImageFile {
    /// What of these names the file exports, in their order. All of its table is looked through once.
    pub fn exported<const N: usize>(&self, names: [&str; N]) -> [Option<Exported>; N] {
        let mut found = [None; N];
        let Some(elf) = self.elf() else { return found };
        for symbol in elf.dynamic_symbols().filter(ObjectSymbol::is_definition) {
            let Ok(name) = symbol.name() else { continue };
            if let Some(place) = names.iter().zip(&mut found).find(|(wanted, _)| **wanted == name) {
                let address = ImageAddress(symbol.address());
                place.1.get_or_insert(Exported { address, size: symbol.size() });
            }
        }
        found
    }

    /// The bytes that the file has for an address, this many at most.
    pub fn initial_bytes(&self, address: ImageAddress, len: usize) -> Option<Vec<u8>> {
        let section = self.loaded_from(address)?;
        Some(section.bytes.get(..len)?.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The C library of this machine, or what the program is linked with.
    #[test]
    fn exported_functions_are_found_by_name() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let path = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
        let Some(path) = path.into_iter().find(|path| path.contains("/libc.so")) else { return };
        let file = ImageFile::open(Path::new(path)).unwrap();
        let [malloc, nothing] = file.exported(["malloc", "no such function"]);
        let malloc = malloc.unwrap();
        assert!(malloc.size > 0 && nothing.is_none());
        assert_eq!(file.function_start(malloc.address), Some(malloc.address));
        assert_eq!(file.initial_bytes(malloc.address, 4).map(|bytes| bytes.len()), Some(4));
    }
}
