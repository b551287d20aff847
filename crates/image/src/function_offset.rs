//! From the name of a function to the place of its code in the file.

use std::collections::BTreeSet;

use flame_profile::{FileOffset, ImageAddress};
use object::{Object, ObjectSymbol, SymbolFlags, SymbolKind, elf};

use crate::image::ImageFile;

impl ImageFile {
    /// Where the code of a function starts in the file, by the symbols that others link to and then by
    /// all. What the loader chooses among several (IFUNC) is none.
    pub fn offset_of_function(&self, name: &str) -> Option<FileOffset> {
        let elf = self.elf()?;
        let mut symbols = elf.dynamic_symbols().chain(elf.symbols());
        let symbol = symbols.find(|symbol| symbol.name() == Ok(name) && is_function(symbol))?;
        self.file_offset(ImageAddress(symbol.address()))
    }

    /// The names by which functions are found in this way.
    pub fn function_names(&self) -> BTreeSet<String> {
        let Some(elf) = self.elf() else { return BTreeSet::new() };
        let functions = elf.dynamic_symbols().chain(elf.symbols()).filter(is_function);
        functions.filter_map(|symbol| symbol.name().ok().map(str::to_owned)).collect()
    }

    /// The place in the file of what stands at an address.
    fn file_offset(&self, address: ImageAddress) -> Option<FileOffset> {
        self.segments().iter().filter(|segment| segment.executable).find_map(|segment| {
            let inside = address.0.checked_sub(segment.address.0)?;
            let is_stored = inside < segment.file_len.0;
            is_stored.then(|| segment.offset.0.checked_add(inside).map(FileOffset)).flatten()
        })
    }
}

/// Whether a symbol is a function whose code is here, and not one that the loader chooses.
fn is_function<'data>(symbol: &impl ObjectSymbol<'data>) -> bool {
    let chosen_late = match symbol.flags() {
        SymbolFlags::Elf { st_info, .. } => st_info.st_type() == elf::STT_GNU_IFUNC,
        _ => false,
    };
    symbol.is_definition() && symbol.kind() == SymbolKind::Text && !chosen_late
}
