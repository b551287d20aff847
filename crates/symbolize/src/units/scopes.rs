//! Turns the place of an entry into what it is declared in: `m1::S` for a method without a linkage
//! name.
//!
//! Compilers leave out the linkage name of what nobody else can link to: members of an anonymous
//! namespace, lambdas and local classes. Their plain names alone (`run`, `operator()`) would put
//! different functions into one box.
//!
//! Sources: DWARF 5, sections 3.2, 3.3 and 5.7.

use gimli::DwTag;

/// How many levels of scopes are named; sources have a handful.
const MAX_LEVELS: usize = 32;

/// The longest name with its scopes.
const MAX_LEN: usize = 4096;

/// The scopes of one unit, in the order of their entries.
#[derive(Debug, Default)]
pub(crate) struct Scopes<'d> {
    scopes: Vec<Scope<'d>>,
    /// Those whose children are being read, with their depth.
    open: Vec<(isize, usize)>,
}

/// A namespace, a type or a function that has others inside.
#[derive(Debug)]
struct Scope<'d> {
    /// Where its entry stands in the unit.
    start: usize,
    /// Where the first entry after its last child stands.
    end: usize,
    parent: Option<usize>,
    name: &'d [u8],
}

/// Whether an entry of that kind may be a scope that is part of names.
pub(crate) fn is_scope(tag: DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_namespace
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_structure_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_subprogram
    )
}

impl<'d> Scopes<'d> {
    /// Notes that an entry of that depth stands at `at`: scopes as deep are over.
    pub(crate) fn pass(&mut self, at: usize, depth: isize) {
        while let Some((_, scope)) = self.open.pop_if(|(open, _)| *open >= depth) {
            self.scopes[scope].end = at;
        }
    }

    /// Adds the scope whose entry was passed last; `name` is empty where it has none.
    pub(crate) fn enter(&mut self, at: usize, depth: isize, tag: DwTag, name: &'d [u8]) {
        let name = match (name, tag) {
            ([], gimli::DW_TAG_namespace) => &b"(anonymous namespace)"[..],
            // GCC gives the types of lambdas no name.
            ([], tag) if tag != gimli::DW_TAG_subprogram => b"{unnamed type}",
            (name, _) => name,
        };
        let parent = self.open.last().map(|(_, scope)| *scope);
        self.open.push((depth, self.scopes.len()));
        self.scopes.push(Scope { start: at, end: usize::MAX, parent, name });
    }

    /// A name with the scopes of the entry that it is of; `None` where it stands in none.
    pub(crate) fn qualified(&self, at: usize, name: &[u8]) -> Option<Vec<u8>> {
        // The entry itself may be a scope: it starts where the entry stands.
        let before = self.scopes.partition_point(|scope| scope.start < at);
        let mut next = before.checked_sub(1);
        while let Some(index) = next.filter(|index| self.scopes[*index].end <= at) {
            next = self.scopes[index].parent;
        }
        let mut parts = vec![name];
        while let Some(index) = next.filter(|_| parts.len() <= MAX_LEVELS) {
            let scope = &self.scopes[index];
            if !scope.name.is_empty() {
                parts.push(scope.name);
            }
            next = scope.parent;
        }
        parts.reverse();
        let qualified = parts.join(&b"::"[..]);
        (parts.len() > 1 && qualified.len() <= MAX_LEN).then_some(qualified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_build::Workshop;

    #[test]
    fn a_name_has_the_scopes_around_its_entry() {
        let mut scopes = Scopes::default();
        let (space, class, function) =
            (gimli::DW_TAG_namespace, gimli::DW_TAG_class_type, gimli::DW_TAG_subprogram);
        // namespace m { namespace { struct S { f } } g } main { <lambda> { operator() } } h
        let entries: [(usize, isize, _, &[u8]); 9] = [
            (10, 1, space, b"m"),
            (20, 2, space, b""),
            (30, 3, class, b"S"),
            (40, 4, function, b"f"),
            (50, 2, function, b"g"),
            (60, 1, function, b"main"),
            (70, 2, class, b"<lambda(int)>"),
            (80, 3, function, b"operator()"),
            (90, 1, function, b"h"),
        ];
        for (at, depth, tag, name) in entries {
            scopes.pass(at, depth);
            scopes.enter(at, depth, tag, name);
        }
        let name = |at, name: &str| scopes.qualified(at, name.as_bytes()).map(String::from_utf8);
        let expect = |text: &str| Some(Ok(text.to_owned()));
        assert_eq!(name(40, "f"), expect("m::(anonymous namespace)::S::f"));
        assert_eq!(name(50, "g"), expect("m::g"));
        assert_eq!(name(60, "main"), None);
        assert_eq!(name(80, "operator()"), expect("main::<lambda(int)>::operator()"));
        assert_eq!(name(90, "h"), None);
        assert_eq!(name(5, "before"), None);
    }

    #[test]
    fn what_nobody_can_link_to_has_its_scopes() {
        let source = "
            namespace { template<class T> struct Q {
                __attribute__((always_inline)) int run(int x) {
                    __asm__ volatile(\"nop\");
                    return x + sizeof(T);
                }
            }; }
            extern \"C\" __attribute__((noinline)) int hidden(int x) { return Q<BYTES>().run(x) + 7; }
            int main(int count, char **) { return hidden(count); }";
        let shop = Workshop::new("scopes");
        for kind in ["char", "short"] {
            shop.write("a.cpp", &source.replace("BYTES", kind));
            if !shop.run("g++ -O2 -g -o prog a.cpp") {
                return;
            }
            let run = shop.frames("prog", shop.nop("prog"));
            let type_name = if kind == "char" { "char" } else { "short int" };
            let expect = format!("(anonymous namespace)::Q<{type_name}>::run");
            assert_eq!(run, [expect.as_str(), "hidden"]);
        }
    }
}
