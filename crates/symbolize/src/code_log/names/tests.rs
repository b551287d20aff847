use super::*;
use crate::code_log::CodeLogKind;

const ALL: u64 = u64::MAX;

/// Each expectation is an address, the place that only counts what stands before it, and the name.
#[track_caller]
fn check(text: &[u8], expect: &[(u64, u64, Option<&str>)], skipped: u64) {
    let map = CodeLog::from_bytes(text.to_vec(), CodeLogKind::PerfMap).unwrap();
    let wanted = |(address, before, _): &(u64, u64, Option<&str>)| WantedCode {
        address: ProcessAddress(*address),
        before: FileOffset(*before),
    };
    let found = map.names(&expect.iter().map(wanted).collect::<Vec<_>>()).unwrap();
    assert_eq!(found.skipped, skipped);
    for ((address, before, expect), name) in expect.iter().zip(&found.names) {
        let name = name.as_ref().map(|name| &*name.name);
        assert_eq!(name, *expect, "{address:#x} before {before}");
    }
}

#[test]
fn names_may_have_spaces_and_numbers_a_prefix() {
    let text = b"7f00 20 LazyCompile:*fib /srv/app.js:3:1\n0x7f20 0x10 py::main:/srv/a b.py\r\n";
    check(
        text,
        &[
            (0x7eff, ALL, None),
            (0x7f00, ALL, Some("LazyCompile:*fib /srv/app.js:3:1")),
            (0x7f1f, ALL, Some("LazyCompile:*fib /srv/app.js:3:1")),
            (0x7f20, ALL, Some("py::main:/srv/a b.py")),
            (0x7f30, ALL, None),
        ],
        0,
    );
}

#[test]
fn the_last_line_that_covers_an_address_wins() {
    let text = b"1000 100 old\n1040 20 new\n10f0 20 next\n1040 10 newest\n";
    check(
        text,
        &[
            (0x103f, ALL, Some("old")),
            (0x1040, ALL, Some("newest")),
            (0x1050, ALL, Some("new")),
            (0x1060, ALL, Some("old")),
            (0x10ef, ALL, Some("old")),
            (0x10f0, ALL, Some("next")),
            (0x110f, ALL, Some("next")),
            (0x1110, ALL, None),
        ],
        0,
    );
}

#[test]
fn of_a_reused_address_the_last_line_before_the_sample_counts() {
    // The lines stand at 0, 11, 22 and 33.
    let text = b"1000 10 aa\n1000 10 bb\n1000 10 cc\n2000 10 dd\n";
    check(
        text,
        &[
            (0x1000, 11, Some("aa")),
            (0x1008, 22, Some("bb")),
            (0x1000, 33, Some("cc")),
            (0x1000, ALL, Some("cc")),
            // Nothing before covers it: it was written down after it had begun to run.
            (0x1000, 0, Some("aa")),
            (0x2000, 33, Some("dd")),
            (0x2000, 22, None),
        ],
        0,
    );
}

#[test]
fn python_and_java_names_are_whole() {
    let text = b"\
7f3c1a2b4000 5c0 py::<module>:/srv/app/main.py
7f3c1a2b45c0 5c0 py::Handler.do_GET:/srv/app/http server.py
0x00007fd5bcec71c0 0x0000000000000270 java.lang.Object Unsafe.get(java.lang.Object, long)
";
    check(
        text,
        &[
            (0x7f3c_1a2b_4010, ALL, Some("py::<module>:/srv/app/main.py")),
            (0x7f3c_1a2b_45c0, ALL, Some("py::Handler.do_GET:/srv/app/http server.py")),
            (0x7fd5_bcec_71c0, ALL, Some("java.lang.Object Unsafe.get(java.lang.Object, long)")),
        ],
        0,
    );
}

#[test]
fn ranges_end_with_the_address_space() {
    let text = b"fffffffffffffff0 ffff last\n10 0 empty\n0 ffffffffffffffff all\n";
    check(text, &[(u64::MAX - 1, ALL, Some("all")), (u64::MAX - 1, 27, Some("last"))], 0);
    check(b"10 0 empty\n", &[(0x10, ALL, None), (0x10, 0, None)], 0);
}

#[test]
fn text_cut_at_any_byte_gives_a_start_of_the_name() {
    let text = b"1000 10 Interpreter\n2000 10 LFib;::fib\n";
    for len in 0..text.len() {
        let map = CodeLog::from_bytes(text[..len].to_vec(), CodeLogKind::PerfMap).unwrap();
        let before = FileOffset(ALL);
        let wanted = [0x1000, 0x2000].map(|at| WantedCode { address: ProcessAddress(at), before });
        let found = map.names(&wanted).unwrap();
        for (whole, name) in ["Interpreter", "LFib;::fib"].iter().zip(&found.names) {
            let name = name.as_ref().map_or("", |name| &*name.name);
            assert!(whole.starts_with(name), "{len}: {name}");
        }
    }
}
