//! The functions that a trace has, each with a number, its name and whether the rules keep it.

use rustc_hash::FxHashMap;

use crate::map::SymbolMap;
use crate::recent::Recent;
use crate::rules::Rules;

/// The number of a function in a trace, in the order of their first appearance.
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
    /// Which symbol of the map it is.
    pub(crate) symbol: Option<usize>,
}

/// What each record of a function depends on: apart from [`Function`], so that it stays in the
/// nearest cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits {
    pub(crate) address: u64,
    /// Whether the map has it.
    pub(crate) is_named: bool,
    /// Whether the rules keep it.
    pub(crate) is_kept: bool,
    /// Whether it is the command that pauses and resumes the trace.
    pub(crate) is_trace_command: bool,
}

/// The functions that were met so far.
#[derive(Debug)]
pub struct Functions<'m> {
    map: Option<&'m SymbolMap>,
    kept: Option<Vec<bool>>,
    list: Vec<Function>,
    traits: Vec<Traits>,
    numbers: FxHashMap<u32, u32>,
    recent: Recent<u32>,
}

impl<'m> Functions<'m> {
    /// Functions named by a map; without one they have no names. Where there are rules, those
    /// functions that they exclude are marked.
    pub fn new(map: Option<&'m SymbolMap>, rules: Option<&Rules>) -> Functions<'m> {
        let symbols = map.map(SymbolMap::symbols).unwrap_or_default();
        let kept = rules.map(|rules| {
            symbols.iter().map(|symbol| rules.keeps(symbol.name.as_bytes())).collect()
        });
        Functions {
            map,
            kept,
            list: Vec::new(),
            traits: Vec::new(),
            numbers: FxHashMap::default(),
            recent: Recent::default(),
        }
    }

    /// The function of an offset.
    #[inline]
    pub(crate) fn meet(&mut self, offset: u32) -> FunctionId {
        FunctionId(self.recent.find(u64::from(offset)).unwrap_or_else(|| self.look_up(offset)))
    }

    #[cold]
    fn look_up(&mut self, offset: u32) -> u32 {
        let next = self.list.len() as u32;
        let number = *self.numbers.entry(offset).or_insert(next);
        if number == next {
            self.add(offset);
        }
        self.recent.keep(u64::from(offset), number);
        number
    }

    fn add(&mut self, offset: u32) {
        let text_start = self.map.map_or(0, SymbolMap::text_start);
        let symbol = self.map.and_then(|map| map.function_at(offset));
        let kept = |symbol: usize| self.kept.as_ref().is_none_or(|kept| kept[symbol]);
        let known = self.map.zip(symbol).map(|(map, symbol)| &map.symbols()[symbol]);
        let address = text_start.wrapping_add(u64::from(offset));
        let name = known.map(|symbol| symbol.name.clone());
        let name = name.unwrap_or_else(|| format!("[unknown {address:#x}]"));
        self.traits.push(Traits {
            address: known.map_or(address, |symbol| symbol.address),
            is_trace_command: name == "do_trace" || name.starts_with("do_trace."),
            is_named: known.is_some(),
            is_kept: symbol.is_none_or(kept),
        });
        self.list.push(Function { name, symbol });
    }

    /// The address of the function that an offset lies in; that of the offset itself outside of
    /// the text.
    pub(crate) fn address_around(&self, offset: u32) -> u64 {
        let outside = self.map.map_or(0, SymbolMap::text_start).wrapping_add(u64::from(offset));
        let around = self.map.and_then(|map| Some((map, map.function_around(offset)?)));
        around.map_or(outside, |(map, symbol)| map.symbols()[symbol].address)
    }

    /// The map that names them.
    pub(crate) fn map(&self) -> Option<&'m SymbolMap> {
        self.map
    }

    pub(crate) fn get(&self, id: FunctionId) -> &Function {
        &self.list[id.index()]
    }

    pub(crate) fn traits(&self, id: FunctionId) -> Traits {
        self.traits[id.index()]
    }

    /// All functions in the order of their numbers.
    pub(crate) fn list(&self) -> impl ExactSizeIterator<Item = (&Function, &Traits)> {
        self.list.iter().zip(&self.traits)
    }

    /// How many functions there are, and how many of them the map does not have.
    pub fn counts(&self) -> (usize, usize) {
        (self.list.len(), self.traits.iter().filter(|traits| !traits.is_named).count())
    }
}
