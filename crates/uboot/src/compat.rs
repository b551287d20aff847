//! What proftool, U-Boot's own tool, makes of a trace, mistakes included: for comparisons, and for
//! scripts that rely on it.
//!
//! As of U-Boot 2026.10. It takes every file for a little-endian one of the current version, does not
//! skip lists of functions, never compares an exit with what is open, loses all times once 50 calls
//! were open, and writes 0 as 1.

use std::io::{self, Read, Seek, SeekFrom, Write};

use rustc_hash::FxHashMap;

use crate::error::UbootError;
use crate::layout::{ChunkKind, Layout};
use crate::map::ProftoolMap;
use crate::record::{RECORD_LEN, Record, RecordKind};
use crate::{Measure, Reading, Rules};

/// How many calls proftool keeps the start of.
pub(crate) const DEPTH: usize = 50;

/// A file as proftool reads it: the records of its last calls chunk.
#[derive(Debug)]
pub struct Proftool<R> {
    input: R,
    offset: u64,
    count: u64,
    map: ProftoolMap,
}

impl<R: Read + Seek> Proftool<R> {
    /// Opens a file with the text of a System.map.
    ///
    /// # Errors
    /// Where proftool fails, and for a map without code, on which it writes nothing or crashes.
    pub fn open(mut input: R, map: &[u8]) -> Result<Proftool<R>, UbootError> {
        let map = ProftoolMap::parse(map)?;
        let len = input.seek(SeekFrom::End(0))?;
        let (mut at, mut offset, mut count) = (0, 0, 0);
        while at < len {
            let mut header = [0; 32];
            if len - at < header.len() as u64 {
                return Err(UbootError::Proftool(format!("Cannot read trace file at pos {len:x}")));
            }
            input.seek(SeekFrom::Start(at))?;
            input.read_exact(&mut header)?;
            at += header.len() as u64;
            let header = Layout::CURRENT.header(&header);
            let Some(header) = header.filter(|header| header.kind == ChunkKind::Calls) else {
                continue;
            };
            (offset, count) = (at, header.count);
            at += count * RECORD_LEN as u64;
            if at > len {
                let what = format!("the calls end after {} of {count}", (len - offset) / 12);
                return Err(UbootError::Proftool(what));
            }
        }
        Ok(Proftool { input, offset, count, map })
    }

    pub(crate) fn map(&self) -> &ProftoolMap {
        &self.map
    }

    /// How many records there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn records(
        &mut self,
        mut take: impl FnMut(&ProftoolMap, Record) -> io::Result<()>,
    ) -> io::Result<()> {
        self.input.seek(SeekFrom::Start(self.offset))?;
        let mut block = vec![0; RECORD_LEN << 13];
        let mut left = self.count as usize * RECORD_LEN;
        while left > 0 {
            let now = left.min(block.len());
            self.input.read_exact(&mut block[..now])?;
            for bytes in block[..now].as_chunks::<RECORD_LEN>().0 {
                take(&self.map, Record::parse(bytes))?;
            }
            left -= now;
        }
        Ok(())
    }

    /// For each function of the map whether the rules keep it.
    pub(crate) fn kept(&self, rules: Option<&Rules>) -> Vec<bool> {
        let keeps = |name: &str| rules.is_none_or(|rules| rules.keeps(name.as_bytes()));
        self.map.symbols.iter().map(|symbol| keeps(&symbol.name)).collect()
    }

    /// The folded text of proftool's flame graph.
    ///
    /// # Errors
    /// What reading fails with.
    pub fn flame_graph(&mut self, measure: Measure) -> io::Result<FlameGraph> {
        let mut graph = FlameGraph::new(measure);
        self.records(|map, record| {
            match map.function_at(record.function) {
                None => graph.missing += 1,
                Some(symbol) if record.kind == RecordKind::Entry => {
                    graph.enter(symbol as u32, u64::from(record.time));
                }
                Some(_) => graph.leave(u64::from(record.time)),
            }
            Ok(())
        })?;
        Ok(graph)
    }
}

/// The rules of a file as proftool reads it.
///
/// # Errors
/// [`UbootError::Rule`].
pub fn proftool_rules(text: &[u8]) -> Result<Rules, UbootError> {
    Rules::parse(text, Reading::Proftool)
}

#[derive(Debug, Default)]
struct Node {
    parent: u32,
    symbol: u32,
    /// In the order of their first appearance.
    children: Vec<u32>,
    count: u64,
    duration: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    start: u64,
    children: u64,
}

/// proftool's call tree.
#[derive(Debug)]
pub struct FlameGraph {
    measure: Measure,
    nodes: Vec<Node>,
    known: FxHashMap<(u32, u32), u32>,
    current: u32,
    slots: [Slot; DEPTH],
    /// How many slots are taken; one more than there are once that many calls were open.
    taken: usize,
    missing: u64,
}

impl FlameGraph {
    fn new(measure: Measure) -> FlameGraph {
        FlameGraph {
            measure,
            nodes: vec![Node::default()],
            known: FxHashMap::default(),
            current: 0,
            slots: [Slot::default(); DEPTH],
            taken: 0,
            missing: 0,
        }
    }

    fn enter(&mut self, symbol: u32, time: u64) {
        let next = self.nodes.len() as u32;
        let child = *self.known.entry((self.current, symbol)).or_insert(next);
        if child == next {
            self.nodes[self.current as usize].children.push(child);
            self.nodes.push(Node { parent: self.current, symbol, ..Node::default() });
        }
        self.nodes[child as usize].count += 1;
        if let Some(slot) = self.slots.get_mut(self.taken) {
            *slot = Slot { start: time, children: 0 };
        }
        self.taken += 1;
        self.current = child;
    }

    fn leave(&mut self, time: u64) {
        if self.current == 0 {
            return;
        }
        let (mut total, mut children) = (0, 0);
        if (1..=DEPTH).contains(&self.taken) {
            self.taken -= 1;
            let slot = self.slots[self.taken];
            (total, children) = (time.wrapping_sub(slot.start), slot.children);
            if let Some(caller) = self.taken.checked_sub(1) {
                let sum = &mut self.slots[caller].children;
                *sum = sum.wrapping_add(total);
            }
        }
        let node = &mut self.nodes[self.current as usize];
        node.duration = node.duration.wrapping_add(total.wrapping_sub(children));
        self.current = node.parent;
    }

    /// Records of functions that the map does not have, which are left out.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// How many lines it has.
    pub fn lines(&self) -> usize {
        self.nodes.len() - 1
    }

    /// Writes one line for each path, callers first, siblings in the order of their appearance.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write<R>(&self, proftool: &Proftool<R>, out: &mut dyn Write) -> io::Result<()> {
        let name = |node: &Node| proftool.map.symbols[node.symbol as usize].name.as_str();
        let mut path = String::new();
        // Each node, with the length of its caller's path.
        let mut pending: Vec<(u32, usize)> =
            self.nodes[0].children.iter().rev().map(|child| (*child, 0)).collect();
        while let Some((at, len)) = pending.pop() {
            let node = &self.nodes[at as usize];
            path.truncate(len);
            if len > 0 {
                path.push(';');
            }
            path.push_str(name(node));
            let value = match self.measure {
                Measure::Calls => node.count as i64,
                Measure::Time if node.duration == 0 => 1,
                Measure::Time => node.duration as i64,
            };
            writeln!(out, "{path} {value}")?;
            pending.extend(node.children.iter().rev().map(|child| (*child, path.len())));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
