//! Attributes of single functions (`--nameattr`): links, identifiers, classes, tooltips.

use std::collections::BTreeMap;

use flame_profile::Label;

/// What a function's box gets besides what all boxes have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoxAttributes {
    /// The tooltip, instead of name and numbers.
    pub title: Option<String>,
    /// Where the box links to; only `http:`, `https:`, `mailto:` and relative links are kept.
    pub href: Option<String>,
    /// Where the link opens; `_top` when the box has a link and nothing is said.
    pub target: Option<String>,
    /// Further attributes of the box's group with their values, in order of their names, for
    /// example `id` and `class`. Names that could run a script are not among them.
    pub group: BTreeMap<String, String>,
    /// The same for the link.
    pub link: BTreeMap<String, String>,
}

/// Attributes by the name of the function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameAttributes {
    functions: BTreeMap<String, BoxAttributes>,
}

impl NameAttributes {
    /// Reads lines of `function TAB name=value TAB ...`, as flamegraph.pl's `--nameattr` takes
    /// them. The names are title, id, class, href, target, g_extra and a_extra; the last two hold
    /// attributes as XML writes them. Blank lines are skipped.
    ///
    /// Also returns a sentence for each line or attribute that was left out, and why.
    pub fn parse(text: &str) -> (NameAttributes, Vec<String>) {
        let mut attributes = NameAttributes::default();
        let mut complaints = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let mut complain =
                |what: String| complaints.push(format!("line {}: {what}", index + 1));
            let mut fields = line.split('\t');
            let name = fields.next().unwrap_or_default();
            let mut found = BoxAttributes::default();
            for field in fields.filter(|field| !field.is_empty()) {
                match field.split_once('=') {
                    Some((key, value)) => found.set(key.trim(), unquoted(value), &mut complain),
                    None => complain(format!("{field} is not name=value")),
                }
            }
            if attributes.functions.contains_key(name) {
                complain(format!("{name} has attributes already; the last ones count"));
            }
            attributes.functions.insert(name.to_owned(), found);
        }
        (attributes, complaints)
    }

    /// The attributes of a function; `None` = it has none. They may be given by its name alone or
    /// with the annotation that folded text has.
    pub fn of(&self, label: &Label) -> Option<&BoxAttributes> {
        let annotation = label.kind.annotation();
        let annotated = (!annotation.is_empty() && !self.is_empty())
            .then(|| self.functions.get(&format!("{}{annotation}", label.name)));
        annotated.flatten().or_else(|| self.functions.get(&label.name))
    }

    /// Whether no function has any.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }
}

impl BoxAttributes {
    fn set(&mut self, key: &str, value: &str, complain: &mut impl FnMut(String)) {
        match key {
            "title" => self.title = Some(value.to_owned()),
            "target" => self.target = Some(value.to_owned()),
            "href" if is_harmless(value) => self.href = Some(value.to_owned()),
            "href" => complain(format!("{value} is not a link to a page")),
            "id" if is_own_id(value) => complain(own_id(value)),
            "id" | "class" => {
                self.group.insert(key.to_owned(), value.to_owned());
            }
            "g_extra" => add_all(value, &mut self.group, complain),
            "a_extra" => add_all(value, &mut self.link, complain),
            _ => complain(format!(
                "no attribute {key}: there are title, id, class, href, target, g_extra and a_extra"
            )),
        }
    }
}

fn unquoted(value: &str) -> &str {
    let value = value.trim();
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

/// Whether a link leads to a page and cannot run a script in this one.
fn is_harmless(link: &str) -> bool {
    let start = link.split(['/', '?', '#']).next().unwrap_or_default();
    match start.split_once(':') {
        None => true,
        Some((scheme, _)) => {
            ["http", "https", "mailto"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
        }
    }
}

/// The identifiers of the picture's own elements, which the viewer finds them by.
const OWN_IDS: [&str; 34] = [
    "another",
    "background",
    "by",
    "details",
    "flame-data",
    "flip",
    "foot",
    "footer",
    "frames",
    "gone-below",
    "head",
    "heads",
    "help",
    "ignorecase",
    "legend",
    "matched",
    "more",
    "next",
    "order",
    "panel",
    "previous",
    "search",
    "searches",
    "sides",
    "standing",
    "status",
    "strips",
    "subtitle",
    "thin",
    "thin-gone",
    "thin-hit",
    "title",
    "undo",
    "unzoom",
];

fn is_own_id(id: &str) -> bool {
    let is_numbered = |start: &str| {
        id.strip_prefix(start).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    OWN_IDS.contains(&id) || id.starts_with("ground-") || is_numbered("gone") || is_numbered("less")
}

fn own_id(id: &str) -> String {
    format!("the id {id} is left out: the picture has an element of that id")
}

/// Adds `name="value" name='value' ...`.
fn add_all(text: &str, to: &mut BTreeMap<String, String>, complain: &mut impl FnMut(String)) {
    let mut rest = text.trim();
    while !rest.is_empty() {
        let Some((name, value, after)) = next_attribute(rest) else {
            complain(format!("{rest} is not name=\"value\""));
            return;
        };
        if name == "id" && is_own_id(value) {
            complain(own_id(value));
        } else if is_safe_name(name) {
            to.insert(name.to_owned(), value.to_owned());
        } else {
            complain(format!("the attribute {name} is left out: it could run a script"));
        }
        rest = after.trim_start();
    }
}

fn next_attribute(text: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = text.split_once('=')?;
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let (value, after) = rest[1..].split_once(quote)?;
    Some((name.trim(), value, after))
}

/// Letters, digits, `-` and `_` only, and no event handler, style or reference.
fn is_safe_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let banned = lower.starts_with("on") || ["href", "style", "src", "xmlns"].contains(&&*lower);
    starts && name.chars().all(plain) && !banned
}

#[cfg(test)]
mod tests {
    use flame_profile::FrameKind;

    use super::*;

    #[test]
    fn fields_are_separated_by_tabs_and_may_be_quoted() {
        let text = "main\thref=\"https://example.com/?a=b\"\ttitle=the entry\n\n\
                    read\tid=r\tclass=io\tg_extra=data-x=\"1\" data-y='2'\n";
        let (attributes, complaints) = NameAttributes::parse(text);
        assert_eq!(complaints, [""; 0]);
        let of = |name: &str, kind| attributes.of(&Label { name: name.to_owned(), kind });
        let main = of("main", FrameKind::User).unwrap();
        assert_eq!(main.href.as_deref(), Some("https://example.com/?a=b"));
        assert_eq!(main.title.as_deref(), Some("the entry"));
        let read: Vec<_> = of("read", FrameKind::Kernel).unwrap().group.iter().collect();
        let read: Vec<_> = read.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(read, [("class", "io"), ("data-x", "1"), ("data-y", "2"), ("id", "r")]);
        assert_eq!(of("write", FrameKind::User), None);
    }

    #[test]
    fn names_may_be_annotated() {
        let (attributes, _) = NameAttributes::parse("read_[k]\ttitle=kernel\nread\ttitle=any\n");
        let title = |kind| {
            let label = Label { name: "read".to_owned(), kind };
            attributes.of(&label).unwrap().title.clone().unwrap()
        };
        assert_eq!((&*title(FrameKind::Kernel), &*title(FrameKind::Jit)), ("kernel", "any"));
    }

    #[test]
    fn what_could_run_a_script_is_left_out_and_said() {
        let text = "f\thref=javascript:alert(1)\tg_extra=onclick=\"alert(1)\"\tstyle=x\todd";
        let (attributes, complaints) = NameAttributes::parse(text);
        let f = Label { name: "f".to_owned(), kind: FrameKind::User };
        assert_eq!(attributes.of(&f), Some(&BoxAttributes::default()));
        assert_eq!(complaints.len(), 4, "{complaints:?}");
        assert_eq!(complaints[0], "line 1: javascript:alert(1) is not a link to a page");
    }
}
