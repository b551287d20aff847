//! Turns places of entries into what these are declared in: `m1::S` for a method without a linkage
//! name.
//!
//! Compilers leave out the linkage name of what nobody else can link to: members of an anonymous
//! namespace, lambdas and local classes. Their plain names alone (`run`, `operator()`) would put
//! different functions into one box.
//!
//! Sources: DWARF 5, sections 2.3, 3.2, 3.3 and 5.7.

use std::borrow::Cow;

use gimli::{AttributeValue, DwTag, UnitOffset, UnitRef};
use rustc_hash::FxHashMap;

use super::effort::{Effort, Unreadable};
use super::text::text;
use crate::debug_info::Reader;

/// How many levels of scopes are named; sources have a handful.
const MAX_LEVELS: usize = 32;

/// The longest scope of a name.
const MAX_LEN: usize = 4096;

/// Scopes by where the entries stand that are declared in them: `m1::S::`.
pub(super) type Scopes = FxHashMap<usize, Vec<u8>>;

/// A namespace, a type or a function that has others inside, while these are passed.
struct Scope<'d> {
    depth: isize,
    name: Cow<'d, [u8]>,
    /// How many types without a name were passed in it.
    unnamed: u32,
}

/// The scopes of the entries at those places of a unit, which are sorted; nothing for those that
/// stand in none. What comes after an entry that makes no sense has none.
///
/// # Errors
/// When the entries ask for too much work.
pub(super) fn read_scopes<'d>(
    unit: UnitRef<'_, Reader<'d>>,
    places: &[usize],
    effort: &Effort,
) -> Result<Scopes, Unreadable> {
    let mut found = Scopes::default();
    match read_until(unit, places, effort, &mut found) {
        Ok(()) | Err(Unreadable::Dwarf(_)) => Ok(found),
        Err(exhausted) => Err(exhausted),
    }
}

fn read_until<'d>(
    unit: UnitRef<'_, Reader<'d>>,
    mut places: &[usize],
    effort: &Effort,
    found: &mut Scopes,
) -> Result<(), Unreadable> {
    let (mut open, mut unnamed): (Vec<Scope<'d>>, u32) = (Vec::new(), 0);
    let (mut entries, mut depth_before) = (unit.entries_raw(None)?, 0);
    while !entries.is_empty() {
        let (at, depth) = (entries.next_offset().0, depth_before + entries.next_depth());
        while places.first().is_some_and(|place| *place < at) {
            places = &places[1..];
        }
        let Some(next) = places.first() else { return Ok(()) };
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        while open.pop_if(|scope| scope.depth >= depth).is_some() {}
        if at == *next {
            found.extend(joined(&open).map(|scope| (at, scope)));
        }
        effort.spend(1 + abbreviation.attributes().len())?;
        if !abbreviation.has_children() {
            entries.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        let (mut name, mut sibling) = (None, 0);
        for specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(*specification)?;
            match (attribute.name(), attribute.value()) {
                (gimli::DW_AT_name, value) => name = Some(value),
                (gimli::DW_AT_sibling, AttributeValue::UnitRef(UnitOffset(to))) => sibling = to,
                _ => {}
            }
        }
        let tag = abbreviation.tag();
        let is_unnamed_type = name.is_none() && is_type(tag);
        let before = open.last_mut().map_or(&mut unnamed, |scope| &mut scope.unnamed);
        *before += u32::from(is_unnamed_type);
        let number = *before;
        let after = places.iter().find(|place| **place > at).copied().unwrap_or(usize::MAX);
        if entries.next_offset().0 < sibling && sibling <= after {
            (entries, depth_before) = (unit.entries_raw(Some(UnitOffset(sibling)))?, depth);
        } else if is_scope(tag) {
            let name = name.and_then(|name| text(unit.dwarf, unit.unit, name)).unwrap_or_default();
            open.push(Scope { depth, name: shown(tag, name, number), unnamed: 0 });
        }
    }
    Ok(())
}

/// Whether an entry of that kind may be a scope that is part of names.
fn is_scope(tag: DwTag) -> bool {
    is_type(tag) || matches!(tag, gimli::DW_TAG_namespace | gimli::DW_TAG_subprogram)
}

fn is_type(tag: DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_class_type | gimli::DW_TAG_structure_type | gimli::DW_TAG_union_type
    )
}

/// What a scope is called; of types without a name, the one with that number in what is around it.
fn shown(tag: DwTag, name: &[u8], number: u32) -> Cow<'_, [u8]> {
    match (name, tag) {
        ([], gimli::DW_TAG_namespace) => Cow::Borrowed(b"(anonymous namespace)"),
        // GCC gives the types of lambdas no name.
        ([], tag) if is_type(tag) && number > 1 => {
            Cow::Owned(format!("{{unnamed type #{number}}}").into_bytes())
        }
        ([], tag) if is_type(tag) => Cow::Borrowed(b"{unnamed type}"),
        (name, _) => Cow::Borrowed(name),
    }
}

/// The innermost scopes as they stand before a name.
fn joined(open: &[Scope<'_>]) -> Option<Vec<u8>> {
    let named = open.iter().map(|scope| &*scope.name).filter(|name| !name.is_empty());
    let named: Vec<&[u8]> = named.collect();
    let innermost = &named[named.len().saturating_sub(MAX_LEVELS)..];
    let joined = innermost.iter().flat_map(|name| [name, &b"::"[..]]).collect::<Vec<_>>().concat();
    (!joined.is_empty() && joined.len() <= MAX_LEN).then_some(joined)
}

#[cfg(test)]
mod tests {
    use crate::test_frames::Frames as _;
    use flame_image::testing::build::Workshop;

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

    #[test]
    fn a_lambda_in_a_namespace_has_the_scopes_around_it() {
        let source = "
            namespace m { namespace { struct S {
                template<class F> __attribute__((always_inline)) int go(F f) { return f(1); }
            }; } }
            extern \"C\" __attribute__((noinline)) int hidden(int x) {
                auto first = [x](int y) { return x - y; };
                auto twist = [x](int y) __attribute__((always_inline)) {
                    __asm__ volatile(\"nop\");
                    return x + y;
                };
                return m::S().go(twist) * first(3);
            }
            int main(int count, char **) { return hidden(count); }";
        let shop = Workshop::new("lambda");
        shop.write("a.cpp", source);
        if !shop.run("g++ -O2 -g -o prog a.cpp") {
            return;
        }
        let frames = shop.frames("prog", shop.nop("prog"));
        // The first lambda of the function is another one.
        let lambda = "hidden::{unnamed type #2}::operator()";
        let go = "m::(anonymous namespace)::S::go<hidden(int)::<lambda(int)> >";
        assert_eq!(frames, [lambda, go, "hidden"]);
    }
}
