//! The programs and libraries that a process has mapped: whether stacks can be walked through
//! them, and whether their functions have names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use flame_events::{Found, ImageKey};
use flame_image::{ImageFile, UnwindCoverage};
use flame_message::group_thousands;
use flame_profile::Missing;
use flame_recorder::open_file;
use flame_symbolize::Sources;

use crate::check::Check;
use crate::image_advice::{Language, mend_debug_files};
use crate::packages::Packages;
use crate::process::Process;

/// Said where `-dbgsym` packages are not to be had yet.
const NO_DEBUG_ARCHIVE: &str = "; first add your distribution's debug archive to apt's sources";

/// The length of an entry of a symbol table: of 64 bits, and of 32.
const SYMBOL_LEN: usize = if cfg!(target_pointer_width = "64") { 24 } else { 16 };

/// The share of code without unwind tables from which on stacks are not expected to be whole. What is
/// between functions has none, some two hundredths of a library; nor has assembly that is rarely run.
const MOST_WITHOUT_TABLES: f64 = 0.05;

/// Where packages of debug information put their files.
const DEBUG_ROOT: &str = "/usr/lib/debug";

/// What an image has to offer.
struct Contents {
    is_64_bit: bool,
    tables: bool,
    /// How much of its code these cover.
    coverage: UnwindCoverage,
    language: Language,
    /// Names of all functions: the entries of `.symtab`, its own or of its debug file.
    symbols: usize,
    /// Names of functions that others may call.
    dynamic: usize,
    debug_information: bool,
    /// Functions in the table that programs of Go keep for themselves.
    go_functions: usize,
    debug_file: Option<PathBuf>,
    /// What its names come from.
    sources: Sources,
}

impl Contents {
    fn of(image: &ImageFile) -> Contents {
        let debug_file = image.debug_file().map(Path::to_owned);
        let companion = debug_file
            .as_deref()
            .and_then(|path| ImageFile::open_with(path, image.search().clone()).ok());
        let images = || [Some(image), companion.as_ref()].into_iter().flatten();
        let len = |name: &str| {
            let sections = images().filter_map(|image| image.section(name));
            sections.map(|section| section.bytes.len()).max().unwrap_or(0)
        };
        let go_functions = image.go_table().map_or(0, |table| table.len());
        Contents {
            is_64_bit: image.is_64_bit(),
            tables: len(".eh_frame") > 0 || len(".debug_frame") > 0 || go_functions > 0,
            go_functions,
            coverage: image.unwind_coverage(),
            language: Language::of(image),
            symbols: len(".symtab") / SYMBOL_LEN,
            dynamic: len(".dynsym") / SYMBOL_LEN,
            debug_information: images().any(|image| image.has_section(".debug_info")),
            debug_file,
            sources: Sources::of(image),
        }
    }

    /// Whether stacks can be followed through all of it that counts.
    fn has_tables(&self) -> bool {
        self.tables && self.coverage.share_without() < MOST_WITHOUT_TABLES
    }

    fn describe_tables(&self) -> String {
        let UnwindCoverage { functions, without, largest, .. } = &self.coverage;
        let share = self.coverage.share_without() * 100.0;
        match largest {
            _ if !self.tables => "no unwind tables".to_owned(),
            Some(name) => {
                let (functions, without) = (group_thousands(*functions), group_thousands(*without));
                format!("unwind tables, but none for {without} of {functions} functions ({name})")
            }
            None if !self.has_tables() => {
                format!("unwind tables, but none for {share:.0} % of code")
            }
            None if self.go_functions > 0 => "Go's frame sizes".to_owned(),
            None => "unwind tables".to_owned(),
        }
    }

    fn is_named(&self) -> bool {
        self.symbols > 0 || self.debug_information || self.go_functions > 0
    }

    fn describe(&self) -> String {
        let tables = self.describe_tables();
        let names = match (self.symbols, self.dynamic) {
            (0, _) if self.go_functions > 0 => {
                format!("{} functions in Go's own table", group_thousands(self.go_functions as u64))
            }
            (0, 0) => "no names".to_owned(),
            (0, _) => "stripped: only exported functions have names".to_owned(),
            (symbols, _) => format!("{} symbols", group_thousands(symbols as u64)),
        };
        let debug = match (&self.debug_file, self.debug_information) {
            (Some(path), _) if path.starts_with(DEBUG_ROOT) => {
                format!(", debug information in {DEBUG_ROOT}")
            }
            (Some(path), _) => format!(", debug information in {}", path.display()),
            (None, true) => ", debug information".to_owned(),
            (None, false) => String::new(),
        };
        let torn = match (&self.sources.refused, &self.sources.split) {
            (Some(path), _) => {
                format!("; {} belongs to another build and is not used", path.display())
            }
            (None, Some(file)) => format!(", but {file} was not found"),
            (None, None) => String::new(),
        };
        format!("{tables}, {names}{debug}{torn}")
    }
}

/// The checks of all images, in the order of their paths.
pub(crate) fn examine(process: &Process) -> Vec<Check> {
    let Some(space) = process.processes.space(process.pid) else { return Vec::new() };
    let mut images: BTreeMap<String, (&ImageKey, Found)> = BTreeMap::new();
    for mapping in space.iter() {
        let Some(key) = process.processes.image(mapping.image) else { continue };
        if !key.is_anonymous() && key.path.starts_with(b"/") {
            let found = Found { address: mapping.start, mapping: *mapping };
            images.entry(key.display_path()).or_insert((key, found));
        }
    }
    let opened: Vec<(String, Result<Contents, Missing>)> = images
        .into_iter()
        .map(|(path, (key, found))| {
            let image = open_file(key, process.pid, &found, &process.files);
            (path, image.map(|image| Contents::of(&image)))
        })
        .collect();
    let stripped = opened.iter().filter(|(_, contents)| is_stripped(contents));
    let stripped = stripped.map(|(path, _)| path.as_str());
    let packages = match process.shares_files() {
        true => Packages::owning(stripped),
        false => Packages::default(),
    };
    opened.iter().map(|(path, contents)| check(path, contents, &packages)).collect()
}

fn is_stripped(contents: &Result<Contents, Missing>) -> bool {
    contents.as_ref().is_ok_and(|contents| !contents.is_named())
}

fn check(path: &str, contents: &Result<Contents, Missing>, packages: &Packages) -> Check {
    let contents = match contents {
        Ok(contents) => contents,
        Err(Missing::FileReplaced) => {
            let why = "the file at this path is no longer the one that it runs";
            return Check::missing(path, why).fix("restart the process, then record it");
        }
        Err(reason) => return Check::missing(path, reason.to_string()),
    };
    if !contents.is_64_bit {
        let why = "32-bit code: flame unwinds 64-bit code only, so each stack ends in its innermost function";
        return Check::missing(path, why).fix("build it for 64 bits");
    }
    let mut found = contents.describe();
    if path.ends_with(" (deleted)") {
        found = format!("replaced since, but still readable: {found}");
    }
    if !contents.has_tables() {
        return Check::limited(path, format!("{found}: stacks may end here"))
            .fix(contents.language.mend_tables());
    }
    if let Some(mend) = mend_debug_files(&contents.sources) {
        return Check::limited(path, found).fix(mend);
    }
    if contents.is_named() {
        return Check::ok(path, found);
    }
    if let Some((package, command)) = packages.debug_command(path) {
        let archive = if packages.has_debug_archive() { "" } else { NO_DEBUG_ARCHIVE };
        return Check::limited(path, format!("{found} ({package}{archive})")).fix(command);
    }
    Check::limited(path, found).fix("build it without -s, and do not strip it")
}
