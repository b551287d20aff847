//! Events that a device of the kernel describes, in perf's words: `cpu/event=0xc2,umask=0x2/u`,
//! `armv8_pmuv3/cpu_cycles/`, `software/config=2/`.
//!
//! A device has a number (`type`), a file for each term that says which bits of the attributes it
//! fills (`format/umask`: `config:8-15`), and names for some combinations of terms (`events/`).
//! Which of a device's events can be sampled, the kernel says when they are opened.
//!
//! Source: Documentation/ABI/testing/sysfs-bus-event_source-devices-{format,events} of Linux.

use std::fs;
use std::path::Path;

use crate::tracepoints::near_names;

/// Where the kernel lists its devices.
const DEVICES: &str = "/sys/bus/event_source/devices";

/// What the attributes of an event have for its device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PmuConfig {
    /// The device.
    pub(crate) kind: u32,
    /// `config`, `config1` and `config2`.
    pub(crate) configs: [u64; 3],
}

/// An event of a device cannot be sampled by what was typed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PmuError {
    /// There is no such device.
    #[error("this kernel has no device '{device}' that counts events: it has {}", devices.join(", "))]
    NoDevice {
        /// What was typed.
        device: String,
        /// What there is.
        devices: Vec<String>,
    },
    /// The device has neither a term nor an event of that name.
    #[error("{device} has neither a term nor an event '{word}'{}", near_names(word, known))]
    Unknown {
        /// The device.
        device: String,
        /// What was typed.
        word: String,
        /// Its terms and events.
        known: Vec<String>,
    },
    /// The value is no number, or needs more bits than the term has.
    #[error("'{word}' is not a number that fits into this term of {device}")]
    Value {
        /// The device.
        device: String,
        /// What was typed.
        word: String,
    },
}

/// The event between the slashes of `DEVICE/TERMS/`.
///
/// # Errors
/// See [`PmuError`].
pub(crate) fn event(device: &str, terms: &str) -> Result<PmuConfig, PmuError> {
    Pmu { devices: Path::new(DEVICES), device }.event(terms)
}

/// All events that devices have names for, `DEVICE/EVENT/`, in order.
pub fn pmu_events() -> Vec<String> {
    let devices = Path::new(DEVICES);
    let of = |device: String| {
        let names = names_in(&devices.join(&device).join("events")).into_iter();
        // Their scale and unit are files beside them.
        let names = names.filter(|name| !name.contains('.'));
        names.map(move |name| format!("{device}/{name}/")).collect::<Vec<_>>()
    };
    names_in(devices).into_iter().flat_map(of).collect()
}

struct Pmu<'d> {
    devices: &'d Path,
    device: &'d str,
}

impl Pmu<'_> {
    fn event(&self, terms: &str) -> Result<PmuConfig, PmuError> {
        let number = self.file("type").and_then(|text| text.trim().parse().ok());
        let kind = number.ok_or_else(|| PmuError::NoDevice {
            device: self.device.to_owned(),
            devices: names_in(self.devices),
        })?;
        let mut found = PmuConfig { kind, ..PmuConfig::default() };
        for word in terms.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            // A name stands for terms, in which no names stand.
            match self.named(word) {
                Some(terms) => {
                    terms.trim().split(',').try_for_each(|term| self.set(term, &mut found))?;
                }
                None => self.set(word, &mut found)?,
            }
        }
        Ok(found)
    }

    /// Fills the bits that a term has.
    fn set(&self, word: &str, found: &mut PmuConfig) -> Result<(), PmuError> {
        let (term, value) = word.split_once('=').unwrap_or((word, "1"));
        // What every device has.
        let whole =
            ["config", "config1", "config2"].contains(&term).then(|| format!("{term}:0-63"));
        let bits = self.file(&format!("format/{term}")).or(whole).ok_or_else(|| {
            let names =
                ["format", "events"].map(|of| names_in(&self.devices.join(self.device).join(of)));
            PmuError::Unknown {
                device: self.device.to_owned(),
                word: term.to_owned(),
                known: names.concat(),
            }
        })?;
        let filled = number(value).and_then(|value| fill(bits.trim(), value, &mut found.configs));
        filled.ok_or_else(|| PmuError::Value {
            device: self.device.to_owned(),
            word: word.to_owned(),
        })
    }

    fn named(&self, word: &str) -> Option<String> {
        let is_name = !word.contains(['=', '.']);
        is_name.then(|| self.file(&format!("events/{word}"))).flatten()
    }

    /// What the device has in a file, if all parts of its path are names.
    fn file(&self, name: &str) -> Option<String> {
        let is_name = |part: &str| !part.is_empty() && part != "." && part != "..";
        let is_path = is_name(self.device) && !self.device.contains('/');
        let is_path = is_path && name.split('/').all(is_name);
        fs::read_to_string(self.devices.join(self.device).join(name)).ok().filter(|_| is_path)
    }
}

/// Decimal, or hexadecimal after `0x`.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Puts a value into the bits that a format names, the lowest first: `config:0-7,32-35`.
fn fill(format: &str, mut value: u64, configs: &mut [u64; 3]) -> Option<()> {
    let (word, ranges) = format.split_once(':')?;
    let word = ["config", "config1", "config2"].iter().position(|name| *name == word)?;
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        let mask = u64::MAX.checked_shr(63_u32.checked_sub(last.checked_sub(first)?)?)?;
        let place = &mut configs[word];
        *place = *place & !mask.checked_shl(first)? | (value & mask) << first;
        value = value.checked_shr(last - first + 1).unwrap_or(0);
    }
    (value == 0).then_some(())
}

/// The names in a directory, in order.
fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device as Intel's and Arm's are.
    fn device(name: &str, test: impl Fn(&Pmu)) {
        let place = format!("flame-pmu-{name}-{}", std::process::id());
        let place = std::env::temp_dir().join(place);
        let pmu = place.join("cpu");
        let files = [
            ("type", "4\n"),
            ("format/event", "config:0-7,32-35\n"),
            ("format/umask", "config:8-15\n"),
            ("format/edge", "config:18\n"),
            ("format/ldlat", "config1:0-15\n"),
            ("events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n"),
            ("events/mem-loads.unit", "loads\n"),
        ];
        for (name, text) in files {
            let path = pmu.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        test(&Pmu { devices: &place, device: "cpu" });
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn terms_fill_the_bits_that_the_device_gives_them() {
        device("fills", |pmu| {
            let configs = |terms: &str| pmu.event(terms).map(|found| found.configs);
            assert_eq!(pmu.event("event=0x3c").map(|found| found.kind), Ok(4));
            assert_eq!(configs("event=0x3c"), Ok([0x3c, 0, 0]));
            assert_eq!(configs("event=0x53c,umask=2"), Ok([0x5_0000_023c, 0, 0]));
            assert_eq!(configs("edge,event=60"), Ok([0x4003c, 0, 0]));
            assert_eq!(configs("mem-loads"), Ok([0x1cd, 3, 0]));
            assert_eq!(configs("mem-loads,ldlat=30"), Ok([0x1cd, 30, 0]));
            assert_eq!(configs("config=0xffffffffffffffff,config2=7"), Ok([u64::MAX, 0, 7]));
            assert_eq!(configs(""), Ok([0, 0, 0]));
        });
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        device("refuses", |pmu| {
            let error = |terms: &str| pmu.event(terms).unwrap_err().to_string();
            let refused = "is not a number that fits into this term of cpu";
            for wrong in ["umask=0x100", "umask=x", "umask=", "edge=2", "event=-1"] {
                assert!(error(wrong).ends_with(refused), "{wrong}: {}", error(wrong));
            }
            let text = "cpu has neither a term nor an event 'umaks'; near it are umask";
            assert_eq!(error("umaks=1"), text);
            assert!(error("mem-loads.unit").contains("neither a term nor an event"));
            assert!(error("../../cpu/type").contains("neither a term nor an event"));
            let other = Pmu { device: "cp", ..*pmu }.event("event=1").unwrap_err().to_string();
            assert_eq!(other, "this kernel has no device 'cp' that counts events: it has cpu");
            let out = Pmu { device: "../cpu", ..*pmu }.event("event=1");
            assert!(matches!(out, Err(PmuError::NoDevice { .. })), "{out:?}");
        });
    }
}
