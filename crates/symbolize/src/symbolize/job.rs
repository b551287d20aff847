//! One image with what is looked up in it: opened, cut into tasks, answered, and stored.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, OnceLock, PoisonError};

use flame_profile::ImageAddress;
use object::{Object, ObjectSection};
use rustc_hash::FxHashMap;

use super::SymbolizeConfig;
use crate::budget::Claim;
use crate::companion::alternate_link;
use crate::debug_info::DebugInfo;
use crate::image::ImageFile;
use crate::index_cache::IndexName;
use crate::index_file::{Contents, IndexFile};
use crate::namer::{Namer, Symbolized};
use crate::units::table::UnitTable;
use crate::units::{Built, CodeRanges, Opener, Strings, UnitMap, build_unit};

/// From this much debug information on, in bytes as stored, an index is worth its file: below, it
/// is read about as fast anew.
const MIN_INDEXED_LEN: u64 = 256 << 10;

/// An index of more bytes is written anew only for a share of new tables that is worth it.
const CHEAP_INDEX_LEN: usize = 32 << 20;

/// Addresses of one task that no unit owns: they take a look into the symbol table each.
const PLAIN_ADDRESSES: usize = 4096;

/// One image with what is looked up in it.
pub(super) struct Job<'a> {
    image: &'a ImageFile,
    /// The file with the debug information: the image itself or its companion.
    debug_image: &'a ImageFile,
    pub(super) addresses: &'a [ImageAddress],
    code: CodeRanges,
    /// Size of the debug information as stored.
    debug_len: u64,
    debug: OnceLock<Option<DebugInfo>>,
    prepared: OnceLock<Prepared>,
    kept: Mutex<Kept>,
}

/// What is known before the first address is looked up.
#[derive(Default)]
struct Prepared {
    map: UnitMap,
    name: Option<IndexName>,
    index: Option<IndexFile>,
    strings: Strings,
}

/// Tables that were made and are not in the index.
#[derive(Default)]
struct Kept {
    tables: Vec<(u32, Vec<u8>)>,
    len: usize,
    claims: Vec<Claim>,
}

/// Opens the units of a job when the first one is needed that is not in the index.
pub(super) type LazyOpener<'j> = OnceLock<Option<Opener<'j>>>;

/// The addresses of a job that one unit owns, or some that none does.
pub(super) struct Task {
    /// Its number.
    pub(super) job: usize,
    unit: Option<u32>,
    /// Where the addresses stand in the job.
    pub(super) positions: Vec<usize>,
    /// How many bytes of debug information have to be read.
    pub(super) cost: u64,
}

/// What one thread needs and keeps.
pub(super) struct Worker<'j> {
    jobs: &'j [Job<'j>],
    openers: &'j [LazyOpener<'j>],
    config: &'j SymbolizeConfig,
    namers: FxHashMap<usize, Namer<'j>>,
}

impl<'a> Job<'a> {
    pub(super) fn new(image: &'a ImageFile, addresses: &'a [ImageAddress]) -> Job<'a> {
        let debug_image = image.companion().unwrap_or(image);
        let elf = debug_image.elf();
        let info = elf.as_ref().and_then(|elf| elf.section_by_name(".debug_info"));
        Job {
            image,
            debug_image,
            addresses,
            code: CodeRanges::of(image),
            debug_len: info.map_or(0, |section| section.size()),
            debug: OnceLock::new(),
            prepared: OnceLock::new(),
            kept: Mutex::default(),
        }
    }

    pub(super) fn read_symbols(&self) {
        self.image.symbols();
    }

    /// Finds out which unit owns which address: from the index, or from the units themselves.
    pub(super) fn read_debug(&self, config: &SymbolizeConfig) {
        self.prepared.get_or_init(|| {
            let name = config.index.as_ref().and_then(|_| self.index_name());
            let load = || {
                let name = name.as_ref()?;
                let index = IndexFile::parse(config.index.as_ref()?.load(name)?, &name.key)?;
                Some((index.map()?, index))
            };
            if let Some((map, index)) = load() {
                let strings = Strings::of_index(index.clone());
                return Prepared { map, name, index: Some(index), strings };
            }
            let map = self.open_units().map(|opener| UnitMap::read(&opener, &self.code));
            Prepared { map: map.unwrap_or_default(), name, ..Prepared::default() }
        });
    }

    fn open_units(&self) -> Option<Opener<'_>> {
        let debug = self.debug.get_or_init(|| DebugInfo::load(self.debug_image));
        let debug = debug.as_ref()?;
        Some(Opener::new(debug.dwarf(), Some(debug.split())))
    }

    pub(super) fn opener(&self) -> LazyOpener<'_> {
        OnceLock::new()
    }

    fn index_name(&self) -> Option<IndexName> {
        if self.debug_len < MIN_INDEXED_LEN {
            return None;
        }
        let build_id = self.debug_image.build_id()?;
        let name = IndexName::new(build_id, self.debug_image.status()?, self.debug_len);
        Some(match alternate_link(self.debug_image) {
            Some((_, id)) => {
                let supplement = self.debug_image.supplement();
                name.with_supplement(&id, supplement.and_then(ImageFile::status))
            }
            None => name,
        })
    }

    /// The addresses by the units that own them.
    pub(super) fn tasks(&self, job: usize) -> Vec<Task> {
        let Some(prepared) = self.prepared.get() else { return Vec::new() };
        let mut by_unit: FxHashMap<u32, usize> = FxHashMap::default();
        let (mut tasks, mut plain): (Vec<Task>, Vec<usize>) = (Vec::new(), Vec::new());
        for (position, address) in self.addresses.iter().enumerate() {
            let Some(unit) = prepared.map.owner(*address) else {
                plain.push(position);
                continue;
            };
            let task = *by_unit.entry(unit).or_insert_with(|| {
                let is_stored = prepared.index.as_ref().is_some_and(|i| i.table(unit).is_some());
                let cost = if is_stored { 0 } else { prepared.map.unit_len(unit) };
                tasks.push(Task { job, unit: Some(unit), positions: Vec::new(), cost });
                tasks.len() - 1
            });
            tasks[task].positions.push(position);
        }
        let plain = plain.chunks(PLAIN_ADDRESSES).map(<[usize]>::to_vec);
        tasks.extend(plain.map(|positions| Task { job, unit: None, positions, cost: 0 }));
        tasks
    }

    /// The table of a unit, from the index or made now.
    fn table<'j>(&'j self, unit: u32, opener: &LazyOpener<'j>) -> Option<Cow<'j, [u8]>> {
        let prepared = self.prepared.get()?;
        if let Some(table) = prepared.index.as_ref().and_then(|index| index.table(unit)) {
            return Some(Cow::Borrowed(table));
        }
        let opener = opener.get_or_init(|| self.open_units()).as_ref()?;
        let offset = prepared.map.offset(unit)?;
        let build = || build_unit(opener, &prepared.map, &self.code, offset, &prepared.strings);
        // A parser that panics at damaged debug information must not cost the recording.
        let built = catch_unwind(AssertUnwindSafe(build)).ok()?;
        let built = built.inspect_err(|error| {
            tracing::warn!(image = ?self.image, offset, %error, "unit left out");
        });
        let Built { bytes, is_whole } = built.ok()?;
        if prepared.name.is_some() && is_whole {
            let claim = self.image.search().budget.claim(bytes.len() as u64);
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            // What there is no room for is read again next time.
            kept.extend(claim.map(|claim| (unit, bytes.clone(), claim)));
        }
        Some(Cow::Owned(bytes))
    }

    /// Writes what was made anew into the index, together with what it had.
    pub(super) fn store(&self, config: &SymbolizeConfig) {
        let Some(prepared) = self.prepared.get() else { return };
        let (Some(cache), Some(name)) = (&config.index, &prepared.name) else { return };
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let old_len = prepared.index.as_ref().map_or(0, IndexFile::len);
        let is_worth_it = old_len < CHEAP_INDEX_LEN || kept.len > old_len / 16;
        if kept.tables.is_empty() || !is_worth_it {
            return;
        }
        let new_strings = prepared.strings.new_texts();
        let contents = Contents {
            key: &name.key,
            map: &prepared.map,
            old: prepared.index.as_ref(),
            new_tables: &kept.tables,
            new_strings: &new_strings,
        };
        let Some(parts) = contents.to_parts() else { return };
        if let Err(error) = cache.save(name, parts.iter().map(|part| &**part)) {
            tracing::info!(%error, "index not written");
        }
    }
}

impl Kept {
    fn extend(&mut self, table: Option<(u32, Vec<u8>, Claim)>) {
        if let Some((unit, bytes, claim)) = table {
            self.len += bytes.len();
            self.tables.push((unit, bytes));
            self.claims.push(claim);
        }
    }
}

impl<'j> Worker<'j> {
    pub(super) fn new(
        jobs: &'j [Job<'j>],
        openers: &'j [LazyOpener<'j>],
        config: &'j SymbolizeConfig,
    ) -> Worker<'j> {
        Worker { jobs, openers, config, namers: FxHashMap::default() }
    }

    /// The answers for the addresses of a task, in the order of its positions.
    pub(super) fn run(&mut self, task: &Task) -> Vec<Symbolized> {
        let job = &self.jobs[task.job];
        let Some(prepared) = job.prepared.get() else { return Vec::new() };
        let bytes = task.unit.and_then(|unit| job.table(unit, &self.openers[task.job]));
        let table = bytes.as_deref().and_then(UnitTable::parse);
        let new_namer = || Namer::new(job.image.symbols(), &prepared.strings, self.config);
        let namer = self.namers.entry(task.job).or_insert_with(new_namer);
        let go_table = job.image.go_table();
        let (mut frames, mut go_frames) = (Vec::new(), Vec::new());
        let addresses = task.positions.iter().filter_map(|at| job.addresses.get(*at));
        let answers = addresses.map(|address| {
            if let Some(table) = &table {
                table.frames(*address, &mut frames);
            }
            if let (true, Some(go_table)) = (frames.is_empty(), go_table) {
                go_table.frames(*address, &mut go_frames);
                if !go_frames.is_empty() {
                    return namer.go_answer(*address, &go_frames);
                }
            }
            namer.answer(*address, &frames)
        });
        answers.collect()
    }
}
