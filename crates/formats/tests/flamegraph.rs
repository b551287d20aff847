//! perf script text against what stackcollapse-perf.pl makes of it: 13 inputs times six options, in
//! FlameGraph's own tests. They are not ours to copy; without them this test says so and passes.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests fail with their tests, and a skip is said aloud"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use flame_formats::{InputContent, ReadOptions, Source, read_input};
use flame_profile::{Annotations, RootFrame, SiblingOrder, TreeOptions, ValueType, write_folded};

const OPTIONS: [&str; 6] = ["pid", "tid", "kernel", "jit", "all", "addrs"];

fn data() -> Option<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/flamegraph");
    if !data.is_dir() {
        eprintln!("skipped: no FlameGraph tests in {}", data.display());
        return None;
    }
    Some(data)
}

fn fold(input: &[u8], option: &str, threads: usize) -> String {
    let mut options = ReadOptions { threads, ..ReadOptions::default() };
    options.tree.root = RootFrame {
        pid: matches!(option, "pid" | "tid"),
        tid: option == "tid",
        ..RootFrame::default()
    };
    let (kernel, jit) = (matches!(option, "kernel" | "all"), matches!(option, "jit" | "all"));
    let annotations = Annotations::Without { kernel: !kernel, jit: !jit };
    options.samples.addresses = option == "addrs";
    let read = read_input(Source::of_bytes(input.to_vec()).unwrap(), &options).unwrap();
    assert_eq!((read.format.name, read.skipped.count()), ("perf-script", 0), "{option}");
    let InputContent::Stacks(stacks) = read.content else { panic!("stacks are expected") };
    let tree = TreeOptions { root: options.tree.root, ..TreeOptions::default() };
    let tree = stacks.to_builder(&tree).finish(ValueType::samples(), SiblingOrder::Name);
    let mut text = Vec::new();
    write_folded(&tree, annotations, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// The samples that the script reads: it drops the last one where no blank line follows.
fn without_last(text: &[u8]) -> Vec<u8> {
    let end = text.windows(2).rposition(|pair| pair == b"\n\n").map_or(text.len(), |at| at + 2);
    text[..end].to_vec()
}

/// A line without what flame has otherwise, on purpose; docs/formats.md lists it with the reasons.
/// `None` where a symbol is blank: the script keeps it, flame says the module.
fn canonical(line: &str) -> Option<String> {
    let (stack, count) = line.rsplit_once(' ').unwrap();
    if stack.contains("; ") || (stack.contains(".write0") && stack.contains(";[libc-2.15.so")) {
        return None;
    }
    let frames: Vec<String> = stack.split(';').map(canonical_frame).collect();
    Some(format!("{} {count}", frames.join(";")))
}

fn canonical_frame(frame: &str) -> String {
    // Expectations for --pid and --tid are older than the rule that takes this letter off.
    let frame = match frame.strip_prefix('L') {
        Some(rest) if rest.contains('/') => rest,
        _ => frame,
    };
    // The vdso is not code of the kernel.
    let frame = if frame.contains("vdso") { frame.trim_end_matches("_[k]") } else { frame };
    // Quotes stay in names. Rust's lose their hash and get their signs. Letters are compared.
    let is_hash = |hash: &str| hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    let name = frame.rsplit_once("::h").filter(|(_, h)| is_hash(h)).map_or(frame, |(n, _)| n);
    const SIGNS: [&str; 13] = [
        "$LT$", "$GT$", "$LP$", "$RP$", "$C$", "$RF$", "$BP$", "$u27$", "$u20$", "$u5b$", "$u5d$",
        "$u7b$", "$u7d$",
    ];
    // From the left: the end of a sign is the start of no other.
    let mut letters = String::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign)).map(|sign| sign.len());
        letters.extend(Some(first).filter(|c| sign.is_none() && c.is_alphanumeric()));
        rest = &rest[sign.unwrap_or(first.len_utf8())..];
    }
    letters
}

/// Lines as sums by stack.
fn sums(text: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for line in text.lines().filter_map(canonical) {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        *sums.entry(stack.to_owned()).or_default() += count.parse::<u64>().unwrap();
    }
    sums
}

#[test]
fn all_inputs_with_all_options_are_what_the_script_makes_of_them() {
    let Some(data) = data() else { return };
    let mut inputs: Vec<PathBuf> =
        fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path()).collect();
    inputs.retain(|path| path.file_name().unwrap().to_str().unwrap().starts_with("perf-"));
    inputs.sort();
    assert_eq!(inputs.len(), 13);
    let mut wrong = Vec::new();
    for input in &inputs {
        let bytes = without_last(&fs::read(input).unwrap());
        let name = input.file_stem().unwrap().to_str().unwrap();
        for option in OPTIONS {
            let expect = data.join(format!("results/{name}-collapsed-{option}.txt"));
            let expect = fs::read_to_string(expect).unwrap();
            let found = fold(&bytes, option, 1);
            assert_eq!(found, fold(&bytes, option, 4), "{name} {option}: threads change it");
            let (expect, found) = (sums(&expect), sums(&found));
            let missing: Vec<_> = expect.iter().filter(|(k, v)| found.get(*k) != Some(v)).collect();
            let more: Vec<_> = found.iter().filter(|(k, v)| expect.get(*k) != Some(v)).collect();
            if !missing.is_empty() || !more.is_empty() {
                wrong.push(format!(
                    "{name} {option}: {} {}\n-{:?}\n+{:?}",
                    missing.len(),
                    more.len(),
                    missing.iter().take(2).collect::<Vec<_>>(),
                    more.iter().take(2).collect::<Vec<_>>()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
