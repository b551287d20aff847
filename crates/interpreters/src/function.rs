//! Functions by name: what a [`Defined`] says, for people.

use std::sync::Arc;

use crate::caught::{Defined, UTF_8};
use crate::known::Layout;
use crate::lua;
use crate::lua::layout::LuaLines;
use crate::php;
use crate::python::layout::Lines;
use crate::python::lines;
use crate::ruby;

/// How far apart positions are at most that are beside each other.
const BESIDE: u64 = 2;

/// A function of an interpreted program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name, with its class where the language says it; `None` where it could not be read.
    pub name: Option<Arc<str>>,
    /// The file that it is defined in, as the program calls it.
    pub file: Option<Arc<str>>,
    /// The line where its definition starts.
    pub first_line: u32,
    table: Box<[u8]>,
    /// How the table is written; `None` where a position is a line, or 0.
    lines: Option<Table>,
}

/// How the tables of a language are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    Python(Lines),
    Lua(LuaLines),
    Ruby,
    Php,
    Native,
}

impl Function {
    /// What was written down of it.
    pub fn of(defined: &Defined<'_>, layout: &Layout) -> Function {
        let lines = match layout {
            Layout::Python(layout) => Some(Table::Python(layout.lines)),
            Layout::Lua(layout) => Some(Table::Lua(layout.lines)),
            Layout::LuaJit(_) => Some(Table::Lua(LuaLines::Whole)),
            // A method in C has no lines, but the address of its function.
            Layout::Ruby(_) if defined.first_line == 0 => Some(Table::Native),
            Layout::Ruby(_) => Some(Table::Ruby),
            Layout::Php(_) => Some(Table::Php),
            Layout::Perl(_) => None,
        };
        Function {
            name: text(defined.name),
            file: text(defined.file),
            first_line: defined.first_line,
            table: defined.lines.into(),
            lines,
        }
    }

    /// The line of a position; that of the definition where none is known.
    pub fn line(&self, position: u64) -> u32 {
        let line = match self.lines {
            Some(Table::Python(lines)) => {
                lines::line(lines, &self.table, self.first_line, position.cast_signed())
            }
            Some(Table::Lua(lines)) => lua::lines::line(lines, &self.table, position),
            Some(Table::Ruby) => ruby::lines::line(&self.table, position),
            Some(Table::Php) => lua::lines::line(LuaLines::Whole, &self.table, position),
            Some(Table::Native) => None,
            None => u32::try_from(position).ok().filter(|line| *line != 0),
        };
        line.unwrap_or(self.first_line)
    }

    /// Where the native code of a function starts that is not of the program, in its process.
    pub fn native(&self) -> Option<u64> {
        let address = u64::from_le_bytes(*self.table.first_chunk()?);
        (self.lines == Some(Table::Native)).then_some(address)
    }

    /// The position that runs, where a native frame that runs it keeps the next one in a register rather than
    /// in memory; `code` is where its code starts. `None` where no register leads into it, or several to places that
    /// are not beside each other: those of one instruction and of the next do so.
    pub fn running(&self, code: u64, registers: impl Iterator<Item = u64>) -> Option<u64> {
        // How long an instruction is, and whether the next one is kept.
        let (lines, len, next) = match self.lines {
            Some(Table::Lua(lines)) => (lines, 4, 1),
            Some(Table::Php) => (LuaLines::Whole, php::layout::STRIDE as u64, 0),
            _ => return None,
        };
        let count = lua::lines::count(lines, &self.table);
        let position = |register: u64| {
            let behind = register.wrapping_sub(code);
            let position = (behind / len).checked_sub(next)?;
            (behind.is_multiple_of(len) && position < count).then_some(position)
        };
        let ends = registers.filter_map(position).fold(None, |ends, position| match ends {
            None => Some((position, position)),
            Some((first, last)) => Some((position.min(first), position.max(last))),
        });
        ends.filter(|(first, last)| last - first <= BESIDE).map(|(_, last)| last)
    }

    /// How many bytes it takes, about.
    pub fn size(&self) -> usize {
        let texts = [&self.name, &self.file].into_iter().flatten();
        self.table.len() + texts.map(|text| text.len()).sum::<usize>() + size_of::<Function>()
    }
}

/// Characters of one, two or four bytes, or of UTF-8.
fn text((width, bytes): (u8, &[u8])) -> Option<Arc<str>> {
    let character = |number: u32| char::from_u32(number).unwrap_or('\u{fffd}');
    let text: String = match width {
        1 => bytes.iter().map(|byte| char::from(*byte)).collect(),
        2 => {
            let numbers = bytes.chunks_exact(2).map(|two| u16::from_le_bytes([two[0], two[1]]));
            numbers.map(|number| character(number.into())).collect()
        }
        4 => {
            let numbers = bytes.as_chunks::<4>().0.iter().map(|four| u32::from_le_bytes(*four));
            numbers.map(character).collect()
        }
        UTF_8 => String::from_utf8_lossy(bytes).into_owned(),
        _ => return None,
    };
    (!text.is_empty()).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_lead_to_what_runs() {
        let lines: Vec<u8> =
            [5_u32, 6, 7, 8, 9, 9, 9, 9].iter().flat_map(|line| line.to_le_bytes()).collect();
        let name = (UTF_8, &b"f"[..]);
        let defined = Defined { first_line: 4, name, file: name, lines: &lines, function: 1 };
        let layout = Layout::lua(&crate::LuaBuild { minor: 1, release: 5 }).unwrap();
        let function = Function::of(&defined, &layout);
        let running = |registers: &[u64]| function.running(0x1000, registers.iter().copied());
        // The next one is what is kept; none before the first, none within, none behind the last.
        assert_eq!(running(&[0, 0x1008, 0x1008, 0x2000]), Some(1));
        assert_eq!(function.line(1), 6);
        assert_eq!(running(&[0x1000, 0x1006, 0x1024, 0xfff]), None);
        assert_eq!(running(&[0x1004, 0x100c]), Some(2));
        assert_eq!(running(&[0x1004, 0x1014]), None);
    }

    #[test]
    fn characters_have_three_widths() {
        let expect = |text: &str| Some(Arc::from(text));
        assert_eq!(text((1, b"na\xefve")), expect("naïve"));
        assert_eq!(text((2, &[0x3b, 0x04, 0x61, 0, 0, 0xd8])), expect("лa\u{fffd}"));
        assert_eq!(text((4, &[0x00, 0xf6, 0x01, 0, 0xff, 0xff, 0xff, 0xff])), expect("😀\u{fffd}"));
        assert_eq!(text((UTF_8, b"na\xc3\xafve\xff")), expect("naïve\u{fffd}"));
        assert_eq!([text((0, b"f")), text((1, b"")), text((9, b"f"))], [None, None, None]);
    }
}
