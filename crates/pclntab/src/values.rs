//! Tables of values: which number (a line, a file, the size of the frame) holds from which
//! instruction on.
//!
//! Each step has two numbers of seven bits a byte: how much the value changes (zigzag), and how far
//! the step reaches. The value starts at -1; a change of 0 ends the table, but for the first step.

use std::ops::Range;

/// One stretch of code and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// In bytes from the function's first one.
    pub(crate) code: Range<u64>,
    pub(crate) value: i32,
}

/// The steps of a table, until it ends or makes no sense.
#[derive(Clone, Debug)]
pub(crate) struct Steps<'t> {
    bytes: &'t [u8],
    quantum: u64,
    at: u64,
    value: i32,
    is_first: bool,
}

impl<'t> Steps<'t> {
    pub(crate) fn new(bytes: &'t [u8], quantum: u8) -> Steps<'t> {
        Steps { bytes, quantum: quantum.into(), at: 0, value: -1, is_first: true }
    }

    fn number(&mut self) -> Option<u32> {
        let mut number = 0_u32;
        for shift in [0, 7, 14, 21, 28] {
            let (byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            number |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

impl Iterator for Steps<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let change = self.number()?;
        if change == 0 && !std::mem::take(&mut self.is_first) {
            return None;
        }
        self.is_first = false;
        let sign = if change & 1 == 0 { 0 } else { u32::MAX };
        self.value = self.value.wrapping_add(((change >> 1) ^ sign).cast_signed());
        let start = self.at;
        self.at = start.checked_add(u64::from(self.number()?) * self.quantum)?;
        Some(Step { code: start..self.at, value: self.value })
    }
}

/// The value at a distance from the start of the function, of at most this many steps; what is left
/// of the steps is put back.
pub(crate) fn value_at(steps: Steps<'_>, offset: u64, left: &mut u64) -> Option<i32> {
    for step in steps {
        *left = left.checked_sub(1)?;
        if step.code.contains(&offset) {
            return Some(step.value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_hold_up_to_their_ends() {
        // -1 + 1 for 4 instructions, + 300 for 200, - 300 for 1.
        let bytes = [2, 4, 0xd8, 0x04, 0xc8, 0x01, 0xd7, 0x04, 1, 0, 9, 9];
        let steps: Vec<(u64, u64, i32)> =
            Steps::new(&bytes, 1).map(|s| (s.code.start, s.code.end, s.value)).collect();
        assert_eq!(steps, [(0, 4, 0), (4, 204, 300), (204, 205, 0)]);
        let at = |offset| value_at(Steps::new(&bytes, 4), offset, &mut 100);
        assert_eq!([at(0), at(15), at(16), at(819)], [0, 0, 300, 0].map(Some));
        assert_eq!([at(815), at(816), at(820)], [Some(300), Some(0), None]);
    }

    #[test]
    fn the_first_change_may_be_zero() {
        let steps: Vec<Step> = Steps::new(&[0, 4, 2, 4, 0], 1).collect();
        assert_eq!(steps[0], Step { code: 0..4, value: -1 });
        assert_eq!(steps[1], Step { code: 4..8, value: 0 });
        assert_eq!(steps.len(), 2);
    }

    #[test]
    fn what_is_cut_or_endless_ends() {
        assert_eq!(Steps::new(&[], 1).count(), 0);
        assert_eq!(Steps::new(&[2], 1).count(), 0);
        assert_eq!(Steps::new(&[0xff; 12], 1).count(), 0);
        let mut left = 10;
        assert_eq!(value_at(Steps::new(&[2, 0].repeat(100), 1), 5, &mut left), None);
        assert_eq!(left, 0);
    }
}
