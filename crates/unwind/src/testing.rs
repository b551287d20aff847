//! Call frame information and stacks made by hand, for tests.
//!
//! The image has three functions: `tested` at [`TESTED`], whose rows the test brings; `main` at
//! [`MAIN`], which has a fixed frame of 16 bytes and the return address; `start` at [`START`],
//! which has no caller. All are mapped at [`BIAS`].

use flame_image::Section;
use flame_profile::{Bias, ImageAddress, ProcessAddress, SharedBytes, StackEnd};

use crate::{
    Architecture, CfiUnwinder, Code, CodeAddress, FrameAddress, Registers, StackCopy, StackLimit,
    UnwindSections, Unwinder,
};

pub(crate) const BIAS: u64 = 0x7f00_0000_0000;
/// Where executable code starts, none of it covered by a table before [`TESTED`].
pub(crate) const CODE: u64 = 0x800;
pub(crate) const TESTED: u64 = 0x1000;
pub(crate) const MAIN: u64 = 0x2000;
pub(crate) const START: u64 = 0x3000;
pub(crate) const FUNCTION_LEN: u32 = 0x100;
/// Where executable memory without an image is.
pub(crate) const JIT: u64 = 0x1234_0000;
/// The stack pointer of the sample.
pub(crate) const SP: u64 = 0x7ffc_0000_1000;

/// [`BIAS`] as what it is.
fn bias() -> Bias {
    Bias::between(ProcessAddress(BIAS), ImageAddress(0))
}

const HDR: u64 = 0x8000;
const EH_FRAME: u64 = 0x9000;

/// What a CIE says, besides its version.
#[derive(Clone, Copy)]
pub(crate) struct Cie {
    pub(crate) augmentation: &'static str,
    pub(crate) return_address: u8,
    pub(crate) rows: &'static [u8],
}

/// `DW_CFA_def_cfa rsp 8; DW_CFA_offset rip cfa-8`
pub(crate) const X86_64: Cie =
    Cie { augmentation: "zR", return_address: 16, rows: &[0x0c, 7, 8, 0x90, 1] };
/// The same for frames that the kernel makes.
pub(crate) const X86_64_SIGNAL: Cie = Cie { augmentation: "zRS", ..X86_64 };
/// `DW_CFA_def_cfa sp 0`
pub(crate) const AARCH64: Cie =
    Cie { augmentation: "zR", return_address: 30, rows: &[0x0c, 31, 0] };

/// A function with its rows, as call frame instructions.
pub(crate) struct Function<'a> {
    pub(crate) cie: Cie,
    pub(crate) start: u64,
    pub(crate) rows: &'a [u8],
}

/// `.eh_frame_hdr` and `.eh_frame` of functions in order of address.
pub(crate) fn eh_sections(functions: &[Function<'_>]) -> UnwindSections {
    let mut frames = Vec::new();
    let mut table = Vec::new();
    for function in functions {
        let cie = frames.len();
        let data = [function.return_address(), 1, 0x1b];
        let mut body = vec![1];
        body.extend(function.cie.augmentation.bytes().chain([0, 1, 0x78]));
        body.extend(data);
        body.extend(function.cie.rows);
        entry(&mut frames, 0, &body);
        let fde = frames.len();
        // The pointer to the CIE counts from its own place, the start from its own, too.
        let to_cie = (fde + 4 - cie) as u32;
        let place = EH_FRAME + fde as u64 + 8;
        let mut body = (function.start.wrapping_sub(place) as u32).to_le_bytes().to_vec();
        body.extend(FUNCTION_LEN.to_le_bytes());
        body.push(0);
        body.extend(function.rows);
        entry(&mut frames, to_cie, &body);
        table.extend((function.start.wrapping_sub(HDR) as u32).to_le_bytes());
        table.extend(((EH_FRAME - HDR) as u32 + fde as u32).to_le_bytes());
    }
    frames.extend([0; 4]);
    let mut hdr = vec![1, 0x1b, 0x03, 0x3b];
    hdr.extend(((EH_FRAME - HDR - 4) as u32).to_le_bytes());
    hdr.extend((functions.len() as u32).to_le_bytes());
    hdr.extend(table);
    UnwindSections {
        eh_frame_hdr: Some(section(HDR, hdr)),
        eh_frame: Some(section(EH_FRAME, frames)),
        ..UnwindSections::default()
    }
}

impl Function<'_> {
    fn return_address(&self) -> u8 {
        self.cie.return_address
    }
}

/// `.debug_frame` of one function of x86-64.
pub(crate) fn debug_section(start: u64, rows: &[u8]) -> Section {
    let mut frames = Vec::new();
    let mut body = vec![1, 0, 1, 0x78, 16];
    body.extend(X86_64.rows);
    entry(&mut frames, u32::MAX, &body);
    let mut body = start.to_le_bytes().to_vec();
    body.extend(u64::from(FUNCTION_LEN).to_le_bytes());
    body.extend(rows);
    entry(&mut frames, 0, &body);
    section(0, frames)
}

fn entry(out: &mut Vec<u8>, id: u32, body: &[u8]) {
    let padding = body.len().next_multiple_of(4) - body.len();
    out.extend((4 + (body.len() + padding) as u32).to_le_bytes());
    out.extend(id.to_le_bytes());
    out.extend(body);
    out.extend(std::iter::repeat_n(0, padding));
}

pub(crate) fn section(address: u64, bytes: Vec<u8>) -> Section {
    Section { address: ImageAddress(address), bytes: SharedBytes::from(bytes) }
}

/// The image of the module's documentation, for `cie`.
pub(crate) fn image(cie: Cie, rows: &[u8]) -> UnwindSections {
    let plain = Cie { augmentation: "zR", ..cie };
    // x86-64: def_cfa_offset 24. AArch64: def_cfa_offset 24; offset x30 cfa-8.
    let (main, start): (&[u8], &[u8]) = match cie.return_address {
        16 => (&[0x0e, 24], &[0x07, 16]),
        _ => (&[0x0e, 24, 0x9e, 1], &[0x07, 30]),
    };
    eh_sections(&[
        Function { cie, start: TESTED, rows },
        Function { cie: plain, start: MAIN, rows: main },
        Function { cie: plain, start: START, rows: start },
    ])
}

/// Text from [`CODE`] to [`HDR`], all zeros but for `pieces` of (image address, bytes).
pub(crate) fn text(pieces: &[(u64, &[u8])]) -> Section {
    let mut bytes = vec![0; (HDR - CODE) as usize];
    for (address, piece) in pieces {
        let start = (address - CODE) as usize;
        bytes[start..start + piece.len()].copy_from_slice(piece);
    }
    section(CODE, bytes)
}

/// What one sample has: registers by DWARF number, words of stack from [`SP`] on.
pub(crate) struct Sample<'a> {
    pub(crate) architecture: Architecture,
    pub(crate) sections: UnwindSections,
    pub(crate) registers: &'a [(u8, u64)],
    pub(crate) words: &'a [u64],
    pub(crate) limit: StackLimit,
    pub(crate) frame_limit: usize,
}

impl Sample<'_> {
    /// A sample of `tested` with these rows.
    pub(crate) fn of<'a>(
        cie: Cie,
        rows: &[u8],
        registers: &'a [(u8, u64)],
        words: &'a [u64],
    ) -> Sample<'a> {
        let architecture = match cie.return_address {
            16 => Architecture::X86_64,
            _ => Architecture::Aarch64,
        };
        Sample {
            architecture,
            sections: image(cie, rows),
            registers,
            words,
            limit: StackLimit::StackEnded,
            frame_limit: 100,
        }
    }

    /// The frames, image addresses less the bias, and how the walk ended.
    pub(crate) fn walk(&self) -> (Vec<FrameAddress>, StackEnd) {
        let mut unwinder = CfiUnwinder::new(self.architecture);
        let module = unwinder.add_module(self.sections.clone());
        let mut find = |address: ProcessAddress| {
            if (BIAS + CODE..BIAS + HDR).contains(&address.0) {
                Code::Module(CodeAddress::new(module, address, bias()))
            } else if (JIT..JIT + 0x1000).contains(&address.0) {
                Code::Executable
            } else {
                Code::NotCode
            }
        };
        let mut registers = Registers::default();
        for (register, value) in self.registers {
            registers.set(*register, *value);
        }
        let bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let stack = StackCopy::new(ProcessAddress(SP), &bytes, &[], self.limit);
        let mut frames = Vec::new();
        let end = unwinder.unwind(&mut find, &registers, &stack, self.frame_limit, &mut frames);
        (frames, end)
    }

    /// Asserts on the frames' image addresses, as a text: `+` in front of one means that it is an
    /// instruction's own, no return address.
    #[track_caller]
    pub(crate) fn check(&self, expect: &str, expect_end: StackEnd) {
        let (frames, end) = self.walk();
        let texts: Vec<String> = frames.iter().map(|frame| frame_text(*frame)).collect();
        assert_eq!((texts.join(" ").as_str(), end), (expect, expect_end));
    }
}

fn frame_text(frame: FrameAddress) -> String {
    let address = frame.address().0;
    let sign = if frame.is_exact() { "+" } else { "" };
    format!("{sign}{:x}", address.checked_sub(BIAS).unwrap_or(address))
}
