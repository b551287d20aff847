//! What is known of the outer parts of threads' stacks.

use flame_events::EventKind;
use flame_profile::{Pid, ProcessAddress, Tid};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::record::location::CodeLocation;

/// The most frames that are remembered, of all threads together: some 50 MiB. What comes later is
/// read from its process or not completed.
const MOST_NODES: usize = 400_000;

/// What one thread is remembered by, from its start or its last exec on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::record) struct MemoryId(u32);

/// A frame of a known chain, with all callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::record) struct NodeId(u32);

/// One frame of a stack: which function, and where its callers' part of the stack begins. A
/// function that stands at the same place has the same caller's frame beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::record) struct Activation {
    /// The stack pointer of the caller: the frame's canonical frame address.
    pub(in crate::record) end: ProcessAddress,
    /// Where the function starts; of code without a known function, the address in it.
    pub(in crate::record) function: ProcessAddress,
}

/// A frame of a complete stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::record) struct KnownFrame {
    pub(in crate::record) stack_pointer: ProcessAddress,
    pub(in crate::record) address: ProcessAddress,
    /// What is mapped at the address is part of the evidence: another image at the same place
    /// makes another frame.
    pub(in crate::record) location: CodeLocation,
}

/// The callers of an activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::record) enum Callers {
    /// None was seen.
    Unknown,
    /// Always the same.
    One(NodeId),
    /// At one time these, at another time those.
    Several,
}

/// Complete stacks of threads, without their innermost frames, interned from the outside in.
#[derive(Debug, Default)]
pub(in crate::record) struct Chains {
    memories: FxHashMap<(Pid, Tid), MemoryId>,
    /// By number: the root of the thread's chains, and the memory that it forked from.
    threads: Vec<(NodeId, Option<MemoryId>)>,
    /// The caller's node and the frame; the roots have none.
    nodes: Vec<Option<(NodeId, KnownFrame)>>,
    children: FxHashMap<(NodeId, KnownFrame), NodeId>,
    callers: FxHashMap<(MemoryId, Activation), NodeId>,
    several: FxHashSet<(MemoryId, Activation)>,
    /// Return addresses with functions that were seen below them in stacks that were copied whole.
    calls: FxHashSet<(Pid, ProcessAddress, ProcessAddress)>,
}

impl Chains {
    /// Takes in what processes do: a new program has no stack of the old one, a forked process has
    /// that of the thread it came from.
    pub(in crate::record) fn apply(&mut self, event: &EventKind<'_>) {
        match event {
            EventKind::Comm { pid, exec: true, .. } => {
                let before = self.memories.len();
                self.memories.retain(|(of, _), _| of != pid);
                if self.memories.len() < before {
                    self.calls.retain(|(of, ..)| of != pid);
                }
            }
            EventKind::Fork { pid, tid, parent, parent_tid } => {
                self.memories.remove(&(*pid, *tid));
                let from = self.memories.get(&(*parent, *parent_tid)).copied();
                if let (true, Some(from)) = (pid != parent, from) {
                    self.add_memory(*pid, *tid, Some(from));
                }
            }
            EventKind::Exit { pid, tid } => {
                self.memories.remove(&(*pid, *tid));
            }
            _ => {}
        }
    }

    /// The memory of a thread, if it has one.
    pub(in crate::record) fn memory(&self, pid: Pid, tid: Tid) -> Option<MemoryId> {
        self.memories.get(&(pid, tid)).copied()
    }

    /// The memory of a thread, which begins now if it has none.
    pub(in crate::record) fn begin_memory(&mut self, pid: Pid, tid: Tid) -> MemoryId {
        self.memory(pid, tid).unwrap_or_else(|| self.add_memory(pid, tid, None))
    }

    fn add_memory(&mut self, pid: Pid, tid: Tid, from: Option<MemoryId>) -> MemoryId {
        let id = MemoryId(self.threads.len() as u32);
        let root = self.add_node(None);
        self.threads.push((root, from));
        self.memories.insert((pid, tid), id);
        id
    }

    fn add_node(&mut self, node: Option<(NodeId, KnownFrame)>) -> NodeId {
        self.nodes.push(node);
        NodeId((self.nodes.len() - 1) as u32)
    }

    /// Remembers a complete stack, innermost frame first; `function` gives the start of the
    /// function of the frame at an index. Returns the node of the frame at index `wanted` (at least
    /// 1; from their number on, the empty chain), unless there is no more room.
    pub(in crate::record) fn learn(
        &mut self,
        memory: MemoryId,
        frames: &[KnownFrame],
        wanted: usize,
        function: &mut dyn FnMut(usize) -> ProcessAddress,
    ) -> Option<NodeId> {
        let mut node = self.threads.get(memory.0 as usize)?.0;
        let mut found = (wanted >= frames.len()).then_some(node);
        for index in (1..frames.len()).rev() {
            let key = (node, frames[index]);
            node = match self.children.get(&key) {
                Some(known) => *known,
                None if self.nodes.len() >= MOST_NODES => return None,
                None => {
                    if let Some(caller) = frames.get(index + 1) {
                        let function = function(index);
                        self.note(memory, Activation { end: caller.stack_pointer, function }, node);
                    }
                    let new = self.add_node(Some(key));
                    self.children.insert(key, new);
                    new
                }
            };
            if index == wanted {
                found = Some(node);
            }
        }
        if let Some(caller) = frames.get(1) {
            let leaf = Activation { end: caller.stack_pointer, function: function(0) };
            self.note(memory, leaf, node);
        }
        found
    }

    fn note(&mut self, memory: MemoryId, activation: Activation, caller: NodeId) {
        let key = (memory, activation);
        if *self.callers.entry(key).or_insert(caller) != caller {
            self.several.insert(key);
        }
    }

    /// Who called an activation of a thread, by its own memory or by that of the thread that its
    /// process was forked from.
    pub(in crate::record) fn callers(&self, memory: MemoryId, activation: Activation) -> Callers {
        let mut at = Some(memory);
        while let Some(memory) = at {
            let key = (memory, activation);
            if self.several.contains(&key) {
                return Callers::Several;
            }
            if let Some(node) = self.callers.get(&key) {
                return Callers::One(*node);
            }
            at = self.threads.get(memory.0 as usize).and_then(|thread| thread.1);
        }
        Callers::Unknown
    }

    /// The locations of a frame and its callers, outermost first.
    pub(in crate::record) fn path(&self, node: NodeId) -> Vec<CodeLocation> {
        let mut path = Vec::new();
        let mut at = node;
        while let Some(Some((caller, frame))) = self.nodes.get(at.0 as usize) {
            path.push(frame.location);
            at = *caller;
        }
        path.reverse();
        path
    }

    /// Notes that a function was found below a return address in a stack that was copied.
    pub(in crate::record) fn note_call(
        &mut self,
        pid: Pid,
        return_address: ProcessAddress,
        function: ProcessAddress,
    ) {
        if self.calls.len() < MOST_NODES {
            self.calls.insert((pid, return_address, function));
        }
    }

    /// Whether that was ever noted.
    pub(in crate::record) fn knows_call(
        &self,
        pid: Pid,
        return_address: ProcessAddress,
        function: ProcessAddress,
    ) -> bool {
        self.calls.contains(&(pid, return_address, function))
    }
}

#[cfg(test)]
mod tests;
