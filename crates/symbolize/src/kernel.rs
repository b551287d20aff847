//! Turns `/proc/kallsyms` into names of kernel functions, those of modules and BPF programs too.
//!
//! The table gives no sizes: a function reaches to the next symbol, whatever its type. Where the
//! next one belongs to another module the end is not known, and the reach is bounded instead.
//!
//! Sources: `kernel/kallsyms.c` of Linux, nm(1) for the letters.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use flame_profile::{ByteLen, ProcessAddress};

use crate::line_parser::{parse_hex, split_word};

/// How much of the file is read at most, in bytes; real ones have about 10 million.
const MAX_FILE_LEN: u64 = 256 << 20;

/// How far the last function of a module, or a BPF program, is believed to reach: programs are at
/// most 64 KiB on x86-64 apart from rare ones, and the last function of a module rarely large.
const MAX_LAST_LEN: u64 = 64 << 10;

/// The longest name of inserted code, in bytes; the kernel's own limit is 512.
const MAX_INSERTED_NAME: usize = 512;

/// The kernel's functions, by address.
#[derive(Debug, Default)]
pub struct KernelSymbols {
    /// What was read; names are parts of it.
    text: String,
    /// Sorted by address, one for each; of any type, because data ends code.
    entries: Vec<Entry>,
    /// Code that was told of apart from the table, by its start; ranges do not overlap.
    inserted: BTreeMap<u64, Inserted>,
    /// Where the kernel's own code is: `_text` to `_etext`; empty where that is not said.
    code: Range<u64>,
}

/// Code with a known end.
#[derive(Debug)]
struct Inserted {
    end: u64,
    name: String,
    module: Option<&'static str>,
}

/// Why the kernel's symbols are not to be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// All addresses read as zero: `kernel.kptr_restrict` hides them from this user.
    #[error("kernel addresses are hidden in {}", path.display())]
    Hidden {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read, for example because the kernel was built without it.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    address: u64,
    /// Where the name is in the text.
    name: u32,
    name_len: u16,
    /// Length of the module's name, which stands in brackets a tab behind the name; 0 = none.
    module_len: u16,
    /// The lower, the better the name among aliases; [`NO_CODE`] ends code without being any.
    rank: u8,
}

const NO_CODE: u8 = u8::MAX;

/// What is at an address.
struct FoundSymbol<'k> {
    name: &'k str,
    module: Option<&'k str>,
    start: u64,
}

impl Entry {
    /// The name of one of the kernel's own symbols; empty for one of a module.
    fn name_in(self, text: &str) -> &[u8] {
        let start = self.name as usize;
        let name = text.as_bytes().get(start..start + usize::from(self.name_len));
        name.filter(|_| self.module_len == 0).unwrap_or(&[])
    }
}

impl KernelSymbols {
    /// Reads the symbols, usually of `/proc/kallsyms`.
    ///
    /// # Errors
    /// When the file cannot be read, or shows no addresses to this user.
    pub fn open(path: &Path) -> Result<KernelSymbols, KernelError> {
        KernelSymbols::read(File::open(path), path)
    }

    /// The same of a file that was opened before, which stands at that path.
    ///
    /// # Errors
    /// As [`KernelSymbols::open`].
    pub fn read(file: io::Result<File>, path: &Path) -> Result<KernelSymbols, KernelError> {
        let read = || {
            let mut bytes = Vec::new();
            file?.take(MAX_FILE_LEN).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|source| KernelError::Io { path: path.to_owned(), source })?;
        let (symbols, lines) = KernelSymbols::parse_bytes(bytes);
        if symbols.entries.is_empty() && lines > 0 {
            return Err(KernelError::Hidden { path: path.to_owned() });
        }
        Ok(symbols)
    }

    /// The symbols of text in the form of `/proc/kallsyms`. Lines that have another form, and
    /// those whose address is hidden (0), count as absent.
    pub fn parse(text: &[u8]) -> KernelSymbols {
        KernelSymbols::parse_bytes(text.to_vec()).0
    }

    /// The symbols, and how many lines had the right form, whether or not they show an address.
    fn parse_bytes(bytes: Vec<u8>) -> (KernelSymbols, usize) {
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        let mut entries = Vec::with_capacity(text.len() / 40);
        let mut code = 0..0;
        let mut lines = 0;
        let mut start = 0;
        for line in text.as_bytes().split_inclusive(|byte| *byte == b'\n') {
            if let Some(entry) = parse_line(line, start) {
                lines += 1;
                if entry.address != 0 {
                    match entry.name_in(&text) {
                        b"_text" => code.start = entry.address,
                        b"_etext" => code.end = entry.address,
                        _ => {}
                    }
                    entries.push(entry);
                }
            }
            start += line.len();
        }
        let code = if code.start > 0 { code } else { 0..0 };
        let mut symbols = KernelSymbols { text, code, ..KernelSymbols::default() };
        // The kernel lists its own symbols in order, so that this is one pass for most of them.
        entries.sort_by_key(|entry| entry.address);
        let groups = entries.chunk_by(|a, b| a.address == b.address);
        symbols.entries = groups.filter_map(|aliases| symbols.best_alias(aliases)).collect();
        (symbols, lines)
    }

    /// Adds a function that the kernel made while it ran, such as a BPF program. Of the table, and
    /// of what was inserted before, nothing is believed any more within its range. `module` is what
    /// [`KernelSymbols::lookup`] is to give for it.
    pub fn insert(
        &mut self,
        start: ProcessAddress,
        len: ByteLen,
        name: &[u8],
        module: Option<&'static str>,
    ) {
        let (start, end) = (start.0, start.0.saturating_add(len.0));
        if start == end || name.is_empty() {
            return;
        }
        let before = self.inserted.range(..end).rev();
        let overlapped: Vec<u64> =
            before.take_while(|(_, old)| old.end > start).map(|(start, _)| *start).collect();
        for old in overlapped {
            self.inserted.remove(&old);
        }
        let name = &name[..name.len().min(MAX_INSERTED_NAME)];
        let name = String::from_utf8_lossy(name).into_owned();
        self.inserted.insert(start, Inserted { end, name, module });
    }

    /// How many addresses have a symbol.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no symbols.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The function at an address, and the module it is of: `None` for the kernel itself, `bpf`
    /// for BPF programs. Pass return addresses minus 1.
    pub fn lookup(&self, address: ProcessAddress) -> Option<(&str, Option<&str>)> {
        let found = self.find(address)?;
        Some((found.name, found.module))
    }

    /// Where an address is without saying where the kernel is, which attacks on it want to know: how
    /// far from `_text` in its own code, and elsewhere how far from the start of the function, since
    /// modules are at a random distance of their own. `None` where there is no symbol.
    pub fn offset(&self, address: ProcessAddress) -> Option<u64> {
        if self.code.contains(&address.0) {
            return Some(address.0 - self.code.start);
        }
        Some(address.0 - self.find(address)?.start)
    }

    fn find(&self, address: ProcessAddress) -> Option<FoundSymbol<'_>> {
        let inserted = self.inserted.range(..=address.0).next_back();
        if let Some((start, code)) = inserted.filter(|(_, code)| address.0 < code.end) {
            return Some(FoundSymbol { name: &code.name, module: code.module, start: *start });
        }
        let after = self.entries.partition_point(|entry| entry.address <= address.0);
        let entry = self.entries[..after].last().filter(|entry| entry.rank != NO_CODE)?;
        let module = self.module(entry);
        let next = self.entries.get(after);
        let is_last = next.is_none_or(|next| self.module(next) != module) || module == Some("bpf");
        if is_last && address.0 - entry.address >= MAX_LAST_LEN {
            return None;
        }
        Some(FoundSymbol { name: self.name(entry), module, start: entry.address })
    }

    fn name(&self, entry: &Entry) -> &str {
        let start = entry.name as usize;
        self.text.get(start..start + usize::from(entry.name_len)).unwrap_or("")
    }

    fn module(&self, entry: &Entry) -> Option<&str> {
        let start = entry.name as usize + usize::from(entry.name_len) + "\t[".len();
        let len = usize::from(entry.module_len);
        (len > 0).then(|| self.text.get(start..start + len)).flatten()
    }

    /// The plainest of several names of one address; the last resort is the order of bytes.
    fn best_alias(&self, aliases: &[Entry]) -> Option<Entry> {
        let preference = |entry: &&Entry| {
            let name = self.name(entry);
            let underscores = name.bytes().take_while(|byte| *byte == b'_').count();
            (entry.rank, underscores, name.len(), name)
        };
        match aliases {
            [only] => Some(*only),
            _ => aliases.iter().min_by_key(preference).copied(),
        }
    }
}

/// The symbol of one line, `ffffffffc0a01000 t nf_hook\t[nf_tables]`, that starts at `start`.
fn parse_line(line: &[u8], start: usize) -> Option<Entry> {
    let (address, rest) = split_word(line.trim_ascii_end());
    let (kind, name) = split_word(rest);
    let (name, module) = match name.iter().position(|byte| *byte == b'\t') {
        Some(tab) => name.split_at(tab),
        None => (name, &[][..]),
    };
    let module = module.strip_prefix(b"\t[").and_then(|module| module.strip_suffix(b"]"));
    let rank = match kind {
        b"T" => 0,
        b"W" | b"w" => 1,
        b"t" | b"i" => 2,
        [_] => NO_CODE,
        _ => return None,
    };
    if name.is_empty() {
        return None;
    }
    let name_start = start + address.len() + kind.len() + "  ".len();
    Some(Entry {
        address: parse_hex(address)?,
        name: u32::try_from(name_start).ok()?,
        name_len: u16::try_from(name.len()).ok()?,
        module_len: module.map_or(Some(0), |module| u16::try_from(module.len()).ok())?,
        rank,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
ffffffff81000000 T _stext
ffffffff81000000 T startup
ffffffff81000100 t do_idle
ffffffff81000200 W arch_cpu_idle
ffffffff81000300 D data_within
ffffffff81000400 t vector_entry
ffffffffc0a01000 t nf_hook\t[nf_tables]
ffffffffc0a01080 t nf_walk\t[nf_tables]
ffffffffc0b00000 t ext4_readdir\t[ext4]
ffffffffc0c00000 t bpf_prog_6deef7357e7b4530_sd_fw\t[bpf]
";

    type Found = Option<(&'static str, Option<&'static str>)>;

    #[track_caller]
    fn check(symbols: &KernelSymbols, address: u64, expect: Found) {
        assert_eq!(symbols.lookup(ProcessAddress(address)), expect, "{address:#x}");
    }

    #[test]
    fn a_function_reaches_to_the_next_symbol_of_any_type() {
        let symbols = KernelSymbols::parse(TABLE.as_bytes());
        check(&symbols, 0xffff_ffff_80ff_ffff, None);
        check(&symbols, 0xffff_ffff_8100_0000, Some(("startup", None)));
        check(&symbols, 0xffff_ffff_8100_00ff, Some(("startup", None)));
        check(&symbols, 0xffff_ffff_8100_0100, Some(("do_idle", None)));
        check(&symbols, 0xffff_ffff_8100_02ff, Some(("arch_cpu_idle", None)));
        check(&symbols, 0xffff_ffff_8100_0300, None);
        check(&symbols, 0xffff_ffff_8100_0400, Some(("vector_entry", None)));
    }

    #[test]
    fn modules_and_bpf_programs_are_named_and_bounded() {
        let symbols = KernelSymbols::parse(TABLE.as_bytes());
        check(&symbols, 0xffff_ffff_c0a0_1010, Some(("nf_hook", Some("nf_tables"))));
        check(&symbols, 0xffff_ffff_c0a0_1080, Some(("nf_walk", Some("nf_tables"))));
        check(&symbols, 0xffff_ffff_c0a1_107f, Some(("nf_walk", Some("nf_tables"))));
        check(&symbols, 0xffff_ffff_c0a1_1080, None);
        let program = "bpf_prog_6deef7357e7b4530_sd_fw";
        check(&symbols, 0xffff_ffff_c0c0_0000, Some((program, Some("bpf"))));
        check(&symbols, u64::MAX, None);
    }

    #[test]
    fn inserted_code_is_named_within_its_range_and_the_last_one_wins() {
        let mut symbols = KernelSymbols::parse(TABLE.as_bytes());
        let at = |offset: u64| ProcessAddress(0xffff_ffff_c0c0_0000 + offset);
        symbols.insert(at(0x100), ByteLen(0x80), b"bpf_prog_1_old", Some("bpf"));
        symbols.insert(at(0x400), ByteLen(0x80), b"bpf_prog_2_other", Some("bpf"));
        symbols.insert(at(0x140), ByteLen(0x80), b"bpf_prog_3_new", Some("bpf"));
        symbols.insert(at(0x500), ByteLen(0), b"empty", None);
        let program = Some(("bpf_prog_6deef7357e7b4530_sd_fw", Some("bpf")));
        check(&symbols, at(0x100).0, program);
        check(&symbols, at(0x13f).0, program);
        check(&symbols, at(0x140).0, Some(("bpf_prog_3_new", Some("bpf"))));
        check(&symbols, at(0x1bf).0, Some(("bpf_prog_3_new", Some("bpf"))));
        check(&symbols, at(0x1c0).0, program);
        check(&symbols, at(0x47f).0, Some(("bpf_prog_2_other", Some("bpf"))));
        check(&symbols, at(0x500).0, program);
    }

    #[test]
    fn hidden_addresses_are_an_error() {
        let path = std::env::temp_dir().join(format!("flame-kallsyms-{}", std::process::id()));
        std::fs::write(&path, "0000000000000000 T _text\n0000000000000000 t do_idle\n").unwrap();
        let error = KernelSymbols::open(&path).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(error, KernelError::Hidden { .. }), "{error}");
        let gone = KernelSymbols::open(&path).unwrap_err();
        assert!(matches!(gone, KernelError::Io { .. }), "{gone}");
    }

    #[test]
    fn text_cut_at_any_byte_gives_known_names_or_none() {
        for len in 0..TABLE.len() {
            let symbols = KernelSymbols::parse(&TABLE.as_bytes()[..len]);
            let found = symbols.lookup(ProcessAddress(0xffff_ffff_8100_0000));
            // The last line may be cut within its name.
            assert!(
                found.is_none_or(
                    |(name, _)| "startup".starts_with(name) || "_stext".starts_with(name)
                )
            );
        }
    }

    #[test]
    fn lines_of_another_form_are_absent() {
        let text = b"\n\xff\xfe\nzz T bad\n10\n10 T\n10 T \n10 TT x\n20 T good\n20000000000000000 T long\n";
        let symbols = KernelSymbols::parse(text);
        assert_eq!(symbols.len(), 1);
        check(&symbols, 0x20, Some(("good", None)));
    }
}
