//! What a caller chooses, and what there is to know of a source of events.

use std::fs::File;
use std::io;
use std::sync::Arc;

use flame_profile::{ByteLen, Nanos, ValueType};
use flame_sampler::{
    DEFAULT_COUNTING_FREQUENCY, EventType, Privilege, Rate, SamplerConfig, Session, Target,
};
use flame_symbolize::SymbolizeConfig;
use flame_unwind::Architecture;

use crate::debug_places::DebugPlaces;
use crate::live_files::LiveFiles;
use crate::target::{TargetFiles, TargetMemory};

/// 1024 frames: more than any stack has that is no runaway recursion, and a runaway one fits into
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
    /// What becomes of the samples.
    pub options: Options,
}

impl RecorderConfig {
    /// The defaults for a target.
    pub fn new(target: Target) -> RecorderConfig {
        let registers = Architecture::NATIVE.perf_register_mask();
        let sampler = SamplerConfig::new(target, registers);
        RecorderConfig { sampler, options: Options::default() }
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
}

/// Which times off CPU are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// No shorter ones.
    pub shortest: Nanos,
    /// No longer ones.
    pub longest: Nanos,
}

impl Default for Waits {
    fn default() -> Waits {
        Waits { shortest: Nanos(0), longest: Nanos(u64::MAX) }
    }
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
    /// How names are looked up.
    pub symbols: SymbolizeConfig,
    /// The kernel's symbols. The default is to open `/proc/kallsyms` when names are wanted first.
    pub kernel_symbols: fn() -> io::Result<File>,
}

/// Where the kernel has its symbols.
pub(crate) const KALLSYMS: &str = "/proc/kallsyms";

impl Default for Options {
    fn default() -> Options {
        Options {
            max_depth: DEFAULT_MAX_DEPTH,
            files: Arc::new(LiveFiles::default()),
            memory: Arc::new(LiveFiles::default()),
            debug_places: DebugPlaces::default(),
            waits: None,
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
    /// Whether that is time: then samples are what people want to see counted first.
    pub is_clock: bool,
    /// Whether samples may have a user part at all.
    pub has_user: bool,
    /// The user registers of a sample, as a mask in perf's numbering; 0 = call chains instead.
    pub user_registers: u64,
    /// The most bytes of stack that a sample has.
    pub stack_copy: ByteLen,
}

impl Stream {
    /// What samples stand for: how many they are, and the event's own value.
    pub fn value_types(&self) -> Vec<ValueType> {
        vec![ValueType::samples(), self.value.clone()]
    }

    /// The position of the value that is shown first.
    pub(crate) fn default_value(&self) -> usize {
        if self.is_clock { SAMPLES_VALUE } else { EVENT_VALUE }
    }
}

impl From<&Session> for Stream {
    fn from(session: &Session) -> Stream {
        let event = session.event();
        let value = match event.is_clock() {
            true => ValueType::new("cpu", "nanoseconds"),
            false => ValueType::new(event.name.clone(), "count"),
        };
        Stream {
            value,
            is_clock: event.is_clock(),
            has_user: session.privilege() != Privilege::Kernel,
            user_registers: session.layout().fields().user_registers,
            stack_copy: session.stack_copy(),
        }
    }
}
