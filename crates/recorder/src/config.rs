//! What a caller chooses, and what there is to know of a source of events.

use std::fs::File;
use std::io;
use std::iter;
use std::sync::Arc;

use flame_interpreters::Known;
use flame_profile::{ByteLen, Hz, Nanos, ValueType};
use flame_sampler::{
    DEFAULT_COUNTING_FREQUENCY, EventSpec, EventType, Privilege, Rate, SamplerConfig, Session,
    Sessions, StackRoots, Target,
};
use flame_symbolize::SymbolizeConfig;
use flame_unwind::Architecture;

use crate::arguments::Argument;
use crate::debug_places::DebugPlaces;
use crate::live_files::LiveFiles;
use crate::target::{TargetFiles, TargetMemory};

/// 1024 frames: more than any stack has that is not a runaway recursion, and a runaway one fits into
/// a picture.
pub const DEFAULT_MAX_DEPTH: usize = 1024;

/// The position of the number of samples among the values of a profile.
pub const SAMPLES_VALUE: usize = 0;

/// The position of the event's own value: nanoseconds for clocks, else occurrences.
pub const EVENT_VALUE: usize = 1;

/// Everything that [`crate::Recorder::start`] needs to know.
///
/// ```
/// use flame_profile::Hz;
/// use flame_recorder::RecorderConfig;
/// use flame_sampler::{Rate, Target};
///
/// let mut config = RecorderConfig::new(Target::System);
/// config.sampler.rate = Rate::Frequency(Hz(999));
/// config.options.max_depth = 100;
/// assert!(config.sampler.copy_may_be_larger);
/// ```
#[derive(Clone, Debug)]
pub struct RecorderConfig {
    /// What is sampled, and how.
    pub sampler: SamplerConfig,
    /// Further events, whose samples have values of their own. Default: none.
    pub others: Vec<EventSpec>,
    /// What becomes of the samples.
    pub options: Options,
}

impl RecorderConfig {
    /// The defaults for a target.
    pub fn new(target: Target) -> RecorderConfig {
        let registers = Architecture::NATIVE.perf_register_mask();
        let mut config = RecorderConfig {
            sampler: SamplerConfig::new(target, registers),
            others: Vec::new(),
            options: Options::default(),
        };
        config.options.stack_roots = Some(Arc::clone(&config.sampler.stack_roots));
        config.show_scripts(true, false);
        config
    }

    /// Sets whether frames of interpreted programs are read and shown, and whether the interpreter's own
    /// stay beside them.
    pub fn show_scripts(&mut self, shown: bool, keeps_native: bool) {
        let known = shown.then(Arc::<Known>::default);
        self.sampler.interpreters.clone_from(&known);
        self.options.scripts = match known {
            None => ScriptFrames::Hidden,
            Some(known) => ScriptFrames::Shown { known, keeps_native },
        };
    }

    /// The same, of the time that threads spend off their CPUs: the event is `context-switches`, and
    /// each sample stands for the time until the thread runs again.
    pub fn off_cpu(target: Target, kept: Waits) -> RecorderConfig {
        let mut config = RecorderConfig::new(target);
        config.sampler.event = Some(EventType::context_switches());
        config.sampler.rate = Rate::Frequency(DEFAULT_COUNTING_FREQUENCY);
        config.sampler.switches = true;
        config.options.waits = Some(kept);
        config
    }

    /// The same, with who wakes threads: `event` says of each waking which thread it is of.
    pub fn with_wakers(mut self, wakers: Wakers, event: EventType) -> RecorderConfig {
        if let Some(waits) = &mut self.options.waits {
            waits.wakers = wakers;
        }
        let rate = self.sampler.rate;
        self.others = vec![EventSpec { wakes: true, ..EventSpec::new(event, rate) }];
        if wakers == Wakers::Alone {
            // Where they wait is not asked.
            self.sampler.rate = Rate::Frequency(Hz(1));
        }
        self
    }

    /// The same, of all time of threads, on CPU and off.
    pub fn wall(target: Target) -> RecorderConfig {
        let mut config = RecorderConfig::new(target);
        config.sampler.event = Some(EventType::cpu_clock());
        let event = EventType::context_switches();
        let rate = Rate::Frequency(DEFAULT_COUNTING_FREQUENCY);
        config.others = vec![EventSpec { switches: true, ..EventSpec::new(event, rate) }];
        config.options.waits = Some(Waits { with_running: true, ..Waits::default() });
        config
    }
}

/// Which times off CPU are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// No shorter ones.
    pub shortest: Nanos,
    /// No longer ones.
    pub longest: Nanos,
    /// Whether time on CPUs is shown, too, of which the first event takes samples.
    pub with_running: bool,
    /// Whether it is shown who ends waits, of which the last event takes samples.
    pub wakers: Wakers,
    /// Only those in these states, whose switches alone the event samples then; `None` = all waits.
    pub states: Option<States>,
}

/// States of threads that have no CPU, by the kernel's letters for them (proc(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct States(u32);

impl States {
    /// Those of some letters; `None` where one is none.
    pub fn of_letters(letters: &str) -> Option<States> {
        let bits = letters.bytes().map(|letter| letter.is_ascii_uppercase().then(|| bit(letter)));
        let join = |all: Option<u32>, bit: Option<u32>| Some(all? | bit?);
        bits.fold(Some(0), join).filter(|bits| *bits > 0).map(States)
    }

    /// Whether a thread of that letter is in one of them. One that a debugger has stopped is stopped.
    pub fn has(self, letter: u8) -> bool {
        let letter = letter.to_ascii_uppercase();
        letter.is_ascii_uppercase() && self.0 & bit(letter) != 0
    }
}

fn bit(letter: u8) -> u32 {
    1 << (letter - b'A')
}

/// What is shown of who wakes threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wakers {
    /// Nothing.
    #[default]
    Unknown,
    /// Their stacks alone, by the time until they woke the thread.
    Alone,
    /// Their stacks above those of the threads that wait.
    Above,
}

impl Default for Waits {
    fn default() -> Waits {
        Waits {
            shortest: Nanos(0),
            longest: Nanos(u64::MAX),
            with_running: false,
            wakers: Wakers::Unknown,
            states: None,
        }
    }
}

/// Which of the source's events are of what: those that allocate come first, with stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockEvents {
    /// Of each event that allocates, which function it is of. Behind them come the events of those functions' returns, in
    /// that order, and then those of functions that free what they are called with.
    pub function_of: Vec<usize>,
}

/// Whether frames of interpreted programs are shown.
#[derive(Clone, Debug)]
pub enum ScriptFrames {
    /// Native frames are all there is.
    Hidden,
    /// They take the place of native ones.
    Shown {
        /// Where readers are told where interpreters are: that of the sampler's config.
        known: Arc<Known>,
        /// Whether the interpreter's own frames stay beside them.
        keeps_native: bool,
    },
}

/// What becomes of samples, wherever they come from.
#[derive(Clone, Debug)]
pub struct Options {
    /// Of deeper stacks the outer frames are left out. Default: [`DEFAULT_MAX_DEPTH`].
    pub max_depth: usize,
    /// Files of targets. The default is those of this machine, waited for, for ever if need be.
    pub files: Arc<dyn TargetFiles>,
    /// Memory of targets. The default is that of processes of this machine.
    pub memory: Arc<dyn TargetMemory>,
    /// Where debug files are looked for besides the usual places. Default: nowhere.
    pub debug_places: DebugPlaces,
    /// Whether samples of context switches stand for the time until the thread runs again, and which
    /// of those times are shown. The source must tell of all switches, see
    /// [`SamplerConfig::switches`].
    pub waits: Option<Waits>,
    /// Whether samples stand for the time that a thread took from one event to another. The first event of the
    /// source is the one that ends that time, sampled; the second samples switches of threads, and the source tells of
    /// them all, see [`SamplerConfig::switches`]. The third begins that time and the fourth ends it, and both are
    /// recorded each time. So is a fifth, if there is one, which begins what ends in the same way and does not count.
    pub spans: bool,
    /// What samples of each event weigh, by its position, where that is an argument of the function that
    /// is called.
    pub arguments: Vec<Argument>,
    /// Whether the events are one value.
    pub adds_up: bool,
    /// Whether only those of the samples of `arguments` stay whose blocks were not freed, and which events say
    /// so. Default: all stay.
    pub blocks: Option<BlockEvents>,
    /// Whether the field of a tracepoint is an address, and a sample stands for how far it lies beyond that
    /// of the process's sample before.
    pub growth: bool,
    /// What the first event's samples stand for, where that is said otherwise than by its name.
    pub value: Option<ValueType>,
    /// Where readers of stacks are told where those end: that of the sampler's config. Default: nobody is told.
    pub stack_roots: Option<Arc<StackRoots>>,
    /// Whether frames of interpreted programs are shown. Default: hidden, since a file or a script has
    /// none; [`RecorderConfig::new`] shows them.
    pub scripts: ScriptFrames,
    /// Whether the profile says of each sample when it was taken: some 7 bytes each. Default: no.
    pub keeps_times: bool,
    /// Whether the profile says when threads had a CPU, by the switches that the source tells of, see
    /// [`SamplerConfig::switches`]: 32 bytes each. Not with `waits`. Default: no.
    pub keeps_runs: bool,
    /// Whether time in which CPUs had nothing to do is shown, where all of them are sampled by a clock.
    /// Default: no.
    pub shows_idle: bool,
    /// How names are looked up.
    pub symbols: SymbolizeConfig,
    /// The kernel's symbols. The default is to open `/proc/kallsyms` when names are wanted first.
    pub kernel_symbols: fn() -> io::Result<File>,
}

/// Where the kernel has its symbols.
pub(crate) const KALLSYMS: &str = "/proc/kallsyms";

impl Options {
    /// Whether samples stand for the time behind an event, and not for the event.
    pub fn measures_time(&self) -> bool {
        self.waits.is_some() || self.spans
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            max_depth: DEFAULT_MAX_DEPTH,
            files: Arc::new(LiveFiles::default()),
            memory: Arc::new(LiveFiles::default()),
            debug_places: DebugPlaces::default(),
            waits: None,
            spans: false,
            arguments: Vec::new(),
            adds_up: false,
            blocks: None,
            growth: false,
            value: None,
            keeps_times: false,
            keeps_runs: false,
            shows_idle: false,
            stack_roots: None,
            scripts: ScriptFrames::Hidden,
            symbols: SymbolizeConfig::default(),
            kernel_symbols: || File::open(KALLSYMS),
        }
    }
}

/// What the samples of a source are.
#[derive(Clone, Debug)]
pub struct Stream {
    /// What a sample stands for, besides being one.
    pub value: ValueType,
    /// The same of samples of further events.
    pub others: Vec<ValueType>,
    /// Whether the first is time: then samples are what people want to see counted first.
    pub is_clock: bool,
    /// Whether samples may have a user part at all.
    pub has_user: bool,
    /// The user registers of a sample, as a mask in perf's numbering; 0 = call chains instead.
    pub user_registers: u64,
    /// The most bytes of stack that a sample has.
    pub stack_copy: ByteLen,
}

impl Stream {
    /// The same, where samples of the last event are of waits, and those of the first, if they are
    /// another's, of time on CPUs.
    pub(crate) fn of_waits(self, waits: Waits) -> Stream {
        let of = |name: &str| ValueType::new(name, "nanoseconds");
        let (value, others) = match (waits.with_running, waits.wakers) {
            (true, _) => (of("wall"), vec![of("off-cpu")]),
            (_, Wakers::Unknown) => (of("off-cpu"), Vec::new()),
            (_, Wakers::Alone) => (of("wakeup"), Vec::new()),
            (_, Wakers::Above) => (of("offwake"), Vec::new()),
        };
        Stream { value, others, is_clock: false, ..self }
    }

    /// What samples of each event stand for, in the order of the events.
    pub fn values(&self) -> impl Iterator<Item = &ValueType> {
        iter::once(&self.value).chain(&self.others)
    }

    /// What a profile of them has: of each event how many samples, and what they stand for.
    pub fn value_types(&self) -> Vec<ValueType> {
        let samples = |value: &ValueType| ValueType::samples_of(&value.name);
        let others = self.others.iter().flat_map(|value| [samples(value), value.clone()]);
        [ValueType::samples(), self.value.clone()].into_iter().chain(others).collect()
    }

    /// What is shown first, if that is not how many samples there are.
    pub(crate) fn shown_value(&self) -> Option<&ValueType> {
        (!self.is_clock).then_some(&self.value)
    }

    /// The position of the value that is shown first.
    pub(crate) fn default_value(&self) -> usize {
        if self.is_clock { SAMPLES_VALUE } else { EVENT_VALUE }
    }
}

impl From<&Sessions> for Stream {
    fn from(sessions: &Sessions) -> Stream {
        let (first, all) = (sessions.first(), sessions.all());
        let of_event = |session: &Session| match session.event() {
            event if all.len() > 1 => ValueType::new(event.to_string(), event.unit.name()),
            event if event.is_clock() => ValueType::new("cpu", event.unit.name()),
            event => ValueType::new(event.name.clone(), event.unit.name()),
        };
        Stream {
            value: of_event(first),
            others: all[1..].iter().map(of_event).collect(),
            is_clock: first.event().is_clock(),
            has_user: all.iter().any(|session| session.privilege() != Privilege::Kernel),
            user_registers: first.layout().fields().user_registers,
            stack_copy: all.iter().map(Session::stack_copy).max().unwrap_or_default(),
        }
    }
}
