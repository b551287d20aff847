//! The table of formats that are read: each is a module, and an entry here.
//!
//! The order of the table is that of recognition: the first format that takes a file for its own
//! reads it, so formats with an unmistakable start come first and folded text, of which any line
//! that ends with a number may be one, last.

use crate::head::Head;
use crate::input::Input;
use crate::sink::Sink;
use crate::{
    ReadError, bcc, bpftrace, callgrind, chrome_trace, cpuprofile, dhat, dtrace, eu_stack, firefox,
    gdb, ghc, go_raw, instruments, java_exceptions, ktap, ljp, macos_sample, massif, perf_data,
    perf_sched, perf_script, phpspy, pmcstat, procstack, python_stacks, speedscope, systemtap,
    thread_dump, tracy, visual_studio, vtune, wall_clock_profiler, xctrace, xdebug,
};

/// A format that is read.
#[derive(Debug)]
pub struct InputFormat {
    /// Its name for `--from`: lower case, words parted by `-`.
    pub name: &'static str,
    /// What it is, in a few words, with the command that writes it.
    pub description: &'static str,
    /// Whether files of it are text.
    pub content: Content,
    /// Whether a file that starts like that is one of this format. Must be sure: a file of another
    /// format is read wrongly otherwise.
    pub(crate) detect: fn(&Head<'_>) -> bool,
    pub(crate) reader: Reader,
}

/// What files of a format hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Lines of text. UTF-16 is converted before it is read.
    Text,
    /// Bytes that are not text.
    Binary,
}

/// How a format is read.
#[derive(Debug)]
pub(crate) enum Reader {
    /// Stack by stack into a sink.
    Stacks(fn(&mut Input<'_>, &mut Sink) -> Result<(), ReadError>),
    /// Folded text, which has a way of its own into call trees.
    Folded,
    /// pprof, a whole profile.
    Pprof,
    /// perf.data: records of which a recorder makes a whole profile.
    PerfData,
}

/// All formats, in the order in which they are looked for.
pub const FORMATS: &[InputFormat] = &[
    perf_data::FORMAT,
    // JSON and XML, by keys that no other format has.
    speedscope::FORMAT,
    firefox::FORMAT,
    chrome_trace::FORMAT,
    cpuprofile::FORMAT,
    dhat::FORMAT,
    ghc::JSON,
    xctrace::FORMAT,
    // Text with a header of its own.
    callgrind::FORMAT,
    massif::FORMAT,
    ghc::TEXT,
    go_raw::FORMAT,
    macos_sample::FORMAT,
    instruments::FORMAT,
    vtune::FORMAT,
    visual_studio::FORMAT,
    tracy::FORMAT,
    xdebug::FORMAT,
    wall_clock_profiler::FORMAT,
    // Stacks of threads.
    thread_dump::JAVACORE,
    thread_dump::JSTACK,
    python_stacks::FAULTHANDLER,
    python_stacks::PY_SPY_DUMP,
    procstack::FORMAT,
    phpspy::FORMAT,
    eu_stack::FORMAT,
    gdb::FORMAT,
    ljp::FORMAT,
    java_exceptions::FORMAT,
    bpftrace::FORMAT,
    pmcstat::FORMAT,
    systemtap::FORMAT,
    bcc::FORMAT,
    dtrace::FORMAT,
    perf_sched::FORMAT,
    perf_script::FORMAT,
    ktap::FORMAT,
    PPROF,
    FOLDED,
];

const PPROF: InputFormat = InputFormat {
    name: "pprof",
    description: "pprof protobuf, gzipped or not (flame, Go, gperftools, pprof-rs, async-profiler)",
    content: Content::Binary,
    detect: |head| head.is_binary(),
    reader: Reader::Pprof,
};

const FOLDED: InputFormat = InputFormat {
    name: "folded",
    description: "folded text with one or two counts (stackcollapse-*, inferno-collapse-*, bcc -f)",
    content: Content::Text,
    detect: |head| head.has_counts(),
    reader: Reader::Folded,
};

impl InputFormat {
    /// The format of that name.
    pub fn named(name: &str) -> Option<&'static InputFormat> {
        FORMATS.iter().find(|format| format.name == name)
    }

    /// Whether names of it say themselves which code is the kernel's or a runtime's, as those of
    /// folded text and of saved profiles do.
    pub fn has_annotations(&self) -> bool {
        matches!(self.reader, Reader::Folded | Reader::Pprof)
    }

    /// The format that a file with these first bytes has; they are those after decompression, and
    /// of UTF-8 text.
    pub fn detect(start: &[u8]) -> Option<&'static InputFormat> {
        let head = Head::new(start);
        FORMATS.iter().find(|format| (format.detect)(&head))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_can_be_typed() {
        for (at, format) in FORMATS.iter().enumerate() {
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(format.name.chars().all(is_plain), "{}", format.name);
            assert!(FORMATS[..at].iter().all(|other| other.name != format.name), "{}", format.name);
        }
        assert_eq!(FORMATS.last().unwrap().name, "folded");
    }
}
