//! Small traces for tests, in any layout.

use crate::layout::{ByteOrder, HeaderFormat, Layout};

pub(crate) const TEXT: u64 = 0x8000_0000;

/// A map of functions that lie 64 bytes apart; `do_trace` is among them.
pub(crate) const MAP: &str = "\
0000000080000000 T _start
0000000080000040 T main
0000000080000080 T parse
00000000800000c0 t puts
0000000080000100 T do_trace
0000000080000140 T run
0000000080000180 D data
00000000800001c0 T _end
";

/// Offsets of those functions.
pub(crate) const MAIN: u32 = 0x40;
pub(crate) const PARSE: u32 = 0x80;
pub(crate) const PUTS: u32 = 0xc0;
pub(crate) const DO_TRACE: u32 = 0x100;
pub(crate) const RUN: u32 = 0x140;

fn word(layout: Layout, word: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&match layout.order {
        ByteOrder::Little => word.to_le_bytes(),
        ByteOrder::Big => word.to_be_bytes(),
    });
}

fn long(layout: Layout, long: u64, out: &mut Vec<u8>) {
    let (low, high) = (long as u32, (long >> 32) as u32);
    let words = if layout.order == ByteOrder::Little { [low, high] } else { [high, low] };
    words.iter().for_each(|w| word(layout, *w, out));
}

/// A chunk's header.
pub(crate) fn header(layout: Layout, kind: u32, count: u32, text_base: u64) -> Vec<u8> {
    let mut out = Vec::new();
    word(layout, kind, &mut out);
    match layout.header {
        HeaderFormat::Short => word(layout, count, &mut out),
        HeaderFormat::Padded => {
            word(layout, 0, &mut out);
            long(layout, u64::from(count), &mut out);
        }
        HeaderFormat::Versioned => {
            word(layout, 1, &mut out);
            word(layout, count, &mut out);
            word(layout, 0, &mut out);
            long(layout, text_base, &mut out);
            long(layout, 0, &mut out);
        }
    }
    out
}

/// What happens: an entry or an exit of a function at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    In(u32, u32),
    Out(u32, u32),
    /// A record of that type and time.
    Raw(u32, u32),
}

pub(crate) use Event::{In, Out, Raw};

/// A calls chunk; in the layouts of old versions it starts with the text's address.
pub(crate) fn calls(layout: Layout, events: &[Event]) -> Vec<u8> {
    let is_old = layout.header != HeaderFormat::Versioned;
    let mut out = header(layout, 1, events.len() as u32 + u32::from(is_old), TEXT);
    let mut record = |words: [u32; 3]| words.iter().for_each(|w| word(layout, *w, &mut out));
    if is_old {
        record([(TEXT as u32).wrapping_mul(4), 0, 2 << 30]);
    }
    for event in events {
        record(match *event {
            In(function, time) => [function, 0x10, 1 << 30 | time],
            Out(function, time) => [function, 0x10, time],
            Raw(kind, time) => [0, 0, kind << 30 | time],
        });
    }
    out
}

/// A chunk of functions with how often each was called.
pub(crate) fn list(layout: Layout, functions: &[(u32, u32)]) -> Vec<u8> {
    let mut out = header(layout, 0, functions.len() as u32, 0);
    for (function, count) in functions {
        word(layout, *function, &mut out);
        word(layout, *count, &mut out);
    }
    out
}
