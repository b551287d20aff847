//! The text of a pattern into a tree.

use super::Assertion;
use super::set::{Set, class, is_space, is_word};

/// The most repetitions that an interval may ask for.
const MOST_REPEATS: u32 = 0x7fff;
/// The deepest groups may be nested.
const DEEPEST: usize = 200;

/// What is wrong with a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    #[error("there is a \\( without its \\)")]
    OpenGroup,
    #[error("there is a \\) without its \\(")]
    ClosedGroup,
    #[error("there is a [ without its ]")]
    OpenBracket,
    #[error("there is a \\{{ without its \\}}")]
    OpenInterval,
    #[error("between \\{{ and \\}} there has to be M, M, or M,N with M not above N")]
    BadInterval,
    #[error("there is nothing to repeat before * or \\{{")]
    NothingToRepeat,
    #[error("a range in [] ends before it starts")]
    BadRange,
    #[error("there is no class of characters of that name")]
    NoSuchClass,
    #[error("there is no such collating element")]
    NoSuchElement,
    #[error("there is no group of that number before \\1 to \\9")]
    NoSuchGroup,
    #[error("it ends with a backslash")]
    TrailingBackslash,
    #[error("it is too large")]
    TooLarge,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    Byte(Set),
    Assert(Assertion),
    Group(usize, Box<Node>),
    Reference(usize),
    /// The smallest and the largest number of repetitions.
    Repeat(Box<Node>, u32, Option<u32>),
    Sequence(Vec<Node>),
    Either(Vec<Node>),
}

pub(super) struct Parsed {
    pub(super) node: Node,
    /// How many groups there are.
    pub(super) groups: usize,
    pub(super) has_references: bool,
}

pub(super) fn parse(pattern: &[u8]) -> Result<Parsed, Problem> {
    let mut parser =
        Parser { pattern, at: 0, depth: 0, groups: 0, closed: Vec::new(), has_references: false };
    let node = parser.alternatives()?;
    match parser.at == pattern.len() {
        true => Ok(Parsed { node, groups: parser.groups, has_references: parser.has_references }),
        false => Err(Problem::ClosedGroup),
    }
}

struct Parser<'p> {
    pattern: &'p [u8],
    at: usize,
    depth: usize,
    groups: usize,
    /// The numbers of the groups that have ended.
    closed: Vec<usize>,
    has_references: bool,
}

impl Parser<'_> {
    fn rest(&self) -> &[u8] {
        &self.pattern[self.at..]
    }

    fn takes(&mut self, text: &[u8]) -> bool {
        let found = self.rest().starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    /// Up to the end, or to a `\)`.
    fn alternatives(&mut self) -> Result<Node, Problem> {
        let closed_before = self.closed.clone();
        let mut branches = vec![self.sequence()?];
        while self.takes(br"\|") {
            // No branch can refer to groups of another one.
            let closed = std::mem::replace(&mut self.closed, closed_before.clone());
            branches.push(self.sequence()?);
            self.closed.extend(closed);
        }
        match branches.len() {
            1 => Ok(branches.remove(0)),
            _ => Ok(Node::Either(branches)),
        }
    }

    fn sequence(&mut self) -> Result<Node, Problem> {
        let mut nodes = Vec::new();
        if self.takes(b"^") {
            nodes.push(Node::Assert(Assertion::Start));
        }
        loop {
            let rest = self.rest();
            if rest.is_empty() || rest.starts_with(br"\|") || rest.starts_with(br"\)") {
                return Ok(Node::Sequence(nodes));
            }
            let node = self.atom()?;
            let repeats = !matches!(node, Node::Assert(_));
            nodes.push(if repeats { self.repeated(node)? } else { node });
        }
    }

    /// What follows an atom: `*`, `\+`, `\?` or an interval.
    fn repeated(&mut self, mut node: Node) -> Result<Node, Problem> {
        let mut is_repeated = false;
        loop {
            let rest = self.rest();
            let is_strict = rest.starts_with(b"*") || rest.starts_with(br"\{");
            if is_repeated && is_strict {
                return Err(Problem::NothingToRepeat);
            }
            let (least, most) = if self.takes(b"*") {
                (0, None)
            } else if self.takes(br"\+") {
                (1, None)
            } else if self.takes(br"\?") {
                (0, Some(1))
            } else if self.takes(br"\{") {
                self.interval()?
            } else {
                return Ok(node);
            };
            node = Node::Repeat(Box::new(node), least, most);
            is_repeated = true;
        }
    }

    /// `M\}`, `M,\}`, `,N\}` or `M,N\}`.
    fn interval(&mut self) -> Result<(u32, Option<u32>), Problem> {
        let least = self.number()?;
        let has_comma = self.takes(b",");
        let most = if has_comma { self.number()? } else { least };
        if self.rest().is_empty() {
            return Err(Problem::OpenInterval);
        }
        let is_empty = least.is_none() && !has_comma;
        let least = least.unwrap_or(0);
        if !self.takes(br"\}") || is_empty || most.is_some_and(|most| most < least) {
            return Err(Problem::BadInterval);
        }
        match most.unwrap_or(least) > MOST_REPEATS {
            true => Err(Problem::TooLarge),
            false => Ok((least, most)),
        }
    }

    fn number(&mut self) -> Result<Option<u32>, Problem> {
        let digits = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = &self.rest()[..digits];
        let add = |sum: u32, byte: &u8| (sum * 10 + u32::from(byte - b'0')).min(MOST_REPEATS + 1);
        let number = (digits > 0).then(|| text.iter().fold(0, add));
        self.at += digits;
        Ok(number)
    }

    fn atom(&mut self) -> Result<Node, Problem> {
        let is_only = |set| Node::Byte(set);
        let rest = self.rest();
        let (first, second) = (rest[0], rest.get(1).copied());
        self.at += 1;
        match first {
            b'.' => Ok(is_only(Set::of(|_| true))),
            b'[' => self.bracket().map(is_only),
            b'$' if self.ends_branch() => Ok(Node::Assert(Assertion::End)),
            b'\\' => {
                self.at += 1;
                self.escape(second.ok_or(Problem::TrailingBackslash)?)
            }
            other => Ok(is_only(Set::of(|byte| byte == other))),
        }
    }

    fn ends_branch(&self) -> bool {
        let rest = self.rest();
        rest.is_empty() || rest.starts_with(br"\|") || rest.starts_with(br"\)")
    }

    fn escape(&mut self, byte: u8) -> Result<Node, Problem> {
        let assertion = match byte {
            b'(' => return self.group(),
            b'{' => return Err(Problem::NothingToRepeat),
            b'1'..=b'9' => {
                let group = usize::from(byte - b'0');
                self.has_references = true;
                let found = self.closed.contains(&group);
                return found.then_some(Node::Reference(group)).ok_or(Problem::NoSuchGroup);
            }
            b'w' => return Ok(Node::Byte(Set::of(is_word))),
            b'W' => return Ok(Node::Byte(Set::of(is_word).inverted())),
            b's' => return Ok(Node::Byte(Set::of(is_space))),
            b'S' => return Ok(Node::Byte(Set::of(is_space).inverted())),
            b'<' => Assertion::WordStart,
            b'>' => Assertion::WordEnd,
            b'b' => Assertion::WordEdge,
            b'B' => Assertion::NoWordEdge,
            b'`' => Assertion::Start,
            b'\'' => Assertion::End,
            other => return Ok(Node::Byte(Set::of(|byte| byte == other))),
        };
        Ok(Node::Assert(assertion))
    }

    fn group(&mut self) -> Result<Node, Problem> {
        self.groups += 1;
        let number = self.groups;
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Problem::TooLarge);
        }
        let inner = self.alternatives()?;
        if !self.takes(br"\)") {
            return Err(Problem::OpenGroup);
        }
        self.depth -= 1;
        self.closed.push(number);
        Ok(Node::Group(number, Box::new(inner)))
    }

    /// Behind a `[`.
    fn bracket(&mut self) -> Result<Set, Problem> {
        let mut set = Set::default();
        let is_inverted = self.takes(b"^");
        let mut is_first = true;
        loop {
            if !is_first && self.takes(b"]") {
                return Ok(if is_inverted { set.inverted() } else { set });
            }
            is_first = false;
            if self.takes(b"[:") {
                let name = self.until(b":]")?;
                set.unite(class(&name).ok_or(Problem::NoSuchClass)?);
                let rest = self.rest();
                if rest.starts_with(b"-") && rest.get(1).is_some_and(|byte| *byte != b']') {
                    return Err(Problem::BadRange);
                }
                continue;
            }
            let start = self.element()?;
            let rest = self.rest();
            let is_range = rest.starts_with(b"-") && rest.get(1).is_some_and(|byte| *byte != b']');
            let end = if is_range { self.range_end()? } else { start };
            if end < start {
                return Err(Problem::BadRange);
            }
            (start..=end).for_each(|byte| set.insert(byte));
        }
    }

    fn range_end(&mut self) -> Result<u8, Problem> {
        self.at += 1;
        match self.rest().starts_with(b"[:") {
            true => Err(Problem::BadRange),
            false => self.element(),
        }
    }

    /// A byte, `[.x.]` or `[=x=]`.
    fn element(&mut self) -> Result<u8, Problem> {
        for (open, close) in [(b"[.", b".]"), (b"[=", b"=]")] {
            if self.takes(open) {
                let name = self.until(close)?;
                return match *name {
                    [byte] => Ok(byte),
                    _ => Err(Problem::NoSuchElement),
                };
            }
        }
        let byte = self.rest().first().copied().ok_or(Problem::OpenBracket)?;
        self.at += 1;
        Ok(byte)
    }

    fn until(&mut self, close: &[u8; 2]) -> Result<Vec<u8>, Problem> {
        let found = self.rest().windows(2).position(|window| window == close);
        let end = found.ok_or(Problem::OpenBracket)?;
        let name = self.rest()[..end].to_vec();
        self.at += end + 2;
        Ok(name)
    }
}
