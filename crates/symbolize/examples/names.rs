//! `names IMAGE < ADDRESSES`: what is at addresses of an image, in the form of
//! `addr2line -afiC`.
//!
//! Addresses are hexadecimal, one a line. `cargo xtask bench symbols` measures this program beside
//! others of its kind.
#![expect(clippy::print_stderr, reason = "an example writes to the terminal")]

use std::error::Error;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use flame_image::ImageFile;
use flame_profile::ImageAddress;
use flame_symbolize::{SymbolizeConfig, Symbolized, symbolize_image};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let image = arguments.get(1).ok_or("usage: names IMAGE < ADDRESSES")?;
    let image = ImageFile::open(Path::new(image))?;
    let config = SymbolizeConfig::default();
    let mut addresses = Vec::new();
    for line in io::read_to_string(io::stdin())?.lines() {
        let digits = line.trim().trim_start_matches("0x");
        addresses.push(ImageAddress(u64::from_str_radix(digits, 16)?));
    }
    addresses.sort_unstable();
    addresses.dedup();
    let mut out = BufWriter::new(io::stdout().lock());
    for (address, answer) in addresses.iter().zip(symbolize_image(&image, &addresses, &config)) {
        writeln!(out, "0x{:016x}", address.0)?;
        let Symbolized::Frames(frames) = answer else {
            writeln!(out, "??\n??:0")?;
            continue;
        };
        for frame in frames {
            let file = frame.file.as_deref().unwrap_or("??");
            writeln!(out, "{}\n{file}:{}", frame.name, frame.line.unwrap_or(0))?;
        }
    }
    Ok(out.flush()?)
}
