//! One image with what is looked up in it: opened, cut into tasks, and answered.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use flame_image::ImageFile;
use flame_profile::ImageAddress;
use rustc_hash::FxHashMap;

use super::SymbolizeConfig;
use crate::debug_info::DebugInfo;
use crate::namer::{Namer, Symbolized};
use crate::units::{CodeRanges, DebugFrame, Opener, UnitMap, Units, look_up};

/// Addresses of one task that no unit owns: they take a look into the symbol table each.
const PLAIN_ADDRESSES: usize = 4096;

/// One image with what is looked up in it.
pub(super) struct Job<'a> {
    image: &'a ImageFile,
    /// The file with the debug information: the image itself or its companion.
    debug_image: &'a ImageFile,
    pub(super) addresses: &'a [ImageAddress],
    code: CodeRanges,
    debug: OnceLock<Option<DebugInfo>>,
    map: OnceLock<UnitMap>,
}

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
    openers: &'j [Option<Opener<'j>>],
    config: &'j SymbolizeConfig,
    namers: FxHashMap<usize, Namer<'j>>,
}

impl<'a> Job<'a> {
    pub(super) fn new(image: &'a ImageFile, addresses: &'a [ImageAddress]) -> Job<'a> {
        Job {
            image,
            debug_image: image.companion().unwrap_or(image),
            addresses,
            code: CodeRanges::of(image),
            debug: OnceLock::new(),
            map: OnceLock::new(),
        }
    }

    pub(super) fn read_symbols(&self) {
        self.image.symbols();
    }

    /// Finds out which unit owns which address.
    pub(super) fn read_debug(&self) {
        let read = || self.opener().map(|opener| UnitMap::read(&opener, &self.code));
        self.map.get_or_init(|| read().unwrap_or_default());
    }

    /// What opens the units of the image, if it has debug information.
    pub(super) fn opener(&self) -> Option<Opener<'_>> {
        let debug = self.debug.get_or_init(|| DebugInfo::load(self.debug_image));
        let debug = debug.as_ref()?;
        Some(Opener::new(debug.dwarf(), Some(debug.split())))
    }

    /// The addresses by the units that own them.
    pub(super) fn tasks(&self, job: usize) -> Vec<Task> {
        let Some(map) = self.map.get() else { return Vec::new() };
        let mut by_unit: FxHashMap<u32, usize> = FxHashMap::default();
        let (mut tasks, mut plain): (Vec<Task>, Vec<usize>) = (Vec::new(), Vec::new());
        for (position, address) in self.addresses.iter().enumerate() {
            let Some(unit) = map.owner(*address) else {
                plain.push(position);
                continue;
            };
            let task = *by_unit.entry(unit).or_insert_with(|| {
                let cost = map.unit_len(unit);
                tasks.push(Task { job, unit: Some(unit), positions: Vec::new(), cost });
                tasks.len() - 1
            });
            tasks[task].positions.push(position);
        }
        let plain = plain.chunks(PLAIN_ADDRESSES).map(<[usize]>::to_vec);
        tasks.extend(plain.map(|positions| Task { job, unit: None, positions, cost: 0 }));
        tasks
    }
}

impl<'j> Worker<'j> {
    pub(super) fn new(
        jobs: &'j [Job<'j>],
        openers: &'j [Option<Opener<'j>>],
        config: &'j SymbolizeConfig,
    ) -> Worker<'j> {
        Worker { jobs, openers, config, namers: FxHashMap::default() }
    }

    /// The answers for the addresses of a task, in the order of its positions.
    pub(super) fn run(&mut self, task: &Task) -> Vec<Symbolized> {
        let job = &self.jobs[task.job];
        let new_namer = || Namer::new(job.image.symbols(), self.config);
        let namer = self.namers.entry(task.job).or_insert_with(new_namer);
        let addresses = task.positions.iter().filter_map(|at| job.addresses.get(*at).copied());
        let mut answers = Vec::with_capacity(task.positions.len());
        let mut answer = |address, frames: &[DebugFrame<'_>]| {
            answers.push(answer(job.image, namer, address, frames));
        };
        let unit = task.unit.and_then(|unit| job.map.get()?.offset(unit));
        if let (Some(offset), Some(opener), Some(map)) =
            (unit, &self.openers[task.job], job.map.get())
        {
            let units = Units { opener, map, code: &job.code };
            let look_up = || look_up(units, offset, addresses.clone(), &mut answer);
            // A parser that panics at damaged debug information must not cost the recording.
            if let Ok(Err(error)) = catch_unwind(AssertUnwindSafe(look_up)) {
                tracing::warn!(image = ?job.image, offset, %error, "unit left out");
            }
        }
        let answered = answers.len();
        let rest = addresses.skip(answered);
        answers.extend(rest.map(|address| self::answer(job.image, namer, address, &[])));
        answers
    }
}

/// The answer for an address of an image, given what debug information says of it.
fn answer<'j>(
    image: &'j ImageFile,
    namer: &mut Namer<'j>,
    address: ImageAddress,
    debug: &[DebugFrame<'_>],
) -> Symbolized {
    if let (true, Some(go_table)) = (debug.is_empty(), image.go_table()) {
        let mut frames = Vec::new();
        go_table.frames(address, &mut frames);
        if !frames.is_empty() {
            return namer.go_answer(address, &frames);
        }
    }
    namer.answer(address, debug)
}
