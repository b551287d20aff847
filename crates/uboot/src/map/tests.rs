use super::*;

fn names(map: &SymbolMap) -> Vec<&str> {
    map.symbols().iter().map(|symbol| symbol.name.as_str()).collect()
}

#[test]
fn a_map_has_the_symbols_of_code_in_order() {
    let text = "0000000000001040 t b\n0000000000001000 T a\r\n\
                0000000000000400 A zero\n0000000000002000 D data\n                 U puts\n\
                                 w __gmon_start__\n\n0000000000001080 W c\nnonsense\n1090 w last";
    let map = SymbolMap::parse(text.as_bytes(), 16).unwrap();
    assert_eq!(names(&map), ["a", "b", "c", "last"]);
    assert_eq!((map.text_start(), map.skipped_lines()), (0x1000, 1));
}

#[test]
fn a_function_is_named_where_it_starts_in_the_site() {
    let map = SymbolMap::parse(b"1000 T a\n1044 T b\n1100 T c\n", 16).unwrap();
    let at = |offset| map.function_at(offset).map(|index| map.symbols()[index].name.as_str());
    assert_eq!((at(0), at(0x40), at(0x50), at(0x30)), (Some("a"), Some("b"), None, None));
    let around =
        |offset| map.function_around(offset).map(|index| map.symbols()[index].name.as_str());
    assert_eq!((around(0x30), around(0x40), around(0xf0)), (Some("a"), Some("b"), Some("b")));
    assert_eq!((around(0x100), around(0xfff0)), (Some("c"), Some("c")));
    assert_eq!(around(0xffff_0000), None);
}

#[test]
fn of_several_names_the_global_one_is_taken() {
    let text = b"1000 t a.localalias\n1000 T a\n1000 W a_weak\n1010 t b\n1018 t c\n";
    let map = SymbolMap::parse(text, 16).unwrap();
    let name = |offset| map.symbols()[map.function_at(offset).unwrap()].name.as_str();
    assert_eq!((name(0), name(0x10)), ("a", "b"));
    let fine = SymbolMap::parse(text, 4).unwrap();
    assert_eq!(fine.symbols()[fine.function_at(0x18).unwrap()].name, "c");
}

#[test]
fn a_map_cut_at_any_byte_is_read_as_far_as_it_goes() {
    let text = crate::test_traces::MAP.as_bytes();
    for len in 0..text.len() {
        match SymbolMap::parse(&text[..len], 16) {
            Ok(map) => assert_eq!(map.text_start(), 0x8000_0000),
            Err(error) => {
                assert!(matches!(error, UbootError::NoTextSymbols), "{error}");
                assert!(len < 20);
            }
        }
        // As proftool does: the line that is cut is left out, or refused.
        if let Ok(map) = ProftoolMap::parse(&text[..len]) {
            let lines = text[..len].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(map.symbols.len(), lines - usize::from(lines > 6));
        }
    }
}

#[test]
fn proftool_reads_lines_as_scanf_does() {
    assert_eq!(scan(b"  1f T name rest\n"), Some((0x1f, b'T', Some("name".to_owned()))));
    assert_eq!(scan(b"0x1f t\n"), Some((0x1f, b't', None)));
    assert_eq!(scan(b"U name\n"), None);
    assert_eq!(scan(b"\n"), None);
    assert_eq!(scan(b"10T name\n"), Some((0x10, b'T', Some("name".to_owned()))));
    let long = format!("10 T {}\n", "n".repeat(150));
    assert_eq!(scan(long.as_bytes()).unwrap().2.unwrap().len(), 100);
}

#[test]
fn proftool_fails_on_lines_without_address() {
    let error = ProftoolMap::parse(b"1000 T a\n         U b\n").unwrap_err();
    assert!(matches!(error, UbootError::MapLine(2)));
    // Anything after 499 bytes counts as a line of its own, which is not a symbol.
    let long = format!("1000 T {}\n", "n".repeat(600));
    assert!(matches!(ProftoolMap::parse(long.as_bytes()), Err(UbootError::MapLine(2))));
}

#[test]
fn proftool_never_finds_the_last_caller() {
    let map = ProftoolMap::parse(b"1000 T a\n1040 T b\n1080 T c\n").unwrap();
    assert_eq!((map.function_at(0x80), map.function_around(0x90)), (Some(2), 1));
    assert_eq!(map.function_around(0xffff_fff0), 1);
}
