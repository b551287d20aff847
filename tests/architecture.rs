//! The arrows between the crates run one way, as the design says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Each crate with those of the workspace that it may use outside of its tests.
const MAY_USE: &[(&str, &[&str])] = &[
    ("flame-profile", &[]),
    ("flame-debuginfod", &["flame-profile"]),
    ("flame-message", &["flame-profile"]),
    ("flame-threads", &[]),
    ("flame-diff", &["flame-profile", "flame-threads"]),
    ("flame-events", &["flame-profile"]),
    ("flame-hotspot", &[]),
    ("flame-interpreters", &[]),
    ("flame-sampler", &["flame-events", "flame-interpreters", "flame-profile"]),
    ("flame-pclntab", &["flame-profile"]),
    ("flame-image", &["flame-pclntab", "flame-profile"]),
    ("flame-unwind", &["flame-image", "flame-pclntab", "flame-profile"]),
    ("flame-symbolize", &["flame-image", "flame-pclntab", "flame-profile"]),
    (
        "flame-perf-data",
        &["flame-events", "flame-image", "flame-profile", "flame-recorder", "flame-symbolize"],
    ),
    ("flame-formats", &["flame-perf-data", "flame-profile", "flame-threads"]),
    (
        "flame-recorder",
        &[
            "flame-events",
            "flame-hotspot",
            "flame-image",
            "flame-interpreters",
            "flame-profile",
            "flame-sampler",
            "flame-symbolize",
            "flame-unwind",
        ],
    ),
    (
        "flame-doctor",
        &[
            "flame-events",
            "flame-image",
            "flame-message",
            "flame-profile",
            "flame-recorder",
            "flame-sampler",
            "flame-symbolize",
            "flame-unwind",
        ],
    ),
    ("flame-render", &["flame-diff", "flame-message", "flame-profile", "flame-threads"]),
    ("flame-own-files", &["flame-doctor", "flame-recorder"]),
    ("flame-uboot", &["flame-message", "flame-profile"]),
    (
        "flame",
        &[
            "flame-debuginfod",
            "flame-diff",
            "flame-doctor",
            "flame-formats",
            "flame-image",
            "flame-message",
            "flame-own-files",
            "flame-profile",
            "flame-recorder",
            "flame-render",
            "flame-sampler",
            "flame-symbolize",
            "flame-threads",
            "flame-uboot",
        ],
    ),
    // Run by maintainers and by tests; nothing that ships uses them.
    ("flame-browser", &[]),
    (
        "flame-fuzz",
        &[
            "flame-events",
            "flame-formats",
            "flame-hotspot",
            "flame-image",
            "flame-interpreters",
            "flame-pclntab",
            "flame-perf-data",
            "flame-profile",
            "flame-render",
            "flame-symbolize",
            "flame-uboot",
            "flame-unwind",
        ],
    ),
    ("xtask", &["flame-browser"]),
];

/// Crates of others that only some of ours may use: whoever touches the system, or a terminal.
const RESERVED: &[(&str, &[&str])] = &[
    ("clap", &["flame", "xtask"]),
    ("anyhow", &["flame", "xtask"]),
    ("caps", &["flame", "flame-doctor", "flame-own-files"]),
    (
        "nix",
        &[
            "flame",
            "flame-doctor",
            "flame-formats",
            "flame-image",
            "flame-own-files",
            "flame-recorder",
            "flame-sampler",
            "flame-symbolize",
            "flame-threads",
            "xtask",
        ],
    ),
    ("memmap2", &["flame-image"]),
    ("perf-event", &["flame-sampler"]),
    ("perf-event-open-sys", &["flame-sampler"]),
    ("framehop", &["flame-unwind"]),
    ("addr2line", &["flame-symbolize"]),
    ("prost", &["flame-formats"]),
    ("ureq", &["flame-debuginfod"]),
];

/// What `cargo metadata` prints.
fn metadata(options: &[&str]) -> serde_json::Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--offline", "--format-version", "1"]).args(options);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

/// The packages of the workspace with the names of what they use outside of their tests.
fn packages() -> Vec<(String, Vec<String>)> {
    let metadata = metadata(&["--no-deps"]);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let uses = |package: &serde_json::Value| -> Vec<String> {
        let dependencies = list(&package["dependencies"]);
        let shipped = dependencies.iter().filter(|dependency| dependency["kind"] != "dev");
        shipped.map(|dependency| text(&dependency["name"])).collect()
    };
    list(&metadata["packages"])
        .iter()
        .map(|package| (text(&package["name"]), uses(package)))
        .collect()
}

#[test]
fn arrows_between_crates_are_those_of_the_design() {
    let packages = packages();
    assert!(packages.len() >= 9, "{packages:?}");
    for (name, uses) in &packages {
        let known = MAY_USE.iter().find(|(crate_name, _)| crate_name == name);
        let (_, allowed) = known.unwrap_or_else(|| panic!("the design has no crate {name}"));
        let ours = |used: &&String| packages.iter().any(|(package, _)| package == *used);
        for used in uses.iter().filter(ours) {
            assert!(allowed.contains(&used.as_str()), "{name} must not use {used}");
        }
    }
}

#[test]
fn crates_that_touch_the_system_are_used_where_the_design_has_them() {
    for (name, uses) in packages() {
        for (reserved, users) in RESERVED {
            let allowed = users.contains(&name.as_str());
            assert!(allowed || !uses.iter().any(|used| used == reserved), "{name} uses {reserved}");
        }
    }
}

/// The sources of the recorder, without their tests: the name of the module at the top that each is
/// part of, and its text.
fn recorder_sources() -> Vec<(String, String)> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recorder/src");
    let mut directories = vec![top.clone()];
    let mut sources = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("the directory can be read") {
            let path = entry.expect("the entry can be read").path();
            if path.is_dir() {
                directories.push(path);
            } else if !path.ends_with("tests.rs") && !path.ends_with("lib.rs") {
                let within = path.strip_prefix(&top).expect("it is below").with_extension("");
                let module = within.iter().next().expect("it has a name").to_string_lossy();
                let text = fs::read_to_string(&path).expect("sources are text");
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                sources.push((module.into_owned(), code.to_owned()));
            }
        }
    }
    assert!(sources.len() >= 20, "only {} sources found", sources.len());
    sources
}

#[test]
fn modules_of_the_recorder_form_no_circle() {
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, text) in recorder_sources() {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let of = |word: &str| -> Vec<String> {
            let named = text.match_indices(word).map(|(at, _)| &text[at + word.len()..]);
            named.map(|rest| rest.chars().take_while(|c| is_part(*c)).collect()).collect()
        };
        let used = [of("crate::"), of("super::super::")].concat();
        uses.entry(module).or_default().extend(used);
    }
    assert!(uses["recorder"].contains("collector"), "{uses:#?}");
    // Whoever uses nothing that is left can be taken away; a circle never goes.
    while !uses.is_empty() {
        let left: BTreeSet<String> = uses.keys().cloned().collect();
        let before = uses.len();
        uses.retain(|module, used| used.iter().any(|name| name != module && left.contains(name)));
        assert!(uses.len() < before, "a circle: {uses:#?}");
    }
}

#[test]
fn the_recorder_reads_no_environment() {
    for (module, text) in recorder_sources() {
        assert!(!text.contains("env::"), "{module} reads the environment");
    }
}

/// The licences under which a dependency may be part of the binary, one by one.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-3-Clause",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// What other platforms need is not on this machine.
const PLATFORM: &[&str] = &["--filter-platform", "x86_64-unknown-linux-gnu"];

/// Whether a licence expression can be met with [`LICENCES`] alone: every part that `AND` joins has
/// one of them among what `OR` (older crates: a slash) offers.
fn may_ship(expression: &str) -> bool {
    let plain = expression.replace(['(', ')'], " ").replace('/', " OR ");
    let offered = |part: &str| part.split(" OR ").any(|one| LICENCES.contains(&one.trim()));
    plain.split(" AND ").all(offered)
}

#[test]
fn dependencies_have_licences_that_may_ship() {
    assert!(may_ship("(MIT OR Apache-2.0) AND Unicode-3.0") && may_ship("CDDL-1.0/MIT"));
    assert!(!may_ship("GPL-2.0-only") && !may_ship("MIT AND CDDL-1.0"));
    let metadata = metadata(PLATFORM);
    let packages = metadata["packages"].as_array().expect("a list of packages");
    assert!(packages.len() > 50, "{} packages", packages.len());
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let refused: Vec<_> = packages
        .iter()
        .filter(|package| !may_ship(&text(&package["license"])))
        .map(|package| format!("{}: {}", text(&package["name"]), package["license"]))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn there_is_one_version_of_what_reads_programs() {
    let metadata = metadata(PLATFORM);
    let packages = metadata["packages"].as_array().expect("a list of packages");
    for name in ["gimli", "object", "addr2line"] {
        let found = packages.iter().filter(|package| package["name"] == name).count();
        assert_eq!(found, 1, "{name}");
    }
}
