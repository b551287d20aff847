//! The file of consistent colours: lines of `NAME->rgb(R,G,B)`, read before the picture is drawn and
//! written with what it lacked afterwards.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use caps::Capability;
use flame_render::Rgb;

use super::picture::cannot;
use crate::inputs::shown_path as shown;
use crate::message::Failure;
use crate::sudo::own_files;

/// The file as it was read.
#[derive(Debug)]
pub(super) struct PaletteFile {
    path: PathBuf,
    pub(super) colours: BTreeMap<String, Rgb>,
    is_there: bool,
}

impl PaletteFile {
    /// Reads it; one that is not there yet has no colours.
    pub(super) fn read(path: &Path, complaints: &mut Vec<String>) -> Result<PaletteFile, Failure> {
        let path = path.to_owned();
        let text = match own_files().read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(PaletteFile { path, colours: BTreeMap::new(), is_there: false });
            }
            result => result.map_err(|error| cannot("read", &path, &error))?,
        };
        let (colours, bad) = parse(&String::from_utf8_lossy(&text));
        if bad > 0 {
            let lines = if bad == 1 { "line" } else { "lines" };
            let path = shown(&path);
            complaints.push(format!("{bad} {lines} of {path} left out: not NAME->rgb(R,G,B)"));
        }
        Ok(PaletteFile { path, colours, is_there: true })
    }

    /// The capabilities without which it cannot be written.
    pub(super) fn needed_capabilities(&self) -> Vec<Capability> {
        own_files().needed_capabilities(&self.path)
    }

    /// Writes the colours, unless the file has them all: it may be a team's, which nobody writes
    /// to. Like an output it is replaced, and a link in its place is not followed.
    pub(super) fn keep(&self, colours: BTreeMap<String, Rgb>) -> Result<(), Failure> {
        if self.is_there && colours == self.colours {
            return Ok(());
        }
        let written = own_files().replace(&self.path, &mut |out| {
            for (name, Rgb(r, g, b)) in &colours {
                // A line feed would end the entry in the middle of its name.
                writeln!(out, "{}->rgb({r},{g},{b})", name.replace(['\n', '\r'], " "))?;
            }
            Ok(())
        });
        written.map(drop).map_err(|error| cannot("write", &self.path, &error))
    }
}

/// The colours of names, and how many lines are none.
fn parse(text: &str) -> (BTreeMap<String, Rgb>, usize) {
    let mut colours = BTreeMap::new();
    let mut bad = 0;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        // The last arrow: names may hold one, as that of a method `operator->` does.
        let entry =
            line.rsplit_once("->").and_then(|(name, colour)| Some((name, colour.parse().ok()?)));
        match entry {
            Some((name, colour)) => drop(colours.insert(name.to_owned(), colour)),
            None => bad += 1,
        }
    }
    (colours, bad)
}
