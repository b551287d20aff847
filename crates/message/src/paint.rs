//! Words in colour, for terminals.

/// Styles text, or leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub struct Paint(pub bool);

impl Paint {
    fn style(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Bold.
    pub fn bold(self, text: &str) -> String {
        self.style("1", text)
    }

    /// Less bright.
    pub fn dim(self, text: &str) -> String {
        self.style("2", text)
    }

    /// Bold and red.
    pub fn red(self, text: &str) -> String {
        self.style("1;31", text)
    }

    /// Green.
    pub fn green(self, text: &str) -> String {
        self.style("32", text)
    }

    /// Yellow.
    pub fn yellow(self, text: &str) -> String {
        self.style("33", text)
    }

    /// Orange.
    pub fn orange(self, text: &str) -> String {
        self.style("38;5;208", text)
    }
}
