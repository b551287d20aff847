//! Advice on images that lack something: what they were compiled from, and what to do about it.

use flame_image::ImageFile;
use flame_message::clean_name;
use flame_symbolize::Sources;

/// The language whose compiler made an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// By rustc.
    Rust,
    /// By go.
    Go,
    /// By any other, such as C.
    Other,
}

impl Language {
    /// By what compilers leave in their files.
    pub fn of(file: &ImageFile) -> Language {
        let comment = file.section(".comment").map(|section| section.bytes);
        let is_rust = comment.is_some_and(|bytes| bytes.windows(6).any(|text| text == b"rustc "));
        match file.section(".go.buildinfo") {
            _ if is_rust => Language::Rust,
            Some(_) => Language::Go,
            None => Language::Other,
        }
    }

    /// What brings the unwind tables of code that has none.
    pub fn mend_tables(self) -> &'static str {
        match self {
            Language::Go => "go build without -ldflags '-s -w'",
            Language::Rust => "RUSTFLAGS='-C force-unwind-tables'",
            Language::Other => {
                "build it with -fasynchronous-unwind-tables; assembly needs .cfi directives"
            }
        }
    }
}

/// What would bring debug files that are missing, or of another build.
pub fn mend_debug_files(sources: &Sources) -> Option<String> {
    if let Some(path) = &sources.refused {
        return Some(format!("the {} of this build", clean_name(&path.display().to_string())));
    }
    let mend = "keep the .dwo files where they were built, or pack them with dwp";
    sources.split.as_ref().map(|_| mend.to_owned())
}
