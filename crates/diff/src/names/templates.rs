//! Template arguments, and what follows from them, taken out of names.

/// What stands in angle brackets and is a name all the same: Java's constructors, and what Python
/// and JavaScript call code without a name.
const NAMES: [&str; 9] = [
    "<init>",
    "<clinit>",
    "<module>",
    "<lambda>",
    "<listcomp>",
    "<dictcomp>",
    "<setcomp>",
    "<genexpr>",
    "<anonymous>",
];

/// `Vec<int, std::allocator<int>>` as `Vec<>`, and its method `push(int)` as `push(...)`; the brackets
/// of `<Vec<T> as Debug>::fmt` stay, and so do operators. Rust writes arguments of functions in one
/// way of mangling (`sort::<u8>`, `<Vec<u8>>::push`) and not in the other, so those go altogether.
pub(super) fn without_template_arguments(name: &str) -> String {
    let mut reader = Reader { common: String::with_capacity(name.len()), ..Reader::default() };
    let mut rest = name;
    while !rest.is_empty() {
        rest = reader.step(rest);
    }
    // Brackets that do not match: not a template, whatever it is.
    match reader.inside > 0 || reader.kept > 0 {
        true => name.to_owned(),
        false => without_brackets_of_type(reader.common),
    }
}

#[derive(Debug, Default)]
struct Reader {
    common: String,
    /// How many of the open brackets hold arguments.
    inside: u32,
    /// Brackets of qualified paths that are open outside of arguments.
    kept: u32,
    previous: char,
    /// Whether arguments were left out; types of parameters follow from them.
    was_template: bool,
}

impl Reader {
    /// Takes the next letter, or what belongs together, and gives what is left.
    fn step<'t>(&mut self, rest: &'t str) -> &'t str {
        let Some(letter) = rest.chars().next() else { return rest };
        let behind = &rest[letter.len_utf8()..];
        let word = match self.inside {
            0 => operator(rest).or_else(|| NAMES.into_iter().find(|name| rest.starts_with(name))),
            _ => None,
        };
        if let Some(word) = word {
            self.common.push_str(word);
            let behind = &rest[word.len()..];
            // `operator<< <char>` has arguments of its own behind a blank.
            let is_template = behind.starts_with(" <");
            self.common.push_str(if is_template { " " } else { "" });
            self.previous = if is_template { '_' } else { ' ' };
            return &behind[usize::from(is_template)..];
        }
        let is_arrow = letter == '>' && matches!(self.previous, '-' | '=');
        let is_named = self.previous.is_alphanumeric() || matches!(self.previous, '_' | ':');
        self.previous = letter;
        match letter {
            '<' if self.inside > 0 => self.inside += 1,
            '<' if is_named => {
                self.inside = 1;
                self.common.push('<');
            }
            '>' if self.inside > 0 && !is_arrow => {
                self.inside -= 1;
                if self.inside == 0 {
                    self.end_arguments();
                }
            }
            _ if self.inside > 0 => {}
            '(' if self.was_template => return self.parameters(rest),
            _ => {
                match letter {
                    '<' => self.kept += 1,
                    '>' if !is_arrow => self.kept = self.kept.saturating_sub(1),
                    _ => {}
                }
                self.common.push(letter);
            }
        }
        behind
    }

    fn end_arguments(&mut self) {
        self.common.push('>');
        self.was_template = true;
        if self.common.ends_with("::<>") {
            self.common.truncate(self.common.len() - "::<>".len());
        }
    }

    /// A list of parameters; of what is left out nothing is known but that there are some.
    fn parameters<'t>(&mut self, rest: &'t str) -> &'t str {
        let mut open = 0_u32;
        let end = rest.find(|letter| {
            open += u32::from(letter == '(');
            open -= u32::from(letter == ')');
            open == 0
        });
        let Some(end) = end else {
            // None of the brackets behind it ends, either: looking once is enough.
            self.was_template = false;
            return rest;
        };
        let list = &rest[..=end];
        let is_kept = matches!(list, "()" | "(anonymous namespace)");
        self.common.push_str(if is_kept { list } else { "(...)" });
        self.previous = ')';
        &rest[list.len()..]
    }
}

/// `<Vec<>>::push` as `Vec<>::push`; `<Vec<> as Debug>::fmt` stays.
fn without_brackets_of_type(name: String) -> String {
    let mut open = 0_u32;
    let end = name.find(|letter| {
        open += u32::from(letter == '<');
        open = open.saturating_sub(u32::from(letter == '>'));
        open == 0
    });
    match (name.strip_prefix('<'), end) {
        (Some(_), Some(end)) if name[end..].starts_with(">::") => {
            let (of, rest) = (&name[1..end], &name[end + 1..]);
            if of.contains(" as ") { name } else { format!("{of}{rest}") }
        }
        _ => name,
    }
}

/// The operator that a text starts with, where it has angle brackets.
fn operator(text: &str) -> Option<&str> {
    const OPERATORS: [&str; 10] = ["<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<"];
    let sign = text.strip_prefix("operator")?;
    let sign = OPERATORS.iter().find(|known| sign.starts_with(**known)).copied();
    let sign = sign.or_else(|| text["operator".len()..].starts_with('>').then_some(">"))?;
    text.get(.."operator".len() + sign.len())
}

#[cfg(test)]
mod tests {
    use super::super::Names;

    #[test]
    fn template_arguments_go_and_operators_stay() {
        let cases = [
            (
                "std::vector<int, std::allocator<int> >::push_back(int&&)",
                "std::vector<>::push_back(...)",
            ),
            (
                "<alloc::vec::Vec<T> as core::fmt::Debug>::fmt",
                "<alloc::vec::Vec<> as core::fmt::Debug>::fmt",
            ),
            ("collect::<Vec<u8>>", "collect"),
            ("<alloc::vec::Vec<u8>>::push", "alloc::vec::Vec<>::push"),
            ("alloc::vec::Vec<T,A>::push", "alloc::vec::Vec<>::push"),
            ("std::rt::lang_start::<()>::{closure#0}", "std::rt::lang_start::{closure#}"),
            ("std::rt::lang_start::{{closure}}", "std::rt::lang_start::{closure#}"),
            ("Set<T>::operator<(Set<T> const&)", "Set<>::operator<(...)"),
            ("operator<< <char>", "operator<< <>"),
            ("Ptr<T>::operator->()", "Ptr<>::operator->()"),
            ("call::<fn(u8) -> u16>", "call"),
            ("LApp;::<init>", "LApp;::<init>"),
            ("py::<module>:/srv/app.py", "py::<module>:/srv/app.py"),
            (
                "std::function<int (int)>::operator()(int) const",
                "std::function<>::operator()(...) const",
            ),
            ("get<A>::(anonymous namespace)::of(long)", "get<>::(anonymous namespace)::of(...)"),
            ("void sort<It, Less>(It, It, Less)", "void sort<>(...)"),
            ("sort(int*, int*)", "sort(int*, int*)"),
            ("f<int>(int (*)(long), char)", "f<>(...)"),
            ("f<int>(int", "f<>(int"),
            ("a < b", "a < b"),
            ("f<", "f<"),
            ("<unknown> in libc", "<unknown> in libc"),
            ("f<int", "f<int"),
            ("<f<int>::g", "<f<int>::g"),
            ("<f<int>() -> u8", "<f<int>() -> u8"),
        ];
        for (name, expect) in cases {
            assert_eq!(Names::AcrossBuilds.common(name), expect, "{name}");
        }
    }
}
