//! Names that stripped programs keep.

use flame_image::testing::build::{SOURCE, Workshop};

use super::*;
use crate::test_frames::Frames as _;

#[test]
fn stripped_programs_keep_the_names_of_start_and_main() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let shop = Workshop::new("entry");
    shop.write("a.c", SOURCE);
    for (number, flags) in
        ["-O2", "-O2 -no-pie", "-O2 -static", "-O2 -static-pie"].iter().enumerate()
    {
        let (whole, bare) = (format!("whole{number}"), format!("bare{number}"));
        if !shop.run_all(&format!("gcc {flags} -o {whole} a.c\nobjcopy -S {whole} {bare}")) {
            return;
        }
        let image = ImageFile::open(&shop.path(&whole)).unwrap();
        let elf = image.elf().unwrap();
        for name in ["_start", "main"] {
            let symbol = elf.symbols().find(|s| object::ObjectSymbol::name(s) == Ok(name));
            let symbol = symbol.expect("the program has it");
            let start = object::ObjectSymbol::address(&symbol);
            let end = start + object::ObjectSymbol::size(&symbol).max(1);
            for at in [start, end - 1] {
                assert_eq!(shop.frames(&bare, ImageAddress(at)), [name], "{flags} {at:#x}");
            }
        }
        let nop = shop.nop(&whole);
        assert_eq!(shop.frames(&bare, nop), [""; 0], "{flags}: what is lost is lost");
    }
}
