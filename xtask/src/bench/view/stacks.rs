//! Folded stacks with a given number of frames, the same at every run: names as Rust has them,
//! up to 80 deep, weights with a heavy tail.

use std::fmt::Write;

use crate::bench::random::Random;

const MOST_NAMES: u32 = 20_000;
const MOST_DEPTH: u16 = 80;

const CRATES: [&str; 12] = [
    "tokio::runtime::scheduler::multi_thread",
    "hyper::proto::h1",
    "alloc::collections::btree",
    "serde_json::de",
    "regex_automata::dfa",
    "core::iter::adapters",
    "std::sys::unix",
    "hashbrown::raw",
    "tower::buffer",
    "rustls::conn",
    "sqlx_core::postgres",
    "server::api",
];
const TYPES: [&str; 10] = [
    "Harness<T,S>",
    "RawTable<T,A>",
    "Connection<I>",
    "Deserializer<R>",
    "NodeRef<Mut,K,V,Leaf>",
    "Cache",
    "Worker",
    "{{impl}}",
    "Map<I,F>",
    "Request",
];
const VERBS: [&str; 14] = [
    "poll",
    "reserve_rehash",
    "parse_value",
    "insert",
    "next",
    "call",
    "drop_in_place",
    "run",
    "read_buf",
    "search",
    "park",
    "flush",
    "deserialize",
    "from",
];

/// From 0 to 1, towards 0 the more the higher the power.
fn skewed(random: &mut Random, power: i32) -> f64 {
    (random.below(1 << 30) as f64 / f64::from(1 << 30)).powi(power)
}

struct Node {
    parent: u32,
    name: u32,
    depth: u16,
    leaf: bool,
}

/// The text of a profile whose call tree has about `frames` distinct paths.
pub(super) fn folded(frames: u32) -> String {
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    let names = (frames / 8).clamp(500, MOST_NAMES);
    let nodes = grow(frames, names, &mut random);
    let names: Vec<String> = (0..names).map(name).collect();
    let mut text = String::new();
    let mut path = Vec::new();
    for node in nodes.iter().filter(|node| node.leaf) {
        path.clear();
        let mut at = node;
        loop {
            path.push(names[at.name as usize].as_str());
            if at.depth == 0 {
                break;
            }
            at = &nodes[at.parent as usize];
        }
        path.reverse();
        let weight = (1.0 / (skewed(&mut random, 1) + 1e-6)).powf(0.9) as u64 + 1;
        writeln!(text, "{} {weight}", path.join(";")).expect("text grows in memory");
    }
    text
}

/// New frames stand upon one of the newest most of the time, which makes chains, and upon any at
/// other times, which makes branches.
fn grow(frames: u32, names: u32, random: &mut Random) -> Vec<Node> {
    let pick = |random: &mut Random| (skewed(random, 3) * f64::from(names)) as u32;
    let mut nodes = vec![Node { parent: 0, name: pick(random), depth: 0, leaf: true }];
    let mut newest = 0;
    while nodes.len() < frames as usize {
        let deepen = random.below(100) < 78 && nodes[newest].depth < MOST_DEPTH;
        let mut parent =
            if deepen { newest } else { (skewed(random, 2) * nodes.len() as f64) as usize };
        while nodes[parent].depth >= MOST_DEPTH {
            parent = nodes[parent].parent as usize;
        }
        let depth = nodes[parent].depth + 1;
        nodes[parent].leaf = false;
        newest = nodes.len();
        nodes.push(Node { parent: parent as u32, name: pick(random), depth, leaf: true });
    }
    nodes
}

fn name(number: u32) -> String {
    let pick = |list: &[&'static str], step: u32| list[(number / step) as usize % list.len()];
    let module = number / 1_680;
    format!("{}::m{module}::{}::{}", pick(&CRATES, 1), pick(&TYPES, 12), pick(&VERBS, 120))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_stacks_come_every_time() {
        let text = folded(1_000);
        assert_eq!(text, folded(1_000));
        assert!(text.lines().all(|line| line.rsplit_once(' ').is_some_and(|(stack, weight)| {
            stack.split(';').count() <= 81 && weight.parse::<u64>().is_ok()
        })));
        let mut paths = std::collections::BTreeSet::new();
        for line in text.lines() {
            let stack = line.rsplit_once(' ').map_or("", |(stack, _)| stack);
            let ends = stack.match_indices(';').map(|(at, _)| at).chain([stack.len()]);
            paths.extend(ends.map(|end| &stack[..end]));
        }
        assert!((950..=1_000).contains(&paths.len()), "{} distinct paths", paths.len());
    }
}
