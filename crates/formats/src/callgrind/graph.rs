//! Functions with costs and calls into stacks.

use std::borrow::Cow;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::ReadError;
use crate::sink::{FrameIndex, Sample, Sink};
use crate::skipped::Place;

/// No stack is followed deeper; what is below stays with the last function.
const MAX_DEPTH: usize = 512;
/// This many stacks at most come of a graph; what is left then stays with the function above.
const MAX_STACKS: usize = 2_000_000;

/// The functions of a program with what they and their calls cost.
#[derive(Debug, Default)]
pub(super) struct Graph {
    names: Vec<Vec<u8>>,
    by_name: FxHashMap<Vec<u8>, usize>,
    /// Compressed names: `(1) main` says what `(1)` means from then on.
    by_number: FxHashMap<Vec<u8>, usize>,
    functions: Vec<Function>,
}

#[derive(Debug, Default)]
struct Function {
    own: Vec<u64>,
    /// The called functions with what the calls cost, in the order of the file.
    calls: Vec<(usize, Vec<u64>)>,
    /// Who has called it first, other than itself, and the line where another one does.
    caller: Option<usize>,
    second_caller: Option<u64>,
}

impl Graph {
    /// The names of the functions, without what tells a function from itself.
    pub(super) fn names(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.names.len()).map(|function| self.bare_name(function))
    }

    /// `fib` of `fib'2'work'main`, as `--separate-recs` calls the second level of a recursion, and `--separate-callers`
    /// the calls of certain callers. Other names have quotes, too: `f()::'lambda'(int)`.
    fn bare_name(&self, function: usize) -> &[u8] {
        // Deeper levels are called by other ones.
        let known = self.by_name.get(&*first_level(&self.names[function]));
        let first = known.copied().unwrap_or(function);
        let name = &self.names[first];
        let caller = self.functions[first].caller.map(|caller| first_level(&self.names[caller]));
        let is_caller = |at: &usize| {
            let behind = caller.as_ref().and_then(|caller| caller.strip_prefix(&name[at + 1..]));
            behind.is_some_and(|behind| matches!(behind.first(), None | Some(b'\'')))
        };
        let context = memchr::memchr_iter(b'\'', name).find(is_caller);
        let level = level(name).filter(|(_, end)| *end == name.len()).map(|(start, _)| start);
        &name[..context.or(level).unwrap_or(name.len())]
    }

    /// The number of a function: `main`, `(1) main` or `(1)`.
    pub(super) fn function(&mut self, value: &[u8]) -> usize {
        let end = memchr::memchr(b')', value).filter(|_| value.starts_with(b"("));
        let is_number = |end: &usize| value[1..*end].iter().all(u8::is_ascii_digit) && *end > 1;
        let Some(end) = end.filter(is_number) else { return self.named(value) };
        let (number, name) = (&value[1..end], value[end + 1..].trim_ascii());
        if name.is_empty()
            && let Some(known) = self.by_number.get(number)
        {
            return *known;
        }
        if name.is_empty() {
            return self.named(value);
        }
        // Functions of one name in several files and objects have numbers of their own.
        match self.by_number.get(number) {
            Some(known) if self.names[*known] == name => *known,
            _ => {
                let function = self.push(name);
                self.by_number.insert(number.to_vec(), function);
                function
            }
        }
    }

    fn named(&mut self, name: &[u8]) -> usize {
        self.by_name.get(name).copied().unwrap_or_else(|| self.push(name))
    }

    fn push(&mut self, name: &[u8]) -> usize {
        let function = self.names.len();
        self.names.push(name.to_vec());
        self.by_name.entry(name.to_vec()).or_insert(function);
        self.functions.push(Function::default());
        function
    }

    pub(super) fn add_own(&mut self, function: usize, costs: &[u64]) {
        add(&mut self.functions[function].own, costs);
    }

    /// Adds a call of a line of the file.
    pub(super) fn add_call(&mut self, (caller, called): (usize, usize), costs: &[u64], line: u64) {
        let calls = &mut self.functions[caller].calls;
        match calls.iter_mut().find(|(function, _)| *function == called) {
            Some((_, sum)) => add(sum, costs),
            None => calls.push((called, costs.to_vec())),
        }
        let function = &mut self.functions[called];
        if caller != called && *function.caller.get_or_insert(caller) != caller {
            function.second_caller.get_or_insert(line);
        }
    }

    /// All calls: who calls whom, and what that costs.
    fn calls(&self) -> impl Iterator<Item = (usize, usize, &[u64])> {
        let functions = self.functions.iter().enumerate();
        functions.flat_map(|(caller, function)| {
            function.calls.iter().map(move |(callee, costs)| (caller, *callee, &costs[..]))
        })
    }

    /// Where a function that calls others gets its second caller: what it does for which of them is a guess.
    fn shared_since(&self, function: usize) -> Option<u64> {
        let calls_others =
            self.functions[function].calls.iter().any(|(called, _)| *called != function);
        self.functions[function].second_caller.filter(|_| calls_others)
    }

    /// Says how many functions are shared among callers, and how much of the costs stands below them.
    fn say_shared(&self, walk: &Walk<'_>, all: u64, sink: &mut Sink) -> Result<(), ReadError> {
        let shared = (0..self.functions.len()).filter_map(|function| self.shared_since(function));
        let (count, first) = (shared.clone().count(), shared.min());
        let Some(first) = first else { return Ok(()) };
        let parts = share(1000, walk.guessed, all);
        let what = format!(
            "callgrind counts calls, not stacks: what functions with several callers do, {count} of them, is \
             shared among these in proportion, which is a guess; {}.{} % of all costs rest on it",
            parts / 10,
            parts % 10
        );
        sink.complain(Place::Line(first), &what)
    }

    /// Adds the stacks, beginning with functions that nobody calls. All of them weigh what the functions'
    /// own costs do.
    ///
    /// # Errors
    /// Stacks rest on guesses, or are not whole, and that is to be an error.
    pub(super) fn add_stacks(
        &self,
        values: usize,
        frames: &[FrameIndex],
        sink: &mut Sink,
    ) -> Result<(), ReadError> {
        let cycles = Cycles::of(self, values);
        let functions = 0..self.functions.len();
        let is_shared = functions.map(|function| self.shared_since(function).is_some()).collect();
        let mut walk = Walk {
            cycles: &cycles,
            frames,
            path: Vec::new(),
            stacks: 0,
            is_shared,
            shared: 0,
            guessed: 0,
            unfollowed: 0,
            known: FxHashMap::default(),
        };
        for function in 0..self.functions.len() {
            let begun = &cycles.begun[function];
            if begun.iter().any(|cost| *cost > 0) {
                walk.enter(function, begun, sink);
            }
        }
        let own = self.functions.iter().filter_map(|function| function.own.first());
        let all = own.fold(0_u64, |sum, own| sum.saturating_add(*own));
        self.say_shared(&walk, all, sink)?;
        if walk.unfollowed > 0 {
            let parts = share(1000, walk.unfollowed, all);
            let what = format!(
                "stacks end at {MAX_DEPTH} functions, and there are {MAX_STACKS} at most: {}.{} % of all costs \
                 stand at a function that called others for them",
                parts / 10,
                parts % 10
            );
            sink.complain(Place::Line(1), &what)?;
        }
        Ok(())
    }
}

/// From where to where the level of a recursion stands in a name, as in `fib'2` and `fib'2'main`.
fn level(name: &[u8]) -> Option<(usize, usize)> {
    memchr::memchr_iter(b'\'', name).filter(|at| *at > 0).find_map(|at| {
        let digits = name[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let end = at + 1 + digits;
        let is_end = matches!(name.get(end), None | Some(b'\''));
        (digits > 0 && is_end).then_some((at, end))
    })
}

/// `fib'main` of `fib'2'main`.
fn first_level(name: &[u8]) -> Cow<'_, [u8]> {
    match level(name) {
        Some((start, end)) => [&name[..start], &name[end..]].concat().into(),
        None => name.into(),
    }
}

/// Adds costs to sums, event by event.
pub(super) fn add(sum: &mut Vec<u64>, costs: &[u64]) {
    if sum.len() < costs.len() {
        sum.resize(costs.len(), 0);
    }
    for (sum, cost) in sum.iter_mut().zip(costs) {
        *sum = sum.saturating_add(*cost);
    }
}

/// Functions that call one another, directly or through others, as one: the costs of calls within count the
/// same work many times over, so only calls into it and out of it are believed.
struct Cycles<'g> {
    graph: &'g Graph,
    values: usize,
    /// The cycle of each function; most have one of their own.
    of: Vec<usize>,
    /// The calls of each function that leave its cycle, with what they cost.
    out: Vec<Vec<(usize, Vec<u64>)>>,
    /// What a function cost that no call of it accounts for.
    begun: Vec<Vec<u64>>,
}

impl<'g> Cycles<'g> {
    fn of(graph: &'g Graph, values: usize) -> Cycles<'g> {
        let members = members(graph);
        let count = graph.functions.len();
        let mut of = vec![0; count];
        for (cycle, members) in members.iter().enumerate() {
            members.iter().for_each(|function| of[*function] = cycle);
        }
        let mut called = vec![vec![0_u64; values]; members.len()];
        for (caller, callee, costs) in graph.calls() {
            if of[caller] != of[callee] {
                add(&mut called[of[callee]], costs);
            }
        }
        let mut all = vec![vec![0_u64; values]; members.len()];
        let mut cycles = Cycles {
            graph,
            values,
            of,
            out: vec![Vec::new(); count],
            begun: vec![Vec::new(); count],
        };
        // Callees come before their callers.
        for (cycle, members) in members.iter().enumerate() {
            for function in members {
                add(&mut all[cycle], &graph.functions[*function].own);
                for (callee, costs) in &graph.functions[*function].calls {
                    let to = cycles.of[*callee];
                    if to == cycle {
                        continue;
                    }
                    // Calls may be said to cost more than there is: those that a dump interrupted.
                    let costs: Vec<u64> = (0..values)
                        .map(|value| {
                            let cost = costs.get(value).copied().unwrap_or_default();
                            let (all, called) = (all[to][value], called[to][value]);
                            if called > all { share(all, cost, called) } else { cost }
                        })
                        .collect();
                    add(&mut all[cycle], &costs);
                    cycles.out[*function].push((*callee, costs));
                }
            }
        }
        cycles.begin(&members, all);
        cycles
    }

    /// What calls do not account for begins in the function of a cycle that does most.
    fn begin(&mut self, members: &[Vec<usize>], mut left: Vec<Vec<u64>>) {
        for (callee, costs) in self.out.iter().flatten() {
            for (left, cost) in left[self.of[*callee]].iter_mut().zip(costs) {
                *left = left.saturating_sub(*cost);
            }
        }
        for (members, left) in members.iter().zip(left) {
            let called = |function: &&usize| self.graph.functions[**function].inclusive();
            if let Some(first) = members.iter().max_by_key(called) {
                self.begun[*first] = left;
            }
        }
    }

    /// A cycle as it is entered: the members that each one calls for the first time, and what all that is
    /// below a member costs.
    fn tree(&self, entry: usize) -> FxHashMap<usize, Member> {
        let mut tree = FxHashMap::from_iter([(entry, Member::default())]);
        let mut order = vec![entry];
        let mut at = 0;
        while let Some(function) = order.get(at).copied() {
            at += 1;
            for (callee, _) in &self.graph.functions[function].calls {
                if self.of[*callee] == self.of[entry] && !tree.contains_key(callee) {
                    tree.insert(*callee, Member::default());
                    tree.entry(function).or_default().calls.push(*callee);
                    order.push(*callee);
                }
            }
        }
        for function in order.into_iter().rev() {
            let mut all = vec![0; self.values];
            add(&mut all, &self.graph.functions[function].own);
            self.out[function].iter().for_each(|(_, costs)| add(&mut all, costs));
            for callee in &tree[&function].calls {
                add(&mut all, &tree[callee].all);
            }
            tree.entry(function).or_default().all = all;
        }
        tree
    }
}

/// A function of a cycle.
#[derive(Debug, Default)]
struct Member {
    calls: Vec<usize>,
    all: Vec<u64>,
}

impl Function {
    /// What it and its calls cost, by the first event.
    fn inclusive(&self) -> u64 {
        let first = |costs: &[u64]| costs.first().copied().unwrap_or_default();
        let calls = self.calls.iter().map(|(_, costs)| first(costs));
        calls.fold(first(&self.own), u64::saturating_add)
    }
}

/// The functions of each cycle, callees before their callers: the strongly connected components, by
/// Tarjan's algorithm.
fn members(graph: &Graph) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let count = graph.functions.len();
    let (mut number, mut low) = (vec![NEW; count], vec![0; count]);
    let (mut is_open, mut open, mut cycles) = (vec![false; count], Vec::new(), Vec::new());
    let mut next = 0;
    for root in 0..count {
        // A function, and how many of its calls were followed.
        let mut path = if number[root] == NEW { vec![(root, 0)] } else { Vec::new() };
        while let Some((function, followed)) = path.last_mut() {
            let function = *function;
            if *followed == 0 && number[function] == NEW {
                (number[function], low[function]) = (next, next);
                next += 1;
                open.push(function);
                is_open[function] = true;
            }
            if let Some((callee, _)) = graph.functions[function].calls.get(*followed) {
                *followed += 1;
                if number[*callee] == NEW {
                    path.push((*callee, 0));
                } else if is_open[*callee] {
                    low[function] = low[function].min(number[*callee]);
                }
                continue;
            }
            path.pop();
            if let Some((caller, _)) = path.last() {
                low[*caller] = low[*caller].min(low[function]);
            }
            if low[function] == number[function] {
                let start = open.iter().rposition(|member| *member == function).unwrap_or(0);
                let cycle = open.split_off(start);
                cycle.iter().for_each(|member| is_open[*member] = false);
                cycles.push(cycle);
            }
        }
    }
    cycles
}

struct Walk<'c> {
    cycles: &'c Cycles<'c>,
    frames: &'c [FrameIndex],
    /// The functions of the stack, outermost first.
    path: Vec<usize>,
    stacks: usize,
    /// Whether a function has several callers, and how many of the path have.
    is_shared: Vec<bool>,
    shared: usize,
    /// What stands below one that has, and what calls that were not followed cost, by the first event.
    guessed: u64,
    unfollowed: u64,
    /// Cycles by the function that they are entered at.
    known: FxHashMap<usize, Rc<FxHashMap<usize, Member>>>,
}

impl Walk<'_> {
    /// A function that is called from outside its cycle.
    fn enter(&mut self, function: usize, costs: &[u64], sink: &mut Sink) {
        let cycles = self.cycles;
        let tree = self.known.entry(function).or_insert_with(|| Rc::new(cycles.tree(function)));
        let tree = Rc::clone(tree);
        self.visit(function, costs, &tree, sink);
    }

    /// Shares `costs` among a function's own work and its calls as all of its cost is shared. What
    /// rounding leaves stays with the function, so that sums are exact.
    fn visit(
        &mut self,
        function: usize,
        costs: &[u64],
        tree: &FxHashMap<usize, Member>,
        sink: &mut Sink,
    ) {
        self.path.push(function);
        let is_shared = self.is_shared[function];
        self.shared += usize::from(is_shared);
        let mut left = costs.to_vec();
        let (cycles, member) = (self.cycles, &tree[&function]);
        if self.path.len() < MAX_DEPTH && self.stacks < MAX_STACKS {
            let within = member.calls.iter().map(|called| (*called, &tree[called].all, true));
            let out = cycles.out[function].iter().map(|(called, costs)| (*called, costs, false));
            for (called, of_call, is_within) in within.chain(out) {
                let share: Vec<u64> = (0..costs.len())
                    .map(|value| {
                        share(costs[value], of_call[value], member.all[value]).min(left[value])
                    })
                    .collect();
                if share.iter().all(|cost| *cost == 0) {
                    continue;
                }
                for (left, share) in left.iter_mut().zip(&share) {
                    *left -= share;
                }
                match is_within {
                    true => self.visit(called, &share, tree, sink),
                    false => self.enter(called, &share, sink),
                }
            }
        } else if let Some(all) = costs.first() {
            let own = cycles.graph.functions[function].own.first().copied().unwrap_or_default();
            let left = all.saturating_sub(share(*all, own, member.all[0]));
            self.unfollowed = self.unfollowed.saturating_add(left);
        }
        if self.shared > 0 {
            self.guessed = self.guessed.saturating_add(left.first().copied().unwrap_or_default());
        }
        self.shared -= usize::from(is_shared);
        if left.iter().any(|cost| *cost > 0) {
            let stack: Vec<FrameIndex> = self.path.iter().map(|at| self.frames[*at]).collect();
            sink.add(&Sample::new(&stack, &left));
            self.stacks += 1;
        }
        self.path.pop();
    }
}

/// `costs * part / all`; what is too large stays the largest number.
fn share(costs: u64, part: u64, all: u64) -> u64 {
    let all = u128::from(all.max(1));
    u64::try_from(u128::from(costs) * u128::from(part) / all).unwrap_or(u64::MAX)
}
