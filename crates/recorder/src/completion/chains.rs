//! What is known of the outer parts of threads' stacks.

use flame_events::EventKind;
use flame_profile::{Pid, ProcessAddress, Tid};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::config::Complete;
use crate::location::CodeLocation;

/// The most frames that are remembered, of all threads together: some 50 MiB. What comes later is
/// read from its process or not completed.
const MOST_NODES: usize = 400_000;

/// What one thread is remembered by, from its start or its last exec on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MemoryId(u32);

/// A frame of a known chain, with all callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NodeId(u32);

/// One frame of a stack: which function, and where its callers' part of the stack begins. A
/// function that stands at the same place has the same caller's frame beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Activation {
    /// The stack pointer of the caller: the frame's canonical frame address.
    pub(crate) end: ProcessAddress,
    /// Where the function starts; of code without a known function, the address in it.
    pub(crate) function: ProcessAddress,
}

/// A frame of a complete stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KnownFrame {
    pub(crate) stack_pointer: ProcessAddress,
    pub(crate) address: ProcessAddress,
    /// What is mapped at the address is part of the evidence: another image at the same place
    /// makes another frame.
    pub(crate) location: CodeLocation,
}

/// The callers of an activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callers {
    /// None was seen.
    Unknown,
    /// Always the same, so many times in the memory of the process.
    One(NodeId, u32),
    /// At one time these, at another time those.
    Several,
}

/// How a complete stack was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// In its copy: it is certain.
    Copied,
    /// In the memory of its process; of so many inner frames it is not sure who called them.
    Read { doubtful: usize },
}

impl Sight {
    /// What it says of the frame at an index, from the inside out.
    fn of_frame(self, index: usize) -> Look {
        match self {
            Sight::Copied => Look { certain: true, read: false },
            Sight::Read { doubtful } => Look { certain: index >= doubtful, read: true },
        }
    }
}

/// What one sight says of one frame.
#[derive(Clone, Copy, Debug)]
struct Look {
    certain: bool,
    read: bool,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    caller: NodeId,
    frame: KnownFrame,
    /// What was seen of the frame's activation; `None` of outermost frames.
    seen: Option<usize>,
}

/// How often an activation was seen, and below which caller.
#[derive(Clone, Copy, Debug)]
struct Seen {
    caller: NodeId,
    times: u32,
    /// How many of these times it was read from the process: stacks that are whole in their copies
    /// say nothing of those that are not.
    reads: u32,
    /// Whether that was beyond doubt at least once.
    certain: bool,
    /// How often others were read in its stead, always in doubt.
    strays: u32,
    several: bool,
}

/// One doubtful sight of another caller in so many is taken for a stack that was read while it was
/// being written over; more may be a caller of its own. On a machine with ten times the work that it
/// has CPUs for, 1 to 4 in 100 were such: the thread was stopped in a system call right after it had
/// left a recursion, whose frames still stood below.
const SIGHTS_A_STRAY: u32 = 16;

impl Seen {
    fn new(caller: NodeId, Look { certain, read }: Look) -> Seen {
        Seen { caller, times: 1, reads: read.into(), certain, strays: 0, several: false }
    }

    fn again(&mut self, caller: NodeId, look: Look) {
        let certain = look.certain;
        if self.caller == caller {
            self.times = self.times.saturating_add(1);
            self.reads = self.reads.saturating_add(look.read.into());
            self.certain |= certain;
        } else if self.certain && !certain {
            self.strays = self.strays.saturating_add(1);
        } else if certain && !self.certain {
            let strays = self.strays.saturating_add(self.times);
            *self = Seen { strays, several: self.several, ..Seen::new(caller, look) };
        } else {
            self.several = true;
        }
    }

    fn callers(&self) -> Callers {
        match self.several || self.strays.saturating_mul(SIGHTS_A_STRAY) > self.times {
            true => Callers::Several,
            false => Callers::One(self.caller, self.reads),
        }
    }
}

/// Complete stacks of threads, without their innermost frames, interned from the outside in.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    completes: Complete,
    memories: FxHashMap<(Pid, Tid), MemoryId>,
    /// By number: the root of the thread's chains, and the memory that it forked from.
    threads: Vec<(NodeId, Option<MemoryId>)>,
    /// The roots have none.
    nodes: Vec<Option<Node>>,
    children: FxHashMap<(NodeId, KnownFrame), NodeId>,
    /// Positions in `seen`.
    callers: FxHashMap<(MemoryId, Activation), usize>,
    seen: Vec<Seen>,
    /// Return addresses with functions that were seen below them in stacks that were copied whole.
    calls: FxHashSet<(Pid, ProcessAddress, ProcessAddress)>,
}

impl Chains {
    /// Chains that know nothing yet; of `completes` they are told which stacks to complete.
    pub(crate) fn new(completes: Complete) -> Chains {
        Chains { completes, ..Chains::default() }
    }

    /// Which stacks are to be completed.
    pub(crate) fn completes(&self) -> Complete {
        self.completes
    }

    /// Takes in what processes do: a new program has no stack of the old one, a forked process has
    /// that of the thread it came from.
    pub(crate) fn apply(&mut self, event: &EventKind<'_>) {
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
    pub(crate) fn memory(&self, pid: Pid, tid: Tid) -> Option<MemoryId> {
        self.memories.get(&(pid, tid)).copied()
    }

    /// The memory of a thread, which begins now if it has none.
    pub(crate) fn begin_memory(&mut self, pid: Pid, tid: Tid) -> MemoryId {
        self.memory(pid, tid).unwrap_or_else(|| self.add_memory(pid, tid, None))
    }

    fn add_memory(&mut self, pid: Pid, tid: Tid, from: Option<MemoryId>) -> MemoryId {
        let id = MemoryId(self.threads.len() as u32);
        let root = self.add_node(None);
        self.threads.push((root, from));
        self.memories.insert((pid, tid), id);
        id
    }

    fn add_node(&mut self, node: Option<Node>) -> NodeId {
        self.nodes.push(node);
        NodeId((self.nodes.len() - 1) as u32)
    }

    /// Remembers a complete stack, innermost frame first. `function` gives the start of the function
    /// of the frame at an index. Returns the node of the frame at index `wanted` (at least
    /// 1; from their number on, the empty chain), unless there is no more room.
    pub(crate) fn learn(
        &mut self,
        memory: MemoryId,
        frames: &[KnownFrame],
        wanted: usize,
        sight: Sight,
        function: &mut dyn FnMut(usize) -> ProcessAddress,
    ) -> Option<NodeId> {
        let mut node = self.threads.get(memory.0 as usize)?.0;
        let mut found = (wanted >= frames.len()).then_some(node);
        for index in (1..frames.len()).rev() {
            let key = (node, frames[index]);
            node = match self.children.get(&key) {
                Some(known) => {
                    let known = *known;
                    if sight.of_frame(index).certain && !self.is_certain(known) {
                        // Its caller may be worth a note now.
                        function(index);
                    }
                    self.see_again(known, sight.of_frame(index));
                    known
                }
                None if self.nodes.len() >= MOST_NODES => return None,
                None => {
                    let end = frames.get(index + 1).map(|caller| caller.stack_pointer);
                    let seen = end.map(|end| {
                        let activation = Activation { end, function: function(index) };
                        self.see(memory, activation, node, sight.of_frame(index))
                    });
                    let new = Node { caller: node, frame: frames[index], seen };
                    let new = self.add_node(Some(new));
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
            self.see(memory, leaf, node, sight.of_frame(0));
        }
        found
    }

    fn see(
        &mut self,
        memory: MemoryId,
        activation: Activation,
        caller: NodeId,
        look: Look,
    ) -> usize {
        let new = self.seen.len();
        let position = *self.callers.entry((memory, activation)).or_insert(new);
        match self.seen.get_mut(position) {
            Some(seen) => seen.again(caller, look),
            None => self.seen.push(Seen::new(caller, look)),
        }
        position
    }

    fn is_certain(&self, node: NodeId) -> bool {
        let node = self.nodes.get(node.0 as usize).copied().flatten();
        let position = node.and_then(|node| node.seen);
        // Outermost frames have no caller to be in doubt of.
        position.is_none_or(|position| self.seen.get(position).is_some_and(|seen| seen.certain))
    }

    fn see_again(&mut self, node: NodeId, look: Look) {
        let node = self.nodes.get(node.0 as usize).copied().flatten();
        if let Some(Node { caller, seen: Some(position), .. }) = node
            && let Some(seen) = self.seen.get_mut(position)
        {
            seen.again(caller, look);
        }
    }

    /// Who called an activation of a thread, by its own memory or by that of the thread that its
    /// process was forked from.
    pub(crate) fn callers(&self, memory: MemoryId, activation: Activation) -> Callers {
        let mut at = Some(memory);
        while let Some(memory) = at {
            let position = self.callers.get(&(memory, activation));
            match position.and_then(|position| self.seen.get(*position)) {
                Some(seen) => return seen.callers(),
                None => at = self.threads.get(memory.0 as usize).and_then(|thread| thread.1),
            }
        }
        Callers::Unknown
    }

    /// The locations of a frame and its callers, outermost first.
    pub(crate) fn path(&self, node: NodeId) -> Vec<CodeLocation> {
        let mut path = Vec::new();
        let mut at = node;
        while let Some(Some(node)) = self.nodes.get(at.0 as usize) {
            path.push(node.frame.location);
            at = node.caller;
        }
        path.reverse();
        path
    }

    /// Notes that a function was found below a return address in a stack that was copied.
    pub(crate) fn note_call(
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
    pub(crate) fn knows_call(
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
