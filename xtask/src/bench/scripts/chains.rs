//! What profilers say who called whom, held against the truth.

use std::collections::{BTreeMap, HashSet};

use super::peers::{Format, Peer};

#[expect(dead_code, reason = "the tests use all of it")]
#[path = "../../../../tests/support/callers.rs"]
mod callers;

use callers::Callers;

/// Who may call whom in the program of a language. Profilers differ in whether they say the class of a method: names
/// are compared without.
#[derive(Debug)]
pub(super) struct Truth {
    root: &'static str,
    /// The end of its file's name.
    file: &'static str,
    /// The caller and whom it calls.
    calls: HashSet<(String, String)>,
    /// All that is called, and so is to have a caller.
    known: HashSet<String>,
}

impl Truth {
    pub(super) fn of(language: &str) -> Truth {
        let (root, file, tables, spinners): (_, _, &[&Callers], &[&str]) = match language {
            "python" => {
                ("<module>", "script.py", &[callers::python::LEGAL], callers::python::SPINNERS)
            }
            "ruby" => ("<main>", "script.rb", &[callers::ruby::LEGAL], callers::ruby::SPINNERS),
            _ => (
                "<main>",
                "script.php",
                &[callers::php::LEGAL, callers::php::MORE],
                callers::php::SPINNERS,
            ),
        };
        let entries = tables.iter().copied().flatten().copied().chain([("spin", spinners)]);
        let calls: HashSet<(String, String)> = entries
            .flat_map(|(callee, callers)| {
                callers.iter().map(move |caller| (bare(caller), bare(callee)))
            })
            .collect();
        let known = calls.iter().map(|(_, callee)| callee.clone()).collect();
        Truth { root, file, calls, known }
    }

    /// Whether a stack of functions of the program, outermost first, begins with its root, and the first call of it that is
    /// not possible.
    fn judge<'n>(&self, names: &'n [String]) -> (bool, Option<&'n [String]>) {
        let is_possible = |pair: &[String]| match pair {
            [caller, callee] => self.calls.contains(&(caller.clone(), callee.clone())),
            _ => true,
        };
        let starts = names.first().is_some_and(|name| name == self.root);
        (starts, names.windows(2).find(|pair| !is_possible(pair)))
    }
}

/// A name without the class: `block in Number.of` is `block in of`.
fn bare(name: &str) -> String {
    let (context, name) = match name.rsplit_once(" in ") {
        Some((context, name)) => (format!("{context} in "), name),
        None => (String::new(), name),
    };
    // A class may have been made by the same file, and has its path in its name then.
    let is_in_brackets = name.starts_with(['<', '{']);
    let behind = |separator| name.rsplit_once(separator).map(|(_, name)| name);
    let method = behind("::").or_else(|| behind("#")).or_else(|| behind("."));
    let method = method.filter(|method| !is_in_brackets && !method.is_empty());
    format!("{context}{}", method.unwrap_or(name))
}

/// The samples of some recordings, by what they say.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// From the root on, all calls possible.
    whole: u64,
    /// With a call that the program does not make.
    pub(super) wrong: u64,
    /// These calls.
    impossible: BTreeMap<String, u64>,
    /// What is neither: something is missing, and that is said.
    parts: u64,
    /// Samples that the profiler itself says it has dropped.
    pub(super) lost: u64,
}

impl Seen {
    pub(super) fn all(&self) -> u64 {
        self.whole + self.wrong + self.parts + self.lost
    }

    /// The impossible calls that are seen most often, for who doubts the count.
    pub(super) fn worst(&self) -> String {
        let mut calls: Vec<(&String, &u64)> = self.impossible.iter().collect();
        calls.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let calls = calls.iter().take(3).map(|(call, count)| format!("{call} ({count})"));
        calls.collect::<Vec<_>>().join(", ")
    }

    pub(super) fn whole_share(&self) -> f64 {
        self.whole as f64 * 100.0 / self.all().max(1) as f64
    }

    /// Adds what a profiler wrote.
    pub(super) fn add(&mut self, peer: &Peer, text: &str, truth: &Truth) {
        for (stack, weight) in stacks(peer.format, text) {
            let is_marked =
                stack.iter().any(|frame| MARKS.iter().any(|mark| frame.starts_with(mark)));
            let names: Vec<String> =
                stack.iter().filter_map(|frame| function(peer.format, frame, truth)).collect();
            let count = match truth.judge(&names) {
                (_, Some(call)) if !is_marked => {
                    *self.impossible.entry(call.join(" calls ")).or_default() += weight;
                    &mut self.wrong
                }
                (true, None) if !is_marked => &mut self.whole,
                _ => &mut self.parts,
            };
            *count += weight;
        }
    }
}

/// What flame puts where something is missing.
const MARKS: [&str; 6] =
    ["[python:", "[ruby:", "[php:", "[callers not read]", "[function not read]", "[truncated"];

/// Stacks, outermost frame first, with their weights.
fn stacks(format: Format, text: &str) -> Vec<(Vec<&str>, u64)> {
    match format {
        Format::Phpspy => {
            let traces = text.split("\n\n").map(|trace| (phpspy_frames(trace), 1));
            traces.filter(|(frames, _)| !frames.is_empty()).collect()
        }
        _ => text.lines().filter_map(folded).collect(),
    }
}

fn folded(line: &str) -> Option<(Vec<&str>, u64)> {
    let (stack, count) = line.rsplit_once(' ')?;
    Some((stack.split(';').collect(), count.parse().ok()?))
}

/// The frames of lines `2 by_key /srv/shop.php:44`, innermost first.
fn phpspy_frames(trace: &str) -> Vec<&str> {
    let frames = trace.lines().rev().filter_map(|line| line.split_once(' '));
    frames.filter(|(number, _)| number.parse::<u32>().is_ok()).map(|(_, frame)| frame).collect()
}

/// The name of a frame of the program's own file, or of a function in C that the truth knows.
fn function(format: Format, frame: &str, truth: &Truth) -> Option<String> {
    let (name, place) = match format {
        Format::Flame => {
            let (name, place) = frame.strip_suffix(")_[s]")?.rsplit_once(" (")?;
            (name, place)
        }
        Format::PySpy => frame.strip_suffix(')')?.rsplit_once(" (")?,
        Format::Rbspy => frame.rsplit_once(" - ")?,
        Format::Phpspy => frame.rsplit_once(' ')?,
    };
    let file = place.rsplit_once(':').map_or(place, |(file, _)| file);
    let file = file.rsplit('/').next().unwrap_or(file);
    // What stands in a text that Ruby evaluates.
    let name = if file == "(eval)" { format!("{} in a text", bare(name)) } else { bare(name) };
    let is_text = file == "(eval)" && truth.known.contains(&name);
    let is_own = file == truth.file || file == "included.php";
    // Internal functions of PHP are in its table; methods in C of Ruby are in none, and not all profilers have them.
    let is_internal = matches!(file, "[internal]" | "<internal>") && truth.known.contains(&name);
    (is_own || is_internal || is_text).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(language: &str, format: Format, text: &str, expect: (u64, u64, u64)) {
        let mut seen = Seen::default();
        seen.add(&Peer::of(format), text, &Truth::of(language));
        assert_eq!((seen.whole, seen.wrong, seen.parts), expect, "{text}");
    }

    #[test]
    fn chains_of_all_profilers_are_judged_alike() {
        check(
            "python",
            Format::Flame,
            "main;<module> (script.py:1)_[s];main (script.py:9)_[s];chunks (script.py:8)_[s] 3\n\
             main;<module> (script.py:1)_[s];chunks (script.py:8)_[s] 2\n\
             main;[python: not read in time] 1\n",
            (3, 2, 1),
        );
        check(
            "python",
            Format::PySpy,
            "<module> (script.py:190);main (script.py:183);chunks (script.py:140) 4\n\
             _start (python3.11);<module> (script.py:190);spin (script.py:12) 1\n\
             spin (script.py:12) 7\n",
            (4, 1, 7),
        );
        check(
            "ruby",
            Format::Rbspy,
            "<main> - /srv/script.rb:9;chunks - /srv/script.rb:8;send [c function] - (unknown):0;shares - script.rb:7 2\n\
             <main> - /srv/script.rb:9;shares - script.rb:7 1\n",
            (2, 1, 0),
        );
        check(
            "ruby",
            Format::Flame,
            "ruby;<main> (script.rb:9)_[s];chunks (script.rb:8)_[s];callbacks (script.rb:7)_[s];\
             Object#texts (script.rb:6)_[s];Kernel#eval ([C])_[s];Object#texts ((eval):1)_[s];\
             Object#spin (script.rb:5)_[s] 2\n",
            (2, 0, 0),
        );
        check(
            "php",
            Format::Phpspy,
            "0 by_key /srv/script.php:24\n1 usort <internal>:-1\n2 order /srv/script.php:36\n3 callbacks /s/script.php:1\n\
             4 chunks /s/script.php:2\n5 main /s/script.php:3\n6 <main> /s/script.php:4\n# - - -\n\n\
             0 by_key /srv/script.php:24\n1 order /srv/script.php:36\n\n",
            (1, 1, 0),
        );
    }

    #[test]
    fn names_are_compared_without_classes() {
        let cases = [
            ("Number::__get", "__get"),
            ("block in Number.of", "block in of"),
            ("Special#<=>", "<=>"),
            ("{closure}", "{closure}"),
            ("block (2 levels) in <class:Number>", "block (2 levels) in <class:Number>"),
        ];
        for (name, expect) in cases {
            assert_eq!(bare(name), expect);
        }
    }
}
