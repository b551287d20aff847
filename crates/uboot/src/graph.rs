//! Calls and their time summed up: one node a distinct path of functions.
//!
//! Memory grows with the distinct paths, not with the records.

use flame_profile::{
    BuilderNode, CallTree, FrameKind, ImageAddress, Location, Profile, SiblingOrder, StackId,
    Thread, TreeBuilder, ValueType, Weight,
};
use rustc_hash::FxHashMap;

use crate::functions::{FunctionId, Functions, Traits};
use crate::recent::Recent;
use crate::replay::{Moment, Step};

/// Where the time of pauses stands.
pub(crate) const PAUSED: &str = "[paused]";

/// What weighs the boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// How often each path was entered.
    Calls,
    /// Microseconds in each function itself.
    Time,
}

impl Measure {
    /// The value as trees and profiles have it.
    pub fn value_type(self) -> ValueType {
        match self {
            Measure::Calls => ValueType::new("calls", "count"),
            Measure::Time => ValueType::new("time", "microseconds"),
        }
    }

    fn of(self, node: &PathNode) -> u64 {
        match self {
            Measure::Calls => node.calls,
            Measure::Time => node.micros,
        }
    }
}

/// A path. The root is the first one.
#[derive(Clone, Copy, Debug)]
struct PathNode {
    parent: u32,
    function: u32,
    calls: u64,
    micros: u64,
}

/// Paths of calls with what they weigh.
#[derive(Debug)]
pub struct CallGraph {
    nodes: Vec<PathNode>,
    children: FxHashMap<(u32, u32), u32>,
    /// Of the children those that were called last.
    recent: Recent<u32>,
    /// The node of each open call; for a call that the rules exclude, that of its caller.
    open: Vec<u32>,
    paused: u64,
    excluded_calls: u64,
}

impl Default for CallGraph {
    fn default() -> CallGraph {
        let root = PathNode { parent: 0, function: u32::MAX, calls: 0, micros: 0 };
        CallGraph {
            nodes: vec![root],
            children: FxHashMap::default(),
            recent: Recent::default(),
            open: Vec::new(),
            paused: 0,
            excluded_calls: 0,
        }
    }
}

impl CallGraph {
    #[inline(always)]
    pub(crate) fn take(&mut self, moment: Moment, functions: &Functions<'_>) {
        let at = self.open.last().copied().unwrap_or(0);
        if moment.is_pause {
            self.paused += moment.elapsed;
        } else {
            self.nodes[at as usize].micros += moment.elapsed;
        }
        match moment.step {
            Step::Entered if functions.traits(moment.function).is_kept => {
                let child = self.child(at, moment.function);
                self.nodes[child as usize].calls += 1;
                self.open.push(child);
            }
            Step::Entered => {
                self.excluded_calls += 1;
                self.open.push(at);
            }
            Step::Left { outermost, .. } => self.open.truncate(outermost),
            Step::Unmatched => {}
        }
    }

    /// The node of a function below another one.
    fn child(&mut self, parent: u32, FunctionId(function): FunctionId) -> u32 {
        let key = u64::from(parent) << 32 | u64::from(function);
        if let Some(child) = self.recent.find(key) {
            return child;
        }
        let next = self.nodes.len() as u32;
        let child = *self.children.entry((parent, function)).or_insert(next);
        if child == next {
            self.nodes.push(PathNode { parent, function, calls: 0, micros: 0 });
        }
        self.recent.keep(key, child);
        child
    }

    /// How many distinct paths there are.
    pub fn paths(&self) -> usize {
        self.nodes.len() - 1
    }

    /// Microseconds during which no function that is shown was open, not counting pauses.
    pub fn outside(&self) -> u64 {
        self.nodes[0].micros
    }

    /// Calls of functions that the rules exclude.
    pub fn excluded_calls(&self) -> u64 {
        self.excluded_calls
    }

    /// The call tree. Pauses are under `[paused]` next to all functions, since their time belongs to none;
    /// what was in no function is left out.
    pub fn tree(
        &self,
        measure: Measure,
        functions: &Functions<'_>,
        order: SiblingOrder,
    ) -> CallTree {
        let mut builder = TreeBuilder::new();
        let list = functions.list();
        let labels: Vec<_> =
            list.map(|(function, traits)| builder.label(&function.name, kind(*traits))).collect();
        let mut built = vec![BuilderNode::ROOT];
        for node in &self.nodes[1..] {
            let label = labels[node.function as usize];
            let child = builder.child(built[node.parent as usize], label);
            builder.add(child, Weight(measure.of(node)));
            built.push(child);
        }
        if self.paused > 0 && measure == Measure::Time {
            let label = builder.label(PAUSED, FrameKind::Mark);
            let node = builder.child(BuilderNode::ROOT, label);
            builder.add(node, Weight(self.paused));
        }
        builder.finish(measure.value_type(), order)
    }

    /// The profile, with calls and time both, of a thread `U-Boot`.
    pub fn profile(&self, measure: Measure, functions: &Functions<'_>) -> Profile {
        let values = [Measure::Calls, Measure::Time];
        let mut profile = Profile::new(values.map(Measure::value_type).to_vec());
        profile.default_value = usize::from(measure == Measure::Time);
        let name = profile.intern("U-Boot");
        let thread = Thread { name, process: Some(name), pid: None, tid: None };
        let thread = profile.add_whole_thread(thread);
        let location = |profile: &mut Profile, name: &str, kind, address| {
            let frame = profile.add_frame(name, kind);
            let address = ImageAddress(address);
            profile.add_location(Location { image: None, address, frames: vec![frame] })
        };
        let locations: Vec<_> = functions
            .list()
            .map(|(function, traits)| {
                location(&mut profile, &function.name, kind(*traits), traits.address)
            })
            .collect();
        let mut stacks = vec![StackId::EMPTY];
        for node in &self.nodes[1..] {
            let parent = stacks[node.parent as usize];
            let stack = profile.push_stack(parent, locations[node.function as usize]);
            profile.add_sample(thread, stack, &[node.calls, node.micros]);
            stacks.push(stack);
        }
        if self.paused > 0 {
            let paused = location(&mut profile, PAUSED, FrameKind::Mark, 0);
            let stack = profile.push_stack(StackId::EMPTY, paused);
            profile.add_sample(thread, stack, &[0, self.paused]);
        }
        profile
    }
}

/// Functions without a name are marks, so that they are not mistaken for real ones.
pub(crate) fn kind(traits: Traits) -> FrameKind {
    if traits.is_named { FrameKind::User } else { FrameKind::Mark }
}
