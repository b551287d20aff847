//! What the terminal can show: colour and width.

use std::io::IsTerminal;
use std::os::fd::AsFd;

pub(crate) use flame_message::Paint;
use flame_render::{ColourDepth, Palette};
use nix::sys::stat::{fstat, major, minor};
use terminal_size::terminal_size_of;

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// The same; the word was not meant for the terminal but names a palette, as scripts that
    /// call flamegraph.pl have it.
    Palette(Palette),
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Reads auto, always, never, or the name of a palette.
    pub(crate) fn parse(text: &str) -> Result<Color, String> {
        match text {
            "auto" => Ok(Color::Auto),
            "always" => Ok(Color::Always),
            "never" => Ok(Color::Never),
            _ => text.parse().map(Color::Palette).map_err(|palettes: String| {
                format!("messages are coloured auto, always or never; {palettes}")
            }),
        }
    }

    /// The palette that was meant.
    pub(crate) fn palette(self) -> Option<Palette> {
        if let Color::Palette(palette) = self { Some(palette) } else { None }
    }

    /// Whether to colour what goes to stderr.
    pub(crate) fn on_stderr(self) -> bool {
        self.on(&std::io::stderr())
    }

    /// Whether to colour what goes to stdout.
    pub(crate) fn on_stdout(self) -> bool {
        self.on(&std::io::stdout())
    }

    fn on(self, stream: &(impl IsTerminal + AsFd)) -> bool {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto | Color::Palette(_) => !set("NO_COLOR") && knows_sequences(stream),
        }
    }

    /// What colours to draw with on stdout.
    pub(crate) fn depth_of_stdout(self) -> ColourDepth {
        let says = std::env::var("COLORTERM").unwrap_or_default();
        match self.on(&std::io::stdout()) {
            false => ColourDepth::None,
            true if says == "truecolor" || says == "24bit" => ColourDepth::True,
            true => ColourDepth::Palette,
        }
    }
}

/// Whether the terminal is said to know no escape sequences.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// Whether a line on stderr can be written over.
pub(crate) fn rewrites_lines() -> bool {
    knows_sequences(&std::io::stderr())
}

/// Whether escape sequences do what they are for: not on a terminal that is said to know none, and not on a console or
/// a serial line, whose output is mostly kept by something that knows none either, whatever TERM says.
fn knows_sequences(stream: &(impl IsTerminal + AsFd)) -> bool {
    stream.is_terminal()
        && !is_dumb()
        && fstat(stream).is_ok_and(|stat| !is_console(major(stat.st_rdev), minor(stat.st_rdev)))
}

/// The device numbers of consoles and serial lines, by Documentation/admin-guide/devices.txt of
/// Linux.
fn is_console(major: u64, minor: u64) -> bool {
    match major {
        // The first 64 are virtual consoles, with a screen.
        4 => minor >= 64,
        // /dev/console
        5 => minor == 1,
        // USB modems, USB serial converters, serial ports of boards, hypervisor consoles
        166 | 188 | 204 | 229 => true,
        _ => false,
    }
}

/// Columns of the terminal on stderr, or of a readable line where there is none.
pub(crate) fn width() -> usize {
    let from_terminal = terminal_size_of(std::io::stderr());
    let columns = from_terminal.map(|(width, _)| usize::from(width.0));
    columns.unwrap_or(100).clamp(40, 160)
}

/// Columns of the terminal on stdout; where there is none what `COLUMNS` says, or a readable line.
pub(crate) fn columns_of_stdout() -> u32 {
    let from_terminal = terminal_size_of(std::io::stdout()).map(|(width, _)| u32::from(width.0));
    let named = || std::env::var("COLUMNS").ok()?.parse::<u32>().ok();
    from_terminal.or_else(named).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_lines_are_told_from_terminals_with_a_screen() {
        for (device, numbers) in [("ttyS0", (4, 64)), ("ttyAMA0", (204, 64)), ("hvc0", (229, 0))] {
            assert!(is_console(numbers.0, numbers.1), "{device}");
        }
        assert!(is_console(5, 1), "console");
        for (device, numbers) in [("tty1", (4, 1)), ("pts/3", (136, 3)), ("tty", (5, 0))] {
            assert!(!is_console(numbers.0, numbers.1), "{device}");
        }
    }
}
