//! Whether what is asked for can be had of an input.

use std::path::Path;

use flame_profile::{RootFrame, RootName, SiblingOrder};

use super::Outputs;
use crate::inputs::shown_path;
use crate::message::Failure;

impl Outputs {
    /// Whether the value asked for is one that a recording of those value names has.
    pub(crate) fn check_value(&self, names: &[String]) -> Result<(), Failure> {
        match &self.value {
            Some(value) if !names.contains(value) => {
                // How many samples each event has is of interest to few.
                let mut main: Vec<&str> = names.iter().map(String::as_str).collect();
                main.retain(|name| !name.ends_with("_samples"));
                main.dedup();
                let has = main.join(" and ");
                Err(Failure::usage(format!("no value {value} in this profile: it has {has}")))
            }
            _ => Ok(()),
        }
    }

    /// Whether what is asked for can be had of folded text.
    pub(crate) fn check_folded(&self, path: &Path) -> Result<(), Failure> {
        let RootFrame { by, process, tid, pid } = self.tree.root;
        let missing = match &self.value {
            Some(value) if value != "samples" => format!("value {value}"),
            _ if self.tree.lines => "source lines".to_owned(),
            _ if tid => "thread ids".to_owned(),
            _ if pid => "process ids".to_owned(),
            _ if !matches!(by, RootName::Comm | RootName::Pool) => "threads".to_owned(),
            _ if process => "process names in addition to thread names".to_owned(),
            _ => return Ok(()),
        };
        Err(Failure::usage(format!("no {missing} in {}", path.display()))
            .why("folded text has names and one count per stack, nothing else")
            .or_try("a pprof file: flame record -o out.pb.gz keeps everything that is known"))
    }

    /// Whether what is asked for can be had of stacks that another tool has printed.
    pub(crate) fn check_stacks(&self, path: &Path) -> Result<(), Failure> {
        let missing = match self.tree.root.by {
            _ if self.tree.lines => "source lines",
            RootName::Comm | RootName::Pool => return Ok(()),
            RootName::Process | RootName::Title | RootName::None => "threads apart from stacks",
        };
        Err(Failure::usage(format!("no {missing} in {}", shown_path(path)))
            .or_try("a pprof file: flame record -o out.pb.gz keeps everything that is known"))
    }

    /// Whether what is asked for can be had of sums of equal stacks, which `what` is.
    pub(crate) fn check_sums(&self, what: &str) -> Result<(), Failure> {
        if self.tree.order != SiblingOrder::Time {
            return Ok(());
        }
        Err(Failure::usage(format!("cannot draw a flame chart of {what}"))
            .why("equal stacks are summed there, so it is not known when each was seen")
            .or_try("--no-sort, to keep the order in which functions were first seen"))
    }
}
