//! What the terminal can show: colour and width.

use std::io::IsTerminal;

use flame_render::{ColourDepth, Palette};
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
        self.on(std::io::stderr().is_terminal())
    }

    fn on(self, is_terminal: bool) -> bool {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto | Color::Palette(_) => {
                let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
                !set("NO_COLOR") && !dumb && is_terminal
            }
        }
    }

    /// What colours to draw with on stdout.
    pub(crate) fn depth_of_stdout(self) -> ColourDepth {
        let says = std::env::var("COLORTERM").unwrap_or_default();
        match self.on(std::io::stdout().is_terminal()) {
            false => ColourDepth::None,
            true if says == "truecolor" || says == "24bit" => ColourDepth::True,
            true => ColourDepth::Palette,
        }
    }
}

/// Styles text, or leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(pub(crate) bool);

impl Paint {
    fn style(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.style("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.style("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.style("1;31", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.style("33", text)
    }

    pub(crate) fn orange(self, text: &str) -> String {
        self.style("38;5;208", text)
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
