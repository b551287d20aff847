//! Frames of interpreted programs take their place among the native ones.
//!
//! ```text
//!   native frames, outermost first            what the picture has
//!   main, Py_RunMain, PyEval_EvalCode         the same
//!   _PyEval_EvalFrameDefault                  <module> (job.py:1), run (job.py:12)
//!   builtin_sorted, list_sort_impl            the same
//!   _PyEval_EvalFrameDefault                  key (job.py:20)
//! ```
//!
//! What was read of an interpreter at the moment of the sample is held against the native stack of that
//! moment. What does not agree is not shown, and counted.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use flame_events::{Event, EventKind, Found, Mapping, MappingEvent, Rest, SampleEvent};
use flame_interpreters::{
    Caught, DEBUG_OFFSETS, Entry as ChainEntry, Function, Judged, Known, Placed,
};
use flame_profile::{Bias, ImageId, Nanos, NotRead, Pid, ScriptEnd, StackEnd};
use flame_unwind::Registers;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::config::{Options, ScriptFrames};
use crate::images::OpenImage;
use crate::interpreter::Interpreter;
use crate::joined::{Joined, Natives, REGISTERS, Stack, joined};
use crate::location::{CodeLocation, ScriptId};
use crate::locator::Locator;
use crate::native_functions::{NativeFunctions, image_address};
use crate::script_frame::ScriptFrame;
use crate::scripted::{EndOfScript, Scripted};

/// How many bytes functions take at most. Those of more are not named.
const MOST_BYTES: usize = 64 << 20;

/// How many lines of functions are kept at most.
const MOST_LINES: usize = 1 << 20;

/// How often readers are asked to tell of functions again: what they tell then takes its time.
const ASKING_INTERVAL: Nanos = Nanos(100_000_000);

/// How many samples of a process are looked at before it counts as one without an interpreter: it may be
/// amid an exec.
const FIRST_LOOKS: u32 = 10;

/// The same of one that has the file of an interpreter: it may not have begun to work.
const PATIENCE: u32 = 200;

/// All that is known of interpreted programs.
#[derive(Debug)]
pub(crate) struct Scripts {
    /// Nothing where nobody wants to see them.
    known: Option<Arc<Known>>,
    keeps_native: bool,
    images: FxHashMap<ImageId, Option<Arc<Interpreter>>>,
    /// How often processes were looked at that may have an interpreter.
    looked_at: FxHashMap<Pid, u32>,
    functions: FxHashMap<u64, Function>,
    bytes: usize,
    /// Whether a function was met that nobody told of, and when it was asked for last.
    is_missing: bool,
    asked: Option<Nanos>,
    now: Nanos,
    max_depth: usize,
    frames: IndexSet<ScriptFrame, FxBuildHasher>,
    lines: FxHashMap<(u64, u64), ScriptId>,
}

/// A sample, and what is known of its stack and its process.
#[derive(Clone, Copy)]
struct OfSample<'s, 'e> {
    sample: &'s SampleEvent<'e>,
    natives: Natives<'s>,
    code: &'s Locator,
    known: &'s Known,
}

impl Scripts {
    pub(crate) fn new(Options { scripts, max_depth, .. }: &Options) -> Scripts {
        let max_depth = *max_depth;
        let (known, keeps_native) = match scripts {
            ScriptFrames::Hidden => (None, false),
            ScriptFrames::Shown { known, keeps_native } => (Some(Arc::clone(known)), *keeps_native),
        };
        Scripts {
            known,
            keeps_native,
            images: FxHashMap::default(),
            looked_at: FxHashMap::default(),
            functions: FxHashMap::default(),
            bytes: 0,
            is_missing: false,
            asked: None,
            now: Nanos(0),
            max_depth,
            frames: IndexSet::default(),
            lines: FxHashMap::default(),
        }
    }

    /// In which processes there are interpreters, where somebody wants to see what they run.
    pub(crate) fn known(&self) -> Option<Arc<Known>> {
        self.known.clone()
    }

    /// The frame of an id.
    pub(crate) fn get(&self, id: ScriptId) -> Option<&ScriptFrame> {
        self.frames.get_index(usize::try_from(id.0).ok()?)
    }

    /// Follows what an event says of processes.
    pub(crate) fn apply(&mut self, Event { time, kind }: &Event<'_>) {
        self.now = *time;
        let Some(known) = &self.known else { return };
        match kind {
            EventKind::Fork { pid, parent, .. } if pid != parent => known.forked(parent.0, pid.0),
            EventKind::Comm { pid, exec: true, .. } => {
                known.forget(pid.0);
                self.looked_at.remove(pid);
            }
            EventKind::Exit { pid, tid } if pid.0 == tid.0 => {
                known.forget(pid.0);
                self.looked_at.remove(pid);
            }
            // Readers have told that already; what the exec before it forgot just now is told again.
            EventKind::Mapping(MappingEvent { pid, start, offset, file, .. }) => {
                known.mapped(pid.0, file.part_at(*offset), start.0);
            }
            _ => {}
        }
    }

    /// What a sample's native frames run.
    pub(crate) fn of_sample(
        &mut self,
        sample: &SampleEvent<'_>,
        natives: Natives<'_>,
        code: &Locator,
    ) -> Scripted {
        let mut scripted = Scripted { keeps_native: self.keeps_native, ..Scripted::default() };
        let Some(known) = self.known.clone() else { return scripted };
        let met = self.meet(code);
        self.judge(&known, sample.pid, &met, code);
        // Readers tell of each function once, whatever becomes of the sample.
        self.learn(sample, &known);
        let mut end: Option<EndOfScript> = None;
        let of = OfSample { sample, natives, code, known: &known };
        for (id, image) in met {
            let Some(found) = self.run_by((id, &image), &of, &mut scripted) else { continue };
            // It is whole where what each of them runs is; else the innermost that is not says why.
            if end.is_none_or(|(_, before)| before == ScriptEnd::Whole && found != before) {
                end = Some((image.language(), found));
            }
        }
        // Of call chains nothing could be read.
        scripted.end = end.filter(|_| sample.user_stack.is_some());
        scripted
    }

    /// Puts what an interpreter runs in place of its native frames; nothing where it runs no program.
    fn run_by(
        &mut self,
        (id, image): (ImageId, &Interpreter),
        of: &OfSample<'_, '_>,
        scripted: &mut Scripted,
    ) -> Option<ScriptEnd> {
        let OfSample { sample, natives, code, known } = *of;
        let (locations, jit) = code.located();
        let address = |location: &CodeLocation| image_address(*location, code, Some(id));
        let runs = |location| address(location).is_some_and(|address| image.runs(address));
        let runs: Vec<bool> = locations.iter().map(runs).collect();
        let runs_script = |index: usize| {
            let address = locations.get(index).and_then(address);
            address.is_some_and(|address| image.runs_script(address))
        };
        let stack = Stack { sample, natives, runs: &runs, runs_script: &runs_script };
        let joined = joined(&stack, image, self.max_depth);
        let is_outside = joined.as_ref().map_or(true, |joined| joined.placed.is_empty());
        if is_outside && !runs.contains(&true) {
            // What it does besides running programs.
            return None;
        }
        let Joined { placed, entries, is_in_trace, lacks } = match joined {
            Ok(joined) => joined,
            Err(ScriptEnd::NotRead) if is_unread(sample) => return Some(ScriptEnd::NotRead),
            Err(end) => {
                scripted.mark(&runs, CodeLocation::ScriptNotRead(image.language()));
                let is_other = end == ScriptEnd::Early
                    && known.judged(sample.pid.0) == Judged::Interpreter
                    && !known.reads(sample.pid.0, image.language());
                return Some(if is_other { ScriptEnd::OtherInterpreter } else { end });
            }
        };
        let outermost = placed.last().cloned();
        let of_pid = NativeFunctions { pid: sample.pid, code, image: Some(id), interpreter: image };
        let mut end = self.show(&entries, placed, (natives, is_in_trace, &of_pid), scripted);
        if let (Some(lacks), Some(outermost)) = (lacks, outermost) {
            let is_cut = outermost.frames.end == entries.len();
            scripted.mark_callers((outermost.native, is_cut), &runs);
            end = lacks;
        }
        self.ask_again(known);
        // Code that a runtime makes to call another function, and that has no file.
        let calls = |index: usize| {
            jit.iter().any(|(jit, _)| *jit == index)
                && scripted.frames.iter().any(|(native, _)| native + 1 == index)
        };
        let hides = |index: &usize| {
            let address = locations.get(*index).and_then(address);
            let only_calls = |address| image.only_calls(address, *index == 0);
            calls(*index) || address.is_some_and(only_calls)
        };
        scripted.hidden.extend((0..locations.len()).filter(hides));
        Some(end)
    }

    /// Where a process has files that are named like those of interpreters, and that are not open yet.
    pub(crate) fn named_so(&self, pid: Pid, code: &Locator) -> Vec<Found> {
        let Some(space) = code.processes.space(pid).filter(|_| self.known.is_some()) else {
            return Vec::new();
        };
        let is_wanted = |image: ImageId| {
            let path = code.processes.image(image).map(crate::image_name);
            code.images.get(image).is_none()
                && path.as_deref().is_some_and(Interpreter::is_named_so)
        };
        let mappings = space.iter().filter(|mapping| is_wanted(mapping.image));
        mappings.filter_map(|mapping| code.processes.find(pid, mapping.start)).collect()
    }

    /// Tells readers of the interpreter of a process, as far as its files are open.
    pub(crate) fn look_at(&mut self, pid: Pid, code: &Locator) {
        if let Some(known) = self.known.clone() {
            self.judge(&known, pid, &[], code);
        }
    }

    /// How many native frames a stack has, if it is one of a fiber: nothing lies beyond the first of them.
    pub(crate) fn fiber(&mut self, code: &Locator) -> Option<usize> {
        self.known.as_ref()?;
        let met = self.meet(code);
        let begins = |location: &CodeLocation| {
            met.iter().any(|(id, image)| {
                let address = image_address(*location, code, Some(*id));
                address.is_some_and(|address| image.begins_fibers(address))
            })
        };
        // What runs there itself is who makes a fiber.
        let first = code.located().0.iter().skip(1).position(begins)?;
        Some(first + 2)
    }

    /// The interpreters that a stack has frames of, the innermost first.
    fn meet(&mut self, code: &Locator) -> Vec<(ImageId, Arc<Interpreter>)> {
        let mut met: Vec<(ImageId, Arc<Interpreter>)> = Vec::new();
        let mut before = None;
        for location in code.located().0 {
            let CodeLocation::Image(id, _) = *location else { continue };
            if before.replace(id) == Some(id) || met.iter().any(|(known, _)| *known == id) {
                continue;
            }
            met.extend(self.interpreter(id, code).map(|image| (id, image)));
        }
        met
    }

    /// What interpreter an image is, if it is open and one.
    fn interpreter(&mut self, id: ImageId, code: &Locator) -> Option<Arc<Interpreter>> {
        let entry = match self.images.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let Some(OpenImage::File(file, _)) = code.images.get(id) else { return None };
                let path = code.processes.image(id).map(crate::image_name).unwrap_or_default();
                unknown.insert(Interpreter::of(file, &path).map(Arc::new))
            }
        };
        entry.clone()
    }

    /// Tells readers what there is in a process: what samples have met, or what is named like an interpreter.
    fn judge(
        &mut self,
        known: &Known,
        pid: Pid,
        met: &[(ImageId, Arc<Interpreter>)],
        code: &Locator,
    ) {
        let judged = known.judged(pid.0);
        let is_new = |(_, image): &&(ImageId, Arc<Interpreter>)| {
            image.layout().is_some() && !known.reads(pid.0, image.language())
        };
        let met: Vec<ImageId> = match judged {
            Judged::Interpreter => met.iter().filter(is_new).map(|(id, _)| *id).collect(),
            Judged::NotYet | Judged::Nothing => met.iter().map(|(id, _)| *id).collect(),
        };
        let looked_at = self.looked_at.get(&pid).copied().unwrap_or(0);
        let is_done = match judged {
            Judged::Interpreter => met.is_empty() || looked_at > PATIENCE,
            Judged::Nothing => met.is_empty(),
            Judged::NotYet => false,
        };
        if is_done {
            return;
        }
        let Some(space) = code.processes.space(pid) else { return };
        let (mut may_come, mut found) = (false, false);
        for mapping in space.iter() {
            let path = code.processes.image(mapping.image).map(crate::image_name);
            let is_named = judged != Judged::Interpreter
                && path.as_deref().is_some_and(Interpreter::is_named_so);
            may_come |= is_named;
            let is_met = met.contains(&mapping.image);
            if is_met || is_named && !found && met.is_empty() {
                found |= self.tell(known, pid, mapping, code);
            }
        }
        if found {
            // Those of other languages may come later.
            self.looked_at.remove(&pid);
            return;
        }
        let looked_at = self.looked_at.entry(pid).or_default();
        *looked_at += 1;
        let patience = if may_come { PATIENCE } else { FIRST_LOOKS };
        if *looked_at > patience && judged != Judged::Interpreter {
            known.add_nothing(pid.0);
        }
    }

    /// Tells readers of the interpreter that is mapped there; whether there is one that can be read.
    fn tell(&mut self, known: &Known, pid: Pid, mapping: &Mapping, code: &Locator) -> bool {
        let mut tell = || {
            let interpreter = self.interpreter(mapping.image, code)?;
            let OpenImage::File(file, _) = code.images.get(mapping.image)? else { return None };
            let bias = Bias::between(mapping.start, file.to_image_address(mapping.offset)?);
            let runtime = bias.to_process_address(interpreter.runtime());
            let mut head = vec![0; DEBUG_OFFSETS];
            let _ = code.images.memory().read(pid, runtime, &mut head);
            let layout = interpreter.layout()?.as_it_says(&head)?;
            if !known.add(pid.0, &layout, runtime.0) {
                return None;
            }
            let file = code.processes.image(mapping.image).map(|key| key.file);
            if let Some(part) = file.and_then(|file| file.part_at(mapping.offset)) {
                known.add_part(part, (pid.0, interpreter.language()), mapping.start.0);
            }
            Some(())
        };
        tell().is_some()
    }

    /// Takes in functions that were met first.
    fn learn(&mut self, sample: &SampleEvent<'_>, known: &Known) {
        let rest = sample.user_stack.unwrap_or_default().rest;
        let Rest::Read { script, .. } = rest else { return };
        for caught in Caught::all(script) {
            self.learn_of(&caught, sample.pid, known);
        }
    }

    fn learn_of(&mut self, caught: &Caught<'_>, pid: Pid, known: &Known) {
        let mut layouts = known.interpreters_of(pid.0).map(|(layout, _)| layout);
        let Some(layout) = layouts.find(|layout| layout.language() == caught.language()) else {
            return;
        };
        for defined in caught.defined() {
            let function = Function::of(&defined, layout);
            if self.bytes + function.size() <= MOST_BYTES {
                self.bytes += function.size();
                let name = function.name.clone();
                let before = self.functions.insert(defined.function, function);
                // It is known better now.
                if before.is_some_and(|before| before.name != name) {
                    self.lines.retain(|(function, _), _| *function != defined.function);
                }
            }
        }
    }

    /// The frames of each native one, and how whole that is.
    fn show(
        &mut self,
        entries: &[ChainEntry],
        placed: Vec<Placed>,
        (natives, is_in_trace, code): (Natives<'_>, bool, &NativeFunctions<'_>),
        scripted: &mut Scripted,
    ) -> ScriptEnd {
        let mut is_named = true;
        let mut inside = 0;
        for (nth, Placed { native, frames }) in placed.into_iter().enumerate() {
            let entries = entries.get(frames).unwrap_or_default();
            let registers = natives.registers.get(native).filter(|_| nth == 0);
            let mut running = registers
                .zip(entries.first())
                .and_then(|(registers, entry)| self.running(registers, entry));
            let locate = |entry: &ChainEntry| match self.frame(&running.take().unwrap_or(*entry)) {
                Some(id) => CodeLocation::Script(id),
                None => {
                    is_named = false;
                    CodeLocation::ScriptUnknown
                }
            };
            let frames = entries.iter().filter(|entry| !entry.is_boundary());
            let locations: Vec<CodeLocation> = frames.clone().map(locate).collect();
            let starts = frames.map(|entry| self.functions.get(&entry.function)?.native());
            let frames: Vec<_> = locations.into_iter().zip(starts).collect();
            code.place(&frames, inside..native, scripted);
            inside = native + 1;
        }
        match (is_named, natives.end) {
            (false, _) => ScriptEnd::Unnamed,
            (true, _) if is_in_trace => ScriptEnd::Inlined,
            (true, StackEnd::Root) => ScriptEnd::Whole,
            (true, _) => ScriptEnd::Cut,
        }
    }

    /// The innermost frame, where the registers of who runs it say better where it is.
    fn running(&self, registers: &Registers, entry: &ChainEntry) -> Option<ChainEntry> {
        let registers = (0..REGISTERS).filter_map(|register| registers.get(register));
        let position = self.functions.get(&entry.function)?.running(entry.code, registers)?;
        Some(ChainEntry { position, ..*entry })
    }

    /// The frame at an entry; `None` where its function is not known.
    fn frame(&mut self, entry: &ChainEntry) -> Option<ScriptId> {
        let key = (entry.function, entry.position);
        if let Some(id) = self.lines.get(&key) {
            return Some(*id);
        }
        let function = self.functions.get(&entry.function);
        // What was told while there was no room stays unknown.
        let is_untold = function.is_none() && entry.function != 0;
        self.is_missing |= is_untold && self.bytes < MOST_BYTES / 2;
        let function = function?;
        let frame = ScriptFrame {
            name: function.name.clone()?,
            file: function.file.clone(),
            first_line: function.first_line,
            line: function.line(entry.position),
        };
        if self.frames.len() >= MOST_LINES && !self.frames.contains(&frame) {
            return None;
        }
        let id = ScriptId(u32::try_from(self.frames.insert_full(frame).0).ok()?);
        if self.lines.len() < MOST_LINES {
            self.lines.insert(key, id);
        }
        Some(id)
    }

    /// Has readers tell again which functions there are, if one was missed on its way.
    fn ask_again(&mut self, known: &Known) {
        let is_soon =
            self.asked.is_some_and(|asked| self.now.saturating_since(asked) < ASKING_INTERVAL);
        if std::mem::take(&mut self.is_missing) && !is_soon {
            self.asked = Some(self.now);
            known.define_again();
        }
    }
}

/// Whether nobody was there to read at all: then native frames are all that is said.
fn is_unread(sample: &SampleEvent<'_>) -> bool {
    let rest = sample.user_stack.map(|stack| stack.rest);
    matches!(rest, None | Some(Rest::NotRead(NotRead::NoReader)))
}
