//! Lines as perf prints most of them, taken apart without a look at what else they might be.
//!
//! Nearly all lines of a capture have what perf aligns at its place. What is read here is read the
//! same by [`super::frame`] and [`super::header`], which take whatever looks different.

use flame_profile::Nanos;
use memchr::memchr;

use super::header::Header;
use crate::sink::TaskIndex;

/// A tab, an address in 16 places, and a blank.
pub(super) const ADDRESS: usize = 18;

/// What the line of a stack that a text starts with has behind its address, with all that follows.
#[inline]
pub(super) fn behind_address(text: &[u8]) -> Option<&[u8]> {
    let (start, behind) = text.split_first_chunk::<ADDRESS>()?;
    let [b'\t', address @ .., b' '] = start else { return None };
    is_aligned_address(address).then_some(behind)
}

/// The line that a text starts with, of what stands behind addresses: it ends with the module.
pub(super) fn frame(behind: &[u8]) -> Option<&[u8]> {
    let line = &behind[..memchr(b'\n', behind)?];
    (!line.first()?.is_ascii_whitespace() && line.ends_with(b")")).then_some(line)
}

/// Whether blanks and then hexadecimal digits fill all places.
fn is_aligned_address(places: &[u8; 16]) -> bool {
    let (mut blanks, mut digits) = ([0; 16], [0; 16]);
    // A few instructions for all bytes.
    for (at, byte) in places.iter().enumerate() {
        let is_digit = byte.wrapping_sub(b'0') < 10 || (byte | 0x20).wrapping_sub(b'a') < 6;
        blanks[at] = if *byte == b' ' { 0xff } else { 0 };
        digits[at] = if is_digit { 0xff } else { 0 };
    }
    let (blanks, digits) = (u128::from_le_bytes(blanks), u128::from_le_bytes(digits));
    let are_blanks_first = blanks & blanks.wrapping_add(1) == 0;
    digits == !blanks && are_blanks_first && digits != 0
}

/// What a line has before and behind the offset of its symbol, `+0x1f`: `None` where the first `+`
/// is another one.
pub(super) fn around_offset(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let plus = memchr(b'+', text)?;
    let digits = text[plus..].strip_prefix(b"+0x")?;
    let len = digits.iter().position(|byte| !byte.is_ascii_hexdigit())?;
    let behind = &digits[len..];
    (len > 0 && behind.starts_with(b" (")).then_some((&text[..plus], behind))
}

/// The first line of a sample, as far as it differs from the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UsualHeader {
    pub(super) cpu: Option<u32>,
    pub(super) time: Nanos,
    pub(super) period: u64,
    /// How long the line is with its end.
    pub(super) len: usize,
    /// Where the part of the time that is less than a second stands, and how many digits it has.
    fraction: (usize, u32),
}

impl UsualHeader {
    /// The header that a text starts with, if it is this one, of which `line` was read, but for the part of
    /// the time that is less than a second.
    fn alike(&self, line: &[u8], text: &[u8]) -> Option<UsualHeader> {
        let (at, places) = self.fraction;
        let behind = at + places as usize;
        let text = text.get(..line.len())?;
        if text[..at] != line[..at] || text[behind..] != line[behind..] {
            return None;
        }
        let mut fraction = 0;
        for byte in &text[at..behind] {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            fraction = fraction * 10 + u64::from(digit);
        }
        let seconds = self.time.0 / NANOS * NANOS;
        Some(UsualHeader { time: Nanos(seconds + fraction * 10_u64.pow(9 - places)), ..*self })
    }
}

const NANOS: u64 = 1_000_000_000;

/// The header that a text starts with: `start`, a CPU perhaps, a time, a period and `end`.
fn header(text: &[u8], start: &[u8], end: &[u8]) -> Option<UsualHeader> {
    let mut words = Words { rest: text.strip_prefix(start)? };
    words.blanks()?;
    let cpu = match words.rest {
        [b'[', ..] => {
            words.sign(b'[')?;
            let (cpu, _) = words.digits()?;
            words.sign(b']')?;
            words.blanks()?;
            Some(u32::try_from(cpu).ok()?)
        }
        _ => None,
    };
    let (seconds, _) = words.digits().filter(|(_, places)| *places <= 10)?;
    words.sign(b'.')?;
    let at = text.len() - words.rest.len();
    let (fraction, places) = words.digits().filter(|(_, places)| *places <= 9)?;
    words.sign(b':')?;
    words.blanks()?;
    let (period, _) = words.digits()?;
    words.blanks()?;
    let rest = words.rest.strip_prefix(end)?;
    let time = Nanos(seconds * NANOS + fraction * 10_u64.pow(9 - places));
    let len = text.len() - rest.len();
    Some(UsualHeader { cpu, time, period, len, fraction: (at, places) })
}

/// The header before, where another one of the same task and event may follow.
#[derive(Debug, Default)]
pub(super) struct LastHeader {
    /// The line up to the numbers of the task; empty where nothing is known.
    start: Vec<u8>,
    /// The line from the event on.
    end: Vec<u8>,
    /// The line as a whole, and what it says.
    line: Vec<u8>,
    header: UsualHeader,
    pub(super) task: Option<TaskIndex>,
}

impl LastHeader {
    /// The header that a text starts with, where it is of the same task and event.
    #[inline]
    pub(super) fn next(&mut self, text: &[u8]) -> Option<UsualHeader> {
        if self.start.is_empty() {
            return None;
        }
        if let Some(header) = self.header.alike(&self.line, text) {
            return Some(header);
        }
        let header = header(text, &self.start, &self.end)?;
        self.keep_line(&text[..header.len], header);
        Some(header)
    }

    fn keep_line(&mut self, line: &[u8], header: UsualHeader) {
        self.line.clear();
        self.line.extend_from_slice(line);
        self.header = header;
    }

    /// Keeps a header if it looks as most do: `line` has its end, and starts with `start`.
    pub(super) fn keep(
        &mut self,
        line: &[u8],
        start: &[u8],
        of_line: &Header<'_>,
        task: Option<TaskIndex>,
    ) {
        self.start.clear();
        let event = of_line.event.len() + 1;
        let Some(event) = line.trim_ascii_end().len().checked_sub(event) else { return };
        let end = &line[event..];
        let Some(found) = header(line, start, end) else { return };
        let Header { cpu, time, period, rest, .. } = *of_line;
        let is_same = (found.cpu, Some(found.time), Some(found.period)) == (cpu, time, period);
        if is_same && rest.is_empty() && line.ends_with(b"\n") {
            self.start.extend_from_slice(start);
            self.end.clear();
            self.end.extend_from_slice(end);
            self.keep_line(line, found);
            self.task = task;
        }
    }
}

struct Words<'l> {
    rest: &'l [u8],
}

impl Words<'_> {
    /// Blanks, at least one.
    fn blanks(&mut self) -> Option<()> {
        let count = self.rest.iter().position(|byte| *byte != b' ')?;
        self.rest = &self.rest[count..];
        (count > 0).then_some(())
    }

    fn sign(&mut self, sign: u8) -> Option<()> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        (*first == sign).then_some(())
    }

    /// A number of digits that fit into 64 bits, at least one, and how many they are.
    fn digits(&mut self) -> Option<(u64, u32)> {
        let mut number = 0;
        let mut count = 0_u8;
        while let Some(digit) =
            self.rest.get(usize::from(count)).map(|byte| byte.wrapping_sub(b'0'))
            && digit < 10
        {
            if count == 19 {
                return None;
            }
            number = number * 10 + u64::from(digit);
            count += 1;
        }
        self.rest = &self.rest[count.into()..];
        (count > 0).then_some((number, count.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf_script::{frame as any_frame, header as any_header};

    /// Bytes that lines are made of, and some that break them.
    const SIGNS: &[u8] = b"\t  a0f9+x.:;[]()/-\r\n_g";

    /// A line with some of its bytes changed, lost or doubled.
    fn mutated(line: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
        let mut line = line.to_vec();
        for _ in 0..random.usize(0..4) {
            let at = random.usize(0..line.len());
            match random.u8(0..3) {
                0 => line[at] = SIGNS[random.usize(0..SIGNS.len())],
                1 => drop(line.remove(at)),
                _ => line.insert(at, line[at]),
            }
        }
        line
    }

    #[test]
    fn frames_are_those_that_are_read_with_care() {
        let lines: [&[u8]; 5] = [
            b"\tffffffff8104f45a do_idle+0x1a ([kernel.kallsyms])\n",
            b"\t          506da0 operator+(A)+0x370 (/opt/My App (x86)/lib a.so)\n",
            b"\t               0 [unknown] ([unknown])\n",
            b"\t    7fe8a19bc348 f (a)+0x1 (/x+0x2 (deleted))\n",
            b"\t    7fe8a19bc348 a+0x1f (/x)\n",
        ];
        let mut random = fastrand::Rng::with_seed(3);
        let (mut found, mut cut) = (0, 0);
        for _ in 0..50_000 {
            let line = mutated(random.choice(lines).unwrap(), &mut random);
            let Some(usual) = behind_address(&line).and_then(frame) else { continue };
            found += 1;
            assert_eq!(memchr(b'\n', &line), Some(ADDRESS + usual.len()));
            let text = line[..ADDRESS + usual.len()].trim_ascii();
            assert_eq!(any_frame::behind_address(text), Some(usual));
            let Some((symbol, module)) = around_offset(usual) else { continue };
            let whole = any_frame::parse(text).unwrap();
            if whole.symbol == symbol {
                // Whatever the offset is, the line stands for the same.
                cut += 1;
                let other = [b"0 ", symbol, b"+0xabc", module].concat();
                let other = any_frame::parse(&other).unwrap();
                assert_eq!((other.symbol, other.module), (symbol, whole.module));
            }
        }
        assert!(found > 10_000 && cut > 5_000, "{found} and {cut}");
    }

    #[test]
    fn headers_are_those_that_are_read_with_care() {
        let lines: [(&[u8], &[u8], &[u8]); 3] = [
            (
                b"cc1plus 16718 15098.398917:      83333 cpu-clock: \n",
                b"cc1plus 16718",
                b"cpu-clock: \n",
            ),
            (b"a b 7/12 [003] 1.5: 1 cycles:u:\n", b"a b 7/12", b"cycles:u:\n"),
            (b"  x 5 [000] 99999.123456789:    1844674407370955161 9:\r\n", b"  x 5", b"9:\r\n"),
        ];
        let mut random = fastrand::Rng::with_seed(4);
        let (mut found, mut alike) = (0, 0);
        for _ in 0..50_000 {
            let (first, start, end) = *random.choice(lines.iter()).unwrap();
            let line = mutated(first, &mut random);
            let by_first = header(first, start, end).unwrap().alike(first, &line);
            let usual = header(&line, start, end);
            if by_first.is_some() {
                alike += 1;
                assert_eq!(by_first, usual);
            }
            let Some(usual) = usual else { continue };
            found += 1;
            assert_eq!(memchr(b'\n', &line), Some(usual.len - 1));
            let any = any_header::parse(&line[..usual.len - 1]).unwrap();
            let numbers = (usual.cpu, Some(usual.time), Some(usual.period));
            assert_eq!((any.cpu, any.time, any.period), numbers);
            let task = start.trim_ascii_start();
            let event = end.trim_ascii_end().strip_suffix(b":").unwrap();
            assert_eq!((any.task, any.event), (task, event));
            assert!(any.rest.is_empty());
        }
        assert!(found > 10_000 && alike > 10_000, "{found} {alike}");
    }
}
