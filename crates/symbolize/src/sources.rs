//! Turns an image into what its names come from, and what would bring more of them.

use std::path::PathBuf;

use flame_profile::BuildId;
use object::Object;

use crate::companion::alternate_link;
use crate::image::ImageFile;

/// Where one kind of names of an image comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The image itself.
    Own,
    /// A file that was stripped from it.
    File(PathBuf),
    /// A symbol table that is compressed within it (`.gnu_debugdata`).
    Compressed,
    /// Nowhere: it was stripped, and what was stripped is not to be found.
    Missing,
}

/// What an image's names come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    /// Names of all functions (`.symtab`). Where they are missing, exported functions still have
    /// names.
    pub symbols: Source,
    /// Inlined functions, source files and lines (DWARF).
    pub debug: Source,
    /// The build ids of files that would bring what is missing.
    pub lacking: Vec<BuildId>,
}

impl ImageFile {
    /// What its names come from, as far as files are there now.
    pub fn sources(&self) -> Sources {
        let has_symbols =
            |image: &ImageFile| image.elf().is_some_and(|elf| elf.symbol_table().is_some());
        let companion = self.companion();
        let from = |has: &dyn Fn(&ImageFile) -> bool| match companion {
            _ if has(self) => Source::Own,
            Some(file) if has(file) => {
                Source::File(file.path().map(PathBuf::from).unwrap_or_default())
            }
            _ => Source::Missing,
        };
        let mut symbols = from(&has_symbols);
        if symbols == Source::Missing && self.section(".gnu_debugdata").is_some() {
            symbols = Source::Compressed;
        }
        let debug = from(&has_debug_info);
        let mut lacking = Vec::new();
        if debug == Source::Missing {
            lacking.extend(self.build_id().cloned());
        } else {
            let file = companion.unwrap_or(self);
            let link = alternate_link(file).filter(|_| file.supplement().is_none());
            lacking.extend(link.map(|(_, id)| id));
        }
        Sources { symbols, debug, lacking }
    }
}

fn has_debug_info(image: &ImageFile) -> bool {
    image.elf().is_some_and(|elf| elf.section_by_name(".debug_info").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_build::{SOURCE, Workshop};

    #[test]
    fn sources_are_those_that_names_come_from() {
        let shop = Workshop::new("sources");
        shop.write("a.c", SOURCE);
        let built = shop.run_all(
            "gcc -O2 -g -Wl,--build-id=0xabcd -o whole a.c
             strip -g -o symbols whole
             strip -o stripped whole
             objcopy --only-keep-debug whole linked.debug
             objcopy --add-gnu-debuglink=linked.debug stripped linked",
        );
        if !built {
            return;
        }
        let sources = |name: &str| ImageFile::open(&shop.path(name)).unwrap().sources();
        let id = BuildId::from_bytes(&[0xab, 0xcd]).unwrap();
        let (own, missing) = (Source::Own, Source::Missing);
        let expect = |symbols: &Source, debug: &Source, lacking: &[BuildId]| Sources {
            symbols: symbols.clone(),
            debug: debug.clone(),
            lacking: lacking.to_vec(),
        };
        assert_eq!(sources("whole"), expect(&own, &own, &[]));
        assert_eq!(sources("symbols"), expect(&own, &missing, std::slice::from_ref(&id)));
        assert_eq!(sources("stripped"), expect(&missing, &missing, std::slice::from_ref(&id)));
        let file = Source::File(shop.path("linked.debug"));
        assert_eq!(sources("linked"), expect(&file, &file, &[]));
        // A file that comes later is found all the same.
        let image = ImageFile::open(&shop.path("linked")).unwrap();
        shop.move_to("linked.debug", "away");
        assert_eq!(image.sources(), expect(&missing, &missing, &[id]));
        shop.move_to("away", "linked.debug");
        assert_eq!(image.sources(), expect(&file, &file, &[]));
    }
}
