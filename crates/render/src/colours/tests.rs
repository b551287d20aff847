//! The colours are those that people know.

use flame_profile::{Columns, FoldedReader, SiblingOrder, ValueType};

use super::classic::Hue;
use super::vector::Vector;
use super::*;

const NAMES: [&str; 19] = [
    "main",
    "do_syscall_64_[k]",
    "std::vec::Vec<T>::push",
    "java/util/HashMap.get_[j]",
    "Ljava/lang/Thread.run",
    "libc.so`read",
    "a",
    "ab",
    "__x64_sys_read_[k]",
    "größe",
    "日本",
    "app.js:12",
    "[unknown]",
    "core::fmt::write_[i]",
    "swapper",
    "aaaaaaaaaaaaaaaa",
    "zz`top`x",
    "Perl_pp_entersub",
    "operator new(unsigned long)",
];

/// Palette, then the colour of each of `NAMES`: what `flamegraph.pl --hash --colors PALETTE` of
/// commit 41fee1f gives.
const TABLE: &[(&str, [u32; 19])] = &[
    (
        "hot",
        [
            0xf7532e, 0xecbd22, 0xec9222, 0xed6823, 0xf38f29, 0xf0b827, 0xeb8c21, 0xe26818,
            0xec9a22, 0xf5a62c, 0xf5b02c, 0xf29629, 0xf2b428, 0xee8524, 0xf38d29, 0xe87d1d,
            0xf4a42b, 0xe4c819, 0xf7c32e,
        ],
    ),
    (
        "mem",
        [
            0x00e84c, 0x00ddad, 0x00dd86, 0x00de5f, 0x00e482, 0x00e1a8, 0x00dc80, 0x00d35f,
            0x00dd8d, 0x00e698, 0x00e6a1, 0x00e389, 0x00e3a4, 0x00df79, 0x00e481, 0x00d972,
            0x00e595, 0x00d5b7, 0x00e8b2,
        ],
    ),
    (
        "io",
        [
            0x6565ec, 0x8181e0, 0x7676e0, 0x6b6be1, 0x7575e7, 0x8080e5, 0x7474df, 0x6b6bd6,
            0x7878e0, 0x7b7bea, 0x7e7eea, 0x7777e7, 0x7f7fe6, 0x7272e2, 0x7474e7, 0x7070db,
            0x7a7ae9, 0x8484d7, 0x8383ec,
        ],
    ),
    (
        "wakeup",
        [
            0x47b8b8, 0x63d2d2, 0x58c8c8, 0x4dbdbd, 0x57c7c7, 0x62d1d1, 0x56c6c6, 0x4dbdbd,
            0x5ac9c9, 0x5dcccc, 0x60cfcf, 0x59c9c9, 0x61d0d0, 0x54c4c4, 0x56c6c6, 0x52c2c2,
            0x5ccccc, 0x66d4d4, 0x65d3d3,
        ],
    ),
    (
        "chain",
        [
            0x6565df, 0x8181f6, 0x7676ec, 0x6b6be3, 0x7575ec, 0x8080f5, 0x7474eb, 0x6b6be3,
            0x7878ee, 0x7b7bf1, 0x7e7ef3, 0x7777ed, 0x7f7ff4, 0x7272ea, 0x7474eb, 0x7070e8,
            0x7a7af0, 0x8484f8, 0x8383f7,
        ],
    ),
    (
        "java",
        [
            0xdb4f4f, 0xf38f00, 0xd2d23e, 0x4de04d, 0x57ea57, 0xf47272, 0xe96262, 0xe05656,
            0xe98500, 0xef6b6b, 0xf26f6f, 0xec6666, 0xf37070, 0x54c4c4, 0xe96363, 0xe55d5d,
            0xef6b6b, 0xf77777, 0xf67676,
        ],
    ),
    (
        "js",
        [
            0xdb4f4f, 0xf38f00, 0xd2d23e, 0x4de04d, 0xea6363, 0xf47272, 0xe96262, 0xe05656,
            0xe98500, 0xef6b6b, 0xf26f6f, 0x59c9c9, 0xf37070, 0xcece3d, 0xe96363, 0xe55d5d,
            0xef6b6b, 0xf77777, 0xf67676,
        ],
    ),
    (
        "perl",
        [
            0xdb4f4f, 0xf38f00, 0xd2d23e, 0xe05656, 0xea6363, 0xf47272, 0xe96262, 0xe05656,
            0xe98500, 0xef6b6b, 0xf26f6f, 0xec6666, 0xf37070, 0xcece3d, 0xe96363, 0xe55d5d,
            0xef6b6b, 0x66f766, 0xf67676,
        ],
    ),
    (
        "red",
        [
            0xdb4f4f, 0xf57373, 0xeb6565, 0xe05656, 0xea6363, 0xf47272, 0xe96262, 0xe05656,
            0xec6767, 0xef6b6b, 0xf26f6f, 0xec6666, 0xf37070, 0xe76060, 0xe96363, 0xe55d5d,
            0xef6b6b, 0xf77777, 0xf67676,
        ],
    ),
    (
        "green",
        [
            0x47db47, 0x63f563, 0x58eb58, 0x4de04d, 0x57ea57, 0x62f462, 0x56e956, 0x4de04d,
            0x5aec5a, 0x5def5d, 0x60f260, 0x59ec59, 0x61f361, 0x54e754, 0x56e956, 0x52e552,
            0x5cef5c, 0x66f766, 0x65f665,
        ],
    ),
    (
        "blue",
        [
            0x6565df, 0x8181f6, 0x7676ec, 0x6b6be3, 0x7575ec, 0x8080f5, 0x7474eb, 0x6b6be3,
            0x7878ee, 0x7b7bf1, 0x7e7ef3, 0x7777ed, 0x7f7ff4, 0x7272ea, 0x7474eb, 0x7070e8,
            0x7a7af0, 0x8484f8, 0x8383f7,
        ],
    ),
    (
        "aqua",
        [
            0x47b8b8, 0x63d2d2, 0x58c8c8, 0x4dbdbd, 0x57c7c7, 0x62d1d1, 0x56c6c6, 0x4dbdbd,
            0x5ac9c9, 0x5dcccc, 0x60cfcf, 0x59c9c9, 0x61d0d0, 0x54c4c4, 0x56c6c6, 0x52c2c2,
            0x5ccccc, 0x66d4d4, 0x65d3d3,
        ],
    ),
    (
        "yellow",
        [
            0xc2c239, 0xdcdc42, 0xd2d23e, 0xc7c73b, 0xd1d13e, 0xdbdb42, 0xd0d03e, 0xc7c73b,
            0xd3d33f, 0xd6d640, 0xd9d941, 0xd3d33f, 0xdada41, 0xcece3d, 0xd0d03e, 0xcccc3c,
            0xd6d640, 0xdede43, 0xdddd43,
        ],
    ),
    (
        "purple",
        [
            0xd565d5, 0xf381f3, 0xe776e7, 0xdb6bdb, 0xe675e6, 0xf280f2, 0xe574e5, 0xdb6bdb,
            0xe978e9, 0xed7bed, 0xef7eef, 0xe877e8, 0xf07ff0, 0xe372e3, 0xe574e5, 0xe170e1,
            0xec7aec, 0xf684f6, 0xf583f5,
        ],
    ),
    (
        "orange",
        [
            0xd57100, 0xf38f00, 0xe78300, 0xdb7700, 0xe68200, 0xf28e00, 0xe58100, 0xdb7700,
            0xe98500, 0xed8900, 0xef8b00, 0xe88400, 0xf08c00, 0xe37f00, 0xe58100, 0xe17d00,
            0xec8800, 0xf69200, 0xf59100,
        ],
    ),
];

/// A tree of folded text.
fn tree_of(text: &str) -> CallTree {
    let mut reader = FoldedReader::new(Columns::detect(text.as_bytes()), SiblingOrder::First);
    reader.read(&mut text.as_bytes()).unwrap();
    assert_eq!(reader.skipped_lines(), 0);
    reader.finish(ValueType::samples())
}

fn config(palette: &str, variation: Variation) -> ColourConfig {
    ColourConfig { palette: palette.parse().unwrap(), variation, ..ColourConfig::default() }
}

/// The fills of all nodes but the root.
fn fills(tree: &CallTree, config: &ColourConfig) -> Vec<String> {
    let colours = Colours::of(tree, config);
    let fill = |node| colours.fills[colours.fill(tree, node) as usize].to_string();
    (1..tree.nodes().len()).map(fill).collect()
}

#[test]
fn hashed_colours_are_those_of_flamegraph_pl() {
    let text: String = NAMES.iter().map(|name| format!("{name} 1\n")).collect();
    let tree = tree_of(&text);
    assert_eq!(TABLE.len(), 15);
    for (palette, expect) in TABLE {
        let found = fills(&tree, &config(palette, Variation::Prefix));
        let expect: Vec<String> = expect.iter().map(|colour| format!("#{colour:06x}")).collect();
        for ((name, found), expect) in NAMES.iter().zip(found).zip(expect) {
            assert_eq!(found, expect, "{palette} {name}");
        }
    }
}

#[test]
fn ranges_reach_from_end_to_end() {
    let ends = |hue: Hue| {
        let most = 1.0 - f64::EPSILON;
        (hue.colour(Vector(0.0, 0.0, 0.0)), hue.colour(Vector(most, most, most)))
    };
    let cases = [
        (Hue::Hot, Rgb(205, 0, 0), Rgb(254, 229, 54)),
        (Hue::Mem, Rgb(0, 190, 0), Rgb(0, 239, 209)),
        (Hue::Io, Rgb(80, 80, 190), Rgb(139, 139, 244)),
        (Hue::Red, Rgb(200, 50, 50), Rgb(254, 129, 129)),
        (Hue::Green, Rgb(50, 200, 50), Rgb(109, 254, 109)),
        (Hue::Blue, Rgb(80, 80, 205), Rgb(139, 139, 254)),
        (Hue::Yellow, Rgb(175, 175, 50), Rgb(229, 229, 69)),
        (Hue::Purple, Rgb(190, 80, 190), Rgb(254, 139, 254)),
        (Hue::Aqua, Rgb(50, 165, 165), Rgb(109, 219, 219)),
        (Hue::Orange, Rgb(190, 90, 0), Rgb(254, 154, 0)),
    ];
    for (hue, from, to) in cases {
        assert_eq!(ends(hue), (from, to), "{hue:?}");
    }
}

/// The hue that a palette gives a name.
#[track_caller]
fn check_hue(palette: &str, name: &str, expect: Hue) {
    let (bare, kind) = FrameKind::of_annotated(name.as_bytes());
    let name = std::str::from_utf8(bare).unwrap().to_owned();
    let palette: Palette = palette.parse().unwrap();
    assert_eq!(palette.hue_of(&Label { name, kind }), Some(expect));
}

#[test]
fn languages_have_their_rules() {
    check_hue("java", "java/util/X.y", Hue::Green);
    check_hue("java", "Lorg/x/Y;::z", Hue::Green);
    check_hue("java", "javax.Y", Hue::Red);
    check_hue("java", "Foo:::bar", Hue::Green);
    check_hue("java", "Foo::bar", Hue::Yellow);
    check_hue("java", "x_[j]", Hue::Green);
    check_hue("java", "x_[i]", Hue::Aqua);
    check_hue("java", "x_[k]", Hue::Orange);
    check_hue("java", "x", Hue::Red);
    check_hue("js", "/app/x.js_[j]", Hue::Green);
    check_hue("js", "Builtin_[j]", Hue::Aqua);
    check_hue("js", "v8::internal", Hue::Yellow);
    check_hue("js", "/app/node_modules/x.js", Hue::Purple);
    check_hue("js", "/app/x.js", Hue::Green);
    check_hue("js", "Stub:x", Hue::Aqua);
    check_hue("js", " ", Hue::Green);
    check_hue("js", "x_[k]", Hue::Orange);
    check_hue("js", "x", Hue::Red);
    check_hue("perl", "a::b", Hue::Yellow);
    check_hue("perl", "Perl_x", Hue::Green);
    check_hue("perl", "x.pl", Hue::Green);
    check_hue("perl", "x_[k]", Hue::Orange);
    check_hue("perl", "x", Hue::Red);
    check_hue("python", "/usr/lib/python3.11/json.py", Hue::Yellow);
    check_hue("python", "/v/site-packages/numpy/x.py", Hue::Aqua);
    check_hue("python", "<built-in method>", Hue::Yellow);
    check_hue("python", "app.py", Hue::Red);
    check_hue("rust", "prog`<core::x as Y>::z", Hue::Orange);
    check_hue("rust", "alloc::vec", Hue::Orange);
    check_hue("rust", "<core::future::GenFuture<T>>::poll", Hue::Aqua);
    check_hue("rust", "tokio::run", Hue::Aqua);
    check_hue("rust", "main", Hue::Yellow);
    check_hue("wakeup", "x", Hue::Aqua);
    check_hue("chain", "x_[w]", Hue::Aqua);
    check_hue("chain", "x", Hue::Blue);
}

#[track_caller]
fn check_legend(palette: &str, text: &str, expect: &[&str]) {
    let colours = Colours::of(&tree_of(text), &config(palette, Variation::Name));
    let words: Vec<&str> = colours.legend.iter().map(|(_, word)| &**word).collect();
    assert_eq!(words, expect, "{palette}");
}

#[test]
fn the_legend_has_the_hues_that_the_graph_holds() {
    let text = "java;java/lang/Thread.run;Foo::bar;sys_read_[k] 1\n";
    check_legend("java", text, &["Java", "C++", "kernel", "other"]);
    check_legend("python", "p;/usr/lib/python3.11/json/x.py 1\n", &["standard library", "other"]);
    check_legend("rust", "p;core::fmt::write;a::b 1\n", &["standard library", "Rust", "other"]);
    check_legend("chain", "a;b;--;c 1\n", &["waiting", "waking it"]);
    check_legend("chain", "a;b 1\n", &["waiting"]);
    check_legend("hot", "a;b 1\n", &[]);
}

#[test]
fn every_hue_of_a_palette_has_a_meaning() {
    for palette in ["chain", "java", "js", "perl", "python", "rust"] {
        let palette: Palette = palette.parse().unwrap();
        for name in NAMES.iter().chain(&["/a/node_modules/b.js", "x/site-packages/y", "a.pl"]) {
            for kind in [FrameKind::User, FrameKind::Kernel, FrameKind::Jit, FrameKind::Inlined] {
                let hue = palette.hue_of(&Label { name: (*name).to_owned(), kind }).unwrap();
                let means = palette.meanings().iter().filter(|(other, _)| *other == hue).count();
                assert_eq!(means, 1, "{palette:?} {name} {hue:?}");
            }
        }
    }
}

#[test]
fn above_the_separator_of_a_chain_wakers_stand() {
    let tree = tree_of("a;b;--;b;c 1\n");
    let hue = |label: &str, kind| {
        let label = Label { name: label.to_owned(), kind };
        Palette::Chain.hue_of(&label).unwrap().colour(Variation::Name.vector(&label)).to_string()
    };
    let (blue, aqua) = (FrameKind::User, FrameKind::Waker);
    let expect =
        [hue("a", blue), hue("b", blue), "#a0a0a0".to_owned(), hue("b", aqua), hue("c", aqua)];
    assert_eq!(fills(&tree, &config("chain", Variation::Name)), expect);
}

#[test]
fn a_name_keeps_its_colour_for_ever() {
    let tree = tree_of(
        "t;main 1\nt;main_[i] 1\nt;do_syscall_64_[k] 1\nt;Foo.bar_[j] 1\nt;[unknown] 1\nt;- 1\n",
    );
    let found = fills(&tree, &ColourConfig::default()).split_off(1);
    assert_eq!(found, ["#f6c179", "#9edbd9", "#a7ace4", "#a4ce8a", "#d9dde2", "#c8c8c8"]);
    let found = fills(&tree, &config("hot", Variation::Name)).split_off(1);
    assert_eq!(found, ["#df3c2c", "#e93b01", "#e0b800", "#dfa002", "#fdba26", "#c8c8c8"]);
}

#[test]
fn colours_that_are_known_stay_and_others_join_them() {
    let tree = tree_of("main;read_[k] 1\nmain;--;x 1\n");
    let mut config = config("hot", Variation::Name);
    config.known = [("read_[k]", Rgb(1, 2, 3)), ("gone", Rgb(4, 5, 6))]
        .map(|(name, colour)| (name.to_owned(), colour))
        .into();
    assert_eq!(fills(&tree, &config)[1], "#010203");
    let names = name_colours(&tree, &config);
    assert_eq!(names.keys().collect::<Vec<_>>(), ["gone", "main", "read_[k]", "x"]);
    assert_eq!(names["read_[k]"], Rgb(1, 2, 3));
    // What is written now gives the same colours later.
    config.known = names;
    config.palette = Palette::Kinds;
    let again = fills(&tree, &config);
    assert_eq!(again[0], config.known["main"].to_string());
}

#[test]
fn random_colours_depend_on_the_seed() {
    let tree = tree_of("main 1\nread 1\nwrite 1\n");
    let of = |seed| fills(&tree, &config("hot", Variation::Random(seed)));
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn growth_is_red_and_shrinking_blue_by_self_weight() {
    let tree = tree_of("a 4 4\na;b 10 20\na;c 20 15\na;d 7 7\n");
    let mut config = ColourConfig::default();
    assert_eq!(fills(&tree, &config), ["#f0f1f3", "#ff0000", "#6969ff", "#f0f1f3"]);
    config.negate = true;
    assert_eq!(fills(&tree, &config), ["#f0f1f3", "#0000ff", "#ff6969", "#f0f1f3"]);
    config.delta = DeltaColours::Safe;
    config.negate = false;
    assert_eq!(fills(&tree, &config), ["#f0f1f3", "#e66100", "url(#less2)", "#f0f1f3"]);
}

#[test]
fn the_wider_the_redder_where_that_is_asked_for() {
    let tree = tree_of("a;b 3\na;c 1\n");
    let config = ColourConfig { by_width: true, ..ColourConfig::default() };
    assert_eq!(fills(&tree, &config), ["#ff0000", "#ff1e1e", "#ff7171"]);
}

#[test]
fn unknown_palettes_and_backgrounds_name_those_there_are() {
    let message = "x".parse::<Palette>().unwrap_err();
    assert!(
        message.starts_with("palettes are kinds, hot, mem, io, wakeup, chain, java"),
        "{message}"
    );
    assert!("#12345".parse::<Background>().is_err());
    assert_eq!("gray".parse::<Background>(), "grey".parse());
    let flat = Rgb(0x12, 0x34, 0x56);
    assert_eq!("#123456".parse(), Ok(Background { top: flat, bottom: flat }));
}

#[test]
fn values_have_the_colours_that_people_know_them_by() {
    let of = |name: &str| Palette::of_value(&ValueType::new(name, "count"));
    for (palette, names) in [
        (Palette::Single(Hue::Mem), &["page-faults", "mmap", "brk", "alloc", "live"][..]),
        (Palette::Single(Hue::Io), &["off-cpu", "io", "block-io", "syscalls", "locks"]),
        (Palette::Single(Hue::Aqua), &["wakeup"]),
        (Palette::Chain, &["offwake"]),
        (Palette::default(), &["cpu", "wall", "cycles", "sched:sched_switch"]),
    ] {
        for name in names {
            assert_eq!(of(name), palette, "{name}");
        }
    }
}
