//! Turns the reference to a split unit into its DWARF: `.dwo` files, and `.dwp` packages of them.
//!
//! With `-gsplit-dwarf` compilers leave most of a unit's debug information in a file beside the
//! object file and only a skeleton, with its number and that file's name, in the program. A file
//! counts only when a unit in it has that number.
//!
//! Sources: DWARF 5, sections 3.1.2, 7.3.2 and 7.3.5; GCC's wiki, "DebugFission", for DWARF 4.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use flame_image::{DebugSearch, ImageFile};
use flame_profile::SharedBytes;
use gimli::{Dwarf, DwarfPackageSections, DwarfSections, DwoId, EndianSlice, RunTimeEndian};
use gimli::{SectionId, UnitType};

use crate::debug_info::Reader;

/// The split units of one image, each opened when it is first asked for.
#[derive(Debug)]
pub(crate) struct SplitUnits {
    endian: RunTimeEndian,
    /// Where relative names are tried besides the directory of the compilation.
    directories: Vec<PathBuf>,
    packages: Vec<PathBuf>,
    search: DebugSearch,
    package: OnceLock<Option<DwarfPackageSections<SharedBytes>>>,
    first: Link,
}

/// What a skeleton says of its unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skeleton<'a> {
    /// The unit's number.
    pub(crate) id: DwoId,
    /// Where it was compiled; empty when that is not said.
    pub(crate) directory: &'a [u8],
    /// The file with the rest of it, relative to that directory; empty when that is not said.
    pub(crate) file: &'a [u8],
}

/// A list that only grows, so that what is in it can be lent out while others append.
type Link = OnceLock<Box<Node>>;

#[derive(Debug)]
struct Node {
    id: DwoId,
    sections: Option<DwarfSections<SharedBytes>>,
    next: Link,
}

impl SplitUnits {
    /// Of the image whose debug information is in `debug`: the image itself or another file.
    pub(crate) fn new(debug: &ImageFile, endian: RunTimeEndian) -> SplitUnits {
        let mut places = vec![debug.search().image_path()];
        places.extend(debug.path().map(Path::to_owned));
        places.dedup();
        let named = debug.search().directories.iter();
        let beside = places.iter().filter_map(|place| place.parent());
        let directories = beside.map(Path::to_owned).chain(named.cloned()).collect();
        let name = places[0].file_name().map(OsStr::to_owned).unwrap_or_default();
        places.extend(debug.search().directories.iter().map(|directory| directory.join(&name)));
        let packages = places.iter().flat_map(|place| package_paths(place)).collect();
        let (package, first) = (OnceLock::new(), Link::new());
        let search = debug.search().clone();
        SplitUnits { endian, directories, packages, search, package, first }
    }

    /// The DWARF of a split unit; `parent` is that of the file with its skeleton. `None` when its
    /// file cannot be found.
    pub(crate) fn dwarf<'a>(
        &'a self,
        skeleton: Skeleton<'_>,
        parent: &Dwarf<Reader<'a>>,
    ) -> Option<Dwarf<Reader<'a>>> {
        let borrow = |bytes: &'a SharedBytes| EndianSlice::new(bytes, self.endian);
        let package =
            self.package.get_or_init(|| open_package(&self.packages, &self.search)).as_ref();
        let packaged = package.and_then(|package| {
            let package = package.borrow(borrow, EndianSlice::new(&[], self.endian)).ok()?;
            package.find_cu(skeleton.id, parent).ok().flatten()
        });
        if packaged.is_some() {
            return packaged;
        }
        let mut dwarf = self.opened(skeleton)?.borrow(borrow);
        dwarf.make_dwo(parent);
        Some(dwarf)
    }

    /// The sections of a `.dwo` file, looked for once.
    fn opened(&self, skeleton: Skeleton<'_>) -> Option<&DwarfSections<SharedBytes>> {
        let mut link = &self.first;
        loop {
            let node = link.get_or_init(|| {
                let sections = self.open(skeleton);
                Box::new(Node { id: skeleton.id, sections, next: Link::new() })
            });
            if node.id == skeleton.id {
                return node.sections.as_ref();
            }
            link = &node.next;
        }
    }

    fn open(&self, skeleton: Skeleton<'_>) -> Option<DwarfSections<SharedBytes>> {
        let mut paths = self.paths(skeleton).into_iter();
        let found = paths.find_map(|path| {
            let sections = load(&ImageFile::open_with(&path, self.search.clone()).ok()?);
            has_unit(&sections, skeleton.id, self.endian).then_some(sections)
        });
        if found.is_none() {
            let file = String::from_utf8_lossy(skeleton.file);
            tracing::info!(%file, "no split debug information of that number");
        }
        found
    }

    /// Where a `.dwo` file may be: where the compiler wrote it, and beside the image.
    fn paths(&self, skeleton: Skeleton<'_>) -> Vec<PathBuf> {
        let to_path = |bytes| Path::new(OsStr::from_bytes(bytes));
        let file = to_path(skeleton.file);
        if skeleton.file.is_empty() {
            return Vec::new();
        }
        // `join` lets an absolute name stand as it is.
        let mut paths = vec![to_path(skeleton.directory).join(file)];
        for directory in &self.directories {
            paths.push(directory.join(file));
            paths.extend(file.file_name().map(|name| directory.join(name)));
        }
        paths.dedup();
        paths
    }
}

impl Drop for SplitUnits {
    /// Takes the list apart in a loop: dropped as it is it would recurse as deep as it is long.
    fn drop(&mut self) {
        let mut next = self.first.take();
        while let Some(mut node) = next {
            next = node.next.take();
        }
    }
}

/// The packages that may belong to a file: `program.dwp`, and `program.dwp` for `program.debug`.
fn package_paths(place: &Path) -> Vec<PathBuf> {
    let Some(name) = place.file_name() else { return Vec::new() };
    let mut whole = name.to_owned();
    whole.push(".dwp");
    let mut paths = vec![place.with_file_name(whole)];
    if place.extension() == Some(OsStr::new("debug")) {
        paths.push(place.with_extension("dwp"));
    }
    paths
}

fn open_package(
    paths: &[PathBuf],
    search: &DebugSearch,
) -> Option<DwarfPackageSections<SharedBytes>> {
    let open = |path: &PathBuf| ImageFile::open_with(path, search.clone()).ok();
    let image = paths.iter().find_map(open)?;
    let load = |id: SectionId| Ok::<_, gimli::Error>(split_section(&image, id));
    DwarfPackageSections::load(load).ok()
}

fn load(image: &ImageFile) -> DwarfSections<SharedBytes> {
    let load = |id: SectionId| Ok::<_, Infallible>(split_section(image, id));
    let Ok(sections) = DwarfSections::load(load);
    sections
}

/// A section as split files name it; empty when there is none.
fn split_section(image: &ImageFile, id: SectionId) -> SharedBytes {
    let section = id.dwo_name().and_then(|name| image.section(name));
    section.map(|section| section.bytes).unwrap_or_default()
}

/// Whether a file has the unit of that number.
fn has_unit(sections: &DwarfSections<SharedBytes>, id: DwoId, endian: RunTimeEndian) -> bool {
    let mut dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, endian));
    dwarf.file_type = gimli::DwarfFileType::Dwo;
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let found = match header.type_() {
            UnitType::SplitCompilation(found) => Some(found),
            // In DWARF 4 it is an attribute.
            _ => dwarf.unit(header).ok().and_then(|unit| unit.dwo_id),
        };
        if found == Some(id) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests;
