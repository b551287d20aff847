//! Small ELF files for tests, built byte by byte: 64 bits, little-endian.

/// Section 1 of every [`TestElf`] is `.text`: this address, this length, executable.
pub const TEXT: u64 = 0x2000;
pub const TEXT_LEN: u64 = 0x1000;

/// What `st_info` says of a symbol: its binding and its type.
pub const LOCAL_FUNC: u8 = 0x02;
pub const GLOBAL_FUNC: u8 = 0x12;
pub const WEAK_FUNC: u8 = 0x22;
pub const LOCAL_NOTYPE: u8 = 0x00;
pub const GLOBAL_NOTYPE: u8 = 0x10;
pub const GLOBAL_OBJECT: u8 = 0x11;

/// What goes into the file. Symbols are (name, address, size, info).
#[derive(Debug, Default)]
pub struct TestElf<'a> {
    pub symbols: &'a [(&'a str, u64, u64, u8)],
    pub dynamic_symbols: &'a [(&'a str, u64, u64, u8)],
    /// (name, flags, bytes) of sections that are not loaded.
    pub sections: &'a [(&'a str, u64, &'a [u8])],
    /// (offset, address, length in the file, flags) of loaded segments.
    pub segments: &'a [(u64, u64, u64, u32)],
    /// (offset, address, length) that the program header of `.eh_frame_hdr` says.
    pub eh_frame_hdr: Option<(u64, u64, u64)>,
}

struct Header {
    name: u32,
    kind: u32,
    flags: u64,
    address: u64,
    offset: u64,
    len: u64,
    link: u32,
    entry_len: u64,
}

impl TestElf<'_> {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut file = vec![0; 64 + self.program_headers().len() * 56];
        let mut names = vec![0];
        let mut headers = Vec::new();
        let mut add = |name: &str, kind, flags, address, link, entry_len, bytes: &[u8]| {
            let name_at = names.len() as u32;
            names.extend_from_slice(name.as_bytes());
            names.push(0);
            let (offset, len) = (file.len() as u64, bytes.len() as u64);
            file.extend_from_slice(bytes);
            let name = name_at;
            headers.push(Header { name, kind, flags, address, offset, len, link, entry_len });
        };
        let text = [0x90; TEXT_LEN as usize];
        add(".text", 1, 2 | 4, TEXT, 0, 0, &text);
        for (name, strings_name, kind, symbols) in [
            (".symtab", ".strtab", 2, self.symbols),
            (".dynsym", ".dynstr", 11, self.dynamic_symbols),
        ] {
            // Numbers of sections: 0 is none, 1 is .text, each table is followed by its strings.
            let link = if kind == 2 { 3 } else { 5 };
            let (table, strings) = symbol_table(symbols);
            add(name, kind, 0, 0, link, 24, &table);
            add(strings_name, 3, 0, 0, 0, 0, &strings);
        }
        for (name, flags, bytes) in self.sections {
            add(name, if name.starts_with(".note") { 7 } else { 1 }, *flags, 0, 0, 0, bytes);
        }
        add(".shstrtab", 3, 0, 0, 0, 0, &[]);
        let last = headers.last_mut().expect("just added");
        (last.offset, last.len) = (file.len() as u64, names.len() as u64);
        file.extend_from_slice(&names);
        self.finish(file, &headers)
    }

    fn finish(&self, mut file: Vec<u8>, headers: &[Header]) -> Vec<u8> {
        let table = file.len() as u64;
        file.extend_from_slice(&[0; 64]);
        for header in headers {
            put(&mut file, &[u64::from(header.name) | u64::from(header.kind) << 32]);
            put(&mut file, &[header.flags, header.address, header.offset, header.len]);
            put(&mut file, &[u64::from(header.link), 1, header.entry_len]);
        }
        let mut start = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        // ET_DYN for EM_X86_64, version 1; the program headers follow this header.
        put(&mut start, &[3 | 62 << 16 | 1 << 32, TEXT, 64, table]);
        // No flags; the sizes of a header, a program header and a section header, with their
        // numbers; the names of sections are in the last one.
        let segments = self.program_headers();
        let (count, sections) = (segments.len() as u64, headers.len() as u64 + 1);
        put(&mut start, &[64 << 32 | 56 << 48, count | 64 << 16]);
        start.truncate(16 + 32 + 12);
        start.extend_from_slice(&(sections as u16).to_le_bytes());
        start.extend_from_slice(&(sections as u16 - 1).to_le_bytes());
        for (kind, (offset, address, len, flags)) in segments {
            put(&mut start, &[kind | u64::from(flags) << 32, offset, address, address]);
            put(&mut start, &[len, len, 0x1000]);
        }
        file[..start.len()].copy_from_slice(&start);
        file
    }

    /// Segments with their types: PT_LOAD and PT_GNU_EH_FRAME.
    fn program_headers(&self) -> Vec<(u64, (u64, u64, u64, u32))> {
        let loaded = self.segments.iter().map(|segment| (1, *segment));
        let hdr = self.eh_frame_hdr.map(|(offset, address, len)| (offset, address, len, 4));
        loaded.chain(hdr.map(|hdr| (0x6474_e550, hdr))).collect()
    }
}

fn symbol_table(symbols: &[(&str, u64, u64, u8)]) -> (Vec<u8>, Vec<u8>) {
    let (mut table, mut strings) = (vec![0; 24], vec![0]);
    for (name, address, size, info) in symbols {
        let section = 1;
        put(&mut table, &[strings.len() as u64 | u64::from(*info) << 32 | section << 48]);
        put(&mut table, &[*address, *size]);
        strings.extend_from_slice(name.as_bytes());
        strings.push(0);
    }
    (table, strings)
}

fn put(bytes: &mut Vec<u8>, words: &[u64]) {
    words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
}
