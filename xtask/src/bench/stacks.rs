//! Folded text of any size, the same each time: a program of many functions in many crates.

use std::collections::BTreeSet;
use std::io::{self, Write};

use anyhow::{Context, Result};

use super::random::Random;

/// The program has a function for each 10 distinct stacks, and no more than this.
const MOST_FUNCTIONS: u64 = 20_000;

/// Prints as many distinct stacks.
pub(crate) fn print(count: &str) -> Result<()> {
    let count = count.parse().with_context(|| format!("{count} is not a number"))?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    write(count, &mut out)?;
    Ok(out.flush()?)
}

/// Writes `count` distinct stacks, sorted as collapsing scripts sort them, with heavy-tailed
/// weights.
pub(crate) fn write(count: u64, out: &mut impl Write) -> io::Result<()> {
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    let functions = (count / 10).clamp(500, MOST_FUNCTIONS);
    let mut tree = Tree { nodes: vec![(0, 0)] };
    let mut stacks: BTreeSet<String> = BTreeSet::new();
    while (stacks.len() as u64) < count {
        // Somewhere in what is there already, one or two calls deeper.
        let mut node = random.below(tree.nodes.len() as u64) as usize;
        for _ in 0..=random.below(2) {
            node = tree.call(node, skewed(&mut random, 12), functions);
        }
        stacks.insert(tree.stack(node));
    }
    for stack in stacks {
        let exponent = random.below(14);
        writeln!(out, "{stack} {}", 1 + random.below(1 << exponent))?;
    }
    Ok(())
}

/// Small numbers far more often than large ones.
fn skewed(random: &mut Random, limit: u64) -> u64 {
    let most = 1 + random.below(limit);
    let most = 1 + random.below(most);
    random.below(most)
}

/// Calls: the place of the caller, and the function.
struct Tree {
    nodes: Vec<(usize, u64)>,
}

impl Tree {
    fn call(&mut self, caller: usize, callee: u64, functions: u64) -> usize {
        let function = mix(self.nodes[caller].1 * 16 + callee) % functions;
        self.nodes.push((caller, function));
        self.nodes.len() - 1
    }

    fn stack(&self, mut node: usize) -> String {
        let mut functions = Vec::new();
        while node != 0 {
            functions.push(self.nodes[node].1);
            node = self.nodes[node].0;
        }
        let mut text = "server;main".to_owned();
        for function in functions.into_iter().rev() {
            text.push(';');
            push_name(function, &mut text);
        }
        text
    }
}

fn push_name(function: u64, text: &mut String) {
    const CRATES: [&str; 8] = ["core", "alloc", "tokio", "hyper", "serde", "app", "regex", "std"];
    const TYPES: [&str; 6] = ["Vec<T>", "HashMap<K,V>", "Poll<T>", "Router", "Value", "Cache<Key>"];
    const METHODS: [&str; 7] = ["next", "poll", "insert", "call", "parse", "drop_in_place", "get"];
    let pick = |words: &'static [&'static str], salt: u64| {
        words[(mix(function ^ salt) % words.len() as u64) as usize]
    };
    let (name, kind, method) =
        (pick(&CRATES, 1 << 40), pick(&TYPES, 1 << 41), pick(&METHODS, 1 << 42));
    text.push_str(&format!("{name}::{kind}::{method}_{function}"));
}

fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 31)).wrapping_mul(0x7fb5_d329_728e_a185);
    (number ^ (number >> 27)).wrapping_mul(0x81da_def4_bc2d_d44d) >> 20
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_the_same_each_time_and_sorted() {
        let text = |count| {
            let mut text = Vec::new();
            write(count, &mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        let found = text(1000);
        assert_eq!(found, text(1000));
        let stacks: Vec<&str> =
            found.lines().map(|line| line.rsplit_once(' ').unwrap().0).collect();
        assert_eq!(stacks.len(), 1000);
        assert!(stacks.is_sorted());
    }
}
