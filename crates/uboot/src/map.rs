//! A System.map: which function starts where in the text.
//!
//! Lines are `ADDRESS TYPE NAME`, as nm writes them. The text starts with the lowest symbol of code:
//! `_init` on the sandbox, the start of the image on boards.

use std::cmp::Ordering;

use crate::error::UbootError;

/// How far a function may reach beyond the start of the last one of a map, which has no end there.
const LAST_FUNCTION: u64 = 1 << 16;

/// A function of the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its address as the map has it.
    pub address: u64,
    /// Its name.
    pub name: String,
}

/// The functions of a System.map, in the order of their addresses.
#[derive(Clone, Debug)]
pub struct SymbolMap {
    symbols: Vec<Symbol>,
    text_start: u64,
    /// The sites at which functions start, ascending, each once, with the symbol that names it.
    starts: Vec<(u64, usize)>,
    site_len: u64,
    skipped_lines: u64,
}

/// Which of the names of one site is taken: global ones first, then weak ones, then the first.
fn rank(class: u8) -> u8 {
    match class {
        b'T' => 0,
        b'W' => 1,
        b'w' => 2,
        _ => 3,
    }
}

impl SymbolMap {
    /// Reads a map for traces whose sites have this many bytes. Lines in another form are counted,
    /// except for those of undefined symbols, which have no address.
    ///
    /// # Errors
    /// [`UbootError::NoTextSymbols`].
    pub fn parse(text: &[u8], site_len: u32) -> Result<SymbolMap, UbootError> {
        let mut found: Vec<(u64, u8, String)> = Vec::new();
        let mut skipped_lines = 0;
        for line in text.split(|byte| *byte == b'\n') {
            match parse_line(line) {
                Line::Code(address, class, name) => found.push((address, class, name)),
                Line::Other => {}
                Line::Unknown => skipped_lines += 1,
            }
        }
        found.sort_by_key(|(address, ..)| *address);
        let site_len = u64::from(site_len);
        let text_start = found.first().map(|(address, ..)| *address);
        let text_start = text_start.ok_or(UbootError::NoTextSymbols)?;
        let mut starts: Vec<(u64, usize)> = Vec::new();
        for (index, (address, class, _)) in found.iter().enumerate() {
            let site = (address - text_start) / site_len;
            match starts.last_mut().filter(|(last, _)| *last == site) {
                Some((_, named)) if rank(*class) < rank(found[*named].1) => *named = index,
                Some(_) => {}
                None => starts.push((site, index)),
            }
        }
        let symbols = found.into_iter().map(|(address, _, name)| Symbol { address, name });
        let symbols = symbols.collect();
        Ok(SymbolMap { symbols, text_start, starts, site_len, skipped_lines })
    }

    /// All functions, in the order of their addresses.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// The address at which the text starts.
    pub fn text_start(&self) -> u64 {
        self.text_start
    }

    /// How many lines are not in the form of a map.
    pub fn skipped_lines(&self) -> u64 {
        self.skipped_lines
    }

    /// The function that starts in the site of an offset from the start of the text.
    pub fn function_at(&self, offset: u32) -> Option<usize> {
        let site = u64::from(offset) / self.site_len;
        let found = self.starts.binary_search_by_key(&site, |(start, _)| *start).ok()?;
        Some(self.starts[found].1)
    }

    /// The function that contains an offset from the start of the text; `None` beyond the text.
    pub fn function_around(&self, offset: u32) -> Option<usize> {
        let site = u64::from(offset) / self.site_len;
        let behind = self.starts.partition_point(|(start, _)| *start <= site);
        let (start, symbol) = self.starts[..behind].last()?;
        let is_last = behind == self.starts.len();
        let reach = (site - start) * self.site_len;
        (!is_last || reach < LAST_FUNCTION).then_some(*symbol)
    }
}

enum Line {
    /// Code: address, type, name.
    Code(u64, u8, String),
    /// A symbol that is not code, or has no address; an empty line.
    Other,
    Unknown,
}

fn parse_line(line: &[u8]) -> Line {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let Some(first) = words.next() else { return Line::Other };
    // Undefined symbols have no address.
    if let [b'U' | b'w' | b'v'] = first {
        return Line::Other;
    }
    let digits = first.strip_prefix(b"0x").unwrap_or(first);
    let address = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'));
    let address = address.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    match (address, words.next(), words.next()) {
        (Some(address), Some([class @ (b't' | b'T' | b'w' | b'W')]), Some(name)) => {
            Line::Code(address, *class, String::from_utf8_lossy(name).into_owned())
        }
        (Some(_), Some([class]), _) if class.is_ascii_alphabetic() || *class == b'?' => Line::Other,
        _ => Line::Unknown,
    }
}

/// A map as proftool reads it: in the order of its lines, without the last one if it has no line end.
#[derive(Clone, Debug)]
pub(crate) struct ProftoolMap {
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) text_start: u64,
}

/// proftool reads lines in pieces of this many bytes, and takes this many of a name.
const PROFTOOL_LINE: usize = 499;
const PROFTOOL_NAME: usize = 100;
/// The site that proftool knows.
const PROFTOOL_SITE: u64 = 16;

impl ProftoolMap {
    pub(crate) fn parse(text: &[u8]) -> Result<ProftoolMap, UbootError> {
        let mut symbols: Vec<Symbol> = Vec::new();
        let mut number = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            for piece in line.chunks(PROFTOOL_LINE) {
                // The end of the file is met while the last line is read, which is dropped.
                let ends_file = std::ptr::eq(piece.as_ptr_range().end, text.as_ptr_range().end);
                if ends_file && !piece.ends_with(b"\n") && piece.len() < PROFTOOL_LINE {
                    continue;
                }
                number += 1;
                let Some((address, class, name)) = scan(piece) else {
                    return Err(UbootError::MapLine(number));
                };
                if let (b't' | b'T' | b'w' | b'W', Some(name)) = (class, name) {
                    symbols.push(Symbol { address, name });
                }
            }
        }
        let text_start = symbols.first().map(|symbol| symbol.address);
        let text_start = text_start.ok_or(UbootError::NoTextSymbols)?;
        Ok(ProftoolMap { symbols, text_start })
    }

    /// How the site of an offset compares with that of a symbol: a difference cut down to an int.
    fn compare(&self, offset: u32, symbol: &Symbol) -> Ordering {
        let here = u64::from(offset) / PROFTOOL_SITE;
        let there = symbol.address.wrapping_sub(self.text_start) / PROFTOOL_SITE;
        (here.wrapping_sub(there) as i32).cmp(&0)
    }

    /// The function of that site: of several the one that glibc's bsearch meets first.
    pub(crate) fn function_at(&self, offset: u32) -> Option<usize> {
        let (mut low, mut high) = (0, self.symbols.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.compare(offset, &self.symbols[middle]) {
                Ordering::Less => high = middle,
                Ordering::Greater => low = middle + 1,
                Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    /// The function around that site, except for the last one in the map, which is never found.
    pub(crate) fn function_around(&self, offset: u32) -> usize {
        let (mut low, mut high) = (0, self.symbols.len() - 1);
        while high > low + 1 {
            let middle = low.midpoint(high);
            match self.compare(offset, &self.symbols[middle]) {
                Ordering::Less => high = middle,
                Ordering::Greater => low = middle,
                Ordering::Equal => return middle,
            }
        }
        low
    }
}

/// The fields of a line as `%lx %c %100s` scans them: two at least, or `None`.
fn scan(line: &[u8]) -> Option<(u64, u8, Option<String>)> {
    // scanf stops at the end of a C string.
    let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
    let line = trim(line);
    let (negative, digits) = match line {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, line),
    };
    let digits = match digits {
        [b'0', b'x' | b'X', next, ..] if next.is_ascii_hexdigit() => &digits[2..],
        _ => digits,
    };
    let count = digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (digits, rest) = digits.split_at(count);
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.is_empty())?;
    let address = u64::from_str_radix(digits, 16).unwrap_or(u64::MAX);
    let address = if negative { address.wrapping_neg() } else { address };
    let (class, rest) = trim(rest).split_first()?;
    let name = trim(rest);
    let end = name.iter().position(u8::is_ascii_whitespace).unwrap_or(name.len());
    let name = &name[..end.min(PROFTOOL_NAME)];
    let name = (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned());
    Some((address, *class, name))
}

fn trim(bytes: &[u8]) -> &[u8] {
    bytes.trim_ascii_start()
}

#[cfg(test)]
mod tests;
