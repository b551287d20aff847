//! Turns an image into what its names come from, and what would bring more of them.

use std::path::PathBuf;

use flame_image::{ImageFile, alternate_link, refused_companion};
use flame_profile::BuildId;
use object::Object;

use crate::units::missing_split_file;

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
    /// A file that is where the debug information should be and is of another build, by its build
    /// id or by the checksum in the image's link.
    pub refused: Option<PathBuf>,
    /// The first file of split debug information (`.dwo`) that is not to be found: inlined
    /// functions of its unit are missing.
    pub split: Option<String>,
}

impl Sources {
    /// What the names of an image come from, as far as files are there now.
    pub fn of(image: &ImageFile) -> Sources {
        let has_symbols =
            |image: &ImageFile| image.elf().is_some_and(|elf| elf.symbol_table().is_some());
        let companion = image.companion();
        let from = |has: &dyn Fn(&ImageFile) -> bool| match companion {
            _ if has(image) => Source::Own,
            Some(file) if has(file) => {
                Source::File(file.path().map(PathBuf::from).unwrap_or_default())
            }
            _ => Source::Missing,
        };
        let mut symbols = from(&has_symbols);
        if symbols == Source::Missing && image.section(".gnu_debugdata").is_some() {
            symbols = Source::Compressed;
        }
        let debug = from(&has_debug_info);
        let mut lacking = Vec::new();
        if debug == Source::Missing {
            lacking.extend(image.build_id().cloned());
        } else {
            let file = companion.unwrap_or(image);
            let link = alternate_link(file).filter(|_| file.supplement().is_none());
            lacking.extend(link.map(|(_, id)| id));
        }
        let refused = match debug {
            Source::Missing => refused_companion(image),
            _ => None,
        };
        let split = match debug {
            Source::Missing => None,
            _ => missing_split_file(companion.unwrap_or(image)),
        };
        Sources { symbols, debug, lacking, refused, split }
    }
}

fn has_debug_info(image: &ImageFile) -> bool {
    image.elf().is_some_and(|elf| elf.section_by_name(".debug_info").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flame_image::testing::build::{SOURCE, Workshop};

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
        let sources = |name: &str| Sources::of(&ImageFile::open(&shop.path(name)).unwrap());
        let id = BuildId::from_bytes(&[0xab, 0xcd]).unwrap();
        let (own, missing) = (Source::Own, Source::Missing);
        let expect = |symbols: &Source, debug: &Source, lacking: &[BuildId]| Sources {
            symbols: symbols.clone(),
            debug: debug.clone(),
            lacking: lacking.to_vec(),
            refused: None,
            split: None,
        };
        assert_eq!(sources("whole"), expect(&own, &own, &[]));
        assert_eq!(sources("symbols"), expect(&own, &missing, std::slice::from_ref(&id)));
        assert_eq!(sources("stripped"), expect(&missing, &missing, std::slice::from_ref(&id)));
        let file = Source::File(shop.path("linked.debug"));
        assert_eq!(sources("linked"), expect(&file, &file, &[]));
        // A file that comes later is found all the same.
        let image = ImageFile::open(&shop.path("linked")).unwrap();
        shop.move_to("linked.debug", "away");
        assert_eq!(Sources::of(&image), expect(&missing, &missing, &[id]));
        shop.move_to("away", "linked.debug");
        assert_eq!(Sources::of(&image), expect(&file, &file, &[]));
    }
    #[test]
    fn a_debug_file_of_another_build_is_named() {
        let shop = Workshop::new("sources-refused");
        shop.write("a.c", SOURCE);
        let built = shop.run_all(
            "gcc -O2 -g -Wl,--build-id=none -o whole a.c
             objcopy --only-keep-debug whole prog.debug
             strip -o prog whole
             objcopy --add-gnu-debuglink=prog.debug prog",
        );
        if !built {
            return;
        }
        let refused = || Sources::of(&ImageFile::open(&shop.path("prog")).unwrap()).refused;
        assert_eq!(refused(), None);
        let mut bytes = std::fs::read(shop.path("prog.debug")).unwrap();
        bytes.push(0);
        std::fs::write(shop.path("prog.debug"), bytes).unwrap();
        assert_eq!(refused(), Some(shop.path("prog.debug")));
        shop.remove("prog.debug");
        assert_eq!(refused(), None);
    }

    #[test]
    fn split_debug_information_that_is_not_there_is_named() {
        for flags in ["-gdwarf-4", "-gdwarf-5"] {
            let shop = Workshop::new(&format!("sources-split{flags}"));
            shop.write("a.c", SOURCE);
            let compile = format!("gcc -O2 -g -gsplit-dwarf {flags} -c a.c");
            if !shop.run_all(&format!("{compile}\ngcc -o prog a.o")) {
                return;
            }
            let split = || Sources::of(&ImageFile::open(&shop.path("prog")).unwrap()).split;
            assert_eq!(split(), None, "{flags}");
            shop.remove("a.dwo");
            assert_eq!(split().as_deref(), Some("a.dwo"), "{flags}");
        }
    }
}
