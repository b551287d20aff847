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
    /// What each thread did when.
    FlameChart,
}

impl Format {
    /// Whether a browser shows it.
    pub(crate) fn is_picture(self) -> bool {
        self == Format::Svg || self.shows_times()
    }

    /// Whether it shows when samples were taken.
    pub(crate) fn shows_times(self) -> bool {
        matches!(self, Format::HeatMap | Format::FlameChart)
    }

    /// All formats, in the order of the help.
    pub(crate) const ALL: [Format; 10] = [
        Format::Svg,
        Format::Folded,
        Format::Text,
        Format::Pprof,
        Format::Terminal,
        Format::Json,
        Format::Csv,
        Format::Markdown,
        Format::HeatMap,
        Format::FlameChart,
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
            Format::FlameChart => "flamechart",
        }
    }

    /// The format that the ending of a file's name chooses.
    pub(crate) fn of_ending(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_string_lossy().to_lowercase();
        let endings: [(&str, Format); 12] = [
            (".heatmap.svg", Format::HeatMap),
            (".flamechart.svg", Format::FlameChart),
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
            .why(
                "flame writes .svg, .svgz, .heatmap.svg, .flamechart.svg, .folded, .txt, .pb.gz, .json, .csv \
                 and .md",
            )
            .or_try("--format svg, or another ending")
    })
}
