//! Files of `include-func` and `exclude-func` rules.
//!
//! Each line has a rule, a blank, and a basic regular expression without blanks that is searched
//! for in names; what follows is ignored, and so are empty lines and those that start with `#`. All
//! functions are kept unless the last rule that matches says otherwise.

use crate::bre::Regex;
use crate::error::UbootError;

/// proftool reads lines in pieces of this many bytes.
const PROFTOOL_LINE: usize = 199;

/// How much of a line that is not a rule is shown.
const SHOWN: usize = 40;

/// Which functions are kept.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<(Keep, Regex)>,
}

/// What a rule does to the functions that it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    Yes,
    No,
}

/// Whether a file is read as it is, or in pieces as proftool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Lines of any length, which may end with CR LF.
    Whole,
    /// Like proftool: anything after 199 bytes is a line of its own, and CR is part of a pattern.
    Proftool,
}

impl Rules {
    /// Reads the rules of a file.
    ///
    /// # Errors
    /// [`UbootError::Rule`] for the first line that is none.
    pub fn parse(text: &[u8], reading: Reading) -> Result<Rules, UbootError> {
        let mut rules = Vec::new();
        let longest = if reading == Reading::Whole { usize::MAX } else { PROFTOOL_LINE };
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        for (line, number) in lines.flat_map(|line| line.chunks(longest)).zip(1..) {
            let rule = parse_line(line, reading)
                .map_err(|problem| UbootError::Rule { line: number, problem })?;
            rules.extend(rule);
        }
        Ok(Rules { rules })
    }

    /// Whether a function of that name is kept.
    pub fn keeps(&self, name: &[u8]) -> bool {
        let last = self.rules.iter().rev().find(|(_, regex)| regex.is_in(name));
        last.is_none_or(|(keep, _)| *keep == Keep::Yes)
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are no rules, so that all functions are kept.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

fn parse_line(line: &[u8], reading: Reading) -> Result<Option<(Keep, Regex)>, String> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = match reading {
        Reading::Whole => line.strip_suffix(b"\r").unwrap_or(line),
        Reading::Proftool => line,
    };
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let mut words = line.split(is_blank).filter(|word| !word.is_empty());
    let keep = match words.next() {
        None => return Ok(None),
        Some([b'#', ..]) => return Ok(None),
        Some(b"include-func") => Keep::Yes,
        Some(b"exclude-func") => Keep::No,
        Some(other) => {
            let shown = String::from_utf8_lossy(&other[..other.len().min(SHOWN)]);
            let rest = if other.len() > SHOWN { "..." } else { "" };
            return Err(format!("{shown}{rest} is neither include-func nor exclude-func"));
        }
    };
    let pattern = words.next().ok_or("there is no pattern after the rule")?;
    let shown = String::from_utf8_lossy(pattern);
    let regex = Regex::parse(pattern).map_err(|error| format!("pattern {shown}: {error}"))?;
    Ok(Some((keep, regex)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, kept: &[&str], dropped: &[&str]) {
        let rules = Rules::parse(text.as_bytes(), Reading::Whole).unwrap();
        for name in kept {
            assert!(rules.keeps(name.as_bytes()), "{name} is dropped by {text:?}");
        }
        for name in dropped {
            assert!(!rules.keeps(name.as_bytes()), "{name} is kept by {text:?}");
        }
    }

    #[track_caller]
    fn refuses(text: &[u8], reading: Reading, line: u64, problem: &str) {
        let error = Rules::parse(text, reading).unwrap_err();
        assert_eq!(error.to_string(), format!("line {line}: {problem}"));
    }

    #[test]
    fn the_last_rule_that_matches_decides() {
        check("", &["main"], &[]);
        check("include-func main\n", &["main", "puts"], &[]);
        check("exclude-func .\ninclude-func ^put\n", &["puts", "putc"], &["main", "input"]);
        check("include-func puts\nexclude-func put\n", &["main"], &["puts", "fputs"]);
        check("exclude-func ^do_v\ninclude-func ^do_version$\n", &["do_version"], &["do_vbe"]);
    }

    #[test]
    fn blanks_comments_and_what_follows_a_pattern_are_ignored() {
        check(" \t\n# exclude-func .\n\texclude-func\t ^mem  and more\n\n", &["puts"], &["memcpy"]);
        check("exclude-func puts", &["main"], &["puts"]);
        check("exclude-func puts$\r\n", &[], &["puts"]);
    }

    #[test]
    fn a_line_that_is_no_rule_is_named() {
        let whole = Reading::Whole;
        refuses(b"\nexclude main\n", whole, 2, "exclude is neither include-func nor exclude-func");
        refuses(b"exclude-func \n", whole, 1, "there is no pattern after the rule");
        refuses(b"exclude-func a\\(b\n", whole, 1, "pattern a\\(b: there is a \\( without its \\)");
    }

    #[test]
    fn proftool_takes_the_rest_of_a_long_line_for_another_line() {
        let long = format!("exclude-func {}\n", "a".repeat(300));
        assert!(Rules::parse(long.as_bytes(), Reading::Whole).is_ok());
        // Its beginning is quoted.
        let problem = format!("{}... is neither include-func nor exclude-func", "a".repeat(40));
        refuses(long.as_bytes(), Reading::Proftool, 2, &problem);
        let windows = Rules::parse(b"exclude-func puts$\r\n", Reading::Proftool).unwrap();
        assert!(windows.keeps(b"puts"));
    }
}
