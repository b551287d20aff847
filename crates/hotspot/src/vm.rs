//! One VM: its code as far as frames have met it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::blob::{Blob, Compiled, Kind};
use crate::codelets::{Codelets, Piece};
use crate::heaps::{self, Heap};
use crate::layout::Layout;
use crate::leave::{Frame, Left, Places};
use crate::memory::{Blocks, Kept, Memory};
use crate::names::{self, Method};
use crate::shown::{Names, Shown};

/// For how long a piece of code is believed to be what it was, in nanoseconds. The VM frees code only
/// that no thread has been in for a while.
const FRESH: u64 = 1_000_000_000;

/// For how long it is not looked again for code where there was none, or for a method.
const GONE: u64 = 100_000_000;

/// How many methods, and addresses without code, are known at most.
const MOST_KNOWN: usize = 1 << 17;

/// Bytes of memory for each, and for what an address is called.
const OF_METHOD: usize = 128;
const OF_ADDRESS: usize = 32;

/// A piece of code, and what was said of it.
#[derive(Debug)]
struct Known {
    blob: Arc<Blob>,
    checked: u64,
    /// By offset in the code, and whether it is that of an instruction.
    shown: FxHashMap<(u64, bool), Option<u32>>,
}

/// A VM.
#[derive(Debug)]
pub struct Vm {
    layout: Layout,
    bounds: (u64, u64),
    heaps: Vec<Heap>,
    /// What the stub returns to by which the VM calls Java.
    entry_return: u64,
    codelets: Option<Codelets>,
    blobs: BTreeMap<u64, Known>,
    bytes: usize,
    missing: FxHashMap<u64, u64>,
    methods: FxHashMap<u64, (u64, Option<Arc<Method>>)>,
    /// Bytes of the methods' names.
    named: usize,
    kept: Kept,
    kept_since: u64,
}

/// A VM at a time.
struct Now<'v> {
    vm: &'v mut Vm,
    memory: &'v dyn Memory,
    now: u64,
}

impl Vm {
    /// The VM with that layout; `None` where it has not got so far as to have code.
    pub fn open(layout: Layout, memory: &dyn Memory) -> Option<Vm> {
        let mut entry_return = [0; 8];
        let bounds = heaps::bounds(&layout, memory)?;
        if !memory.read(layout.call_stub_return, &mut entry_return) {
            return None;
        }
        let entry_return = u64::from_le_bytes(entry_return);
        if !(bounds.0..bounds.1).contains(&entry_return) {
            return None;
        }
        Some(Vm {
            heaps: heaps::read(&layout, memory)?,
            layout,
            bounds,
            entry_return,
            codelets: None,
            blobs: BTreeMap::new(),
            bytes: 0,
            missing: FxHashMap::default(),
            methods: FxHashMap::default(),
            named: 0,
            kept: Kept::default(),
            kept_since: 0,
        })
    }

    /// The version of the VM: 17.
    pub fn version(&self) -> u32 {
        self.layout.version
    }

    /// How many bytes it takes here.
    pub fn size(&self) -> usize {
        let known = self.missing.len() * OF_ADDRESS + self.methods.len() * OF_METHOD;
        self.bytes + self.named + known + self.kept.size()
    }

    /// Forgets what can be read anew.
    pub fn shrink(&mut self) {
        self.blobs.clear();
        self.missing.clear();
        self.methods.clear();
        (self.bytes, self.named) = (0, 0);
        self.kept.clear();
    }

    /// Whether an address is code of the VM's at a time, in nanoseconds of any clock.
    pub fn covers(&mut self, address: u64, now: u64, memory: &dyn Memory) -> bool {
        Now { vm: self, memory, now }.blob(address).is_some()
    }

    /// Leaves a frame; and the number of what it is called among `names`, if that is known.
    pub fn leave(
        &mut self,
        frame: &Frame<'_>,
        now: u64,
        memory: &dyn Memory,
        names: &mut Names,
    ) -> (Left, Option<u32>) {
        let now = &mut Now { vm: self, memory, now };
        let inside = if frame.is_exact { frame.pc } else { frame.pc.wrapping_sub(1) };
        let Some(blob) = now.blob(inside) else { return (Left::NotProven, None) };
        let left = frame.leave(&blob, now);
        (left.into(), now.shown(frame, &blob, names))
    }
}

impl Now<'_> {
    fn blocks(&mut self) -> Blocks<'_> {
        if self.now.saturating_sub(self.vm.kept_since) >= FRESH {
            self.vm.kept_since = self.now;
            self.vm.kept.clear();
        }
        Blocks::new(self.memory, &self.vm.kept)
    }

    /// The piece of code that an address is in.
    fn blob(&mut self, address: u64) -> Option<Arc<Blob>> {
        if !(self.vm.bounds.0..self.vm.bounds.1).contains(&address) {
            return None;
        }
        let known = self.vm.blobs.range_mut(..=address).next_back();
        if let Some((start, known)) = known.filter(|(_, known)| address < known.blob.end) {
            let is_fresh = self.now.saturating_sub(known.checked) < FRESH;
            if is_fresh || !known.blob.is_replaced(&self.vm.layout, self.memory) {
                known.checked = if is_fresh { known.checked } else { self.now };
                return Some(Arc::clone(&known.blob)).filter(|blob| blob.has_code(address));
            }
            let start = *start;
            self.forget(start);
        }
        if let Some(missed) = self.vm.missing.get(&address)
            && self.now.saturating_sub(*missed) < GONE
        {
            return None;
        }
        let found = self.read_blob(address);
        if found.is_none() {
            if self.vm.missing.len() >= MOST_KNOWN {
                self.vm.missing.clear();
            }
            self.vm.missing.insert(address, self.now);
        }
        found
    }

    fn read_blob(&mut self, address: u64) -> Option<Arc<Blob>> {
        if !self.vm.heaps.iter().any(|heap| heap.has(address)) {
            self.vm.heaps = heaps::read(&self.vm.layout, self.memory)?;
        }
        let heap = self.vm.heaps.iter().find(|heap| heap.has(address))?;
        let start = heap.find(address, &self.vm.layout, self.memory)?;
        let layout = self.vm.layout.clone();
        let blob = Blob::read(start, &layout, self.memory, &self.blocks())?;
        if !(blob.start..blob.end).contains(&address) || !blob.has_code(address) {
            return None;
        }
        let old: Vec<u64> = self.vm.blobs.range(start..blob.end).map(|(at, _)| *at).collect();
        let before = self.vm.blobs.range(..start).next_back();
        let before = before.filter(|(_, known)| known.blob.end > start).map(|(at, _)| *at);
        old.into_iter().chain(before).for_each(|at| self.forget(at));
        self.vm.bytes += blob.size();
        let blob = Arc::new(blob);
        let shown = FxHashMap::default();
        let known = Known { blob: Arc::clone(&blob), checked: self.now, shown };
        self.vm.blobs.insert(start, known);
        Some(blob)
    }

    fn forget(&mut self, start: u64) {
        if let Some(known) = self.vm.blobs.remove(&start) {
            let size = known.blob.size() + known.shown.len() * OF_ADDRESS;
            self.vm.bytes = self.vm.bytes.saturating_sub(size);
        }
    }

    fn method(&mut self, address: u64) -> Option<Arc<Method>> {
        let believed = |found: &Option<_>| if found.is_some() { FRESH } else { GONE };
        if let Some((read, found)) = self.vm.methods.get(&address)
            && self.now.saturating_sub(*read) < believed(found)
        {
            return found.clone();
        }
        let layout = self.vm.layout.clone();
        let mut found = names::method(address, &layout, &self.blocks());
        if found.is_none() {
            // It may be younger than what was read of the memory around it.
            self.vm.kept.clear();
            found = names::method(address, &layout, &self.blocks());
        }
        let found = found.map(Arc::new);
        if self.vm.methods.len() >= MOST_KNOWN {
            self.vm.methods.clear();
            self.vm.named = 0;
        }
        let len = |found: &Option<Arc<Method>>| found.as_ref().map_or(0, |found| found.name.len());
        self.vm.named += len(&found);
        let old = self.vm.methods.insert(address, (self.now, found.clone()));
        self.vm.named -= old.map_or(0, |(_, old)| len(&old));
        found
    }

    /// The number of what a frame is called.
    fn shown(&mut self, frame: &Frame<'_>, blob: &Blob, names: &mut Names) -> Option<u32> {
        match &blob.kind {
            Kind::Method(compiled) => self.compiled(frame, (blob, compiled), names),
            Kind::Interpreter => {
                let method = frame.interpreted_method(blob, self);
                let method = method.and_then(|method| self.method(method));
                let name = || Arc::from(blob.name.as_str());
                let name = method.map_or_else(name, |method| Arc::clone(&method.name));
                names.number(Shown { methods: vec![name], is_interpreted: true })
            }
            _ => names.number(Shown {
                methods: vec![Arc::from(blob.name.as_str())],
                is_interpreted: false,
            }),
        }
    }

    fn compiled(
        &mut self,
        frame: &Frame<'_>,
        (blob, compiled): (&Blob, &Compiled),
        names: &mut Names,
    ) -> Option<u32> {
        let mut pc = frame.pc;
        if compiled.deoptimize.contains(&pc) {
            let sp = frame.thread.register(crate::x86_64::SP);
            let at = sp.map(|sp| sp.wrapping_add(compiled.original_pc.into()));
            let original = at.and_then(|at| frame.thread.word(at));
            pc = original.filter(|pc| blob.has_code(*pc)).unwrap_or(pc);
        }
        let key = (pc.wrapping_sub(blob.code_begin), frame.is_exact);
        let known = self.vm.blobs.get(&blob.start).and_then(|known| known.shown.get(&key));
        if let Some(number) = known {
            return *number;
        }
        // Reading them would cost time for nothing.
        if names.were_too_many() {
            return None;
        }
        let scopes = self.scopes(compiled, key);
        let mut methods = Vec::with_capacity(scopes.len());
        for method in scopes {
            methods.push(Arc::clone(&self.method(method)?.name));
        }
        let number = names.number(Shown { methods, is_interpreted: false });
        if let Some(known) = self.vm.blobs.get_mut(&blob.start) {
            known.shown.insert(key, number);
            self.vm.bytes += OF_ADDRESS;
        }
        number
    }

    /// The methods at an offset in compiled code, innermost first.
    fn scopes(&self, compiled: &Compiled, (offset, is_exact): (u64, bool)) -> Vec<u64> {
        let entry = match is_exact {
            true => compiled.behind(offset),
            false => compiled.at_call(offset).or_else(|| compiled.behind(offset)),
        };
        let scopes = entry.and_then(|entry| compiled.scopes(entry, self.vm.layout.without_zero));
        match scopes {
            Some(scopes) => scopes.into_iter().map(|scope| scope.method).collect(),
            None => vec![compiled.method],
        }
    }
}

impl Places for Now<'_> {
    fn code_before(&mut self, address: u64, into: &mut [u8]) -> bool {
        let Some(blob) = self.blob(address.wrapping_sub(1)) else { return false };
        let before = blob.code_before(address).unwrap_or_default();
        let Some(from) = before.len().checked_sub(into.len()) else { return false };
        into.copy_from_slice(&before[from..]);
        true
    }

    fn interpreting(&mut self, blob: &Blob, address: u64) -> Option<Piece> {
        if self.vm.codelets.is_none() {
            let layout = self.vm.layout.clone();
            let codelets = Codelets::read(blob, &layout, &self.blocks());
            self.vm.codelets = Some(codelets.unwrap_or_default());
        }
        self.vm.codelets.as_ref()?.at(address)
    }

    fn byte_code(&mut self, method: u64) -> Option<Range<u64>> {
        self.method(method).map(|method| method.code.clone())
    }

    fn is_entry_return(&self, address: u64) -> bool {
        address == self.vm.entry_return
    }

    fn is_interpreted(&mut self, address: u64) -> bool {
        if address == self.vm.entry_return {
            return true;
        }
        let blob = self.blob(address.wrapping_sub(1));
        blob.is_some_and(|blob| blob.kind == Kind::Interpreter)
    }
}

#[cfg(test)]
mod tests;
