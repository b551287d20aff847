//! Split debug information as compilers write it and the tools pack it.

use std::fs;

use super::*;
use crate::test_frames::Frames as _;
use flame_image::testing::build::{FULL, SOURCE, Workshop};

/// A second unit, so that there is more than one to choose from.
const OTHER: &str = "
static inline __attribute__((always_inline)) int inner(int x) { return x * x; }
int other(int x) { return inner(x) + 1; }
";

/// Builds in the directory of the workshop, so that names of files are relative to it.
#[track_caller]
fn built(test: &str, flags: &str) -> Option<(Workshop, flame_profile::ImageAddress)> {
    let shop = Workshop::new(test);
    shop.write("a.c", SOURCE);
    shop.write("b.c", OTHER);
    let built = shop.run_all(&format!(
        "gcc -O2 -g -gsplit-dwarf {flags} -c a.c
         gcc -O2 -g -gsplit-dwarf {flags} -c b.c
         gcc -o prog a.o b.o"
    ));
    let at = built.then(|| shop.nop("prog"))?;
    assert!(shop.path("a.dwo").exists());
    Some((shop, at))
}

#[test]
fn split_units_are_found_where_they_were_compiled() {
    for flags in ["-gdwarf-4", "-gdwarf-5"] {
        let Some((shop, at)) = built(&format!("dwo{flags}"), flags) else { return };
        assert_eq!(shop.frames("prog", at), FULL, "{flags}");
        shop.move_to("prog", "elsewhere/prog");
        assert_eq!(shop.frames("elsewhere/prog", at), FULL, "{flags}: by DW_AT_comp_dir");
        shop.remove("a.dwo");
        // The skeleton has no functions; the symbol table still has.
        assert_eq!(shop.frames("elsewhere/prog", at), ["hidden"], "{flags}");
    }
}

#[test]
fn split_units_have_the_lines_and_calls_of_whole_ones() {
    let places = |shop: &Workshop, at| {
        let image = ImageFile::open(&shop.path("prog")).unwrap();
        let config = crate::SymbolizeConfig::default();
        match crate::symbolize_image(&image, &[at], &config).pop() {
            Some(crate::Symbolized::Frames(frames)) => frames
                .into_iter()
                .map(|f| (f.name.to_string(), f.file.unwrap().to_string(), f.line.unwrap()))
                .collect(),
            _ => Vec::new(),
        }
    };
    for flags in ["-gdwarf-4", "-gdwarf-5"] {
        let Some((shop, at)) = built(&format!("dwo-lines{flags}"), flags) else { return };
        let split = places(&shop, at);
        assert!(shop.run(&format!("gcc -O2 -g {flags} -o prog a.c b.c")));
        let whole = places(&shop, shop.nop("prog"));
        let file = shop.path("a.c").display().to_string();
        let expect = [("twist", 3), ("turn", 7), ("hidden", 10)];
        let expect = expect.map(|(name, line)| (name.to_owned(), file.clone(), line));
        assert_eq!(whole, expect, "{flags}");
        assert_eq!(split, expect, "{flags}");
    }
}

#[test]
fn split_units_are_found_beside_an_image_that_was_moved() {
    let Some((shop, at)) = built("dwo-moved", "-fdebug-prefix-map=/=/nowhere/") else { return };
    assert_eq!(shop.frames("prog", at), FULL, "beside the image");
    shop.move_to("a.dwo", "d/a.dwo");
    assert_eq!(shop.frames("prog", at), ["hidden"]);
    let with = |search: &mut flame_image::DebugSearch| search.directories.push(shop.path("d"));
    assert_eq!(shop.frames_with("prog", at, with), FULL, "in a directory that was named");
}

#[test]
fn a_split_unit_of_another_build_is_not_believed() {
    for flags in ["-gdwarf-4", "-gdwarf-5"] {
        let Some((shop, at)) = built(&format!("dwo-id{flags}"), flags) else { return };
        fs::copy(shop.path("b.dwo"), shop.path("a.dwo")).unwrap();
        assert_eq!(shop.frames("prog", at), ["hidden"], "{flags}");
    }
}

#[test]
fn packages_are_found_beside_the_image_and_its_debug_file() {
    // Neither packer of Debian 12 survives the DWARF 5 of its GCC: see below for that.
    for packer in ["dwp -e prog", "llvm-dwp -e prog -o prog.dwp"] {
        let test = packer.split(' ').next().unwrap();
        let Some((shop, at)) = built(test, "-gdwarf-4") else { return };
        if !shop.run(packer) {
            continue;
        }
        shop.remove("a.dwo");
        shop.remove("b.dwo");
        assert_eq!(shop.frames("prog", at), FULL, "{packer}");

        let stripped = shop.run_all(
            "objcopy --only-keep-debug prog prog.debug
             strip prog
             objcopy --add-gnu-debuglink=prog.debug prog",
        );
        assert!(stripped);
        assert_eq!(shop.frames("prog", at), FULL, "{packer}, of a stripped image");
        shop.move_to("prog.dwp", "prog.debug.dwp");
        assert_eq!(shop.frames("prog", at), FULL, "{packer}, named after the debug file");
        shop.move_to("prog.debug.dwp", "d/prog.dwp");
        assert_eq!(shop.frames("prog", at), ["hidden"], "{packer}");
        let with = |search: &mut flame_image::DebugSearch| search.directories.push(shop.path("d"));
        assert_eq!(shop.frames_with("prog", at, with), FULL, "{packer}");
    }
}

const RUST_SOURCE: &str = "
#[inline(always)]
fn spin(turns: u64) -> u64 {
    std::hint::black_box(turns) * 3
}
#[inline(never)]
fn hidden(turns: u64) -> u64 {
    spin(turns) + 1
}
fn main() {
    std::process::exit((hidden(std::env::args().count() as u64) == 0) as i32);
}
";

#[test]
fn packages_of_the_rust_compiler_are_read() {
    for version in ["4", "5"] {
        let shop = Workshop::new(&format!("rust-dwp-{version}"));
        shop.write("prog.rs", RUST_SOURCE);
        let flags = format!("-C split-debuginfo=packed -C dwarf-version={version}");
        if !shop.run(&format!("rustc -O -g {flags} prog.rs")) {
            return;
        }
        assert!(shop.path("prog.dwp").exists());
        let image = ImageFile::open(&shop.path("prog")).unwrap();
        let symbols = image.elf().unwrap();
        let hidden = object::Object::symbols(&symbols)
            .find(|symbol| object::ObjectSymbol::name(symbol).is_ok_and(|n| n.contains("6hidden")));
        let hidden = object::ObjectSymbol::address(&hidden.expect("it was not inlined"));
        let at = |offset| shop.frames("prog", flame_profile::ImageAddress(hidden + offset));
        let all: Vec<Vec<String>> = (0..24).map(at).collect();
        let inlined = ["core::hint::black_box", "prog::spin", "prog::hidden"];
        assert!(all.iter().any(|frames| *frames == inlined), "DWARF {version}: {all:?}");
        shop.remove("prog.dwp");
        assert_eq!(at(0), ["prog::hidden"], "the symbol table still has it");
    }
}

#[test]
fn damaged_split_files_give_no_names_and_no_harm() {
    for (flags, file) in [("-gdwarf-5", "a.dwo"), ("-gdwarf-4", "prog.dwp")] {
        let Some((shop, at)) = built(&format!("dwo-damaged{flags}"), flags) else { return };
        if file == "prog.dwp" && !shop.run("dwp -e prog") {
            continue;
        }
        let whole = fs::read(shop.path(file)).unwrap();
        for name in ["a.dwo", "b.dwo"] {
            let _ = fs::remove_file(shop.path(name));
        }
        fs::write(shop.path(file), &whole).unwrap();
        assert_eq!(shop.frames("prog", at), FULL);
        for start in (0..whole.len()).step_by(61) {
            let mut damaged = whole.clone();
            let end = damaged.len().min(start + 3);
            damaged[start..end].fill(0xff);
            fs::write(shop.path(file), &damaged).unwrap();
            // The symbol table still has the name.
            let frames = shop.frames("prog", at);
            assert_eq!(frames.last().map(String::as_str), Some("hidden"), "{file} at {start}");
            assert!(frames.len() <= FULL.len(), "{file} at {start}: {frames:?}");
            fs::write(shop.path(file), &whole[..start]).unwrap();
            assert_eq!(shop.frames("prog", at), ["hidden"], "{file} cut at {start}");
        }
    }
}

#[test]
fn long_lists_are_dropped_without_a_stack_overflow() {
    let units = SplitUnits::new(
        &ImageFile::from_bytes(flame_image::testing::elf::TestElf::default().to_bytes()).unwrap(),
        RunTimeEndian::Little,
    );
    // Each look walks the list, so the list is built from its end here.
    let mut node = Link::new();
    for id in 0..200_000 {
        let next = std::mem::take(&mut node);
        let sections = None;
        assert!(node.set(Box::new(Node { id: DwoId(id), sections, next })).is_ok());
    }
    assert!(units.first.set(node.take().unwrap()).is_ok());
    drop(units);
}
