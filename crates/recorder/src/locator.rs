//! Addresses of processes become locations: which image, and where in it.

use flame_events::{Event, EventKind, Found, KernelSymbolEvent, Processes};
use flame_profile::{Health, Nanos, Pid, ProcessAddress, StackEnd};
use flame_unwind::{CfiUnwinder, Code, FrameAddress, Left, RuntimeFrame};
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use crate::SharedFiles;
use crate::config::Options;
use crate::epilogues::Epilogues;
use crate::images::{Copied, Images, OpenImage, image_name};
use crate::java::JavaVms;
use crate::jit::{JitCode, JitNames, TableLookup};
use crate::location::CodeLocation;
use crate::mapped_files::Seen;
use crate::proc;

/// Bytes of a page, or of a part of one.
const PAGE: usize = 4096;

/// This much of a stack is read at a time.
const LARGE_STEP: usize = 4 * PAGE;

/// From here on addresses are the kernel's, on both architectures.
pub(crate) const KERNEL_START: ProcessAddress = ProcessAddress(1 << 63);

/// What code is where, in which process, at the time of the events.
#[derive(Debug)]
pub(crate) struct Locator {
    pub(crate) processes: Processes,
    pub(crate) images: Images,
    /// What the kernel said it made while running, in order; by each event that heard of it.
    pub(crate) kernel_code: IndexSet<KernelSymbolEvent, FxBuildHasher>,
    pub(crate) jit: JitCode,
    pub(crate) java: JavaVms,
    epilogues: Epilogues,
    pub(crate) jit_names: JitNames,
    /// What is to be said of what was found.
    pub(crate) notes: Vec<String>,
    files: SharedFiles,
    now: Nanos,
    /// How many events have said something of processes.
    told: u64,
    /// The user frames of the last stack, innermost first.
    locations: Vec<CodeLocation>,
    /// Which of them are code without a file.
    jit_frames: Vec<(usize, ProcessAddress)>,
}

impl Locator {
    pub(crate) fn new(options: &Options) -> Locator {
        let files = &options.files;
        let mut images = Images::new(files.clone(), options.memory.clone());
        images.look_for_debug_files(options.debug_places.clone());
        Locator {
            processes: Processes::default(),
            images,
            kernel_code: IndexSet::default(),
            jit: JitCode::new(files.clone()),
            java: JavaVms::new(options.memory.clone()),
            epilogues: Epilogues::new(options.memory.clone()),
            jit_names: JitNames::default(),
            notes: Vec::new(),
            files: files.clone(),
            now: Nanos(0),
            told: 0,
            locations: Vec::new(),
            jit_frames: Vec::new(),
        }
    }

    /// How files of processes are read.
    pub(crate) fn files(&self) -> SharedFiles {
        self.files.clone()
    }

    /// Enters a process that ran before.
    pub(crate) fn enter(&mut self, pid: Pid) {
        self.told += 1;
        proc::enter(&mut self.processes, pid, &*self.files);
    }

    /// Enters a process that no event told of: its records were lost, or it began to exist between
    /// the opening of events and the reading of /proc.
    pub(crate) fn enter_unknown(&mut self, pid: Pid) {
        if !self.processes.knows(pid) {
            self.enter(pid);
        }
    }

    /// Follows what an event says of processes and of the kernel's code.
    pub(crate) fn apply(&mut self, event: &Event<'_>) {
        self.now = event.time;
        match &event.kind {
            EventKind::Sample(_) | EventKind::Switch { .. } => {}
            EventKind::KernelSymbol(symbol) if !symbol.is_removed => {
                self.kernel_code.insert(symbol.clone());
            }
            kind => {
                self.told += 1;
                if let EventKind::Comm { pid, exec: true, .. } = kind {
                    self.epilogues.forget(*pid);
                    self.java.forget(*pid);
                }
                if let EventKind::Exit { pid, tid } = kind
                    && pid.0 == tid.0
                {
                    self.java.forget(*pid);
                }
                self.processes.apply(event.time, kind);
                self.jit.apply(kind, &self.processes);
            }
        }
    }

    /// What is known of a process and its threads stays the same as long as this does, but for images that are
    /// opened.
    pub(crate) fn told(&self) -> u64 {
        self.told
    }

    /// It is that late: what is looked at next was so then.
    pub(crate) fn advance_to(&mut self, time: Nanos) {
        self.now = self.now.max(time);
    }

    /// The locations of the last stack, innermost first, and which of them are code without a file.
    pub(crate) fn located(&self) -> (&[CodeLocation], &[(usize, ProcessAddress)]) {
        (&self.locations, &self.jit_frames)
    }

    /// What the unwinder is to know of an address.
    ///
    /// # Errors
    /// The place, where its image is to be opened first.
    pub(crate) fn code(&mut self, pid: Pid, address: ProcessAddress) -> Result<Code, Found> {
        let Some(found) = self.processes.find(pid, address) else { return Ok(Code::NotCode) };
        if self.processes.behind(pid, address).is_some() {
            return Err(found);
        }
        let code = self.images.code(&found).ok_or(found)?;
        let image = self.images.get(found.mapping.image);
        if code != Code::Executable || !matches!(image, Some(OpenImage::Anonymous)) {
            return Ok(code);
        }
        match self.jit.table(pid, address, self.now) {
            TableLookup::Known(code) => Ok(code),
            TableLookup::Unread => Err(found),
            TableLookup::None => match self.java.covers(pid, address, self.now) {
                None => Err(found),
                Some(true) => Ok(Code::Runtime),
                Some(false) => Ok(self.epilogues.code(pid, &found, self.now)),
            },
        }
    }

    /// Opens the image at a place, or settles which one it is.
    pub(crate) fn open(&mut self, pid: Pid, found: &Found, unwinder: &mut CfiUnwinder) {
        if let Some(old) = self.processes.behind(pid, found.address) {
            return self.settle(pid, &old, unwinder);
        }
        if let Some(OpenImage::Anonymous) = self.images.get(found.mapping.image) {
            if self.java.covers(pid, found.address, self.now).is_none() {
                self.look_for_java(pid, unwinder);
            }
            return self.jit.open_table(pid, found.address, self.now, unwinder);
        }
        if let Some(key) = self.processes.image(found.mapping.image) {
            let seen = Seen { pid, found, time: Some(self.now) };
            self.images.open(key, seen, unwinder);
        }
    }

    fn look_for_java(&mut self, pid: Pid, unwinder: &mut CfiUnwinder) {
        let library = JavaVms::library(pid, &self.processes);
        if let Some(found) = library
            && self.images.get(found.mapping.image).is_none()
        {
            self.open(pid, &found, unwinder);
        }
        let file = library.and_then(|found| match self.images.get(found.mapping.image)? {
            OpenImage::File(file, _) => Some((file, found)),
            _ => None,
        });
        self.java.look(pid, file.as_ref().map(|(file, found)| (*file, found)), self.now);
    }

    /// Another stack is walked from here on.
    pub(crate) fn begin_walk(&mut self) {
        self.java.begin_walk();
    }

    /// Leaves a frame in code that its runtime tells about.
    pub(crate) fn leave(&mut self, pid: Pid, frame: RuntimeFrame<'_>) -> Left {
        self.java.leave(pid, frame, self.now)
    }

    /// What of a stack can be read, from there upwards, up to so many bytes and a step more.
    pub(crate) fn read_stack(&self, pid: Pid, start: ProcessAddress, most: usize) -> Vec<u8> {
        let mut stack = Vec::new();
        // What is asked for is there as a whole or not at all: up to where a page ends, in large steps,
        // and where the stack ends in small ones.
        for step in [LARGE_STEP, PAGE] {
            while stack.len() < most {
                let at = start.0 + stack.len() as u64;
                let mut bytes = vec![0; step - usize::try_from(at % PAGE as u64).unwrap_or(0)];
                if self.images.memory().read(pid, ProcessAddress(at), &mut bytes).is_err() {
                    break;
                }
                stack.append(&mut bytes);
            }
        }
        stack
    }

    /// Finds out whether anonymous memory has a copy of the file that was mapped there before.
    fn settle(&mut self, pid: Pid, old: &Found, unwinder: &mut CfiUnwinder) {
        let image = old.mapping.image;
        let Some(key) = self.processes.image(image) else { return };
        if self.images.get(image).is_none() {
            let seen = Seen { pid, found: old, time: Some(self.now) };
            self.images.open(key, seen, unwinder);
        }
        let copy = self.images.copy_in_memory(pid, old);
        let path = key.display_path();
        let note = match copy {
            Copied::No => None,
            Copied::Yes => Some(format!(
                "code of {path} ran from a copy in anonymous memory; its names are the file's"
            )),
            Copied::Unreadable => Some(format!(
                "anonymous memory took the place of code of {path}; the names there are the \
                 file's, which may be wrong: the memory could not be compared with it"
            )),
        };
        self.processes.settle_behind(pid, old.address, copy != Copied::No);
        let notes = &mut self.notes;
        notes.extend(note.filter(|note| !notes.contains(note)));
    }

    /// Fills `self.locations` from the frames of a stack.
    pub(crate) fn locate_all(
        &mut self,
        pid: Pid,
        frames: &[FrameAddress],
        unwinder: &mut CfiUnwinder,
    ) {
        self.jit_frames.clear();
        let mut locations = std::mem::take(&mut self.locations);
        locations.clear();
        for (index, frame) in frames.iter().enumerate() {
            let address = frame.lookup_address();
            let java = self.java.met(index).map(CodeLocation::Java);
            let location =
                java.or_else(|| self.locate(pid, address, unwinder)).unwrap_or_else(|| {
                    self.jit_frames.push((index, address));
                    // Until it is known which code it was.
                    CodeLocation::Unmapped(address)
                });
            locations.push(location);
        }
        self.locations = locations;
        if !self.jit_frames.is_empty() {
            self.jit.meet(pid, &self.processes);
        }
    }

    /// Where an address is; `None` in code without a file, of which time decides what it is.
    fn locate(
        &mut self,
        pid: Pid,
        address: ProcessAddress,
        unwinder: &mut CfiUnwinder,
    ) -> Option<CodeLocation> {
        if address >= KERNEL_START {
            // The vsyscall page: mapped by the kernel into user space.
            return Some(CodeLocation::Kernel(address));
        }
        if let Some(old) = self.processes.behind(pid, address) {
            self.settle(pid, &old, unwinder);
        }
        let Some(found) = self.processes.find(pid, address) else {
            return Some(CodeLocation::Unmapped(address));
        };
        let image = found.mapping.image;
        if self.images.get(image).is_none() {
            self.open(pid, &found, unwinder);
        }
        match self.images.get(image) {
            Some(OpenImage::Anonymous) | None => None,
            Some(_) => Some(CodeLocation::Image(image, found.mapping.to_file_offset(address))),
        }
    }

    /// Leaves out what was located beyond so many frames; whether code without a file is among the others.
    pub(crate) fn truncate(&mut self, len: usize) -> bool {
        self.locations.truncate(len);
        self.jit_frames.retain(|(index, _)| *index < len);
        !self.jit_frames.is_empty()
    }

    /// Notes in which image a walk ended that had no information to go on with.
    pub(crate) fn count_cut(
        &mut self,
        pid: Pid,
        end: StackEnd,
        last: Option<FrameAddress>,
        health: &mut Health,
    ) {
        let last = last.map(|frame| frame.lookup_address());
        let found = last.and_then(|address| self.processes.find(pid, address));
        let key = found.and_then(|found| self.processes.image(found.mapping.image));
        if end != StackEnd::CopyTooShort && key.is_some_and(|key| key.is_anonymous()) {
            self.jit.count_cut(pid, &self.processes);
        }
        if end != StackEnd::NoUnwindInfo {
            return;
        }
        let path = key.map_or_else(|| "[unmapped]".to_owned(), image_name);
        *health.no_unwind_info.entry(path).or_default() += 1;
    }
}
