//! `flame render`: the real binary on files, pipes and bad input; what it writes is parsed.

use std::fs::{self, File};
use std::io::Read;
use std::process::{Command, Output, Stdio};

use roxmltree::{Document, Node};

use crate::support::{Ended, Scratch, finish, flame};

pub(crate) const FOLDED: &str = "\
server;main;parse 600
server;main;read;sys_read_[k] 392
server;main 8
";

/// A scratch directory with `in.folded` of that text.
pub(crate) fn scratch_with(text: impl AsRef<[u8]>) -> Scratch {
    let scratch = Scratch::new();
    fs::write(scratch.file("in.folded"), text).unwrap();
    scratch
}

/// `flame render in.folded OPTIONS` in that directory.
pub(crate) fn render(scratch: &Scratch, options: &[&str]) -> Ended {
    finish(flame().current_dir(scratch.path()).args(["render", "in.folded"]).args(options))
}

/// The SVG that `flame render OPTIONS` makes of a text.
#[track_caller]
pub(crate) fn svg_of(text: &str, options: &[&str]) -> String {
    let ended = render(&scratch_with(text), options).success();
    assert_eq!(ended.stderr, "");
    ended.stdout
}

pub(crate) fn by_id<'a, 'i>(document: &'a Document<'i>, id: &str) -> Option<Node<'a, 'i>> {
    document.descendants().find(|node| node.attribute("id") == Some(id))
}

/// The tooltips of the boxes from the left to the right of each row, the root's row first.
pub(crate) fn titles(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).unwrap();
    let frames = by_id(&document, "frames").unwrap();
    frames.children().filter_map(|g| Some(g.first_element_child()?.text()?.to_owned())).collect()
}

#[test]
fn a_picture_goes_to_stdout_unless_a_file_is_named() {
    let scratch = scratch_with(FOLDED);
    let on_stdout = render(&scratch, &[]).success();
    assert_eq!(
        titles(&on_stdout.stdout),
        [
            "all (1,000 samples, 100%)",
            "server (1,000 samples, 100%)",
            "main (1,000 samples, 100%)",
            "parse (600 samples, 60.00%)",
            "read (392 samples, 39.20%)",
            "sys_read (392 samples, 39.20%)",
        ]
    );
    let to_files = render(&scratch, &["-o", "out.svg", "-o", "out.txt"]).success();
    assert_eq!(to_files.stdout, "");
    assert_eq!(fs::read_to_string(scratch.file("out.svg")).unwrap(), on_stdout.stdout);
    assert_eq!(scratch.names(), ["in.folded", "out.svg", "out.txt"]);
    assert!(to_files.stderr.starts_with("wrote out.svg ("), "{}", to_files.stderr);
    let quiet = render(&scratch, &["-q", "-o", "out.svg"]).success();
    assert_eq!(quiet.stderr, "");
}

#[test]
fn every_way_in_gives_the_same_picture() {
    let scratch = scratch_with(FOLDED);
    let expect = titles(&render(&scratch, &[]).success().stdout);
    let gzip = Command::new("gzip").args(["-k", &scratch.file("in.folded")]).status().unwrap();
    assert!(gzip.success());
    render(&scratch, &["-o", "in.pb.gz"]).success();
    for name in ["in.folded.gz", "in.pb.gz"] {
        let ended = finish(flame().current_dir(scratch.path()).args(["render", name])).success();
        assert_eq!(titles(&ended.stdout), expect, "{name}");
    }
    let piped = from_stdin(FOLDED.as_bytes(), &["-"]);
    assert_eq!(titles(&String::from_utf8(piped.stdout).unwrap()), expect);
}

/// `flame render ARGUMENTS` with that text on stdin.
fn from_stdin(text: &[u8], arguments: &[&str]) -> Output {
    let scratch = scratch_with(text);
    let stdin = Stdio::from(File::open(scratch.file("in.folded")).unwrap());
    flame().arg("render").args(arguments).stdin(stdin).output().unwrap()
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_name() {
    let ended = render(&scratch_with("\u{feff}a;b 1\na;c 2\n"), &["--format", "folded"]).success();
    assert_eq!((&*ended.stdout, &*ended.stderr), ("a;b 1\na;c 2\n", ""));
    let alone = render(&scratch_with("\u{feff}a 1"), &["--format", "folded"]).success();
    assert_eq!(alone.stdout, "a 1\n");
    let two = render(&scratch_with("\u{feff}a;b 1 2\n"), &["--format", "folded"]).success();
    assert_eq!(two.stdout, "a;b 1 2\n");
}

/// The sum of both would be off by the decimal places of one.
#[test]
fn files_whose_weights_have_no_sum_are_refused() {
    let scratch = scratch_with("a 9000000000000000000\n");
    fs::write(scratch.file("two.folded"), "a 0.000000001\n").unwrap();
    render(&scratch, &["two.folded"]).error(1, &["not fit into 64 bits"]);
}

#[test]
fn several_inputs_are_merged() {
    let scratch = scratch_with("a;b 1\n");
    fs::write(scratch.file("two.folded"), "a;c 3\n").unwrap();
    render(&scratch, &["-o", "one.pb.gz"]).success();
    let ended = render(&scratch, &["two.folded", "one.pb.gz"]).success();
    let expect = ["all (5 samples, 100%)", "a (5 samples, 100%)", "b (2 samples, 40.00%)"];
    assert_eq!(titles(&ended.stdout)[..3], expect);
    fs::write(scratch.file("diff.folded"), "a;c 3 4\n").unwrap();
    let mixed = render(&scratch, &["diff.folded"]);
    mixed.error(1, &["cannot merge diff.folded", "why: one has two counts per line"]);
}

#[test]
fn what_cannot_be_read_is_said_and_counted() {
    let ended = render(&scratch_with("a;b 1\nnonsense\nx -5\n"), &[]).success();
    let expect = "warning: 2 lines left out: they cannot be read\n  \
                  in.folded, line 2: there is no count at its end: nonsense\n  \
                  in.folded, line 3: its count is negative: x -5\n";
    assert_eq!(ended.stderr, expect);
    let document = Document::parse(&ended.stdout).unwrap();
    let footer = by_id(&document, "footer").unwrap();
    assert!(footer.children().any(|line| line.text() == Some("2 lines not readable")));

    let error = |text: &[u8], parts: &[&str]| render(&scratch_with(text), &[]).error(1, parts);
    error(b"", &["no stacks in in.folded", "why: no line has a count", "try: "]);
    error(b"a;b -10\n", &["no stacks in in.folded", "why: line 1: its count is negative"]);
    let none =
        "why: it was read as folded text, and none of its 2 lines ends with a count; line 1: x y";
    error(b"x\x1by\nz\n", &["no stacks in in.folded", none, "try: --from FORMAT"]);
    error(b"a 0\n", &["no stacks in in.folded"]);
    let dtrace = b"CPU     ID                    FUNCTION:NAME\n  0  64091      :tick-60s\n";
    error(dtrace, &["no stacks in in.folded", "why: it was read as dtrace, and has no sample"]);
    error(b"{\n\"a\": 1,\n\"b\": 2\n}\n", &["cannot read in.folded", "why: it is JSON, but not"]);
    error(b"heap profile:  1: 2 [3: 4] @\n", &["cannot read in.folded", "go tool pprof -proto"]);
    let large = b"a 18446744073709551615\nb 18446744073709551615\n";
    error(large, &["no stacks in in.folded", "why: line 1: with its count, the sum of all"]);
    let two = b"a 9999999999999999999 1\na;b 9999999999999999999 2\n";
    let said = render(&scratch_with(two), &[]).success().stderr;
    assert!(said.contains("in.folded, line 2: with its count, the sum of all"), "{said}");
    error(b"\x1f\x8bgarbage", &["cannot read in.folded", "why: its compressed data"]);
    error(b"\0\x01\x02", &["cannot read in.folded: not a pprof file", "why: it is binary"]);
    error(
        b"\0\x01\n\x02 7\n\x03\n",
        &["cannot read in.folded: not a pprof file", "why: it is binary"],
    );
    error(b"\xff\xfd\n\xfe 7\n\xf8\n", &["cannot read in.folded", "why: it is not text"]);
    finish(flame().args(["render", "/no/such/file"]))
        .error(1, &["cannot read /no/such/file: no such file or directory"]);
    finish(flame().args(["render", "-", "-"])).error(2, &["stdin can be read only once"]);
    assert_eq!(finish(flame().arg("render")).code(), 2);
}

#[test]
fn bad_values_are_refused_with_those_that_are_good() {
    let scratch = scratch_with(FOLDED);
    let refuses = |options: &[&str], part: &str| {
        let ended = render(&scratch, options);
        assert_eq!(ended.code(), 2, "{options:?}");
        assert!(ended.stderr.contains(part), "{options:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "");
    };
    refuses(
        &["--colors", "pink"],
        "palettes are kinds, hot, mem, io, wakeup, chain, java, js, perl",
    );
    refuses(&["--color", "pink"], "palettes are kinds");
    refuses(&["--bgcolors", "pink"], "backgrounds are yellow, blue, green, grey or #rrggbb");
    refuses(&["--search-color", "pink"], "a colour is #rgb, #rrggbb or rgb(r,g,b)");
    refuses(&["--colors-diff", "pink"], "red-blue and safe");
    refuses(&["--minwidth", "x"], "a number of pixels");
    refuses(&["--width", "10"], "200");
    refuses(&["--factor", "0"], "a factor is");
    refuses(&["--encoding", "latin1"], "flame writes UTF-8");
    refuses(&["--flamechart", "--no-sort"], "cannot be used with");
    refuses(&["--format", "gif"], "possible values");
}

#[test]
fn a_still_picture_has_no_script_and_no_dead_buttons() {
    let svg = svg_of(FOLDED, &["--no-javascript", "--no-metadata", "--pretty-xml"]);
    let document = Document::parse(&svg).unwrap();
    for id in ["flame-data", "unzoom", "search", "ignorecase"] {
        assert!(by_id(&document, id).is_none(), "{id}");
    }
    assert!(!document.descendants().any(|node| node.has_tag_name("script")));
    assert_eq!(by_id(&document, "footer").unwrap().children().count(), 0);
    assert!(svg.lines().count() > 10);
    assert_eq!(titles(&svg).len(), 6);
}

#[test]
fn recursion_is_collapsed_in_folded_text_too() {
    let text = "t;f;f;f;g 2\nt;f;g 1\nt;a;b;a;b;a 4\nt;t 8\n";
    let folded = svg_of(text, &["--format", "folded", "--collapse-recursion"]);
    assert_eq!(folded, "t;a;b;a 4\nt;f;g 3\nt;t 8\n");
    let scratch = scratch_with(text);
    render(&scratch, &["-o", "in.pb.gz"]).success();
    let options = ["render", "in.pb.gz", "--format", "folded", "--collapse-recursion"];
    let of_pprof = finish(flame().current_dir(scratch.path()).args(options)).success();
    assert_eq!(of_pprof.stdout, folded);
}

#[test]
fn what_an_input_does_not_have_is_refused() {
    let scratch = scratch_with(FOLDED);
    for (options, missing) in [
        (["--lines"].as_slice(), "no source lines in in.folded"),
        (&["--root-tid"], "no thread ids in in.folded"),
        (&["--root-pid"], "no process ids in in.folded"),
        (&["--threads"], "no process names in addition to thread names in in.folded"),
        (&["--value", "cpu"], "no value cpu in in.folded"),
    ] {
        render(&scratch, options).error(2, &[missing, "why: folded text has", "try: "]);
    }
    render(&scratch, &["--value", "samples", "-o", "in.pb.gz"]).success();
    finish(flame().current_dir(scratch.path()).args(["render", "in.pb.gz", "--flamechart"]))
        .error(2, &["cannot draw a flame chart of in.pb.gz", "why: equal stacks", "--no-sort"]);
}

#[test]
fn text_comes_in_the_form_that_is_asked_for() {
    let text = |options: &[&str]| svg_of(FOLDED, options);
    let full = text(&["--format", "txt", "--title", "before"]);
    assert!(full.starts_with("before\nfrom in.folded, flame "), "{full}");
    assert!(full.contains("server → main"), "{full}");
    let flat = text(&["--format", "txt", "--flat", "--no-metadata"]);
    let expect = "\
1,000 samples in all; [k] kernel

self          total          function
 600  60.00%    600  60.00%  parse
 392  39.20%    392  39.20%  sys_read [k]
   8   0.80%  1,000    100%  main
   0   0.00%    392  39.20%  read
";
    assert_eq!(flat, expect);
    let callers = text(&["--format", "folded", "--callers", "sys_read"]);
    assert_eq!(callers, "sys_read_[k];read;main;server 392\n");
    render(&scratch_with(FOLDED), &["--callers", "nobody"])
        .error(1, &["no function nobody in this profile", "try: "]);
    let around = |options: &[&str]| render(&scratch_with(FOLDED), options);
    around(&["--around", "nobody"]).error(1, &["no function nobody in this profile", "try: "]);
    around(&["--around", "read", "--format", "txt"])
        .error(2, &["--around is for pictures", "try: --callers or --base in other formats"]);
    assert!(text(&["--around", "sys_read_[k]"]).contains(r#","around":"sys_read","#));
    let with_self = text(&["--format", "csv"]);
    assert_eq!(text(&["--format", "csv", "--reverse"]), with_self);
    assert!(with_self.starts_with("self,self_share,total,total_share,kind,"));
    assert!(text(&["--format", "md", "--title", "x"]).starts_with("### x\n"));
    let json: serde_json::Value = serde_json::from_str(&text(&["--format", "json"])).unwrap();
    assert_eq!(json["nodes"].as_array().map(Vec::len), Some(6));
}

#[test]
fn a_picture_can_be_compressed() {
    let scratch = scratch_with(FOLDED);
    render(&scratch, &["-o", "x.svg", "-o", "x.svgz"]).success();
    let mut inflated = Vec::new();
    let compressed = fs::read(scratch.file("x.svgz")).unwrap();
    flate2::read::GzDecoder::new(&compressed[..]).read_to_end(&mut inflated).unwrap();
    assert!(inflated == fs::read(scratch.file("x.svg")).unwrap());
    assert!(compressed.len() * 2 < inflated.len());
    render(&scratch, &["-o", "."]).error(1, &["cannot write .: it is a directory", "try: -o"]);
    render(&scratch, &["-o", "y.svgz", "--open"]).error(2, &["there is no picture to open"]);
}

#[test]
fn a_picture_is_no_profile() {
    let scratch = scratch_with(svg_of(FOLDED, &[]));
    render(&scratch, &[])
        .error(1, &["cannot read in.folded as a profile", "a picture or a web page"]);
    let scratch = scratch_with("PERFILE2\0\0main 5\n");
    render(&scratch, &[]).error(1, &["it is not a perf.data file that can be read"]);
    // A frame may well start like that.
    assert_eq!(titles(&svg_of("<svg as T>::f;<xml> 5\n", &[])).len(), 3);
}

#[test]
fn a_terminal_graph_fits_its_columns() {
    let scratch = scratch_with(FOLDED);
    let mut command = flame();
    command.current_dir(scratch.path()).env("COLUMNS", "50").env("COLORTERM", "truecolor");
    command.args(["render", "in.folded", "--format", "term", "--colors", "kinds"]);
    let plain = finish(&mut command).success().stdout;
    let expect = "                              │sys_read 39.20%────
│parse 60.00%─────────────────│read 39.20%────────
│main 100%────────────────────────────────────────
│server 100%──────────────────────────────────────
│all 1,000 samples────────────────────────────────
";
    assert_eq!(plain, expect);
    let coloured = finish(command.args(["--color", "always"])).success().stdout;
    assert!(coloured.contains("\x1b[48;2;") && coloured.contains("parse 60.00%"), "{coloured}");
}

#[test]
fn hostile_names_and_bytes_give_well_formed_xml() {
    let long = "x".repeat(100_000);
    let mut text = Vec::new();
    for name in [
        b"</title><script>alert(1)</script>".as_slice(),
        b"]]> <![CDATA[ &amp; \"'",
        b"\x00\x01\x1b[31m\x7f",
        b"\xff\xfe\xc3\x28\xed\xa0\x80",
        "\u{202e}gpj.exe\u{2028}\u{ffff}".as_bytes(),
        b"-->",
        long.as_bytes(),
    ] {
        text.extend_from_slice(b"t;");
        text.extend_from_slice(name);
        text.extend_from_slice(b" 10\n");
    }
    let scratch = scratch_with(&text);
    let ended = render(&scratch, &[]).success();
    let document = Document::parse(&ended.stdout).unwrap();
    // `&amp;` parts two frames.
    assert_eq!(titles(&ended.stdout).len(), 10);
    assert_eq!(document.descendants().filter(|node| node.has_tag_name("script")).count(), 1);
    assert!(ended.stdout.contains(r"\xff\xfe\xc3(\xed\xa0\x80"));
}

#[test]
fn a_folder_of_pictures_has_a_page_the_newest_first() {
    let scratch = scratch_with(FOLDED);
    let index = || finish(flame().current_dir(scratch.path()).args(["render", "--index", "."]));
    index().error(1, &["no picture of flame's in .", "try: flame render"]);
    for (name, title, age) in [("old.svg", "one & only", 2000), ("a <b>.svg", "two", 1000)] {
        render(&scratch, &["--title", title, "-o", name]).success();
        let when = std::time::SystemTime::now() - std::time::Duration::from_secs(age);
        File::options().write(true).open(scratch.file(name)).unwrap().set_modified(when).unwrap();
    }
    fs::write(scratch.file("other.svg"), "<svg xmlns=\"http://www.w3.org/2000/svg\"/>").unwrap();
    let said = index().success().stderr;
    assert!(said.contains("warning: 1 .svg file is no pictures of flame's"), "{said}");
    let page = fs::read_to_string(scratch.file("index.html")).unwrap();
    let cards: Vec<&str> = page.lines().filter(|line| line.starts_with("<a ")).collect();
    let card = |link: &str, title: &str, name: &str| {
        format!(
            "<a href=\"{link}\"><img src=\"{link}\" alt=\"\" loading=\"lazy\"><b>{title}</b>\
             <span>1,000 samples</span><span>{name}</span></a>"
        )
    };
    let expect = [
        card("./a%20%3Cb%3E.svg", "two", "a &lt;b&gt;.svg"),
        card("./old.svg", "one &amp; only", "old.svg"),
    ];
    assert_eq!(cards, expect);
    assert!(!page.contains("<script"));
    // Its own page is replaced, that of somebody else is not.
    index().success();
    fs::write(scratch.file("index.html"), "mine").unwrap();
    index().error(1, &["./index.html is not flame's", "try: --force"]);
    assert_eq!(fs::read_to_string(scratch.file("index.html")).unwrap(), "mine");
}
