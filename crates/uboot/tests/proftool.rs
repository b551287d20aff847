//! `--compat` against proftool's own outputs for real traces, byte for byte.
//!
//! They lie in `../shared/data/uboot` beside the checkout, and may not be copied into it; without
//! them these tests say so and pass.

use std::fs;
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};

use flame_uboot::{FtraceKind, Measure, Proftool, Rules, proftool_rules};

fn data() -> Option<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/uboot");
    if !data.is_dir() {
        let _ = writeln!(std::io::stderr(), "SKIP: there are no traces at {}", data.display());
        return None;
    }
    Some(data)
}

/// A file, or what is in it with `.xz` behind its name.
fn read(path: &Path) -> Option<Vec<u8>> {
    if let Ok(bytes) = fs::read(path) {
        return Some(bytes);
    }
    let packed = fs::read(format!("{}.xz", path.display())).ok()?;
    let mut bytes = Vec::new();
    lzma_rust2::XzReader::new(packed.as_slice(), true).read_to_end(&mut bytes).expect("it is xz");
    Some(bytes)
}

/// The folder of a trace's outputs, the trace's name, and that of its map.
const SETS: [(&str, &str, &str); 10] = [
    ("boot-nodtb", "boot-nodtb", "default"),
    ("mini-cmds-medium", "cmds-medium", "mini"),
    ("mini-deep-dmtree", "deep-dmtree", "minideep"),
    ("mini-deep-nested-run", "deep-nested-run", "minideep"),
    ("mini-gap9s", "gap9s", "mini"),
    ("mini-small-overflow", "small-overflow", "minismall"),
    ("mini-tiny-version", "tiny-version", "mini"),
    ("mini-unbalanced", "unbalanced", "mini"),
    ("mini-uthread", "uthread", "mini"),
    ("mini-wrap", "wrap", "mini"),
];

const CONFIGS: [&str; 4] = ["", "exclude-all.", "exclude-few.", "include-only."];

fn open(data: &Path, trace: &str, map: &str) -> Proftool<Cursor<Vec<u8>>> {
    let trace = read(&data.join(format!("traces/{trace}.trace"))).expect("the trace is there");
    let map = read(&data.join(format!("maps/System.map.{map}"))).expect("the map is there");
    Proftool::open(Cursor::new(trace), &map).expect("proftool reads it")
}

fn rules(data: &Path, config: &str) -> Option<Rules> {
    let text = (!config.is_empty()).then(|| fs::read(data.join(format!("config/{config}cfg"))))?;
    Some(proftool_rules(&text.expect("the rules are there")).expect("they are rules"))
}

#[test]
fn flame_graphs_are_those_of_proftool() {
    let Some(data) = data() else { return };
    let mut compared = 0;
    for (folder, trace, map) in SETS {
        let mut proftool = open(&data, trace, map);
        for (measure, name) in [(Measure::Calls, "calls"), (Measure::Time, "timing")] {
            let expect = read(&data.join(format!("proftool/{folder}/{name}.folded"))).unwrap();
            let graph = proftool.flame_graph(measure).unwrap();
            let mut found = Vec::new();
            graph.write(&proftool, &mut found).unwrap();
            assert!(found == expect, "{folder}: {name} differs");
            compared += 1;
        }
    }
    assert_eq!(compared, 20);
}

#[test]
fn trace_dat_is_that_of_proftool() {
    let Some(data) = data() else { return };
    let mut compared = 0;
    for (folder, trace, map) in SETS {
        let mut proftool = open(&data, trace, map);
        for config in CONFIGS {
            let rules = rules(&data, config);
            for (kind, name) in
                [(FtraceKind::Function, "function"), (FtraceKind::FuncGraph, "funcgraph")]
            {
                let path = data.join(format!("proftool/{folder}/{name}.{config}dat"));
                let Some(expect) = read(&path) else { continue };
                let mut found = Vec::new();
                let written = proftool.write_ftrace(kind, rules.as_ref(), &mut found).unwrap();
                assert!(found == expect, "{folder}: {name} with {config:?} differs");
                let fails = trace == "gap9s" && config != "exclude-all.";
                assert_eq!(written.failure.is_some(), fails, "{folder}: {:?}", written.failure);
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 2 + 9 * 8);
}
