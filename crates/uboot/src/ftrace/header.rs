//! All of a trace.dat that comes before its pages.

use std::io::{self, Write};

use super::pages::PAGE;

/// The start of a file of version 6: little-endian, with longs that are said to have 4 bytes. The
/// formats of the events say for each field what it has.
const START: &[u8] = b"\x17\x08Dtracing6\0\0\x04\0\x10\0\0";

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

const HEADER_EVENT: &str = "# compressed entry header\n\
    \ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n\
    \tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\
    \tdata max type_len  == 28\n";

/// What is needed to read an event: type, name, offset, size, sign of each of its own fields.
struct Format {
    name: &'static str,
    id: u32,
    fields: &'static [(&'static str, u32, u32, u32)],
    print: &'static str,
}

const FORMATS: [Format; 3] = [
    Format {
        name: "function",
        id: 1,
        fields: &[("unsigned long ip", 8, 8, 0), ("unsigned long parent_ip", 16, 8, 0)],
        print: r#"" %ps <-- %ps", (void *)REC->ip, (void *)REC->parent_ip"#,
    },
    Format {
        name: "funcgraph_entry",
        id: 11,
        fields: &[("unsigned long func", 8, 8, 0), ("int depth", 16, 4, 1)],
        print: r#""--> %ps (%d)", (void *)REC->func, REC->depth"#,
    },
    Format {
        name: "funcgraph_exit",
        id: 10,
        fields: &[
            ("unsigned long func", 8, 8, 0),
            ("int depth", 16, 4, 1),
            ("unsigned int overrun", 20, 4, 0),
            ("unsigned long long calltime", 24, 8, 0),
            ("unsigned long long rettime", 32, 8, 0),
        ],
        print: "\"<-- %ps (%d) (start: %llx  end: %llx) over: %d\", (void *)REC->func, REC->depth, \
                REC->calltime, REC->rettime, REC->depth",
    },
];

/// The clocks of a kernel, of which one is in brackets: the one that is used.
const CLOCKS: &str = "[local] global counter uptime perf mono mono_raw boot x86-tsc\n";

/// What a kernel says of a CPU's buffer. Readers want it to be there.
const CPU_STATISTICS: &str = "CPU: 0\nentries: 100\noverrun: 43565\ncommit overrun: 0\n\
    bytes: 3360\noldest event ts: 963732.447752\nnow ts: 963832.146824\ndropped events: 0\n\
    read events: 42379\n";

/// What a header depends on.
pub(super) struct Header<'a> {
    pub(super) symbols: &'a [u8],
    /// Bytes of the pages.
    pub(super) size: u64,
    pub(super) is_proftool: bool,
    /// Whether proftool gives up, and never writes the size.
    pub(super) failed: bool,
}

impl Header<'_> {
    /// Writes it, filled up to where pages start if there are any.
    pub(super) fn write(&self, has_pages: bool, out: &mut dyn Write) -> io::Result<()> {
        let mut bytes = START.to_vec();
        for (name, text) in
            [(b"header_page\0".as_slice(), HEADER_PAGE), (b"header_event\0", HEADER_EVENT)]
        {
            bytes.extend_from_slice(name);
            push_text(text.as_bytes(), &mut bytes);
        }
        bytes.extend_from_slice(&(FORMATS.len() as u32).to_le_bytes());
        for format in &FORMATS {
            push_text(format.text().as_bytes(), &mut bytes);
        }
        // No systems of events.
        bytes.extend_from_slice(&0_u32.to_le_bytes());
        bytes.extend_from_slice(&(self.symbols.len() as u32).to_le_bytes());
        bytes.extend_from_slice(self.symbols);
        // No formats of printk.
        bytes.extend_from_slice(&0_u32.to_le_bytes());
        push_text(b"1 u-boot\n", &mut bytes);
        // One CPU.
        bytes.extend_from_slice(&1_u32.to_le_bytes());
        push_options(&mut bytes);
        bytes.extend_from_slice(b"flyrecord\0");
        let end = bytes.len() as u64 + 24 + CLOCKS.len() as u64;
        let pages = end.next_multiple_of(PAGE as u64);
        let size = match (has_pages, self.is_proftool) {
            _ if self.failed => 0,
            (true, _) | (false, false) => self.size,
            // The end of the file less the start of the pages, which is behind it.
            (false, true) => end.wrapping_sub(pages),
        };
        bytes.extend_from_slice(&pages.to_le_bytes());
        bytes.extend_from_slice(&size.to_le_bytes());
        push_text(CLOCKS.as_bytes(), &mut bytes);
        if has_pages || !self.is_proftool {
            bytes.resize(pages as usize, 0);
        }
        out.write_all(&bytes)
    }
}

/// A text with its length before it.
fn push_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text);
}

/// Readers are told that the clock ticks once per 1000 ns, which gives microseconds.
fn push_options(out: &mut Vec<u8>) {
    let mut tsc = Vec::new();
    tsc.extend_from_slice(&1000_u32.to_le_bytes());
    tsc.extend_from_slice(&[0; 12]);
    let options: [(u16, &[u8]); 6] = [
        (4, b""),
        (5, b"U-Boot"),
        (9, b"unknown"),
        (11, &0x1234_5678_0abc_def0_u64.to_le_bytes()),
        (14, &tsc),
        (2, CPU_STATISTICS.as_bytes()),
    ];
    out.extend_from_slice(b"options  \0");
    for (id, data) in options {
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&(data.len() as u32).to_le_bytes());
        out.extend_from_slice(data);
    }
    out.extend_from_slice(&0_u16.to_le_bytes());
}

impl Format {
    fn text(&self) -> String {
        let mut text = format!("name: {}\nID: {}\nformat:\n", self.name, self.id);
        text += "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                 \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
                 \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;signed:0;\n\
                 \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
        for (field, offset, size, signed) in self.fields {
            text +=
                &format!("\tfield:{field};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
        }
        text += &format!("\nprint fmt: {}\n", self.print);
        text
    }
}
