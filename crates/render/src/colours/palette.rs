//! The palettes by name, and the rules by which those of a language choose a hue.

use std::str::FromStr;

use flame_profile::{FrameKind, Label, ValueType};

use super::classic::Hue;

/// Which colours boxes have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Palette {
    /// A family of colours a kind of code, which can be told apart without seeing red from green.
    #[default]
    Kinds,
    /// Every name in one range of colours.
    Single(Hue),
    /// Blue up to the first `--` of a stack, aqua above it: chains of wakers.
    Chain,
    /// Hues by what a name of that language looks like.
    Language(Language),
}

/// A language whose palette is chosen by rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Language {
    Java,
    Js,
    Perl,
    Python,
    Rust,
}

/// All palettes by name, in the order of the help.
const PALETTES: [(&str, Palette); 20] = [
    ("kinds", Palette::Kinds),
    ("hot", Palette::Single(Hue::Hot)),
    ("mem", Palette::Single(Hue::Mem)),
    ("io", Palette::Single(Hue::Io)),
    ("wakeup", Palette::Single(Hue::Aqua)),
    ("chain", Palette::Chain),
    ("java", Palette::Language(Language::Java)),
    ("js", Palette::Language(Language::Js)),
    ("perl", Palette::Language(Language::Perl)),
    ("python", Palette::Language(Language::Python)),
    ("rust", Palette::Language(Language::Rust)),
    ("red", Palette::Single(Hue::Red)),
    ("green", Palette::Single(Hue::Green)),
    ("blue", Palette::Single(Hue::Blue)),
    ("aqua", Palette::Single(Hue::Aqua)),
    ("yellow", Palette::Single(Hue::Yellow)),
    ("purple", Palette::Single(Hue::Purple)),
    ("orange", Palette::Single(Hue::Orange)),
    ("grey", Palette::Single(Hue::Grey)),
    ("gray", Palette::Single(Hue::Grey)),
];

impl Palette {
    /// The names of all palettes, in the order of the help.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PALETTES.iter().map(|(name, _)| *name).filter(|name| *name != "gray")
    }

    /// What each hue of the palette means, in the order of the legend; nothing where there is one
    /// hue for all.
    pub(super) fn meanings(self) -> &'static [(Hue, &'static str)] {
        match self {
            Palette::Kinds | Palette::Single(_) => &[],
            Palette::Chain => &[(Hue::Blue, "waiting"), (Hue::Aqua, "waking it")],
            Palette::Language(Language::Java) => &[
                (Hue::Green, "Java"),
                (Hue::Aqua, "inlined"),
                (Hue::Yellow, "C++"),
                (Hue::Orange, "kernel"),
                (Hue::Red, "other"),
            ],
            Palette::Language(Language::Js) => &[
                (Hue::Green, "JavaScript"),
                (Hue::Purple, "its modules"),
                (Hue::Aqua, "built in"),
                (Hue::Yellow, "C++"),
                (Hue::Orange, "kernel"),
                (Hue::Red, "other"),
            ],
            Palette::Language(Language::Perl) => &[
                (Hue::Green, "Perl"),
                (Hue::Yellow, "C++"),
                (Hue::Orange, "kernel"),
                (Hue::Red, "other"),
            ],
            Palette::Language(Language::Python) => {
                &[(Hue::Yellow, "standard library"), (Hue::Aqua, "packages"), (Hue::Red, "other")]
            }
            Palette::Language(Language::Rust) => {
                &[(Hue::Orange, "standard library"), (Hue::Aqua, "Rust"), (Hue::Yellow, "other")]
            }
        }
    }

    /// The range of colours of a label; `None` for the families of the kinds of code.
    pub(super) fn hue_of(self, label: &Label) -> Option<Hue> {
        match self {
            Palette::Kinds => None,
            Palette::Single(hue) => Some(hue),
            Palette::Chain if label.kind == FrameKind::Waker => Some(Hue::Aqua),
            Palette::Chain => Some(Hue::Blue),
            Palette::Language(Language::Java) => Some(java(&label.name, label.kind)),
            Palette::Language(Language::Js) => Some(js(&label.name, label.kind)),
            Palette::Language(Language::Perl) => Some(perl(&label.name, label.kind)),
            Palette::Language(Language::Python) => Some(python(&label.name)),
            Palette::Language(Language::Rust) => Some(rust(&label.name)),
        }
    }
}

impl Palette {
    /// That of a value: where it is not CPU time, as people know it from pictures of waiting and of memory.
    pub fn of_value(value: &ValueType) -> Palette {
        match value.name.as_str() {
            "off-cpu" | "io" | "block-io" | "syscalls" | "locks" => Palette::Single(Hue::Io),
            "wakeup" => Palette::Single(Hue::Aqua),
            "offwake" => Palette::Chain,
            "page-faults" | "minor-faults" | "major-faults" | "mmap" | "brk" | "alloc" | "live" => {
                Palette::Single(Hue::Mem)
            }
            _ => Palette::default(),
        }
    }
}

/// Reads the name of a palette. The error lists what there is.
impl FromStr for Palette {
    type Err = String;

    fn from_str(text: &str) -> Result<Palette, String> {
        let found = PALETTES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(_, palette)| *palette).ok_or_else(|| {
            let names: Vec<&str> = Palette::names().collect();
            format!("palettes are {}", names.join(", "))
        })
    }
}

/// First roots of Java's packages, as perf-map-agent writes them: `java/util/HashMap`.
const JAVA_ROOTS: [&str; 8] = ["java", "javax", "jdk", "net", "org", "com", "io", "sun"];

fn java(name: &str, kind: FrameKind) -> Hue {
    let path = name.strip_prefix('L').unwrap_or(name);
    let root =
        |name: &str| name.split_once('/').is_some_and(|(root, _)| JAVA_ROOTS.contains(&root));
    match kind {
        FrameKind::Jit => Hue::Green,
        FrameKind::Inlined => Hue::Aqua,
        _ if root(path) || root(name) || name.contains(":::") => Hue::Green,
        _ if name.contains("::") => Hue::Yellow,
        FrameKind::Kernel => Hue::Orange,
        _ => Hue::Red,
    }
}

fn js(name: &str, kind: FrameKind) -> Hue {
    let script = || name.split_once('/').is_some_and(|(_, path)| path.contains(".js"));
    match kind {
        FrameKind::Jit if name.contains('/') => Hue::Green,
        FrameKind::Jit => Hue::Aqua,
        _ if name.contains("::") => Hue::Yellow,
        _ if name.contains("/node_modules/") => Hue::Purple,
        _ if script() => Hue::Green,
        _ if name.contains(':') => Hue::Aqua,
        _ if name == " " => Hue::Green,
        FrameKind::Kernel => Hue::Orange,
        _ => Hue::Red,
    }
}

fn perl(name: &str, kind: FrameKind) -> Hue {
    match kind {
        _ if name.contains("::") => Hue::Yellow,
        _ if name.contains("Perl") || name.contains(".pl") => Hue::Green,
        FrameKind::Kernel => Hue::Orange,
        _ => Hue::Red,
    }
}

fn python(name: &str) -> Hue {
    let version = |part: &str| {
        part.strip_prefix("python3.")
            .is_some_and(|minor| minor.starts_with(|c: char| c.is_ascii_digit()))
    };
    let built_in = ["<built-in", "<method", "<frozen"];
    if name.split('/').any(|part| part == "site-packages") {
        Hue::Aqua
    } else if name.split('/').any(version) || built_in.iter().any(|start| name.starts_with(start)) {
        Hue::Yellow
    } else {
        Hue::Red
    }
}

fn rust(name: &str) -> Hue {
    // perf writes `program`function` where it is told to name the module.
    let name = name.split_once('`').map_or(name, |(_, name)| name);
    let own = ["core::", "std::", "alloc::"];
    let path = name.strip_prefix('<').unwrap_or(name);
    if own.iter().any(|start| path.starts_with(start)) && !name.contains("GenFuture") {
        Hue::Orange
    } else if name.contains("::") {
        Hue::Aqua
    } else {
        Hue::Yellow
    }
}
