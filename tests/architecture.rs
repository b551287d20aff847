//! The arrows between the crates run one way, as the design says.

use std::process::Command;

/// Each crate with those of the workspace that it may use outside of its tests.
const MAY_USE: &[(&str, &[&str])] = &[
    ("flame-profile", &[]),
    ("flame-debuginfod", &["flame-profile"]),
    ("flame-threads", &[]),
    ("flame-diff", &["flame-profile", "flame-threads"]),
    ("flame-events", &["flame-profile"]),
    ("flame-sampler", &["flame-events", "flame-profile"]),
    ("flame-unwind", &["flame-events", "flame-profile"]),
    ("flame-symbolize", &["flame-profile"]),
    ("flame-formats", &["flame-events", "flame-profile"]),
    ("flame-render", &["flame-diff", "flame-profile", "flame-threads"]),
    ("flame-uboot", &["flame-profile"]),
    (
        "flame",
        &[
            "flame-debuginfod",
            "flame-diff",
            "flame-events",
            "flame-formats",
            "flame-profile",
            "flame-render",
            "flame-sampler",
            "flame-symbolize",
            "flame-threads",
            "flame-uboot",
            "flame-unwind",
        ],
    ),
    // Run by maintainers and by tests; nothing that ships uses them.
    ("flame-browser", &[]),
    (
        "flame-fuzz",
        &[
            "flame-events",
            "flame-formats",
            "flame-profile",
            "flame-render",
            "flame-symbolize",
            "flame-unwind",
        ],
    ),
    ("xtask", &["flame-browser"]),
];

/// Crates of others that only some of ours may use: whoever touches the system, or a terminal.
const RESERVED: &[(&str, &[&str])] = &[
    ("clap", &["flame", "xtask"]),
    ("anyhow", &["flame", "xtask"]),
    ("nix", &["flame", "flame-sampler", "flame-symbolize", "flame-threads", "xtask"]),
    ("perf-event", &["flame-sampler"]),
    ("perf-event-open-sys", &["flame-sampler"]),
    ("framehop", &["flame-unwind"]),
    ("addr2line", &["flame-symbolize"]),
    ("prost", &["flame-formats"]),
    ("ureq", &["flame-debuginfod"]),
];

/// The packages of the workspace with the names of what they use outside of their tests.
fn packages() -> Vec<(String, Vec<String>)> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
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
