use super::*;
use crate::testing::elf::{
    GLOBAL_FUNC, GLOBAL_NOTYPE, GLOBAL_OBJECT, LOCAL_FUNC, LOCAL_NOTYPE, TEXT, TEXT_LEN, TestElf,
    WEAK_FUNC,
};

/// The symbols are those of `.symtab`; each expectation is an address and the name there.
#[track_caller]
fn check(symbols: &[(&str, u64, u64, u8)], expect: &[(u64, Option<&str>)]) {
    check_elf(&TestElf { symbols, ..TestElf::default() }, expect);
}

#[track_caller]
fn check_elf(elf: &TestElf, expect: &[(u64, Option<&str>)]) {
    let image = ImageFile::from_bytes(elf.to_bytes()).unwrap();
    for (address, name) in expect {
        let found = image.symbols().lookup(ImageAddress(*address));
        let found = found.map(|symbol| std::str::from_utf8(symbol.name).unwrap());
        assert_eq!(found, *name, "{address:#x}");
    }
}

#[test]
fn a_symbol_covers_its_size_and_no_more() {
    check(
        &[("alpha", 0x2010, 0x10, GLOBAL_FUNC), ("beta", 0x2040, 0x10, LOCAL_FUNC)],
        &[
            (0x200f, None),
            (0x2010, Some("alpha")),
            (0x201f, Some("alpha")),
            (0x2020, None),
            (0x2040, Some("beta")),
            (0x204f, Some("beta")),
            (0x2050, None),
            (0x2fff, None),
        ],
    );
}

#[test]
fn a_symbol_without_size_reaches_to_the_next_or_the_end_of_the_section() {
    check(
        &[
            ("_start", 0x2000, 0, GLOBAL_NOTYPE),
            ("main", 0x2030, 8, GLOBAL_FUNC),
            ("tail", 0x2f00, 0, LOCAL_NOTYPE),
        ],
        &[
            (0x2000, Some("_start")),
            (0x202f, Some("_start")),
            (0x2030, Some("main")),
            (0x2038, None),
            (0x2fff, Some("tail")),
            (TEXT + TEXT_LEN, None),
        ],
    );
}

#[test]
fn a_label_inside_a_function_does_not_hide_it() {
    check(
        &[("clone3", 0x2000, 0x40, GLOBAL_FUNC), ("thread_start", 0x2020, 0, LOCAL_NOTYPE)],
        &[(0x2020, Some("clone3")), (0x203f, Some("clone3")), (0x2040, None)],
    );
}

#[test]
fn a_function_inside_another_is_the_one_that_is_named() {
    check(
        &[("outer", 0x2000, 0x40, GLOBAL_FUNC), ("inner", 0x2010, 0x10, LOCAL_FUNC)],
        &[(0x200f, Some("outer")), (0x2010, Some("inner")), (0x2020, Some("outer"))],
    );
}

#[test]
fn the_plainest_alias_is_chosen() {
    let cases: [(&[(&str, u8)], &str); 7] = [
        (&[("weak", WEAK_FUNC), ("global_name", GLOBAL_FUNC), ("l", LOCAL_FUNC)], "global_name"),
        (&[("lo", LOCAL_FUNC), ("weak", WEAK_FUNC)], "weak"),
        (
            &[("__executable_start", GLOBAL_NOTYPE), ("first_function", LOCAL_FUNC)],
            "first_function",
        ),
        (
            &[("__libc_write", GLOBAL_FUNC), ("_write", GLOBAL_FUNC), ("write_it", GLOBAL_FUNC)],
            "write_it",
        ),
        (&[("abcd", GLOBAL_FUNC), ("abc", GLOBAL_FUNC)], "abc"),
        (&[("abd", GLOBAL_FUNC), ("abc", GLOBAL_FUNC)], "abc"),
        (&[("_ZN1a1bEv", GLOBAL_FUNC), ("some_long_name_in_c", GLOBAL_FUNC)], "_ZN1a1bEv"),
    ];
    for (aliases, expect) in cases {
        let mut symbols: Vec<_> =
            aliases.iter().map(|(name, info)| (*name, 0x2100, 4, *info)).collect();
        check(&symbols, &[(0x2100, Some(expect))]);
        symbols.reverse();
        check(&symbols, &[(0x2100, Some(expect))]);
    }
}

#[test]
fn an_alias_without_size_neither_names_nor_shrinks_the_function() {
    check(
        &[("other.cold", 0x2000, 0, GLOBAL_FUNC), ("run", 0x2000, 0x20, LOCAL_FUNC)],
        &[(0x2000, Some("run")), (0x201f, Some("run")), (0x2020, None)],
    );
    check(
        &[("short", 0x2000, 0x10, GLOBAL_FUNC), ("longer", 0x2000, 0x20, GLOBAL_FUNC)],
        &[(0x201f, Some("short")), (0x2020, None)],
    );
}

#[test]
fn data_and_marks_of_tools_are_no_functions() {
    check(
        &[
            ("table", 0x2000, 8, GLOBAL_OBJECT),
            ("$x", 0x2010, 0, LOCAL_NOTYPE),
            (".L5", 0x2020, 0, LOCAL_NOTYPE),
        ],
        &[(0x2000, None), (0x2010, None), (0x2020, None)],
    );
}

#[test]
fn symbols_do_not_leave_their_section() {
    let far = TEXT + TEXT_LEN + 0x10;
    check(
        &[("huge", 0x2800, u64::MAX, GLOBAL_FUNC), ("outside", far, 8, GLOBAL_FUNC)],
        &[(0x2fff, Some("huge")), (TEXT + TEXT_LEN, None), (far, None)],
    );
}

#[test]
fn dynamic_symbols_lose_their_version() {
    let dynamic_symbols = [("memcpy@@GLIBC_2.14", 0x2000, 8, GLOBAL_FUNC)];
    check_elf(
        &TestElf { dynamic_symbols: &dynamic_symbols, ..TestElf::default() },
        &[(0x2000, Some("memcpy"))],
    );
}

#[test]
fn both_tables_are_read() {
    let symbols = [("local", 0x2000, 8, LOCAL_FUNC)];
    let dynamic_symbols = [("exported", 0x2010, 8, GLOBAL_FUNC), ("alias", 0x2000, 8, GLOBAL_FUNC)];
    let elf =
        TestElf { symbols: &symbols, dynamic_symbols: &dynamic_symbols, ..TestElf::default() };
    check_elf(&elf, &[(0x2000, Some("alias")), (0x2010, Some("exported"))]);
}
