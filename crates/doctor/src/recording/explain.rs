//! `--explain`: for each image what names are missing, and what would bring them.

use flame_message::{Paint, clean_name};
use flame_profile::{Health, Missing, Weight};
use flame_recorder::{SeenImage, image_name};
use flame_symbolize::{Source, Sources};

use crate::image_advice::{Language, mend_debug_files};
use crate::packages::Packages;
use crate::rights::is_root;

/// Images that are listed although nothing of theirs is without a name, most frequent first.
const MAX_ROWS: usize = 30;

/// The images of a recording, as they are before anything has a name.
#[derive(Debug)]
pub struct Images {
    samples: u64,
    /// Most frequent first.
    images: Vec<Image>,
}

#[derive(Debug)]
struct Image {
    name: String,
    /// Samples that have it in their stack.
    samples: u64,
    /// `None` for what has no file that could be read.
    sources: Option<Sources>,
    language: Language,
}

/// One line of the table.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    share: String,
    image: String,
    missing: String,
    mend: String,
}

impl Images {
    /// What is known at the end of a recording.
    pub fn of(seen: &[SeenImage<'_>], samples: u64) -> Images {
        let image = |seen: &SeenImage<'_>| Image {
            name: image_name(seen.key),
            samples: seen.samples,
            sources: seen.file.filter(|_| !seen.key.is_vdso()).map(Sources::of),
            language: seen.file.map_or(Language::Other, Language::of),
        };
        let mut images: Vec<Image> = seen.iter().map(image).collect();
        images.sort_by(|a, b| (b.samples, &a.name).cmp(&(a.samples, &b.name)));
        Images { samples, images }
    }

    /// The table; `has_servers` says whether servers of debug files are named.
    pub fn table(&self, health: &Health, has_servers: bool, paint: Paint) -> String {
        let lacking = self.images.iter().filter(|image| self.is_incomplete(image, health));
        let packages = Packages::owning(lacking.map(|image| image.name.as_str()));
        let mut text = table(&self.rows(health, &packages), paint);
        let lacks = |image: &Image| image.sources.as_ref().is_some_and(|s| !s.lacking.is_empty());
        if !has_servers && self.images.iter().any(lacks) {
            text += "  packages of debug symbols may be in an archive of their own; with the \
                     distribution's server in DEBUGINFOD_URLS flame fetches the files itself\n";
        }
        text
    }

    fn is_incomplete(&self, image: &Image, health: &Health) -> bool {
        unnamed(health, &image.name) > 0
            || image.sources.as_ref().is_some_and(|sources| sources.debug == Source::Missing)
    }

    fn rows(&self, health: &Health, packages: &Packages) -> Vec<Row> {
        let share = |samples| {
            let share = Weight(samples).share_of(Weight(self.samples));
            format!("{:.1} %", share * 100.0)
        };
        let mut rows = Vec::new();
        for (index, image) in self.images.iter().enumerate() {
            let unnamed = unnamed(health, &image.name);
            let ended = health.no_unwind_info.get(&image.name).copied().unwrap_or(0);
            let Some(sources) = &image.sources else { continue };
            if index >= MAX_ROWS && unnamed == 0 && ended == 0 {
                continue;
            }
            rows.push(Row {
                share: share(image.samples),
                image: clean_name(&image.name).into_owned(),
                missing: missing(sources, unnamed, ended, &share),
                mend: mend(image, sources, unnamed, ended, packages),
            });
        }
        // What is unnamed for another reason than that it was stripped, or is in no file.
        for ((name, reason), samples) in &health.unnamed {
            let is_listed = self.images.iter().any(|i| i.name == *name && i.sources.is_some());
            if is_listed && matches!(reason, Missing::NoSymbol | Missing::Stripped) {
                continue;
            }
            rows.push(Row {
                share: share(*samples),
                image: clean_name(name).into_owned(),
                missing: format!("names: {reason}"),
                mend: self.mend_other(*reason),
            });
        }
        rows
    }

    /// What to do where no file is to blame, or another one than should be.
    fn mend_other(&self, reason: Missing) -> String {
        match reason {
            Missing::NoPerfMap => self.mend_generated(),
            // Level 1 shows them to root.
            Missing::KernelHidden if is_root() => "sysctl kernel.kptr_restrict=1".to_owned(),
            Missing::KernelHidden => "sudo sysctl kernel.kptr_restrict=0, or sudo flame".to_owned(),
            Missing::OtherKernel => {
                "symbolize it on the machine that recorded it, before that is rebooted".to_owned()
            }
            Missing::FileReplaced => "record again: the file has been replaced since".to_owned(),
            Missing::FileUnreadable if is_root() => {
                "record again: the file was gone before it could be read".to_owned()
            }
            Missing::FileUnreadable => "run flame as root, while the program runs".to_owned(),
            Missing::NotElf | Missing::NotMapped => {
                "nothing: no file says what is there".to_owned()
            }
            Missing::NoSymbol | Missing::Stripped => {
                "nothing: no symbol covers these addresses".to_owned()
            }
        }
    }

    /// The option that makes a runtime say what it generated.
    fn mend_generated(&self) -> String {
        let has = |name: &str| {
            let files = self.images.iter().map(|image| base_name(&image.name));
            files.into_iter().any(|file| file.starts_with(name))
        };
        let options = [
            ("libjvm.so", "java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit"),
            ("node", "node --perf-basic-prof --interpreted-frames-native-stack"),
            ("python3", "python3 -X perf (3.12 and later)"),
            ("libcoreclr.so", "DOTNET_PerfMapEnabled=1"),
            ("php", "opcache.jit_debug=16"),
        ];
        let option = options.iter().find(|(file, _)| has(file));
        option.map_or("the runtime's option for /tmp/perf-PID.map", |(_, option)| option).to_owned()
    }
}

/// Samples with frames of that image that have no name because no symbol covers them.
fn unnamed(health: &Health, name: &str) -> u64 {
    let of = |reason| health.unnamed.get(&(name.to_owned(), reason)).copied().unwrap_or(0);
    of(Missing::NoSymbol) + of(Missing::Stripped)
}

/// What an image lacks; `ended` are stacks that end in it for lack of unwind tables.
fn missing(sources: &Sources, unnamed: u64, ended: u64, share: &dyn Fn(u64) -> String) -> String {
    let mut parts = Vec::new();
    if ended > 0 {
        parts.push(format!("unwind tables: {} of stacks end here", share(ended)));
    }
    if unnamed > 0 {
        let why = match sources.symbols {
            Source::Missing => "stripped",
            _ => "code without symbols",
        };
        parts.push(format!("names in {}: {why}", share(unnamed)));
    }
    let refused = sources.refused.as_ref().map(|path| path.display().to_string());
    if let Some(path) = refused {
        let path = clean_name(&path).into_owned();
        parts.push(format!("inlined functions, lines: {path} is of another build"));
    } else if sources.debug == Source::Missing {
        parts.push("inlined functions, lines".to_owned());
    } else if let Some(file) = &sources.split {
        parts.push(format!("inlined functions: {} is not found", clean_name(file)));
    } else if !sources.lacking.is_empty() {
        parts.push("dwz's common file".to_owned());
    }
    if parts.is_empty() { "nothing".to_owned() } else { parts.join("; ") }
}

/// What would bring an image's names, or its unwind tables where stacks end in it.
fn mend(image: &Image, sources: &Sources, unnamed: u64, ended: u64, packages: &Packages) -> String {
    if ended > 0 {
        return image.language.mend_tables().to_owned();
    }
    if let Some(mend) = mend_debug_files(sources) {
        return mend;
    }
    if sources.lacking.is_empty() && sources.debug != Source::Missing {
        return String::new();
    }
    if let Some(package) = packages.debug_package(&image.name) {
        return format!("apt install {package}");
    }
    let stripped = unnamed > 0 && sources.symbols == Source::Missing;
    let flag = match (image.language, stripped) {
        (Language::Rust, true) => "profile.release: strip = false, debug = true",
        (Language::Rust, false) => "profile.release: debug = true",
        (Language::Go, _) => "go build without -ldflags '-s -w'",
        (Language::Other, true) => "compile with -g, do not strip",
        (Language::Other, false) => "compile with -g",
    };
    flag.to_owned()
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Columns that are as wide as they have to be; the last one ends where it ends.
fn table(rows: &[Row], paint: Paint) -> String {
    let heads = ["share", "image", "missing", "what would bring it"];
    let cells =
        |row: &Row| [row.share.clone(), row.image.clone(), row.missing.clone(), row.mend.clone()];
    let lines: Vec<[String; 4]> = rows.iter().map(cells).collect();
    let width = |column: usize| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.chain([heads[column].len()]).max().unwrap_or(0)
    };
    let (share, image, missing) = (width(0), width(1), width(2));
    let line = |[a, b, c, d]: &[String; 4]| {
        let text = format!("  {a:>share$}  {b:<image$}  {c:<missing$}  {d}");
        format!("{}\n", text.trim_end())
    };
    let mut text = paint.dim(line(&heads.map(str::to_owned)).trim_end()) + "\n";
    lines.iter().for_each(|cells| text += &line(cells));
    text
}

#[cfg(test)]
mod tests;
