//! In which format an output is written: by the ending of its name, or as it was asked for.

use std::path::Path;

use crate::message::Failure;

/// How an output is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// The picture.
    Svg,
    /// `comm;outermost;...;leaf WEIGHT` lines.
    Folded,
    /// A report to read.
    Text,
    /// pprof, the profile with everything in it.
    Pprof,
    /// A flame graph of characters.
    Terminal,
    /// Functions and nodes for programs.
    Json,
    /// Functions for spreadsheets.
    Csv,
    /// A comment for a code review.
    Markdown,
    /// Samples by time.
    HeatMap,
}

impl Format {
    /// All formats, in the order of the help.
    pub(crate) const ALL: [Format; 9] = [
        Format::Svg,
        Format::Folded,
        Format::Text,
        Format::Pprof,
        Format::Terminal,
        Format::Json,
        Format::Csv,
        Format::Markdown,
        Format::HeatMap,
    ];

    /// The name as `--format` takes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Format::Svg => "svg",
            Format::Folded => "folded",
            Format::Text => "txt",
            Format::Pprof => "pprof",
            Format::Terminal => "term",
            Format::Json => "json",
            Format::Csv => "csv",
            Format::Markdown => "md",
            Format::HeatMap => "heatmap",
        }
    }

    /// The format that the ending of a file's name chooses.
    pub(crate) fn of_ending(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_string_lossy().to_lowercase();
        let endings: [(&str, Format); 11] = [
            (".heatmap.svg", Format::HeatMap),
            (".svg", Format::Svg),
            (".svgz", Format::Svg),
            (".folded", Format::Folded),
            (".collapsed", Format::Folded),
            (".txt", Format::Text),
            (".pb.gz", Format::Pprof),
            (".pprof", Format::Pprof),
            (".json", Format::Json),
            (".csv", Format::Csv),
            (".md", Format::Markdown),
        ];
        endings.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| *format)
    }
}

/// The format of an output.
pub(super) fn format_of(
    path: &Path,
    asked: Option<Format>,
    on_stdout: Format,
) -> Result<Format, Failure> {
    let default = (path == Path::new("-")).then_some(asked.unwrap_or(on_stdout));
    let format = Format::of_ending(path).or(asked).or(default);
    format.ok_or_else(|| {
        Failure::usage(format!("cannot tell the format of {} from its ending", path.display()))
            .why("flame writes .svg, .svgz, .folded, .txt, .pb.gz, .json, .csv and .md")
            .or_try("--format svg, or another ending")
    })
}
