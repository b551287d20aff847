//! The distinct stacks of an input with their weights, and what they become.

use flame_profile::{
    BuilderNode, FrameKind, LabelId, Location, Pid, Profile, Recursion, RootFrame, SiblingOrder,
    StackId, Thread, ThreadId, Tid, TreeBuilder, TreeOptions, UnsortedStacks, ValueType, Weight,
    readable,
};

use crate::nested::Nested;
use crate::sink::FrameIndex;

/// A frame: its name as the input has it, and its kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    pub(crate) name: Box<[u8]>,
    pub(crate) kind: FrameKind,
}

/// A thread, as far as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Task {
    pub(crate) name: Box<[u8]>,
    pub(crate) process: Option<Box<[u8]>>,
    pub(crate) pid: Option<u32>,
    pub(crate) tid: Option<u32>,
    /// Whether the input has a number for it.
    pub(crate) has_tid: bool,
}

/// The distinct stacks of an input, each with its values.
#[derive(Debug)]
pub struct Stacks {
    values: Vec<ValueType>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) tasks: Vec<Task>,
    /// The frames of all stacks, outermost first.
    path: Vec<FrameIndex>,
    rows: Vec<Row>,
    /// One for each value type and row.
    weights: Vec<u64>,
    /// Stacks beside the rows.
    pub(crate) nested: Nested,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    start: usize,
    len: u32,
    task: u32,
}

impl Stacks {
    /// Stands for no thread.
    pub(crate) const NO_TASK: u32 = u32::MAX;

    pub(crate) fn new(values: Vec<ValueType>) -> Stacks {
        Stacks {
            values,
            frames: Vec::new(),
            tasks: Vec::new(),
            path: Vec::new(),
            rows: Vec::new(),
            weights: Vec::new(),
            nested: Nested::default(),
        }
    }

    /// What each value of a stack means.
    pub fn value_types(&self) -> &[ValueType] {
        &self.values
    }

    /// Whether there is no stack.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.nested.is_empty()
    }

    /// How many distinct stacks there are.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn row(&self, row: usize) -> (u32, &[FrameIndex]) {
        let Row { start, len, task } = self.rows[row];
        (task, &self.path[start..start + len as usize])
    }

    pub(crate) fn is_row(&self, row: usize, task: u32, stack: &[FrameIndex]) -> bool {
        self.row(row) == (task, stack)
    }

    pub(crate) fn weights(&self, row: usize) -> &[u64] {
        let count = self.values.len();
        &self.weights[row * count..(row + 1) * count]
    }

    pub(crate) fn add_to(&mut self, row: usize, weights: &[u64]) {
        let count = self.values.len();
        let sums = &mut self.weights[row * count..(row + 1) * count];
        for (sum, weight) in sums.iter_mut().zip(weights) {
            *sum = sum.saturating_add(*weight);
        }
    }

    pub(crate) fn push(&mut self, task: u32, stack: &[FrameIndex], weights: &[u64]) -> usize {
        assert_eq!(weights.len(), self.values.len(), "one weight for each value type");
        let len = u32::try_from(stack.len()).expect("a stack has less than 2^32 frames");
        self.rows.push(Row { start: self.path.len(), len, task });
        self.path.extend_from_slice(stack);
        self.weights.extend_from_slice(weights);
        self.rows.len() - 1
    }

    /// The stacks as a tree that grows on, weighed by the value that is asked for, or the first.
    pub fn to_builder(&self, options: &TreeOptions) -> TreeBuilder {
        let mut builder = TreeBuilder::new();
        let labels: Vec<LabelId> = self
            .frames
            .iter()
            .map(|frame| builder.label(&readable(&frame.name), frame.kind))
            .collect();
        let tasks: Vec<LabelId> = self
            .tasks
            .iter()
            .map(|task| builder.label(&task.root(options.root), FrameKind::Mark))
            .collect();
        let nameless = builder.label("[no stack]", FrameKind::Mark);
        let value = options.value.unwrap_or(0);
        let by_name = matches!(options.order, SiblingOrder::Name | SiblingOrder::Weight);
        let is_sorted_first = by_name && options.recursion == Recursion::Keep;
        let mut unsorted = UnsortedStacks::default();
        let mut nodes: Vec<BuilderNode> = Vec::new();
        // The stack before and this one: what they share has its nodes already.
        let (mut before, mut path) = (Vec::new(), Vec::new());
        for row in 0..self.rows.len() {
            let weight = Weight(self.weights(row).get(value).copied().unwrap_or(0));
            if weight == Weight(0) {
                continue;
            }
            let (task, stack) = self.row(row);
            path.clear();
            path.extend(tasks.get(task as usize));
            path.extend(stack.iter().map(|frame| labels[frame.0 as usize]));
            if path.is_empty() {
                path.push(nameless);
            }
            if is_sorted_first {
                unsorted.push(&path, Weight(0), weight);
                if unsorted.is_full() {
                    unsorted.drain_into(&mut builder, false);
                }
                continue;
            }
            let shared = path.iter().zip(&before).take_while(|(a, b)| a == b).count();
            nodes.truncate(shared);
            if options.order == SiblingOrder::Time {
                part_in_time(&mut nodes, path.len(), &builder, options.recursion);
            }
            let mut leaf = nodes.last().copied().unwrap_or(BuilderNode::ROOT);
            for label in &path[nodes.len()..] {
                leaf = match options.recursion {
                    Recursion::Keep => builder.child(leaf, *label),
                    Recursion::Collapse => builder.child_or_repeated(leaf, *label),
                };
                nodes.push(leaf);
            }
            builder.add(leaf, weight);
            std::mem::swap(&mut before, &mut path);
        }
        unsorted.drain_into(&mut builder, false);
        self.add_nested(&mut builder, (&labels, &tasks), value, options.recursion);
        builder
    }

    /// Adds the stacks that stand within one another to a tree that has these labels of frames and threads.
    fn add_nested(
        &self,
        builder: &mut TreeBuilder,
        (labels, tasks): (&[LabelId], &[LabelId]),
        value: usize,
        recursion: Recursion,
    ) {
        let mut nodes: Vec<Option<BuilderNode>> = Vec::new();
        for node in self.nested.iter() {
            let Some((node, weights)) = node else {
                nodes.push(None);
                continue;
            };
            let above = node.above.and_then(|above| nodes[above.index()]);
            let above = above.unwrap_or_else(|| match tasks.get(node.task as usize) {
                Some(task) => builder.child(BuilderNode::ROOT, *task),
                None => BuilderNode::ROOT,
            });
            let label = labels[node.frame.0 as usize];
            let node = match recursion {
                Recursion::Keep => builder.child(above, label),
                Recursion::Collapse => builder.child_or_repeated(above, label),
            };
            let weight = Weight(weights.get(value).copied().unwrap_or(0));
            if weight > Weight(0) {
                builder.add(node, weight);
            }
            nodes.push(Some(node));
        }
    }

    /// The stacks as a profile, with all their values.
    pub fn to_profile(&self) -> Profile {
        let mut profile = Profile::new(self.values.clone());
        let location = |frame: &Frame| {
            let frame = profile.add_frame(&readable(&frame.name), frame.kind);
            profile.add_location(Location::named(frame))
        };
        let locations: Vec<_> = self.frames.iter().map(location).collect();
        let mut threads = Vec::new();
        for task in &self.tasks {
            let name = profile.intern(&readable(&task.name));
            let process = task.process.as_deref().map(|name| profile.intern(&readable(name)));
            let (pid, tid) = (task.pid.map(Pid), task.tid.map(Tid));
            threads.push(profile.add_whole_thread(Thread { name, process, pid, tid }));
        }
        for row in 0..self.rows.len() {
            let (task, stack) = self.row(row);
            let mut stack = stack.iter();
            let thread = match threads.get(task as usize) {
                Some(thread) => *thread,
                None => self.thread_of(stack.next(), &mut profile),
            };
            let stack = stack.fold(StackId::EMPTY, |caller, frame| {
                profile.push_stack(caller, locations[frame.0 as usize])
            });
            profile.add_sample(thread, stack, self.weights(row));
        }
        let mut nodes: Vec<Option<(ThreadId, StackId)>> = Vec::new();
        for node in self.nested.iter() {
            let Some((node, weights)) = node else {
                nodes.push(None);
                continue;
            };
            let above = node.above.and_then(|above| nodes[above.index()]);
            let (thread, caller) = match (above, threads.get(node.task as usize)) {
                (Some(above), _) => above,
                (None, Some(thread)) => (*thread, StackId::EMPTY),
                (None, None) => (self.thread_of(Some(&node.frame), &mut profile), StackId::EMPTY),
            };
            let is_thread = above.is_none() && node.task == Stacks::NO_TASK;
            let stack = match is_thread {
                true => caller,
                false => profile.push_stack(caller, locations[node.frame.0 as usize]),
            };
            nodes.push(Some((thread, stack)));
            if weights.iter().any(|weight| *weight > 0) {
                profile.add_sample(thread, stack, weights);
            }
        }
        profile
    }

    /// Profiles have a thread for each sample: where none is known, the outermost frame is taken for it.
    fn thread_of(&self, outermost: Option<&FrameIndex>, profile: &mut Profile) -> ThreadId {
        let name = outermost.map(|frame| &*self.frames[frame.0 as usize].name);
        let name = profile.intern(&readable(name.unwrap_or(b"[no stack]")));
        profile.add_whole_thread(Thread { name, process: None, pid: None, tid: None })
    }
}

/// Lets a stack of so many frames begin with new nodes where those that it shares with the one before do not say any
/// more when what was: what a node has itself comes behind what it calls. Equal neighbours are merged at the end.
fn part_in_time(
    nodes: &mut Vec<BuilderNode>,
    len: usize,
    builder: &TreeBuilder,
    recursion: Recursion,
) {
    let goes_on_inwards = nodes.len() < len;
    if recursion == Recursion::Collapse {
        // A folded call leads back to a node with callees.
        nodes.clear();
    } else if goes_on_inwards && nodes.last().is_some_and(|last| builder.has_self_weight(*last)) {
        nodes.pop();
    }
}

impl Task {
    /// The outermost frame: the name, `NAME-PID` or `NAME-PID/TID`.
    fn root(&self, root: RootFrame) -> String {
        let mut name = readable(&self.name).into_owned();
        if let Some(process) = self.process.as_deref().filter(|process| *process != &*self.name) {
            name = format!("{}/{name}", readable(process));
        }
        let number = |number: Option<u32>| match number {
            Some(number) => Some(number.to_string()),
            None => self.has_tid.then(|| "?".to_owned()),
        };
        let pid = root.pid.then(|| number(self.pid)).flatten();
        let tid = root.tid.then(|| number(self.tid)).flatten();
        let ids: Vec<String> = pid.into_iter().chain(tid).collect();
        if ids.is_empty() { name } else { format!("{name}-{}", ids.join("/")) }
    }
}
