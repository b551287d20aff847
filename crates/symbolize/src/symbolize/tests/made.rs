//! Images and debug information that no compiler writes: small ones, and hostile ones.

use super::super::*;
use super::shape;
use flame_image::testing::elf::{GLOBAL_FUNC, TestElf};

/// An image with two functions, `alpha` and `beta`.
fn two_functions() -> ImageFile {
    let symbols =
        [("alpha", 0x2000, 0x10, GLOBAL_FUNC), ("_ZN4beta3runEi", 0x2010, 0x10, GLOBAL_FUNC)];
    ImageFile::from_bytes(TestElf { symbols: &symbols, ..TestElf::default() }.to_bytes()).unwrap()
}

#[test]
fn answers_stand_in_the_order_of_the_questions() {
    let image = two_functions();
    let questions = [[0x2000, 0x2010, 0x2020], [0x2020, 0x200f, 0x2000]];
    let jobs: Vec<_> =
        questions.iter().map(|at| (image.clone(), at.map(ImageAddress).to_vec())).collect();
    let (alpha, beta, none) = (vec!["alpha"], vec!["beta::run(int)"], vec![]);
    let expect = [[&alpha, &beta, &none], [&none, &alpha, &alpha]];
    for threads in [1, 2, 8] {
        let config =
            SymbolizeConfig { threads: NonZeroUsize::new(threads), ..SymbolizeConfig::default() };
        for (answers, expect) in symbolize_images(&jobs, &config).iter().zip(expect) {
            let names: Vec<Vec<String>> = answers
                .iter()
                .map(|answer| shape(answer).into_iter().map(|(name, _)| name).collect())
                .collect();
            assert_eq!(names.iter().collect::<Vec<_>>(), expect);
        }
    }
}

#[test]
fn an_address_without_symbol_says_why() {
    let answers =
        symbolize_image(&two_functions(), &[ImageAddress(0x2800)], &SymbolizeConfig::default());
    assert_eq!(answers, [Symbolized::Unknown(Missing::NoSymbol)]);
    assert_eq!(symbolize_image(&two_functions(), &[], &SymbolizeConfig::default()), []);
    assert_eq!(symbolize_images(&[], &SymbolizeConfig::default()), Vec::<Vec<Symbolized>>::new());
}

/// An image with a function `alpha` and a unit of DWARF 4 that has those entries, beside what says
/// that the unit has all of the image's code.
///
/// Abbreviation 2 is a subprogram with an address, a length and a name; 3 an inlined call without
/// anything, 4 one with an origin in the unit; these may have children. 5 is a subprogram with a list of
/// ranges, the first of which has 50,000.
fn with_entries(entries: &[u8]) -> ImageFile {
    let abbreviations = b"\x01\x11\x01\x11\x01\x12\x06\0\0\
        \x02\x2e\x01\x11\x01\x12\x06\x03\x08\0\0\
        \x03\x1d\x01\0\0\
        \x04\x1d\x01\x31\x13\x11\x01\x12\x06\0\0\
        \x05\x2e\x00\x55\x17\0\0\0";
    let mut unit = vec![4, 0, 0, 0, 0, 0, 8, 1];
    unit.extend(code(0x2000, 0x1000));
    unit.extend(entries);
    let info = [&(unit.len() as u32).to_le_bytes()[..], &unit].concat();
    let ranges = [0x1000_u64.to_le_bytes(), 0x1010_u64.to_le_bytes()].concat().repeat(50_000);
    let sections = [
        (".debug_abbrev", 0, &abbreviations[..]),
        (".debug_info", 0, &info),
        (".debug_ranges", 0, &ranges),
    ];
    let symbols = [("alpha", 0x2000, 0x10, GLOBAL_FUNC)];
    let elf = TestElf { sections: &sections, symbols: &symbols, ..TestElf::default() };
    ImageFile::from_bytes(elf.to_bytes()).unwrap()
}

/// An address and a length as entries have them.
fn code(start: u64, len: u32) -> Vec<u8> {
    [&start.to_le_bytes()[..], &len.to_le_bytes()].concat()
}

/// A function as an entry.
fn function(start: u64, len: u32, name: &str) -> Vec<u8> {
    [&[2][..], &code(start, len), name.as_bytes(), b"\0"].concat()
}

#[test]
fn entries_nested_without_end_are_left_out() {
    let start = function(0x2000, 0x10, "beta");
    let shape_of = |depth: usize| {
        let entries = [&start[..], &vec![3; depth], &vec![0; depth + 2]].concat();
        let image = with_entries(&entries);
        let answers = symbolize_image(&image, &[ImageAddress(0x2000)], &SymbolizeConfig::default());
        shape(&answers[0])
    };
    assert_eq!(shape_of(500), [("beta".to_owned(), 0)]);
    assert_eq!(shape_of(1_000_000), [("alpha".to_owned(), 0)]);
    let functions = start.repeat(100_000);
    let answers = symbolize_image(
        &with_entries(&functions),
        &[ImageAddress(0x2000)],
        &SymbolizeConfig::default(),
    );
    assert_eq!(shape(&answers[0]), [("alpha".to_owned(), 0)]);
}

#[test]
fn a_list_that_many_share_is_not_read_for_each() {
    // 5,000,000,000 ranges.
    let shared = [5, 0, 0, 0, 0].repeat(100_000);
    let entries = [&function(0x2000, 0x10, "beta")[..], &[0], &shared, &[0]].concat();
    let image = with_entries(&entries);
    let answers = symbolize_image(&image, &[ImageAddress(0x2000)], &SymbolizeConfig::default());
    assert_eq!(shape(&answers[0]), [("alpha".to_owned(), 0)]);
}

#[test]
fn a_name_that_leads_in_a_circle_ends() {
    // The call's origin is the call: its function has 26 bytes, the unit 24 before.
    let mut entries = function(0x2000, 0x10, "beta");
    let at = 11 + 13 + entries.len() as u32;
    entries.extend([&[4][..], &at.to_le_bytes(), &code(0x2000, 0x10)].concat());
    let image = with_entries(&[&entries[..], &[0; 3]].concat());
    let answers = symbolize_image(&image, &[ImageAddress(0x2004)], &SymbolizeConfig::default());
    assert_eq!(shape(&answers[0]), [("beta".to_owned(), 0)]);
}

#[test]
fn functions_that_the_linker_dropped_are_nowhere() {
    // Linkers leave 0 in the place of their addresses, and some are longer than what is before the
    // code of the image.
    let dropped = function(0, 0x4000, "dropped");
    let real = function(0x2000, 0x10, "real");
    let end = [0];
    for entries in [[&dropped[..], &end, &real, &end, &end], [&real, &end, &dropped, &end, &end]] {
        let image = with_entries(&entries.concat());
        let answers = symbolize_image(&image, &[ImageAddress(0x2004)], &SymbolizeConfig::default());
        assert_eq!(shape(&answers[0]), [("real".to_owned(), 0)]);
    }
}
