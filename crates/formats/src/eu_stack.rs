//! elfutils' `eu-stack -p PID`, once or many times over.
//!
//! ```text
//! PID 4242 - process
//! TID 4242:
//! #0  0x00007f01a2 __poll
//! #1  0x0000401136 main - /usr/bin/server
//! ```

use flame_profile::FrameKind;

use crate::ReadError;
use crate::foreign::Foreign;
use crate::head::Head;
use crate::input::Input;
use crate::names::{is_decimal, is_hex, number, without_arguments};
use crate::registry::{Content, InputFormat, Reader};
use crate::sink::{FrameIndex, Sink};

pub(crate) const FORMAT: InputFormat = InputFormat {
    name: "eu-stack",
    description: "elfutils' stacks (eu-stack -p PID)",
    content: Content::Text,
    detect: |head: &Head<'_>| {
        head.lines().any(|line| tid(line).is_some())
            && head.lines().any(|line| frame(line).is_some())
    },
    reader: Reader::Stacks(read),
};

fn tid(line: &[u8]) -> Option<u32> {
    number(line.strip_prefix(b"TID ")?.strip_suffix(b":")?)
}

/// `#1  0x0000401136 main - /usr/bin/server`, `#1  0x0000401136 - 1 main`, `#2  0x00401000`.
fn frame(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"#")?;
    let end = memchr::memchr(b' ', rest).filter(|end| is_decimal(&rest[..*end]))?;
    let rest = rest[end..].trim_ascii().strip_prefix(b"0x")?;
    let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
    is_hex(&rest[..end]).then(|| rest[end..].trim_ascii())
}

/// `main - /usr/bin/server`, `- /usr/bin/server`: the function, or the image in brackets.
fn function(symbol: &[u8]) -> Vec<u8> {
    let (name, image) = match memchr::memmem::find(symbol, b"- /") {
        Some(at) if at == 0 || symbol[at - 1] == b' ' => (&symbol[..at], Some(&symbol[at + 3..])),
        _ => (symbol, None),
    };
    let name = without_arguments(name.trim_ascii());
    match (name, image) {
        (b"" | b"-", Some(image)) => {
            let base = image.rsplit(|byte| *byte == b'/').next().unwrap_or(image);
            [b"[", base, b"]"].concat()
        }
        (b"" | b"-", None) => b"[unknown]".to_vec(),
        _ => name.to_vec(),
    }
}

fn read(input: &mut Input<'_>, sink: &mut Sink) -> Result<(), ReadError> {
    let mut lines = input.lines();
    // Innermost first.
    let mut stack: Vec<FrameIndex> = Vec::new();
    let mut foreign = Foreign::to(FORMAT.name);
    while let Some(line) = lines.next_line()? {
        if foreign.takes(&line, sink)? {
            sink.end_stack(&mut stack, None, 1);
            continue;
        }
        if let Some(symbol) = frame(line.text) {
            // Return addresses have ` - 1` behind them, and the image stands last with `-m`.
            let symbol = symbol.strip_prefix(b"- 1").unwrap_or(symbol).trim_ascii();
            stack.push(sink.frame(&function(symbol), FrameKind::User));
        } else if line.text.starts_with(b"TID ") || line.text.starts_with(b"PID ") {
            sink.end_stack(&mut stack, None, 1);
        }
    }
    sink.end_stack(&mut stack, None, 1);
    Ok(())
}
