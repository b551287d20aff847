//! The functions that a trace has, each with a number, its name and whether the rules keep it.

use rustc_hash::FxHashMap;

use crate::map::SymbolMap;
use crate::rules::Rules;

/// The number of a function of a trace, in the order in which they are first met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FunctionId(pub(crate) u32);

impl FunctionId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A function of a trace.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) address: u64,
    /// Which symbol of the map it is.
    pub(crate) symbol: Option<usize>,
    /// Whether the map has it.
    pub(crate) is_named: bool,
    /// Whether the rules keep it.
    pub(crate) is_kept: bool,
    /// Whether it is the command that pauses and resumes the trace.
    pub(crate) is_trace_command: bool,
    /// Entries and exits of it.
    pub(crate) records: u64,
}

/// Entries of the table of what was looked up last.
const RECENT: usize = 1 << 12;

/// The functions that were met so far.
#[derive(Debug)]
pub struct Functions<'m> {
    map: Option<&'m SymbolMap>,
    kept: Option<Vec<bool>>,
    list: Vec<Function>,
    numbers: FxHashMap<u32, u32>,
    /// Offset and number, by the lower bits of the site.
    recent: Vec<(u32, u32)>,
}

/// No function has this number.
const NONE: u32 = u32::MAX;

impl<'m> Functions<'m> {
    /// Functions named by a map; without one they have no names. Where there are rules, those
    /// functions that they exclude are marked.
    pub fn new(map: Option<&'m SymbolMap>, rules: Option<&Rules>) -> Functions<'m> {
        let symbols = map.map(SymbolMap::symbols).unwrap_or_default();
        let kept = rules.map(|rules| {
            symbols.iter().map(|symbol| rules.keeps(symbol.name.as_bytes())).collect()
        });
        let recent = vec![(0, NONE); RECENT];
        Functions { map, kept, list: Vec::new(), numbers: FxHashMap::default(), recent }
    }

    /// The function of an offset, met once more.
    pub(crate) fn meet(&mut self, offset: u32) -> FunctionId {
        let slot = (offset >> 2) as usize % RECENT;
        let (known, number) = self.recent[slot];
        let number = if known == offset && number != NONE {
            number
        } else {
            let next = self.list.len() as u32;
            let number = *self.numbers.entry(offset).or_insert(next);
            if number == next {
                self.list.push(self.function(offset));
            }
            self.recent[slot] = (offset, number);
            number
        };
        self.list[number as usize].records += 1;
        FunctionId(number)
    }

    fn function(&self, offset: u32) -> Function {
        let text_start = self.map.map_or(0, SymbolMap::text_start);
        let symbol = self.map.and_then(|map| map.function_at(offset));
        let kept = |symbol: usize| self.kept.as_ref().is_none_or(|kept| kept[symbol]);
        let known = self.map.zip(symbol).map(|(map, symbol)| &map.symbols()[symbol]);
        let address = text_start.wrapping_add(u64::from(offset));
        let name = known.map(|symbol| symbol.name.clone());
        let name = name.unwrap_or_else(|| format!("[unknown {address:#x}]"));
        Function {
            is_trace_command: name == "do_trace" || name.starts_with("do_trace."),
            address: known.map_or(address, |symbol| symbol.address),
            is_named: known.is_some(),
            symbol,
            is_kept: symbol.is_none_or(kept),
            records: 0,
            name,
        }
    }

    /// The map that names them.
    pub(crate) fn map(&self) -> Option<&'m SymbolMap> {
        self.map
    }

    pub(crate) fn get(&self, id: FunctionId) -> &Function {
        &self.list[id.index()]
    }

    pub(crate) fn list(&self) -> &[Function] {
        &self.list
    }

    /// How many functions there are, and how many of them the map does not have.
    pub fn counts(&self) -> (usize, usize) {
        (self.list.len(), self.list.iter().filter(|function| !function.is_named).count())
    }

    /// How many records are of functions that the map does not have.
    pub fn unnamed_records(&self) -> u64 {
        let unnamed = self.list.iter().filter(|function| !function.is_named);
        unnamed.map(|function| function.records).sum()
    }
}
