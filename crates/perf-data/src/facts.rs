//! What a file says about the recording: the machine, the command, build IDs, names of events.

use flame_events::{Endianness, Fields, FileBuildId};
use rustc_hash::FxHashMap;

use crate::recorded_events::RecordedEvents;

const BUILD_ID: u32 = 2;
const HOST: u32 = 3;
const RELEASE: u32 = 4;
const VERSION: u32 = 5;
const ARCHITECTURE: u32 = 6;
const CPUS: u32 = 7;
const COMMAND: u32 = 11;
const EVENTS: u32 = 12;
const DIRECTORY: u32 = 24;
const CLOCKS: u32 = 29;

/// The misc bit that says how long a build ID is.
const HAS_LEN: u16 = 1 << 15;
/// A build ID has this much room, its length and padding included.
const BUILD_ID_ROOM: usize = 24;

/// The image that stands for the kernel in build IDs, and of which its mapping has the start.
pub(crate) const KERNEL: &[u8] = b"[kernel.kallsyms]";

/// What a file says about the recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The machine's name.
    pub host: Option<String>,
    /// Its kernel, as `uname -r` has it.
    pub release: Option<String>,
    /// The version of perf.
    pub perf: Option<String>,
    /// The machine's kind, as `uname -m` has it.
    pub architecture: Option<String>,
    /// How many CPUs it had.
    pub cpus: Option<u32>,
    /// The command that recorded.
    pub command: Vec<String>,
    /// A time of day and the same time on the clock of the samples, in nanoseconds.
    pub clock: Option<(u64, u64)>,
    /// Whether it is one of the files of a directory, in which most of the records stand in others.
    pub is_directory: bool,
    /// What the images at these paths had for build IDs when the recording ended.
    pub build_ids: FxHashMap<Vec<u8>, FileBuildId>,
}

impl Facts {
    /// Takes in a part of the header; what it does not know, or what is cut short, is left.
    pub(crate) fn take(
        &mut self,
        number: u32,
        bytes: &[u8],
        endian: Endianness,
        events: &mut RecordedEvents,
    ) {
        let mut fields = Fields::new(bytes, endian);
        match number {
            BUILD_ID => self.take_build_ids(fields, endian),
            HOST => self.host = string(&mut fields),
            RELEASE => self.release = string(&mut fields),
            VERSION => self.perf = string(&mut fields),
            ARCHITECTURE => self.architecture = string(&mut fields),
            CPUS => self.cpus = fields.u32(),
            COMMAND => {
                let count = fields.u32().unwrap_or(0);
                self.command = (0..count).map_while(|_| string(&mut fields)).collect();
            }
            EVENTS => {
                let _ = take_events(fields, events);
            }
            DIRECTORY => self.is_directory = true,
            CLOCKS => self.clock = clock(fields),
            _ => {}
        }
    }

    fn take_build_ids(&mut self, mut fields: Fields<'_>, endian: Endianness) {
        loop {
            let (Some(_), Some(misc), Some(len)) = (fields.u32(), fields.u16(), fields.u16())
            else {
                return;
            };
            let Some(body) = fields.bytes(usize::from(len).saturating_sub(8)) else { return };
            self.take_build_id(misc, body, endian);
        }
    }

    /// Takes in one build ID with the path of its image.
    pub(crate) fn take_build_id(&mut self, misc: u16, body: &[u8], endian: Endianness) {
        let mut fields = Fields::new(body, endian);
        let (Some(_pid), Some(id)) = (fields.u32(), fields.bytes(BUILD_ID_ROOM)) else { return };
        let len = match misc & HAS_LEN {
            0 => FileBuildId::MAX_LEN,
            _ => usize::from(id[FileBuildId::MAX_LEN]).min(FileBuildId::MAX_LEN),
        };
        if let Some(id) = FileBuildId::new(&id[..len]) {
            self.build_ids.insert(until_nul(fields.rest()).to_vec(), id);
        }
    }
}

/// The names of events, in the order of their attributes, with their identifiers.
fn take_events(mut fields: Fields<'_>, events: &mut RecordedEvents) -> Option<()> {
    let count = fields.u32()?;
    let attribute_len = usize::try_from(fields.u32()?).ok()?;
    for position in 0..count {
        fields.bytes(attribute_len)?;
        let ids = fields.u32()?;
        let name = string(&mut fields)?;
        let ids: Vec<u64> = (0..ids).map_while(|_| fields.u64()).collect();
        events.set_name(usize::try_from(position).ok()?, &ids, name);
    }
    Some(())
}

fn clock(mut fields: Fields<'_>) -> Option<(u64, u64)> {
    let (_version, _clock) = (fields.u32()?, fields.u32()?);
    Some((fields.u64()?, fields.u64()?))
}

/// A text with its length before it, padded with zeros.
fn string(fields: &mut Fields<'_>) -> Option<String> {
    let len = usize::try_from(fields.u32()?).ok()?;
    let bytes = until_nul(fields.bytes(len)?);
    Some(String::from_utf8_lossy(bytes).into_owned()).filter(|text| !text.is_empty())
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or(bytes)
}
