//! A line of a stack: `ffffffff8104f45a native_write_msr_safe+0x1a ([kernel.kallsyms])`.

use flame_profile::FrameKind;

use super::header;
use super::meaning::is_source_line;
use super::{is_aligned_frame, looks_like_frame};
use crate::names::{rfind, without_offset};

/// A line of a stack, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameLine<'l> {
    pub(super) address: &'l [u8],
    /// Without its offset; empty or `[unknown]` where there is none.
    pub(super) symbol: &'l [u8],
    /// The digits of that offset; empty where there is none.
    pub(super) offset: &'l [u8],
    /// The path of the module without `(deleted)`; empty where it was not printed.
    pub(super) module: &'l [u8],
}

/// What a line without blanks around it has behind its address; `None` for what is not a frame.
pub(super) fn behind_address(line: &[u8]) -> Option<&[u8]> {
    split(line).map(|(_, rest)| rest)
}

fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
    let (address, rest) = line.split_at(end);
    match rest.first() {
        Some(b' ' | b'\t') | None if !address.is_empty() => {
            Some((address, rest.trim_ascii_start()))
        }
        _ => None,
    }
}

/// Reads a line without blanks around it; `None` for what is not a frame.
pub(super) fn parse(line: &[u8]) -> Option<FrameLine<'_>> {
    let (address, rest) = split(line)?;
    let (symbol, module) = match module_start(rest) {
        Some(at) => (rest[..at].trim_ascii_end(), &rest[at + 1..rest.len() - 1]),
        None => (rest, &b""[..]),
    };
    // `-F dsoff` prints the place in the file as well.
    let module = without_offset(module);
    let module = module.strip_suffix(b" (deleted)").unwrap_or(module);
    let name = without_offset(symbol);
    let offset = symbol[name.len()..].strip_prefix(b"+0x").unwrap_or_default();
    Some(FrameLine { address, symbol: name, offset, module })
}

/// Whether a line within a sample is one of its stack: indented, or an address and a module.
pub(super) fn is_frame_line(line: &[u8]) -> bool {
    match line.first() {
        // Names are indented, too, by blanks.
        Some(b' ') if looks_like_frame(line) => {
            parse(line.trim_ascii()).is_some_and(|frame| !frame.module.is_empty())
                && !header::is_sure(line)
                || header::parse(line).is_none()
        }
        Some(b' ' | b'\t') => looks_like_frame(line) || header::parse(line).is_none(),
        _ => {
            looks_like_frame(line)
                && line.trim_ascii_end().ends_with(b")")
                && header::parse(line).is_none()
        }
    }
}

/// Whether a line may be one of a stack in a text whose frames stand in their columns: what does not stand there
/// has a module, and a source line is indented.
pub(super) fn may_be_frame(line: &[u8]) -> bool {
    if is_aligned_frame(line) {
        return true;
    }
    let text = line.trim_ascii();
    match parse(text) {
        Some(frame) => !frame.module.is_empty(),
        None => !is_source_line(text) || line[0].is_ascii_whitespace(),
    }
}

/// The bracket that the last one of the line closes, where a blank or nothing stands before it.
fn module_start(rest: &[u8]) -> Option<usize> {
    rest.strip_suffix(b")")?;
    let mut depth = 0;
    for (at, byte) in rest.iter().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            return (at == 0 || rest[at - 1] == b' ').then_some(at);
        }
    }
    // Brackets of the path do not match: the last that follows a blank.
    rfind(rest, b" (").map(|at| at + 1)
}

impl FrameLine<'_> {
    /// Whether the function has a name.
    pub(super) fn is_named(&self) -> bool {
        !matches!(self.symbol, b"" | b"[unknown]")
    }

    /// What a function without a name is called by: `libc.so.6`, or `unknown`.
    pub(super) fn image(&self) -> &[u8] {
        match self.module {
            b"" | b"[unknown]" | b"inlined" => b"unknown",
            path => &path[path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1)..],
        }
    }

    /// Whose code it is, by the module.
    pub(super) fn kind(&self) -> FrameKind {
        match self.module {
            b"inlined" => FrameKind::Inlined,
            module if is_kernel(module) => FrameKind::Kernel,
            module if is_jit(module) => FrameKind::Jit,
            _ => FrameKind::User,
        }
    }
}

/// The kernel, its modules and BPF programs. What stands in square brackets and is mapped into
/// processes is not: `[vdso]`, `[heap]`.
fn is_kernel(module: &[u8]) -> bool {
    const USER: [&[u8]; 7] = [b"vdso", b"heap", b"stack", b"anon", b"unknown", b"uprobes", b"vvar"];
    if let [b'[', name @ .., b']'] = module {
        return !USER.iter().any(|user| name.starts_with(user));
    }
    let name = &module[module.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1)..];
    let packed = [&b".xz"[..], b".zst", b".gz"].into_iter();
    let name = packed.fold(name, |name, ending| name.strip_suffix(ending).unwrap_or(name));
    name == b"vmlinux"
        || name.starts_with(b"vmlinux-")
        || name.ends_with(b".ko")
        || name.ends_with(b".ko.debug")
        || module.starts_with(b"[kernel.")
        || module.starts_with(b"[guest.kernel.")
}

/// Code that a runtime has compiled: `/tmp/perf-123.map`, and what `perf inject --jit` makes.
fn is_jit(module: &[u8]) -> bool {
    let name = &module[module.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1)..];
    let is_map = name.strip_prefix(b"perf-").and_then(|rest| rest.strip_suffix(b".map"));
    let is_dump = name.starts_with(b"jitted-") && name.ends_with(b".so");
    is_map.is_some_and(crate::names::is_decimal) || is_dump || module.starts_with(b"[JIT]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use FrameKind::{Inlined, Jit, Kernel, User};

    #[track_caller]
    fn check(line: &str, symbol: &str, image: &str, kind: FrameKind) {
        let frame = parse(line.as_bytes()).unwrap_or_else(|| panic!("no frame: {line}"));
        assert_eq!(frame.symbol, symbol.as_bytes(), "{line}");
        assert_eq!((frame.image(), frame.kind()), (image.as_bytes(), kind), "{line}");
    }

    #[test]
    fn frames_are_read_whatever_their_module_is_called() {
        check("7f12 main+0x1f (/bin/x)", "main", "x", User);
        check("7f12 main (/bin/x (deleted))", "main", "x", User);
        check("7f12 [unknown] (/usr/lib/libc.so.6+0x2724a)", "[unknown]", "libc.so.6", User);
        check("7f12 main+0x3 (/opt/My App (x86)/lib a.so)", "main", "lib a.so", User);
        check("7f12 f(int (*)(char)) (/bin/x)", "f(int (*)(char))", "x", User);
        check("7f12 [unknown] (/usr/lib/libc.so.6)", "[unknown]", "libc.so.6", User);
        check("7f12 (/usr/lib/libc.so.6)", "", "libc.so.6", User);
        check("7f12 [unknown] ([unknown])", "[unknown]", "unknown", User);
        check("7f12 read", "read", "unknown", User);
        check("7f12 step (inlined)", "step", "unknown", Inlined);
        check("ff81 do_idle+0x1 ([kernel.kallsyms])", "do_idle", "[kernel.kallsyms]", Kernel);
        check("ff81 ext4_read ([ext4])", "ext4_read", "[ext4]", Kernel);
        check("ff81 x (/usr/lib/debug/boot/vmlinux-5.4.0)", "x", "vmlinux-5.4.0", Kernel);
        check("ff81 x (/lib/modules/6.1/kernel/fs/xfs/xfs.ko.zst)", "x", "xfs.ko.zst", Kernel);
        check("7ff1 __vdso_gettimeofday ([vdso])", "__vdso_gettimeofday", "[vdso]", User);
        check("7ff1 Ljava/A;::run (/tmp/perf-12.map)", "Ljava/A;::run", "perf-12.map", Jit);
        check("7ff1 f (/tmp/jitted-12-3.so)", "f", "jitted-12-3.so", Jit);
        check("7f [unknown] (//anon)", "[unknown]", "anon", User);
        assert_eq!(behind_address(b"7f12 \tmain+0x1 (/bin/x)"), Some(&b"main+0x1 (/bin/x)"[..]));
        assert_eq!(behind_address(b"main.c:12"), None);
        assert_eq!(parse(b"main.c:12"), None);
        assert_eq!(parse(b"(x)"), None);
    }
}
