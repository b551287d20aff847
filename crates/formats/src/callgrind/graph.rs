//! Functions with costs and calls into stacks.

use rustc_hash::FxHashMap;

use crate::sink::{FrameIndex, Sample, Sink};

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
    callers: usize,
}

impl Graph {
    pub(super) fn names(&self) -> &[Vec<u8>] {
        &self.names
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
        let function = self.named(if name.is_empty() { value } else { name });
        self.by_number.insert(number.to_vec(), function);
        function
    }

    fn named(&mut self, name: &[u8]) -> usize {
        if let Some(known) = self.by_name.get(name) {
            return *known;
        }
        let number = self.names.len();
        self.names.push(name.to_vec());
        self.by_name.insert(name.to_vec(), number);
        self.functions.push(Function::default());
        number
    }

    pub(super) fn add_own(&mut self, function: usize, costs: &[u64]) {
        add(&mut self.functions[function].own, costs);
    }

    pub(super) fn add_call(&mut self, caller: usize, called: usize, costs: &[u64]) {
        let calls = &mut self.functions[caller].calls;
        match calls.iter_mut().find(|(function, _)| *function == called) {
            Some((_, sum)) => add(sum, costs),
            None => {
                calls.push((called, costs.to_vec()));
                self.functions[called].callers += 1;
            }
        }
    }

    /// Whether a function that calls others has several callers.
    pub(super) fn has_shared_callees(&self) -> bool {
        self.functions.iter().any(|function| function.callers > 1 && !function.calls.is_empty())
    }

    /// Adds the stacks, beginning with functions that nobody calls.
    pub(super) fn add_stacks(&self, values: usize, frames: &[FrameIndex], sink: &mut Sink) {
        let all: Vec<Vec<u64>> = self.functions.iter().map(|f| inclusive(f, values)).collect();
        let mut called = vec![vec![0_u64; values]; self.functions.len()];
        for (caller, function) in self.functions.iter().enumerate() {
            for (callee, costs) in &function.calls {
                if *callee != caller {
                    add(&mut called[*callee], costs);
                }
            }
        }
        let mut walk = Walk { graph: self, all: &all, frames, path: Vec::new(), stacks: 0 };
        for function in 0..self.functions.len() {
            // What a function cost beyond all calls of it began in it.
            let begun = all[function].iter().zip(&called[function]);
            let begun: Vec<u64> = begun.map(|(all, called)| all.saturating_sub(*called)).collect();
            if begun.iter().any(|cost| *cost > 0) {
                walk.enter(function, &begun, sink);
            }
        }
    }
}

/// What a function and its calls cost.
fn inclusive(function: &Function, values: usize) -> Vec<u64> {
    let mut sum = vec![0; values];
    add(&mut sum, &function.own);
    function.calls.iter().for_each(|(_, costs)| add(&mut sum, costs));
    sum
}

fn add(sum: &mut Vec<u64>, costs: &[u64]) {
    if sum.len() < costs.len() {
        sum.resize(costs.len(), 0);
    }
    for (sum, cost) in sum.iter_mut().zip(costs) {
        *sum = sum.saturating_add(*cost);
    }
}

struct Walk<'g> {
    graph: &'g Graph,
    all: &'g [Vec<u64>],
    frames: &'g [FrameIndex],
    /// The functions of the stack, outermost first.
    path: Vec<usize>,
    stacks: usize,
}

impl Walk<'_> {
    /// Shares `costs` among a function's own work and its calls as all of its cost is shared. What
    /// rounding leaves stays with the function, so that sums are exact.
    fn enter(&mut self, function: usize, costs: &[u64], sink: &mut Sink) {
        let is_recursive = self.path.contains(&function);
        self.path.push(function);
        let mut left = costs.to_vec();
        if !is_recursive && self.path.len() < MAX_DEPTH && self.stacks < MAX_STACKS {
            for (called, of_call) in &self.graph.functions[function].calls {
                let share: Vec<u64> = (0..costs.len())
                    .map(|value| {
                        let all = self.all[function][value];
                        let part = of_call.get(value).copied().unwrap_or_default();
                        share(costs[value], part, all).min(left[value])
                    })
                    .collect();
                if share.iter().all(|cost| *cost == 0) {
                    continue;
                }
                for (left, share) in left.iter_mut().zip(&share) {
                    *left -= share;
                }
                self.enter(*called, &share, sink);
            }
        }
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
