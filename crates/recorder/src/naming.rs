//! Rows of locations become a profile with names.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use flame_events::Processes;
use flame_profile::{
    Frame, FrameId, FrameKind, Image, ImageAddress, ImageId, Location, LocationId, Missing, Pid,
    ProcessAddress, Profile, StackId, Thread, ThreadId,
};
use flame_symbolize::{KernelError, SymbolFrame, Symbolized};
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::aggregator::{Rows, samples_by_image, samples_of};
use crate::collector::Collector;
use crate::images::{OpenImage, image_name};
use crate::inlining::Inlining;
use crate::location::{CodeLocation, JitId, ScriptId, ThreadPosition};
use crate::locator::Locator;
use crate::relative::KernelBases;
use crate::scripts::Scripts;
use crate::sets::Sets;
use crate::symbolizer::Symbolizer;

/// The name of the frame under which stacks stand whose outer frames are missing.
pub(super) const TRUNCATED: &str = "[truncated stack]";

/// The name of the frame under which stacks stand that are deeper than asked for.
pub(super) const BEYOND_MAX_DEPTH: &str = "[frames beyond --max-depth]";

/// Stands in place of frames that there was no room for.
const NOT_KEPT: &str = "[functions further in not kept]";

/// The innermost frame of a thread that was taken off its CPU although it could have gone on.
const PREEMPTED: &str = "[preempted]";

/// The only frame of waits that were not sampled, and that no sample of about their length stands for.
const NOT_SAMPLED: &str = "[waits not sampled]";

/// The same, of calls.
const CALLS_NOT_SAMPLED: &str = "[calls not sampled]";

/// The only frame of the time on CPU of a thread that was never sampled there.
const RAN_UNSAMPLED: &str = "[on-CPU time not sampled]";

/// The only frame of a thread that has waited since before the recording.
const WAITED_BEFORE: &str = "[waiting since before the recording]";

/// What stands between the stack of a thread that waits and that of who woke it.
const WAKER: &str = "--";

/// In place of a thread that woke another one.
const WOKEN_BY_INTERRUPT: &str = "woken by an interrupt";

/// The same, where it is not known who it was.
const WAKER_NOT_SAMPLED: &str = "[waker not sampled]";

/// The same, where nobody has.
const NOT_WOKEN: &str = "[not woken before the end]";

/// A frame of an interpreted program whose function could not be read.
const SCRIPT_UNKNOWN: &str = "[function not read]";

/// What stands for callers in an interpreted program that could not be read.
const SCRIPT_CALLERS_NOT_READ: &str = "[callers not read]";

/// Functions in which a CPU waits for work. Samples of the idle task that end in one of them are no
/// use of CPU time; others of that task, such as interrupts that it handles, are.
const IDLE_FUNCTIONS: &[&str] = &[
    "acpi_idle_do_entry",
    "acpi_safe_halt",
    "arch_cpu_idle",
    "cpu_do_idle",
    "cpu_idle_poll",
    "cpuidle_enter_state",
    "default_idle",
    "do_idle",
    "intel_idle",
    "intel_idle_irq",
    "mwait_idle",
    "mwait_idle_with_hints",
    "native_safe_halt",
    "poll_idle",
    "pv_native_safe_halt",
];

/// Puts rows into `profile`, with what `symbols` knows of their addresses.
pub(super) fn name_all(
    rows: &Rows,
    collector: &Collector,
    symbols: &Symbolizer,
    profile: &mut Profile,
) {
    let code = collector.locator();
    let mut namer = Namer::new(rows, code, collector.scripts(), symbols);
    // Readers of profiles take the first image for the program.
    if let Some(program) = program(rows, &code.processes) {
        namer.profile_image(profile, program);
    }
    let mut stacks: Vec<StackId> = vec![StackId::EMPTY];
    profile.reserve_stacks(rows.stacks.len());
    let mut unnamed = UnnamedCode::default();
    let mut inlining = Inlining::new();
    for (_, parent, number) in rows.stacks.nodes() {
        let (location, missing) = namer.location(profile, number);
        if let Some(missing) = missing {
            unnamed.add(location, missing);
        }
        let parent = stacks.get(parent.index()).copied().unwrap_or(StackId::EMPTY);
        stacks.push(inlining.push(profile, parent, location));
    }
    profile.health.notes.extend(inlining.notes());
    let idle = idle_locations(profile);
    let mut threads: Vec<Option<ThreadId>> = vec![None; rows.threads.len()];
    let mut positions: Vec<Option<usize>> = Vec::with_capacity(rows.len());
    let mut samples: Vec<(StackId, u64)> = Vec::with_capacity(rows.len());
    profile.reserve_samples(rows.len());
    for ((thread, stack, evidence), values) in rows.iter() {
        let Some(key) = rows.threads.get_index(*thread) else { continue };
        let stack = stacks.get(stack.index()).copied().unwrap_or(StackId::EMPTY);
        if key.pid == Some(Pid(0)) && ends_idle(profile, stack, &idle) {
            profile.health.idle_samples += samples_of(values);
            profile.health.samples -= samples_of(values);
            positions.push(None);
            continue;
        }
        let thread = *threads[*thread].get_or_insert_with(|| {
            let name = profile.intern(&key.name);
            let process = Some(profile.intern(&key.process));
            let (pid, tid) = (key.pid, key.tid);
            profile.add_whole_thread(Thread { name, process, pid, tid })
        });
        positions.push(Some(profile.add_sample_of(thread, stack, *evidence, values)));
        samples.push((stack, samples_of(values)));
    }
    unnamed.count(profile, &samples);
    profile.timeline = rows.timeline.as_ref().map(|timeline| timeline.with_rows(&positions));
    for (key, samples) in unnamed.reasons {
        *profile.health.unnamed.entry(key).or_default() += samples;
    }
}

/// The image that was recorded most likely: one that is called like the process with the most
/// samples, else the one in most stacks that is not a library, else the one in most stacks.
fn program(rows: &Rows, processes: &Processes) -> Option<ImageId> {
    let mut of_process: BTreeMap<&str, u64> = BTreeMap::new();
    for ((thread, ..), values) in rows.iter() {
        if let Some(key) = rows.threads.get_index(*thread) {
            *of_process.entry(&*key.process).or_default() += samples_of(values);
        }
    }
    let heaviest = of_process.into_iter().max_by_key(|(_, samples)| *samples);
    let rank = |id: ImageId, samples: u64| {
        let path = processes.image(id).map_or_else(String::new, image_name);
        let name = base_name(&path);
        let is_library = name.ends_with(".so") || name.contains(".so.") || path.starts_with('[');
        // The kernel keeps 15 bytes of a name.
        let is_called = heaviest.is_some_and(|(process, _)| {
            !process.is_empty()
                && (name == process || process.len() >= 15 && name.starts_with(process))
        });
        (is_called, !is_library, !path.starts_with('['), samples)
    };
    let images = samples_by_image(rows).into_iter();
    images.max_by_key(|(id, samples)| rank(*id, *samples)).map(|(id, _)| id)
}

/// Code without names, by image and reason, with how many samples have some of it.
#[derive(Default)]
struct UnnamedCode {
    reasons: IndexMap<(String, Missing), u64, FxBuildHasher>,
    /// For each location the position of its reason, if it has one.
    of_location: Vec<Option<u32>>,
}

impl UnnamedCode {
    fn add(&mut self, location: LocationId, missing: (String, Missing)) {
        let at = self.reasons.entry(missing);
        let (position, index) = (u32::try_from(at.index()).unwrap_or(u32::MAX), location.index());
        at.or_default();
        if self.of_location.len() <= index {
            self.of_location.resize(index + 1, None);
        }
        self.of_location[index] = Some(position);
    }

    /// Counts the samples of stacks, once for each reason that a stack meets.
    fn count(&mut self, profile: &Profile, samples: &[(StackId, u64)]) {
        if self.reasons.is_empty() {
            return;
        }
        let mut sets = Sets::new();
        for (stack, caller, location) in profile.stacks().nodes() {
            let reason = self.of_location.get(location.index()).copied().flatten();
            sets.add(stack, caller, reason);
        }
        for (reason, samples) in sets.sums(samples.iter().copied()) {
            self.reasons[reason as usize] += samples;
        }
    }
}

fn idle_locations(profile: &Profile) -> FxHashSet<FrameId> {
    let mut idle = FxHashSet::default();
    for location in profile.locations() {
        for id in &location.frames {
            let frame = profile.frame(*id);
            if frame.kind == FrameKind::Kernel && IDLE_FUNCTIONS.contains(&profile.text(frame.name))
            {
                idle.insert(*id);
            }
        }
    }
    idle
}

/// Whether the innermost function is one that waits for work. Without kernel symbols nothing can be
/// told apart, and the idle task's samples are all taken for idling.
fn ends_idle(profile: &Profile, stack: StackId, idle: &FxHashSet<FrameId>) -> bool {
    let Some(leaf) = profile.stacks().entry(stack) else { return true };
    let frames = &profile.location(leaf).frames;
    let hidden = |id: &FrameId| profile.text(profile.frame(*id).name).starts_with("[kernel+");
    frames.iter().any(|id| idle.contains(id) || hidden(id))
}

/// Everything that names are looked up in.
struct Namer<'c> {
    code: &'c Locator,
    scripts: &'c Scripts,
    images: FxHashMap<ImageId, ImageId>,
    symbols: &'c Symbolizer,
    rows: &'c Rows,
    bases: KernelBases,
    /// For each location of the rows the profile's.
    known: Vec<Option<LocationId>>,
}

type Unnamed = Option<(String, Missing)>;

fn mark(profile: &mut Profile, name: &str) -> (Location, Unnamed) {
    (Location::named(profile.add_frame(name, FrameKind::Mark)), None)
}

impl<'c> Namer<'c> {
    fn new(
        rows: &'c Rows,
        code: &'c Locator,
        scripts: &'c Scripts,
        symbols: &'c Symbolizer,
    ) -> Namer<'c> {
        let in_kernel = |location| match location {
            CodeLocation::Kernel(address) | CodeLocation::Waiting(address) => Some(address),
            _ => None,
        };
        let bases = KernelBases::of(rows.stacks.locations().filter_map(in_kernel));
        let (images, known) = (FxHashMap::default(), vec![None; rows.stacks.locations().len()]);
        Namer { code, scripts, images, symbols, rows, bases, known }
    }

    /// The profile's location for one of the rows, and why it has no name if it has none; that is said
    /// once.
    fn location(&mut self, profile: &mut Profile, number: u32) -> (LocationId, Unnamed) {
        if let Some(known) = self.known[number as usize] {
            return (known, None);
        }
        let (location, unnamed) = match self.rows.stacks.location(number) {
            CodeLocation::Truncated => mark(profile, TRUNCATED),
            CodeLocation::BeyondMaxDepth => mark(profile, BEYOND_MAX_DEPTH),
            CodeLocation::NotKept => mark(profile, NOT_KEPT),
            CodeLocation::Preempted => mark(profile, PREEMPTED),
            CodeLocation::NotSampled => mark(profile, NOT_SAMPLED),
            CodeLocation::CallsNotSampled => mark(profile, CALLS_NOT_SAMPLED),
            CodeLocation::RanUnsampled => mark(profile, RAN_UNSAMPLED),
            CodeLocation::WaitedBefore => mark(profile, WAITED_BEFORE),
            CodeLocation::Waker => mark(profile, WAKER),
            CodeLocation::WokenBy(thread) => self.waker(profile, thread),
            CodeLocation::WokenByInterrupt => mark(profile, WOKEN_BY_INTERRUPT),
            CodeLocation::WakerNotSampled => mark(profile, WAKER_NOT_SAMPLED),
            CodeLocation::NotWoken => mark(profile, NOT_WOKEN),
            CodeLocation::Kernel(address) => {
                self.kernel_location(profile, address, FrameKind::Kernel)
            }
            CodeLocation::Waiting(address) => {
                self.kernel_location(profile, address, FrameKind::Waiting)
            }
            CodeLocation::Jit(id) => self.jit_location(profile, id),
            CodeLocation::Java(number) => self.java_location(profile, number),
            CodeLocation::Script(id) => self.script_location(profile, id),
            CodeLocation::ScriptUnknown => mark(profile, SCRIPT_UNKNOWN),
            CodeLocation::ScriptCallersNotRead => mark(profile, SCRIPT_CALLERS_NOT_READ),
            CodeLocation::ScriptNotRead(language) => {
                mark(profile, &format!("[{language}: not read in time]"))
            }
            CodeLocation::NoCaller => {
                let frame = profile.add_frame("[unmapped]", FrameKind::User);
                let missing = ("[unmapped]".to_owned(), Missing::NotMapped);
                (Location::named(frame), Some(missing))
            }
            CodeLocation::Unmapped(address) => {
                unnamed(profile, "unmapped", address, FrameKind::User, Missing::NotMapped)
            }
            CodeLocation::Image(image, offset) => self.image_location(profile, image, offset),
        };
        let id = profile.add_location(location);
        self.known[number as usize] = Some(id);
        (id, unnamed)
    }

    fn waker(&self, profile: &mut Profile, thread: ThreadPosition) -> (Location, Unnamed) {
        let thread = self.rows.threads.get_index(thread.0);
        mark(profile, &format!("woken by {}", thread.map_or("[unknown]", |thread| &thread.name)))
    }

    fn kernel_location(
        &self,
        profile: &mut Profile,
        address: ProcessAddress,
        kind: FrameKind,
    ) -> (Location, Unnamed) {
        let relative = self.bases.relative(address, self.symbols.kernel().ok());
        let missing = match self.symbols.kernel() {
            Ok(symbols) => match symbols.lookup(address) {
                Some((name, _)) => {
                    let frame = profile.add_frame(name, kind);
                    return (at(None, relative, vec![frame]), None);
                }
                None => Missing::NoSymbol,
            },
            Err(KernelError::Io { source, .. }) if source.kind() == ErrorKind::Unsupported => {
                Missing::OtherKernel
            }
            Err(_) => Missing::KernelHidden,
        };
        unnamed(profile, "kernel", relative, kind, missing)
    }

    fn script_location(&self, profile: &mut Profile, id: ScriptId) -> (Location, Unnamed) {
        let Some(found) = self.scripts.get(id) else { return mark(profile, SCRIPT_UNKNOWN) };
        let name = profile.intern(&found.label());
        let file = found.file.as_deref().map(|file| profile.intern(file));
        let frame = Frame { name, kind: FrameKind::Script, file, line: Some(found.line) };
        let frame = profile.add_whole_frame(frame);
        (Location::named(frame), None)
    }

    fn java_location(&self, profile: &mut Profile, number: u32) -> (Location, Unnamed) {
        let Some(shown) = self.code.java.get(number) else { return mark(profile, SCRIPT_UNKNOWN) };
        let last = shown.methods.len().saturating_sub(1);
        let add = |(index, name): (usize, &std::sync::Arc<str>)| {
            let kind = match (index < last, shown.is_interpreted) {
                (true, _) => FrameKind::Inlined,
                (false, true) => FrameKind::Script,
                (false, false) => FrameKind::Jit,
            };
            profile.add_frame(name, kind)
        };
        let frames = shown.methods.iter().enumerate().map(add).collect();
        (at(None, ProcessAddress(0), frames), None)
    }

    fn jit_location(&self, profile: &mut Profile, id: JitId) -> (Location, Unnamed) {
        let address = self.code.jit.place_in_mapping(id);
        let Some(found) = self.code.jit_names.get(id) else {
            return unnamed(profile, "anon", address, FrameKind::Jit, Missing::NoPerfMap);
        };
        let name = profile.intern(&found.name);
        let file = found.file.as_deref().map(|file| profile.intern(file));
        let frame = Frame { name, kind: FrameKind::Jit, file, line: found.line };
        let frame = profile.add_whole_frame(frame);
        (at(None, address, vec![frame]), None)
    }

    fn image_location(
        &mut self,
        profile: &mut Profile,
        image: ImageId,
        offset: flame_profile::FileOffset,
    ) -> (Location, Unnamed) {
        let path = self.image_path(image);
        let (address, missing) = match self.code.images.get(image) {
            Some(OpenImage::File(file, _)) => match file.to_image_address(offset) {
                Some(address) => match self.symbols.at(image, address) {
                    Some(Symbolized::Frames(frames)) => {
                        let frames = add_frames(profile, frames);
                        let image = self.profile_image(profile, image);
                        return (Location { image: Some(image), address, frames }, None);
                    }
                    Some(Symbolized::Unknown(missing)) => (address, *missing),
                    None => (address, Missing::NoSymbol),
                },
                None => (ImageAddress(offset.0), Missing::NoSymbol),
            },
            Some(OpenImage::Unusable(missing)) => (ImageAddress(offset.0), *missing),
            Some(OpenImage::Anonymous) | None => (ImageAddress(offset.0), Missing::NotMapped),
        };
        let start = match (self.code.images.get(image), missing) {
            // The samples of a function without a name stay together.
            (Some(OpenImage::File(file, _)), Missing::NoSymbol | Missing::Stripped) => {
                file.function_start(address)
            }
            _ => None,
        };
        let name = format!("[{}+{}]", base_name(&path), start.unwrap_or(address));
        let frame = profile.add_frame(&name, FrameKind::User);
        let image = self.profile_image(profile, image);
        (Location { image: Some(image), address, frames: vec![frame] }, Some((path, missing)))
    }

    /// What an image is called: memory that is an executable by its own name.
    fn image_path(&self, id: ImageId) -> String {
        let is_file = matches!(self.code.images.get(id), Some(OpenImage::File(..)));
        self.code.processes.image(id).map_or_else(String::new, |key| match is_file {
            true => key.display_path(),
            false => image_name(key),
        })
    }

    /// The profile's image for one of the recording.
    fn profile_image(&mut self, profile: &mut Profile, id: ImageId) -> ImageId {
        if let Some(known) = self.images.get(&id) {
            return *known;
        }
        let path = self.image_path(id);
        let (mut build_id, mut range) = (None, (0, u64::MAX, 0));
        if let Some(OpenImage::File(file, _)) = self.code.images.get(id) {
            build_id = file.build_id().cloned();
            // Locations carry addresses of the image, so its mapping is that of its own segments.
            let code = || file.segments().iter().filter(|segment| segment.executable);
            let start = code().map(|segment| segment.address.0).min().unwrap_or(0);
            let end = code().map(|segment| segment.address.0.saturating_add(segment.memory_len.0));
            let offset = code().find(|segment| segment.address.0 == start);
            range = (start, end.max().unwrap_or(u64::MAX), offset.map_or(0, |s| s.offset.0));
        }
        let image = profile.add_image(Image {
            path,
            build_id,
            start: ProcessAddress(range.0),
            end: ProcessAddress(range.1),
            offset: flame_profile::FileOffset(range.2),
        });
        self.images.insert(id, image);
        image
    }
}

fn add_frames(profile: &mut Profile, frames: &[SymbolFrame]) -> Vec<FrameId> {
    let add = |frame: &SymbolFrame| {
        let kind = if frame.inlined { FrameKind::Inlined } else { FrameKind::User };
        let name = profile.intern(&frame.name);
        let file = frame.file.as_deref().map(|file| profile.intern(file));
        profile.add_whole_frame(Frame { name, kind, file, line: frame.line })
    };
    frames.iter().map(add).collect()
}

fn at(image: Option<ImageId>, address: ProcessAddress, frames: Vec<FrameId>) -> Location {
    Location { image, address: ImageAddress(address.0), frames }
}

/// A frame that says where it is instead of what it is called.
fn unnamed(
    profile: &mut Profile,
    place: &str,
    address: ProcessAddress,
    kind: FrameKind,
    missing: Missing,
) -> (Location, Unnamed) {
    let frame = profile.add_frame(&format!("[{place}+{address}]"), kind);
    (at(None, address, vec![frame]), Some((format!("[{place}]"), missing)))
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
