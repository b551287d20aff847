//! Unwinding: tables, code, registers and stack of any bytes give a stack that ends.
#![no_main]

use std::sync::Arc;

use flame_image::Section;
use flame_pclntab::GoTable;
use flame_pclntab::testing::TEXT;
use flame_profile::{Bias, ImageAddress, ProcessAddress, SharedBytes};
use flame_unwind::{Architecture, CfiUnwinder, Code, CodeAddress, Registers};
use flame_unwind::{StackCopy, StackLimit, UnwindSections, Unwinder};

const LIMIT: usize = 256;

/// A part as a section: eight bytes of address, then what it holds.
fn section(part: Option<&[u8]>) -> Option<Section> {
    let (address, bytes) = part?.split_first_chunk::<8>()?;
    let address = ImageAddress(u64::from_le_bytes(*address));
    Some(Section { address, bytes: SharedBytes::from(bytes.to_vec()) })
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    // The last part is a table of Go.
    let go_table = flame_fuzz::parts(input).nth(8);
    let go_table = go_table.map(|bytes| SharedBytes::from(bytes.to_vec()));
    let mut parts = flame_fuzz::parts(input);
    let architecture = match parts.next() {
        Some([1, ..]) => Architecture::Aarch64,
        _ => Architecture::X86_64,
    };
    let sections = UnwindSections {
        eh_frame_hdr: section(parts.next()),
        eh_frame: section(parts.next()),
        debug_frame: section(parts.next()),
        text: section(parts.next()),
        entry: None,
        go_table: go_table.and_then(|bytes| GoTable::parse(bytes, TEXT)).map(Arc::new),
    };
    let mut unwinder = CfiUnwinder::new(architecture);
    let module = unwinder.add_module(sections);
    let mut find = |address| Code::Module(CodeAddress::new(module, address, Bias::default()));
    let values = flame_fuzz::words(parts.next().unwrap_or_default());
    let mask = architecture.perf_register_mask();
    let registers = Registers::from_perf(architecture, mask, values);
    let start = registers.stack_pointer(architecture).unwrap_or(ProcessAddress(0));
    let (head, tail) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let stack = StackCopy::new(start, head, tail, StackLimit::CopyFull);
    let mut frames = Vec::new();
    let _ = unwinder.unwind(&mut find, &registers, &stack, LIMIT, &mut frames);
    assert!(frames.len() <= LIMIT);
});
