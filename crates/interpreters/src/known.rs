//! In which processes there is an interpreter, and where: told and asked by threads that must not wait.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::lua::layout::{LuaBuild, LuaLayout};
use crate::luajit::layout::{LuaJitBuild, LuaJitLayout};
use crate::perl::layout::{PerlBuild, PerlLayout};
use crate::php::layout::{PhpBuild, PhpLayout};
use crate::python::layout::{PythonBuild, PythonLayout};
use crate::ruby::layout::{RubyBuild, RubyLayout};

/// How many interpreters of processes are known at once.
const PLACES: usize = 8192;

/// In how many places those of a process may be.
const TRIES: usize = 16;

/// How many interpreters a process may have, each of another language. As many places are between those of processes whose
/// numbers follow each other, such as the workers of a server.
const MOST_OF_PROCESS: usize = 4;

/// How many builds of interpreters.
const LAYOUTS: usize = 64;

/// A place that somebody is about to fill.
const TAKEN: u64 = u64::MAX;

/// What stands for a process without an interpreter, in place of the number of a layout.
const NOTHING: u32 = u32::MAX;

/// What languages are called.
pub(crate) const LANGUAGES: [&str; 6] = ["python", "perl", "lua", "luajit", "ruby", "php"];

/// Where an interpreter's build has what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// CPython.
    Python(PythonLayout),
    /// Perl 5.
    Perl(PerlLayout),
    /// Lua 5.
    Lua(LuaLayout),
    /// LuaJIT 2.1.
    LuaJit(LuaJitLayout),
    /// Ruby.
    Ruby(RubyLayout),
    /// PHP 8.
    Php(PhpLayout),
}

impl Layout {
    /// That of a CPython; `None` for versions that are not known.
    pub fn python(build: &PythonBuild) -> Option<Layout> {
        PythonLayout::of(build).map(Layout::Python)
    }

    /// That of a Perl 5; `None` for versions that are not known.
    pub fn perl(build: &PerlBuild) -> Option<Layout> {
        PerlLayout::of(build).map(Layout::Perl)
    }

    /// That of a Lua 5; `None` for versions that are not known.
    pub fn lua(build: &LuaBuild) -> Option<Layout> {
        LuaLayout::of(build).map(Layout::Lua)
    }

    /// That of a LuaJIT 2.1. Its versions differ in what memory tells.
    pub fn luajit(build: &LuaJitBuild) -> Layout {
        Layout::LuaJit(LuaJitLayout::of(build))
    }

    /// That of a Ruby; `None` for versions that are not known.
    pub fn ruby(build: &RubyBuild) -> Option<Layout> {
        RubyLayout::of(build).map(Layout::Ruby)
    }

    /// That of a PHP 8; `None` for versions that are not known.
    pub fn php(build: &PhpBuild<'_>) -> Option<Layout> {
        PhpLayout::of(build).map(Layout::Php)
    }

    /// The same where the process itself says of some that they are elsewhere, in the first
    /// [`crate::DEBUG_OFFSETS`] bytes of its global state; `None` where it is no build that is known.
    #[must_use]
    pub fn as_it_says(&self, runtime: &[u8]) -> Option<Layout> {
        match self {
            Layout::Python(layout) => {
                layout.clone().with_debug_offsets(runtime).map(Layout::Python)
            }
            Layout::Perl(_)
            | Layout::Lua(_)
            | Layout::LuaJit(_)
            | Layout::Ruby(_)
            | Layout::Php(_) => Some(self.clone()),
        }
    }

    /// What the language is called, in lower case.
    pub fn language(&self) -> &'static str {
        let [python, perl, lua, luajit, ruby, php] = LANGUAGES;
        match self {
            Layout::Python(_) => python,
            Layout::Perl(_) => perl,
            Layout::Lua(_) => lua,
            Layout::LuaJit(_) => luajit,
            Layout::Ruby(_) => ruby,
            Layout::Php(_) => php,
        }
    }
}

/// What was found out about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It was not looked at yet.
    NotYet,
    /// No interpreter was met in it.
    Nothing,
    /// There is one.
    Interpreter,
}

/// One process: its number and that of the layout, and where its interpreter is.
#[derive(Debug, Default)]
struct Place {
    /// 0 = empty; else the process in the upper half, the layout in the lower.
    key: AtomicU64,
    runtime: AtomicU64,
}

/// What is mapped of the file of an interpreter: what tells it from all others, the number of the layout, and how far
/// behind its start the global state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MappedPart {
    part: [u64; 4],
    number: u32,
    runtime: u64,
}

/// The processes that were looked at. Neither telling nor asking takes a lock, and memory is there from
/// the start.
#[derive(Debug)]
pub struct Known {
    places: Box<[Place]>,
    layouts: Box<[OnceLock<Layout>]>,
    parts: Box<[OnceLock<MappedPart>]>,
    /// How often it was asked to define all functions anew.
    forgotten: AtomicU32,
    /// Whether there was an interpreter in any process.
    has_any: AtomicBool,
}

impl Default for Known {
    fn default() -> Known {
        Known {
            places: (0..PLACES).map(|_| Place::default()).collect(),
            layouts: (0..LAYOUTS).map(|_| OnceLock::new()).collect(),
            parts: (0..LAYOUTS).map(|_| OnceLock::new()).collect(),
            forgotten: AtomicU32::new(0),
            has_any: AtomicBool::new(false),
        }
    }
}

impl Known {
    /// A process has an interpreter, whose global state is at that address, in place of another one of that language.
    /// Whether there was room for that.
    pub fn add(&self, pid: u32, layout: &Layout, runtime: u64) -> bool {
        let number =
            self.layouts.iter().position(|slot| slot.get_or_init(|| layout.clone()) == layout);
        let Some(number) = number.and_then(|number| u32::try_from(number).ok()) else {
            return false;
        };
        self.has_any.store(true, Ordering::Relaxed);
        self.put(pid, number, runtime)
    }

    /// The interpreter of a language that was added to a process is in what it has mapped there of a file. Who maps that is
    /// known to have it from then on, before anybody looked at it.
    pub fn add_part(&self, part: [u64; 4], (pid, language): (u32, &str), start: u64) {
        let Some((number, runtime)) = self.numbers(pid).find(|found| self.is_of(*found, language))
        else {
            return;
        };
        let mapped = MappedPart { part, number, runtime: runtime.wrapping_sub(start) };
        let _ = self.parts.iter().find(|slot| slot.get_or_init(|| mapped).part == part);
    }

    /// A process has mapped a part of a file. If it is known to have an interpreter of that language, that stays its one.
    pub fn mapped(&self, pid: u32, part: Option<[u64; 4]>, start: u64) {
        let mut parts = self.parts.iter().map_while(OnceLock::get);
        if let Some(known) = parts.find(|known| Some(known.part) == part)
            && let Some(layout) = self.layout(known.number)
            && !self.reads(pid, layout.language())
        {
            self.put(pid, known.number, start.wrapping_add(known.runtime));
        }
    }

    /// Whether an interpreter was met in any process so far.
    pub fn has_any(&self) -> bool {
        self.has_any.load(Ordering::Relaxed)
    }

    /// No interpreter was met in a process.
    pub fn add_nothing(&self, pid: u32) {
        self.put(pid, NOTHING, 0);
    }

    /// A process has ended or runs another program: it is to be looked at anew.
    pub fn forget(&self, pid: u32) {
        self.forget_of(pid, |_| true);
    }

    /// A process was forked from another: it has the same memory.
    pub fn forked(&self, parent: u32, child: u32) {
        for (number, runtime) in self.numbers(parent).filter(|(number, _)| *number != NOTHING) {
            if child != parent && !self.numbers(child).any(|found| found == (number, runtime)) {
                self.put(child, number, runtime);
            }
        }
    }

    /// What is known of a process.
    pub fn judged(&self, pid: u32) -> Judged {
        match self.numbers(pid).next() {
            None => Judged::NotYet,
            Some((NOTHING, _)) => Judged::Nothing,
            Some(_) => Judged::Interpreter,
        }
    }

    /// The interpreters of a process, each of another language, and where its global state is.
    pub fn interpreters_of(&self, pid: u32) -> impl Iterator<Item = (&Layout, u64)> {
        self.numbers(pid).filter_map(|(number, runtime)| Some((self.layout(number)?, runtime)))
    }

    /// Whether a process is known to have an interpreter of a language.
    pub fn reads(&self, pid: u32, language: &str) -> bool {
        self.numbers(pid).any(|found| self.is_of(found, language))
    }

    /// What a function is was not heard: it is to be said again.
    pub fn define_again(&self) {
        self.forgotten.fetch_add(1, Ordering::Relaxed);
    }

    /// Changes when all functions are to be defined again.
    pub fn forgotten(&self) -> u32 {
        self.forgotten.load(Ordering::Relaxed)
    }

    fn put(&self, pid: u32, number: u32, runtime: u64) -> bool {
        match self.layout(number) {
            Some(layout) => self.forget_of(pid, |number| {
                number == NOTHING || self.is_of((number, 0), layout.language())
            }),
            None => self.forget(pid),
        }
        if self.numbers(pid).count() >= MOST_OF_PROCESS {
            return false;
        }
        let take = |place: &&Place| {
            place.key.compare_exchange(0, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let Some(place) = self.of(pid).find(take) else { return false };
        place.runtime.store(runtime, Ordering::Release);
        place.key.store(u64::from(pid) << 32 | u64::from(number), Ordering::Release);
        true
    }

    fn forget_of(&self, pid: u32, is_meant: impl Fn(u32) -> bool) {
        for place in self.of(pid) {
            let key = place.key.load(Ordering::Relaxed);
            if process_of(key) == pid && key != TAKEN && is_meant(number_of(key)) {
                let _ = place.key.compare_exchange(key, 0, Ordering::Release, Ordering::Relaxed);
            }
        }
    }

    /// The numbers of the layouts that a process has, and where its interpreters are.
    fn numbers(&self, pid: u32) -> impl Iterator<Item = (u32, u64)> {
        self.of(pid).filter_map(move |place| {
            let key = place.key.load(Ordering::Acquire);
            let runtime = place.runtime.load(Ordering::Acquire);
            // Between the two it may have been given to another.
            let stands = key != 0 && key != TAKEN && place.key.load(Ordering::Acquire) == key;
            (stands && process_of(key) == pid).then_some((number_of(key), runtime))
        })
    }

    fn layout(&self, number: u32) -> Option<&Layout> {
        self.layouts.get(usize::try_from(number).ok()?)?.get()
    }

    fn is_of(&self, (number, _): (u32, u64), language: &str) -> bool {
        self.layout(number).is_some_and(|layout| layout.language() == language)
    }

    fn of(&self, pid: u32) -> impl Iterator<Item = &Place> {
        let first = usize::try_from(pid).unwrap_or(0) % PLACES * MOST_OF_PROCESS;
        (0..TRIES).filter_map(move |step| self.places.get((first + step) % PLACES))
    }
}

fn process_of(key: u64) -> u32 {
    (key >> 32) as u32
}

fn number_of(key: u64) -> u32 {
    u32::try_from(key & u64::from(u32::MAX)).unwrap_or(NOTHING)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn python(minor: u32) -> Layout {
        Layout::python(&PythonBuild { minor, code_type: 0x100 }).unwrap()
    }

    #[test]
    fn processes_are_known_until_they_are_forgotten() {
        let known = Known::default();
        assert_eq!(known.judged(7), Judged::NotYet);
        known.add_nothing(7);
        assert!(!known.has_any());
        assert!(known.add(8, &python(11), 0x1000) && known.add(9, &python(12), 0x2000));
        assert!(known.has_any());
        known.forked(8, 10);
        known.forked(7, 11);
        let found =
            |pid| known.interpreters_of(pid).next().map(|(layout, at)| (layout.clone(), at));
        assert_eq!([8, 10].map(found), [(); 2].map(|()| Some((python(11), 0x1000))));
        assert_eq!(found(9), Some((python(12), 0x2000)));
        assert_eq!([7, 11].map(|pid| known.judged(pid)), [Judged::Nothing, Judged::NotYet]);
        known.forget(8);
        known.add(9, &python(11), 0x3000);
        assert_eq!((found(8), found(9)), (None, Some((python(11), 0x3000))));
    }

    #[test]
    fn who_maps_the_file_of_an_interpreter_has_it() {
        let known = Known::default();
        let (part, other) = ([254, 7, 0, 0x2000], [254, 7, 0, 0x3000]);
        known.add_part(part, (7, "python"), 0x1000);
        known.mapped(8, Some(part), 0x5000);
        known.add_nothing(7);
        known.add_part(part, (7, "python"), 0x1000);
        assert_eq!(known.judged(8), Judged::NotYet);
        known.add(7, &python(11), 0x1234);
        known.add_part(part, (7, "python"), 0x1000);
        for (pid, part) in [(8, Some(part)), (9, Some(other)), (10, None)] {
            known.mapped(pid, part, 0x5000);
        }
        let found =
            |pid| known.interpreters_of(pid).next().map(|(layout, at)| (layout.clone(), at));
        assert_eq!(found(8), Some((python(11), 0x5234)));
        assert_eq!([9, 10].map(|pid| known.judged(pid)), [Judged::NotYet; 2]);
        known.add(7, &python(12), 0x2000);
        known.add_part(other, (7, "python"), 0x1000);
        known.mapped(8, Some(other), 0x1000);
        assert_eq!(found(8), Some((python(11), 0x5234)), "the first one of a language stays");
        // It runs another program now.
        known.forget(8);
        known.mapped(8, Some(other), 0x1000);
        assert_eq!(found(8), Some((python(12), 0x2000)));
    }

    #[test]
    fn a_process_may_have_one_of_each_language() {
        let known = Known::default();
        let perl = Layout::perl(&PerlBuild { minor: 36, statement: None }).unwrap();
        let lua = |minor| Layout::lua(&LuaBuild { minor, release: 4 }).unwrap();
        known.add_nothing(7);
        for (layout, runtime) in [(python(11), 1), (perl.clone(), 2), (lua(3), 3), (lua(4), 4)] {
            assert!(known.add(7, &layout, runtime));
        }
        known.add_part([9; 4], (7, "perl"), 1);
        known.forked(7, 8);
        // The number next to it has places of its own.
        assert!(known.add(9, &python(12), 1));
        known.mapped(9, Some([9; 4]), 0x1000);
        let of = |pid| {
            let mut all: Vec<_> = known.interpreters_of(pid).collect();
            all.sort_by_key(|(_, runtime)| *runtime);
            all.into_iter().map(|(layout, at)| (layout.clone(), at)).collect::<Vec<_>>()
        };
        let all = [(python(11), 1), (perl.clone(), 2), (lua(4), 4)];
        assert_eq!([of(7), of(8)], [all.clone(), all]);
        assert_eq!(of(9), [(python(12), 1), (perl, 0x1001)]);
        assert!(known.reads(8, "lua") && !known.reads(9, "lua"));
        known.add_nothing(8);
        assert_eq!((of(8), known.judged(8)), (Vec::new(), Judged::Nothing));
    }

    #[test]
    fn there_is_room_for_so_many_and_no_more() {
        let known = Known::default();
        let pids = (0..=TRIES as u32).map(|index| index * PLACES as u32 + 5);
        let added: Vec<bool> = pids.map(|pid| known.add(pid, &python(11), 1)).collect();
        assert_eq!(added.iter().filter(|added| **added).count(), TRIES);
        assert_eq!(added.last(), Some(&false));
    }
}
