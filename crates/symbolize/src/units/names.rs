//! Turns what an entry says of its name, and the entries it refers to, into one name.
//!
//! A function that was inlined, or defined apart from its declaration, refers to another entry that
//! may be in another unit or in the file that `dwz` made. The linkage name counts wherever it
//! stands; without any the plain name does, with the scopes of the entry that it is of.

use std::borrow::Cow;

use gimli::{Attribute, AttributeValue, DebugInfoOffset, EntriesRaw, Unit, UnitOffset, UnitRef};
use rustc_hash::FxHashMap;

use super::effort::{Effort, Unreadable};
use super::map::UnitMap;
use super::opener::Opener;
use super::scopes::{Scopes, read_scopes};
use super::text::text;
use crate::debug_info::Reader;

/// How many entries a name is looked for in; compilers need three.
const MAX_ORIGINS: usize = 16;

/// How many other units are kept open. Units that link-time optimization merges refer to some tens.
const MAX_OPEN: usize = 64;

/// What an entry says of its name. The text is read when it is needed.
#[derive(Clone, Copy, Debug, Default)]
struct Naming<'d> {
    linkage: Option<AttributeValue<Reader<'d>>>,
    plain: Option<AttributeValue<Reader<'d>>>,
    origin: Option<Origin>,
}

/// The same as text.
struct NamingText<'d> {
    linkage: Option<&'d [u8]>,
    plain: Option<&'d [u8]>,
    origin: Option<Origin>,
}

/// Another entry, by where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Origin {
    /// In the unit that is walked.
    Unit(usize),
    /// In `.debug_info`.
    File(usize),
    /// In `.debug_info` of the supplementary file.
    Supplement(usize),
}

/// Names of the entries of one unit.
pub(crate) struct NameReader<'u, 'd> {
    opener: &'u Opener<'d>,
    map: &'u UnitMap,
    unit: UnitRef<'u, Reader<'d>>,
    /// The other units, by what opens them.
    others: FxHashMap<Origin, Option<Unit<Reader<'d>>>>,
    /// By where their entries stand.
    known: FxHashMap<usize, Option<Followed<'d>>>,
}

/// What was found by following references.
#[derive(Clone, Copy)]
struct Followed<'d> {
    name: &'d [u8],
    /// Where the last entry stands that it may be declared by, for a plain name of the unit itself.
    declared_at: Option<usize>,
}

/// The names of some entries of one unit.
pub(crate) struct Names<'d> {
    known: FxHashMap<usize, Option<Followed<'d>>>,
    scopes: Scopes,
}

impl<'d> Naming<'d> {
    /// Takes in one attribute of an entry.
    fn take(&mut self, attribute: &Attribute<Reader<'d>>) {
        match attribute.name() {
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                self.linkage = Some(attribute.value());
            }
            gimli::DW_AT_name => self.plain = Some(attribute.value()),
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                self.origin = match attribute.value() {
                    AttributeValue::UnitRef(UnitOffset(offset)) => Some(Origin::Unit(offset)),
                    AttributeValue::DebugInfoRef(DebugInfoOffset(at)) => Some(Origin::File(at)),
                    AttributeValue::DebugInfoRefSup(DebugInfoOffset(at)) => {
                        Some(Origin::Supplement(at))
                    }
                    _ => None,
                };
            }
            _ => {}
        }
    }

    fn read(self, unit: UnitRef<'_, Reader<'d>>) -> NamingText<'d> {
        let text = |value| text(unit.dwarf, unit.unit, value).filter(|text| !text.is_empty());
        let linkage = self.linkage.and_then(text);
        let plain = self.plain.filter(|_| linkage.is_none()).and_then(text);
        NamingText { linkage, plain, origin: self.origin }
    }
}

impl<'u, 'd> NameReader<'u, 'd> {
    pub(crate) fn new(
        opener: &'u Opener<'d>,
        map: &'u UnitMap,
        unit: UnitRef<'u, Reader<'d>>,
    ) -> NameReader<'u, 'd> {
        let (others, known) = (FxHashMap::default(), FxHashMap::default());
        NameReader { opener, map, unit, others, known }
    }

    /// Reads the name of the entry at that place of the unit.
    pub(crate) fn read(&mut self, at: usize) {
        if !self.known.contains_key(&at) {
            let found = self.follow(Origin::Unit(at));
            self.known.insert(at, found);
        }
    }

    /// The names that were read. Only now is the unit gone over for the scopes that they lack.
    pub(crate) fn into_names(self) -> Names<'d> {
        let found = self.known.values().flatten();
        let mut places: Vec<usize> = found.filter_map(|found| found.declared_at).collect();
        places.sort_unstable();
        places.dedup();
        let scopes = read_scopes(self.unit, &places, self.opener.walking());
        Names { known: self.known, scopes: scopes.unwrap_or_default() }
    }

    fn follow(&mut self, mut origin: Origin) -> Option<Followed<'d>> {
        let (mut plain, mut declared_at) = (None, None);
        for _ in 0..MAX_ORIGINS {
            // A reference that leads nowhere ends the search, and so does one too many.
            let Ok(naming) = self.read_naming(origin) else { break };
            if let Some(name) = naming.linkage {
                return Some(Followed { name, declared_at: None });
            }
            plain = plain.or(naming.plain);
            declared_at = match origin {
                Origin::Unit(at) => Some(at),
                _ => None,
            };
            match naming.origin {
                Some(next) => origin = next,
                None => break,
            }
        }
        plain.map(|name| Followed { name, declared_at })
    }

    /// Reads what the entry at `origin` says. References within its unit come back as ones within
    /// the file.
    fn read_naming(&mut self, origin: Origin) -> Result<NamingText<'d>, Unreadable> {
        let missing = gimli::Error::NoEntryAtGivenOffset(0);
        let effort = self.opener.walking();
        let (key, at) = match origin {
            Origin::Unit(offset) => return read_entry(self.unit, UnitOffset(offset), effort),
            Origin::File(at) => {
                let start = self.map.start_of(at as u64).ok_or(missing)?;
                (Origin::File(usize::try_from(start).map_err(|_| missing)?), at)
            }
            Origin::Supplement(at) => (Origin::Supplement(at), at),
        };
        if self.others.len() >= MAX_OPEN {
            self.others.clear();
        }
        let opener = self.opener;
        let other = self.others.entry(key).or_insert_with(|| match key {
            Origin::Supplement(at) => opener.open_supplement(at).ok(),
            Origin::File(start) | Origin::Unit(start) => opener.open_at(start as u64).ok(),
        });
        let unit = other.as_ref().ok_or(missing)?;
        let dwarf = match key {
            Origin::Supplement(_) => opener.dwarf().sup().ok_or(missing)?,
            _ => opener.dwarf(),
        };
        let offset = DebugInfoOffset(at).to_unit_offset(&unit.header).ok_or(missing)?;
        let mut naming = read_entry(UnitRef::new(dwarf, unit), offset, effort)?;
        if let Some(Origin::Unit(next)) = naming.origin {
            let start = unit.header.debug_info_offset().ok_or(missing)?.0;
            let next = start.saturating_add(next);
            naming.origin = Some(match key {
                Origin::Supplement(_) => Origin::Supplement(next),
                _ => Origin::File(next),
            });
        }
        Ok(naming)
    }
}

impl Names<'_> {
    /// The name of the entry at that place, never empty; a plain one with its scopes.
    pub(crate) fn name(&self, at: usize) -> Option<Cow<'_, [u8]>> {
        let found = self.known.get(&at).copied().flatten()?;
        let scope = found.declared_at.and_then(|at| self.scopes.get(&at));
        Some(match scope {
            Some(scope) => Cow::Owned([scope, found.name].concat()),
            None => Cow::Borrowed(found.name),
        })
    }
}

fn read_entry<'d>(
    unit: UnitRef<'_, Reader<'d>>,
    offset: UnitOffset,
    effort: &Effort,
) -> Result<NamingText<'d>, Unreadable> {
    let mut entries: EntriesRaw<'_, Reader<'d>> = unit.entries_raw(Some(offset))?;
    let mut naming = Naming::default();
    if let Some(abbreviation) = entries.read_abbreviation()? {
        effort.spend(abbreviation.attributes().len())?;
        for specification in abbreviation.attributes() {
            naming.take(&entries.read_attribute(*specification)?);
        }
    }
    Ok(naming.read(unit))
}
